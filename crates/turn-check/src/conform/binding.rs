//! Binding, and the form of messages (RFC 8489 sections 5, 6, 12 and 14).

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use rustls::ProtocolVersion;
use tt_turn::codec::{Class, HEADER_LEN, Method, attribute};

use super::check::{Check, Finding, Needs, Over, Unmet, expect};
use super::judge::Judge;
use super::reply::{Found, Reply};
use super::signature::{Signature, compose};
use crate::client::Attribute;

/// Attributes of the optional half that no RFC defines.
const UNKNOWN_OPTIONAL: [u16; 2] = [0xC0DE, 0xFFFE];
/// Type of a request of method 0x0FE, which no RFC defines (RFC 8489 section 5, figure 3).
const UNKNOWN_METHOD_REQUEST: [u8; 2] = [0x03, 0xEE];
const BINDING_SUCCESS: u16 = 0x0101;
/// SOFTWARE has fewer characters (RFC 8489 section 14.14).
const SOFTWARE_MAX: usize = 763;

pub(super) const CHECKS: &[Check] = &[
    open("R013", "RFC 8489 section 6.3.1.1", "a Binding is answered with its source address", mapped_address),
    open("R016", "RFC 8489 section 12", "a Binding is answered with a Binding success response", success_type),
    open("R001", "RFC 8489 section 5", "a response begins with two zero bits", zero_bits),
    open("R002", "RFC 8489 section 5", "a response carries the magic cookie", cookie),
    open("R003", "RFC 8489 section 5", "the length of a response leaves the header out", length),
    open("R004", "RFC 8489 section 5", "a response repeats the transaction id of its request", transaction),
    open("R007", "RFC 8489 section 6.3", "unknown attributes of the optional half are ignored", unknown_optional),
    open("R008", "RFC 8489 section 6.3", "known attributes where they are not expected are ignored", unexpected)
        .should(),
    open("R017", "RFC 8489 section 12", "a Binding is answered with and without FINGERPRINT", fingerprint_optional),
    open("R020", "RFC 8489 section 14", "attributes of a response fill it exactly", whole),
    open("R021", "RFC 8489 section 14", "padding of a request is not looked at", padding_in),
    open("R023", "RFC 8489 section 14.1", "an address has a family, its length and a zero first byte", address_form),
    open("R030", "RFC 8489 section 14.7", "FINGERPRINT of a response is its last attribute", fingerprint_last),
    open(
        "R031",
        "RFC 8489 section 14.7",
        "FINGERPRINT of a response is the CRC-32 of what precedes it",
        fingerprint_value,
    ),
    open("R036", "RFC 8489 section 16.1.2", "SOFTWARE, if it is sent, has at most 763 bytes", software).should(),
    open("R006", "RFC 8489 section 6.3", "a request of an unknown method gets no response", unknown_method),
    open("A20", "RFC 8489 section 6.3", "a response gets no response", response_in),
    open("A22", "RFC 8489 section 6.3", "a Binding indication gets no response", indication),
    open("A23", "RFC 8489 section 11", "classic STUN without the cookie gets no response", classic).over(Over::Udp),
    open("R014", "RFC 8489 section 6.3.1.2", "a response leaves from the address that was asked", source)
        .over(Over::Udp),
    open("R011", "RFC 8489 section 6.3.1", "a retransmitted Binding gets the same response", retransmitted)
        .over(Over::Udp),
    open("R019", "RFC 8489 section 6.2.3", "TLS 1.2 or later with a suite of forward secrecy", forward_secrecy)
        .over(Over::Tls),
];

/// A requirement that needs no credential.
const fn open(id: &'static str, section: &'static str, title: &'static str, judge: fn(&Judge<'_>) -> Finding) -> Check {
    Check::must(id, section, title, judge).needs(Needs::Nothing)
}

fn request(attributes: &[Attribute<'_>], signature: &Signature) -> Result<Vec<u8>, Unmet> {
    compose(Method::Binding, Class::Request, attributes, signature)
}

fn binding(judge: &Judge<'_>) -> Result<Reply, Unmet> {
    judge.stranger()?.binding()
}

fn mapped_address(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let reply = probe.binding()?;
    reply.expect_attribute(attribute::XOR_MAPPED_ADDRESS, "XOR-MAPPED-ADDRESS")?;
    let local = probe.link.local_addr().map_err(|error| Unmet::not_judged(error.to_string()))?;
    let server = probe.link.server_addr().map_err(|error| Unmet::not_judged(error.to_string()))?;
    match reply.address(attribute::XOR_MAPPED_ADDRESS) {
        None => Err(Unmet::failed(local.to_string(), "an XOR-MAPPED-ADDRESS that cannot be read")),
        Some(mapped) if mapped == local => Ok(()),
        // Without an address translation in between, nothing but the source is right.
        Some(mapped) if mapped.ip() == local.ip() || is_near(server.ip()) || mapped.is_ipv4() != local.is_ipv4() => {
            Err(Unmet::failed(local.to_string(), mapped.to_string()))
        }
        Some(mapped) => Err(Unmet::not_judged(format!("{local} may be translated to {mapped} on the way"))),
    }
}

fn is_near(server: IpAddr) -> bool {
    server.is_loopback()
}

fn success_type(judge: &Judge<'_>) -> Finding {
    let kind = binding(judge)?.kind();
    expect(kind == BINDING_SUCCESS, "a message of type 0x0101", format!("{kind:#06x}"))
}

fn zero_bits(judge: &Judge<'_>) -> Finding {
    let kind = binding(judge)?.kind();
    expect(kind & 0xC000 == 0, "two zero bits", format!("a message of type {kind:#06x}"))
}

fn cookie(judge: &Judge<'_>) -> Finding {
    expect(binding(judge)?.has_cookie(), "0x2112A442", "another cookie")
}

fn length(judge: &Judge<'_>) -> Finding {
    let reply = binding(judge)?;
    let expected = reply.bytes.len() - HEADER_LEN;
    let is_met = reply.length() == expected && expected.is_multiple_of(4);
    expect(is_met, format!("a length of {expected}, a multiple of four"), format!("{}", reply.length()))
}

/// Two requests at once: each response must repeat the id of its request.
fn transaction(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let reply = probe.binding()?;
    let other = probe.binding()?;
    expect(reply.id() != other.id(), "two transaction ids", "one for two requests")
}

fn unknown_optional(judge: &Judge<'_>) -> Finding {
    let attributes = UNKNOWN_OPTIONAL.map(|kind| Attribute::Bytes(kind, b"abcde"));
    judge.stranger()?.ask(Method::Binding, &attributes)?.expect_success()
}

fn unexpected(judge: &Judge<'_>) -> Finding {
    let attributes =
        [Attribute::Bytes(attribute::LIFETIME, &[0, 0, 2, 88]), Attribute::Bytes(attribute::DATA, b"payload")];
    judge.stranger()?.ask(Method::Binding, &attributes)?.expect_success()
}

fn fingerprint_optional(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    probe.binding()?;
    let signed = Signature { has_fingerprint: true, ..Signature::default() };
    probe.exchange(&request(&[], &signed)?)?.expect_success()
}

fn whole(judge: &Judge<'_>) -> Finding {
    expect(binding(judge)?.is_whole, "attributes on multiples of four bytes", "bytes that are no attribute")
}

fn padding_in(judge: &Judge<'_>) -> Finding {
    let mut message = request(&[Attribute::Bytes(UNKNOWN_OPTIONAL[0], b"abcde")], &Signature::default())?;
    for byte in message.iter_mut().rev().take(3) {
        *byte = 0xFF;
    }
    judge.stranger()?.exchange(&message)?.expect_success()
}

fn address_form(judge: &Judge<'_>) -> Finding {
    let reply = binding(judge)?;
    let value = reply.value(attribute::XOR_MAPPED_ADDRESS).unwrap_or_default();
    let is_met = matches!((value, value.len()), ([0, 1, ..], 8) | ([0, 2, ..], 20));
    expect(is_met, "a zero byte, family 1 with 8 bytes or 2 with 20", format!("the bytes {value:02x?}"))
}

/// A response with FINGERPRINT; servers send it in different cases, so two are tried.
fn fingerprinted(judge: &Judge<'_>) -> Result<Reply, Unmet> {
    let mut probe = judge.stranger()?;
    let signed = Signature { has_fingerprint: true, ..Signature::default() };
    for message in [request(&[], &signed)?, request(&[], &Signature::default())?] {
        let reply = probe.exchange(&message)?;
        if reply.has(attribute::FINGERPRINT) {
            return Ok(reply);
        }
    }
    Err(Unmet::absent("the server sends no FINGERPRINT"))
}

fn fingerprint_last(judge: &Judge<'_>) -> Finding {
    let reply = fingerprinted(judge)?;
    let last = reply.attributes.last().map(|found| found.kind);
    expect(last == Some(attribute::FINGERPRINT), "FINGERPRINT at the end", "an attribute behind it")
}

fn fingerprint_value(judge: &Judge<'_>) -> Finding {
    let reply = fingerprinted(judge)?;
    let is_valid = tt_turn::codec::Message::parse(&reply.bytes).is_ok_and(|message| message.has_valid_fingerprint());
    expect(is_valid, "the CRC-32 of the message, XORed with 0x5354554E", "another value")
}

fn software(judge: &Judge<'_>) -> Finding {
    let reply = binding(judge)?;
    let Some(value) = reply.value(attribute::SOFTWARE) else {
        return Err(Unmet::absent("the server sends no SOFTWARE"));
    };
    expect(value.len() <= SOFTWARE_MAX, "at most 763 bytes", format!("{} bytes", value.len()))
}

fn unknown_method(judge: &Judge<'_>) -> Finding {
    let mut message = request(&[], &Signature::default())?;
    message.splice(..2, UNKNOWN_METHOD_REQUEST);
    judge.stranger()?.expect_silence(&message)
}

fn response_in(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    for class in [Class::Success, Class::Error] {
        let mapped = Attribute::Address(attribute::XOR_MAPPED_ADDRESS, ([192, 0, 2, 1], 9).into());
        let message = compose(Method::Binding, class, &[mapped], &Signature::default())?;
        probe.expect_silence(&message)?;
    }
    Ok(())
}

fn indication(judge: &Judge<'_>) -> Finding {
    let message = compose(Method::Binding, Class::Indication, &[], &Signature::default())?;
    judge.stranger()?.expect_silence(&message)
}

fn classic(judge: &Judge<'_>) -> Finding {
    let mut message = request(&[], &Signature::default())?;
    // RFC 3489 has 16 bytes of transaction id here.
    message.splice(4..8, *b"abcd");
    judge.stranger()?.expect_silence(&message)
}

/// From a socket that receives from any address.
fn source(judge: &Judge<'_>) -> Finding {
    let probe = judge.stranger()?;
    let trouble = |error: std::io::Error| Unmet::not_judged(error.to_string());
    let server = probe.link.server_addr().map_err(trouble)?;
    let socket = UdpSocket::bind((probe.link.local_addr().map_err(trouble)?.ip(), 0)).map_err(trouble)?;
    socket.set_read_timeout(Some(Duration::from_secs(1))).map_err(trouble)?;
    for _ in 0..3 {
        socket.send_to(&request(&[], &Signature::default())?, server).map_err(trouble)?;
        if let Ok((_, from)) = socket.recv_from(&mut [0; 1_500]) {
            return expect(from == server, server.to_string(), from.to_string());
        }
    }
    Err(Unmet::failed("a response", "none in 3 s"))
}

fn retransmitted(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let message = request(&[], &Signature::default())?;
    let replies = [probe.exchange(&message)?, probe.exchange(&message)?];
    let mapped = replies.map(|reply| reply.address(attribute::XOR_MAPPED_ADDRESS));
    expect(mapped[0] == mapped[1], "the same address twice", format!("{mapped:?}"))
}

fn forward_secrecy(judge: &Judge<'_>) -> Finding {
    let probe = judge.stranger()?;
    let tls = probe.link.tls().ok_or_else(|| Unmet::not_judged("no TLS"))?;
    let version = tls.protocol_version();
    let suite = tls.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite())).unwrap_or_default();
    let is_recent = matches!(version, Some(ProtocolVersion::TLSv1_2 | ProtocolVersion::TLSv1_3));
    let is_forward = version == Some(ProtocolVersion::TLSv1_3) || suite.contains("ECDHE");
    expect(is_recent && is_forward, "TLS 1.2 with ECDHE, or TLS 1.3", format!("{version:?} {suite}"))
}

/// Passes if the padding of a message's attributes is zero.
pub(super) fn expect_zero_padding(reply: &Reply) -> Finding {
    let is_dirty = |found: &&Found| found.padding.iter().any(|byte| *byte != 0);
    let dirty = reply.attributes.iter().find(is_dirty);
    dirty.map_or(Ok(()), |found| {
        Err(Unmet::failed("padding of zeros", format!("{:02x?} behind attribute {:#06x}", found.padding, found.kind)))
    })
}
