//! Long-term credentials: 401, 400, 438, nonces (RFC 8489 section 9.2).

use tt_turn::codec::{Class, HmacSha1, Method, attribute};

use super::check::{Check, Finding, Needs, Unmet, expect};
use super::judge::Judge;
use super::probe::{Probe, UDP};
use super::reply::Reply;
use super::signature::{Signature, compose};

const S: &str = "RFC 8489 section 9.2.4";
const STALE_NONCE: u16 = 438;
/// Bits of the features, from the most significant of three bytes (RFC 8489 section 18.1).
pub(super) const PASSWORD_ALGORITHMS_BIT: u8 = 0;
pub(super) const USERNAME_ANONYMITY_BIT: u8 = 1;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) const CHECKS: &[Check] = &[
    Check::must("R042", S, "a request without integrity gets 401 with REALM and NONCE", challenge)
        .needs(Needs::Nothing),
    Check::must("R043", S, "that 401 has no USERNAME, USERHASH or integrity", bare_challenge)
        .should()
        .needs(Needs::Nothing),
    Check::must("R070", "RFC 8656 section 7.2", "an Allocate without a credential is not granted", not_granted)
        .needs(Needs::Nothing),
    Check::must("R044", S, "another source port gets another nonce", nonce_of_port).needs(Needs::Nothing),
    Check::must("R040", "RFC 8489 section 9.2", "a nonce begins with obMatJos2 and four characters of base64", cookie)
        .needs(Needs::Nothing),
    Check::must("R045", "RFC 8489 section 9.2", "PASSWORD-ALGORITHMS comes with its feature bit, and only then", bit)
        .needs(Needs::Nothing),
    Check::must("R047", S, "integrity without USERNAME gets 400", no_username),
    Check::must("A27", S, "integrity without REALM gets 400", no_realm),
    Check::must("A27", S, "integrity without NONCE gets 400", no_nonce),
    Check::must("R047", S, "that 400 has no REALM and no NONCE", bare_bad_request).should(),
    Check::must("R052", S, "an unknown user gets 401 with REALM and NONCE", unknown_user),
    Check::must("R054", S, "a wrong password gets 401 with REALM and NONCE", wrong_password),
    Check::must("A38", S, "an unknown user and a wrong password get the same error", same_error).should(),
    Check::must("R055", S, "a nonce that the server has not made gets 438 with REALM and NONCE", stale_nonce),
    Check::must("A34", "RFC 8489 section 9.2", "a nonce that is changed in one character gets 438", changed_nonce),
    Check::must("R055", S, "the nonce of a 438 is valid", fresh_nonce),
    Check::must("R056", S, "a wrong password with a nonce that the server has not made gets 401", order),
    Check::must("A41", S, "a captured Allocate is rejected from another port", captured).should(),
    Check::must("R025", "RFC 8489 section 14.3", "a USERNAME of 508 bytes is understood", long_name),
];

fn challenge(judge: &Judge<'_>) -> Finding {
    let reply = judge.stranger()?.ask(Method::Allocate, &[UDP])?;
    expect_challenge(&reply)
}

/// Passes if a message is a 401 with REALM and NONCE.
pub(super) fn expect_challenge(reply: &Reply) -> Finding {
    reply.expect_code(401)?;
    reply.expect_attribute(attribute::REALM, "REALM")?;
    reply.expect_attribute(attribute::NONCE, "NONCE")
}

fn bare_challenge(judge: &Judge<'_>) -> Finding {
    let reply = judge.stranger()?.ask(Method::Allocate, &[UDP])?;
    let attributes = [
        (attribute::USERNAME, "USERNAME"),
        (attribute::USERHASH, "USERHASH"),
        (attribute::MESSAGE_INTEGRITY, "MESSAGE-INTEGRITY"),
        (attribute::MESSAGE_INTEGRITY_SHA256, "MESSAGE-INTEGRITY-SHA256"),
    ];
    attributes.into_iter().try_for_each(|(kind, name)| reply.expect_no_attribute(kind, name))
}

fn not_granted(judge: &Judge<'_>) -> Finding {
    judge.stranger()?.challenge().map(drop)
}

fn nonce_of_port(judge: &Judge<'_>) -> Finding {
    let (one, other) = (judge.client()?, judge.client()?);
    expect(one.nonce != other.nonce, "two nonces", "one nonce for two ports")
}

fn cookie(judge: &Judge<'_>) -> Finding {
    let probe = judge.client()?;
    let Some(features) = probe.features() else {
        return Err(Unmet::absent("the nonce announces no security features of RFC 8489"));
    };
    let is_base64 = features.iter().all(|character| BASE64.contains(character));
    expect(is_base64, "four characters of base64", String::from_utf8_lossy(features))
}

/// Returns whether the nonce of a client announces a feature; `None` without a nonce cookie.
pub(super) fn has_feature(probe: &Probe, bit: u8) -> Option<bool> {
    let sextet = |character: &u8| BASE64.iter().position(|known| known == character).unwrap_or(0);
    let bits = probe.features()?.iter().map(sextet).fold(0, |bits, sextet| bits << 6 | sextet);
    Some(bits >> (23 - bit) & 1 == 1)
}

fn bit(judge: &Judge<'_>) -> Finding {
    let probe = judge.client()?;
    let is_sent = probe.algorithms.is_some();
    match has_feature(&probe, PASSWORD_ALGORITHMS_BIT) {
        None if !is_sent => Err(Unmet::absent("the server offers no password algorithms")),
        None => Err(Unmet::failed("a nonce cookie with PASSWORD-ALGORITHMS", "PASSWORD-ALGORITHMS without it")),
        Some(is_set) => {
            expect(is_set == is_sent, "the bit and the attribute together", format!("bit {is_set}, sent {is_sent}"))
        }
    }
}

/// Sends an Allocate with a changed signature.
fn allocate_changed(judge: &Judge<'_>, change: fn(&mut Signature)) -> Result<Reply, Unmet> {
    let mut probe = judge.client()?;
    let mut signature = probe.signature();
    change(&mut signature);
    probe.signed(Method::Allocate, &[UDP], &signature)
}

fn no_username(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, |signature| signature.name = None)?.expect_code(400)
}

fn no_realm(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, |signature| signature.realm = None)?.expect_code(400)
}

fn no_nonce(judge: &Judge<'_>) -> Finding {
    allocate_changed(judge, |signature| signature.nonce = None)?.expect_code(400)
}

fn bare_bad_request(judge: &Judge<'_>) -> Finding {
    let reply = allocate_changed(judge, |signature| signature.name = None)?;
    if reply.code() != 400 {
        return Err(Unmet::not_judged(format!("{} and no error 400", reply.text())));
    }
    reply.expect_no_attribute(attribute::REALM, "REALM")?;
    reply.expect_no_attribute(attribute::NONCE, "NONCE")
}

/// A name of as many bytes that no user has.
fn strange_name(name: &[u8]) -> Vec<u8> {
    name.iter().rev().map(|byte| if *byte == b'~' { b'#' } else { b'~' }).collect()
}

fn unknown_user(judge: &Judge<'_>) -> Finding {
    let reply = allocate_changed(judge, use_strange_name)?;
    expect_challenge(&reply)
}

fn use_strange_name(signature: &mut Signature) {
    signature.name = signature.name.as_deref().map(strange_name);
}

fn use_wrong_key(signature: &mut Signature) {
    signature.sha1 = Some(HmacSha1::new(b"a key that no user has"));
}

fn wrong_password(judge: &Judge<'_>) -> Finding {
    expect_challenge(&allocate_changed(judge, use_wrong_key)?)
}

fn same_error(judge: &Judge<'_>) -> Finding {
    let shape = |reply: Reply| {
        let kinds: Vec<_> = reply.attributes.iter().map(|found| (found.kind, found.value.len())).collect();
        (reply.code(), kinds)
    };
    let unknown = shape(allocate_changed(judge, use_strange_name)?);
    let wrong = shape(allocate_changed(judge, use_wrong_key)?);
    let text = format!("{} and {} with attributes {:04x?} and {:04x?}", unknown.0, wrong.0, unknown.1, wrong.1);
    expect(unknown == wrong, "the same code and attributes", text)
}

/// A nonce of the same form that the server has not made.
fn strange_nonce(probe: &Probe) -> Vec<u8> {
    let kept = probe.features().map_or(0, |_| 13);
    let change = |(index, byte): (usize, &u8)| match (index < kept, byte) {
        (true, _) => *byte,
        (false, b'0') => b'1',
        (false, _) => b'0',
    };
    probe.nonce.iter().enumerate().map(change).collect()
}

fn use_nonce(probe: &mut Probe, nonce: Vec<u8>) -> Result<Reply, Unmet> {
    let signature = Signature { nonce: Some(nonce), ..probe.signature() };
    probe.signed(Method::Allocate, &[UDP], &signature)
}

fn expect_stale(reply: &Reply) -> Finding {
    reply.expect_code(STALE_NONCE)?;
    reply.expect_attribute(attribute::REALM, "REALM")?;
    reply.expect_attribute(attribute::NONCE, "NONCE")
}

fn stale_nonce(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let nonce = strange_nonce(&probe);
    expect_stale(&use_nonce(&mut probe, nonce)?)
}

fn changed_nonce(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let mut nonce = probe.nonce.clone();
    if let Some(last) = nonce.last_mut() {
        *last = if *last == b'a' { b'b' } else { b'a' };
    }
    use_nonce(&mut probe, nonce)?.expect_code(STALE_NONCE)
}

fn fresh_nonce(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let nonce = strange_nonce(&probe);
    let reply = use_nonce(&mut probe, nonce)?;
    if reply.code() != STALE_NONCE {
        return Err(Unmet::not_judged(format!("{} and no error 438", reply.text())));
    }
    probe.learn(&reply)?;
    let signature = probe.signature();
    probe.signed(Method::Allocate, &[UDP], &signature)?.expect_success()
}

fn order(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let mut signature = Signature { nonce: Some(strange_nonce(&probe)), ..probe.signature() };
    use_wrong_key(&mut signature);
    probe.signed(Method::Allocate, &[UDP], &signature)?.expect_code(401)
}

fn captured(judge: &Judge<'_>) -> Finding {
    let (mut owner, mut thief) = (judge.client()?, judge.client()?);
    let message = compose(Method::Allocate, Class::Request, &[UDP], &owner.signature())?;
    owner.allocate_with(&message)?.expect_success()?;
    let reply = thief.allocate_with(&message)?;
    expect(reply.is_error(), "an error response", reply.text())?;
    owner.expect_allocation()
}

fn long_name(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let signature = Signature { name: Some(vec![b'n'; 508]), ..probe.signature() };
    probe.signed(Method::Allocate, &[UDP], &signature)?.expect_code(401)
}
