//! Clients over TCP and TLS: what differs from UDP.

use std::net::SocketAddr;

use tt_model::Transport;
use tt_turn::DropReason;
use tt_turn::relay::RelayId;
use tt_turn::shared::Quotas;

use super::wire::{self, DATA, PEER_ADDRESS, Reading};
use super::world::{self, Out, UDP, World, addr};

const FROM: &str = "192.0.2.1:1";
const STREAMS: [Transport; 2] = [Transport::Tcp, Transport::Tls];

/// A client over `transport` with an allocation, and a permitted peer of it.
fn world_over(transport: Transport) -> (World, RelayId, SocketAddr) {
    let mut world = World::new();
    world.transport = transport;
    let (relay, _) = world.allocate(addr(FROM));
    let peer = addr("8.8.8.8:53");
    assert_eq!(world.permit(addr(FROM), peer), 0);
    (world, relay, peer)
}

fn to_client(out: Out) -> Vec<u8> {
    match out {
        Out::ToClient { bytes, .. } => bytes,
        Out::Reply(_) | Out::ToPeer { .. } | Out::ToWorker { .. } | Out::HandOff(_) | Out::Drop(_) => {
            panic!("{out:?}")
        }
    }
}

#[test]
fn rfc_r112_channel_data_is_padded_over_streams_and_not_over_udp() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Tls] {
        let (mut world, relay, peer) = world_over(transport);
        assert_eq!(world.bind(addr(FROM), 0x4001, peer), 0);
        for len in [0_usize, 1, 2, 3, 4, 5, 1_199, 1_200] {
            let payload = vec![0xAB; len];
            let bytes = to_client(world.peer(relay, peer, &payload));
            let padded = if transport == Transport::Udp { len } else { len.div_ceil(4) * 4 };
            assert_eq!(bytes.len(), 4 + padded, "{transport:?} {len}");
            assert_eq!(bytes[..4], [0x40, 0x01, (len >> 8) as u8, len as u8], "the length is without the padding");
            assert_eq!((&bytes[4..4 + len], &bytes[4 + len..]), (&payload[..], &vec![0; padded - len][..]));
        }
    }
}

#[test]
fn case_a73_the_largest_datagrams_fit_a_stream() {
    for transport in STREAMS {
        let (mut world, relay, peer) = world_over(transport);
        // The most over IPv4, and the most that anything carries.
        for len in [65_504_usize, 65_507] {
            let payload = vec![7; len];
            let indication = Reading::of(&to_client(world.peer(relay, peer, &payload)));
            assert_eq!(indication.address(PEER_ADDRESS), Some(peer));
            assert_eq!(indication.get(DATA), Some(&payload[..]));
        }
        assert_eq!(world.peer(relay, peer, &[7; 65_527]), Out::Drop(DropReason::TooLarge), "no STUN length says it");
        assert_eq!(world.bind(addr(FROM), 0x4001, peer), 0);
        for len in [65_507_usize, 65_527, 65_535] {
            let bytes = to_client(world.peer(relay, peer, &vec![7; len]));
            assert_eq!(bytes.len(), 4 + len.next_multiple_of(4));
        }
    }
    let (mut world, relay, peer) = world_over(Transport::Udp);
    assert_eq!(world.bind(addr(FROM), 0x4001, peer), 0);
    assert!(matches!(world.peer(relay, peer, &[7; 65_503]), Out::ToClient { .. }));
    assert_eq!(world.peer(relay, peer, &[7; 65_504]), Out::Drop(DropReason::TooLarge), "with its header, over UDP");
}

#[test]
fn case_a54_a_closed_connection_gives_its_quota_back() {
    for transport in STREAMS {
        let quotas = Quotas { allocations_per_user: 1, ..world::quotas() };
        let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
        world.transport = transport;
        let (first, second) = (addr("192.0.2.1:1"), addr("192.0.2.1:2"));
        let (relay, _) = world.allocate(first);
        let transport = vec![(wire::TRANSPORT, UDP.to_vec())];
        assert_eq!(world.ask(second, wire::ALLOCATE, &transport).code(), 486);
        let flow = world.flow(first);
        assert!(world.server.has_allocation(world.now, &flow));
        assert!(world.server.close_flow(world.now, &flow));
        assert!(!world.server.has_allocation(world.now, &flow));
        assert!(!world.server.close_flow(world.now, &flow), "it is gone");
        assert_eq!(world.peer(relay, addr("8.8.8.8:1"), b"x"), Out::Drop(DropReason::RelayUnallocated));
        assert_eq!(world.ask(second, wire::ALLOCATE, &transport).code(), 0);
        // One that has expired and that no timeout has ended yet ends with its connection, too, and once.
        world.pass_s(3_601);
        let flow = world.flow(second);
        assert!(world.server.close_flow(world.now, &flow));
        world.run_s(0);
        let counters = world.server.counters();
        assert_eq!((counters.allocations_made, counters.allocations_ended), (2, 2));
    }
}

#[test]
fn the_same_addresses_over_another_transport_are_another_flow() {
    let mut world = World::new();
    let from = addr(FROM);
    for (count, transport) in (1..).zip([Transport::Udp, Transport::Tcp, Transport::Tls]) {
        world.transport = transport;
        world.allocate(from);
        assert_eq!(world.server.allocations(), count);
    }
    let tcp = tt_model::FiveTuple { transport: Transport::Tcp, ..world.flow(from) };
    assert!(world.server.close_flow(world.now, &tcp));
    assert_eq!(world.server.allocations(), 2);
}
