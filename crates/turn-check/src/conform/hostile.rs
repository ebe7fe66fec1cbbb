//! Malformed messages and a small flood, which are sent only on request. After each the server must still answer.

use tt_turn::codec::{Class, HEADER_LEN, Method, attribute};

use super::check::{Check, Finding, Needs, Over, Unmet, expect};
use super::judge::Judge;
use super::probe::{Probe, UDP, channel_data};
use super::signature::{Signature, compose};
use crate::client::Attribute;

/// Requests of the flood.
const FLOOD: usize = 200;
/// Empty attributes in one message.
const EMPTY_ATTRIBUTES: usize = 300;

pub(super) const CHECKS: &[Check] = &[
    datagram("A01", "RFC 8489 section 6.3", "datagrams shorter than a header get no response", short),
    datagram("A02", "RFC 8656 section 12", "first bytes of other protocols get no response", other_protocols),
    datagram("A03", "RFC 8489 section 6.3", "a wrong length in the header gets no response", wrong_length),
    datagram("A03", "RFC 8489 section 5", "set top bits get no response", top_bits),
    datagram("A04", "RFC 8489 section 5", "junk behind a message gets no success response", junk),
    datagram("A07", "RFC 8489 section 14", "an attribute past the end gets no success response", past_the_end),
    datagram("A17", "RFC 8489 section 6.3", "a wrong FINGERPRINT gets no response", wrong_fingerprint),
    datagram(
        "A18",
        "RFC 8489 section 14.7",
        "a FINGERPRINT that is not last gets no success response",
        early_fingerprint,
    ),
    datagram("A09", "RFC 8489 section 14", "300 empty attributes do not end the server", empty_attributes),
    datagram("A69", "RFC 8656 section 12.6", "ChannelData longer than the datagram are dropped", long_channel_data),
    signed("A25", "RFC 8489 section 14.1", "a peer of an unknown family or of a wrong length gets 400", bad_address),
    signed("A24", "RFC 8489 section 14.3", "a USERNAME of controls or bad UTF-8 gets 400 or 401", bad_names),
    signed("A28", "RFC 8489 section 9.2.4", "a MESSAGE-INTEGRITY of a wrong length grants nothing", cut_integrity),
    signed("A29", "RFC 8489 section 14.6", "a truncated MESSAGE-INTEGRITY-SHA256 grants nothing", cut_sha256),
    signed("A44", "RFC 8656 section 7.2", "a REQUESTED-TRANSPORT of a wrong length gets 400", bad_transport),
    signed("A47", "RFC 8656 section 7.2", "a RESERVATION-TOKEN of a wrong length gets 400", bad_token),
    Check::must("A05", "RFC 8489 section 5", "the longest length on a stream does not end the server", long_stream)
        .over(Over::Stream)
        .needs(Needs::Nothing)
        .hostile(),
    datagram("A42", "RFC 8489 section 16.1.2", "200 requests without a credential do not end the server", flood),
];

const fn datagram(
    id: &'static str,
    section: &'static str,
    title: &'static str,
    judge: fn(&Judge<'_>) -> Finding,
) -> Check {
    Check::must(id, section, title, judge).over(Over::Udp).needs(Needs::Nothing).hostile()
}

const fn signed(
    id: &'static str,
    section: &'static str,
    title: &'static str,
    judge: fn(&Judge<'_>) -> Finding,
) -> Check {
    Check::must(id, section, title, judge).hostile()
}

fn request(attributes: &[Attribute<'_>]) -> Result<Vec<u8>, Unmet> {
    compose(Method::Binding, Class::Request, attributes, &Signature::default())
}

fn short(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let message = request(&[])?;
    for length in 1..HEADER_LEN {
        probe.send(message.get(..length).unwrap_or_default())?;
    }
    probe.expect_silence(message.get(..HEADER_LEN - 1).unwrap_or_default())
}

fn other_protocols(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    [4, 15, 80, 127, 192, 255].into_iter().try_for_each(|first| {
        let mut message = request(&[])?;
        message.splice(..1, [first]);
        probe.expect_silence(&message)
    })
}

fn wrong_length(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    for length in [1_u16, 4, 0xFFFC] {
        let mut message = request(&[])?;
        message.splice(2..4, length.to_be_bytes());
        probe.expect_silence(&message)?;
    }
    Ok(())
}

fn top_bits(judge: &Judge<'_>) -> Finding {
    let mut message = request(&[])?;
    message.splice(..1, [0x80]);
    judge.stranger()?.expect_silence(&message)
}

/// Passes if the message gets no success response: an error or silence.
fn expect_no_success(probe: &mut Probe, message: &[u8]) -> Finding {
    match probe.expect_silence(message) {
        Err(Unmet::Failed { received, .. }) if received == "a success response" => {
            Err(Unmet::failed("no success response", received))
        }
        Err(Unmet::Failed { expected, .. }) if expected == "no response" => Ok(()),
        other => other,
    }
}

fn junk(judge: &Judge<'_>) -> Finding {
    let mut message = request(&[])?;
    message.extend(b"junk");
    expect_no_success(&mut judge.stranger()?, &message)
}

fn past_the_end(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    for length in [9_u16, 0xFFFF] {
        let mut message = request(&[Attribute::Bytes(0xC0DE, b"12345678")])?;
        message.splice(HEADER_LEN + 2..HEADER_LEN + 4, length.to_be_bytes());
        expect_no_success(&mut probe, &message)?;
    }
    Ok(())
}

fn wrong_fingerprint(judge: &Judge<'_>) -> Finding {
    let signature = Signature { has_fingerprint: true, ..Signature::default() };
    let mut message = compose(Method::Binding, Class::Request, &[], &signature)?;
    if let Some(last) = message.last_mut() {
        *last ^= 1;
    }
    judge.stranger()?.expect_silence(&message)
}

fn early_fingerprint(judge: &Judge<'_>) -> Finding {
    let message =
        request(&[Attribute::Bytes(attribute::FINGERPRINT, &[1, 2, 3, 4]), Attribute::Bytes(0xC0DE, b"abcd")])?;
    expect_no_success(&mut judge.stranger()?, &message)
}

fn empty_attributes(judge: &Judge<'_>) -> Finding {
    let attributes = vec![Attribute::Bytes(0x7F01, &[]); EMPTY_ATTRIBUTES];
    let mut probe = judge.stranger()?;
    let message = request(&attributes)?;
    probe.send(&message)?;
    probe.binding().map(drop)
}

fn long_channel_data(judge: &Judge<'_>) -> Finding {
    let mut message = channel_data(0x4000, b"payload!", true);
    message.splice(2..4, 0xFFFF_u16.to_be_bytes());
    judge.stranger()?.expect_silence(&message)
}

fn bad_address(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    for value in [&[0, 3, 1, 2, 3, 4, 5, 6][..], &[0, 1, 1, 2, 3, 4, 5], &[0, 2, 1, 2, 3, 4, 5, 6]] {
        let peer = Attribute::Bytes(attribute::XOR_PEER_ADDRESS, value);
        let reply = probe.request(Method::CreatePermission, &[peer])?;
        expect(reply.code() == 400, format!("error 400 for {value:02x?}"), reply.text())?;
    }
    probe.expect_allocation()
}

fn bad_names(judge: &Judge<'_>) -> Finding {
    for name in [&b""[..], b"\0", b"a\r\nb", b"%s%n%p", b"\x1b[31m", b"\xFF\xFE", &[b'n'; 764]] {
        let mut probe = judge.client()?;
        let signature = Signature { name: Some(name.to_vec()), ..probe.signature() };
        let reply = probe.signed(Method::Allocate, &[UDP], &signature)?;
        let received = format!("{} for {}", reply.text(), name.escape_ascii());
        expect(matches!(reply.code(), 400 | 401), "error 400 or 401", received)?;
    }
    Ok(())
}

/// The valid integrity, cut or lengthened.
fn cut_integrity(judge: &Judge<'_>) -> Finding {
    for length in [0, 19, 21] {
        let mut probe = judge.client()?;
        let signature = Signature {
            behind: vec![(attribute::MESSAGE_INTEGRITY, vec![7; length])],
            sha1: None,
            ..probe.signature()
        };
        let reply = probe.signed(Method::Allocate, &[UDP], &signature)?;
        expect(reply.is_error(), format!("an error response for {length} bytes"), reply.text())?;
    }
    Ok(())
}

/// The valid HMAC, cut to sixteen bytes as other usages allow.
fn cut_sha256(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let signature = probe.sha256_signature()?;
    let whole = compose(Method::Allocate, Class::Request, &[UDP], &signature)?;
    let Some(key) = signature.sha256.clone() else { return Err(Unmet::not_judged("no key")) };
    let Some(covered) = whole.get(..whole.len() - 36) else { return Err(Unmet::not_judged("no message")) };
    let mut message = covered.to_vec();
    let length = u16::try_from(covered.len() + 20 - HEADER_LEN).unwrap_or(0);
    message.splice(2..4, length.to_be_bytes());
    let mac = key.mac(&message);
    message.extend(attribute::MESSAGE_INTEGRITY_SHA256.to_be_bytes());
    message.extend([0, 16]);
    message.extend(mac.get(..16).unwrap_or_default());
    let reply = probe.allocate_with(&message)?;
    expect(reply.is_error(), "an error response", reply.text())
}

fn bad_transport(judge: &Judge<'_>) -> Finding {
    let transport = Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &[17]);
    judge.client()?.request(Method::Allocate, &[transport])?.expect_code(400)
}

fn bad_token(judge: &Judge<'_>) -> Finding {
    let reply = judge.client()?.allocate(&[Attribute::Bytes(attribute::RESERVATION_TOKEN, b"short")])?;
    reply.absent_if_unknown(attribute::RESERVATION_TOKEN, "RESERVATION-TOKEN")?;
    reply.expect_code(400)
}

/// A server may close the connection.
fn long_stream(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let mut message = request(&[])?;
    message.splice(2..4, 0xFFFC_u16.to_be_bytes());
    probe.send(&message)
}

fn flood(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    for _ in 0..FLOOD {
        probe.send(&compose(Method::Allocate, Class::Request, &[UDP], &Signature::default())?)?;
    }
    Ok(())
}
