//! MESSAGE-INTEGRITY of requests and responses (RFC 8489 sections 9.2.4 and 14.5).

use std::net::SocketAddr;

use tt_turn::codec::{Method, XorAddress, attribute};

use super::check::{Check, Finding, Unmet, expect};
use super::judge::{Judge, LOST_AFTER};
use super::probe::{Probe, UDP};
use super::reply::Reply;
use super::signature::Signature;
use crate::client::Attribute;

const S: &str = "RFC 8489 section 9.2.4";
const BEHIND: &str = "RFC 8489 section 9";
const UNKNOWN_REQUIRED: u16 = 0x7F01;
const NO_LIFETIME: [u8; 4] = [0; 4];

pub(super) const CHECKS: &[Check] = &[
    Check::must("R048", S, "neither algorithm attribute means the MD5 key", md5),
    Check::must("R058", S, "a success response to the MD5 key has a valid MESSAGE-INTEGRITY", signed_success),
    Check::must("R059", S, "437 after valid credentials is signed", signed_mismatch).should(),
    Check::must("R059", S, "442 after valid credentials is signed", signed_transport).should(),
    Check::must("R059", S, "400 after valid credentials is signed", signed_bad_request).should(),
    Check::must(
        "R028",
        "RFC 8489 section 14.5",
        "a FINGERPRINT behind MESSAGE-INTEGRITY is not covered by it",
        fingerprint,
    ),
    Check::must(
        "R038",
        BEHIND,
        "an attribute of the optional half behind MESSAGE-INTEGRITY is ignored",
        behind_optional,
    ),
    Check::must("A13", BEHIND, "LIFETIME 0 behind MESSAGE-INTEGRITY ends nothing", behind_lifetime),
    Check::must("A14", BEHIND, "a peer behind MESSAGE-INTEGRITY is not permitted", behind_peer),
    Check::must("A15", BEHIND, "an unknown required attribute behind MESSAGE-INTEGRITY gets no 420", behind_unknown),
];

fn md5(judge: &Judge<'_>) -> Finding {
    judge.client()?.allocate(&[])?.expect_success()
}

/// Passes if a response has the MESSAGE-INTEGRITY of the user.
pub(super) fn expect_signed(probe: &Probe, reply: &Reply) -> Finding {
    reply.expect_attribute(attribute::MESSAGE_INTEGRITY, "MESSAGE-INTEGRITY")?;
    let key = probe.signature().sha1;
    let is_valid = key.is_some_and(|key| reply.is_signed_with_sha1(&key));
    expect(is_valid, "the HMAC-SHA1 of the response under the user's key", "another value")
}

fn signed_success(judge: &Judge<'_>) -> Finding {
    let (probe, reply) = judge.allocated_with(&[])?;
    expect_signed(&probe, &reply)
}

fn expect_signed_error(judge: &Judge<'_>, method: Method, attributes: &[Attribute<'_>], code: u16) -> Finding {
    let mut probe = judge.client()?;
    let reply = probe.request(method, attributes).map_err(|_| Unmet::not_judged("no response"))?;
    if reply.code() != code {
        return Err(Unmet::not_judged(format!("{} and no error {code}", reply.text())));
    }
    expect_signed(&probe, &reply)
}

fn signed_mismatch(judge: &Judge<'_>) -> Finding {
    expect_signed_error(judge, Method::Refresh, &[], 437)
}

fn signed_transport(judge: &Judge<'_>) -> Finding {
    let sctp = Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &[132, 0, 0, 0]);
    expect_signed_error(judge, Method::Allocate, &[sctp], 442)
}

fn signed_bad_request(judge: &Judge<'_>) -> Finding {
    expect_signed_error(judge, Method::Allocate, &[], 400)
}

fn fingerprint(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let signature = Signature { has_fingerprint: true, ..probe.signature() };
    probe.signed(Method::Allocate, &[UDP], &signature)?.expect_success()
}

fn behind(probe: &Probe, kind: u16, value: &[u8]) -> Signature {
    Signature { behind: vec![(kind, value.to_vec())], ..probe.signature() }
}

fn behind_optional(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let signature = behind(&probe, 0xC0DE, b"abcd");
    probe.signed(Method::Refresh, &[], &signature)?.expect_success()
}

fn behind_lifetime(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let signature = behind(&probe, attribute::LIFETIME, &NO_LIFETIME);
    probe.signed(Method::Refresh, &[], &signature)?;
    probe.expect_allocation()
}

/// Asks for a permission whose only peer is behind the integrity.
fn behind_peer(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = judge.relaying()?;
    // The value of an IPv4 address does not depend on the transaction id.
    let SocketAddr::V4(_) = peer.addr() else { return Err(Unmet::not_judged("the peer has an IPv6 address")) };
    let value = XorAddress::encode(peer.addr(), &[0; 12]);
    let signature = behind(&probe, attribute::XOR_PEER_ADDRESS, value.as_bytes());
    probe.signed(Method::CreatePermission, &[], &signature)?.expect_code(400)?;
    probe.send_to_peer(peer.addr(), b"behind the integrity")?;
    let arrived = peer.receive(LOST_AFTER)?.is_some();
    expect(!arrived, "nothing is relayed to the peer", "a datagram reached it")
}

fn behind_unknown(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let signature = behind(&probe, UNKNOWN_REQUIRED, b"abcd");
    probe.signed(Method::Refresh, &[], &signature)?.expect_success()
}
