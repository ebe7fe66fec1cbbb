//! Allocate and Refresh over UDP: cases A44 to A60, requirements R066 to R095.

use std::collections::BTreeSet;

use super::stage::{Caller, Stage, UDP};
use crate::server::Server;
use crate::wire::{
    ADDITIONAL_FAMILY, ADDRESS_FAMILY, ALLOCATE, EVEN_PORT, LIFETIME, MAPPED_ADDRESS, REFRESH, RELAYED_ADDRESS,
    RESERVATION_TOKEN, Reading, TRANSPORT,
};

const V4: [u8; 4] = [1, 0, 0, 0];
const V6: [u8; 4] = [2, 0, 0, 0];

/// A type and a value.
type Attribute<'a> = (u16, &'a [u8]);

/// Asks for a relay of UDP with `attributes`.
fn allocate(caller: &mut Caller, attributes: &[Attribute<'_>]) -> Reading {
    let request = caller.request(ALLOCATE).attr(TRANSPORT, &UDP);
    let request = attributes.iter().fold(request, |request, (kind, value)| request.attr(*kind, value));
    caller.ask(request)
}

/// Asserts that each list of attributes gets its code, and that nothing was allocated.
fn refused(stage: &Stage, cases: &[(u16, &[Attribute<'_>])]) {
    let mut caller = stage.caller();
    for (code, attributes) in cases {
        assert_eq!(allocate(&mut caller, attributes).code(), *code, "{attributes:02x?}");
    }
    assert_eq!(stage.get("/api/v1/turn/allocations")["allocations"]["created"], 0);
}

#[test]
pub(super) fn case_a44_transports() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let mut ask = |value: Option<&[u8]>| {
        let request = caller.request(ALLOCATE);
        let request = value.into_iter().fold(request, |request, value| request.attr(TRANSPORT, value));
        caller.ask(request)
    };
    assert_eq!(ask(None).code(), 400);
    for length in [0, 1, 3, 5, 8] {
        assert_eq!(ask(Some(&[17; 8][..length])).code(), 400, "{length}");
    }
    for protocol in [132, 6, 0, 1, 255] {
        assert_eq!(ask(Some(&[protocol, 0, 0, 0])).code(), 442, "{protocol}");
    }
    assert_eq!(ask(Some(&[17, 0xFF, 0xFF, 0xFF])).code(), 0, "the bytes behind the protocol are reserved");
    stage.probe();
}

#[test]
fn case_a45_families() {
    let stage = Stage::new();
    for family in [0, 3, 4, 255] {
        refused(&stage, &[(440, &[(ADDRESS_FAMILY, &[family, 0, 0, 0])])]);
    }
    refused(&stage, &[(400, &[(ADDRESS_FAMILY, &[1, 0, 0])])]);
    let v6 = allocate(&mut stage.caller(), &[(ADDRESS_FAMILY, &V6)]).address(RELAYED_ADDRESS).unwrap();
    let v4 = allocate(&mut stage.caller_v6(), &[(ADDRESS_FAMILY, &V4)]).address(RELAYED_ADDRESS).unwrap();
    assert!(v6.is_ipv6() && v4.is_ipv4());
    stage.probe();
    // Served with IPv4 alone, and with IPv6 alone.
    let flags = ["--listen", "127.0.0.1:0", "--workers", "4", "--http", "127.0.0.1:0", "--relay-ip", "127.0.0.1"];
    let flags = [&flags[..], &["--allow-own-host", "127.0.0.0/8"]].concat();
    let stage = Stage::of(Server::start(&flags));
    refused(&stage, &[(440, &[(ADDRESS_FAMILY, &V6)])]);
    stage.probe();
    let flags = ["--listen", "127.0.0.1:0", "--workers", "4", "--http", "127.0.0.1:0", "--relay-ip", "::1"];
    let stage = Stage::of(Server::start(&flags));
    refused(&stage, &[(440, &[]), (440, &[(ADDRESS_FAMILY, &V4)])]);
    assert_eq!(allocate(&mut stage.caller(), &[(ADDRESS_FAMILY, &V6)]).code(), 0);
}

#[test]
pub(super) fn case_a46_a47_attributes_that_exclude_each_other() {
    let stage = Stage::new();
    let token = (RESERVATION_TOKEN, &[7; 8][..]);
    refused(
        &stage,
        &[
            (400, &[(ADDRESS_FAMILY, &V4), (ADDITIONAL_FAMILY, &V6)]),
            (400, &[(ADDITIONAL_FAMILY, &V4)]),
            (400, &[(ADDITIONAL_FAMILY, &V6), (EVEN_PORT, &[0x80])]),
            (400, &[token, (EVEN_PORT, &[0])]),
            (400, &[token, (EVEN_PORT, &[0x80])]),
            (400, &[token, (ADDRESS_FAMILY, &V4)]),
            (400, &[token, (ADDITIONAL_FAMILY, &V6)]),
            (400, &[(RESERVATION_TOKEN, &[])]),
            (400, &[(RESERVATION_TOKEN, &[7; 7])]),
            (400, &[(RESERVATION_TOKEN, &[7; 9])]),
            (400, &[(EVEN_PORT, &[0, 0])]),
            (508, &[token]),
        ],
    );
    stage.probe();
}

#[test]
fn case_a49_even_ports_come_back() {
    // A worker keeps at most 128 sockets waiting (turn-server's relays.rs).
    const ROUNDS: u64 = 10 * 128;
    let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--http", "127.0.0.1:0"];
    let stage = Stage::of(Server::start(&[&flags[..], &["--user-allocations-per-second", "0"]].concat()));
    let pooled = || stage.get("/api/v1/turn/allocations")["allocations"].clone();
    let mut ports = BTreeSet::new();
    let mut caller = stage.caller();
    for _ in 0..ROUNDS {
        let reply = allocate(&mut caller, &[(EVEN_PORT, &[0])]);
        let port = reply.address(RELAYED_ADDRESS).unwrap().port();
        assert_eq!((reply.code(), port % 2), (0, 0));
        ports.insert(port);
        assert_eq!(caller.refresh(0), 0);
    }
    stage.ledger();
    let allocations = pooled();
    assert_eq!((&allocations["live"], &allocations["created"]), (&0.into(), &ROUNDS.into()), "{allocations}");
    // How often a port comes again is a matter of time: a waiting socket is used again after its rest. Drawn at random,
    // they lie in every eighth of the range, however few they are.
    let eighths: BTreeSet<_> = ports.iter().map(|port| (port - 49_152) / 2_048).collect();
    assert_eq!(eighths.len(), 8, "drawn at random: {ports:?}");
    // Many at once find room: none of those before is missing.
    let mut callers: Vec<_> = (0..100).map(|_| stage.caller()).collect();
    let replies: BTreeSet<_> =
        callers.iter_mut().filter_map(|caller| allocate(caller, &[]).address(RELAYED_ADDRESS)).collect();
    assert_eq!(replies.len(), 100);
}

#[test]
fn case_a51_an_exhausted_pool_is_508() {
    // Eight ports for four workers: each worker can use all of them.
    let ports = ["--relay-ip", "127.0.0.1", "--relay-ports", "47000-47007", "--user-share-percent", "100"];
    let stage = Stage::with(&ports);
    let mut callers: Vec<_> = (0..40).map(|_| stage.caller()).collect();
    let replies: Vec<_> = callers.iter_mut().map(|caller| allocate(caller, &[])).collect();
    let granted: BTreeSet<_> = replies.iter().filter_map(|reply| reply.address(RELAYED_ADDRESS)).collect();
    let refused = replies.iter().filter(|reply| reply.code() == 508).count();
    assert_eq!((granted.len(), refused), (8, 32), "each port is that of one allocation");
    assert!(granted.iter().all(|addr| (47_000..=47_007).contains(&addr.port())));
    // Room comes back: a freed port rests for some seconds, and the same asker is then served.
    let at = replies.iter().position(|reply| reply.code() == 0).unwrap();
    assert_eq!(callers[at].refresh(0), 0);
    let started = std::time::Instant::now();
    while allocate(&mut callers[at], &[]).code() == 508 {
        assert!(started.elapsed().as_secs() < 30, "it does not recover");
    }
    assert_eq!(callers[at].refresh(0), 0);
}

#[test]
pub(super) fn case_a53_lifetimes() {
    let stage = Stage::new();
    for (asked, granted) in [(0u32, 600), (1, 600), (600, 600), (601, 601), (3_600, 3_600), (u32::MAX, 3_600)] {
        let mut caller = stage.caller();
        let reply = allocate(&mut caller, &[(LIFETIME, &asked.to_be_bytes())]);
        assert_eq!(reply.lifetime(), Some(granted));
        if asked > 0 {
            let request = caller.request(REFRESH).attr(LIFETIME, &asked.to_be_bytes());
            assert_eq!(caller.ask(request).lifetime(), Some(granted));
        }
        let malformed = caller.request(REFRESH).attr(LIFETIME, &[0; 3]);
        assert_eq!(caller.ask(malformed).code(), 400);
        let silent = caller.request(REFRESH);
        assert_eq!(caller.ask(silent).lifetime(), Some(600));
    }
    stage.probe();
}

#[test]
pub(super) fn case_a55_a_retransmission_changes_nothing() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let request = caller.request(ALLOCATE).attr(TRANSPORT, &UDP);
    let request = caller.signed(request).0;
    let first = caller.exchange(&request);
    for _ in 0..20 {
        let again = caller.exchange(&request);
        assert_eq!(again.address(RELAYED_ADDRESS), first.address(RELAYED_ADDRESS));
        assert_eq!(again.address(MAPPED_ADDRESS), caller.socket.local_addr().ok());
    }
    assert_eq!(allocate(&mut caller, &[]).code(), 437, "another transaction");
    stage.ledger();
    assert_eq!(stage.get("/api/v1/turn/allocations")["allocations"]["created"], 1);
    stage.probe();
}

#[test]
pub(super) fn case_a58_a59_a60_the_end_of_an_allocation() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let peer = stage.peer();
    let without = |caller: &mut Caller| {
        assert_eq!((caller.refresh(600), caller.permit(peer.addr())), (437, 437));
        assert_eq!(caller.bind(0x4000, peer.addr()), 437);
        let bare = caller.request(REFRESH);
        assert_eq!(caller.exchange(&bare.0).code(), 401);
        let send = caller.send_indication(peer.addr(), b"x");
        stage.dropped(caller, &["no_allocation"], &[send, vec![0x40, 0, 0, 0], vec![0x4F, 0xFF, 0, 1, 9]]);
    };
    without(&mut caller);
    let relayed = caller.allocate();
    for (family, code) in [(V6, 443), (V4, 0)] {
        let request = caller.request(REFRESH).attr(ADDRESS_FAMILY, &family);
        assert_eq!(caller.ask(request).code(), code);
    }
    let request = caller.request(REFRESH).attr(LIFETIME, &[0; 4]);
    let end = caller.signed(request).0;
    let reply = caller.exchange(&end);
    assert_eq!((reply.code(), reply.lifetime()), (0, Some(0)));
    assert_eq!(caller.exchange(&end).code(), 437);
    without(&mut caller);
    // Nothing answers at the relayed address any more: what comes there is counted when its socket has rested.
    assert_ne!(caller.allocate(), relayed);
    stage.probe();
}

#[test]
fn rfc_r069_r088_relayed_addresses_are_drawn_and_each_is_somebodys() {
    let stage = Stage::new();
    let mut callers: Vec<_> = (0..200).map(|_| stage.caller()).collect();
    let relayed: Vec<_> = callers.iter_mut().map(Caller::allocate).collect();
    let ports: BTreeSet<_> = relayed.iter().map(|addr| addr.port()).collect();
    assert_eq!(ports.len(), 200, "no two live allocations share an address");
    assert!(ports.iter().all(|port| *port >= 49_152), "{ports:?}");
    // 16,384 ports in eight parts: with seven degrees of freedom, above 41 in one of a million.
    let mut parts = [0f64; 8];
    ports.iter().for_each(|port| parts[usize::from((port - 49_152) / 2_048)] += 1.0);
    let chi_square: f64 = parts.iter().map(|count| (count - 25.0).powi(2) / 25.0).sum();
    assert!(chi_square < 41.0, "{chi_square} {parts:?}");
    // Nor does the next follow from the last.
    let steps = relayed.windows(2).filter(|pair| pair[0].port().abs_diff(pair[1].port()) <= 2).count();
    assert!(steps < 5, "{steps} steps of at most two");
}

/// Guesses of a user are answered in a burst, and then ten a second.
#[test]
fn case_a48_guessed_tokens() {
    let stage = Stage::with(&["--user", "bob:another horse"]);
    let bob = || {
        let mut caller = stage.caller();
        (caller.name, caller.password) = ("bob".into(), "another horse".into());
        caller
    };
    let mut holder = stage.caller();
    let reply = allocate(&mut holder, &[(EVEN_PORT, &[0x80])]);
    let token = reply.get(RESERVATION_TOKEN).expect("the next port is reserved").to_vec();
    let mut guesser = stage.caller_from("127.0.0.99".parse().unwrap());
    let started = std::time::Instant::now();
    let key = guesser.key();
    guesser.nonce = guesser.fresh_nonce();
    let (mut answers, guesses) = (0u64, 4_096u64);
    let mut number = u64::from_be_bytes(token.clone().try_into().unwrap());
    let before = stage.ledger();
    for _ in 0..guesses / 64 {
        for _ in 0..64 {
            number = number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            let request =
                guesser.request(ALLOCATE).attr(TRANSPORT, &UDP).attr(RESERVATION_TOKEN, &number.to_be_bytes());
            let request = guesser.named(request).integrity(&key);
            guesser.send(&request.0);
        }
        stage.ledger();
        while !guesser.hears_nothing() {
            assert_eq!(Reading::of(&guesser.receive()).code(), 508);
            answers += 1;
        }
    }
    let after = stage.ledger();
    let elapsed_s = started.elapsed().as_secs() + 1;
    assert!((200..=256 + 10 * elapsed_s).contains(&answers), "{answers} answers in {elapsed_s} s");
    assert_eq!(after.drops["token_budget"] - before.drops["token_budget"], guesses - answers);
    // The one that is known still counts, once, from another five-tuple.
    let mut claimer = stage.caller();
    let claimed = allocate(&mut claimer, &[(RESERVATION_TOKEN, &token)]).address(RELAYED_ADDRESS).unwrap();
    assert_eq!(claimed.port(), reply.address(RELAYED_ADDRESS).unwrap().port() + 1);
    assert_eq!(allocate(&mut bob(), &[(RESERVATION_TOKEN, &token)]).code(), 508, "another user has another budget");
    stage.probe();
}
