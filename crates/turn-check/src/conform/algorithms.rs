//! SHA-256, PASSWORD-ALGORITHMS and USERHASH (RFC 8489 sections 9.2 and 14).

use tt_turn::codec::{HmacSha1, HmacSha256, Method, attribute};

use super::authentication::{PASSWORD_ALGORITHMS_BIT, USERNAME_ANONYMITY_BIT, expect_challenge, has_feature};
use super::check::{Check, Finding, Needs, Unmet, expect};
use super::judge::Judge;
use super::probe::{Probe, SHA256, UDP};
use super::reply::Reply;
use super::signature::Signature;

const S: &str = "RFC 8489 section 9.2.4";

pub(super) const CHECKS: &[Check] = &[
    Check::must("R053", S, "the SHA-256 key and MESSAGE-INTEGRITY-SHA256 work", sha256),
    Check::must("R057", S, "its success response has a valid MESSAGE-INTEGRITY-SHA256", signed_success),
    Check::must("R057", S, "its error responses have a valid MESSAGE-INTEGRITY-SHA256", signed_error),
    Check::must("R053", S, "a wrong MESSAGE-INTEGRITY-SHA256 gets 401", wrong_key),
    Check::must("A16", S, "of two integrities MESSAGE-INTEGRITY-SHA256 is what counts", both_integrities),
    Check::must("R039", "RFC 8489 section 9", "LIFETIME 0 behind MESSAGE-INTEGRITY-SHA256 ends nothing", behind),
    Check::must("R049", S, "PASSWORD-ALGORITHM without the list gets 400", no_list),
    Check::must("R049", S, "the list without PASSWORD-ALGORITHM gets 400", no_choice),
    Check::must("R050", S, "a list that is not the server's gets 400", other_list),
    Check::must("R051", S, "an algorithm that is not in the list gets 400", other_choice),
    Check::must("A34", "RFC 8489 section 9.2", "a nonce whose feature bits are bid down is not accepted", bid_down),
    Check::must("A26", S, "401 of an unknown user has PASSWORD-ALGORITHMS", list_for_unknown),
    Check::must("R055", S, "438 has PASSWORD-ALGORITHMS", list_for_stale),
    Check::must("R045", "RFC 8489 section 9.2", "every 401 has the same PASSWORD-ALGORITHMS", same_list)
        .needs(Needs::Nothing),
    Check::must("R027", "RFC 8489 section 14.4", "USERHASH is SHA-256 of name and realm", user_hash),
    Check::must("A37", S, "an unknown USERHASH gets 401", unknown_hash),
];

fn allocate_changed(judge: &Judge<'_>, change: fn(&mut Signature)) -> Result<(Probe, Reply), Unmet> {
    let mut probe = judge.client()?;
    let mut signature = probe.sha256_signature()?;
    change(&mut signature);
    let reply = probe.signed(Method::Allocate, &[UDP], &signature)?;
    Ok((probe, reply))
}

fn unchanged(_: &mut Signature) {}

/// A client and its response; not judged where the algorithm does not work at all.
fn allocate_working(judge: &Judge<'_>, change: fn(&mut Signature)) -> Result<(Probe, Reply), Unmet> {
    expect_working(allocate_changed(judge, unchanged)?.1)?;
    allocate_changed(judge, change)
}

fn expect_working(reply: Reply) -> Finding {
    match reply.is_success() {
        true => Ok(()),
        false => Err(Unmet::not_judged(format!("SHA-256 does not work: {}", reply.text()))),
    }
}

fn sha256(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, unchanged)?.1.expect_success()
}

fn expect_signed(probe: &Probe, reply: &Reply) -> Finding {
    reply.expect_attribute(attribute::MESSAGE_INTEGRITY_SHA256, "MESSAGE-INTEGRITY-SHA256")?;
    let key = probe.sha256_signature()?.sha256;
    let is_valid = key.is_some_and(|key| reply.is_signed_with_sha256(&key));
    expect(is_valid, "the HMAC-SHA256 of the response under the user's key", "another value")
}

fn signed_success(judge: &Judge<'_>) -> Finding {
    let (probe, reply) = allocate_changed(judge, unchanged)?;
    expect_working(reply.clone())?;
    expect_signed(&probe, &reply)
}

fn signed_error(judge: &Judge<'_>) -> Finding {
    // The second Allocate on the five-tuple is an error.
    let (mut probe, reply) = allocate_changed(judge, unchanged)?;
    expect_working(reply)?;
    let signature = probe.sha256_signature()?;
    let reply = probe.signed(Method::Allocate, &[UDP], &signature)?;
    reply.expect_code(437)?;
    expect_signed(&probe, &reply)
}

fn wrong_key(judge: &Judge<'_>) -> Finding {
    let wrong = |signature: &mut Signature| signature.sha256 = Some(HmacSha256::new(b"a key that no user has"));
    expect_challenge(&allocate_changed(judge, wrong)?.1)
}

/// The first integrity is wrong.
fn both_integrities(judge: &Judge<'_>) -> Finding {
    let both = |signature: &mut Signature| signature.sha1 = Some(HmacSha1::new(b"a key that no user has"));
    allocate_working(judge, both)?.1.expect_success()
}

fn behind(judge: &Judge<'_>) -> Finding {
    let (mut probe, reply) = allocate_changed(judge, unchanged)?;
    expect_working(reply)?;
    let behind = vec![(attribute::LIFETIME, vec![0; 4])];
    let signature = Signature { behind, ..probe.sha256_signature()? };
    probe.signed(Method::Refresh, &[], &signature)?.expect_success()?;
    probe.expect_allocation()
}

fn no_list(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, |signature| signature.algorithms = None)?.1.expect_code(400)
}

fn no_choice(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, |signature| signature.algorithm = None)?.1.expect_code(400)
}

fn other_list(judge: &Judge<'_>) -> Finding {
    // The server's list has another algorithm in front, or more than one.
    let shorten = |signature: &mut Signature| match &signature.algorithms {
        Some(list) if *list == SHA256 => signature.algorithms = Some([&[0, 1, 0, 0], &SHA256[..]].concat()),
        Some(_) | None => signature.algorithms = Some(SHA256.to_vec()),
    };
    allocate_changed(judge, shorten)?.1.expect_code(400)
}

fn other_choice(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, |signature| signature.algorithm = Some(vec![0x7F, 1, 0, 0]))?.1.expect_code(400)
}

/// The features of the nonce say that there are no algorithms.
fn bid_down(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    match has_feature(&probe, PASSWORD_ALGORITHMS_BIT) {
        Some(true) => {}
        Some(false) | None => return Err(Unmet::absent("the server offers no password algorithms")),
    }
    let mut nonce = probe.nonce.clone();
    if let Some(features) = nonce.get_mut(9..13) {
        features.copy_from_slice(b"AAAA");
    }
    let signature = Signature { nonce: Some(nonce), ..probe.signature() };
    let reply = probe.signed(Method::Allocate, &[UDP], &signature)?;
    expect(reply.is_error(), "an error response", reply.text())
}

fn expect_list(reply: &Reply) -> Finding {
    reply.expect_attribute(attribute::PASSWORD_ALGORITHMS, "PASSWORD-ALGORITHMS")
}

fn list_for_unknown(judge: &Judge<'_>) -> Finding {
    let unknown = |signature: &mut Signature| signature.name = Some(b"no-such-user".to_vec());
    let (_, reply) = allocate_changed(judge, unknown)?;
    reply.expect_code(401)?;
    expect_list(&reply)
}

fn list_for_stale(judge: &Judge<'_>) -> Finding {
    let stale = |signature: &mut Signature| {
        if let Some(last) = signature.nonce.as_mut().and_then(|nonce| nonce.last_mut()) {
            *last = if *last == b'a' { b'b' } else { b'a' };
        }
    };
    let (_, reply) = allocate_changed(judge, stale)?;
    if reply.code() != 438 {
        return Err(Unmet::not_judged(format!("{} and no error 438", reply.text())));
    }
    expect_list(&reply)
}

fn same_list(judge: &Judge<'_>) -> Finding {
    let (one, other) = (judge.client()?, judge.client()?);
    if one.algorithms.is_none() && other.algorithms.is_none() {
        return Err(Unmet::absent("the server offers no password algorithms"));
    }
    let text = format!("{:02x?} and {:02x?}", one.algorithms, other.algorithms);
    expect(one.algorithms == other.algorithms, "one list", text)
}

/// A client of a server that knows USERHASH.
fn anonymous(judge: &Judge<'_>) -> Result<Probe, Unmet> {
    let probe = judge.client()?;
    match has_feature(&probe, USERNAME_ANONYMITY_BIT) {
        Some(true) => Ok(probe),
        Some(false) | None => Err(Unmet::absent("the server does not offer USERHASH")),
    }
}

fn hashed(probe: &mut Probe, hash: [u8; 32]) -> Result<Reply, Unmet> {
    let signature = Signature { name: None, user_hash: Some(hash), ..probe.sha256_signature()? };
    probe.signed(Method::Allocate, &[UDP], &signature)
}

fn user_hash(judge: &Judge<'_>) -> Finding {
    let mut probe = anonymous(judge)?;
    let hash = probe.user_hash();
    hashed(&mut probe, hash)?.expect_success()
}

fn unknown_hash(judge: &Judge<'_>) -> Finding {
    let mut probe = anonymous(judge)?;
    hashed(&mut probe, [0x5A; 32])?.expect_code(401)
}
