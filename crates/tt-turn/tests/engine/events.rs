//! Beginnings and ends of allocations, as a driver gets them for records.

use std::collections::HashSet;
use std::net::SocketAddr;

use tt_model::{IpFamily, Nanos};
use tt_turn::config::{GrantReports, PeerLists, RemovedUsers};
use tt_turn::event::{AllocationEnd, AllocationEvent, EndReason, GrantRequest, PEERS_LISTED_MAX, Traffic};
use tt_turn::relay::{RelayAddress, RelayDemand, RelayId};

use super::wire::{ADDITIONAL_FAMILY, ADDRESS_FAMILY, ALLOCATE, LIFETIME, REFRESH, TRANSPORT};
use super::world::{self, UDP, WALL_S, World, addr};

const CLIENT: &str = "192.0.2.1:1";

fn events(world: &mut World) -> Vec<AllocationEvent> {
    std::iter::from_fn(|| world.server.poll_event()).collect()
}

/// The end of the only allocation whose end is reported now.
fn end(world: &mut World) -> AllocationEnd {
    let ends: Vec<_> = events(world).into_iter().filter_map(|event| event.end).collect();
    let [end] = ends[..] else { panic!("{ends:?}") };
    end
}

/// The sockets of ended allocations are there again.
fn return_relays(world: &mut World) {
    while let Some(RelayDemand::Retire(id)) = world.server.poll_relay() {
        let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + id.0 as u16);
        world.server.add_relay(id, RelayAddress { bound, external: bound }).expect("a relay");
    }
}

fn unix(world: &World) -> Nanos {
    let since = world.now.saturating_sub(Nanos::from_secs(5_000));
    Nanos::from_secs(WALL_S).saturating_add(since)
}

#[test]
fn an_end_has_times_reason_traffic_and_peers() {
    let mut world = World::new();
    let (client, peer) = (addr(CLIENT), addr("8.8.8.8:53"));
    world.now = world.now.saturating_add(Nanos(1_234_567));
    let started = unix(&world);
    let (relay, relayed) = world.allocate(client);
    assert_eq!((world.bind(client, 0x4000, peer), world.permit(client, addr("9.9.9.9:9"))), (0, 0));
    for payload in [&b"one"[..], b"two", b"three"] {
        world.channel_data(client, 0x4000, payload);
    }
    world.peer(relay, peer, b"back");
    world.peer(relay, addr("7.7.7.7:7"), b"not relayed");
    world.run_s(7);
    assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    let all = events(&mut world);
    let [AllocationEvent { start, end: None }, AllocationEvent { start: same, end: Some(end) }] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(start, same);
    assert_eq!((start.flow, start.at, start.user.as_bytes()), (world.flow(client), started, &b"alice"[..]));
    assert_eq!((start.relayed, start.first_relayed()), ([Some(relayed), None], Some(relayed)));
    assert_eq!((end.at, end.duration, end.reason), (unix(&world), Nanos::from_secs(7), EndReason::Deleted));
    assert_eq!(end.released[IpFamily::V4 as usize], end.at);
    assert_eq!((end.bytes_to_peers, end.packets_to_peers, end.bytes_to_client, end.packets_to_client), (11, 3, 4, 1));
    assert_eq!((end.peers.listed(), end.peers.others()), (&[peer, addr("9.9.9.9:0")][..], 0));
}

#[test]
fn each_cause_of_an_end_is_named() {
    let mut config = world::config();
    config.removed_users = RemovedUsers::EndAllocations;
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let client = addr(CLIENT);
    world.allocate(client);
    world.run_s(601);
    assert_eq!(end(&mut world).reason, EndReason::Expired);
    let (flow, now) = (world.flow(client), world.now);
    world.allocate(client);
    assert!(world.server.close_flow(now, &flow));
    assert_eq!(end(&mut world).reason, EndReason::ConnectionClosed);
    world.allocate(client);
    assert!(world.server.end_flow(now, &flow, EndReason::Operator));
    assert_eq!(end(&mut world).reason, EndReason::Operator);
    world.allocate(client);
    world.server.replace_secrets(now, &tt_turn::credential::Secrets::new([1; 32], [77; 32]));
    assert_eq!(end(&mut world).reason, EndReason::UserRemoved);
    world.server.replace_secrets(now, &world::secrets(1));
    // An expired allocation that no timer has ended makes room for the next one of its client.
    world.allocate(client);
    world.pass_s(601);
    world.allocate(client);
    assert_eq!(end(&mut world).reason, EndReason::Expired);
    for reason in [EndReason::WorkerFailed, EndReason::Shutdown] {
        world.allocate(addr("192.0.2.9:9"));
        world.server.end_all(world.now, reason);
        let reasons: Vec<_> = events(&mut world).iter().filter_map(|event| Some(event.end?.reason)).collect();
        assert!(!reasons.is_empty() && reasons.iter().all(|one| *one == reason), "{reasons:?}");
    }
}

/// A driver that reads nothing for long: the queue has room for the end of every allocation in the table.
#[test]
fn no_event_is_lost_when_all_allocations_end_at_once() {
    let mut world = World::new();
    let clients: Vec<_> = (1..=32).map(|number| addr(&format!("192.0.2.{number}:1"))).collect();
    for _ in 0..20 {
        for client in &clients {
            world.allocate(*client);
        }
        world.run_s(601);
        return_relays(&mut world);
        let all = events(&mut world);
        let numbers =
            |ended| all.iter().filter(move |event| event.end.is_some() == ended).map(|event| event.start.number);
        assert_eq!((all.len(), numbers(false).count()), (64, 32));
        assert_eq!(numbers(false).collect::<HashSet<_>>(), numbers(true).collect());
    }
    assert_eq!(world.server.events_lost(), 0);
}

/// Without a reader the queue is bounded, and what it has no room for is counted.
#[test]
fn unread_events_are_bounded_and_counted() {
    let mut world = World::new();
    for _ in 0..1_000 {
        world.allocate(addr(CLIENT));
        assert_eq!(world.ask(addr(CLIENT), REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        return_relays(&mut world);
    }
    assert_eq!((events(&mut world).len() as u64, world.server.events_lost()), (1_024 + 64, 2_000 - 1_024 - 64));
}

#[test]
fn peers_are_listed_once_and_the_rest_is_counted() {
    let mut world = World::new();
    let client = addr(CLIENT);
    world.allocate(client);
    let peer = |number: usize, port: u16| addr(&format!("8.8.8.{number}:{port}"));
    for number in 0..PEERS_LISTED_MAX {
        // The second time it is refreshed; the third time it was gone.
        assert_eq!((world.permit(client, peer(number, 1)), world.permit(client, peer(number, 2))), (0, 0));
        world.run_s(301);
        assert_eq!(world.ask(client, REFRESH, &[]).code(), 0);
        assert_eq!(world.permit(client, peer(number, 1)), 0);
        world.run_s(301);
        assert_eq!(world.ask(client, REFRESH, &[]).code(), 0);
    }
    for (channel, port) in [(0x4000, 7), (0x4001, 8)] {
        assert_eq!(world.bind(client, channel, peer(3, port)), 0);
        assert_eq!(world.bind(client, channel, peer(3, port)), 0, "a refresh");
    }
    assert_eq!(world.permit(client, peer(200, 1)), 0);
    world.server.end_all(world.now, EndReason::Shutdown);
    let peers = end(&mut world).peers;
    let expected: Vec<_> = (0..PEERS_LISTED_MAX).map(|number| peer(number, if number == 3 { 7 } else { 0 })).collect();
    assert_eq!((peers.listed(), peers.others()), (&expected[..], 2), "the second channel, and the last permission");
}

/// The address that ends first may be given to another client while the other one lives.
#[test]
fn each_address_of_a_dual_allocation_has_its_own_end() {
    let mut world = World::new();
    for relay in 32..34 {
        let bound = SocketAddr::new("2001:500::9".parse().expect("an address"), 50_000 + relay as u16);
        world.server.add_relay(RelayId(relay), RelayAddress { bound, external: bound }).expect("a relay");
    }
    let client = addr(CLIENT);
    let attributes = [(TRANSPORT, UDP.to_vec()), (ADDITIONAL_FAMILY, vec![2, 0, 0, 0])];
    let reply = world.ask(client, ALLOCATE, &attributes);
    assert_eq!(reply.code(), 0);
    world.run_s(10);
    let first = unix(&world);
    assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4]), (ADDRESS_FAMILY, vec![2, 0, 0, 0])]).code(), 0);
    world.run_s(10);
    assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    let all = events(&mut world);
    let [_, AllocationEvent { start, end: Some(end) }] = &all[..] else { panic!("{all:?}") };
    assert!(start.relayed.iter().all(Option::is_some), "{start:?}");
    assert_eq!((end.released, end.at), ([unix(&world), first], unix(&world)));
}

/// Names of every length come back in the list, at the beginning and at the end, also in a place that had a longer one.
#[test]
fn user_names_of_all_lengths_are_kept_whole() {
    let names = [508, 3, 63, 62, 61, 1, 508]
        .map(|len| "abcdefghijklmnopqrstuvwxyz".chars().cycle().take(len).collect::<String>());
    let mut secrets = world::secrets(1);
    for name in &names {
        secrets.add_user(name.as_bytes(), world::REALM, world::PASSWORD.as_bytes());
    }
    let mut world = World::with(world::config(), world::quotas(), world::capacity(), secrets);
    for name in &names {
        let client = addr(CLIENT);
        assert_eq!(world.ask_as(name, client, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
        let listed: Vec<_> = world.server.live_allocations().map(|live| live.user.to_vec()).collect();
        assert_eq!(listed, [name.as_bytes()]);
        assert_eq!(world.ask_as(name, client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        return_relays(&mut world);
        let seen: Vec<_> = events(&mut world).iter().map(|event| event.start.user.as_bytes().to_vec()).collect();
        assert_eq!(seen, [name.as_bytes(), name.as_bytes()]);
    }
}

#[test]
fn peers_are_listed_only_where_the_driver_wants_them() {
    for (peer_lists, count) in [(PeerLists::Kept, 1), (PeerLists::Omitted, 0)] {
        let mut world = World::with(
            tt_turn::config::Config { peer_lists, ..world::config() },
            world::quotas(),
            world::capacity(),
            world::secrets(1),
        );
        let client = addr(CLIENT);
        world.allocate(client);
        assert_eq!(world.permit(client, addr("8.8.8.8:8")), 0);
        assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        let peers = end(&mut world).peers;
        assert_eq!((peers.listed().len(), peers.others()), (count, 0));
    }
}

#[test]
fn lifetimes_are_reported_before_the_end_and_only_if_asked_for() {
    let lifetime = |s: u32| vec![(LIFETIME, s.to_be_bytes().to_vec())];
    for (grant_reports, reported) in [(GrantReports::Kept, 2), (GrantReports::Omitted, 0)] {
        let config = tt_turn::config::Config { grant_reports, ..world::config() };
        let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
        let client = addr(CLIENT);
        world.allocate(client);
        assert_eq!(world.ask(client, REFRESH, &lifetime(1_800)).code(), 0);
        assert_eq!(world.ask(client, REFRESH, &lifetime(0)).code(), 0);
        let grants: Vec<_> = std::iter::from_fn(|| world.server.poll_grant()).collect();
        let all = events(&mut world);
        let expected = [(all[0].start, GrantRequest::Allocate, 600), (all[0].start, GrantRequest::Refresh, 1_800)];
        let found: Vec<_> = grants.iter().map(|grant| (grant.start, grant.request, grant.lifetime_s)).collect();
        assert_eq!(found, expected[..reported]);
        assert_eq!((all.len(), world.server.grants_lost()), (2, 0));
    }
}

#[test]
fn lifetimes_beyond_the_queue_are_counted() {
    let config = tt_turn::config::Config { grant_reports: GrantReports::Kept, ..world::config() };
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    world.allocate(addr(CLIENT));
    for _ in 0..1_030 {
        assert_eq!(world.ask(addr(CLIENT), REFRESH, &[]).code(), 0);
    }
    assert_eq!(std::iter::from_fn(|| world.server.poll_grant()).count(), 1_024);
    assert_eq!(world.server.grants_lost(), 7);
}

#[test]
fn a_place_has_the_traffic_of_its_allocation() {
    let mut world = World::new();
    let (first, second, peer) = (addr(CLIENT), addr("192.0.2.2:2"), addr("8.8.8.8:53"));
    world.allocate(first);
    let (relay, _) = world.allocate(second);
    assert_eq!(world.bind(second, 0x4000, peer), 0);
    world.channel_data(second, 0x4000, b"three");
    world.channel_data(second, 0x4000, b"two");
    world.peer(relay, peer, b"back");
    let at = |world: &World, place| world.server.traffic_at(place).map(|place| (place.number, place.traffic));
    assert_eq!((world.server.places(), at(&world, 0), at(&world, 2)), (2, Some((0, Traffic::default())), None));
    let expected = Traffic { bytes_to_peers: 8, bytes_to_client: 4, packets_to_peers: 2, packets_to_client: 1 };
    assert_eq!(at(&world, 1), Some((1, expected)));
    assert_eq!(world.server.start_at(1).map(|start| start.flow), Some(world.flow(second)));
    assert_eq!(world.ask(second, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!((at(&world, 1), world.server.start_at(1)), (None, None));
}
