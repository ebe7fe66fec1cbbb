//! Four workers that share quotas and know whose flow is whose.

use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::thread;

use tt_model::Transport;
use tt_turn::event::EndReason;
use tt_turn::relay::{PeerPath, RelayAddress, RelayDemand, RelayId, ReservationEnd};
use tt_turn::shared::{Pools, Quotas, Shared};
use tt_turn::{DropReason, RejectReason, WorkerId};

use super::reservations::{self, relay_at};
use super::wire::{self, ALLOCATE, LIFETIME, REFRESH, TRANSPORT, Writer};
use super::world::{self, Out, Reserved, UDP, World, addr, key};

const WORKERS: u16 = 4;

fn worker(shared: &Arc<Shared>, number: u16) -> World {
    let mut world = World::sharing(world::config(), world::capacity(), world::secrets(number as u8), shared, number);
    for relay in 0..32 {
        let port = 50_000 + number * 100 + relay as u16;
        let bound = SocketAddr::new([198, 41, 0, 9].into(), port);
        world.server.add_relay(RelayId(relay), RelayAddress { bound, external: bound }).expect("a relay");
    }
    world
}

#[test]
fn case_a54_a_quota_of_one_holds_over_all_workers() {
    for round in 0..20u64 {
        let quotas = Quotas { allocations_per_user: 1, ..world::quotas() };
        let shared = Arc::new(Shared::new(quotas, 256, round));
        let barrier = Arc::new(Barrier::new(usize::from(WORKERS)));
        let threads: Vec<_> = (0..WORKERS)
            .map(|number| {
                let (shared, barrier) = (Arc::clone(&shared), Arc::clone(&barrier));
                thread::spawn(move || {
                    let mut world = worker(&shared, number);
                    let clients = (0..16).map(|port| addr(&format!("192.0.2.{number}:{}", 1_000 + port)));
                    let requests: Vec<_> = clients
                        .map(|client| {
                            let unsigned = world.unsigned(client, "alice", ALLOCATE, &[(TRANSPORT, UDP.to_vec())]);
                            (client, unsigned.integrity(&key("alice")).0)
                        })
                        .collect();
                    barrier.wait();
                    let codes: Vec<_> = requests
                        .iter()
                        .map(|(from, bytes)| (*from, world.client(*from, bytes).reply().code()))
                        .collect();
                    barrier.wait();
                    // The unit comes back: everybody in turn may have it.
                    if let Some((from, _)) = codes.iter().find(|(_, code)| *code == 0) {
                        assert_eq!(world.ask(*from, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
                    }
                    codes
                })
            })
            .collect();
        let codes: Vec<u16> =
            threads.into_iter().flat_map(|thread| thread.join().expect("ends")).map(|(_, code)| code).collect();
        assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1);
        assert_eq!(codes.iter().filter(|code| **code == 486).count(), 63);
        assert_eq!(shared.allocations(), 0);
        let mut last = worker(&shared, 0);
        last.allocate(addr("192.0.2.99:1"));
        assert_eq!(shared.allocations(), 1);
        last.run_s(601);
        assert_eq!(shared.allocations(), 0);
    }
}

#[test]
fn the_total_holds_through_churn() {
    let quotas = Quotas { allocations_total: 40, allocations_per_user: 25, ..world::quotas() };
    let shared = Arc::new(Shared::new(quotas, 256, 7));
    let threads: Vec<_> = (0..WORKERS)
        .map(|number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut world = worker(&shared, number);
                let mut made = 0;
                for round in 0..400u64 {
                    let from = addr(&format!("192.0.2.{number}:{}", 1_000 + round % 24));
                    let name = if round % 3 == 0 { "alice" } else { "bob" };
                    let code = world.ask_as(name, from, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code();
                    assert!(matches!(code, 0 | 437 | 486 | 508), "{code}");
                    made += u64::from(code == 0);
                    assert!(shared.allocations() <= 40);
                    if round % 5 == 4 {
                        world.run_s(100);
                    }
                    while let Some(RelayDemand::Retire(id)) = world.server.poll_relay() {
                        let port = 50_000 + number * 100 + id.0 as u16;
                        let bound = SocketAddr::new([198, 41, 0, 9].into(), port);
                        world.server.add_relay(id, RelayAddress { bound, external: bound }).expect("a relay");
                    }
                }
                world.run_s(4_000);
                assert_eq!((world.server.allocations(), world.server.counters().allocations_ended), (0, made));
                made
            })
        })
        .collect();
    let made: u64 = threads.into_iter().map(|thread| thread.join().expect("ends")).sum();
    assert!(made > 200, "{made}");
    assert_eq!(shared.allocations(), 0);
}

#[test]
fn a_datagram_of_another_workers_flow_is_handed_over() {
    let shared = Arc::new(Shared::new(world::quotas(), 64, 3));
    let (mut one, mut two) = (worker(&shared, 0), worker(&shared, 1));
    let (from, peer) = (addr("192.0.2.1:1"), addr("8.8.8.8:53"));
    let (relay, relayed) = one.allocate(from);
    assert_eq!(one.bind(from, 0x4000, peer), 0);
    let send = Writer::new(wire::SEND, 1, [3; 12]).address(wire::PEER_ADDRESS, peer).attr(wire::DATA, b"hello").0;
    let refresh = one.unsigned(from, "alice", REFRESH, &[]).integrity(&key("alice")).0;
    for datagram in [send.clone(), vec![0x40, 0, 0, 1, 9], refresh.clone()] {
        assert_eq!(two.client(from, &datagram), Out::HandOff(WorkerId(0)));
    }
    assert_eq!(two.server.counters().handed_off, 3);
    assert_eq!(one.client(from, &send), Out::ToPeer { relay, peer, payload: b"hello".to_vec() });
    assert_eq!(one.client(from, &refresh).reply().code(), 0);
    // Binding is answered where it comes.
    assert!(matches!(two.client(from, &Writer::new(wire::BINDING, 0, [1; 12]).0), Out::Reply(_)));
    // Another worker's live relayed address is a peer like our own.
    let other = addr("192.0.2.2:1");
    let (_, others) = two.allocate(other);
    assert_eq!(two.permit(other, relayed), 0);
    let path = PeerPath { relay, peer: others };
    assert_eq!(two.send(other, relayed, b"x"), Out::ToWorker { worker: WorkerId(0), path, payload: b"x".to_vec() });
    // After its end the flow is nobody's.
    assert_eq!(one.ask(from, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    two.allocate(from);
    assert_eq!(one.client(from, &send), Out::HandOff(WorkerId(1)));
}

#[test]
fn a_nonce_of_one_worker_counts_at_another() {
    let shared = Arc::new(Shared::new(world::quotas(), 64, 3));
    let (mut one, mut two) = (worker(&shared, 0), worker(&shared, 1));
    let from = addr("192.0.2.1:1");
    let request = one.unsigned(from, "alice", ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).integrity(&key("alice")).0;
    assert_eq!(two.client(from, &request).reply().code(), 0);
}

/// Four workers of one process: each finds the reserved relays of all.
fn workers_with_pairs(shared: &Arc<Shared>) -> Vec<World> {
    let reserved = Reserved::default();
    let with_pairs = |number: u16| {
        let mut world = worker(shared, number);
        for relay in (40..64).step_by(2) {
            let [even, odd] = [relay, relay + 1].map(|relay: u16| relay_at(u32::from(relay), pair_port(number, relay)));
            world.server.add_relay_pair(even, odd).expect("a pair");
        }
        world.reserved = Arc::clone(&reserved);
        world
    };
    (0..WORKERS).map(with_pairs).collect()
}

fn pair_port(worker: u16, relay: u16) -> u16 {
    60_000 + worker * 100 + relay - 40
}

fn claim_request(world: &mut World, user: &str, from: SocketAddr, token: &[u8]) -> Vec<u8> {
    let attrs = [(TRANSPORT, UDP.to_vec()), (wire::RESERVATION_TOKEN, token.to_vec())];
    world.unsigned(from, user, ALLOCATE, &attrs).integrity(&key(user)).0
}

/// Reserved at one worker, claimed at each over each transport: the relay moves to the worker of the flow.
#[test]
fn rfc_r086_case_a50_a_token_is_claimed_at_every_worker_over_every_transport() {
    let shared = Arc::new(Shared::new(world::quotas(), 256, 3));
    let mut workers = workers_with_pairs(&shared);
    let peer = addr("8.8.8.8:53");
    for (round, transport) in (0u16..).zip([Transport::Udp, Transport::Tcp, Transport::Tls]) {
        for claims_at in 0..WORKERS {
            let (holds, other) = ((claims_at + round) % WORKERS, (claims_at + 1) % WORKERS);
            let reply =
                reservations::reserve(&mut workers[usize::from(holds)], addr(&format!("192.0.2.1:{claims_at}{round}")));
            let (made, even) = (reservations::token(&reply), reply.address(wire::RELAYED_ADDRESS).expect("an address"));
            let (from, reserved) =
                (addr(&format!("192.0.2.2:{claims_at}{round}")), addr(&format!("198.41.0.9:{}", even.port() + 1)));
            let world = &mut workers[usize::from(claims_at)];
            world.transport = transport;
            let request = claim_request(world, "alice", from, &made);
            let reply = world.client(from, &request).reply();
            assert_eq!((reply.code(), reply.address(wire::RELAYED_ADDRESS)), (0, Some(reserved)));
            assert_eq!(world.client(from, &request).reply().bytes, reply.bytes, "sent again");
            assert_eq!(world.permit(from, peer), 0);
            let Out::ToPeer { relay, .. } = world.send(from, peer, b"x") else { panic!("not relayed") };
            assert!(matches!(world.peer(relay, peer, b"y"), Out::ToClient { client, .. } if client == from));
            world.transport = Transport::Udp;
            // Used up, and the flow is this worker's.
            let world = &mut workers[usize::from(other)];
            let late = addr(&format!("192.0.2.3:{claims_at}{round}"));
            let before = world.server.counters().rejected(RejectReason::Token);
            assert_eq!(reservations::claim_as(world, "alice", late, &made).code(), 508);
            assert_eq!(world.server.counters().rejected(RejectReason::Token), before + 1);
            world.transport = transport;
            assert_eq!(world.client(from, &request), Out::HandOff(WorkerId(claims_at)));
            world.transport = Transport::Udp;
        }
    }
    assert_eq!(shared.allocations(), 2 * 3 * u32::from(WORKERS));
    workers.iter_mut().for_each(|world| world.run_s(4_000));
    assert_eq!(shared.allocations(), 0);
}

/// Tokens raced for by all workers: each is claimed once, and every unit comes back.
#[test]
fn case_a48_case_a50_a_token_is_claimed_once_whoever_races_for_it() {
    for round in 0..20u64 {
        let shared = Arc::new(Shared::new(world::quotas(), 256, round));
        let mut workers = workers_with_pairs(&shared);
        let made = reservations::token(&reservations::reserve(&mut workers[0], addr("192.0.2.1:1")));
        let barrier = Arc::new(Barrier::new(usize::from(WORKERS)));
        let rivals: Vec<_> = (0u16..)
            .zip(workers)
            .map(|(number, mut world)| {
                let (barrier, made) = (Arc::clone(&barrier), made.clone());
                thread::spawn(move || {
                    let from = addr(&format!("192.0.2.{number}:7"));
                    world.transport = Transport::Tcp;
                    let request = claim_request(&mut world, "alice", from, &made);
                    barrier.wait();
                    let code = world.client(from, &request).reply().code();
                    (code, world)
                })
            })
            .collect();
        let (codes, mut workers): (Vec<_>, Vec<_>) =
            rivals.into_iter().map(|rival| rival.join().expect("ends")).unzip();
        assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == 508).count(), 3, "{codes:?}");
        workers.iter_mut().for_each(|world| world.run_s(4_000));
        assert_eq!(shared.allocations(), 0);
        assert!(workers.iter().all(|world| world.server.poll_timeout().is_none()));
    }
}

/// A claim in a reservation's last nanosecond races with its end at another worker: one of them has the relay.
#[test]
fn case_a50_a_token_is_claimed_or_ends() {
    for round in 0..40u64 {
        let shared = Arc::new(Shared::new(world::quotas(), 256, round));
        let mut workers = workers_with_pairs(&shared);
        let made = reservations::token(&reservations::reserve(&mut workers[0], addr("192.0.2.1:1")));
        let (_, reservation) = *workers[0].reserved.lock().unwrap().values().next().expect("a reservation");
        let (mut claims, mut ends) = (workers.remove(1), workers.remove(1));
        claims.transport = Transport::Tcp;
        claims.now = tt_model::Nanos(reservation.expires().0 - 1);
        ends.now = reservation.expires();
        let from = addr("192.0.2.2:7");
        let request = claim_request(&mut claims, "bob", from, &made);
        let lent = claims.lend(from, &request);
        let number = RelayId(36);
        assert_eq!(
            ends.server.end_reservation(claims.now, number, &reservation),
            Ok(ReservationEnd::Pending),
            "too early"
        );
        let barrier = Barrier::new(2);
        let (code, end) = thread::scope(|scope| {
            let claim = scope.spawn(|| {
                barrier.wait();
                claims.handle(from, &request).reply().code()
            });
            barrier.wait();
            let end = ends.server.end_reservation(ends.now, number, &reservation).expect("a free number");
            (claim.join().expect("ends"), end)
        });
        match (code, end) {
            (0, ReservationEnd::Claimed | ReservationEnd::Pending) => {
                let late = ends.server.end_reservation(ends.now, number, &reservation);
                assert_eq!((late, ends.server.poll_relay()), (Ok(ReservationEnd::Claimed), None));
            }
            (508, ReservationEnd::Retired) => {
                assert_eq!(ends.server.poll_relay(), Some(RelayDemand::Retire(number)));
                ends.server.end_rest(number);
            }
            other => panic!("{other:?}"),
        }
        claims.settle(lent, &request);
        workers[0].reserved.lock().unwrap().clear();
        [&mut workers[0], &mut claims].into_iter().for_each(|world| world.run_s(4_000));
        assert_eq!(shared.allocations(), 0);
    }
}

/// The worker that reserved has failed: another one ends its reservation when it expires, and every unit comes back.
#[test]
fn a_reservation_of_a_worker_that_failed_expires_at_another() {
    let pools = Pools { allocations: 8, ports: 8, reservations: 4, ..Pools::UNLIMITED };
    let shared = Arc::new(Shared::with_pools(world::quotas(), 64, pools, 3));
    let mut workers = workers_with_pairs(&shared);
    let made = reservations::token(&reservations::reserve(&mut workers[0], addr("192.0.2.1:1")));
    let (_, reservation) = *workers[0].reserved.lock().unwrap().values().next().expect("a reservation");
    let mut failed = workers.remove(0);
    failed.server.end_all(failed.now, EndReason::WorkerFailed);
    drop(failed);
    let used = |shared: &Shared| (shared.allocations(), shared.used().ports, shared.used().reservations);
    assert_eq!(used(&shared), (1, 1, 1), "the reservation is left");
    let (now, number, other) = (reservation.expires(), RelayId(36), &mut workers[0]);
    let early = other.server.end_reservation(tt_model::Nanos(now.0 - 1), number, &reservation);
    assert_eq!(early, Ok(ReservationEnd::Pending));
    assert_eq!(other.server.end_reservation(now, number, &reservation), Ok(ReservationEnd::Retired));
    assert_eq!(other.server.poll_relay(), Some(RelayDemand::Retire(number)));
    assert_eq!(used(&shared), (0, 1, 0), "its port rests");
    other.server.end_rest(number);
    assert_eq!(used(&shared), (0, 0, 0));
    other.now = now;
    assert_eq!(reservations::claim_as(other, "bob", addr("192.0.2.2:7"), &made).code(), 508);
}

/// A claim that is rejected leaves the token to another one, at another worker; and every unit is paid for once.
#[test]
fn a_rejected_claim_leaves_the_token_valid_at_every_worker() {
    let pools = Pools { allocations: 3, ports: 3, reservations: 1, ..Pools::UNLIMITED };
    let quotas = Quotas { allocations_per_user: 2, user_share_percent: 100, ..world::quotas() };
    let shared = Arc::new(Shared::with_pools(quotas, 64, pools, 3));
    let mut workers = workers_with_pairs(&shared);
    for round in 0..36u16 {
        let (holds, claims) = (usize::from(round % WORKERS), usize::from(round / 3 % WORKERS));
        let holder = addr(&format!("192.0.2.1:{}", 1_000 + round));
        let reply = reservations::reserve(&mut workers[holds], holder);
        assert_eq!(reply.code(), 0, "round {round}: a unit is missing");
        let made = reservations::token(&reply);
        // One unit of three is left: bob has it, and none for a claim.
        let from = addr(&format!("192.0.2.2:{}", 1_000 + round));
        let world = &mut workers[claims];
        world.transport = Transport::Tls;
        assert_eq!(world.ask_as("bob", from, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
        let second = addr(&format!("192.0.2.3:{}", 1_000 + round));
        assert!(matches!(reservations::claim_as(world, "bob", second, &made).code(), 486 | 508));
        assert_eq!(world.ask_as("bob", from, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        rest(world);
        // The same user's units become those of the allocation; another user pays, and the holder does not.
        let user = if round % 2 == 0 { "alice" } else { "bob" };
        if round % 5 > 0 {
            assert_eq!(reservations::claim_as(world, user, second, &made).code(), 0);
            assert_eq!(world.ask_as(user, second, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        }
        rest(world);
        world.transport = Transport::Udp;
        assert_eq!(workers[holds].ask(holder, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        workers.iter_mut().for_each(|world| world.pass_s(61));
        workers[claims].run_s(0);
        workers.iter_mut().for_each(rest);
        assert_eq!(shared.allocations(), 0);
    }
}

/// The driver's rest of retired relays, and their return to where they were bound.
fn rest(world: &mut World) {
    while let Some(RelayDemand::Retire(id)) = world.server.poll_relay() {
        world.server.end_rest(id);
    }
}

/// A user at twice the bandwidth, over all workers together, for a minute: the excess is dropped under its name, and
/// another user of the same workers loses nothing.
#[test]
fn case_a76_bandwidth_is_one_users_at_all_workers() {
    const BYTES: u64 = 100_000;
    let quotas = Quotas { bytes_per_second_per_user: BYTES, ..world::quotas() };
    let shared = Arc::new(Shared::new(quotas, 256, 11));
    let (heavy, light, peer) = (addr("192.0.2.1:1"), addr("192.0.2.1:2"), addr("8.8.8.8:53"));
    let mut workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let mut world = worker(&shared, number);
            world.listener.set_port(3_478 + number);
            let relay = world.ask(heavy, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).address(wire::RELAYED_ADDRESS);
            let relay = RelayId(u32::from(relay.expect("an address").port() - 50_000 - number * 100));
            assert_eq!(world.ask_as("bob", light, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
            assert_eq!(world.permit(heavy, peer), 0);
            let attr = world.peer_attr(peer);
            assert_eq!(world.ask_as("bob", light, wire::CREATE_PERMISSION, &[attr]).code(), 0);
            (world, relay)
        })
        .collect();
    // 500 bytes out and 500 in each 20 ms are 50,000 a second at each of four workers, and the headers: IPv4 and UDP,
    // and in a Data indication.
    const OUT: u64 = 20 + 8 + 500;
    const IN: u64 = 20 + 8 + 20 + 12 + 4 + 500;
    let (mut carried, mut dropped, mut drops) = (0, 0, 0);
    for _ in 0..60 * 50 {
        for (world, relay) in &mut workers {
            world.now.0 += 20_000_000;
            for (len, out) in [(OUT, world.send(heavy, peer, &[1; 500])), (IN, world.peer(*relay, peer, &[2; 500]))] {
                match out {
                    Out::ToPeer { .. } | Out::ToClient { .. } => carried += len,
                    Out::Drop(DropReason::UserBandwidth) => (dropped, drops) = (dropped + len, drops + 1),
                    Out::Reply(_) | Out::ToWorker { .. } | Out::HandOff(_) | Out::Drop(_) => panic!("{out:?}"),
                }
            }
            // Six sevenths of what one user may send.
            assert!(matches!(world.send(light, peer, &[3; 400]), Out::ToPeer { .. }), "another user's");
        }
    }
    assert_eq!(carried + dropped, 60 * 50 * u64::from(WORKERS) * (OUT + IN));
    // What the user has not sent before the minute is not saved up: a new allocation's bucket is empty.
    assert!((60 * BYTES - IN..=60 * BYTES).contains(&carried), "{carried}");
    let counted: u64 =
        workers.iter().map(|(world, _)| world.server.counters().dropped(DropReason::UserBandwidth)).sum();
    assert_eq!(counted, drops);
}
