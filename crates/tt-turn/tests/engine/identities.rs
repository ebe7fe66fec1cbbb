//! Keys of several parts: whatever differs in one part alone is another one.

use std::net::SocketAddr;

use tt_model::Transport;
use tt_turn::relay::RelayId;
use tt_turn::{DropReason, Server};

use super::wire::{self, LIFETIME, REFRESH, Reading};
use super::world::{Out, World, addr};

/// The client's address, the server's, and the transport between them.
type Parts = (&'static str, &'static str, Transport);

/// Five-tuples that each differ from the first one of their family in a single part.
const FLOWS: [Parts; 16] = [
    ("192.0.2.1:1000", "198.41.0.9:3478", Transport::Udp),
    ("192.0.2.1:1001", "198.41.0.9:3478", Transport::Udp),
    ("192.0.2.2:1000", "198.41.0.9:3478", Transport::Udp),
    ("192.0.2.1:1000", "198.41.0.9:3479", Transport::Udp),
    ("192.0.2.1:1000", "198.41.0.10:3478", Transport::Udp),
    ("192.0.2.1:1000", "198.41.0.9:3478", Transport::Tcp),
    ("192.0.2.1:1000", "198.41.0.9:3478", Transport::Tls),
    ("[2001:db8::1]:1000", "[2001:db8:9::9]:3478", Transport::Udp),
    ("[2001:db8::1]:1001", "[2001:db8:9::9]:3478", Transport::Udp),
    ("[2001:db8::2]:1000", "[2001:db8:9::9]:3478", Transport::Udp),
    ("[2001:db8:1::1]:1000", "[2001:db8:9::9]:3478", Transport::Udp),
    ("[2001:db8::1]:1000", "[2001:db8:9::9]:3479", Transport::Udp),
    ("[2001:db8::1]:1000", "[2001:db8:9::a]:3478", Transport::Udp),
    ("[2001:db8::1]:1000", "[2001:db8:8::9]:3478", Transport::Udp),
    ("[2001:db8::1]:1000", "[2001:db8:9::9]:3478", Transport::Tcp),
    ("[2001:db8::1]:1000", "[2001:db8:9::9]:3478", Transport::Tls),
];

/// Speaks from `parts` from now on.
fn take(world: &mut World, (client, server, transport): Parts) -> SocketAddr {
    (world.listener, world.transport) = (addr(server), transport);
    addr(client)
}

/// The peer of a flow.
fn peer(number: usize) -> SocketAddr {
    SocketAddr::new([8, 8, 8, number as u8 + 1].into(), 53)
}

fn allocations(world: &World) -> usize {
    Server::allocations(&world.server)
}

#[test]
fn flows_that_differ_in_one_part_have_allocations_of_their_own() {
    let mut world = World::new();
    let mut relays: Vec<RelayId> = Vec::new();
    for (number, parts) in FLOWS.into_iter().enumerate() {
        let from = take(&mut world, parts);
        relays.push(world.allocate(from).0);
        assert_eq!(allocations(&world), number + 1, "{parts:?}");
        assert_eq!(world.bind(from, 0x4000, peer(number)), 0);
    }
    for (number, parts) in FLOWS.into_iter().enumerate() {
        let from = take(&mut world, parts);
        let (relay, peer, payload) = (relays[number], peer(number), vec![number as u8; 4]);
        assert_eq!(world.channel_data(from, 0x4000, &payload), Out::ToPeer { relay, peer, payload: payload.clone() });
        for other in (0..FLOWS.len()).filter(|other| *other != number) {
            let out = world.peer(relays[other], peer, b"x");
            assert_eq!(out, Out::Drop(DropReason::NoPermission), "{parts:?} and {:?}", FLOWS[other]);
        }
    }
    // One after the other ends, and those that are left go on.
    for (number, parts) in FLOWS.into_iter().enumerate() {
        let from = take(&mut world, parts);
        assert_eq!(world.ask(from, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0, "{parts:?}");
        assert_eq!(world.channel_data(from, 0x4000, b"gone"), Out::Drop(DropReason::NoAllocation));
        for (later, parts) in FLOWS.into_iter().enumerate().skip(number + 1) {
            let from = take(&mut world, parts);
            assert!(
                matches!(world.channel_data(from, 0x4000, b"here"), Out::ToPeer { .. }),
                "{later} without {number}"
            );
        }
    }
    assert_eq!(allocations(&world), 0);
}

#[test]
fn a_connection_that_closes_ends_its_own_flow_alone() {
    for closed in FLOWS {
        let mut world = World::new();
        for parts in FLOWS {
            let from = take(&mut world, parts);
            world.allocate(from);
        }
        let from = take(&mut world, closed);
        let flow = world.flow(from);
        assert!(world.server.close_flow(world.now, &flow) && !world.server.close_flow(world.now, &flow), "{closed:?}");
        assert_eq!(allocations(&world), FLOWS.len() - 1);
        for parts in FLOWS {
            let from = take(&mut world, parts);
            let flow = world.flow(from);
            assert_eq!(world.server.has_allocation(world.now, &flow), parts != closed, "{parts:?} without {closed:?}");
        }
    }
}

/// A nonce belongs to the client's address and port (RFC 8489 section 9.2.4).
#[test]
fn a_nonce_of_an_address_that_differs_in_one_part_is_stale() {
    let mut world = World::new();
    let nonce = world.nonce(addr("192.0.2.1:1000"));
    for (from, code) in [("192.0.2.1:1000", 437), ("192.0.2.1:1001", 438), ("192.0.2.2:1000", 438)] {
        let tid = world.tid();
        let request = wire::Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, b"alice");
        let request = request.attr(wire::REALM, super::world::REALM.as_bytes()).attr(wire::NONCE, &nonce);
        let reply = world.client(addr(from), &request.integrity(&super::world::key("alice")).0).reply();
        assert_eq!(reply.code(), code, "{from}");
    }
}

/// RFC 8489 section 5: the identifiers of two transactions differ, those of indications too.
#[test]
fn indications_have_transactions_of_their_own() {
    let mut world = World::new();
    let (from, peer) = (addr("192.0.2.1:1000"), addr("8.8.8.8:53"));
    let (relay, _) = world.allocate(from);
    assert_eq!(world.permit(from, peer), 0);
    let mut ids: Vec<_> = (0..100)
        .map(|_| {
            let Out::ToClient { bytes, .. } = world.peer(relay, peer, b"data") else { panic!("not relayed") };
            Reading::of(&bytes).tid
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

/// Peers that differ in one part: the address alone is permitted, address and port are bound.
#[test]
fn peers_that_differ_in_one_part_are_permitted_by_address_and_bound_by_both() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1000");
    let (relay, _) = world.allocate(from);
    let (bound, other_port, other_ip) = (addr("8.8.8.8:53"), addr("8.8.8.8:54"), addr("8.8.8.9:53"));
    assert_eq!(world.bind(from, 0x4000, bound), 0);
    let Out::ToClient { bytes, .. } = world.peer(relay, bound, b"data") else { panic!("not relayed") };
    assert_eq!(bytes, [&[0x40, 0, 0, 4][..], b"data"].concat());
    let Out::ToClient { bytes, .. } = world.peer(relay, other_port, b"data") else { panic!("not relayed") };
    let indication = Reading::of(&bytes);
    assert_eq!((indication.method, indication.address(wire::PEER_ADDRESS)), (wire::DATA_METHOD, Some(other_port)));
    assert_eq!(world.peer(relay, other_ip, b"data"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.send(from, other_ip, b"data"), Out::Drop(DropReason::NoPermission));
    // A second channel to the same address: each leads to its own port, and back.
    assert_eq!(world.bind(from, 0x4001, other_port), 0);
    for (number, peer) in [(0x4000_u16, bound), (0x4001, other_port)] {
        let payload = number.to_be_bytes().to_vec();
        assert_eq!(world.channel_data(from, number, &payload), Out::ToPeer { relay, peer, payload });
        let Out::ToClient { bytes, .. } = world.peer(relay, peer, b"") else { panic!("not relayed") };
        assert_eq!(bytes, [&number.to_be_bytes()[..], &[0, 0]].concat());
    }
}
