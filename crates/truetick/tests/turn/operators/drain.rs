//! SIGTERM: no new allocation, those that live go on, an end at zero or at the deadline.

use nix::sys::signal::Signal;

use super::operated::{Operated, peer, relays, wait};

const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]\ndrain_timeout_s = 600";

/// A79: Allocate is answered 403, Refresh and data go on, `/readyz` is red, and it ends with the last allocation.
#[test]
fn case_a79_a_drain_keeps_what_lives_and_ends_at_zero() {
    let server = Operated::start(KEYS, &[]);
    let (mut client, peer) = (server.client("ann"), peer());
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    assert_eq!(server.ask("GET", "/readyz", None).status, 200);
    server.signal(Signal::SIGTERM);
    wait("a red light", || server.ask("GET", "/readyz", None).status == 503);
    assert_eq!(server.ask("GET", "/healthz", None).status, 200, "it lives");
    assert_eq!(server.client("bob").allocate(), Err(403));
    relays(&mut client, 0x4000, &peer, b"while it drains");
    assert_eq!(client.refresh(600), 0);
    // A worker's counts are shown after its answers.
    let refused = "\ntruetick_turn_refused_total{reason=\"draining\"} 1\n";
    wait("the refusal", || server.ask("GET", "/metrics", None).body.contains(refused));
    assert_eq!(client.refresh(0), 0);
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("draining: new allocations are rejected") && log.contains("drained"), "{log}");
}

/// A79: what lives at the deadline is ended, and the status says so.
#[test]
fn case_a79_a_drain_ends_at_its_deadline_with_another_status() {
    let server = Operated::start(&KEYS.replace("600", "1"), &[]);
    server.client("ann").allocate().unwrap();
    server.signal(Signal::SIGTERM);
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains("stopping with live allocations allocations=1 cause=\"deadline\""), "{log}");
}

#[test]
fn a_second_signal_ends_a_drain_at_once() {
    for second in [Signal::SIGTERM, Signal::SIGINT] {
        let server = Operated::start(KEYS, &[]);
        server.client("ann").allocate().unwrap();
        server.signal(Signal::SIGTERM);
        server.wait_log("draining", 1);
        server.signal(second);
        let (status, log) = server.ended();
        assert_eq!(status.code(), Some(3), "{log}");
        assert!(log.contains("cause=\"second signal\""), "{log}");
    }
}

#[test]
fn ctrl_c_and_a_drain_of_no_time_end_at_once() {
    let server = Operated::start(KEYS, &[]);
    server.client("ann").allocate().unwrap();
    server.signal(Signal::SIGINT);
    assert_eq!(server.ended().0.code(), Some(0));
    let server = Operated::start("drain_timeout_s = 0", &[]);
    server.client("ann").allocate().unwrap();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().0.code(), Some(0));
}
