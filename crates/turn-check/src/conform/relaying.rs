//! Send and Data indications, ICMP (RFC 8656 section 11).

use std::net::SocketAddr;

use tt_turn::codec::attribute;

use super::check::{Check, Finding, Unmet, expect};
use super::judge::{Judge, LOST_AFTER};
use super::peer::Peer;
use super::probe::{Delivery, Probe, payload_text};
use crate::client::Attribute;

const S: &str = "RFC 8656 section 11.2";
const ATTEMPTS: usize = 3;
/// A payload that fits into any datagram on the way.
const LARGE: usize = 1_200;

pub(super) const CHECKS: &[Check] = &[
    Check::must("R105", S, "a Send reaches a permitted peer from the relayed address", to_peer),
    Check::must("R106", "RFC 8656 section 11.3", "data of a permitted peer come as a Data indication", from_peer),
    Check::must("R106", "RFC 8656 section 11.3", "a Data indication has the peer's address", peer_address),
    Check::must("R103", S, "a Send without DATA is dropped", no_data),
    Check::must("R103", S, "a Send without a peer is dropped", no_peer),
    Check::must("A68", S, "a Send with empty DATA becomes an empty datagram", empty),
    Check::must("A11", "RFC 8489 section 14", "of two peers in a Send the first counts", first_peer),
    Check::must("A73", "RFC 8656 section 11.3", "a payload of 1,200 bytes arrives whole both ways", large),
    Check::must(
        "R007",
        "RFC 8489 section 6.3",
        "a Send with an unknown attribute of the optional half is relayed",
        optional,
    ),
    Check::must("A56", S, "a Send with an unknown required attribute is dropped", unknown_required),
    Check::must("A75", "RFC 8656 section 21.1.7", "two allocations reach each other", hairpin).should(),
    Check::must("R107", "RFC 8656 section 11.5", "a closed port of a permitted peer is reported with ICMP", icmp),
];

/// A client with a permission for a peer.
fn permitted(judge: &Judge<'_>) -> Result<(Probe, SocketAddr, Peer), Unmet> {
    let (mut probe, relayed, peer) = judge.relaying()?;
    probe.permit(peer.addr())?.expect_success()?;
    Ok((probe, relayed, peer))
}

/// Sends an indication until it reaches the peer.
fn sent(probe: &mut Probe, peer: &mut Peer, attributes: &[Attribute<'_>]) -> Result<(SocketAddr, Vec<u8>), Unmet> {
    for _ in 0..ATTEMPTS {
        probe.indicate(attributes)?;
        if let Some(received) = peer.receive(LOST_AFTER)? {
            return Ok(received);
        }
    }
    Err(Unmet::failed("the data reach the peer", "nothing in three attempts"))
}

fn peer_attribute(addr: SocketAddr) -> Attribute<'static> {
    Attribute::Address(attribute::XOR_PEER_ADDRESS, addr)
}

fn data(payload: &[u8]) -> Attribute<'_> {
    Attribute::Bytes(attribute::DATA, payload)
}

fn to_peer(judge: &Judge<'_>) -> Finding {
    judge.peer_kind()?;
    let (mut probe, relayed, mut peer) = permitted(judge)?;
    let to = peer_attribute(peer.addr());
    let (from, payload) = sent(&mut probe, &mut peer, &[to, data(b"to the peer")])?;
    expect(from == relayed, format!("a datagram from {relayed}"), format!("one from {from}"))?;
    expect(payload == b"to the peer", "the payload", payload_text(Some(&payload)))
}

fn received(probe: &mut Probe, relayed: SocketAddr, peer: &mut Peer, payload: &[u8]) -> Result<Delivery, Unmet> {
    for _ in 0..ATTEMPTS {
        peer.send(relayed, payload)?;
        if let Some(data) = probe.data(LOST_AFTER)? {
            return Ok(data);
        }
    }
    Err(Unmet::failed("the data of the peer", "nothing in three attempts"))
}

fn from_peer(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = permitted(judge)?;
    let data = received(&mut probe, relayed, &mut peer, b"from the peer")?;
    let is_met = matches!(&data, Delivery::Indication { payload: Some(payload), .. } if payload == b"from the peer");
    expect(is_met, "a Data indication with the payload", data.to_string())
}

fn peer_address(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = permitted(judge)?;
    let data = received(&mut probe, relayed, &mut peer, b"from the peer")?;
    let is_met = matches!(&data, Delivery::Indication { peer: Some(from), .. } if *from == peer.addr());
    expect(is_met, format!("XOR-PEER-ADDRESS {}", peer.addr()), data.to_string())
}

/// Passes if nothing of an indication reaches the peer and the allocation lives.
fn expect_dropped(judge: &Judge<'_>, attributes: fn(SocketAddr) -> Vec<Attribute<'static>>) -> Finding {
    let (mut probe, _, mut peer) = permitted(judge)?;
    probe.indicate(&attributes(peer.addr()))?;
    let arrived = peer.receive(LOST_AFTER)?.is_some();
    expect(!arrived, "nothing is relayed", "a datagram reached the peer")?;
    probe.expect_allocation()
}

fn no_data(judge: &Judge<'_>) -> Finding {
    expect_dropped(judge, |addr| vec![peer_attribute(addr)])
}

fn no_peer(judge: &Judge<'_>) -> Finding {
    expect_dropped(judge, |_| vec![data(b"to no peer")])
}

fn unknown_required(judge: &Judge<'_>) -> Finding {
    expect_dropped(judge, |addr| vec![peer_attribute(addr), data(b"payload"), Attribute::Bytes(0x7F01, b"abcd")])
}

fn empty(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = permitted(judge)?;
    let to = peer_attribute(peer.addr());
    let (_, payload) = sent(&mut probe, &mut peer, &[to, data(b"")])?;
    expect(payload.is_empty(), "an empty datagram", format!("{} bytes", payload.len()))
}

/// The second peer has no permission.
fn first_peer(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = permitted(judge)?;
    let attributes = [peer_attribute(peer.addr()), peer_attribute(([192, 0, 2, 1], 9).into()), data(b"payload")];
    sent(&mut probe, &mut peer, &attributes).map(drop)
}

fn large(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = permitted(judge)?;
    let payload: Vec<u8> = (0..LARGE).map(|index| index.to_le_bytes()[0]).collect();
    let to = peer_attribute(peer.addr());
    let (_, arrived) = sent(&mut probe, &mut peer, &[to, data(&payload)])?;
    expect(arrived == payload, "1,200 bytes at the peer", format!("{} bytes, or others", arrived.len()))?;
    match received(&mut probe, relayed, &mut peer, &payload)? {
        Delivery::Indication { payload: Some(arrived), .. } if arrived == payload => Ok(()),
        other @ (Delivery::Indication { .. } | Delivery::Channel { .. }) => {
            Err(Unmet::failed("1,200 bytes at the client", other.to_string()))
        }
    }
}

fn optional(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = permitted(judge)?;
    let attributes = [Attribute::Bytes(0xC0DE, b"abc"), peer_attribute(peer.addr()), data(b"payload")];
    sent(&mut probe, &mut peer, &attributes).map(drop)
}

/// Both ends are relayed addresses of the server.
fn hairpin(judge: &Judge<'_>) -> Finding {
    let (mut one, one_addr) = judge.allocated()?;
    let (mut other, other_addr) = judge.allocated()?;
    for (probe, peer) in [(&mut one, other_addr), (&mut other, one_addr)] {
        let reply = probe.permit(peer)?;
        if !reply.is_success() {
            return Err(Unmet::absent(format!("{} for a relayed address of the server as peer", reply.text())));
        }
    }
    for _ in 0..ATTEMPTS {
        one.send_to_peer(other_addr, b"through both")?;
        if let Some(data) = other.data(LOST_AFTER)? {
            let is_met = matches!(&data, Delivery::Indication { peer: Some(from), .. } if *from == one_addr);
            return expect(is_met, format!("a Data indication from {one_addr}"), data.to_string());
        }
    }
    Err(Unmet::failed("the data reach the other client", "nothing in three attempts"))
}

/// The peer is a port of this machine that is closed after the permission.
fn icmp(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let peer = judge.local_peer(&probe)?;
    let addr = peer.addr();
    let reply = probe.permit(addr)?;
    if !reply.is_success() {
        return Err(Unmet::not_judged(format!("{} for this machine as a peer", reply.text())));
    }
    drop(peer);
    for _ in 0..ATTEMPTS {
        probe.send_to_peer(addr, b"to a closed port")?;
        if let Some(reply) = probe.indication(LOST_AFTER)? {
            reply.expect_attribute(attribute::ICMP, "ICMP")?;
            let value = reply.value(attribute::ICMP).unwrap_or_default();
            // Two reserved bytes, seven bits of type, nine bits of code, four bytes of data.
            let word = value.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
            let is_met = value.len() == 8 && matches!((word >> 9, word & 0x1FF), (3, 3) | (1, 4));
            expect(is_met, "type 3 code 3, or type 1 code 4 of ICMPv6", format!("{value:02x?}"))?;
            return reply.expect_no_attribute(attribute::DATA, "DATA");
        }
    }
    Err(Unmet::absent("no Data indication with ICMP"))
}
