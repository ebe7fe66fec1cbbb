//! Long-term credentials over UDP: cases A26 to A43, requirements R038 to R065.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::stage::{Caller, Stage, UDP};
use crate::wire::{self, ALLOCATE, BINDING, LIFETIME, NONCE, REALM, REFRESH, Reading, USERNAME, Writer};

const METHODS: [u16; 4] = [ALLOCATE, REFRESH, wire::CREATE_PERMISSION, wire::CHANNEL_BIND];

/// A Refresh with `nonce`, signed with `key`.
fn refresh(caller: &mut Caller, nonce: &[u8], key: &[u8]) -> Reading {
    let request = caller.request(REFRESH).attr(USERNAME, caller.name.as_bytes()).attr(REALM, b"truetick");
    caller.exchange(&request.attr(NONCE, nonce).integrity(key).0)
}

/// Asserts a reply to an unauthenticated client: it contains realm and nonce, and neither user nor software.
fn is_challenge(reply: &Reading, code: u16) {
    assert_eq!((reply.code(), reply.get(REALM)), (code, Some(&b"truetick"[..])), "{reply:?}");
    let nonce = reply.get(NONCE).unwrap();
    assert!(nonce.starts_with(b"obMatJos2") && (13..128).contains(&nonce.len()), "{nonce:?}");
    for kind in [USERNAME, wire::INTEGRITY, 0x001C, 0x001E, wire::SOFTWARE] {
        assert_eq!(reply.get(kind), None, "{kind:#x}");
    }
}

#[test]
pub(super) fn case_a26_no_integrity_is_a_challenge() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    for method in METHODS {
        let named = caller.request(method).attr(wire::TRANSPORT, &UDP).attr(USERNAME, b"ann").attr(REALM, b"truetick");
        let bare = caller.request(method);
        for request in [bare, named] {
            is_challenge(&caller.exchange(&request.0), 401);
        }
    }
    assert_eq!(stage.get("/api/v1/turn/allocations")["allocations"]["created"], 0);
    stage.probe();
}

#[test]
pub(super) fn case_a27_missing_attributes_are_a_bare_400() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let nonce = caller.fresh_nonce();
    let parts = [(USERNAME, &b"ann"[..]), (REALM, b"truetick"), (NONCE, &nonce)];
    for method in METHODS {
        for missing in 0..3 {
            let kept = parts.iter().enumerate().filter(|(at, _)| *at != missing);
            let request = kept.fold(caller.request(method), |request, (_, (kind, value))| request.attr(*kind, value));
            let reply = caller.exchange(&request.integrity(&caller.key()).0);
            assert_eq!((reply.code(), reply.kinds()), (400, vec![wire::ERROR_CODE]), "{method} {missing}");
        }
    }
    stage.probe();
}

#[test]
pub(super) fn case_a28_integrity_of_a_wrong_length_is_none() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    for length in [0, 19, 21] {
        let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
        let request = caller.named(request).attr(wire::INTEGRITY, &vec![1; length]);
        is_challenge(&caller.exchange(&request.0), 401);
    }
    stage.probe();
}

#[test]
pub(super) fn case_a33_a34_nonces_of_others_and_changed_ones() {
    let stage = Stage::new();
    let (mut caller, mut other) = (stage.caller(), stage.caller());
    caller.allocate();
    let (nonce, foreign) = (caller.fresh_nonce(), other.fresh_nonce());
    let key = caller.key();
    is_challenge(&refresh(&mut caller, &foreign, &key), 438);
    for at in 0..nonce.len() {
        let mut changed = nonce.clone();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        is_challenge(&refresh(&mut caller, &changed, &key), 438);
    }
    for changed in [&nonce[..nonce.len() - 1], &[&nonce[..], b"A"].concat(), b"obMatJos2AAAA", b"x"] {
        is_challenge(&refresh(&mut caller, changed, &key), 438);
    }
    let reply = refresh(&mut caller, &foreign, b"wrong");
    is_challenge(&reply, 401);
    assert_eq!(refresh(&mut caller, reply.get(NONCE).unwrap(), &key).code(), 0);
    assert_eq!(refresh(&mut caller, &nonce, &key).code(), 0, "an older one of the caller's own");
    stage.probe();
}

#[test]
pub(super) fn case_a37_a38_an_unknown_user_looks_like_a_wrong_password() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let ask = |caller: &mut Caller, name: &str, request: Writer| {
        caller.name = name.to_owned();
        let request = caller.named(request).integrity(b"not the key");
        caller.exchange(&request.0)
    };
    for method in METHODS {
        let (one, two) = (caller.request(method), caller.request(method));
        let (unknown, wrong) = (ask(&mut caller, "bob", one), ask(&mut caller, "ann", two));
        is_challenge(&unknown, 401);
        assert_eq!((unknown.kinds(), unknown.bytes.len()), (wrong.kinds(), wrong.bytes.len()));
        assert_eq!((unknown.code(), unknown.get(wire::ERROR_CODE)), (wrong.code(), wrong.get(wire::ERROR_CODE)));
    }
    for length in [32, 31, 0, 64] {
        let request = caller.request(ALLOCATE).attr(0x001E, &vec![7; length]).attr(REALM, b"truetick");
        let request = request.attr(NONCE, &caller.nonce).integrity(&caller.key());
        is_challenge(&caller.exchange(&request.0), 401);
    }
    stage.probe();
}

#[test]
pub(super) fn case_a13_a14_a15_ignores_attributes_after_integrity() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    let (peer, outside) = (stage.peer(), "127.0.0.77:9".parse().unwrap());
    let asked = caller.request(REFRESH).attr(LIFETIME, &1_000u32.to_be_bytes());
    let appended = caller.signed(asked).attr(LIFETIME, &[0; 4]).fingerprint();
    assert_eq!(caller.exchange(&appended.0).lifetime(), Some(1_000));
    let asked = caller.request(REFRESH);
    let appended = caller.signed(asked).attr(LIFETIME, &[0; 4]).fingerprint();
    assert_eq!(caller.exchange(&appended.0).lifetime(), Some(600));
    let asked = caller.request(wire::CREATE_PERMISSION).address(wire::PEER_ADDRESS, peer.addr());
    let appended = caller.signed(asked).address(wire::PEER_ADDRESS, outside).fingerprint();
    assert_eq!(caller.exchange(&appended.0).code(), 0);
    let asked = caller.request(REFRESH);
    let appended = caller.signed(asked).attr(0x7FFF, &[1; 4]);
    assert_eq!(caller.exchange(&appended.0).code(), 0);
    // Every other verb too: what is asked behind the integrity is not asked.
    let asked = caller.request(wire::CHANNEL_BIND);
    let appended = caller.signed(asked).attr(wire::CHANNEL_NUMBER, &[0x40, 0, 0, 0]);
    assert_eq!(caller.exchange(&appended.address(wire::PEER_ADDRESS, peer.addr()).0).code(), 400);
    let mut second = stage.caller();
    let asked = second.request(ALLOCATE);
    let appended = second.signed(asked).attr(wire::TRANSPORT, &UDP);
    assert_eq!(second.exchange(&appended.0).code(), 400);
    caller.send_to(peer.addr(), b"inside");
    assert_eq!(peer.receive(), (b"inside".to_vec(), relayed));
    let indication = caller.send_indication(outside, b"outside");
    stage.dropped(&caller, &["no_permission"], &[indication]);
    stage.probe();
}

#[test]
pub(super) fn case_a39_a40_another_users_credentials() {
    let stage = Stage::with(&["--user", "bob:battery staple"]);
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    let peer = stage.peer();
    (caller.name, caller.password) = ("bob".to_owned(), "battery staple".to_owned());
    assert_eq!((caller.refresh(0), caller.permit(peer.addr()), caller.bind(0x4000, peer.addr())), (441, 441, 441));
    let again = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    assert_eq!(caller.ask(again).code(), 437);
    (caller.name, caller.password) = ("ann".to_owned(), "correct horse".to_owned());
    assert_eq!(caller.permit(peer.addr()), 0);
    caller.send_to(peer.addr(), b"still hers");
    assert_eq!(peer.receive(), (b"still hers".to_vec(), relayed));
    stage.probe();
}

#[test]
pub(super) fn case_a41_a_captured_request_is_worth_nothing_elsewhere() {
    let stage = Stage::new();
    let (mut victim, thief) = (stage.caller(), stage.caller());
    let relayed = victim.allocate();
    let peer = stage.peer();
    let end = victim.request(REFRESH).attr(LIFETIME, &[0; 4]);
    let permit = victim.request(wire::CREATE_PERMISSION).address(wire::PEER_ADDRESS, peer.addr());
    let make = victim.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    for captured in [end, permit, make] {
        let captured = victim.signed(captured).0;
        let code = thief.exchange(&captured).code();
        assert!(matches!(code, 437 | 438), "{code}");
    }
    let send = victim.send_indication(peer.addr(), b"stolen");
    stage.dropped(&thief, &["no_allocation"], &[send]);
    assert_eq!(victim.permit(peer.addr()), 0);
    victim.send_to(peer.addr(), b"mine");
    assert_eq!(peer.receive(), (b"mine".to_vec(), relayed));
    stage.probe();
}

/// Bytes of a 401 to a bare Allocate beyond three times its 20.
const EXCESS: u64 = 84 - 60;
/// Answers to bare Allocates of one address: a second, and at once.
const PER_SECOND: u64 = 10;
const BURST: u64 = 4 * PER_SECOND;

#[test]
fn case_a42_a_flood_from_one_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truetick.toml");
    let per_source = EXCESS * PER_SECOND;
    let quotas = format!("error_excess_bytes_per_second = 0\nerror_excess_bytes_per_source = {per_source}\n");
    std::fs::write(&path, format!("[turn.quotas]\n{quotas}")).unwrap();
    let stage = Stage::with(&["--config", path.to_str().unwrap()]);
    let flooder = "127.0.0.66".parse().unwrap();
    let mut sources: Vec<_> = (0..100).map(|_| stage.caller_from(flooder)).collect();
    let mut honest = stage.caller();
    honest.allocate();
    let peer = stage.peer();
    assert_eq!(honest.permit(peer.addr()), 0);
    let started = Instant::now();
    let (mut answers, mut rounds) = (0u64, 0u64);
    while started.elapsed() < Duration::from_secs(2) || rounds * 100 <= 4 * BURST {
        for caller in &mut sources {
            let bare = caller.request(ALLOCATE);
            caller.send(&bare.0);
        }
        rounds += 1;
        answers += sources.iter().map(answers_of).sum::<u64>();
        // Who comes from elsewhere gets each answer, and a relay loses nothing.
        assert_eq!(honest.refresh(600), 0);
        honest.send_to(peer.addr(), &rounds.to_be_bytes());
        assert_eq!(peer.receive().0, rounds.to_be_bytes());
    }
    let ledger = stage.ledger();
    let elapsed_s = started.elapsed().as_secs() + 1;
    answers += sources.iter().map(answers_of).sum::<u64>();
    let asked = rounds * 100;
    assert!((BURST..=BURST + PER_SECOND * elapsed_s).contains(&answers), "{answers} answers to {asked}");
    assert_eq!(ledger.drops["error_budget"], asked - answers);
    // Also from that address, a request with credentials is answered.
    let mut caller = stage.caller_from(flooder);
    let forged = caller.request(ALLOCATE).attr(USERNAME, b"ann").attr(REALM, b"truetick");
    assert_eq!(caller.exchange(&forged.attr(NONCE, b"garbage").integrity(b"forged").0).code(), 401);
    stage.probe();
}

/// Reads the 401s that wait.
fn answers_of(caller: &Caller) -> u64 {
    let mut count = 0;
    while let Some(answer) = waiting(caller.socket.udp()) {
        assert_eq!(Reading::of(&answer).code(), 401);
        count += 1;
    }
    count
}

fn waiting(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 1_500];
    socket.set_nonblocking(true).unwrap();
    let length = socket.recv(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// Bytes out for a byte in, of what anybody may ask.
#[test]
fn case_a43_answers_to_strangers_are_small() {
    let stage = Stage::new();
    let mut ratios = BTreeMap::new();
    let mut note = |name: &str, reply: &Reading, request: &[u8]| {
        ratios.insert(name.to_owned(), reply.bytes.len() as f64 / request.len() as f64);
    };
    let (mut v4, mut v6) = (stage.caller(), stage.caller_v6());
    for (name, caller) in [("binding v4", &mut v4), ("binding v6", &mut v6)] {
        let request = caller.request(BINDING).0;
        note(name, &caller.exchange(&request), &request);
    }
    let bare = v4.request(ALLOCATE).0;
    note("401 bare", &v4.exchange(&bare), &bare);
    let first = v4.request(ALLOCATE).attr(wire::TRANSPORT, &UDP).0;
    note("401", &v4.exchange(&first), &first);
    let foreign = v6.fresh_nonce();
    let stale = v4.request(REFRESH).attr(USERNAME, b"ann").attr(REALM, b"truetick");
    let stale = stale.attr(NONCE, &foreign).integrity(&v4.key()).0;
    let reply = v4.exchange(&stale);
    assert_eq!(reply.code(), 438);
    note("438", &reply, &stale);
    let limits = [("binding v4", 1.6), ("binding v6", 2.2), ("401 bare", 4.2), ("401", 3.0), ("438", 1.2)];
    for (name, limit) in limits {
        assert!(ratios[name] <= limit, "{name}: {ratios:?}");
    }
    stage.probe();
}
