//! A reload of 100,000 users: no Binding waits for it, and the memory of the process hardly grows.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::operators::operated::{Operated, PATIENCE};
use crate::wire::{self, Writer};

const USERS: usize = 100_000;
const EVERY: Duration = Duration::from_millis(1);

/// A file of users without ann, whom every test knows.
fn users(generation: u32) -> String {
    let mut text = String::from("ann:ann-secret\n");
    for number in 0..USERS {
        writeln!(text, "user-{number}:password-{generation}-{number}").unwrap();
    }
    text
}

/// Sends a Binding request every millisecond until the log has `records` reloads, and returns the waits, shortest first.
fn waits_until_reloaded(server: &Operated, records: usize) -> Vec<Duration> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.listen).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut bytes, mut waits) = ([0; 1_500], Vec::new());
    let started = Instant::now();
    while server.log().matches("configuration reloaded").count() < records {
        assert!(started.elapsed() < PATIENCE, "{}", server.log());
        let sent = Instant::now();
        socket.send(&Writer::new(wire::BINDING, 0, [7; 12]).0).unwrap();
        socket.recv(&mut bytes).unwrap();
        waits.push(sent.elapsed());
        let rest = EVERY.saturating_sub(sent.elapsed());
        if rest > Duration::ZERO {
            thread::park_timeout(rest);
        }
    }
    waits.sort_unstable();
    waits
}

fn memory(server: &Operated, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

/// The bounds of the case: a pause of 5 ms, and 1.2 times the memory.
#[test]
fn a_reload_of_many_users_pauses_no_worker() {
    let server = Operated::start("", &[]);
    server.rewrite("users", &users(0));
    server.signal(Signal::SIGHUP);
    waits_until_reloaded(&server, 1);
    let before = memory(&server, "VmRSS:");
    let mut longest = Vec::new();
    for generation in 1..4 {
        server.rewrite("users", &users(generation));
        server.signal(Signal::SIGHUP);
        let waits = waits_until_reloaded(&server, 1 + generation as usize);
        longest.push((waits[waits.len() / 2], waits[waits.len() - 1], waits.len()));
    }
    let (after, most) = (memory(&server, "VmRSS:"), memory(&server, "VmHWM:"));
    println!("{longest:?} (p50, longest, Bindings); {before} MB before, {after} MB after, {most} MB at most");
    assert!(server.client("ann").allocate().is_ok());
    let longest = longest.iter().map(|(_, longest, _)| *longest).min().unwrap();
    assert!(longest <= Duration::from_millis(5), "{longest:?}");
    assert!(after * 10 <= before * 12, "{after} MB after {before} MB");
}
