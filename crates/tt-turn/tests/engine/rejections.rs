//! The reason of each 403, 486 and 508, and the order in which an Allocate's faults are found.

use tt_model::IpFamily;
use tt_turn::RejectReason;
use tt_turn::config::{Capacity, Config};
use tt_turn::policy::Rule;
use tt_turn::shared::Quotas;

use super::wire::{self, ADDITIONAL_FAMILY, ADDRESS_FAMILY, ALLOCATE, EVEN_PORT, RESERVATION_TOKEN, TRANSPORT};
use super::world::{self, UDP, World, addr};

const FROM: &str = "192.0.2.1:1";

/// Why requests were refused since the last call, the last one's reason and rule.
fn last_refusal(world: &mut World) -> (Option<RejectReason>, Option<Rule>) {
    let rejected = std::iter::from_fn(|| world.server.poll_rejected());
    rejected.last().map(|rejected| (rejected.reason, rejected.rule)).unwrap_or_default()
}

fn rejected_for(world: &mut World, refusal: RejectReason, count: u64) {
    assert_eq!((last_refusal(world).0, world.server.counters().rejected(refusal)), (Some(refusal), count));
}

fn allocate(world: &mut World, from: &str) -> u16 {
    world.ask(addr(from), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code()
}

#[test]
fn quotas_are_named() {
    let quotas = Quotas { allocations_per_user: 1, allocations_total: 2, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    assert_eq!(allocate(&mut world, "192.0.2.1:1"), 0);
    assert_eq!(last_refusal(&mut world), (None, None));
    assert_eq!(allocate(&mut world, "192.0.2.1:2"), 486);
    rejected_for(&mut world, RejectReason::UserQuota, 1);
    assert_eq!(world.ask_as("bob", addr("192.0.2.1:3"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
    assert_eq!(allocate(&mut world, "192.0.2.1:2"), 486);
    rejected_for(&mut world, RejectReason::TotalQuota, 1);
    // An error of another kind does not bear the reason of the one before; what is granted makes no event of this sort.
    assert_eq!(allocate(&mut world, "192.0.2.1:2"), 486);
    assert_eq!(world.ask(addr("192.0.2.1:2"), wire::REFRESH, &[]).code(), 437);
    assert_eq!(last_refusal(&mut world), (None, None));
    assert_eq!(world.ask(addr("192.0.2.1:1"), wire::REFRESH, &[]).code(), 0);
    assert_eq!(world.server.poll_rejected(), None);
}

#[test]
fn rules_are_named() {
    let mut world = World::new();
    assert_eq!(allocate(&mut world, "[2002:808:808::1]:9"), 403);
    rejected_for(&mut world, RejectReason::ClientTunnel, 1);
    world.allocate(addr(FROM));
    for (count, peer) in [(1, "10.0.0.1:1"), (2, "127.0.0.1:1")] {
        assert_eq!(world.permit(addr(FROM), addr(peer)), 403);
        let (Some(RejectReason::PeerDenied), Some(rule)) = last_refusal(&mut world) else { panic!("no rule") };
        let rule = rule.to_string();
        assert!(rule.starts_with(if count == 1 { "deny 10.0.0.0/8" } else { "deny 127.0.0.0/8" }), "{rule}");
        assert_eq!(world.server.counters().rejected(RejectReason::PeerDenied), count);
    }
    assert_eq!(world.bind(addr(FROM), 0x4000, addr("8.8.8.8:0")), 403);
    rejected_for(&mut world, RejectReason::PeerDenied, 3);
}

#[test]
fn rooms_are_named() {
    let capacity = Capacity {
        allocations: 2,
        permissions: 3,
        permissions_per_allocation: 2,
        channels: 3,
        channels_per_allocation: 2,
        relays: 64,
    };
    let mut world = World::with(world::config(), world::quotas(), capacity, world::secrets(1));
    let (one, two) = (addr("192.0.2.1:1"), addr("192.0.2.1:2"));
    let peer = |host: u8| std::net::SocketAddr::new([8, 8, 4, host].into(), 53);
    world.allocate(one);
    world.allocate(two);
    assert_eq!(allocate(&mut world, "192.0.2.1:3"), 508);
    rejected_for(&mut world, RejectReason::Allocations, 1);
    assert_eq!((world.permit(one, peer(1)), world.permit(one, peer(2)), world.permit(one, peer(3))), (0, 0, 508));
    rejected_for(&mut world, RejectReason::PermissionsPerAllocation, 1);
    assert_eq!((world.permit(two, peer(1)), world.permit(two, peer(2))), (0, 508));
    rejected_for(&mut world, RejectReason::Permissions, 1);
    let other_port = |host: u8, port: u16| std::net::SocketAddr::new(peer(host).ip(), port);
    assert_eq!((world.bind(one, 0x4000, peer(1)), world.bind(one, 0x4001, peer(2))), (0, 0));
    assert_eq!(world.bind(one, 0x4002, other_port(1, 9)), 508);
    rejected_for(&mut world, RejectReason::ChannelsPerAllocation, 1);
    assert_eq!((world.bind(two, 0x4000, peer(1)), world.bind(two, 0x4001, other_port(1, 9))), (0, 508));
    rejected_for(&mut world, RejectReason::Channels, 1);
}

#[test]
fn an_empty_pool_is_named() {
    let mut world = World::new();
    for port in 1..=32 {
        world.allocate(std::net::SocketAddr::new([192, 0, 2, 9].into(), port));
    }
    assert_eq!(allocate(&mut world, FROM), 508);
    rejected_for(&mut world, RejectReason::RelayPool, 1);
    let all: Vec<_> = RejectReason::ALL.iter().map(|refusal| refusal.name()).collect();
    let names: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(names.len(), all.len(), "every name is different");
    assert!(RejectReason::ALL.iter().all(|refusal| matches!(refusal.code().code(), 300 | 403 | 486 | 508)));
}

/// The defaults of the caps: 256 permissions and 64 channels of one allocation.
#[test]
fn case_a62_the_default_caps_of_an_allocation() {
    let capacity = Capacity { permissions: 1_000, channels: 1_000, ..Capacity::for_allocations(64) };
    let mut world = World::with(world::config(), world::quotas(), capacity, world::secrets(1));
    let from = addr(FROM);
    world.allocate(from);
    let peer = |number: u16| std::net::SocketAddr::new([8, 8, (number / 200) as u8, (number % 200) as u8].into(), 53);
    for number in 0..256 {
        assert_eq!(world.permit(from, peer(number)), 0, "{number}");
    }
    assert_eq!(world.permit(from, peer(256)), 508);
    for number in 0..64 {
        assert_eq!(world.bind(from, 0x4000 + number, peer(number)), 0, "{number}");
    }
    assert_eq!(world.bind(from, 0x4040, peer(64)), 508);
    assert_eq!((world.permit(from, peer(3)), world.bind(from, 0x4003, peer(3))), (0, 0), "refreshes need no room");
}

/// RFC 8656 section 7.2: of two errors the first in the list is returned.
#[test]
fn rfc_r071_rfc_r072_rfc_r073_rfc_r075_rfc_r077_rfc_r078_rfc_r080_rfc_r082_the_order_of_an_allocates_faults() {
    let quotas = Quotas { allocations_per_user: 0, ..world::quotas() };
    let mut world = World::with(Config::new(world::REALM), quotas, world::capacity(), world::secrets(1));
    let transport = |protocol: u8| (TRANSPORT, vec![protocol, 0, 0, 0]);
    let family = |number: u8| (ADDRESS_FAMILY, vec![number, 0, 0, 0]);
    let additional = |number: u8| (ADDITIONAL_FAMILY, vec![number, 0, 0, 0]);
    let token = (RESERVATION_TOKEN, vec![7; 8]);
    let even = |bits: u8| (EVEN_PORT, vec![bits]);
    for (attrs, code) in [
        // Item 3 before 5: the transport before the token's neighbours.
        (vec![token.clone(), family(1)], 400),
        (vec![transport(6), token.clone(), family(1)], 442),
        // Item 5 before 6, 7 and 9: what excludes the token, whatever it is worth.
        (vec![transport(17), token.clone(), family(3)], 400),
        (vec![transport(17), token.clone(), even(0)], 400),
        (vec![transport(17), token.clone(), additional(2)], 400),
        (vec![transport(17), token], 508),
        // Item 6 before 7: both families' attributes before a family that is not served.
        (vec![transport(17), family(2), additional(2)], 400),
        (vec![transport(17), family(2)], 440),
        // Item 7 before 8: a family that is not served before a pair that is not to be had.
        (vec![transport(17), family(2), even(0x80)], 440),
        (vec![transport(17), even(0x80), additional(2)], 400),
        (vec![transport(17), even(0x80)], 508),
        // Item 9, then 10.
        (vec![transport(17), additional(1)], 400),
        (vec![transport(17), additional(2)], 486),
        (vec![transport(17)], 486),
    ] {
        assert_eq!(world.ask(addr(FROM), ALLOCATE, &attrs).code(), code, "{attrs:02x?}");
        assert_eq!(world.server.relays_pooled(IpFamily::V4), 32, "a refused Allocate keeps no relay");
    }
    // Item 2 before all others.
    let mut world = World::new();
    world.allocate(addr(FROM));
    for attrs in [vec![], vec![transport(6)], vec![transport(17), family(3)]] {
        assert_eq!(world.ask(addr(FROM), ALLOCATE, &attrs).code(), 437);
    }
    // RFC 8656 section 5: another user on the flow is 441 save for an Allocate, which is 437.
    assert_eq!(world.ask_as("bob", addr(FROM), ALLOCATE, &[transport(17)]).code(), 437);
    for method in [wire::REFRESH, wire::CREATE_PERMISSION, wire::CHANNEL_BIND] {
        assert_eq!(world.ask_as("bob", addr(FROM), method, &[]).code(), 441);
    }
}
