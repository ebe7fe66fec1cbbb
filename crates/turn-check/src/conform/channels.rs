//! Channels (RFC 8656 section 12).

use std::net::SocketAddr;

use tt_turn::codec::{Method, attribute};

use super::check::{Check, Finding, Unmet, expect};
use super::judge::{Judge, LOST_AFTER};
use super::peer::Peer;
use super::probe::{Delivery, Probe, channel_value, payload_text};
use crate::client::Attribute;

const S: &str = "RFC 8656 section 12.2";
const S12: &str = "RFC 8656 section 12";
const NUMBER: u16 = 0x4000;
const OTHER_NUMBER: u16 = 0x4FFF;
/// Attempts against loss.
const ATTEMPTS: u8 = 3;

pub(super) const CHECKS: &[Check] = &[
    Check::must("R110", S, "ChannelBind without CHANNEL-NUMBER gets 400", no_number),
    Check::must("R110", S, "ChannelBind without a peer gets 400", no_peer),
    Check::must("R109", S12, "a channel number below 0x4000 gets 400", below),
    Check::must("R109", S12, "a channel number above 0x4FFF gets 400", above),
    Check::must("A66", S, "a reserved channel number from 0x8000 gets 400", far_above),
    Check::must("R109", S12, "the first and the last channel number are granted", ends),
    Check::must("R110", S, "a number that is bound to another peer gets 400", other_peer),
    Check::must("R110", S, "a peer that is bound to another number gets 400", other_number),
    Check::must("A66", S, "the same pair again is granted", same_pair),
    Check::must("R115", "RFC 8656 section 18", "reserved bytes of CHANNEL-NUMBER are ignored", reserved_bytes),
    Check::must("R110", S, "a channel to a multicast peer gets 403", denied).should(),
    Check::must("A65", S, "a channel to port 0 does not end the allocation", port_zero),
    Check::must("R111", S12, "a channel brings a permission for its peer", permission),
    Check::must("R112", "RFC 8656 section 12.5", "data of a bound peer come as ChannelData", channel_data),
    Check::must("R113", "RFC 8656 section 12.6", "ChannelData reach the peer", to_peer),
    Check::must("A69", "RFC 8656 section 12.6", "ChannelData of a number that is not bound are dropped", unbound),
    Check::must("R113", "RFC 8656 section 12.6", "empty ChannelData become an empty datagram", empty),
    Check::must("A69", "RFC 8656 section 12.6", "payloads of every length modulo four arrive whole", lengths),
    Check::must("R112", "RFC 8656 section 12.5", "a Send to a bound peer is still relayed", send_too),
];

fn no_number(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed) = judge.allocated()?;
    let peer = Attribute::Address(attribute::XOR_PEER_ADDRESS, relayed);
    probe.request(Method::ChannelBind, &[peer])?.expect_code(400)
}

fn no_peer(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let number = channel_value(NUMBER);
    probe.request(Method::ChannelBind, &[Attribute::Bytes(attribute::CHANNEL_NUMBER, &number)])?.expect_code(400)
}

/// A peer that the server accepts, though nothing need reach it.
fn bindable(judge: &Judge<'_>) -> Result<(Probe, SocketAddr, Peer), Unmet> {
    let (probe, _, peer) = judge.relaying()?;
    let addr = peer.addr();
    Ok((probe, addr, peer))
}

fn expect_rejected(judge: &Judge<'_>, number: u16) -> Finding {
    let (mut probe, addr, _peer) = bindable(judge)?;
    let reply = probe.bind(number, addr)?;
    expect(reply.code() == 400, format!("error 400 for {number:#06x}"), reply.text())
}

fn below(judge: &Judge<'_>) -> Finding {
    [0, 0x3FFF].into_iter().try_for_each(|number| expect_rejected(judge, number))
}

fn above(judge: &Judge<'_>) -> Finding {
    [0x5000, 0x7FFF].into_iter().try_for_each(|number| expect_rejected(judge, number))
}

fn far_above(judge: &Judge<'_>) -> Finding {
    [0x8000, 0xFFFF].into_iter().try_for_each(|number| expect_rejected(judge, number))
}

fn ends(judge: &Judge<'_>) -> Finding {
    for number in [NUMBER, OTHER_NUMBER] {
        let (mut probe, addr, _peer) = bindable(judge)?;
        probe.bind(number, addr)?.expect_success()?;
    }
    Ok(())
}

fn elsewhere(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip(), if addr.port() == u16::MAX { addr.port() - 1 } else { addr.port() + 1 })
}

fn other_peer(judge: &Judge<'_>) -> Finding {
    let (mut probe, addr, _peer) = bindable(judge)?;
    probe.bind(NUMBER, addr)?.expect_success()?;
    probe.bind(NUMBER, elsewhere(addr))?.expect_code(400)
}

fn other_number(judge: &Judge<'_>) -> Finding {
    let (mut probe, addr, _peer) = bindable(judge)?;
    probe.bind(NUMBER, addr)?.expect_success()?;
    probe.bind(OTHER_NUMBER, addr)?.expect_code(400)
}

fn same_pair(judge: &Judge<'_>) -> Finding {
    let (mut probe, addr, _peer) = bindable(judge)?;
    probe.bind(NUMBER, addr)?.expect_success()?;
    probe.bind(NUMBER, addr)?.expect_success()
}

fn reserved_bytes(judge: &Judge<'_>) -> Finding {
    let (mut probe, addr, _peer) = bindable(judge)?;
    let number = Attribute::Bytes(attribute::CHANNEL_NUMBER, &[0x40, 0x01, 0xAA, 0xBB]);
    let peer = Attribute::Address(attribute::XOR_PEER_ADDRESS, addr);
    probe.request(Method::ChannelBind, &[number, peer])?.expect_success()
}

fn denied(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    probe.bind(NUMBER, ([224, 0, 0, 1], 9).into())?.expect_code(403)
}

fn port_zero(judge: &Judge<'_>) -> Finding {
    let (mut probe, mut addr, _peer) = bindable(judge)?;
    addr.set_port(0);
    probe.bind(NUMBER, addr)?;
    probe.expect_allocation()
}

/// A client with a channel to a peer.
fn bound(judge: &Judge<'_>) -> Result<(Probe, SocketAddr, Peer), Unmet> {
    let (mut probe, relayed, peer) = judge.relaying()?;
    probe.bind(NUMBER, peer.addr())?.expect_success()?;
    Ok((probe, relayed, peer))
}

/// Sends from the peer until something reaches the client.
fn from_peer(probe: &mut Probe, relayed: SocketAddr, peer: &mut Peer) -> Result<Delivery, Unmet> {
    for _ in 0..ATTEMPTS {
        peer.send(relayed, b"from the peer")?;
        if let Some(data) = probe.data(LOST_AFTER)? {
            return Ok(data);
        }
    }
    Err(Unmet::failed("the data of the peer", "nothing in three attempts"))
}

fn permission(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = bound(judge)?;
    from_peer(&mut probe, relayed, &mut peer).map(drop)
}

fn channel_data(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = bound(judge)?;
    let data = from_peer(&mut probe, relayed, &mut peer)?;
    let expected = Delivery::Channel { number: NUMBER, payload: b"from the peer".to_vec() };
    expect(data == expected, "ChannelData of number 0x4000 with the payload", data.to_string())
}

/// Sends a payload on the channel until it reaches the peer, and compares it.
fn expect_payload(probe: &mut Probe, peer: &mut Peer, payload: &[u8]) -> Finding {
    for _ in 0..ATTEMPTS {
        probe.send_on_channel(NUMBER, payload)?;
        if let Some((_, received)) = peer.receive(LOST_AFTER)? {
            return expect(received == payload, payload_text(Some(payload)), payload_text(Some(&received)));
        }
    }
    Err(Unmet::failed(format!("{} bytes reach the peer", payload.len()), "nothing in three attempts"))
}

fn to_peer(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = bound(judge)?;
    expect_payload(&mut probe, &mut peer, b"to the peer!")
}

fn unbound(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = bound(judge)?;
    probe.send_on_channel(OTHER_NUMBER, b"nowhere!")?;
    let arrived = peer.receive(LOST_AFTER)?.is_some();
    expect(!arrived, "nothing is relayed", "a datagram reached the peer")
}

fn empty(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = bound(judge)?;
    expect_payload(&mut probe, &mut peer, b"")
}

fn lengths(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = bound(judge)?;
    (1..=8_u8).try_for_each(|length| expect_payload(&mut probe, &mut peer, &vec![length; usize::from(length)]))
}

fn send_too(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = bound(judge)?;
    for _ in 0..ATTEMPTS {
        probe.send_to_peer(peer.addr(), b"in a Send")?;
        if let Some((_, received)) = peer.receive(LOST_AFTER)? {
            return expect(received == b"in a Send", "the payload", payload_text(Some(&received)));
        }
    }
    Err(Unmet::failed("the data reach the peer", "nothing in three attempts"))
}
