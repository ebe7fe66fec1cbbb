//! Error responses: 420, ERROR-CODE, UNKNOWN-ATTRIBUTES (RFC 8489 sections 6.3.1 and 14).

use tt_turn::codec::{Class, Method, attribute};

use super::binding::expect_zero_padding;
use super::check::{Check, Finding, Needs, Unmet, expect};
use super::judge::Judge;
use super::probe::UDP;
use super::reply::Reply;
use super::signature::compose;
use crate::client::Attribute;

/// Attributes of the required half that no RFC defines.
const UNKNOWN_REQUIRED: [u16; 3] = [0x7F01, 0x7F02, 0x7F03];
const UNKNOWN_ATTRIBUTE: u16 = 420;
/// Phrase, realm and nonce have fewer characters (RFC 8489 sections 14.8 to 14.10), of at most four bytes.
const CHARACTERS_MAX: usize = 127;

pub(super) const CHECKS: &[Check] = &[
    Check::must("R009", "RFC 8489 section 6.3.1", "unknown required attributes of a Binding get 420", unknown_required)
        .needs(Needs::Nothing),
    Check::must("R037", "RFC 8489 section 14.13", "420 lists all unknown attributes, two bytes each", unknown_list)
        .needs(Needs::Nothing),
    Check::must("R010", "RFC 8489 section 6.3", "credentials are checked before unknown attributes", order)
        .needs(Needs::Nothing),
    Check::must("A10", "RFC 8489 section 6.3.1", "an unknown required attribute of a signed request gets 420", signed),
    Check::must("R012", "RFC 8489 section 6.3.1.1", "an error response has ERROR-CODE", error_code)
        .needs(Needs::Nothing),
    Check::must("R032", "RFC 8489 section 14.8", "ERROR-CODE has class, number and a short phrase", error_form)
        .needs(Needs::Nothing),
    Check::must("A19", "RFC 8489 section 14", "padding of responses is zero", padding_out).needs(Needs::Nothing),
    Check::must("R033", "RFC 8489 section 14.9", "REALM has fewer than 128 characters", realm).needs(Needs::Nothing),
    Check::must("R034", "RFC 8489 section 14.10", "NONCE has fewer than 128 characters", nonce).needs(Needs::Nothing),
];

fn unknown() -> [Attribute<'static>; 3] {
    UNKNOWN_REQUIRED.map(|kind| Attribute::Bytes(kind, b"abc"))
}

fn unknown_required(judge: &Judge<'_>) -> Finding {
    judge.stranger()?.ask(Method::Binding, &unknown())?.expect_code(UNKNOWN_ATTRIBUTE)
}

fn unknown_list(judge: &Judge<'_>) -> Finding {
    let reply = judge.stranger()?.ask(Method::Binding, &unknown())?;
    if reply.code() != UNKNOWN_ATTRIBUTE {
        return Err(Unmet::not_judged(format!("{} and no error 420", reply.text())));
    }
    expect_list(&reply, &UNKNOWN_REQUIRED)
}

fn expect_list(reply: &Reply, kinds: &[u16]) -> Finding {
    let listed = reply.value(attribute::UNKNOWN_ATTRIBUTES).unwrap_or_default();
    let found: Vec<u16> = listed.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    // RFC 3489 repeated an attribute to fill four bytes; RFC 8489 pads.
    expect(found == kinds, format!("UNKNOWN-ATTRIBUTES of {kinds:04x?}"), format!("{found:04x?}"))
}

fn order(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let [first, ..] = unknown();
    probe.ask(Method::Allocate, &[UDP, first])?.expect_code(401)
}

fn signed(judge: &Judge<'_>) -> Finding {
    let [first, ..] = unknown();
    let mut probe = judge.client()?;
    let reply = probe.allocate(&[first])?;
    reply.expect_code(UNKNOWN_ATTRIBUTE)?;
    expect_list(&reply, &UNKNOWN_REQUIRED[..1])
}

/// The first error response of a server: that to an Allocate without a credential.
fn unauthenticated(judge: &Judge<'_>) -> Result<Reply, Unmet> {
    let mut probe = judge.stranger()?;
    let reply = probe.exchange(&compose(Method::Allocate, Class::Request, &[UDP], &Default::default())?)?;
    match reply.is_error() {
        true => Ok(reply),
        false => Err(Unmet::not_judged(format!("{} to an Allocate without a credential", reply.text()))),
    }
}

fn error_code(judge: &Judge<'_>) -> Finding {
    unauthenticated(judge)?.expect_attribute(attribute::ERROR_CODE, "ERROR-CODE")
}

fn error_form(judge: &Judge<'_>) -> Finding {
    let reply = unauthenticated(judge)?;
    let value = reply.value(attribute::ERROR_CODE).unwrap_or_default();
    let is_met = match value {
        [0, 0, class @ 3..=6, 0..=99, phrase @ ..] => *class <= 6 && characters(phrase) <= CHARACTERS_MAX,
        [..] => false,
    };
    expect(is_met, "two zero bytes, class 3 to 6, number 0 to 99, fewer than 128 characters", format!("{value:02x?}"))
}

fn padding_out(judge: &Judge<'_>) -> Finding {
    expect_zero_padding(&unauthenticated(judge)?)?;
    let reply = judge.stranger()?.ask(Method::Binding, &unknown())?;
    expect_zero_padding(&reply)
}

fn realm(judge: &Judge<'_>) -> Finding {
    short(judge, attribute::REALM)
}

fn nonce(judge: &Judge<'_>) -> Finding {
    short(judge, attribute::NONCE)
}

fn short(judge: &Judge<'_>, kind: u16) -> Finding {
    let reply = unauthenticated(judge)?;
    let Some(value) = reply.value(kind) else {
        return Err(Unmet::not_judged(format!("{} without the attribute", reply.text())));
    };
    let count = characters(value);
    expect(count <= CHARACTERS_MAX, "fewer than 128 characters", format!("{count}"))
}

/// The number of characters of UTF-8 text; bytes where it is none.
fn characters(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).map_or(bytes.len(), |text| text.chars().count())
}
