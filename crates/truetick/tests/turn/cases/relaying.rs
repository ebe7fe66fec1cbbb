//! Permissions, channels and what is relayed, over UDP: cases A61 to A75, requirements R096 to R116.

use std::net::SocketAddr;

use testkit::measured;

use super::stage::{Caller, Peer, Stage, UDP};
use crate::wire::{self, CHANNEL_BIND, CHANNEL_NUMBER, CREATE_PERMISSION, DATA, PEER_ADDRESS, Reading, SEND};

/// IPv4 and UDP.
const HEADERS_LEN: u64 = 20 + 8;
/// Permissions of one allocation by default.
const PERMISSIONS_MAX: u16 = 256;

fn allocated(stage: &Stage) -> (Caller, SocketAddr, Peer) {
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    (caller, relayed, stage.peer())
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
pub(super) fn case_a61_create_permission_is_all_or_nothing() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    let bare = caller.request(CREATE_PERMISSION);
    assert_eq!(caller.ask(bare).code(), 400);
    let with = |caller: &mut Caller, bad: SocketAddr| {
        for peers in [[peer.addr(), bad], [bad, peer.addr()]] {
            let request = peers.into_iter().fold(caller.request(CREATE_PERMISSION), |r, p| r.address(PEER_ADDRESS, p));
            let code = caller.ask(request).code();
            let send = caller.send_indication(peer.addr(), b"x");
            stage.dropped(caller, &["no_permission"], &[send]);
            assert!(matches!((bad.is_ipv6(), code), (true, 443) | (false, 403)), "{code} for {bad}");
        }
    };
    with(&mut caller, addr("[2a00::1]:9"));
    with(&mut caller, addr("10.0.0.1:9"));
    let both = caller.request(CREATE_PERMISSION).address(PEER_ADDRESS, addr("127.0.0.50:1"));
    assert_eq!(caller.ask(both.address(PEER_ADDRESS, SocketAddr::new(peer.addr().ip(), 1))).code(), 0);
    caller.send_to(peer.addr(), b"the port does not matter");
    assert_eq!(peer.receive(), (b"the port does not matter".to_vec(), relayed));
    stage.probe();
}

#[test]
fn case_a62_one_permission_too_many() {
    let stage = Stage::new();
    let (mut caller, _, _) = allocated(&stage);
    let host = |number: u16| SocketAddr::new([127, 9, (number >> 8) as u8, number as u8].into(), 9);
    for number in 0..PERMISSIONS_MAX {
        assert_eq!(caller.permit(host(number)), 0, "{number}");
    }
    assert_eq!(caller.permit(host(PERMISSIONS_MAX)), 508);
    assert_eq!(caller.bind(0x4000, host(PERMISSIONS_MAX)), 508);
    assert_eq!(caller.permit(host(7)), 0, "one that it has is refreshed");
    // Another allocation has a separate limit.
    assert_eq!(stage.caller().allocate_and_permit(host(PERMISSIONS_MAX)), 0);
    stage.probe();
}

impl Caller {
    fn allocate_and_permit(&mut self, peer: SocketAddr) -> u16 {
        self.allocate();
        self.permit(peer)
    }
}

#[test]
pub(super) fn case_a65_peer_port_zero() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    let zero = SocketAddr::new(peer.addr().ip(), 0);
    assert_eq!(caller.bind(0x4000, zero), 403);
    assert_eq!(caller.permit(peer.addr()), 0);
    let send = caller.send_indication(zero, b"x");
    stage.dropped(&caller, &["peer_denied"], &[send]);
    caller.send_to(peer.addr(), b"lives");
    assert_eq!(peer.receive(), (b"lives".to_vec(), relayed));
    stage.probe();
}

#[test]
pub(super) fn case_a66_channel_numbers() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    for number in [0, 0x3FFF, 0x5000, 0x7FFF, 0x8000, 0xFFFF] {
        assert_eq!(caller.bind(number, peer.addr()), 400, "{number:#x}");
    }
    for request in [
        caller.request(CHANNEL_BIND).attr(CHANNEL_NUMBER, &[0x40, 0, 0, 0]),
        caller.request(CHANNEL_BIND).address(PEER_ADDRESS, peer.addr()),
        caller.request(CHANNEL_BIND).attr(CHANNEL_NUMBER, &[0x40, 0]).address(PEER_ADDRESS, peer.addr()),
        caller.request(CHANNEL_BIND),
    ] {
        assert_eq!(caller.ask(request).code(), 400);
    }
    assert_eq!((caller.bind(0x4000, peer.addr()), caller.bind(0x4FFF, addr("127.0.0.50:1"))), (0, 0));
    assert_eq!(caller.bind(0x4000, addr("127.0.0.50:2")), 400, "the number is another peer's");
    assert_eq!(caller.bind(0x4001, peer.addr()), 400, "the peer has another number");
    assert_eq!(caller.bind(0x4000, peer.addr()), 0, "the same pair");
    assert_eq!(caller.bind(0x4002, addr("[2a00::1]:9")), 443);
    assert_eq!(caller.bind(0x4002, addr("10.0.0.1:9")), 403);
    caller.send(&[0x40, 0, 0, 2, b'o', b'k']);
    assert_eq!(peer.receive(), (b"ok".to_vec(), relayed));
    stage.probe();
}

#[test]
pub(super) fn rfc_r115_reserved_bits_are_not_looked_at() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let request = caller.request(wire::ALLOCATE).attr(wire::TRANSPORT, &[17, 0xFF, 0xFF, 0xFF]);
    let reply = caller.ask(request.attr(wire::EVEN_PORT, &[0x7F]));
    let relayed = reply.address(wire::RELAYED_ADDRESS).unwrap();
    assert_eq!((reply.code(), relayed.port() % 2), (0, 0));
    assert_eq!(reply.get(wire::RESERVATION_TOKEN), None, "the reservation's bit was not set");
    let peer = stage.peer();
    let request = caller.request(CHANNEL_BIND).attr(CHANNEL_NUMBER, &[0x40, 5, 0xFF, 0xFF]);
    assert_eq!(caller.ask(request.address(PEER_ADDRESS, peer.addr())).code(), 0);
    caller.send(&[0x40, 5, 0, 1, b'x']);
    assert_eq!(peer.receive(), (b"x".to_vec(), relayed));
    let mut second = stage.caller();
    let request = second.request(wire::ALLOCATE).attr(wire::TRANSPORT, &UDP);
    let reply = second.ask(request.attr(wire::ADDRESS_FAMILY, &[1, 0xFF, 0xFF, 0xFF]));
    assert_eq!(reply.code(), 0);
    stage.probe();
}

#[test]
pub(super) fn case_a68_send_indications() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    let early = caller.send_indication(peer.addr(), b"x");
    stage.dropped(&caller, &["no_permission"], &[early]);
    assert_eq!(caller.permit(peer.addr()), 0);
    let without_peer = caller.indication(SEND).attr(DATA, b"x").0;
    let without_data = caller.indication(SEND).address(PEER_ADDRESS, peer.addr()).0;
    let unknown = caller.indication(SEND).attr(0x7FFF, &[]).address(PEER_ADDRESS, peer.addr()).attr(DATA, b"x").0;
    stage.dropped(&caller, &["send_malformed"], &[without_peer, without_data]);
    stage.dropped(&caller, &["send_unsupported"], &[unknown]);
    for payload in [&b""[..], b"x", b"four", &[7; 1_400], &[8; 60_000]] {
        caller.send_to(peer.addr(), payload);
        assert_eq!(peer.receive(), (payload.to_vec(), relayed));
    }
    stage.probe();
}

#[test]
fn case_a69_channel_messages() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    assert_eq!(caller.bind(0x4001, peer.addr()), 0);
    let longer = [vec![0x40, 1, 0, 5, 1, 2, 3, 4], vec![0x40, 1, 0xFF, 0xFF], vec![0x40, 1, 0, 1]];
    stage.dropped(&caller, &["channel_length"], &longer);
    stage.dropped(&caller, &["short"], &[vec![0x40], vec![0x40, 1], vec![0x40, 1, 0]]);
    stage.dropped(&caller, &["channel_unbound"], &[vec![0x40, 2, 0, 0], vec![0x4F, 0xFF, 0, 1, 9]]);
    for (message, payload) in [
        (&[0x40, 1, 0, 0][..], &b""[..]),
        (&[0x40, 1, 0, 1, b'a'], b"a"),
        (&[0x40, 1, 0, 1, b'a', 0, 0, 0], b"a"),
        (&[0x40, 1, 0, 1, b'a', 0xFF, 0xFF, 0xFF], b"a"),
        (&[0x40, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF], b""),
    ] {
        caller.send(message);
        assert_eq!(peer.receive(), (payload.to_vec(), relayed));
    }
    stage.probe();
}

#[test]
fn case_a73_the_largest_datagrams() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    assert_eq!(caller.permit(peer.addr()), 0);
    let before = stage.ledger();
    peer.send(relayed, &vec![1; 65_507]);
    let after = stage.ledger();
    assert_eq!((after.drops["too_large"], after.out), (before.drops["too_large"] + 1, before.out));
    assert!(caller.hears_nothing());
    // What just fits a Data indication, and what just fits a channel.
    let fits = vec![2; 65_507 - 36 - 3];
    peer.send(relayed, &fits);
    assert_eq!(Reading::of(&caller.receive()).get(DATA), Some(&fits[..]));
    assert_eq!(caller.bind(0x4000, peer.addr()), 0);
    let fits = vec![3; 65_503];
    peer.send(relayed, &fits);
    assert_eq!(caller.receive()[4..], fits);
    stage.probe();
}

/// A peer's largest datagram as a Data indication and as ChannelData, for a client over TCP.
pub(super) fn the_largest_datagram_reaches_a_stream() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    assert_eq!(caller.permit(peer.addr()), 0);
    let largest = vec![5; 65_507];
    peer.send(relayed, &largest);
    assert_eq!(Reading::of(&caller.receive()).get(DATA), Some(&largest[..]));
    assert_eq!(caller.bind(0x4000, peer.addr()), 0);
    peer.send(relayed, &largest);
    assert_eq!(caller.receive()[4..], largest);
    stage.probe();
}

#[test]
pub(super) fn case_a75_two_relayed_clients() {
    let stage = Stage::closed(&[]);
    let (mut one, mut two) = (stage.caller(), stage.caller());
    let (relayed_one, relayed_two) = (one.allocate(), two.allocate());
    assert_eq!((one.permit(relayed_two), two.permit(relayed_one)), (0, 0));
    one.send_to(relayed_two, b"indication");
    let heard = Reading::of(&two.receive());
    assert_eq!((heard.address(PEER_ADDRESS), heard.get(DATA)), (Some(relayed_one), Some(&b"indication"[..])));
    assert_eq!((one.bind(0x4000, relayed_two), two.bind(0x4001, relayed_one)), (0, 0));
    one.send(&[0x40, 0, 0, 4, b'p', b'i', b'n', b'g']);
    assert_eq!(two.receive(), [0x40, 1, 0, 4, b'p', b'i', b'n', b'g']);
    two.send(&[0x40, 1, 0, 0]);
    assert_eq!(one.receive(), [0x40, 0, 0, 0]);
    assert!(one.hears_nothing() && two.hears_nothing(), "one out for one in");
    // Once one has ended, its address is nobody's, and the other is not heard there.
    assert_eq!(two.refresh(0), 0);
    assert_eq!(one.bind(0x4002, SocketAddr::new(relayed_two.ip(), 22)), 403);
    one.send(&[0x40, 0, 0, 0]);
    assert!(two.hears_nothing());
}

#[test]
fn case_a75_no_hairpin_where_the_operator_wants_none() {
    let stage = Stage::closed(&["--no-hairpin"]);
    let (mut one, mut two) = (stage.caller(), stage.caller());
    let (relayed_one, relayed_two) = (one.allocate(), two.allocate());
    assert_eq!((one.permit(relayed_two), one.bind(0x4000, relayed_two)), (403, 403));
    assert_eq!((two.permit(relayed_one), two.bind(0x4000, relayed_one)), (403, 403));
    let send = one.send_indication(relayed_two, b"x");
    stage.dropped(&one, &["no_permission", "peer_denied"], &[send]);
    assert!(two.hears_nothing());
}

/// Many pairs over four workers, each payload once and in its order, whichever workers the two ends are on.
#[test]
fn case_a75_pairs_over_all_workers() {
    let stage = Stage::closed(&[]);
    let mut callers: Vec<_> = (0..32).map(|_| stage.caller()).collect();
    let relayed: Vec<_> = callers.iter_mut().map(Caller::allocate).collect();
    for at in 0..32 {
        assert_eq!(callers[at].bind(0x4000, relayed[at ^ 1]), 0);
    }
    for number in 0..50 {
        for (at, caller) in callers.iter().enumerate() {
            caller.send(&[0x40, 0, 0, 2, at as u8, number]);
        }
        for (at, caller) in callers.iter().enumerate() {
            assert_eq!(caller.receive(), [0x40, 0, 0, 2, at as u8 ^ 1, number]);
        }
    }
    assert!(callers.iter().all(Caller::hears_nothing));
}

#[test]
pub(super) fn rfc_r098_r104_permissions_end_with_their_allocation() {
    let stage = Stage::new();
    let (mut caller, relayed, peer) = allocated(&stage);
    assert_eq!(caller.bind(0x4000, peer.addr()), 0);
    assert_eq!(caller.refresh(0), 0);
    let again = caller.allocate();
    assert_ne!(again, relayed);
    let send = caller.send_indication(peer.addr(), b"x");
    stage.dropped(&caller, &["no_permission"], &[send]);
    stage.dropped(&caller, &["channel_unbound"], &[vec![0x40, 0, 0, 0]]);
    let before = stage.ledger();
    peer.send(again, b"not permitted");
    let after = stage.ledger();
    assert_eq!(after.drops["no_permission"], before.drops["no_permission"] + 1);
    assert!(caller.hears_nothing());
    stage.probe();
}

#[test]
pub(super) fn rfc_r105_r106_r112_what_a_peer_sees_and_what_it_sends() {
    let stage = Stage::new();
    for (mut caller, peer, family) in [
        (stage.caller(), stage.peer(), 1),
        (stage.caller_v6(), stage.peer_v6(), 2),
        (stage.caller(), stage.peer_v6(), 2),
        (stage.caller_v6(), stage.peer(), 1),
    ] {
        let request = caller.request(wire::ALLOCATE).attr(wire::TRANSPORT, &UDP);
        let reply = caller.ask(request.attr(wire::ADDRESS_FAMILY, &[family, 0, 0, 0]));
        let relayed = reply.address(wire::RELAYED_ADDRESS).unwrap();
        assert_eq!(caller.permit(peer.addr()), 0);
        for length in [0, 1, 2, 3, 4, 5, 1_200] {
            let payload = vec![length as u8; length];
            caller.send_to(peer.addr(), &payload);
            assert_eq!(peer.receive(), (payload.clone(), relayed));
            peer.send(relayed, &payload);
            let heard = Reading::of(&caller.receive());
            assert_eq!((heard.method, heard.class, heard.kinds()), (wire::DATA_METHOD, 1, vec![PEER_ADDRESS, DATA]));
            assert_eq!((heard.address(PEER_ADDRESS), heard.get(DATA)), (Some(peer.addr()), Some(&payload[..])));
        }
        assert_eq!(caller.bind(0x4ABC, peer.addr()), 0);
        for length in [0u16, 1, 3, 4, 1_200] {
            let message = [&[0x4A, 0xBC][..], &length.to_be_bytes(), &vec![9; usize::from(length)]].concat();
            caller.send(&message);
            assert_eq!(peer.receive(), (message[4..].to_vec(), relayed));
            peer.send(relayed, &message[4..]);
            assert_eq!(caller.receive(), message, "over UDP there is no padding");
        }
    }
    stage.probe();
}

/// A user far beyond its bandwidth loses the excess, under its name, and another user nothing.
#[test]
fn case_a76_a_users_bandwidth_bounds_its_own_payloads_alone() {
    const BYTES_PER_SECOND: u64 = 50_000;
    const LEN: usize = 500;
    const ROUNDS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("truetick.toml");
    std::fs::write(&config, format!("[turn.quotas]\nuser_bytes_per_second = {BYTES_PER_SECOND}\n")).unwrap();
    let stage = Stage::with(&["--config", config.to_str().unwrap(), "--user", "bob:correct horse"]);
    let (mut heavy, _, sink) = allocated(&stage);
    let mut light = stage.caller();
    light.name = "bob".to_owned();
    light.allocate();
    let (light_since, mut light_bytes) = (std::time::Instant::now(), 0);
    let peer = stage.peer();
    assert_eq!((heavy.permit(sink.addr()), light.permit(peer.addr())), (0, 0));
    let before = stage.ledger();
    let started = std::time::Instant::now();
    for round in 0..ROUNDS {
        heavy.send_to(sink.addr(), &[1; LEN]);
        if round % 20 == 19 {
            // No more than a receive buffer holds.
            stage.ledger();
            // At most half of what this user may send.
            let quota_bytes = BYTES_PER_SECOND * light_since.elapsed().as_millis() as u64 / 2_000;
            if light_bytes + HEADERS_LEN + 8 <= quota_bytes {
                light_bytes += HEADERS_LEN + 8;
                light.send_to(peer.addr(), &round.to_be_bytes());
                assert_eq!(peer.receive().0, round.to_be_bytes(), "another user's");
            }
        }
    }
    assert!(light_bytes > 0);
    let after = stage.ledger();
    let seconds = started.elapsed().as_secs() + 1;
    let dropped = after.drops["user_bandwidth"];
    assert_eq!((after.dropped, before.dropped), (dropped, 0), "{after:?}");
    // A second's worth at once at most, and one for each second since.
    let carried_max = BYTES_PER_SECOND * (1 + seconds) / (HEADERS_LEN + LEN as u64);
    assert!(ROUNDS - dropped <= carried_max, "{dropped} of {ROUNDS} dropped in {seconds} s");
    // The user is not shut out: with time there is bandwidth again.
    let carried = || stage.ledger().out;
    let (out, started) = (carried(), std::time::Instant::now());
    while carried() == out {
        heavy.send_to(sink.addr(), &[1; LEN]);
        assert!(started.elapsed() < super::stage::PATIENCE, "it never sends again");
    }
}

/// Empty datagrams of a user with 1,000 B/s: each has 28 bytes on the wire.
#[test]
fn case_a76_empty_datagrams_have_headers() {
    const BYTES_PER_SECOND: u64 = 1_000;
    const COUNT: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("truetick.toml");
    std::fs::write(&config, format!("[turn.quotas]\nuser_bytes_per_second = {BYTES_PER_SECOND}\n")).unwrap();
    let stage = Stage::with(&["--config", config.to_str().unwrap()]);
    let started = std::time::Instant::now();
    let (mut caller, _, sink) = allocated(&stage);
    assert_eq!(caller.bind(0x4000, sink.addr()), 0);
    let before = stage.ledger();
    for number in 1..=COUNT {
        caller.send(&[0x40, 0, 0, 0]);
        if number % 100 == 0 {
            // No more than a receive buffer holds.
            stage.ledger();
        }
    }
    let after = stage.ledger();
    let seconds = started.elapsed().as_secs() + 1;
    let carried = after.out - before.out;
    assert!(carried <= BYTES_PER_SECOND * seconds / HEADERS_LEN, "{carried} of {COUNT} arrive in {seconds} s");
    let bytes = carried * HEADERS_LEN;
    measured("bandwidth", format_args!("{bytes} bytes of {COUNT} empty datagrams, within {seconds} s"));
    assert_eq!(after.drops["user_bandwidth"], COUNT - carried, "{after:?}");
    (0..carried).for_each(|_| assert!(sink.receive().0.is_empty()));
}

#[test]
fn case_a76_what_is_over_a_quota_is_dropped_under_its_name() {
    const COUNT: u64 = 200;
    for (quota, name) in [
        ("user_bytes_per_second = 100", "user_bandwidth"),
        ("user_packets_per_second = 3", "user_packets"),
        ("source_bytes_per_second = 100", "source_bandwidth"),
        ("source_packets_per_second = 3", "source_packets"),
        ("allocation_bytes_per_second = 100", "allocation_bandwidth"),
        // The last quarter is for users who send less.
        ("bytes_per_second = 100", "total_share"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("truetick.toml");
        std::fs::write(&config, format!("[turn.quotas]\n{quota}\n")).unwrap();
        let stage = Stage::with(&["--config", config.to_str().unwrap()]);
        let started = std::time::Instant::now();
        let (mut caller, _, sink) = allocated(&stage);
        assert_eq!(caller.bind(0x4000, sink.addr()), 0);
        let before = stage.ledger();
        (0..COUNT).for_each(|_| caller.send(&[0x40, 0, 0, 0]));
        let after = stage.ledger();
        let (over, seconds) = (after.dropped - before.dropped, started.elapsed().as_secs() + 1);
        assert_eq!(after.drops[name], over, "{quota}: {after:?}");
        // A second's worth at once at most, and one for each second since.
        assert!(COUNT - over <= 4 * (1 + seconds), "{quota}: {over} of {COUNT} in {seconds} s");
    }
}
