//! Four workers that share quotas and know whose flow is whose.

use std::sync::{Arc, Barrier};
use std::thread;

use tt_turn::relay::RelayAddress;
use tt_turn::shared::Quotas;
use tt_turn::{RelayId, Shared, WorkerId};

use super::wire::{self, ALLOCATE, LIFETIME, REFRESH, TRANSPORT, Writer};
use super::world::{self, Out, UDP, World, addr, key};

const WORKERS: u16 = 4;

fn worker(shared: &Arc<Shared>, number: u16) -> World {
    let mut world = World::sharing(world::config(), world::capacity(), world::secrets(number as u8), shared, number);
    for relay in 0..32 {
        let port = 50_000 + number * 100 + relay as u16;
        let bound = std::net::SocketAddr::new([198, 41, 0, 9].into(), port);
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
                    while let Some(tt_turn::relay::RelayDemand::Retire(id)) = world.server.poll_relay() {
                        let port = 50_000 + number * 100 + id.0 as u16;
                        let bound = std::net::SocketAddr::new([198, 41, 0, 9].into(), port);
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
        assert_eq!(two.client(from, &datagram), Out::HandOver(WorkerId(0)));
    }
    assert_eq!(two.server.counters().handed_over, 3);
    assert_eq!(one.client(from, &send), Out::ToPeer { relay, peer, payload: b"hello".to_vec() });
    assert_eq!(one.client(from, &refresh).reply().code(), 0);
    // Binding is answered where it comes.
    assert!(matches!(two.client(from, &Writer::new(wire::BINDING, 0, [1; 12]).0), Out::Reply(_)));
    // Another worker's live relayed address is a peer like our own.
    let other = addr("192.0.2.2:1");
    two.allocate(other);
    assert_eq!(two.permit(other, relayed), 0);
    assert!(matches!(two.send(other, relayed, b"x"), Out::ToPeer { .. }));
    // After its end the flow is nobody's.
    assert_eq!(one.ask(from, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    two.allocate(from);
    assert_eq!(one.client(from, &send), Out::HandOver(WorkerId(1)));
}

#[test]
fn a_nonce_of_one_worker_counts_at_another() {
    let shared = Arc::new(Shared::new(world::quotas(), 64, 3));
    let (mut one, mut two) = (worker(&shared, 0), worker(&shared, 1));
    let from = addr("192.0.2.1:1");
    let request = one.unsigned(from, "alice", ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).integrity(&key("alice")).0;
    assert_eq!(two.client(from, &request).reply().code(), 0);
}
