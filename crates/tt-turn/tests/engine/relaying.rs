//! Permissions, channels and data: cases A61 to A75.

use tt_turn::DropReason;
use tt_turn::config::{Capacity, ChannelNumbers, Config, LapsedPermissions};
use tt_turn::relay::RelayId;

use super::wire::{self, CHANNEL_BIND, CHANNEL_NUMBER, CREATE_PERMISSION, DATA, PEER_ADDRESS, Reading, Writer};
use super::world::{self, Out, World, addr};

const FROM: &str = "192.0.2.1:1";

fn world_with_allocation() -> (World, RelayId) {
    let mut world = World::new();
    let (relay, _) = world.allocate(addr(FROM));
    (world, relay)
}

fn peer_host(host: u8) -> std::net::SocketAddr {
    std::net::SocketAddr::new([8, 8, 4, host].into(), 53)
}

#[test]
fn case_a61_create_permission_is_all_or_nothing() {
    let (mut world, _) = world_with_allocation();
    let from = addr(FROM);
    assert_eq!(world.ask(from, CREATE_PERMISSION, &[]).code(), 400);
    let good = world.peer_attr(addr("8.8.8.8:1"));
    let other = world.peer_attr(addr("9.9.9.9:1"));
    let v6 = world.peer_attr(addr("[2a00::1]:1"));
    let denied = world.peer_attr(addr("10.0.0.1:1"));
    assert_eq!(world.ask(from, CREATE_PERMISSION, &[good.clone(), v6]).code(), 443);
    assert_eq!(world.ask(from, CREATE_PERMISSION, &[good.clone(), denied]).code(), 403);
    assert_eq!(world.ask(from, CREATE_PERMISSION, &[good.clone(), (PEER_ADDRESS, vec![0, 1])]).code(), 400);
    assert_eq!(world.send(from, addr("8.8.8.8:1"), b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.ask(from, CREATE_PERMISSION, &[good, other]).code(), 0);
    for peer in ["8.8.8.8:1", "8.8.8.8:65535", "9.9.9.9:2"] {
        assert!(matches!(world.send(from, addr(peer), b"x"), Out::ToPeer { .. }), "the port does not matter");
    }
}

#[test]
fn rfc_r102_an_address_that_occurs_twice_needs_one_permission() {
    let (mut world, _) = world_with_allocation();
    let from = addr(FROM);
    for host in 0..14 {
        assert_eq!(world.permit(from, peer_host(host)), 0);
    }
    let ask = |world: &mut World, hosts: &[u8]| {
        let attrs: Vec<_> = hosts.iter().map(|host| world.peer_attr(peer_host(*host))).collect();
        world.ask(from, CREATE_PERMISSION, &attrs).code()
    };
    // Room for two, and three that are new: none is installed.
    assert_eq!(ask(&mut world, &[20, 21, 20, 22]), 508);
    for host in [20, 21, 22] {
        assert_eq!(world.send(from, peer_host(host), b"x"), Out::Drop(DropReason::NoPermission));
    }
    assert_eq!(ask(&mut world, &[20, 3, 20, 21, 21, 20]), 0);
    for host in [20, 21, 3] {
        assert!(matches!(world.send(from, peer_host(host), b"x"), Out::ToPeer { .. }));
    }
    assert_eq!(ask(&mut world, &[22]), 508);
}

#[test]
fn a_request_names_at_most_256_peers() {
    let (mut world, _) = world_with_allocation();
    let ports = |world: &mut World, count: u16| -> Vec<_> {
        (0..count).map(|number| world.peer_attr((peer_host(1).ip(), 1_024 + number).into())).collect()
    };
    let (all, one_more) = (ports(&mut world, 256), ports(&mut world, 257));
    assert_eq!(world.ask(addr(FROM), CREATE_PERMISSION, &one_more).code(), 508);
    assert_eq!(world.send(addr(FROM), peer_host(1), b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.ask(addr(FROM), CREATE_PERMISSION, &all).code(), 0);
}

#[test]
fn case_a62_one_permission_too_many() {
    let (mut world, _) = world_with_allocation();
    let from = addr(FROM);
    for host in 0..16 {
        assert_eq!(world.permit(from, peer_host(host)), 0);
    }
    assert_eq!(world.permit(from, peer_host(16)), 508);
    assert_eq!(world.bind(from, 0x4000, peer_host(16)), 508);
    assert_eq!(world.permit(from, peer_host(3)), 0, "a refresh needs no room");
    assert_eq!(world.bind(from, 0x4000, peer_host(3)), 0);
    // Several at once that do not fit: none is installed.
    world.run_s(200);
    for host in 0..15 {
        assert_eq!(world.permit(from, peer_host(host)), 0);
    }
    world.run_s(150);
    let two: Vec<_> = [40, 41].map(|host| world.peer_attr(peer_host(host))).to_vec();
    assert_eq!(world.ask(from, CREATE_PERMISSION, &two).code(), 508);
    assert_eq!(world.send(from, peer_host(40), b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.ask(from, CREATE_PERMISSION, &two[..1]).code(), 0);
}

#[test]
fn one_channel_too_many() {
    let capacity = Capacity { channels_per_allocation: 3, ..world::capacity() };
    let mut world = World::with(world::config(), world::quotas(), capacity, world::secrets(1));
    let from = addr(FROM);
    world.allocate(from);
    for number in 0..3 {
        assert_eq!(world.bind(from, 0x4000 + number, peer_host(number as u8)), 0);
    }
    assert_eq!(world.bind(from, 0x4003, peer_host(3)), 508);
    assert_eq!(world.send(from, peer_host(3), b"x"), Out::Drop(DropReason::NoPermission), "no permission either");
    assert_eq!(world.bind(from, 0x4001, peer_host(1)), 0);
}

#[test]
fn a_full_table_of_the_worker_is_508() {
    let capacity = Capacity { permissions: 1, channels: 1, ..world::capacity() };
    let mut world = World::with(world::config(), world::quotas(), capacity, world::secrets(1));
    let (one, two) = (addr("192.0.2.1:1"), addr("192.0.2.1:2"));
    world.allocate(one);
    world.allocate(two);
    assert_eq!(world.bind(one, 0x4000, peer_host(1)), 0);
    assert_eq!(world.permit(two, peer_host(1)), 508);
    assert_eq!(world.ask(one, wire::REFRESH, &[(wire::LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.bind(two, 0x4000, peer_host(1)), 0, "what an allocation held comes back with its end");
}

#[test]
fn case_a65_peer_port_zero() {
    let (mut world, _) = world_with_allocation();
    let (from, peer) = (addr(FROM), addr("8.8.8.8:0"));
    assert_eq!(world.bind(from, 0x4000, peer), 403);
    assert_eq!(world.permit(from, peer), 0, "a permission has no port");
    assert_eq!(world.send(from, peer, b"x"), Out::Drop(DropReason::PeerDenied));
    assert_eq!(world.ask(from, wire::REFRESH, &[]).code(), 0);
}

#[test]
fn case_a66_channel_numbers() {
    let (mut world, _) = world_with_allocation();
    let from = addr(FROM);
    for number in [0x0000, 0x3FFF, 0x5000, 0x7FFF, 0xFFFF] {
        assert_eq!(world.bind(from, number, peer_host(1)), 400, "{number:x}");
    }
    assert_eq!(world.bind(from, 0x4000, peer_host(1)), 0);
    assert_eq!(world.bind(from, 0x4FFF, peer_host(2)), 0);
    assert_eq!(world.bind(from, 0x4000, peer_host(2)), 400);
    assert_eq!(world.bind(from, 0x4001, peer_host(1)), 400);
    assert_eq!(world.bind(from, 0x4000, peer_host(1)), 0);
    let same_ip = std::net::SocketAddr::new(peer_host(1).ip(), 54);
    assert_eq!(world.bind(from, 0x4002, same_ip), 0, "another port is another peer");
    let peer = world.peer_attr(peer_host(5));
    for number in [vec![], vec![0x40, 0], vec![0x40, 0, 0], vec![0x40, 0, 0, 0, 0]] {
        assert_eq!(world.ask(from, CHANNEL_BIND, &[(CHANNEL_NUMBER, number), peer.clone()]).code(), 400);
    }
    assert_eq!(world.ask(from, CHANNEL_BIND, &[peer]).code(), 400);
    assert_eq!(world.ask(from, CHANNEL_BIND, &[(CHANNEL_NUMBER, vec![0x40, 9, 0, 0])]).code(), 400);
    assert_eq!(world.bind(from, 0x4010, addr("[2a00::1]:1")), 443);
    assert_eq!(world.bind(from, 0x4010, addr("127.0.0.1:1")), 403);
}

#[test]
fn rfc5766_numbers_where_they_are_admitted() {
    let mut config = world::config();
    config.channel_numbers = ChannelNumbers::Rfc5766;
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let from = addr(FROM);
    let (relay, _) = world.allocate(from);
    assert_eq!(world.bind(from, 0x7FFF, peer_host(1)), 0);
    assert_eq!(world.bind(from, 0x8000, peer_host(2)), 400);
    let payload = b"high".to_vec();
    assert_eq!(world.channel_data(from, 0x7FFF, &payload), Out::ToPeer { relay, peer: peer_host(1), payload });
}

#[test]
fn case_a67_channel_and_permission_lifetimes() {
    let config = Config { lapsed_permissions: LapsedPermissions::ChannelStops, ..world::config() };
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let (relay, _) = world.allocate(addr(FROM));
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.ask(from, wire::REFRESH, &[(wire::LIFETIME, 3_600u32.to_be_bytes().to_vec())]).code(), 0);
    assert_eq!(world.bind(from, 0x4000, peer), 0);
    world.pass_s(299);
    assert!(matches!(world.channel_data(from, 0x4000, b"x"), Out::ToPeer { .. }));
    assert!(matches!(world.peer(relay, peer, b"x"), Out::ToClient { .. }));
    world.pass_s(1);
    // Neither data nor a Refresh has extended the permission.
    assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.peer(relay, peer, b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.permit(from, peer), 0);
    world.run_s(299);
    assert!(matches!(world.channel_data(from, 0x4000, b"x"), Out::ToPeer { .. }), "599 s after the binding");
    world.run_s(1);
    assert_eq!(world.permit(from, peer), 0);
    assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::Drop(DropReason::ChannelUnbound));
    let Out::ToClient { bytes, .. } = world.peer(relay, peer, b"x") else { panic!("not relayed") };
    assert_eq!(Reading::of(&bytes).method, wire::DATA_METHOD, "unbound: a Data indication again");
}

/// aioice refreshes its channels every 500 s and asks for no permission.
#[test]
fn a_channel_relays_to_its_peer_without_a_permission() {
    let (mut world, relay) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.ask(from, wire::REFRESH, &[(wire::LIFETIME, 3_600u32.to_be_bytes().to_vec())]).code(), 0);
    assert_eq!(world.bind(from, 0x4000, peer), 0);
    for _ in 0..3 {
        world.run_s(500);
        let payload = b"x".to_vec();
        assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::ToPeer { relay, peer, payload });
        assert!(matches!(world.peer(relay, peer, b"x"), Out::ToClient { .. }));
        // The address has no permission: neither its other ports nor Send indications relay.
        let other = std::net::SocketAddr::new(peer.ip(), peer.port() + 1);
        assert_eq!(world.peer(relay, other, b"x"), Out::Drop(DropReason::NoPermission));
        assert_eq!(world.send(from, peer, b"x"), Out::Drop(DropReason::NoPermission));
        assert_eq!(world.bind(from, 0x4000, peer), 0, "its refresh");
    }
    world.run_s(600);
    assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::Drop(DropReason::ChannelUnbound));
    assert_eq!(world.peer(relay, peer, b"x"), Out::Drop(DropReason::NoPermission));
}

#[test]
fn rfc_r095_a_refresh_returns_its_lifetime_and_refreshes_no_permission() {
    let (mut world, relay) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.permit(from, peer), 0);
    for _ in 0..3 {
        world.pass_s(99);
        let reply = world.ask(from, wire::REFRESH, &[(wire::LIFETIME, 1_234u32.to_be_bytes().to_vec())]);
        assert_eq!((reply.code(), reply.lifetime()), (0, Some(1_234)));
    }
    world.pass_s(2);
    assert!(matches!(world.send(from, peer, b"x"), Out::ToPeer { .. }), "299 s");
    world.pass_s(1);
    assert_eq!(world.send(from, peer, b"x"), Out::Drop(DropReason::NoPermission), "300 s");
    assert_eq!(world.peer(relay, peer, b"x"), Out::Drop(DropReason::NoPermission), "300 s");
    world.probe();
}

#[test]
fn an_expired_binding_gives_way_at_once() {
    let (mut world, _) = world_with_allocation();
    let from = addr(FROM);
    assert_eq!(world.ask(from, wire::REFRESH, &[(wire::LIFETIME, 3_600u32.to_be_bytes().to_vec())]).code(), 0);
    assert_eq!(world.bind(from, 0x4000, peer_host(1)), 0);
    assert_eq!(world.bind(from, 0x4001, peer_host(2)), 0);
    world.pass_s(600);
    assert_eq!(world.bind(from, 0x4000, peer_host(2)), 0, "both parts of the pair were another's");
    assert_eq!(world.bind(from, 0x4001, peer_host(1)), 0);
}

#[test]
fn rfc_r111_binding_refreshes_channel_and_permission() {
    let (mut world, _) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.ask(from, wire::REFRESH, &[(wire::LIFETIME, 3_600u32.to_be_bytes().to_vec())]).code(), 0);
    for _ in 0..8 {
        assert_eq!(world.bind(from, 0x4000, peer), 0);
        world.run_s(299);
        assert!(matches!(world.channel_data(from, 0x4000, b"x"), Out::ToPeer { .. }));
    }
}

#[test]
fn case_a68_send() {
    let (mut world, relay) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.send(from, peer, b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.permit(from, peer), 0);
    let tid = world.tid();
    world.dropped(from, &Writer::new(wire::SEND, 1, tid).attr(DATA, b"x").0, DropReason::SendMalformed);
    world.dropped(from, &Writer::new(wire::SEND, 1, tid).address(PEER_ADDRESS, peer).0, DropReason::SendMalformed);
    for payload in [&b""[..], b"x", b"four", &[7; 1_400]] {
        assert_eq!(world.send(from, peer, payload), Out::ToPeer { relay, peer, payload: payload.to_vec() });
    }
}

#[test]
fn case_a11_the_first_peer_of_two_counts() {
    let (mut world, relay) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.permit(from, peer), 0);
    let tid = world.tid();
    let send = |first, second| {
        Writer::new(wire::SEND, 1, tid).address(PEER_ADDRESS, first).address(PEER_ADDRESS, second).attr(DATA, b"x").0
    };
    world.dropped(from, &send(peer_host(2), peer), DropReason::NoPermission);
    assert_eq!(world.client(from, &send(peer, peer_host(2))), Out::ToPeer { relay, peer, payload: b"x".to_vec() });
}

#[test]
fn case_a69_channel_data() {
    let (mut world, relay) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.bind(from, 0x4001, peer), 0);
    for len in 0..4 {
        world.dropped(from, &[0x40, 1, 0, 0][..len], DropReason::Short);
    }
    world.dropped(from, &[0x40, 1, 0, 5, 1, 2, 3, 4], DropReason::ChannelLength);
    world.dropped(from, &[0x40, 1, 0xFF, 0xFF], DropReason::ChannelLength);
    world.dropped(from, &[0x40, 2, 0, 0], DropReason::ChannelUnbound);
    world.dropped(addr("192.0.2.1:2"), &[0x40, 1, 0, 0], DropReason::NoAllocation);
    assert_eq!(world.client(from, &[0x40, 1, 0, 0]), Out::ToPeer { relay, peer, payload: vec![] });
    let padded = [0x40, 1, 0, 1, 0xAB, 0, 0, 0];
    assert_eq!(world.client(from, &padded), Out::ToPeer { relay, peer, payload: vec![0xAB] });
}

#[test]
fn rfc_r106_data_from_peers_comes_on_the_channel_or_as_an_indication() {
    let (mut world, relay) = world_with_allocation();
    let from = addr(FROM);
    let (bound, permitted) = (peer_host(1), peer_host(2));
    assert_eq!(world.bind(from, 0x4ABC, bound), 0);
    assert_eq!(world.permit(from, permitted), 0);
    for len in [0, 1, 2, 3, 4, 5, 1_200] {
        let payload = vec![0x77; len];
        let channel = [&[0x4A, 0xBC][..], &(len as u16).to_be_bytes(), &payload].concat();
        assert_eq!(world.peer(relay, bound, &payload), Out::ToClient { client: from, bytes: channel });
        // The bound peer's address from another port is no channel.
        for peer in [permitted, std::net::SocketAddr::new(bound.ip(), 9)] {
            let Out::ToClient { client, bytes } = world.peer(relay, peer, &payload) else { panic!("not relayed") };
            let reading = Reading::of(&bytes);
            assert_eq!((client, reading.method, reading.class), (from, wire::DATA_METHOD, 1));
            assert_eq!(reading.kinds(), [PEER_ADDRESS, DATA]);
            assert_eq!((reading.address(PEER_ADDRESS), reading.get(DATA)), (Some(peer), Some(&payload[..])));
        }
    }
    assert_eq!(world.peer(relay, peer_host(3), b"x"), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.peer(RelayId(31 - relay.0.min(30)), bound, b"x"), Out::Drop(DropReason::RelayUnallocated));
    assert_eq!(world.peer(RelayId(1_000_000), bound, b"x"), Out::Drop(DropReason::RelayUnallocated));
}

#[test]
fn case_a73_large_packets_are_relayed_whole_or_dropped() {
    let (mut world, relay) = world_with_allocation();
    let from = addr(FROM);
    assert_eq!(world.bind(from, 0x4000, peer_host(1)), 0);
    assert_eq!(world.permit(from, peer_host(2)), 0);
    for (peer, most) in [(peer_host(1), 65_507 - 4), (peer_host(2), 65_507 - 36 - 3)] {
        assert!(matches!(world.peer(relay, peer, &vec![1; most]), Out::ToClient { .. }), "{most}");
        for len in [most + 4, 65_507, 65_527, 65_535, 65_536] {
            assert_eq!(world.peer(relay, peer, &vec![1; len]), Out::Drop(DropReason::TooLarge), "{len}");
        }
    }
}

#[test]
fn rfc_r098_a_relay_serves_no_one_after_its_allocation() {
    let (mut world, relay) = world_with_allocation();
    let (from, peer) = (addr(FROM), peer_host(1));
    assert_eq!(world.permit(from, peer), 0);
    world.pass_s(600);
    assert_eq!(world.peer(relay, peer, b"x"), Out::Drop(DropReason::RelayUnallocated), "expired, not yet ended");
    world.run_s(1);
    assert_eq!(world.peer(relay, peer, b"x"), Out::Drop(DropReason::RelayUnallocated), "resting");
    // The next allocation on the flow has none of the permissions of the last.
    world.allocate(from);
    assert_eq!(world.send(from, peer, b"x"), Out::Drop(DropReason::NoPermission));
}
