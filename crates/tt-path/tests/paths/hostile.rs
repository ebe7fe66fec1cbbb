//! What strangers, peers and clients can send at an open path: each goes up unchanged with its reason, and no table grows.
//!
//! The rows of docs/kernel-path.md, "What others can do to the maps".

use std::net::SocketAddr;

use tt_model::SplitMix64;
use tt_path::{Direction, Reason};

use crate::packet::{Packet, partial_checksum, seal};
use crate::relay::{Binding, Relay};
use crate::subject::{IFINDEX, InMachine, MAC, Subject};
use crate::vectors::{self, refresh, udp_at};
use crate::{check, require_kernel};

/// The usable bindings of each family.
const BINDINGS: [usize; 2] = [0, 6];
const LEN: usize = 200;
/// The direction of client to peer.
const OUT: Direction = Direction::ToPeer;
const BACK: Direction = Direction::ToClient;

fn good(binding: &Binding, direction: Direction) -> Vec<u8> {
    vectors::frame(binding, direction, &[7; LEN], &mut SplitMix64::new(1))
}

/// The same with other ends, and right checksums.
fn from_to(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let packet = Packet {
        mac_to: MAC,
        mac_from: [2, 0, 0, 0, 0, 9],
        from,
        to,
        hop_limit: 64,
        traffic_class: 0,
        dont_fragment: true,
        id: 1,
        flow_label: 0,
        payload,
    };
    packet.build()
}

/// A good frame with one change, and right checksums after it.
fn changed(binding: &Binding, direction: Direction, change: impl FnOnce(&mut Vec<u8>, usize)) -> Vec<u8> {
    let mut frame = good(binding, direction);
    let at = udp_at(&frame);
    change(&mut frame, at);
    refresh(&mut frame, binding, direction);
    frame
}

fn channel_data(number: u16, len: usize, payload: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &(len as u16).to_be_bytes(), payload].concat()
}

/// Inputs with the reason for which each goes up.
fn inputs(binding: &Binding) -> Vec<(&'static str, Vec<u8>, Reason)> {
    let Binding { client, listener, relayed, peer, number, .. } = *binding;
    let other = |addr: SocketAddr| SocketAddr::new(addr.ip(), addr.port() ^ 1);
    let data = [7; LEN];
    let bound = channel_data(number, LEN, &data);
    let own = |from: SocketAddr, to: SocketAddr| from_to(from, to, &bound);
    let mut inputs = vec![
        ("a stranger's port with the client's address", own(other(client), listener), Reason::NoFlow),
        (
            "a stranger's address with the client's port",
            own(SocketAddr::new(peer.ip(), client.port()), listener),
            Reason::NoFlow,
        ),
        (
            "another channel of the client",
            from_to(client, listener, &channel_data(number + 1, LEN, &data)),
            Reason::NoFlow,
        ),
        ("a client's packet to the relayed address", own(client, relayed), Reason::NoFlow),
        ("a peer's other port", from_to(other(peer), relayed, &data), Reason::NoFlow),
        ("another peer", from_to(SocketAddr::new(client.ip(), peer.port()), relayed, &data), Reason::NoFlow),
        ("a peer that sends ChannelData to the listener", own(peer, listener), Reason::NoFlow),
        ("the server's own address as the source", own(listener, listener), Reason::NoFlow),
        ("the relayed address as its own peer", from_to(relayed, relayed, &data), Reason::NoFlow),
        ("ChannelData cut in its header", from_to(client, listener, &bound[..3]), Reason::NotChannel),
        ("an empty datagram", from_to(client, listener, &[]), Reason::NotChannel),
        (
            "a length beyond the packet",
            from_to(client, listener, &channel_data(number, LEN + 1, &data)),
            Reason::NotChannel,
        ),
        ("the largest length", from_to(client, listener, &channel_data(number, 0xffff, &data)), Reason::NotChannel),
        (
            "a length before the end",
            from_to(client, listener, &channel_data(number, LEN - 1, &data)),
            Reason::NotChannel,
        ),
        ("STUN", from_to(client, listener, &channel_data(0x0001, LEN, &data)), Reason::NotChannel),
        (
            "a number above all channels",
            from_to(client, listener, &channel_data(0x8000, LEN, &data)),
            Reason::NotChannel,
        ),
        ("a UDP length beyond the packet", changed(binding, OUT, |frame, at| frame[at + 4] = 0xff), Reason::Length),
        (
            "a UDP length of seven",
            changed(binding, BACK, |frame, at| frame[at + 4..at + 6].copy_from_slice(&[0, 7])),
            Reason::Length,
        ),
        ("a frame that ends early", good(binding, OUT)[..100].to_vec(), Reason::Length),
        ("another host's Ethernet address", changed(binding, OUT, |frame, _| frame[5] ^= 1), Reason::OtherHost),
        ("a VLAN tag", tagged(&good(binding, OUT)), Reason::Tagged),
    ];
    inputs.extend(of_direction(binding));
    inputs.extend(of_family(binding));
    inputs
}

/// Hop limits and UDP checksums, both ways.
fn of_direction(binding: &Binding) -> Vec<(&'static str, Vec<u8>, Reason)> {
    let (is_ip4, mut inputs) = (binding.client.is_ipv4(), Vec::new());
    for direction in [OUT, BACK] {
        let (from, to) = vectors::ends(binding, direction);
        for left in [0, 1] {
            let frame = changed(binding, direction, |frame, _| frame[if is_ip4 { 22 } else { 21 }] = left);
            inputs.push(("a hop limit of at most one", frame, Reason::HopLimit));
        }
        let mut partial = good(binding, direction);
        let at = udp_at(&partial);
        let sum = partial_checksum(from.ip(), to.ip(), partial.len() - at);
        partial[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
        inputs.push(("a partial checksum", partial, Reason::PartialChecksum));
        if !is_ip4 || direction == BACK {
            let mut none = good(binding, direction);
            none[at + 6..at + 8].fill(0);
            inputs.push(("no checksum where there must be one", none, Reason::ZeroChecksum));
        }
    }
    inputs
}

/// Options, fragments and a wrong header checksum.
fn of_family(binding: &Binding) -> Vec<(&'static str, Vec<u8>, Reason)> {
    if binding.client.is_ipv6() {
        let next = |header| changed(binding, OUT, |frame, _| frame[20] = header);
        return vec![
            ("a fragment header", next(44), Reason::Fragment),
            ("hop-by-hop options", next(0), Reason::Extension),
            ("a routing header", next(43), Reason::Extension),
            ("destination options", next(60), Reason::Extension),
        ];
    }
    let fragment =
        |first: u8, second: u8| changed(binding, OUT, |frame, _| frame[20..22].copy_from_slice(&[first, second]));
    let empty = from_to(binding.client, binding.listener, &channel_data(binding.number, 0, &[]));
    let mut options = good(binding, OUT);
    options.splice(34..34, [1, 1, 1, 0]);
    (options[14], options[17]) = (0x46, options[17] + 4);
    seal(&mut options[14..34]);
    let mut wrong = good(binding, OUT);
    wrong[24] ^= 1;
    vec![
        ("ChannelData of four bytes", empty, Reason::TooShort),
        ("IP options", options, Reason::Options),
        ("the first fragment", fragment(0x20, 0), Reason::Fragment),
        ("a later fragment", fragment(0, 9), Reason::Fragment),
        ("a wrong IPv4 checksum", wrong, Reason::BadChecksum),
    ]
}

fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat()
}

/// Proves the interface, plays every input, and sees that the paths still relay and nothing else was relayed.
fn play(subject: &mut impl Subject, relay: &mut Relay) {
    for (_, frame) in (0..64).zip(std::iter::repeat(good(&relay.bindings[0], OUT))) {
        keep_alive(subject, relay);
        assert_eq!(check::frame(subject, relay, &frame), Some(Reason::Proving));
    }
    for binding in BINDINGS.map(|index| relay.bindings[index]) {
        for (name, frame, reason) in inputs(&binding) {
            keep_alive(subject, relay);
            assert_eq!(check::frame(subject, relay, &frame), Some(reason), "{name} ({:?})", binding.client);
        }
        for (direction, path) in [(OUT, binding.to_peer.path), (BACK, binding.to_client.path)] {
            assert_eq!(subject.tally(path).packets, 0, "an input was relayed");
            keep_alive(subject, relay);
            assert_eq!(check::frame(subject, relay, &good(&binding, direction)), Some(Reason::Relayed));
            assert_eq!(subject.tally(path).packets, 1);
        }
    }
}

fn keep_alive(subject: &mut impl Subject, relay: &mut Relay) {
    relay.heartbeat = subject.now();
    subject.set_meta(true, relay.epoch, relay.heartbeat);
}

#[test]
fn every_hostile_input_goes_up_with_its_reason() {
    let mut subject = InMachine::new();
    let mut relay = vectors::relay(&mut subject);
    play(&mut subject, &mut relay);
}

#[test]
fn the_kernel_hands_up_every_hostile_input() {
    let Some(mut subject) = require_kernel() else { return };
    let mut relay = vectors::relay(&mut subject);
    play(&mut subject, &mut relay);
}

/// Every number of a channel: one is bound. The program cannot write the tables of flows.
#[test]
fn a_flood_of_channel_numbers_finds_the_bound_one_only() {
    let mut subject = InMachine::new();
    let mut relay = vectors::relay(&mut subject);
    let Binding { client, listener, number, .. } = relay.bindings[0];
    for _ in 0..64 {
        let frame = good(&relay.bindings[0], OUT);
        check::frame(&mut subject, &mut relay, &frame);
    }
    let flows = |subject: &mut InMachine| subject.0.table("flows4").keys.clone();
    let before = flows(&mut subject);
    for of in 0x4000..=0x7fff {
        let frame = from_to(client, listener, &channel_data(of, LEN, &[7; LEN]));
        let expected = if of == number { Reason::Relayed } else { Reason::NoFlow };
        assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(expected), "{of:#06x}");
    }
    assert_eq!(flows(&mut subject), before);
}

/// A path is of one interface: whoever forges the client's addresses on another one reaches the sockets.
#[test]
fn the_right_addresses_on_another_interface_are_no_flow() {
    let mut subject = InMachine::new();
    let relay = vectors::relay(&mut subject);
    let other = IFINDEX + 1;
    let slot = IFINDEX as usize * 32;
    let mut entry = subject.0.table("ifaces").values[slot..slot + 32].to_vec();
    entry[..4].copy_from_slice(&other.to_le_bytes());
    subject.0.table("ifaces").values[slot + 32..slot + 64].copy_from_slice(&entry);
    for direction in [OUT, BACK] {
        let frame = good(&relay.bindings[0], direction);
        subject.0.ifindex = other;
        let before = subject.reasons();
        assert_eq!(subject.run(&frame).action, 2);
        assert_eq!(subject.reasons()[Reason::NoFlow as usize - 1], before[Reason::NoFlow as usize - 1] + 1);
        subject.0.ifindex = IFINDEX;
        subject.run(&frame);
        assert_eq!(subject.reasons()[Reason::Proving as usize - 1], before[Reason::Proving as usize - 1] + 1);
    }
}
