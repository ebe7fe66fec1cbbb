//! Permissions (RFC 8656 sections 9 and 10).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tt_turn::codec::{Method, attribute};

use super::check::{Check, Finding, Unmet, expect};
use super::judge::{Judge, LOST_AFTER};
use super::peer::Peer;
use crate::client::Attribute;

const S9: &str = "RFC 8656 section 9";
const S: &str = "RFC 8656 section 10.2";
const FORBIDDEN: u16 = 403;
/// Peers that no relay should reach, whatever its operator allows. Nothing is sent to them.
const CLOSED: [Ipv4Addr; 3] = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(224, 0, 0, 1), Ipv4Addr::BROADCAST];
/// Private networks, and the metadata service of clouds. Nothing is sent to them.
const PRIVATE: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 255, 255, 254), Ipv4Addr::new(192, 168, 255, 254), Ipv4Addr::new(169, 254, 169, 254)];

pub(super) const CHECKS: &[Check] = &[
    Check::must("R099", S, "CreatePermission without a peer gets 400", no_peer),
    Check::must("R101", S, "a peer that the policy denies gets 403", denied),
    Check::must("A63", S, "an unspecified, multicast or broadcast peer gets 403", closed).should(),
    Check::must("A63", S, "a private peer gets 403", private).should(),
    Check::must("A63", S, "a private peer in the form of IPv4-mapped IPv6 is not accepted", mapped),
    Check::must("A61", S, "a good peer next to one of another family is not permitted", all_or_nothing),
    Check::must("R104", "RFC 8656 section 11.2", "a Send without a permission is dropped", send_without),
    Check::must("R098", S9, "data of a peer without a permission are dropped", receive_without),
    Check::must("R097", S9, "a permission is for an address, whatever the port", any_port),
    Check::must("R098", S9, "a permission ends with its allocation", ends_with_allocation),
    Check::must("R097", S9, "a permission may be for several peers at once", two_peers),
];

fn no_peer(judge: &Judge<'_>) -> Finding {
    judge.allocated()?.0.request(Method::CreatePermission, &[])?.expect_code(400)
}

fn expect_denied(judge: &Judge<'_>, peers: &[Ipv4Addr]) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    for ip in peers {
        let reply = probe.permit(SocketAddr::from((*ip, 9)))?;
        expect(reply.code() == FORBIDDEN, format!("error 403 for {ip}"), reply.text())?;
    }
    Ok(())
}

/// Any peer of the list that is denied shows the code.
fn denied(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    for ip in CLOSED.iter().chain(&PRIVATE) {
        let reply = probe.permit(SocketAddr::from((*ip, 9)))?;
        if !reply.is_success() {
            return reply.expect_code(FORBIDDEN);
        }
    }
    Err(Unmet::not_judged("the server denies none of the peers that were tried"))
}

fn closed(judge: &Judge<'_>) -> Finding {
    expect_denied(judge, &CLOSED)
}

fn private(judge: &Judge<'_>) -> Finding {
    expect_denied(judge, &PRIVATE)
}

fn mapped(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    for ip in PRIVATE {
        let mapped: Ipv6Addr = ip.to_ipv6_mapped();
        let reply = probe.permit(SocketAddr::from((mapped, 9)))?;
        expect(reply.is_error(), format!("an error response for {mapped}"), reply.text())?;
    }
    Ok(())
}

fn all_or_nothing(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = judge.relaying()?;
    if relayed.is_ipv6() {
        return Err(Unmet::not_judged("the server relays over IPv6 by default"));
    }
    let other = SocketAddr::from((Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111), 9));
    let peers = [peer.addr(), other].map(|addr| Attribute::Address(attribute::XOR_PEER_ADDRESS, addr));
    let reply = probe.request(Method::CreatePermission, &peers)?;
    expect(reply.is_error(), "an error response", reply.text())?;
    probe.send_to_peer(peer.addr(), b"not permitted")?;
    expect_nothing(&mut peer)
}

fn expect_nothing(peer: &mut Peer) -> Finding {
    let arrived = peer.receive(LOST_AFTER)?.is_some();
    expect(!arrived, "nothing is relayed to the peer", "a datagram reached it")
}

fn send_without(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = judge.relaying()?;
    probe.send_to_peer(peer.addr(), b"not permitted")?;
    expect_nothing(&mut peer)
}

fn receive_without(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = judge.relaying()?;
    peer.send(relayed, b"not permitted")?;
    let data = probe.data(LOST_AFTER)?;
    expect(data.is_none(), "nothing is relayed to the client", "the data of the peer")
}

fn any_port(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = judge.relaying()?;
    let mut elsewhere = peer.addr();
    elsewhere.set_port(if elsewhere.port() == 9 { 10 } else { 9 });
    let reply = probe.permit(elsewhere)?;
    if reply.code() == FORBIDDEN {
        return Err(Unmet::not_judged("the policy denies other ports of the peer"));
    }
    reply.expect_success()?;
    expect_relayed(&mut probe, &mut peer)
}

/// Sends some datagrams to a peer; one must arrive.
fn expect_relayed(probe: &mut super::probe::Probe, peer: &mut Peer) -> Finding {
    for trial in 0..3_u8 {
        probe.send_to_peer(peer.addr(), &[trial])?;
        if peer.receive(LOST_AFTER)?.is_some() {
            return Ok(());
        }
    }
    Err(Unmet::failed("the data reach the peer", "nothing in three attempts"))
}

fn ends_with_allocation(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = judge.relaying()?;
    probe.permit(peer.addr())?.expect_success()?;
    expect_relayed(&mut probe, &mut peer)?;
    probe.end()?.expect_success()?;
    let reply = probe.allocate(&[])?;
    if !reply.is_success() {
        return Err(Unmet::not_judged(format!("{} to an Allocate on the same five-tuple", reply.text())));
    }
    probe.send_to_peer(peer.addr(), b"permitted before")?;
    expect_nothing(&mut peer)
}

fn two_peers(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = judge.relaying()?;
    let peers = [relayed, peer.addr()].map(|addr| Attribute::Address(attribute::XOR_PEER_ADDRESS, addr));
    let reply = probe.request(Method::CreatePermission, &peers)?;
    if reply.code() == FORBIDDEN {
        return Err(Unmet::not_judged("the policy denies the relayed address as a peer"));
    }
    reply.expect_success()?;
    expect_relayed(&mut probe, &mut peer)
}
