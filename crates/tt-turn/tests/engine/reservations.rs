//! EVEN-PORT's R bit and reservation tokens (RFC 8656 sections 7.2 and 18.10): cases A48 to A51.

use std::net::SocketAddr;

use tt_turn::refusal::Refusal;
use tt_turn::relay::{RelayAddress, RelayDemand, RelayFault};
use tt_turn::shared::{Budget, Quotas};
use tt_turn::{DropReason, RelayId};

use super::wire::{
    self, ALLOCATE, EVEN_PORT, LIFETIME, MAPPED_ADDRESS, REFRESH, RELAYED_ADDRESS, RESERVATION_TOKEN, Reading,
    TRANSPORT,
};
use super::world::{self, Out, UDP, World, addr, key};

const FROM: &str = "192.0.2.1:1";
const OTHER: &str = "192.0.2.77:9";

pub(crate) fn relay_at(number: u32, port: u16) -> (RelayId, RelayAddress) {
    let bound = SocketAddr::new([198, 41, 0, 9].into(), port);
    (RelayId(number), RelayAddress { bound, external: bound })
}

/// A world with a pair of relays, on ports 60,000 and 60,001, beside the 32 others.
fn world_with_pair(quotas: Quotas) -> World {
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    world.server.add_relay_pair(relay_at(40, 60_000), relay_at(41, 60_001)).expect("a pair");
    world
}

pub(crate) fn reserve(world: &mut World, from: SocketAddr) -> Reading {
    world.ask(from, ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0x80])])
}

pub(crate) fn claim_as(world: &mut World, name: &str, from: SocketAddr, token: &[u8]) -> Reading {
    world.ask_as(name, from, ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (RESERVATION_TOKEN, token.to_vec())])
}

fn claim(world: &mut World, from: SocketAddr, token: &[u8]) -> Reading {
    claim_as(world, "alice", from, token)
}

pub(crate) fn token(reply: &Reading) -> Vec<u8> {
    reply.get(RESERVATION_TOKEN).expect("a token").to_vec()
}

fn end(world: &mut World, from: &str) {
    assert_eq!(world.ask(addr(from), REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
}

#[test]
fn rfc_r086_rfc_r087_case_a50_a_pair_is_an_even_port_and_the_next_one() {
    let mut world = world_with_pair(world::quotas());
    let reply = reserve(&mut world, addr(FROM));
    assert_eq!(reply.kinds(), [RELAYED_ADDRESS, MAPPED_ADDRESS, LIFETIME, RESERVATION_TOKEN, wire::INTEGRITY]);
    assert_eq!(reply.address(RELAYED_ADDRESS), Some(addr("198.41.0.9:60000")));
    assert_eq!(token(&reply).len(), 8);
    // Held for 30 s at least: nobody else gets it.
    world.run_s(30);
    let ports: Vec<_> = (1..=32).map(|port| world.allocate(SocketAddr::new([192, 0, 2, 9].into(), port)).1).collect();
    assert!(!ports.contains(&addr("198.41.0.9:60001")));
    assert_eq!(world.ask(addr("192.0.2.9:99"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 508);
    // From another five-tuple, with another address of the server even.
    world.listener = addr("198.41.0.10:3479");
    let claimed = claim(&mut world, addr(OTHER), &token(&reply));
    assert_eq!((claimed.code(), claimed.address(RELAYED_ADDRESS)), (0, Some(addr("198.41.0.9:60001"))));
    assert_eq!(claimed.get(RESERVATION_TOKEN), None);
    assert_eq!(world.permit(addr(OTHER), addr("8.8.8.8:1")), 0);
    assert!(matches!(world.send(addr(OTHER), addr("8.8.8.8:1"), b"x"), Out::ToPeer { relay: RelayId(41), .. }));
    assert!(
        matches!(world.peer(RelayId(41), addr("8.8.8.8:1"), b"x"), Out::ToClient { client, .. } if client == addr(OTHER))
    );
}

#[test]
fn case_a50_a_reservation_comes_back_when_nobody_claims_it() {
    let mut world = world_with_pair(world::quotas());
    let reply = reserve(&mut world, addr(FROM));
    // Its holder's end does not end it.
    end(&mut world, FROM);
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(RelayId(40))));
    assert_eq!(world.peer(RelayId(41), addr("8.8.8.8:1"), b"x"), Out::Drop(DropReason::RelayUnallocated));
    world.run_s(30);
    assert_eq!(world.server.poll_relay(), None, "held for 30 s at least");
    world.run_s(60);
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(RelayId(41))));
    assert_eq!((world.server.poll_relay(), world.server.poll_timeout()), (None, None));
    assert_eq!(claim(&mut world, addr(OTHER), &token(&reply)).code(), 508);
    world.server.add_relay(RelayId(41), relay_at(41, 60_001).1).expect("a relay");
    assert_eq!(world.server.relays_pooled(true), 33);
    world.probe();
}

#[test]
fn rfc_r076_case_a48_a_token_counts_once_and_for_a_while() {
    let mut world = world_with_pair(world::quotas());
    let made = token(&reserve(&mut world, addr(FROM)));
    let mut wrong = made.clone();
    wrong[7] ^= 1;
    for unknown in [vec![0; 8], vec![0xFF; 8], wrong] {
        assert_eq!(claim(&mut world, addr(OTHER), &unknown).code(), 508);
    }
    assert_eq!(claim(&mut world, addr(OTHER), &made).code(), 0);
    assert_eq!(claim(&mut world, addr("192.0.2.77:10"), &made).code(), 508, "reused");
    end(&mut world, OTHER);
    assert_eq!(claim(&mut world, addr("192.0.2.77:10"), &made).code(), 508, "used");
    world.server.add_relay_pair(relay_at(42, 61_000), relay_at(43, 61_001)).expect("a pair");
    let expires = token(&reserve(&mut world, addr("192.0.2.1:2")));
    world.pass_s(120);
    // Nobody has called handle_timeout yet: it is over all the same.
    assert_eq!(claim(&mut world, addr(OTHER), &expires).code(), 508);
    assert_eq!(world.server.counters().refused(Refusal::Token), 6);
}

#[test]
fn case_a48_guessing_tokens_gets_few_answers() {
    let quotas = Quotas { error_replies: Budget { per_second: 10, burst: 20 }, ..world::quotas() };
    let mut world = world_with_pair(quotas);
    let made = token(&reserve(&mut world, addr(FROM)));
    let nonce_request = world.unsigned(addr(OTHER), "alice", ALLOCATE, &[(TRANSPORT, UDP.to_vec())]);
    let credentials: Vec<_> = Reading::of(&nonce_request.0).attrs[1..].to_vec();
    let (mut answered, mut dropped) = (0, 0);
    for guess in 0..1u64 << 16 {
        let mut writer =
            wire::Writer::new(ALLOCATE, 0, [guess.to_be_bytes().as_slice(), &[7; 4]].concat().try_into().expect("12"));
        writer = writer.attr(TRANSPORT, &UDP).attr(RESERVATION_TOKEN, &guess.to_be_bytes());
        for (kind, value) in &credentials {
            writer = writer.attr(*kind, value);
        }
        match world.client(addr(OTHER), &writer.integrity(&key("alice")).0) {
            Out::Drop(reason) => {
                assert_eq!(reason, DropReason::ErrorBudget);
                dropped += 1;
            }
            out @ (Out::Reply(_)
            | Out::ToPeer { .. }
            | Out::ToClient { .. }
            | Out::ToWorker { .. }
            | Out::HandOver(_)) => {
                assert_eq!(out.reply().code(), 508);
                answered += 1;
            }
        }
        if guess % 6_554 == 6_553 {
            world.run_s(1);
        }
    }
    assert_eq!(answered + dropped, 1 << 16);
    assert!((20..=20 + 10 * 10).contains(&answered), "{answered}");
    assert_eq!(claim(&mut world, addr(FROM), &made).code(), 437);
    assert_eq!(claim(&mut world, addr("198.51.100.1:1"), &made).code(), 0, "the one that is known still counts");
}

#[test]
fn rfc_r081_case_a51_without_a_pair_it_is_508() {
    let mut world = world_with_pair(world::quotas());
    assert_eq!(reserve(&mut world, addr(FROM)).code(), 0);
    assert_eq!(reserve(&mut world, addr("192.0.2.1:2")).code(), 508);
    let v6 = [(TRANSPORT, UDP.to_vec()), (wire::ADDRESS_FAMILY, vec![2, 0, 0, 0]), (EVEN_PORT, vec![0x80])];
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &v6).code(), 440);
    assert_eq!(world.server.counters().refused(Refusal::RelayPairs), 1);
    assert_eq!(world.server.relays_pooled(true), 32);
}

#[test]
fn case_a51_a_pair_is_broken_up_where_nothing_else_is_left() {
    let mut world = world_with_pair(world::quotas());
    let client = |port: u16| SocketAddr::new([192, 0, 2, 9].into(), port);
    for port in 1..=32 {
        assert!(world.allocate(client(port)).1.port() < 60_000, "pairs are for who wants pairs");
    }
    assert_eq!((world.server.relays_pooled(true), world.server.relay_pairs_pooled(true)), (2, 1));
    assert_eq!(world.ask(client(33), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
    assert_eq!(world.ask(client(34), ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0])]).code(), 0);
    assert_eq!(world.ask(client(35), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 508);
    let mut even_first = world_with_pair(world::quotas());
    for port in 1..=17 {
        let attrs = [(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0])];
        let reply = even_first.ask(client(port), ALLOCATE, &attrs);
        assert_eq!(reply.address(RELAYED_ADDRESS).map(|relayed| relayed.port() % 2), Some(0));
    }
    assert_eq!((even_first.server.relays_pooled(true), even_first.server.relay_pairs_pooled(true)), (17, 0));
}

#[test]
fn rfc_r091_the_retransmission_of_a_reserving_allocate_tells_the_same_token() {
    let mut world = world_with_pair(world::quotas());
    let attrs = [(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0x80])];
    let request = world.unsigned(addr(FROM), "alice", ALLOCATE, &attrs).integrity(&key("alice")).0;
    let first = world.client(addr(FROM), &request).reply();
    assert_eq!(world.client(addr(FROM), &request).reply().bytes, first.bytes);
    let attrs = [(TRANSPORT, UDP.to_vec()), (RESERVATION_TOKEN, token(&first))];
    let request = world.unsigned(addr(OTHER), "alice", ALLOCATE, &attrs).integrity(&key("alice")).0;
    let claimed = world.client(addr(OTHER), &request).reply();
    assert_eq!((claimed.code(), &world.client(addr(OTHER), &request).reply().bytes), (0, &claimed.bytes));
}

#[test]
fn what_is_reserved_counts_against_the_quota_of_who_holds_it() {
    let quotas = Quotas { allocations_per_user: 2, ..world::quotas() };
    let mut world = world_with_pair(quotas);
    world.server.add_relay_pair(relay_at(42, 61_000), relay_at(43, 61_001)).expect("a pair");
    let made = token(&reserve(&mut world, addr(FROM)));
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 486);
    // The same user claims what is paid for.
    assert_eq!(claim(&mut world, addr(OTHER), &made).code(), 0);
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 486);
    end(&mut world, OTHER);
    assert_eq!(reserve(&mut world, addr("192.0.2.1:2")).code(), 486, "two units for a pair, and one is left");
    assert_eq!(world.server.relay_pairs_pooled(true), 1, "a refused Allocate keeps no relay");
    end(&mut world, FROM);
    let made = token(&reserve(&mut world, addr(FROM)));
    // Another user's claim frees the holder's unit.
    assert_eq!(claim_as(&mut world, "bob", addr(OTHER), &made).code(), 0);
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
    assert_eq!(world.ask_as("bob", addr("192.0.2.1:3"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
    assert_eq!(world.ask_as("bob", addr("192.0.2.1:4"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 486);
    world.run_s(4_000);
    assert_eq!((world.server.allocations(), world.server.poll_timeout()), (0, None));
    assert_eq!(world.ask_as("bob", addr("192.0.2.1:4"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
}

#[test]
fn registering_pairs() {
    let mut world = World::new();
    let mut add = |even, odd| world.server.add_relay_pair(even, odd);
    let v6 = |number: u32, port: u16| {
        let bound = SocketAddr::new([0x2a00, 0, 0, 0, 0, 0, 0, 9].into(), port);
        (RelayId(number), RelayAddress { bound, external: bound })
    };
    assert_eq!(add(relay_at(40, 60_001), relay_at(41, 60_002)), Err(RelayFault::Pair));
    assert_eq!(add(relay_at(40, 60_000), relay_at(41, 60_002)), Err(RelayFault::Pair));
    assert_eq!(add(relay_at(40, 60_000), v6(41, 60_001)), Err(RelayFault::Pair));
    assert_eq!(add(relay_at(40, 60_000), relay_at(40, 60_001)), Err(RelayFault::Pair));
    assert_eq!(add(relay_at(40, 60_000), relay_at(64, 60_001)), Err(RelayFault::Number));
    assert_eq!(add(relay_at(0, 60_000), relay_at(41, 60_001)), Err(RelayFault::Registered));
    assert_eq!(add(v6(40, 60_000), v6(41, 60_001)), Ok(()));
    assert_eq!((world.server.relay_pairs_pooled(false), world.server.relays_pooled(false)), (1, 2));
}
