//! Relayed ports: EVEN-PORT, RESERVATION-TOKEN, the range (RFC 8656 section 7.2).

use std::net::SocketAddr;

use tt_turn::codec::attribute;

use super::check::{Check, Finding, Unmet, expect};
use super::judge::Judge;
use super::probe::Probe;
use super::reply::Reply;
use crate::client::Attribute;

const S: &str = "RFC 8656 section 7.2";
const EVEN: Attribute<'static> = Attribute::Bytes(attribute::EVEN_PORT, &[0]);
const EVEN_AND_NEXT: Attribute<'static> = Attribute::Bytes(attribute::EVEN_PORT, &[0x80]);
const EVEN_WITH_RESERVED_BITS: Attribute<'static> = Attribute::Bytes(attribute::EVEN_PORT, &[0x7F]);
const TOKEN_LEN: usize = 8;
const CAPACITY: u16 = 508;
/// The dynamic ports (RFC 6335 section 6).
const DYNAMIC_MIN: u16 = 49_152;
const WELL_KNOWN_MAX: u16 = 1_023;
/// Allocations whose ports are compared.
const DRAWS: usize = 5;

pub(super) const CHECKS: &[Check] = &[
    Check::must("R087", S, "EVEN-PORT yields an even port", even),
    Check::must("R115", "RFC 8656 section 18", "reserved bits of EVEN-PORT are ignored", reserved_bits),
    Check::must("R086", S, "EVEN-PORT with the R bit yields a RESERVATION-TOKEN of 8 bytes", token),
    Check::must("A50", S, "the token yields the next port, from another five-tuple", next_port),
    Check::must("A48", S, "a token that was used gets 508", used_token),
    Check::must("R076", S, "an unknown token gets 508", unknown_token),
    Check::must("R075", S, "RESERVATION-TOKEN with EVEN-PORT gets 400", token_and_even),
    Check::must("A47", S, "RESERVATION-TOKEN with REQUESTED-ADDRESS-FAMILY gets 400", token_and_family),
    Check::must("R080", S, "EVEN-PORT with the R bit and ADDITIONAL-ADDRESS-FAMILY gets 400", even_and_additional),
    Check::must("R088", S, "relayed ports are above 1023", above_well_known).should(),
    Check::must("R088", S, "relayed ports are dynamic ones, 49152 to 65535", dynamic).should(),
    Check::must("R088", S, "relayed ports do not follow each other", random).should(),
];

fn relayed(reply: &Reply) -> Result<SocketAddr, Unmet> {
    let relayed = reply.address(attribute::XOR_RELAYED_ADDRESS);
    relayed.ok_or_else(|| Unmet::failed("XOR-RELAYED-ADDRESS", "none"))
}

/// A client that has asked for an even port, and its relayed address and response.
fn allocated_even(judge: &Judge<'_>, even_port: Attribute<'_>) -> Result<(Probe, SocketAddr, Reply), Unmet> {
    let mut probe = judge.client()?;
    let reply = probe.allocate(&[even_port])?;
    reply.absent_if_unknown(attribute::EVEN_PORT, "EVEN-PORT")?;
    if reply.code() == CAPACITY {
        return Err(Unmet::absent("the server grants no EVEN-PORT: error 508"));
    }
    reply.expect_success()?;
    let relayed = relayed(&reply)?;
    Ok((probe, relayed, reply))
}

fn expect_even(relayed: SocketAddr) -> Finding {
    expect(relayed.port().is_multiple_of(2), "an even port", relayed.port().to_string())
}

fn even(judge: &Judge<'_>) -> Finding {
    expect_even(allocated_even(judge, EVEN)?.1)
}

fn reserved_bits(judge: &Judge<'_>) -> Finding {
    let (_probe, relayed, reply) = allocated_even(judge, EVEN_WITH_RESERVED_BITS)?;
    expect_even(relayed)?;
    reply.expect_no_attribute(attribute::RESERVATION_TOKEN, "RESERVATION-TOKEN")
}

/// A client with an even port, that port, and the token of the next one.
fn reserved(judge: &Judge<'_>) -> Result<(Probe, SocketAddr, Vec<u8>), Unmet> {
    let (probe, relayed, reply) = allocated_even(judge, EVEN_AND_NEXT)?;
    let token = reply.value(attribute::RESERVATION_TOKEN);
    let token = token.ok_or_else(|| Unmet::not_judged("the server sends no RESERVATION-TOKEN"))?.to_vec();
    Ok((probe, relayed, token))
}

fn token(judge: &Judge<'_>) -> Finding {
    let (_probe, relayed, reply) = allocated_even(judge, EVEN_AND_NEXT)?;
    expect_even(relayed)?;
    reply.expect_attribute(attribute::RESERVATION_TOKEN, "RESERVATION-TOKEN")?;
    let token = reply.value(attribute::RESERVATION_TOKEN).unwrap_or_default();
    expect(token.len() == TOKEN_LEN, "a token of 8 bytes", format!("{} bytes", token.len()))
}

fn claim(judge: &Judge<'_>, token: &[u8], more: &[Attribute<'_>]) -> Result<(Probe, Reply), Unmet> {
    let mut probe = judge.client()?;
    let token = Attribute::Bytes(attribute::RESERVATION_TOKEN, token);
    let reply = probe.allocate(&[&[token], more].concat())?;
    reply.absent_if_unknown(attribute::RESERVATION_TOKEN, "RESERVATION-TOKEN")?;
    Ok((probe, reply))
}

fn next_port(judge: &Judge<'_>) -> Finding {
    let (_probe, first, token) = reserved(judge)?;
    let (_other, reply) = claim(judge, &token, &[])?;
    reply.expect_success()?;
    let next = SocketAddr::new(first.ip(), first.port().wrapping_add(1));
    expect(relayed(&reply)? == next, next.to_string(), relayed(&reply)?.to_string())
}

fn used_token(judge: &Judge<'_>) -> Finding {
    let (_probe, _, token) = reserved(judge)?;
    let (_other, reply) = claim(judge, &token, &[])?;
    reply.expect_success()?;
    claim(judge, &token, &[])?.1.expect_code(CAPACITY)
}

fn unknown_token(judge: &Judge<'_>) -> Finding {
    claim(judge, b"no token", &[])?.1.expect_code(CAPACITY)
}

fn token_and_even(judge: &Judge<'_>) -> Finding {
    allocated_even(judge, EVEN).map(drop)?;
    claim(judge, b"no token", &[EVEN])?.1.expect_code(400)
}

fn token_and_family(judge: &Judge<'_>) -> Finding {
    let family = Attribute::Bytes(attribute::REQUESTED_ADDRESS_FAMILY, &[1, 0, 0, 0]);
    claim(judge, b"no token", &[family])?.1.expect_code(400)
}

fn even_and_additional(judge: &Judge<'_>) -> Finding {
    let additional = Attribute::Bytes(attribute::ADDITIONAL_ADDRESS_FAMILY, &[2, 0, 0, 0]);
    let (plain, dual) = (judge.allocated_with(&[])?, judge.client()?.allocate(&[additional])?);
    let count = |reply: &Reply| reply.addresses(attribute::XOR_RELAYED_ADDRESS).len();
    if count(&dual) == count(&plain.1) && !dual.has(attribute::ADDRESS_ERROR_CODE) && dual.is_success() {
        return Err(Unmet::absent("the server ignores ADDITIONAL-ADDRESS-FAMILY"));
    }
    drop(plain);
    allocated_even(judge, EVEN_AND_NEXT).map(drop)?;
    judge.client()?.allocate(&[EVEN_AND_NEXT, additional])?.expect_code(400)
}

/// The ports of some allocations that live at the same time.
fn ports(judge: &Judge<'_>) -> Result<Vec<u16>, Unmet> {
    let allocated: Vec<_> = (0..DRAWS).map(|_| judge.allocated()).collect::<Result<_, _>>()?;
    Ok(allocated.iter().map(|(_, relayed)| relayed.port()).collect())
}

fn above_well_known(judge: &Judge<'_>) -> Finding {
    let ports = ports(judge)?;
    expect(ports.iter().all(|port| *port > WELL_KNOWN_MAX), "ports above 1023", format!("{ports:?}"))
}

fn dynamic(judge: &Judge<'_>) -> Finding {
    let ports = ports(judge)?;
    expect(ports.iter().all(|port| *port >= DYNAMIC_MIN), "ports from 49152", format!("{ports:?}"))
}

fn random(judge: &Judge<'_>) -> Finding {
    let ports = ports(judge)?;
    let is_series = ports.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) <= 2);
    expect(!is_series, "ports that cannot be guessed", format!("{ports:?}"))
}
