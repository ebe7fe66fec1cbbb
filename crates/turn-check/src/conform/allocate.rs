//! Allocate: checks, attributes and lifetimes (RFC 8656 section 7.2).

use std::net::SocketAddr;

use tt_turn::codec::{Class, Method, attribute};

use super::check::{Check, Finding, Needs, Over, Unmet, expect};
use super::judge::Judge;
use super::probe::{Probe, UDP};
use super::signature::compose;
use crate::client::Attribute;

const S: &str = "RFC 8656 section 7.2";
const S5: &str = "RFC 8656 section 5";

pub(super) const CHECKS: &[Check] = &[
    Check::must("R066", S5, "relays of UDP are served", granted),
    Check::must("R090", S, "a success response has XOR-RELAYED-ADDRESS", has_relayed),
    Check::must("R090", S, "a success response has LIFETIME", has_lifetime),
    Check::must("R090", S, "a success response has XOR-MAPPED-ADDRESS of the client", has_mapped),
    Check::must("R069", "RFC 8656 section 6", "two allocations have two relayed addresses", unique),
    Check::must("R071", S, "a new Allocate on a five-tuple with an allocation gets 437", second),
    Check::must("R091", S, "a granted Allocate that comes again is granted with the same address", retransmitted)
        .over(Over::Udp),
    Check::must("A55", S, "a granted Allocate that comes again makes no second allocation", one_allocation)
        .over(Over::Udp),
    Check::must("R072", S, "REQUESTED-TRANSPORT missing gets 400", no_transport),
    Check::must("R073", S, "a transport that is not served gets 442", sctp),
    Check::must("R115", "RFC 8656 section 18", "reserved bytes of REQUESTED-TRANSPORT are ignored", reserved_bytes),
    Check::must("R074", S, "DONT-FRAGMENT is granted, or gets 420 that lists it", dont_fragment),
    Check::must("R089", S, "a lifetime below the default becomes the default", short_lifetime),
    Check::must("A53", S, "a lifetime of zero becomes the default", zero_lifetime),
    Check::must("A53", S, "the longest lifetime becomes the maximum", long_lifetime),
    Check::must("R089", S, "a lifetime between default and maximum is granted", middle_lifetime),
    Check::must("R068", S5, "another user's Refresh of a live allocation gets 441", other_user).needs(Needs::TwoLogins),
    Check::must("A40", S, "another user's Allocate on a live five-tuple gets 437", other_allocate)
        .needs(Needs::TwoLogins),
];

fn granted(judge: &Judge<'_>) -> Finding {
    judge.allocated_with(&[]).map(drop)
}

fn has_relayed(judge: &Judge<'_>) -> Finding {
    let (_, reply) = judge.allocated_with(&[])?;
    let text = "an XOR-RELAYED-ADDRESS that can be read";
    expect(reply.address(attribute::XOR_RELAYED_ADDRESS).is_some_and(|relayed| relayed.port() != 0), text, "none")
}

fn has_lifetime(judge: &Judge<'_>) -> Finding {
    let lifetime_s = judge.allocated_with(&[])?.1.lifetime_s();
    expect(lifetime_s.is_some_and(|s| s > 0), "a LIFETIME above zero", format!("{lifetime_s:?}"))
}

fn has_mapped(judge: &Judge<'_>) -> Finding {
    let (mut probe, reply) = judge.allocated_with(&[])?;
    let mapped = reply.address(attribute::XOR_MAPPED_ADDRESS);
    let bound = probe.binding()?.address(attribute::XOR_MAPPED_ADDRESS);
    expect(mapped.is_some() && mapped == bound, format!("{bound:?}, as in a Binding"), format!("{mapped:?}"))
}

fn unique(judge: &Judge<'_>) -> Finding {
    let ((_one, one_addr), (_other, other_addr)) = (judge.allocated()?, judge.allocated()?);
    expect(one_addr != other_addr, "two addresses", format!("{one_addr} twice"))
}

fn second(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    probe.allocate(&[])?.expect_code(437)
}

/// An Allocate that was sent twice with the same transaction id, and both responses.
fn twice(judge: &Judge<'_>) -> Result<(Probe, [Option<SocketAddr>; 2]), Unmet> {
    let mut probe = judge.client()?;
    let message = compose(Method::Allocate, Class::Request, &[UDP], &probe.signature())?;
    let first = probe.allocate_with(&message)?;
    first.expect_success()?;
    let again = probe.allocate_with(&message)?;
    again.expect_success()?;
    Ok((probe, [first, again].map(|reply| reply.address(attribute::XOR_RELAYED_ADDRESS))))
}

fn retransmitted(judge: &Judge<'_>) -> Finding {
    let (_probe, relayed) = twice(judge)?;
    expect(relayed[0].is_some() && relayed[0] == relayed[1], "one relayed address", format!("{relayed:?}"))
}

fn one_allocation(judge: &Judge<'_>) -> Finding {
    let (mut single, _) = judge.allocated()?;
    single.end()?.expect_success()?;
    let gone = single.expect_no_allocation();
    gone.map_err(|_| Unmet::not_judged("an ended allocation lives on: R093"))?;
    let (mut probe, _) = twice(judge)?;
    probe.end()?.expect_success()?;
    probe.expect_no_allocation()
}

fn no_transport(judge: &Judge<'_>) -> Finding {
    judge.client()?.request(Method::Allocate, &[])?.expect_code(400)
}

fn sctp(judge: &Judge<'_>) -> Finding {
    let sctp = Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &[132, 0, 0, 0]);
    judge.client()?.request(Method::Allocate, &[sctp])?.expect_code(442)
}

fn reserved_bytes(judge: &Judge<'_>) -> Finding {
    let transport = Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &[17, 0xAA, 0xBB, 0xCC]);
    judge.client()?.request(Method::Allocate, &[transport])?.expect_success()
}

fn dont_fragment(judge: &Judge<'_>) -> Finding {
    let reply = judge.client()?.allocate(&[Attribute::Bytes(attribute::DONT_FRAGMENT, &[])])?;
    reply.absent_if_unknown(attribute::DONT_FRAGMENT, "DONT-FRAGMENT")?;
    reply.expect_success()
}

/// The lifetime that the server grants for one that is asked for, and without one.
fn lifetimes(judge: &Judge<'_>, asked_s: u32) -> Result<(u32, u32), Unmet> {
    let granted = |more: &[Attribute<'_>]| {
        let lifetime_s = judge.allocated_with(more)?.1.lifetime_s();
        lifetime_s.ok_or_else(|| Unmet::not_judged("a success response without LIFETIME"))
    };
    let asked = asked_s.to_be_bytes();
    Ok((granted(&[])?, granted(&[Attribute::Bytes(attribute::LIFETIME, &asked)])?))
}

fn short_lifetime(judge: &Judge<'_>) -> Finding {
    let (default_s, granted_s) = lifetimes(judge, 1)?;
    expect(granted_s == default_s, format!("{default_s} s, as without LIFETIME"), format!("{granted_s} s"))
}

fn zero_lifetime(judge: &Judge<'_>) -> Finding {
    let (default_s, granted_s) = lifetimes(judge, 0)?;
    expect(granted_s == default_s, format!("{default_s} s, as without LIFETIME"), format!("{granted_s} s"))
}

fn long_lifetime(judge: &Judge<'_>) -> Finding {
    let (default_s, granted_s) = lifetimes(judge, u32::MAX)?;
    let is_met = granted_s >= default_s && granted_s < u32::MAX;
    expect(is_met, format!("at least {default_s} s, and a maximum"), format!("{granted_s} s"))
}

fn middle_lifetime(judge: &Judge<'_>) -> Finding {
    let (default_s, maximum_s) = lifetimes(judge, u32::MAX)?;
    if maximum_s <= default_s + 1 {
        return Err(Unmet::not_judged(format!("default and maximum are {default_s} and {maximum_s} s")));
    }
    let asked_s = default_s + 1;
    let (_, granted_s) = lifetimes(judge, asked_s)?;
    expect(granted_s == asked_s, format!("{asked_s} s"), format!("{granted_s} s"))
}

fn other_user(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let owner = probe.replace_login(judge.other_login()?);
    let reply = probe.request(Method::Refresh, &[]);
    probe.replace_login(owner);
    reply?.expect_code(441)?;
    probe.expect_allocation()
}

fn other_allocate(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let owner = probe.replace_login(judge.other_login()?);
    let reply = probe.allocate(&[]);
    probe.replace_login(owner);
    reply?.expect_code(437)
}
