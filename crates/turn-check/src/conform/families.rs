//! Address families of allocations (RFC 8656 sections 7.2 and 8).

use std::net::{Ipv6Addr, SocketAddr};

use tt_turn::codec::{Method, attribute};

use super::check::{Check, Finding, Unmet, expect};
use super::judge::Judge;
use super::probe::Probe;
use super::reply::Reply;
use crate::client::Attribute;

const S: &str = "RFC 8656 section 7.2";
const IPV4: [u8; 4] = [1, 0, 0, 0];
const IPV6: [u8; 4] = [2, 0, 0, 0];
const UNSUPPORTED_FAMILY: u16 = 440;
const CAPACITY: u16 = 508;
const MISMATCH: u16 = 443;

pub(super) const CHECKS: &[Check] = &[
    Check::must("R079", S, "no family means an IPv4 relayed address", no_family),
    Check::must("R078", S, "family IPv4 means an IPv4 relayed address", ipv4),
    Check::must("R078", S, "family IPv6 means an IPv6 relayed address, or 440", ipv6),
    Check::must("A45", S, "an unknown family gets 440", unknown_family),
    Check::must("R077", S, "both family attributes in one request get 400", both),
    Check::must("R082", S, "ADDITIONAL-ADDRESS-FAMILY for IPv4 gets 400", additional_ipv4),
    Check::must("R084", S, "an allocation of two families has two relayed addresses", dual),
    Check::must("R083", S, "a family that cannot be had is named in ADDRESS-ERROR-CODE", partial),
    Check::must(
        "R092",
        "RFC 8656 section 8.2",
        "a Refresh for a family that the allocation lacks gets 443",
        refresh_other,
    ),
    Check::must("R094", "RFC 8656 section 8.1", "a Refresh to zero for one family leaves the other alone", refresh_one),
    Check::must(
        "R100",
        "RFC 8656 section 10.2",
        "a permission for an IPv6 peer of an IPv4 allocation gets 443",
        permission,
    ),
    Check::must("R110", "RFC 8656 section 12.2", "a channel to an IPv6 peer of an IPv4 allocation gets 443", channel),
    Check::must("R116", "RFC 8656 section 21.4", "a Teredo or 6to4 peer is not accepted", transition),
];

fn requested(family: &[u8; 4]) -> Attribute<'_> {
    Attribute::Bytes(attribute::REQUESTED_ADDRESS_FAMILY, family)
}

fn additional(family: &[u8; 4]) -> Attribute<'_> {
    Attribute::Bytes(attribute::ADDITIONAL_ADDRESS_FAMILY, family)
}

fn relayed(reply: &Reply) -> Result<SocketAddr, Unmet> {
    reply.expect_success()?;
    let relayed = reply.address(attribute::XOR_RELAYED_ADDRESS);
    relayed.ok_or_else(|| Unmet::failed("XOR-RELAYED-ADDRESS", "none"))
}

fn no_family(judge: &Judge<'_>) -> Finding {
    let reply = judge.client()?.allocate(&[])?;
    if reply.code() == UNSUPPORTED_FAMILY {
        return Err(Unmet::absent("the server has no IPv4 relayed addresses"));
    }
    let relayed = relayed(&reply)?;
    expect(relayed.is_ipv4(), "an IPv4 relayed address", relayed.to_string())
}

fn ipv4(judge: &Judge<'_>) -> Finding {
    let reply = judge.client()?.allocate(&[requested(&IPV4)])?;
    reply.absent_if_unknown(attribute::REQUESTED_ADDRESS_FAMILY, "REQUESTED-ADDRESS-FAMILY")?;
    if reply.code() == UNSUPPORTED_FAMILY {
        return Err(Unmet::absent("the server has no IPv4 relayed addresses"));
    }
    let relayed = relayed(&reply)?;
    expect(relayed.is_ipv4(), "an IPv4 relayed address", relayed.to_string())
}

/// A client with an IPv6 allocation.
fn allocated_ipv6(judge: &Judge<'_>) -> Result<(Probe, SocketAddr), Unmet> {
    let mut probe = judge.client()?;
    let reply = probe.allocate(&[requested(&IPV6)])?;
    reply.absent_if_unknown(attribute::REQUESTED_ADDRESS_FAMILY, "REQUESTED-ADDRESS-FAMILY")?;
    if reply.code() == UNSUPPORTED_FAMILY {
        return Err(Unmet::absent("the server has no IPv6 relayed addresses: error 440"));
    }
    let relayed = relayed(&reply)?;
    Ok((probe, relayed))
}

fn ipv6(judge: &Judge<'_>) -> Finding {
    let (_probe, relayed) = allocated_ipv6(judge)?;
    expect(relayed.is_ipv6(), "an IPv6 relayed address", relayed.to_string())
}

fn unknown_family(judge: &Judge<'_>) -> Finding {
    let reply = judge.client()?.allocate(&[requested(&[3, 0, 0, 0])])?;
    reply.absent_if_unknown(attribute::REQUESTED_ADDRESS_FAMILY, "REQUESTED-ADDRESS-FAMILY")?;
    reply.expect_code(UNSUPPORTED_FAMILY)
}

fn both(judge: &Judge<'_>) -> Finding {
    expect_bad_request(judge, &[requested(&IPV4), additional(&IPV6)])
}

fn additional_ipv4(judge: &Judge<'_>) -> Finding {
    expect_bad_request(judge, &[additional(&IPV4)])
}

/// A server that does not know ADDITIONAL-ADDRESS-FAMILY, which is of the optional half, ignores it.
fn expect_bad_request(judge: &Judge<'_>, attributes: &[Attribute<'_>]) -> Finding {
    let (_, reply) = dual_reply(judge)?;
    if !is_dual(&reply) {
        return Err(Unmet::absent("the server ignores ADDITIONAL-ADDRESS-FAMILY"));
    }
    judge.client()?.allocate(attributes)?.expect_code(400)
}

fn dual_reply(judge: &Judge<'_>) -> Result<(Probe, Reply), Unmet> {
    let mut probe = judge.client()?;
    let reply = probe.allocate(&[additional(&IPV6)])?;
    Ok((probe, reply))
}

/// Whether the response shows that the server knows ADDITIONAL-ADDRESS-FAMILY.
fn is_dual(reply: &Reply) -> bool {
    reply.addresses(attribute::XOR_RELAYED_ADDRESS).len() == 2
        || reply.has(attribute::ADDRESS_ERROR_CODE)
        || reply.code() == CAPACITY
}

fn dual(judge: &Judge<'_>) -> Finding {
    let (_probe, reply) = dual_reply(judge)?;
    let relayed = reply.addresses(attribute::XOR_RELAYED_ADDRESS);
    if relayed.len() < 2 {
        return Err(Unmet::absent(format!("{} with {} relayed address", reply.text(), relayed.len())));
    }
    let is_met = relayed.len() == 2 && relayed[0].is_ipv4() != relayed[1].is_ipv4();
    expect(is_met, "an IPv4 and an IPv6 relayed address", format!("{relayed:?}"))
}

fn partial(judge: &Judge<'_>) -> Finding {
    let (_probe, reply) = dual_reply(judge)?;
    let relayed = reply.addresses(attribute::XOR_RELAYED_ADDRESS);
    if relayed.len() == 2 {
        return Err(Unmet::not_judged("the server has both families"));
    }
    let Some(value) = reply.value(attribute::ADDRESS_ERROR_CODE) else {
        return Err(Unmet::absent(format!("{} without ADDRESS-ERROR-CODE", reply.text())));
    };
    let is_met = matches!(value, [2, _, class, number, ..] if matches!((class & 7, number), (4, 40) | (5, 8)));
    expect(is_met, "family 2 with error 440 or 508", format!("{value:02x?}"))
}

fn refresh_other(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed) = judge.allocated()?;
    let other = if relayed.is_ipv4() { IPV6 } else { IPV4 };
    let reply = probe.request(Method::Refresh, &[requested(&other)])?;
    reply.absent_if_unknown(attribute::REQUESTED_ADDRESS_FAMILY, "REQUESTED-ADDRESS-FAMILY")?;
    reply.expect_code(MISMATCH)
}

fn refresh_one(judge: &Judge<'_>) -> Finding {
    let (mut probe, reply) = dual_reply(judge)?;
    if reply.addresses(attribute::XOR_RELAYED_ADDRESS).len() != 2 {
        return Err(Unmet::absent("the server grants no allocation of two families"));
    }
    let zero = Attribute::Bytes(attribute::LIFETIME, &[0; 4]);
    probe.request(Method::Refresh, &[requested(&IPV6), zero])?.expect_success()?;
    probe.request(Method::Refresh, &[requested(&IPV6)])?.expect_code(MISMATCH)?;
    probe.request(Method::Refresh, &[requested(&IPV4)])?.expect_success()
}

/// A global IPv6 address of a public resolver. Nothing is sent to it.
const GLOBAL_IPV6: Ipv6Addr = Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111);

fn permission(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed) = judge.allocated()?;
    expect_ipv4_allocation(relayed)?;
    probe.permit(SocketAddr::from((GLOBAL_IPV6, 9)))?.expect_code(MISMATCH)
}

fn channel(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed) = judge.allocated()?;
    expect_ipv4_allocation(relayed)?;
    probe.bind(0x4000, SocketAddr::from((GLOBAL_IPV6, 9)))?.expect_code(MISMATCH)
}

fn expect_ipv4_allocation(relayed: SocketAddr) -> Finding {
    match relayed {
        SocketAddr::V4(_) => Ok(()),
        SocketAddr::V6(_) => Err(Unmet::not_judged("the server relays over IPv6 by default")),
    }
}

fn transition(judge: &Judge<'_>) -> Finding {
    let allocated = allocated_ipv6(judge);
    let (mut probe, _) = allocated.map_err(|_| Unmet::absent("the server grants no IPv6 relayed address"))?;
    let (teredo, six_to_four) =
        (Ipv6Addr::new(0x2001, 0, 1, 2, 3, 4, 5, 6), Ipv6Addr::new(0x2002, 0x808, 0x808, 0, 0, 0, 0, 1));
    for peer in [teredo, six_to_four] {
        let reply = probe.permit(SocketAddr::from((peer, 9)))?;
        expect(reply.is_error(), format!("an error response for {peer}"), reply.text())?;
    }
    Ok(())
}
