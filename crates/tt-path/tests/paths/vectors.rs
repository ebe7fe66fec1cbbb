//! Random frames: ChannelData of clients and datagrams of peers, most of them with one defect.

use std::net::SocketAddr;

use tt_model::SplitMix64;
use tt_path::{Direction, NextHop, PathKey, PathSpec, Proof, Tally};

use crate::packet::{ETH_LEN, Packet, partial_checksum, seal, udp_checksum};
use crate::relay::{Binding, Bucket, Lease, Relay};
use crate::subject::{CAPACITY, IFINDEX, MAC, Subject};

pub(crate) const EPOCH: u32 = 7;
pub(crate) const LISTENERS: [u16; 2] = [3478, 5349];
/// Hops: of this interface, of another, unresolved, with a small MTU.
const HOPS: [u16; 4] = [0, 1, 2, 3];
const OTHER_IFINDEX: u32 = 77;
/// A little less than 1 MB/s, with a fraction of a nanosecond.
pub(crate) const BYTE_NS_FP24: u64 = 1_000 << 24 | 0xabcdef;
/// Meters of the metered binding of each family, in both directions.
pub(crate) const METERS: [u32; 4] = [3, 4, 5, 6];

fn address(family: usize, host: usize, port: u16) -> SocketAddr {
    let text = match family {
        0 => format!("203.0.{}.{}:{port}", host >> 3, host * 29 % 250 + 1),
        _ => format!("[2001:db8:{host}::ffff:{:x}]:{port}", host * 79),
    };
    text.parse().unwrap()
}

/// The bindings of both families: usable, metered, expired, of another epoch, without a hop, with a small MTU.
pub(crate) fn bindings(now: u64) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for family in 0..2 {
        for kind in 0..6_u16 {
            let index = bindings.len() as u32;
            let lease = |direction: u32| Lease {
                until: if kind == 2 { 1 } else { now + 3_600_000_000_000 },
                epoch: if kind == 3 { EPOCH + 1 } else { EPOCH },
                hop: match kind {
                    4 => 2,
                    5 => 3,
                    _ => direction as u16,
                },
                meter: (kind == 1).then(|| METERS[family * 2 + direction as usize]),
                path: index * 2 + direction,
            };
            let (to_peer, to_client) = (lease(0), lease(1));
            bindings.push(Binding {
                number: 0x4000 + kind * 0xb00,
                client: address(family, 10 + usize::from(kind), 40_000 + kind),
                listener: address(family, 1, LISTENERS[usize::from(kind) % 2]),
                relayed: address(family, 2, 49_152 + kind),
                peer: address(family, 60 + usize::from(kind), 9 + kind),
                to_peer,
                to_client,
            });
        }
    }
    bindings
}

pub(crate) fn hops() -> Vec<Option<NextHop>> {
    let hop = |last, ifindex, mtu| NextHop { to: [2, 0, 0, 0, 1, last], from: [2, 0, 0, 0, 2, last], ifindex, mtu };
    vec![Some(hop(1, IFINDEX, 1500)), Some(hop(2, OTHER_IFINDEX, 1500)), None, Some(hop(3, IFINDEX, 600))]
}

/// Both directions of a binding, as the engine would open them.
pub(crate) fn specs(binding: &Binding) -> [PathSpec; 2] {
    let spec = |direction, (from, to), (new_from, new_to), lease: Lease| PathSpec {
        key: PathKey { direction, channel: binding.number, from, to, ifindex: IFINDEX },
        new_from,
        new_to,
        path: lease.path,
        meter: lease.meter,
        until: tt_model::Nanos(lease.until),
        epoch: lease.epoch,
        hop: lease.hop,
    };
    let Binding { client, listener, relayed, peer, to_peer, to_client, .. } = *binding;
    [
        spec(Direction::ToPeer, (client, listener), (relayed, peer), to_peer),
        spec(Direction::ToClient, (peer, relayed), (listener, client), to_client),
    ]
}

/// The reference relay, and the subject with the same tables.
pub(crate) fn relay(subject: &mut impl Subject) -> Relay {
    let now = subject.now();
    let bindings = bindings(now);
    for spec in bindings.iter().flat_map(specs) {
        subject.open(&spec);
    }
    for (hop, value) in HOPS.into_iter().zip(hops()) {
        subject.set_hop(hop, value);
    }
    LISTENERS.iter().for_each(|port| subject.set_port(*port, tt_path::PortKind::Listener));
    let relay_ports: Vec<u16> = bindings.iter().map(|binding| binding.relayed.port()).collect();
    relay_ports.iter().for_each(|port| subject.set_port(*port, tt_path::PortKind::Relay));
    subject.set_meta(true, EPOCH, now);
    Relay {
        is_on: true,
        epoch: EPOCH,
        heartbeat: now,
        dscp: Vec::new(),
        mac: MAC,
        proof: Proof::Proving,
        proven: 0,
        seen: 0,
        listeners: LISTENERS.to_vec(),
        relay_ports,
        bindings,
        hops: hops(),
        buckets: vec![Bucket { full_at: 0, byte_ns_fp24: 0 }; CAPACITY.meters as usize],
        tallies: vec![Tally::default(); CAPACITY.paths as usize],
    }
}

/// A frame from the client or from the peer of a binding, with `data`.
pub(crate) fn frame(binding: &Binding, direction: Direction, data: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let (from, to, header) = match direction {
        Direction::ToPeer => {
            let len = u16::try_from(data.len()).unwrap();
            (binding.client, binding.listener, [binding.number.to_be_bytes(), len.to_be_bytes()].concat())
        }
        Direction::ToClient => (binding.peer, binding.relayed, Vec::new()),
    };
    let packet = Packet {
        mac_to: MAC,
        mac_from: [2, 9, 9, 9, 9, 9],
        from,
        to,
        hop_limit: 2 + random.below(254) as u8,
        traffic_class: random.next_u64() as u8,
        dont_fragment: random.below(2) == 0,
        id: random.next_u64() as u16,
        flow_label: random.below(1 << 20) as u32,
        payload: &[&header, data].concat(),
    };
    packet.build()
}

pub(crate) fn data(len: usize, random: &mut SplitMix64) -> Vec<u8> {
    (0..len).map(|_| random.next_u64() as u8).collect()
}

/// Offset of the UDP header.
pub(crate) fn udp_at(frame: &[u8]) -> usize {
    if frame[12] == 0x08 { 34 } else { 54 }
}

/// Calculates the checksums again after a change.
pub(crate) fn refresh(frame: &mut [u8], binding: &Binding, direction: Direction) {
    let at = udp_at(frame);
    if at == 34 {
        seal(&mut frame[ETH_LEN..34]);
    }
    let (from, to) = ends(binding, direction);
    let csum = udp_checksum(from.ip(), to.ip(), &frame[at..]);
    frame[at + 6..at + 8].copy_from_slice(&csum.to_be_bytes());
}

pub(crate) fn ends(binding: &Binding, direction: Direction) -> (SocketAddr, SocketAddr) {
    match direction {
        Direction::ToPeer => (binding.client, binding.listener),
        Direction::ToClient => (binding.peer, binding.relayed),
    }
}

/// A frame of a random binding, two of three with a defect.
pub(crate) fn any(bindings: &[Binding], random: &mut SplitMix64) -> Vec<u8> {
    // The usable bindings more often than the others.
    let kinds = [0, 0, 0, 0, 1, 1, 2, 3, 4, 5];
    let binding = &bindings[random.index(2) * 6 + kinds[random.index(kinds.len())]];
    let direction = [Direction::ToPeer, Direction::ToClient][random.index(2)];
    let lens = [0, 1, 14, 15, 18, 22, 33, 160, 161, 511, 512, 513, 570, 580, 1200, 1440, 1460, 1472];
    let len = if random.below(2) == 0 { lens[random.index(lens.len())] } else { random.index(1480) };
    let mut data = data(len, random);
    if direction == Direction::ToPeer && random.below(20) == 0 {
        // Padding that the length does not count, as a client would add over TCP.
        let mut frame = frame(binding, direction, &[&data[..], &[0; 3]].concat(), random);
        let at = udp_at(&frame) + 10;
        frame[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
        refresh(&mut frame, binding, direction);
        return frame;
    }
    if random.below(50) == 0 {
        data.fill(0);
    }
    let mut frame = frame(binding, direction, &data, random);
    if random.below(3) != 0 {
        break_one(&mut frame, binding, direction, random);
    }
    frame
}

fn break_one(frame: &mut Vec<u8>, binding: &Binding, direction: Direction, random: &mut SplitMix64) {
    let kind = random.below(27);
    if kind < 12 {
        break_outside(frame, kind, random);
    } else {
        break_inside(frame, kind, (binding, direction), random);
    }
    // Another IP length with right checksums: the lengths are the only defect.
    if kind == 10 {
        refresh(frame, binding, direction);
    }
}

/// A defect of the frame or the IP header.
fn break_outside(frame: &mut Vec<u8>, kind: u64, random: &mut SplitMix64) {
    let at = udp_at(frame);
    let is_ip4 = at == 34;
    let random_byte = random.next_u64() as u8;
    match kind {
        0 => drop(frame.splice(12..12, [[0x81, 0x00, 0, 5], [0x88, 0xa8, 0, 5]][random.index(2)])),
        1 => frame[13] = 0x06,
        2 => frame.truncate(14 + random.index(frame.len() - 14)),
        3 => *frame = data(14 + random.index(200), random),
        4 if is_ip4 => {
            frame.splice(34..34, [1, 1, 1, 0]);
            frame[14] = 0x46;
        }
        4 => frame[20] = [0, 43, 60][random.index(3)],
        5 if is_ip4 => {
            frame[20 + random.index(2)] |= if random.below(2) == 0 { 0x20 } else { 1 };
            seal(&mut frame[ETH_LEN..34]);
        }
        5 => frame[20] = 44,
        6 => frame[if is_ip4 { 23 } else { 20 }] = [6, 58, 50][random.index(3)],
        7 => frame[14] = frame[14] & 15 | random_byte & 0xf0,
        8 => frame[at + 2..at + 4].copy_from_slice(&9999_u16.to_be_bytes()),
        9 => frame[at + 5] = frame[at + 5].wrapping_add(random_byte | 1),
        10 => {
            let low = if is_ip4 { 17 } else { 19 };
            frame[low] = frame[low].wrapping_add(random_byte | 1);
        }
        _ => {
            let more = random.index(12);
            frame.extend(data(more, random));
        }
    }
}

/// A defect of addresses, channel or checksums.
fn break_inside(frame: &mut [u8], kind: u64, (binding, direction): (&Binding, Direction), random: &mut SplitMix64) {
    let at = udp_at(frame);
    let is_ip4 = at == 34;
    let toward_peer = direction == Direction::ToPeer;
    let random_byte = random.next_u64() as u8;
    match kind {
        12 if toward_peer => {
            let number: u16 = [0x3fff, 0x8000, 0x0001, 0x16fe, 0x4ffe, 0x7fff, 0xffff][random.index(7)];
            frame[at + 8..at + 10].copy_from_slice(&number.to_be_bytes());
            refresh(frame, binding, direction);
        }
        13 if toward_peer => {
            frame[at + 11] = frame[at + 11].wrapping_add(random_byte | 1);
            refresh(frame, binding, direction);
        }
        12..=14 => {
            frame[at + 1] ^= 0x10;
            refresh(frame, binding, direction);
        }
        15 => frame[random.index(6)] ^= random_byte | 1,
        16 => {
            frame[if is_ip4 { 22 } else { 21 }] = random.below(2) as u8;
            refresh(frame, binding, direction);
        }
        17 | 18 => frame[at + 6..at + 8].fill(0),
        19 if random.below(8) == 0 => {
            let (from, to) = ends(binding, direction);
            let csum = partial_checksum(from.ip(), to.ip(), frame.len() - at);
            frame[at + 6..at + 8].copy_from_slice(&csum.to_be_bytes());
        }
        20 | 21 => frame[at + 6] ^= random_byte | 1,
        22 => {
            let place = at + 8 + random.index(frame.len() - at - 7);
            frame.get_mut(place).into_iter().for_each(|byte| *byte ^= random_byte | 1);
        }
        23 if is_ip4 => frame[24] ^= random_byte | 1,
        24 if is_ip4 => {
            // The reserved bit (RFC 3514 was not meant seriously).
            frame[20] |= 0x80;
            seal(&mut frame[ETH_LEN..34]);
        }
        // A checksum that is sent as all ones.
        25 if frame.len() >= at + 14 => {
            let place = frame.len() & !1;
            let place = place - 2 - at % 2;
            frame[place..place + 2].fill(0);
            refresh(frame, binding, direction);
            let rest = u16::from_be_bytes([frame[at + 6], frame[at + 7]]);
            if place >= at + 12 {
                frame[place..place + 2].copy_from_slice(&rest.to_be_bytes());
                refresh(frame, binding, direction);
            }
        }
        _ => frame[1..6].fill(0),
    }
}
