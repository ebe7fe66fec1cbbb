//! What an operator does to a running server, and what the machine's clock does to it.

use std::sync::Arc;

use tt_turn::bans::Bans;
use tt_turn::codec::Method;
use tt_turn::event::EndReason;
use tt_turn::policy::{Cidr, PeerPolicy, Rule};
use tt_turn::{DropReason, ErrorCode};

use super::wire::{self, LIFETIME, REFRESH};
use super::world::{self, Out, UDP, WALL_S, World, addr};

const DAY_S: u64 = 86_400;

fn allocate_code(world: &mut World, from: &str) -> u16 {
    world.ask(addr(from), wire::ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]).code()
}

/// A79: while the server drains, Allocate is answered 403 and everything else goes on.
#[test]
fn case_a79_a_draining_server_makes_no_allocation_and_keeps_those_that_live() {
    let mut world = World::new();
    let (client, peer) = (addr("192.0.2.1:1"), addr("8.8.8.8:53"));
    let request = world.unsigned(client, "alice", wire::ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    let request = request.integrity(&world::key("alice")).0;
    assert_eq!(world.client(client, &request).reply().code(), 0);
    world.shared.drain();
    assert_eq!(allocate_code(&mut world, "192.0.2.2:1"), 403);
    assert_eq!(world.client(client, &request).reply().code(), 0, "the request that made it, sent again");
    assert_eq!(world.permit(client, peer), 0);
    assert_eq!(world.bind(client, 0x4000, peer), 0);
    assert_eq!(world.ask(client, REFRESH, &[]).code(), 0);
    let relayed = world.channel_data(client, 0x4000, b"goes on");
    assert!(matches!(relayed, Out::ToPeer { peer: to, .. } if to == peer), "{relayed:?}");
    assert_eq!(world.shared.allocations(), 1);
    assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.shared.allocations(), 0);
    assert_eq!(allocate_code(&mut world, "192.0.2.1:1"), 403);
}

/// RFC 8489 section 14.15: ALTERNATE-SERVER is encoded as MAPPED-ADDRESS, and its family is that of the client's address.
#[test]
fn a_draining_server_names_the_one_that_takes_its_clients() {
    const ALTERNATE_SERVER: u16 = 0x8023;
    let mut world = World::new();
    let client = addr("192.0.2.1:1");
    world.allocate(client);
    world.server.set_alternates(&[addr("198.51.100.9:3479")]);
    assert_eq!(allocate_code(&mut world, "192.0.2.2:1"), 0, "it does not drain");
    world.shared.drain();
    let reply = world.ask(addr("192.0.2.3:1"), wire::ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    assert_eq!((reply.code(), reply.get(ALTERNATE_SERVER)), (300, Some(&[0, 1, 13, 151, 198, 51, 100, 9][..])));
    assert_eq!(allocate_code(&mut world, "[2001:db8::3]:1"), 403, "there is none of its family");
    assert_eq!(world.ask(client, REFRESH, &[]).code(), 0);
    world.server.set_alternates(&[addr("[2001:db8::9]:3478"), addr("198.51.100.9:3479")]);
    let reply = world.ask(addr("[2001:db8::3]:1"), wire::ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    let value = [0, 2, 13, 150, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    assert_eq!((reply.code(), reply.get(ALTERNATE_SERVER)), (300, Some(&value[..])));
    world.shared.end_drain();
    assert_eq!(allocate_code(&mut world, "192.0.2.3:1"), 0);
    assert_eq!(world.server.counters().rejected(tt_turn::RejectReason::Redirected), 2);
}

/// The allocations of a banned source end, its STUN messages are dropped by name, and others notice nothing.
#[test]
fn a_banned_source_is_not_served_until_its_time_is_over() {
    let mut world = World::new();
    let (banned, other, peer) = (addr("192.0.2.1:1"), addr("192.0.3.1:1"), addr("8.8.8.8:53"));
    let (relay, _) = world.allocate(banned);
    let (other_relay, _) = world.allocate(other);
    for client in [banned, other] {
        assert_eq!(world.bind(client, 0x4000, peer), 0);
    }
    let mut bans = Bans::default();
    let until = world.now.saturating_add(tt_model::Nanos::from_secs(60));
    bans.insert("192.0.2.0/24".parse().expect("a range"), until).expect("room");
    assert_eq!(world.server.replace_bans(world.now, Arc::new(bans)), 1);
    let binding = wire::Writer::new(wire::BINDING, 0, [1; 12]).0;
    assert_eq!(world.client(banned, &binding), Out::Drop(DropReason::Banned));
    assert_eq!(world.channel_data(banned, 0x4000, b"x"), Out::Drop(DropReason::NoAllocation));
    assert_eq!(world.peer(relay, peer, b"x"), Out::Drop(DropReason::RelayUnallocated));
    assert_eq!(world.server.counters().dropped(DropReason::Banned), 1);
    let payload = b"goes on".to_vec();
    assert_eq!(world.channel_data(other, 0x4000, &payload), Out::ToPeer { relay: other_relay, peer, payload });
    world.run_s(59);
    assert_eq!(world.client(banned, &binding), Out::Drop(DropReason::Banned));
    world.run_s(1);
    assert_eq!(allocate_code(&mut world, "192.0.2.1:1"), 0);
}

/// A81: allocations live by the monotonic clock alone.
#[test]
fn case_a81_the_wall_clock_jumps_a_day_and_no_allocation_notices() {
    for jumped_s in [WALL_S + DAY_S, WALL_S - DAY_S] {
        let mut world = World::new();
        let (client, peer) = (addr("192.0.2.1:1"), addr("8.8.8.8:53"));
        let (relay, _) = world.allocate(client);
        assert_eq!(world.bind(client, 0x4000, peer), 0);
        let nonce = world.nonce(client);
        world.run_s(200);
        world.server.set_wall_clock(world.now, tt_model::Nanos::from_secs(jumped_s));
        world.run_s(90);
        assert_eq!(world.server.allocations(), 1);
        let payload = b"on".to_vec();
        assert_eq!(world.channel_data(client, 0x4000, &payload), Out::ToPeer { relay, peer, payload });
        assert!(matches!(world.peer(relay, peer, b"back"), Out::ToClient { .. }));
        // The nonce from before may be stale; the one that the answer brings is good.
        let refresh = |world: &mut World, nonce: &[u8]| {
            let tid = world.tid();
            let request = wire::Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, b"alice");
            let request = request.attr(wire::REALM, world::REALM.as_bytes()).attr(wire::NONCE, nonce);
            world.client(client, &request.integrity(&world::key("alice")).0).reply()
        };
        let first = refresh(&mut world, &nonce);
        assert_eq!(first.code(), 438, "issued a day ago, or in the future");
        let fresh = first.get(wire::NONCE).expect("a nonce").to_vec();
        assert_eq!(refresh(&mut world, &fresh).code(), 0);
        world.run_s(599);
        assert_eq!(world.server.allocations(), 1);
        world.run_s(1);
        assert_eq!(world.server.allocations(), 0);
    }
}

#[test]
fn full_memory_stops_new_allocations_and_nothing_else() {
    let mut world = World::new();
    let (client, peer) = (addr("192.0.2.1:1"), addr("8.8.8.8:53"));
    world.allocate(client);
    world.shared.set_memory_full(true);
    assert_eq!(allocate_code(&mut world, "192.0.2.2:1"), 508);
    assert_eq!(world.server.counters().rejected(tt_turn::RejectReason::Memory), 1);
    assert_eq!((world.bind(client, 0x4000, peer), world.ask(client, REFRESH, &[]).code()), (0, 0));
    assert!(matches!(world.channel_data(client, 0x4000, b"x"), Out::ToPeer { .. }));
    world.shared.set_memory_full(false);
    assert_eq!(allocate_code(&mut world, "192.0.2.2:1"), 0);
}

#[test]
fn a_peer_that_new_rules_deny_is_cut_off_and_one_that_they_allow_is_reached() {
    let mut world = World::new();
    let client = addr("192.0.2.1:1");
    let (stays, goes, comes) = (addr("8.8.8.8:53"), addr("9.9.9.9:53"), addr("10.0.0.1:53"));
    let (relay, _) = world.allocate(client);
    for (number, peer) in [(0x4000, stays), (0x4001, goes)] {
        assert_eq!(world.bind(client, number, peer), 0);
    }
    assert_eq!(world.permit(client, comes), 403);
    let built_in = |world: &World| {
        let range: Cidr = Cidr::new("10.0.0.0".parse().expect("an address"), 8).expect("a range");
        world.server.policy_hits().find(|(rule, _)| **rule == Rule::BuiltIn(range.into())).map(|(_, hits)| hits)
    };
    assert_eq!(built_in(&world), Some(1));

    let mut policy = PeerPolicy::new();
    policy.allow(Cidr::new("10.0.0.0".parse().expect("an address"), 24).expect("a range"));
    policy.deny(Cidr::new("9.0.0.0".parse().expect("an address"), 8).expect("a range"));
    world.server.replace_policy(policy);
    assert_eq!(built_in(&world), Some(1), "a rule that stays keeps its count");
    let payload = b"x".to_vec();
    assert_eq!(world.channel_data(client, 0x4000, b"x"), Out::ToPeer { relay, peer: stays, payload });
    assert_eq!(world.channel_data(client, 0x4001, b"x"), Out::Drop(DropReason::PeerDenied));
    assert_eq!(world.send(client, goes, b"x"), Out::Drop(DropReason::NoPermission));
    assert!(matches!(world.peer(relay, goes, b"x"), Out::Drop(_)), "nothing comes from there either");
    assert_eq!(world.bind(client, 0x4001, goes), 403);
    assert_eq!(world.permit(client, goes), 403);
    assert_eq!(world.permit(client, comes), 0);
    assert_eq!(world.server.allocations(), 1);
    world.run_s(601);
    assert_eq!(world.server.allocations(), 0, "nothing of what was cut off is left in the way");
    world.probe();
}

#[test]
fn events_name_the_request_and_the_user() {
    let mut world = World::new();
    let (client, peer) = (addr("192.0.2.1:1"), addr("10.1.2.3:99"));
    let (_, relayed) = world.allocate(client);
    assert_eq!(world.permit(client, peer), 403);
    let wrong = world.unsigned(client, "al\r\n\"ice", REFRESH, &[]).integrity(&[9; 16]).0;
    assert_eq!(world.client(client, &wrong).reply().code(), 401);
    assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    let events: Vec<_> = std::iter::from_fn(|| world.server.poll_event()).collect();
    let [made, ended] = &events[..] else { panic!("{events:?}") };
    assert_eq!((made.start, made.end), (ended.start, None));
    assert_eq!((made.start.first_relayed(), made.start.user.as_bytes()), (Some(relayed), &b"alice"[..]));
    assert_eq!(ended.end.map(|end| end.reason), Some(EndReason::Deleted));
    let rejected: Vec<_> = std::iter::from_fn(|| world.server.poll_rejected()).collect();
    let [denied, unknown] = &rejected[..] else { panic!("{rejected:?}") };
    assert_eq!((denied.method, denied.code, denied.peer), (Method::CreatePermission, ErrorCode::Forbidden, Some(peer)));
    assert_eq!(denied.rule.map(|rule| rule.to_string()), Some("deny 10.0.0.0/8 (built-in)".to_owned()));
    assert_eq!(denied.reason, Some(tt_turn::RejectReason::PeerDenied));
    assert_eq!((unknown.code, unknown.rule), (ErrorCode::Unauthenticated, None));
    assert_eq!(format!("{:?}", unknown.user), r#""al\r\n\"ice""#);
}

#[test]
fn unread_rejections_are_bounded_and_counted() {
    let mut world = World::new();
    for _ in 0..200 {
        assert_eq!(world.ask(addr("192.0.2.1:1"), REFRESH, &[]).code(), 437);
    }
    let kept = std::iter::from_fn(|| world.server.poll_rejected()).count() as u64;
    assert_eq!((kept, world.server.rejected_lost()), (128, 72));
}

#[test]
fn an_engine_that_is_given_up_leaves_nothing_with_the_others() {
    let mut world = World::new();
    for number in 1..=5 {
        assert_eq!(allocate_code(&mut world, &format!("192.0.2.{number}:1")), 0);
    }
    world.server.end_all(world.now, EndReason::Shutdown);
    assert_eq!((world.server.allocations(), world.shared.allocations()), (0, 0));
    assert_eq!(world.server.counters().allocations_ended, 5);
    world.probe();
}
