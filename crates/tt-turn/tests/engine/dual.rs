//! Allocations with a relayed address of each family (RFC 8656 sections 7.2, 8.1 and 8.2): cases A46 and A59.

use std::net::SocketAddr;
use std::sync::Arc;

use tt_turn::DropReason;
use tt_turn::relay::{RelayAddress, RelayDemand, RelayId};
use tt_turn::shared::{Quotas, Shared};

use super::wire::{
    self, ADDITIONAL_FAMILY, ADDRESS_ERROR_CODE, ADDRESS_FAMILY, ALLOCATE, CREATE_PERMISSION, LIFETIME, MAPPED_ADDRESS,
    REFRESH, RELAYED_ADDRESS, Reading, TRANSPORT,
};
use super::world::{self, Out, UDP, World, addr, key};

const FROM: &str = "192.0.2.1:1";
const PEER_V4: &str = "8.8.8.8:53";
const PEER_V6: &str = "[2606:4700::1]:53";
const V4: [u8; 4] = [1, 0, 0, 0];
const V6: [u8; 4] = [2, 0, 0, 0];

fn add_relay(world: &mut World, number: u32, bound: &str) {
    let bound = addr(bound);
    world.server.add_relay(RelayId(number), RelayAddress { bound, external: bound }).expect("a relay");
}

/// A world without relays.
fn bare() -> World {
    let shared = Arc::new(Shared::new(world::quotas(), 64, 9));
    World::sharing(world::config(), world::capacity(), world::secrets(1), &shared, 0)
}

fn both() -> [(u16, Vec<u8>); 2] {
    [(TRANSPORT, UDP.to_vec()), (ADDITIONAL_FAMILY, V6.to_vec())]
}

fn relayed(reply: &Reading) -> Vec<SocketAddr> {
    let of = |(kind, value): &(u16, Vec<u8>)| {
        let one = Reading { attrs: vec![(*kind, value.clone())], ..reply.clone() };
        one.address(RELAYED_ADDRESS)
    };
    reply.attrs.iter().filter_map(of).collect()
}

/// A world with a dual allocation of `FROM`; the relays of IPv4 and of IPv6.
fn dual_world() -> (World, RelayId, RelayId) {
    let mut world = World::new();
    add_relay(&mut world, 40, "[2a00::9]:50040");
    let reply = world.ask(addr(FROM), ALLOCATE, &both());
    let [v4, v6] = relayed(&reply)[..] else { panic!("{reply:?}") };
    assert_eq!(v6, addr("[2a00::9]:50040"));
    (world, RelayId(u32::from(v4.port() - 50_000)), RelayId(40))
}

fn refresh(world: &mut World, family: Option<[u8; 4]>, lifetime_s: u32) -> (u16, Option<u32>) {
    let mut attrs = vec![(LIFETIME, lifetime_s.to_be_bytes().to_vec())];
    attrs.extend(family.map(|family| (ADDRESS_FAMILY, family.to_vec())));
    let reply = world.ask(addr(FROM), REFRESH, &attrs);
    (reply.code(), reply.lifetime())
}

#[test]
fn rfc_r084_a_dual_allocation_has_an_address_of_each_family() {
    let mut world = World::new();
    add_relay(&mut world, 40, "[2a00::9]:50040");
    let reply = world.ask(addr(FROM), ALLOCATE, &both());
    assert_eq!(reply.code(), 0);
    assert_eq!(reply.kinds(), [RELAYED_ADDRESS, RELAYED_ADDRESS, MAPPED_ADDRESS, LIFETIME, wire::INTEGRITY]);
    let [v4, v6] = relayed(&reply)[..] else { panic!("{reply:?}") };
    assert!(v4.is_ipv4() && v6 == addr("[2a00::9]:50040"));
    assert_eq!((world.server.allocations(), world.server.counters().allocations_made), (1, 1));
    let live: Vec<_> = world.server.live_allocations().map(|live| (live.relayed, live.relayed_second)).collect();
    assert_eq!(live, [(v4, Some(v6))]);
}

#[test]
fn a_dual_allocation_relays_over_both_families() {
    let (mut world, v4, v6) = dual_world();
    let from = addr(FROM);
    for (relay, other, peer) in [(v4, v6, addr(PEER_V4)), (v6, v4, addr(PEER_V6))] {
        assert_eq!(world.send(from, peer, b"x"), Out::Drop(DropReason::NoPermission));
        assert_eq!(world.permit(from, peer), 0);
        assert_eq!(world.send(from, peer, b"x"), Out::ToPeer { relay, peer, payload: b"x".to_vec() });
        let Out::ToClient { bytes, client } = world.peer(relay, peer, b"y") else { panic!("not relayed") };
        assert_eq!((Reading::of(&bytes).address(wire::PEER_ADDRESS), client), (Some(peer), from));
        assert_eq!(world.peer(other, peer, b"y"), Out::Drop(DropReason::RelayUnallocated), "not its family's relay");
        let number = if peer.is_ipv4() { 0x4000 } else { 0x4001 };
        assert_eq!(world.bind(from, number, peer), 0);
        assert_eq!(world.channel_data(from, number, b"z"), Out::ToPeer { relay, peer, payload: b"z".to_vec() });
        assert!(
            matches!(world.peer(relay, peer, b""), Out::ToClient { bytes, .. } if bytes[..2] == number.to_be_bytes())
        );
    }
    // Both families in one request; a channel's number is the client's, whatever the family.
    let peers = [addr("8.8.4.4:9"), addr("[2606:4700::2]:9")].map(|peer| world.peer_attr(peer));
    assert_eq!(world.ask(from, CREATE_PERMISSION, &peers).code(), 0);
    assert_eq!(world.bind(from, 0x4000, addr(PEER_V6)), 400);
    assert_eq!(world.bind(from, 0x4001, addr(PEER_V4)), 400);
    let live: Vec<_> = world.server.live_allocations().map(|live| (live.permissions, live.channels)).collect();
    assert_eq!(live, [(4, 2)]);
}

#[test]
fn rfc_r083_what_is_only_half_to_be_had_says_which_half_and_why() {
    // Not served at all.
    let mut world = World::new();
    let reply = world.ask(addr(FROM), ALLOCATE, &both());
    assert_eq!((reply.code(), reply.get(ADDRESS_ERROR_CODE)), (0, Some(&[2, 0, 4, 40][..])));
    assert!(matches!(relayed(&reply)[..], [SocketAddr::V4(_)]));
    // Served and exhausted.
    let (mut world, ..) = dual_world();
    let reply = world.ask(addr("192.0.2.1:2"), ALLOCATE, &both());
    assert_eq!((reply.code(), reply.get(ADDRESS_ERROR_CODE)), (0, Some(&[2, 0, 5, 8][..])));
    assert!(matches!(relayed(&reply)[..], [SocketAddr::V4(_)]));
    // The other half.
    let mut world = bare();
    add_relay(&mut world, 0, "198.41.0.9:50000");
    add_relay(&mut world, 1, "[2a00::9]:50001");
    add_relay(&mut world, 2, "[2a00::9]:50002");
    assert_eq!(relayed(&world.ask(addr(FROM), ALLOCATE, &both())).len(), 2);
    let from = addr("192.0.2.1:2");
    let request = world.unsigned(from, "alice", ALLOCATE, &both()).integrity(&key("alice")).0;
    let reply = world.client(from, &request).reply();
    assert_eq!((reply.code(), reply.get(ADDRESS_ERROR_CODE)), (0, Some(&[1, 0, 5, 8][..])));
    assert!(matches!(relayed(&reply)[..], [SocketAddr::V6(_)]));
    assert_eq!(world.client(from, &request).reply().bytes, reply.bytes, "its retransmission");
    assert_eq!(world.permit(from, addr(PEER_V4)), 443);
    assert_eq!(world.permit(from, addr(PEER_V6)), 0);
    // Nothing of it.
    assert_eq!(world.ask(addr("192.0.2.1:3"), ALLOCATE, &both()).code(), 508);
}

#[test]
fn rfc_r078_rfc_r079_a_server_without_ipv4() {
    let mut world = bare();
    add_relay(&mut world, 0, "[2a00::9]:50000");
    let transport = (TRANSPORT, UDP.to_vec());
    assert_eq!(world.ask(addr(FROM), ALLOCATE, std::slice::from_ref(&transport)).code(), 440);
    assert_eq!(world.ask(addr(FROM), ALLOCATE, &[transport.clone(), (ADDRESS_FAMILY, V4.to_vec())]).code(), 440);
    assert_eq!(world.ask(addr(FROM), ALLOCATE, &both()).code(), 440);
    assert_eq!(world.ask(addr(FROM), ALLOCATE, &[transport, (ADDRESS_FAMILY, V6.to_vec())]).code(), 0);
}

#[test]
fn case_a55_the_retransmission_of_a_dual_allocate_gets_both_addresses() {
    let mut world = World::new();
    add_relay(&mut world, 40, "[2a00::9]:50040");
    let request = world.unsigned(addr(FROM), "alice", ALLOCATE, &both()).integrity(&key("alice")).0;
    let first = world.client(addr(FROM), &request).reply();
    assert_eq!(world.client(addr(FROM), &request).reply().bytes, first.bytes);
    assert_eq!(relayed(&first).len(), 2);
}

#[test]
fn rfc_r092_rfc_r094_case_a59_a_refresh_of_one_family_leaves_the_other() {
    let (mut world, v4, v6) = dual_world();
    let from = addr(FROM);
    assert_eq!((world.bind(from, 0x4000, addr(PEER_V4)), world.bind(from, 0x4001, addr(PEER_V6))), (0, 0));
    assert_eq!(refresh(&mut world, Some([3, 0, 0, 0]), 600).0, 443);
    assert_eq!(refresh(&mut world, Some(V4), 0), (0, Some(0)));
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(v4)));
    assert_eq!(world.server.poll_relay(), None);
    assert_eq!(world.permit(from, addr(PEER_V4)), 443);
    assert_eq!(world.bind(from, 0x4002, addr(PEER_V4)), 443);
    assert_eq!(world.send(from, addr(PEER_V4), b"x"), Out::Drop(DropReason::SendMalformed));
    assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::Drop(DropReason::ChannelUnbound));
    assert_eq!(world.peer(v4, addr(PEER_V4), b"x"), Out::Drop(DropReason::RelayUnallocated));
    // The other family has lost nothing.
    assert!(matches!(world.channel_data(from, 0x4001, b"x"), Out::ToPeer { relay, .. } if relay == v6));
    assert!(matches!(world.peer(v6, addr(PEER_V6), b"x"), Out::ToClient { .. }));
    // What is gone is not refreshed; the number of its channel is free.
    assert_eq!(refresh(&mut world, Some(V4), 600).0, 443);
    assert_eq!(refresh(&mut world, Some(V4), 0).0, 443);
    assert_eq!(world.bind(from, 0x4000, addr("[2606:4700::2]:53")), 0);
    assert_eq!(world.server.allocations(), 1);
    assert_eq!(refresh(&mut world, Some(V6), 0), (0, Some(0)));
    assert_eq!(refresh(&mut world, None, 600).0, 437);
    assert_eq!((world.server.allocations(), world.server.poll_timeout()), (0, None));
    world.probe();
}

#[test]
fn rfc_r093_a_refresh_without_a_family_is_about_both() {
    let (mut world, ..) = dual_world();
    assert_eq!(refresh(&mut world, None, 1_200), (0, Some(1_200)));
    world.run_s(1_199);
    assert_eq!((world.permit(addr(FROM), addr(PEER_V4)), world.permit(addr(FROM), addr(PEER_V6))), (0, 0));
    assert_eq!(refresh(&mut world, None, 0), (0, Some(0)));
    assert_eq!(refresh(&mut world, None, 0).0, 437);
    let retired = std::iter::from_fn(|| world.server.poll_relay()).count();
    assert_eq!((retired, world.server.counters().allocations_ended), (2, 1));
}

#[test]
fn each_family_expires_by_itself() {
    let (mut world, v4, v6) = dual_world();
    let from = addr(FROM);
    assert_eq!(refresh(&mut world, Some(V6), 1_200), (0, Some(1_200)));
    world.pass_s(599);
    assert_eq!((world.bind(from, 0x4000, addr(PEER_V4)), world.bind(from, 0x4001, addr(PEER_V6))), (0, 0));
    world.pass_s(1);
    // handle_timeout has not been called yet, and it has expired.
    assert_eq!(world.permit(from, addr(PEER_V4)), 443);
    assert_eq!(world.send(from, addr(PEER_V4), b"x"), Out::Drop(DropReason::SendMalformed));
    assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::Drop(DropReason::NoAllocation));
    assert_eq!(world.peer(v4, addr(PEER_V4), b"x"), Out::Drop(DropReason::RelayUnallocated));
    assert_eq!(refresh(&mut world, Some(V4), 600).0, 443);
    world.run_s(1);
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(v4)));
    assert!(matches!(world.channel_data(from, 0x4001, b"x"), Out::ToPeer { relay, .. } if relay == v6));
    assert_eq!(world.server.allocations(), 1);
    world.run_s(600);
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(v6)));
    assert_eq!((world.server.allocations(), world.server.poll_timeout()), (0, None));
}

#[test]
fn the_caps_of_an_allocation_are_over_both_families() {
    let (mut world, ..) = dual_world();
    let from = addr(FROM);
    for host in 0..8 {
        assert_eq!(world.permit(from, SocketAddr::new([8, 8, 4, host].into(), 1)), 0);
        assert_eq!(world.permit(from, SocketAddr::new([0x2606, 0x4700, 0, 0, 0, 0, 0, u16::from(host)].into(), 1)), 0);
    }
    assert_eq!((world.permit(from, addr("9.9.9.9:1")), world.permit(from, addr("[2606:4700::99]:1"))), (508, 508));
}

#[test]
fn a_dual_allocation_is_one_of_the_users_quota() {
    let quotas = Quotas { allocations_per_user: 1, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    add_relay(&mut world, 40, "[2a00::9]:50040");
    assert_eq!(relayed(&world.ask(addr(FROM), ALLOCATE, &both())).len(), 2);
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &both()).code(), 486);
    assert_eq!(refresh(&mut world, Some(V4), 0).0, 0);
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &both()).code(), 486, "the other half is still there");
    assert_eq!(refresh(&mut world, None, 0).0, 0);
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &both()).code(), 0);
}

/// Clients and relayed addresses of either family, in all four combinations, with a channel and an indication each way.
#[test]
fn rfc_r066_clients_and_relays_of_either_family() {
    let mut world = World::new();
    add_relay(&mut world, 40, "[2a00::9]:50040");
    add_relay(&mut world, 41, "[2a00::9]:50041");
    for (client, family, peer) in [
        ("192.0.2.1:1", V4, PEER_V4),
        ("192.0.2.1:2", V6, PEER_V6),
        ("[2a02::5]:1", V4, PEER_V4),
        ("[2a02::5]:2", V6, PEER_V6),
    ] {
        let (from, peer) = (addr(client), addr(peer));
        world.listener = addr(if from.is_ipv4() { "198.41.0.9:3478" } else { "[2a00::9]:3478" });
        let attrs = [(TRANSPORT, UDP.to_vec()), (ADDRESS_FAMILY, family.to_vec())];
        let reply = world.ask(from, ALLOCATE, &attrs);
        assert_eq!((reply.code(), reply.address(MAPPED_ADDRESS)), (0, Some(from)));
        let relayed = reply.address(RELAYED_ADDRESS).expect("an address");
        assert_eq!(relayed.is_ipv4(), peer.is_ipv4());
        let relay = RelayId(u32::from(relayed.port() - 50_000));
        assert_eq!(world.permit(from, peer), 0);
        assert_eq!(world.send(from, peer, b"out"), Out::ToPeer { relay, peer, payload: b"out".to_vec() });
        let Out::ToClient { bytes, .. } = world.peer(relay, peer, b"in") else { panic!("not relayed") };
        assert_eq!(Reading::of(&bytes).address(wire::PEER_ADDRESS), Some(peer));
        assert_eq!(world.bind(from, 0x4000, peer), 0);
        assert_eq!(world.channel_data(from, 0x4000, b"out"), Out::ToPeer { relay, peer, payload: b"out".to_vec() });
        let in_channel = Out::ToClient { client: from, bytes: b"\x40\x00\x00\x02in".to_vec() };
        assert_eq!(world.peer(relay, peer, b"in"), in_channel);
        assert_eq!(world.permit(from, addr(if peer.is_ipv4() { PEER_V6 } else { PEER_V4 })), 443);
    }
}
