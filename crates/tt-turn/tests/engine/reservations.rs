//! EVEN-PORT's R bit and reservation tokens (RFC 8656 sections 7.2 and 18.10): cases A48 to A51.

use std::net::SocketAddr;

use proptest::prelude::*;
use tt_model::IpFamily;
use tt_turn::relay::{RelayAddress, RelayDemand, RelayError, RelayId};
use tt_turn::shared::{Budget, Quotas};
use tt_turn::{DropReason, RejectReason};

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

/// A world with a pair of relays, on ports 60,000 and 60,001, and 32 others.
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
fn a_refused_allocate_leaves_a_pair_together() {
    let mut world = world_with_pair(Quotas { allocations_per_user: 32, ..world::quotas() });
    for port in 0..32 {
        world.allocate(addr(&format!("192.0.2.9:{}", 1_000 + port)));
    }
    // Only the pair is left, and the quota is used up.
    assert_eq!((world.server.relays_pooled(IpFamily::V4), world.server.relay_pairs_pooled(IpFamily::V4)), (2, 1));
    for even_port in [None, Some(0)] {
        let mut attrs = vec![(TRANSPORT, UDP.to_vec())];
        attrs.extend(even_port.map(|bits| (EVEN_PORT, vec![bits])));
        assert_eq!(world.ask(addr(FROM), ALLOCATE, &attrs).code(), 486);
        assert_eq!((world.server.relays_pooled(IpFamily::V4), world.server.relay_pairs_pooled(IpFamily::V4)), (2, 1));
    }
    let reply = world.ask_as("bob", addr(FROM), ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0x80])]);
    assert_eq!(reply.address(RELAYED_ADDRESS), Some(addr("198.41.0.9:60000")));
}

#[test]
fn rfc_r086_rfc_r087_case_a50_a_pair_is_an_even_port_and_the_next_one() {
    let mut world = world_with_pair(world::quotas());
    let reply = reserve(&mut world, addr(FROM));
    assert_eq!(reply.kinds(), [RELAYED_ADDRESS, MAPPED_ADDRESS, LIFETIME, RESERVATION_TOKEN, wire::INTEGRITY]);
    assert_eq!(reply.address(RELAYED_ADDRESS), Some(addr("198.41.0.9:60000")));
    assert_eq!(token(&reply).len(), 8);
    // Reserved for at least 30 s: no other client gets it.
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
fn case_a50_an_unclaimed_reservation_expires() {
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
    assert_eq!(world.server.relays_pooled(IpFamily::V4), 33);
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
    // handle_timeout has not been called yet, and it has expired.
    assert_eq!(claim(&mut world, addr(OTHER), &expires).code(), 508);
    assert_eq!(world.server.counters().rejected(RejectReason::Token), 6);
}

#[test]
fn case_a48_guessing_tokens_gets_few_answers() {
    let quotas = Quotas { token_guesses: Budget { per_second: 10, burst: 20 }, ..world::quotas() };
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
                assert_eq!(reason, DropReason::TokenBudget);
                dropped += 1;
            }
            out @ (Out::Reply(_)
            | Out::ToPeer { .. }
            | Out::ToClient { .. }
            | Out::ToWorker { .. }
            | Out::HandOff(_)) => {
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
    assert_eq!(world.server.counters().rejected(RejectReason::RelayPairs), 1);
    assert_eq!(world.server.relays_pooled(IpFamily::V4), 32);
}

#[test]
fn case_a51_a_pair_is_broken_up_where_nothing_else_is_left() {
    let mut world = world_with_pair(world::quotas());
    let client = |port: u16| SocketAddr::new([192, 0, 2, 9].into(), port);
    for port in 1..=32 {
        assert!(world.allocate(client(port)).1.port() < 60_000, "pairs are for who wants pairs");
    }
    assert_eq!((world.server.relays_pooled(IpFamily::V4), world.server.relay_pairs_pooled(IpFamily::V4)), (2, 1));
    assert_eq!(world.ask(client(33), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
    assert_eq!(world.ask(client(34), ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0])]).code(), 0);
    assert_eq!(world.ask(client(35), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 508);
    let mut even_first = world_with_pair(world::quotas());
    for port in 1..=17 {
        let attrs = [(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0])];
        let reply = even_first.ask(client(port), ALLOCATE, &attrs);
        assert_eq!(reply.address(RELAYED_ADDRESS).map(|relayed| relayed.port() % 2), Some(0));
    }
    assert_eq!(
        (even_first.server.relays_pooled(IpFamily::V4), even_first.server.relay_pairs_pooled(IpFamily::V4)),
        (17, 0)
    );
}

#[test]
fn rfc_r091_the_retransmission_of_a_reserving_allocate_gets_the_same_token() {
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
    assert_eq!(world.server.relay_pairs_pooled(IpFamily::V4), 1, "a refused Allocate keeps no relay");
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

/// A claim that finds the table full moves the reservation's unit to the claimer, until the reservation ends.
#[test]
fn a_claim_that_fails_leaves_each_user_its_own_units() {
    let quotas = Quotas { allocations_per_user: 2, ..world::quotas() };
    let capacity = tt_turn::config::Capacity { allocations: 1, ..world::capacity() };
    let mut world = World::with(world::config(), quotas, capacity, world::secrets(1));
    world.server.add_relay_pair(relay_at(40, 60_000), relay_at(41, 60_001)).expect("a pair");
    let made = token(&reserve(&mut world, addr(FROM)));
    assert_eq!(claim_as(&mut world, "bob", addr(OTHER), &made).code(), 508, "the table is full");
    world.run_s(100);
    end(&mut world, FROM);
    assert_eq!(world.shared.allocations(), 0);
    world.server.add_relay_pair(relay_at(42, 61_000), relay_at(43, 61_001)).expect("a pair");
    // Bob has both of his units again: the reservation has ended at his cost.
    let pair = [(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0x80])];
    assert_eq!(world.ask_as("bob", addr(OTHER), ALLOCATE, &pair).code(), 0);
}

#[test]
fn registering_pairs() {
    let mut world = World::new();
    let mut add = |even, odd| world.server.add_relay_pair(even, odd);
    let v6 = |number: u32, port: u16| {
        let bound = SocketAddr::new([0x2a00, 0, 0, 0, 0, 0, 0, 9].into(), port);
        (RelayId(number), RelayAddress { bound, external: bound })
    };
    assert_eq!(add(relay_at(40, 60_001), relay_at(41, 60_002)), Err(RelayError::Pair));
    assert_eq!(add(relay_at(40, 60_000), relay_at(41, 60_002)), Err(RelayError::Pair));
    assert_eq!(add(relay_at(40, 60_000), v6(41, 60_001)), Err(RelayError::Pair));
    assert_eq!(add(relay_at(40, 60_000), relay_at(40, 60_001)), Err(RelayError::Pair));
    assert_eq!(add(relay_at(40, 60_000), relay_at(64, 60_001)), Err(RelayError::Number));
    assert_eq!(add(relay_at(0, 60_000), relay_at(41, 60_001)), Err(RelayError::Registered));
    assert_eq!(add(v6(40, 60_000), v6(41, 60_001)), Ok(()));
    assert_eq!((world.server.relay_pairs_pooled(IpFamily::V6), world.server.relays_pooled(IpFamily::V6)), (1, 2));
}

/// What a client may do with an allocation.
#[derive(Clone, Debug)]
enum Step {
    /// Allocate from this port, with these attributes.
    Allocate(u16, Vec<(u16, Vec<u8>)>),
    /// Claim the n-th of the tokens so far.
    Claim(u16, prop::sample::Index),
    Refresh(u16, Option<u8>, u32),
    Bind(u16, u8),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let from = 1u16..6;
    let asked = prop::sample::select(vec![
        vec![],
        vec![(EVEN_PORT, vec![0])],
        vec![(EVEN_PORT, vec![0x80])],
        vec![(wire::ADDITIONAL_FAMILY, vec![2, 0, 0, 0])],
        vec![(wire::ADDITIONAL_FAMILY, vec![2, 0, 0, 0]), (EVEN_PORT, vec![0])],
        vec![(wire::ADDRESS_FAMILY, vec![2, 0, 0, 0])],
    ]);
    prop_oneof![
        4 => (from.clone(), asked).prop_map(|(from, attrs)| Step::Allocate(from, attrs)),
        2 => (from.clone(), any::<prop::sample::Index>()).prop_map(|(from, token)| Step::Claim(from, token)),
        3 => (from.clone(), prop::option::of(1u8..3), prop::sample::select(vec![0u32, 600, 1_200]))
            .prop_map(|(from, family, lifetime_s)| Step::Refresh(from, family, lifetime_s)),
        1 => (from, 0u8..3).prop_map(|(from, host)| Step::Bind(from, host)),
        2 => (1u64..400).prop_map(Step::Pass),
    ]
}

fn take(world: &mut World, step: &Step, tokens: &mut Vec<Vec<u8>>) {
    let client = |port: u16| SocketAddr::new([192, 0, 2, 9].into(), port);
    let code = match step {
        Step::Allocate(from, attrs) => {
            let attrs: Vec<_> = [(TRANSPORT, UDP.to_vec())].iter().chain(attrs).cloned().collect();
            let reply = world.ask(client(*from), ALLOCATE, &attrs);
            tokens.extend(reply.get(RESERVATION_TOKEN).map(<[u8]>::to_vec));
            reply.code()
        }
        Step::Claim(_, _) if tokens.is_empty() => 0,
        Step::Claim(from, which) => claim_as(world, "alice", client(*from), &tokens[which.index(tokens.len())]).code(),
        Step::Refresh(from, family, lifetime_s) => {
            let mut attrs = vec![(LIFETIME, lifetime_s.to_be_bytes().to_vec())];
            attrs.extend(family.map(|family| (wire::ADDRESS_FAMILY, vec![family, 0, 0, 0])));
            world.ask(client(*from), REFRESH, &attrs).code()
        }
        Step::Bind(from, host) => {
            let peers = [addr("8.8.8.8:1"), addr("[2606:4700::1]:1"), addr("8.8.4.4:1")];
            world.bind(client(*from), 0x4000 + u16::from(*host), peers[usize::from(*host)])
        }
        Step::Pass(seconds) => {
            world.run_s(*seconds);
            0
        }
    };
    assert!(matches!(code, 0 | 437 | 443 | 486 | 508), "{code} {step:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens: a relayed address is one allocation's, and at the end every relay, every unit of quota and
    /// every timer has come back.
    #[test]
    fn rfc_r069_every_relay_and_every_unit_comes_back(steps in prop::collection::vec(step(), 1..60)) {
        let quotas = Quotas { allocations_per_user: 5, bytes_per_second_per_user: 1 << 20, ..world::quotas() };
        let shared = std::sync::Arc::new(tt_turn::shared::Shared::new(quotas, 64, 42));
        let mut world = World::sharing(world::config(), world::capacity(), world::secrets(1), &shared, 0);
        let v6 = |number: u32| {
            let bound = SocketAddr::new([0x2a00, 0, 0, 0, 0, 0, 0, 9].into(), 50_000 + number as u16);
            (RelayId(number), RelayAddress { bound, external: bound })
        };
        world.server.add_relay_pair(relay_at(0, 50_000), relay_at(1, 50_001)).expect("a pair");
        world.server.add_relay_pair(relay_at(2, 50_002), relay_at(3, 50_003)).expect("a pair");
        (4..7).for_each(|number| world.server.add_relay(RelayId(number), relay_at(number, 50_000 + number as u16).1).expect("a relay"));
        (7..10).for_each(|number| world.server.add_relay(RelayId(number), v6(number).1).expect("a relay"));
        let (mut tokens, mut retired) = (Vec::new(), 0);
        for step in &steps {
            take(&mut world, step, &mut tokens);
            let mut relayed: Vec<_> =
                world.server.live_allocations().flat_map(|live| [Some(live.relayed), live.relayed_second]).flatten().collect();
            relayed.sort_unstable();
            let count = relayed.len();
            relayed.dedup();
            prop_assert_eq!(relayed.len(), count, "a relayed address of two allocations");
            prop_assert!(shared.allocations() <= 5 && shared.allocations() as usize >= world.server.allocations());
            retired += std::iter::from_fn(|| world.server.poll_relay()).count();
            let waiting = world.server.relays_pooled(IpFamily::V4) + world.server.relays_pooled(IpFamily::V6);
            let reserved = shared.allocations() as usize - world.server.allocations();
            prop_assert_eq!(waiting + retired + count + reserved, 10, "a relay is somewhere, and once");
        }
        world.run_s(5_000);
        retired += std::iter::from_fn(|| world.server.poll_relay()).count();
        let waiting = world.server.relays_pooled(IpFamily::V4) + world.server.relays_pooled(IpFamily::V6);
        prop_assert_eq!((waiting + retired, shared.allocations(), world.server.poll_timeout()), (10, 0, None));
        prop_assert_eq!(world.server.counters().allocations_made, world.server.counters().allocations_ended);
    }
}

/// A driver would take a socket from the pool, register it and give it back, for each datagram of a flood.
#[test]
fn a_forged_allocate_needs_no_relay() {
    let mut world = world_with_pair(world::quotas());
    let token = token(&reserve(&mut world, addr(OTHER)));
    let claims = [(TRANSPORT, UDP.to_vec()), (RESERVATION_TOKEN, token)];
    let (client, neighbour) = (addr("192.0.2.1:1"), addr("192.0.2.1:2"));
    let need = |world: &World, from: SocketAddr, bytes: &[u8]| {
        world.server.relay_need(world.now, &world.flow(from), bytes).is_some()
    };
    let request = world.unsigned(client, "alice", ALLOCATE, &claims).integrity(&key("alice")).0;
    assert!(need(&world, client, &request));
    assert!(!need(&world, neighbour, &request), "the nonce of another port");
    let nonce = world.nonce(client);
    let place = request.windows(nonce.len()).position(|bytes| bytes == nonce).expect("of the same second");
    let mut made_up = request.clone();
    made_up[place + nonce.len() - 1] = if nonce.last() == Some(&b'A') { b'B' } else { b'A' };
    assert!(!need(&world, client, &made_up), "a nonce that was never issued");
    world.pass_s(86_400);
    assert!(!need(&world, client, &request), "a stale nonce");
}
