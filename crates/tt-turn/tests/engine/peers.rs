//! The peer policy at the verbs: cases A57, A63 and A75.

use std::net::SocketAddr;

use tt_turn::DropReason;
use tt_turn::policy::{PeerPolicy, PeerRange};
use tt_turn::relay::{RelayAddress, RelayId};

use super::wire::{self, CREATE_PERMISSION};
use super::world::{self, Out, World, addr};

const FROM: &str = "192.0.2.1:1";

fn add_v6_relay(world: &mut World) {
    let bound = addr("[2a00::9]:50040");
    world.server.add_relay(RelayId(40), RelayAddress { bound, external: bound }).expect("a relay");
}

/// A world with an IPv4 allocation of `FROM`, and an IPv6 one of the next port.
fn dual_world(config: tt_turn::config::Config) -> (World, SocketAddr, SocketAddr) {
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    add_v6_relay(&mut world);
    let (v4, v6) = (addr(FROM), addr("192.0.2.1:2"));
    world.allocate(v4);
    let attrs = [(wire::TRANSPORT, world::UDP.to_vec()), (wire::ADDRESS_FAMILY, vec![2, 0, 0, 0])];
    assert_eq!(world.ask(v6, wire::ALLOCATE, &attrs).code(), 0);
    (world, v4, v6)
}

#[test]
fn case_a63_every_verb_refuses_every_denied_peer() {
    let (mut world, v4, v6) = dual_world(world::config());
    let mut refused = 0;
    for denied in [
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "168.63.129.16",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "2002:7f00:1::",
        "2001:0:1::1",
        "2a00::5efe:10.0.0.1",
    ] {
        let ip: std::net::IpAddr = denied.parse().expect("an address");
        let peer = SocketAddr::new(ip, 4_000);
        let from = if ip.is_ipv4() { v4 } else { v6 };
        assert_eq!(world.permit(from, peer), 403, "{denied}");
        assert_eq!(world.bind(from, 0x4000, peer), 403, "{denied}");
        assert!(matches!(world.send(from, peer, b"x"), Out::Drop(DropReason::NoPermission)), "{denied}");
        refused += 2;
    }
    assert_eq!(world.server.policy_hits().map(|(_, hits)| hits).sum::<u64>(), refused);
    let loopback = world.server.policy_hits().find(|(rule, _)| rule.to_string() == "deny 127.0.0.0/8 (built-in)");
    assert_eq!(loopback.map(|(_, hits)| hits), Some(2));
    world.probe();
}

/// A permission has no port (RFC 8656 section 9): rules with ports are applied to ChannelBind and to every datagram.
#[test]
fn rules_with_ports_hold_for_channels_and_for_datagrams_both_ways() {
    let mut config = world::config();
    config.peer_policy.deny("8.8.8.0/24:0-1023".parse::<PeerRange>().expect("a range"));
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let client = addr("192.0.2.1:1");
    let (relay, _) = world.allocate(client);
    let (closed, open) = (addr("8.8.8.8:1023"), addr("8.8.8.8:1024"));
    assert_eq!((world.permit(client, closed), world.permit(client, open)), (0, 0));
    assert_eq!((world.bind(client, 0x4000, closed), world.bind(client, 0x4000, open)), (403, 0));
    assert!(matches!(world.channel_data(client, 0x4000, b"x"), Out::ToPeer { .. }));
    assert!(matches!(world.send(client, open, b"x"), Out::ToPeer { .. }));
    assert_eq!(world.send(client, closed, b"x"), Out::Drop(DropReason::PeerDenied));
    assert!(matches!(world.peer(relay, open, b"x"), Out::ToClient { .. }));
    assert_eq!(world.peer(relay, closed, b"x"), Out::Drop(DropReason::PeerDenied));
    let hits = world.server.policy_hits().find(|(rule, _)| rule.to_string() == "deny 8.8.8.0/24:0-1023");
    assert_eq!(hits.map(|(_, hits)| hits), Some(3));
    // A reload that closes the port of a bound channel ends its traffic, not the permission.
    let mut policy = PeerPolicy::new();
    policy.deny("8.8.8.8:1024".parse::<PeerRange>().expect("a range"));
    world.server.replace_policy(policy);
    assert_eq!(world.channel_data(client, 0x4000, b"x"), Out::Drop(DropReason::PeerDenied));
    assert!(matches!(world.send(client, closed, b"x"), Out::ToPeer { .. }));
    world.probe();
}

#[test]
fn opened_ranges_are_reached() {
    let mut config = world::config();
    config.peer_policy.allow("127.0.0.0/8".parse::<PeerRange>().expect("a range"));
    config.peer_policy.allow("fd00::/8".parse::<PeerRange>().expect("a range"));
    config.peer_policy.deny_listener(addr("127.0.0.1:9641"));
    let (mut world, v4, v6) = dual_world(config);
    assert_eq!(world.permit(v4, addr("127.0.0.1:5")), 0);
    assert!(matches!(world.send(v4, addr("127.0.0.1:5"), b"x"), Out::ToPeer { .. }));
    assert_eq!(world.bind(v6, 0x4000, addr("[fd00::1]:5")), 0);
    assert_eq!(world.permit(v4, addr("10.0.0.1:5")), 403);
    // The host's own listener stays closed on every verb that names its port.
    let listener = addr("127.0.0.1:9641");
    assert_eq!(world.bind(v4, 0x4001, listener), 403);
    assert_eq!(world.send(v4, listener, b"x"), Out::Drop(DropReason::PeerDenied));
}

#[test]
fn case_a75_two_allocations_reach_each_other_and_only_each_other() {
    // Relays on loopback, which the built-in list denies: what `serve` does on one machine.
    let mut world = World::sharing(
        world::config(),
        world::capacity(),
        world::secrets(1),
        &std::sync::Arc::new(tt_turn::shared::Shared::new(world::quotas(), 64, 1)),
        0,
    );
    for number in 0..3 {
        let bound = addr(&format!("127.0.0.1:{}", 50_000 + number));
        world.server.add_relay(RelayId(number), RelayAddress { bound, external: bound }).expect("a relay");
    }
    let (a, b) = (addr("127.0.0.1:2001"), addr("127.0.0.1:2002"));
    let ((relay_a, relayed_a), (relay_b, relayed_b)) = (world.allocate(a), world.allocate(b));
    assert_eq!(world.permit(a, relayed_b), 0);
    assert_eq!(world.permit(b, relayed_a), 0);
    assert!(matches!(world.send(a, relayed_b, b"ping"), Out::ToClient { client, .. } if client == b));
    assert!(matches!(world.peer(relay_b, relayed_a, b"ping"), Out::ToClient { client, .. } if client == b));
    // Channels both ways.
    assert_eq!(world.bind(a, 0x4000, relayed_b), 0);
    assert!(matches!(world.channel_data(a, 0x4000, b"x"), Out::ToClient { client, .. } if client == b));
    assert!(matches!(world.peer(relay_a, relayed_b, b"x"), Out::ToClient { .. }));
    // Any other port of the relay's address is not a peer, though the permission has no port.
    let idle =
        (50_000..50_003).map(|port| SocketAddr::new(a.ip(), port)).find(|it| *it != relayed_a && *it != relayed_b);
    for other in [idle.expect("an idle relay"), addr("127.0.0.1:22")] {
        assert_eq!(world.send(a, other, b"x"), Out::Drop(DropReason::PeerDenied));
        assert_eq!(world.peer(relay_a, other, b"x"), Out::Drop(DropReason::PeerDenied));
        assert_eq!(world.bind(a, 0x4001, other), 403);
    }
    let rule = world.server.policy_hits().find(|(rule, _)| rule.to_string().starts_with("deny own relay"));
    assert_eq!(rule.map(|(_, hits)| hits), Some(6));
    // Once b's allocation has ended, its relayed address is a stranger's.
    assert_eq!(world.ask(b, wire::REFRESH, &[(wire::LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.send(a, relayed_b, b"x"), Out::Drop(DropReason::PeerDenied));
    assert_eq!(world.channel_data(a, 0x4000, b"x"), Out::Drop(DropReason::PeerDenied));
    let attr = world.peer_attr(addr("127.0.0.2:5"));
    assert_eq!(world.ask(a, CREATE_PERMISSION, &[attr]).code(), 403);
}

#[test]
fn ipv6_relaying_both_ways() {
    let (mut world, _, v6) = dual_world(world::config());
    let peer = addr("[2606:4700::1111]:53");
    assert_eq!(world.permit(v6, addr("8.8.8.8:53")), 443);
    assert_eq!(world.permit(v6, peer), 0);
    assert!(matches!(world.send(v6, peer, b"x"), Out::ToPeer { relay: RelayId(40), .. }));
    let Out::ToClient { bytes, .. } = world.peer(RelayId(40), peer, b"abc") else { panic!("not relayed") };
    assert_eq!(wire::Reading::of(&bytes).address(wire::PEER_ADDRESS), Some(peer));
    assert_eq!(world.bind(v6, 0x4000, peer), 0);
    assert!(matches!(world.channel_data(v6, 0x4000, b"x"), Out::ToPeer { .. }));
    // An IPv6 client has an IPv6 flow.
    let client = addr("[2a02::5]:700");
    world.allocate(client);
    assert_eq!(world.permit(client, addr("8.8.8.8:53")), 0);
    assert!(matches!(world.send(client, addr("8.8.8.8:53"), b"x"), Out::ToPeer { .. }));
}

#[test]
fn registering_relays() {
    use tt_turn::relay::RelayError;
    let mut world = World::new();
    let v4 = addr("198.41.0.9:1");
    let mut add = |id, bound, external| world.server.add_relay(RelayId(id), RelayAddress { bound, external });
    assert_eq!(add(0, v4, v4), Err(RelayError::Registered));
    assert_eq!(add(64, v4, v4), Err(RelayError::Number));
    assert_eq!(add(50, v4, addr("[2a00::1]:1")), Err(RelayError::Family));
    for host in 0..60 {
        let bound = SocketAddr::new([198, 41, 1, host].into(), 1);
        let _ = add(63, bound, bound);
    }
    let one_more = (0..10).map(|host| SocketAddr::new([198, 41, 2, host].into(), 1));
    assert!(one_more.into_iter().any(|bound| add(62, bound, bound) == Err(RelayError::Addresses)));
}
