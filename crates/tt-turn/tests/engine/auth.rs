//! Authentication: cases A26 to A41.

use tt_turn::DropReason;
use tt_turn::codec::Message;
use tt_turn::shared::{Budget, Quotas};

use super::wire::{self, ALLOCATE, CREATE_PERMISSION, NONCE, REALM, REFRESH, Reading, Writer};
use super::world::{self, Out, UDP, WALL_S, World, addr, key};

fn code(world: &mut World, from: &str, bytes: &[u8]) -> Reading {
    world.client(addr(from), bytes).reply()
}

const FROM: &str = "192.0.2.1:1";

#[test]
fn case_a26_no_integrity() {
    let mut world = World::new();
    for method in [ALLOCATE, REFRESH, CREATE_PERMISSION, wire::CHANNEL_BIND] {
        let tid = world.tid();
        let reply = code(&mut world, FROM, &Writer::new(method, 0, tid).0);
        assert_eq!((reply.code(), reply.kinds()), (401, world::CHALLENGE.to_vec()));
        assert_eq!(reply.get(REALM), Some(&b"example.org"[..]));
        let nonce = reply.get(NONCE).expect("a nonce");
        assert!(nonce.starts_with(b"obMatJos2wAAA") && nonce.len() < 128);
    }
    assert_eq!(world.server.allocations(), 0);
}

#[test]
fn case_a27_missing_attributes() {
    let mut world = World::new();
    let nonce = world.nonce(addr(FROM));
    let parts = [(wire::USERNAME, &b"alice"[..]), (REALM, b"example.org"), (NONCE, &nonce)];
    for missing in 0..3 {
        let tid = world.tid();
        let mut writer = Writer::new(ALLOCATE, 0, tid).attr(wire::TRANSPORT, &UDP);
        for (kind, value) in parts.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, part)| *part) {
            writer = writer.attr(kind, value);
        }
        let reply = code(&mut world, FROM, &writer.integrity(&key("alice")).0);
        assert_eq!((reply.code(), reply.kinds()), (400, vec![wire::ERROR_CODE]));
    }
}

#[test]
fn case_a28_integrity_of_a_wrong_length() {
    let mut world = World::new();
    for len in [0, 19, 21] {
        let unsigned = world.unsigned(addr(FROM), "alice", ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
        let reply = code(&mut world, FROM, &unsigned.attr(wire::INTEGRITY, &vec![1; len]).0);
        assert_eq!((reply.code(), reply.kinds()), (401, world::CHALLENGE.to_vec()));
    }
}

/// A flood of requests so short that their answers have more than three times their bytes.
#[test]
fn case_a30_a42_unauthenticated_replies_have_a_budget() {
    let none = Budget { per_second: 0, burst: 0 };
    // 28 bytes beyond three times those of the request, ten times a second.
    let own = Budget { per_second: 280, burst: 280 };
    let quotas = Quotas { error_excess: none, error_excess_per_source: own, ..Quotas::default() };
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    let bare = |world: &mut World, from| {
        let tid = world.tid();
        world.client(from, &Writer::new(ALLOCATE, 0, tid).0)
    };
    // 10,000 a second for three seconds from one address and many ports.
    let (mut answered, mut dropped) = (0, 0);
    for step in 0..30_000u64 {
        if step % 10 == 0 {
            world.now.0 += 1_000_000;
        }
        let from = std::net::SocketAddr::new([192, 0, 2, 7].into(), 1_024 + (step % 5_000) as u16);
        match bare(&mut world, from) {
            Out::Reply(bytes) => {
                assert_eq!((Reading::of(&bytes).code(), bytes.len()), (401, 88));
                answered += 1;
            }
            Out::Drop(DropReason::ErrorBudget) => dropped += 1,
            other @ (Out::ToPeer { .. }
            | Out::ToClient { .. }
            | Out::ToWorker { .. }
            | Out::HandOff(_)
            | Out::Drop(_)) => {
                panic!("{other:?}")
            }
        }
    }
    assert!((30..=40).contains(&answered), "{answered}");
    assert_eq!(answered + dropped, 30_000);
    // Others lose nothing, and the same address gets every answer to a request with credentials.
    for host in 0..50u8 {
        let other = std::net::SocketAddr::new([198, 51, 100, host].into(), 9);
        assert!(matches!(bare(&mut world, other), Out::Reply(_)));
        let tid = world.tid();
        let forged = Writer::new(ALLOCATE, 0, tid).attr(wire::USERNAME, b"alice").attr(REALM, b"example.org");
        let forged = forged.attr(NONCE, b"garbage").integrity(b"forged").0;
        assert_eq!(world.client(addr("192.0.2.7:9"), &forged).reply().code(), 401);
    }
    assert_eq!(world.server.allocations(), 0);
}

#[test]
fn case_a31_a32_stale_nonce_and_the_order_of_checks() {
    let mut world = World::new();
    let refresh = |world: &mut World, nonce: &[u8], key: &[u8]| {
        let tid = world.tid();
        let request = Writer::new(REFRESH, 0, tid)
            .attr(wire::USERNAME, b"alice")
            .attr(REALM, b"example.org")
            .attr(NONCE, nonce)
            .integrity(key);
        code(world, FROM, &request.0)
    };
    let nonce = world.nonce(addr(FROM));
    assert_eq!(refresh(&mut world, &nonce, &key("alice")).code(), 437);
    world.pass_s(3_599);
    assert_eq!(refresh(&mut world, &nonce, &key("alice")).code(), 437);
    world.pass_s(1);
    let reply = refresh(&mut world, &nonce, &key("alice"));
    assert_eq!((reply.code(), reply.kinds()), (438, world::CHALLENGE.to_vec()));
    let fresh = reply.get(NONCE).expect("a nonce").to_vec();
    assert_eq!(refresh(&mut world, &nonce, b"wrong").code(), 401);
    assert_eq!(refresh(&mut world, &fresh, &key("alice")).code(), 437);
}

/// A server may remember that a client's nonce was right: not for the next client in the place of its allocation.
#[test]
fn an_allocation_in_the_place_of_another_does_not_accept_its_nonce() {
    let mut world = World::new();
    let (before, after) = (addr(FROM), addr("192.0.2.1:2"));
    let refresh = |world: &mut World, from, nonce: &[u8], lifetime_s: u32| {
        let tid = world.tid();
        let request = Writer::new(REFRESH, 0, tid)
            .attr(wire::LIFETIME, &lifetime_s.to_be_bytes())
            .attr(wire::USERNAME, b"alice")
            .attr(REALM, b"example.org")
            .attr(NONCE, nonce)
            .integrity(&key("alice"));
        world.client(from, &request.0).reply().code()
    };
    world.allocate(before);
    let nonce = world.nonce(before);
    assert_eq!([600, 600, 0].map(|lifetime_s| refresh(&mut world, before, &nonce, lifetime_s)), [0; 3]);
    world.allocate(after);
    assert_eq!(refresh(&mut world, after, &nonce, 600), 438);
    let own = world.nonce(after);
    assert_eq!([(); 2].map(|()| refresh(&mut world, after, &own, 600)), [0; 2]);
    assert_eq!(refresh(&mut world, after, &nonce, 600), 438);
    world.pass_s(3_600);
    assert_eq!(refresh(&mut world, after, &own, 600), 438);
    world.probe();
}

#[test]
fn case_a33_a34_a41_nonces_of_others_and_forged_ones() {
    let mut world = World::new();
    let (victim, other) = (addr(FROM), addr("192.0.2.1:2"));
    world.allocate(victim);
    let captured = world.unsigned(victim, "alice", REFRESH, &[(wire::LIFETIME, vec![0; 4])]).integrity(&key("alice")).0;
    assert_eq!(world.client(other, &captured).reply().code(), 438);
    assert_eq!(world.server.allocations(), 1);

    let nonce = world.nonce(victim);
    for at in 0..nonce.len() {
        let mut changed = nonce.clone();
        changed[at] = if changed[at] == b'A' { b'g' } else { b'A' };
        let tid = world.tid();
        let request = Writer::new(REFRESH, 0, tid)
            .attr(wire::USERNAME, b"alice")
            .attr(REALM, b"example.org")
            .attr(NONCE, &changed)
            .integrity(&key("alice"));
        assert_eq!(world.client(victim, &request.0).reply().code(), 438, "{at}");
    }
    world.probe();
}

#[test]
fn case_a37_a38_unknown_user_looks_like_a_wrong_password() {
    let mut world = World::new();
    let ask = |world: &mut World, name: &str| {
        let request = world.unsigned(addr(FROM), name, ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
        code(world, FROM, &request.integrity(b"wrong").0)
    };
    let (unknown, wrong) = (ask(&mut world, "mallo"), ask(&mut world, "alice"));
    assert_eq!((unknown.code(), unknown.kinds()), (wrong.code(), wrong.kinds()));
    assert_eq!((wrong.code(), unknown.bytes.len()), (401, wrong.bytes.len()));
    // A37: an unknown USERHASH, and some of a wrong length.
    for hash in [vec![7; 32], vec![], wire::userhash("alice", world::REALM)[..31].to_vec(), vec![7; 33]] {
        let (nonce, tid) = (world.nonce(addr(FROM)), world.tid());
        let hashed = Writer::new(ALLOCATE, 0, tid).attr(wire::USERHASH, &hash).attr(REALM, b"example.org");
        let reply = code(&mut world, FROM, &hashed.attr(NONCE, &nonce).integrity(&key("alice")).0);
        assert_eq!((reply.code(), reply.kinds()), (401, wrong.kinds()));
    }
}

#[test]
fn another_realm_is_401() {
    let mut world = World::new();
    let nonce = world.nonce(addr(FROM));
    let tid = world.tid();
    let request = Writer::new(ALLOCATE, 0, tid)
        .attr(wire::USERNAME, b"alice")
        .attr(REALM, b"example.net")
        .attr(NONCE, &nonce)
        .integrity(&key("alice"));
    assert_eq!(code(&mut world, FROM, &request.0).code(), 401);
}

#[test]
fn case_a12_a13_a14_a15_attributes_after_integrity_do_not_count() {
    let mut world = World::new();
    let from = addr(FROM);
    let (relay, _) = world.allocate(from);
    // A13: LIFETIME 0 behind the code of a Refresh that asks for 1,000 s.
    let lifetime = (wire::LIFETIME, 1_000u32.to_be_bytes().to_vec());
    let signed = world.unsigned(from, "alice", REFRESH, &[lifetime]).integrity(&key("alice"));
    let reply = world.client(from, &signed.attr(wire::LIFETIME, &[0; 4]).fingerprint().0).reply();
    assert_eq!((reply.code(), reply.lifetime()), (0, Some(1_000)));
    assert_eq!(world.server.allocations(), 1);
    // The same where nothing before the code would win over it.
    let signed = world.unsigned(from, "alice", REFRESH, &[]).integrity(&key("alice"));
    let reply = world.client(from, &signed.attr(wire::LIFETIME, &[0; 4]).fingerprint().0).reply();
    assert_eq!((reply.code(), reply.lifetime(), world.server.allocations()), (0, Some(600), 1));
    // A14: a peer behind the code is not permitted.
    let (inside, outside) = (addr("8.8.8.8:1"), addr("9.9.9.9:1"));
    let attr = world.peer_attr(inside);
    let signed = world.unsigned(from, "alice", CREATE_PERMISSION, &[attr]).integrity(&key("alice"));
    let reply = world.client(from, &signed.address(wire::PEER_ADDRESS, outside).fingerprint().0).reply();
    assert_eq!(reply.code(), 0);
    assert_eq!(world.send(from, inside, b"x"), Out::ToPeer { relay, peer: inside, payload: b"x".to_vec() });
    assert_eq!(world.send(from, outside, b"x"), Out::Drop(DropReason::NoPermission));
    // A15: an unknown required attribute behind the code.
    let signed = world.unsigned(from, "alice", REFRESH, &[]).integrity(&key("alice"));
    assert_eq!(world.client(from, &signed.attr(0x7777, &[1; 32]).0).reply().code(), 0);
    // A12: the first of two counts.
    let twice: Vec<_> = [700u32, 0].iter().map(|s| (wire::LIFETIME, s.to_be_bytes().to_vec())).collect();
    assert_eq!(world.ask(from, REFRESH, &twice).lifetime(), Some(700));
    let named = (wire::USERNAME, b"alice".to_vec());
    let request = world.unsigned(from, "mallory", REFRESH, &[named]).integrity(&key("alice")).0;
    assert_eq!(world.client(from, &request).reply().code(), 0);
}

#[test]
fn case_a39_a40_another_users_credentials() {
    let mut world = World::new();
    let from = addr(FROM);
    world.allocate(from);
    let peer = world.peer_attr(addr("8.8.8.8:1"));
    assert_eq!(world.ask_as("bob", from, REFRESH, &[]).code(), 441);
    assert_eq!(world.ask_as("bob", from, CREATE_PERMISSION, &[peer]).code(), 441);
    assert_eq!(world.ask_as("bob", from, ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]).code(), 437);
    assert_eq!(world.ask(from, REFRESH, &[]).code(), 0);
}

#[test]
fn case_a43_replies_to_strangers_are_small() {
    let mut world = World::new();
    let ratio = |world: &mut World, from: &str, request: &[u8]| {
        let reply = code(world, from, request);
        (reply.code(), reply.bytes.len() as f64 / request.len() as f64)
    };
    let tid = world.tid();
    let binding = Writer::new(wire::BINDING, 0, tid).0;
    assert!(matches!(ratio(&mut world, FROM, &binding), (0, r) if r <= 1.6));
    assert!(matches!(ratio(&mut world, "[2001:db8::1]:1", &binding), (0, r) if r <= 2.2));
    // Realm of eleven characters, as in the RFC's examples; the smallest request there is.
    assert!(matches!(ratio(&mut world, FROM, &Writer::new(ALLOCATE, 0, tid).0), (401, r) if r <= 4.4));
    let first = Writer::new(ALLOCATE, 0, tid).attr(wire::TRANSPORT, &UDP).0;
    assert!(matches!(ratio(&mut world, FROM, &first), (401, r) if r <= 3.15));
    let stale = world.unsigned(addr("192.0.2.1:2"), "alice", REFRESH, &[]).integrity(&key("alice")).0;
    assert!(matches!(ratio(&mut world, FROM, &stale), (438, r) if r <= 1.2));
}

#[test]
fn case_a81_the_wall_clock_moves_nothing_but_nonces() {
    let mut world = World::new();
    let from = addr(FROM);
    world.allocate(from);
    for day in [WALL_S + 86_400, WALL_S - 86_400] {
        world.server.set_wall_clock(world.now, tt_model::Nanos::from_secs(day));
        assert_eq!(world.ask(from, REFRESH, &[]).code(), 0);
    }
    world.run_s(599);
    assert_eq!(world.server.allocations(), 1);
}

#[test]
fn credential_check_alone() {
    let mut world = World::new();
    let from = addr(FROM);
    let request = world.unsigned(from, "alice", REFRESH, &[]).integrity(&key("alice")).0;
    let message = Message::parse(&request).expect("a message");
    assert!(world.server.credential_check(world.now, from, &message).is_ok());
    assert!(world.server.credential_check(world.now, addr("192.0.2.9:1"), &message).is_err());
}
