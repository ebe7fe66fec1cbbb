//! Two allocations of one server as each other's peers (RFC 8656 section 21.1.7, peer policy rule 2).

use std::net::SocketAddr;
use std::sync::Arc;

use tt_turn::config::{Config, Hairpin};
use tt_turn::policy::{Cidr, PeerPolicy};
use tt_turn::relay::{PeerPath, RelayAddress, RelayId};
use tt_turn::shared::Shared;
use tt_turn::{DropReason, WorkerId};

use super::wire::{self, LIFETIME, REFRESH, Reading};
use super::world::{self, Out, World, addr};

const CHANNEL: u16 = 0x4000;

fn two_clients(world: &mut World) -> [(SocketAddr, SocketAddr); 2] {
    ["192.0.2.1:1", "192.0.2.2:2"].map(|from| (addr(from), world.allocate(addr(from)).1))
}

fn to_client(out: Out, expected: SocketAddr) -> Vec<u8> {
    let Out::ToClient { client, bytes } = out else { panic!("{out:?}") };
    assert_eq!(client, expected);
    bytes
}

#[test]
fn case_a75_one_in_is_at_most_one_out_for_each_hop() {
    let mut world = World::new();
    let [(a, relayed_a), (b, relayed_b)] = two_clients(&mut world);
    assert_eq!((world.bind(a, CHANNEL, relayed_b), world.permit(b, relayed_a)), (0, 0));
    let before = *world.server.counters();
    // RFC 8656 sections 11.3 and 12.6: a payload from one relayed address reaches the other, as from a peer.
    for payload in [&b""[..], b"x", &[7; 1_200]] {
        let indication = Reading::of(&to_client(world.channel_data(a, CHANNEL, payload), b));
        assert_eq!(indication.address(wire::PEER_ADDRESS), Some(relayed_a));
        assert_eq!(indication.get(wire::DATA), Some(payload));
    }
    assert_eq!(world.bind(b, CHANNEL + 1, relayed_a), 0);
    assert_eq!(to_client(world.channel_data(a, CHANNEL, b"there"), b), b"\x40\x01\0\x05there");
    assert_eq!(to_client(world.channel_data(b, CHANNEL + 1, b"back"), a), b"\x40\0\0\x04back");
    assert_eq!(to_client(world.send(b, relayed_a, b"back"), a), b"\x40\0\0\x04back");
    let after = *world.server.counters();
    assert_eq!(after.hairpinned - before.hairpinned, 6);
    assert_eq!(after.relayed() - before.relayed(), 12, "each is a hop to a peer and a hop to a client");
    assert_eq!(after.bytes_to_peers - before.bytes_to_peers, 1_201 + 13);
    assert_eq!(after.bytes_to_clients - before.bytes_to_clients, 1_201 + 13);
    // A client that is its own peer hears itself, once.
    assert_eq!(world.bind(a, CHANNEL + 2, relayed_a), 0);
    assert_eq!(to_client(world.channel_data(a, CHANNEL + 2, b"echo"), a), b"\x40\x02\0\x04echo");
    world.probe();
}

#[test]
fn case_a75_the_permissions_of_the_other_end_are_asked() {
    let mut world = World::new();
    let [(a, relayed_a), (b, relayed_b)] = two_clients(&mut world);
    assert_eq!(world.bind(a, CHANNEL, relayed_b), 0);
    assert_eq!(world.channel_data(a, CHANNEL, b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.permit(b, addr("8.8.8.8:53")), 0);
    assert_eq!(world.send(a, relayed_b, b"x"), Out::Drop(DropReason::NoPermission), "b permits somebody else");
    assert_eq!(world.permit(b, relayed_a), 0);
    to_client(world.send(a, relayed_b, b"x"), b);
    // RFC 8656 section 9: 300 s. A refreshed channel of a's is no permission of b's.
    world.run_s(200);
    assert_eq!(world.bind(a, CHANNEL, relayed_b), 0);
    world.run_s(101);
    assert_eq!(world.channel_data(a, CHANNEL, b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.ask(b, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.channel_data(a, CHANNEL, b"x"), Out::Drop(DropReason::PeerDenied), "b's address is nobody's");
    world.probe();
}

#[test]
fn case_a75_without_hairpin_the_other_relayed_address_is_refused() {
    for opened in [false, true] {
        let mut config = Config { hairpin: Hairpin::Denied, ..world::config() };
        if opened {
            // Services on the same host may be allowed; another allocation is not one of them.
            let mut policy = PeerPolicy::new();
            policy.open_host(Cidr::new("198.41.0.0".parse().unwrap(), 16).unwrap());
            config.peer_policy = policy;
        }
        let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
        let [(a, _), (_, relayed_b)] = two_clients(&mut world);
        assert_eq!(world.bind(a, CHANNEL, relayed_b), 403);
        let elsewhere = addr("198.41.0.9:9000");
        if opened {
            assert_eq!(world.permit(a, relayed_b), 0, "a permission is for the address, whatever the port");
            assert_eq!(world.send(a, relayed_b, b"x"), Out::Drop(DropReason::PeerDenied));
            assert!(matches!(world.send(a, elsewhere, b"x"), Out::ToPeer { .. }));
        } else {
            assert_eq!(world.permit(a, relayed_b), 403);
            assert_eq!(world.send(a, relayed_b, b"x"), Out::Drop(DropReason::NoPermission));
        }
        world.probe();
    }
}

#[test]
fn case_a75_an_opened_address_of_our_own_is_handed_over_too() {
    let mut policy = PeerPolicy::new();
    policy.open_host(Cidr::new("198.41.0.0".parse().unwrap(), 16).unwrap());
    let config = Config { peer_policy: policy, ..world::config() };
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let [(a, relayed_a), (b, relayed_b)] = two_clients(&mut world);
    assert_eq!((world.bind(a, CHANNEL, relayed_b), world.bind(b, CHANNEL, relayed_a)), (0, 0));
    assert_eq!(to_client(world.channel_data(a, CHANNEL, b"in"), b), b"\x40\0\0\x02in");
    let elsewhere = addr("198.41.0.9:9000");
    let Out::ToPeer { peer, .. } = world.send(a, elsewhere, b"out") else { panic!("through the network") };
    assert_eq!(peer, elsewhere);
}

#[test]
fn case_a75_peers_see_external_addresses() {
    let mut world = World::new();
    let (bound, external) = (addr("10.0.0.9:50040"), addr("198.41.0.77:50040"));
    // Behind a NAT clients know each other by the external address.
    for _ in 0..32 {
        let from = SocketAddr::new([192, 0, 2, 9].into(), 1 + world.transactions as u16);
        world.allocate(from);
    }
    world.server.add_relay(RelayId(40), RelayAddress { bound, external }).unwrap();
    let behind = addr("192.0.2.40:1");
    let (_, relayed) = world.allocate(behind);
    assert_eq!(relayed, external);
    assert_eq!(world.bind(behind, CHANNEL, external), 0);
    assert_eq!(to_client(world.channel_data(behind, CHANNEL, b"me"), behind), b"\x40\0\0\x02me");
    assert_eq!(world.permit(behind, bound), 0);
    assert_eq!(world.send(behind, bound, b"x"), Out::Drop(DropReason::PeerDenied), "peers do not know that address");
}

#[test]
fn case_a75_between_workers_the_payload_changes_hands_with_its_path() {
    let shared = Arc::new(Shared::new(world::quotas(), 64, 3));
    let mut workers: Vec<_> = (0..4u16)
        .map(|number| {
            let mut world =
                World::sharing(world::config(), world::capacity(), world::secrets(number as u8), &shared, number);
            for relay in 0..8 {
                let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + number * 100 + relay as u16);
                world.server.add_relay(RelayId(relay), RelayAddress { bound, external: bound }).unwrap();
            }
            world
        })
        .collect();
    let clients: Vec<_> = (0..4u16).map(|number| SocketAddr::new([192, 0, 2, 1].into(), 100 + number)).collect();
    let relayed: Vec<_> = workers.iter_mut().zip(&clients).map(|(world, from)| world.allocate(*from).1).collect();
    for (world, from) in workers.iter_mut().zip(&clients) {
        assert_eq!(world.permit(*from, relayed[0]), 0);
    }
    for source in 0..4 {
        for target in 0..4 {
            let payload = vec![source as u8, target as u8];
            let out = workers[source].send(clients[source], relayed[target], &payload);
            let out = match out {
                Out::ToWorker { worker, path, payload: handed } => {
                    assert_ne!(source, target);
                    assert_eq!((worker, path.peer), (WorkerId(target as u16), relayed[source]));
                    workers[target].peer(path.relay, path.peer, &handed)
                }
                out @ (Out::Reply(_) | Out::ToPeer { .. } | Out::ToClient { .. } | Out::HandOff(_) | Out::Drop(_)) => {
                    out
                }
            };
            let indication = Reading::of(&to_client(out, clients[target]));
            assert_eq!(indication.get(wire::DATA), Some(&payload[..]));
            assert_eq!(indication.address(wire::PEER_ADDRESS), Some(relayed[source]));
        }
    }
    // What arrives after the allocation's end is nobody's.
    assert_eq!(workers[1].ask(clients[1], REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    let PeerPath { relay, peer } = PeerPath { relay: RelayId(0), peer: relayed[0] };
    for relay in [relay, RelayId(u32::from(relayed[1].port() - 50_100))] {
        assert_eq!(workers[1].peer(relay, peer, b"late"), Out::Drop(DropReason::RelayUnallocated));
    }
}
