//! Senders without a permission that spray every relay port: the cost of a datagram and the wait of a client do not grow
//! with the number of relay sockets.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use testkit::turn_client::Client;
use testkit::{Requirement, measured, require, two_cpus};
use tt_os::cpu::{available, pin};

use crate::server::{PASSWORD, Server, USER};
use crate::wire::{self, Writer};

/// Datagrams between two looks at the CPU time of the server.
const SPRAYED: usize = 300_000;
const SENDERS: usize = 2;
/// User CPU time of the server in a measurement: 100 of the units that it is counted in.
const USER_TIME: Duration = Duration::from_secs(1);
/// Measurements with each number of relays, in turns.
const ROUNDS: usize = 3;
/// Schedule of the Binding requests.
const EVERY: Duration = Duration::from_millis(5);
/// An answer that takes longer counts as if it took so long.
const ANSWER_MAX: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
struct Cost {
    user_us_per_datagram: f64,
    binding_p50: Duration,
}

/// User CPU time of a process, in units of 10 ms (proc_pid_stat(5), field 14).
fn user_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    Duration::from_millis(10 * fields.split(' ').nth(11).unwrap().parse::<u64>().unwrap())
}

/// Two senders, each to every relay.
fn spray(relays: &[SocketAddr]) {
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                for relay in relays.iter().cycle().take(SPRAYED / SENDERS) {
                    socket.send_to(&[0; 32], relay).unwrap();
                }
            });
        }
    });
}

/// Sends a Binding request every 5 ms until `is_over`, whether the one before was answered or not, and returns how long
/// each answer took; 500 ms if there was none.
pub(crate) fn probe(server: SocketAddr, is_over: &AtomicBool) -> Vec<Duration> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (started, mut sent, mut waits) = (Instant::now(), Vec::new(), Vec::new());
    let receive = |sent: &[Instant], waits: &mut [Option<Duration>], until: Instant| {
        let mut bytes = [0; 1_500];
        let rest = TimeSpec::from_duration(until.saturating_duration_since(Instant::now()));
        ppoll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], Some(rest), None).unwrap();
        while socket.recv(&mut bytes).is_ok() {
            let number = u64::from_be_bytes(bytes[12..20].try_into().unwrap()) as usize;
            waits[number].get_or_insert(sent[number].elapsed());
        }
    };
    while !is_over.load(Ordering::Relaxed) {
        let due = started + EVERY * sent.len() as u32;
        if due > Instant::now() {
            receive(&sent, &mut waits, due);
            continue;
        }
        let mut id = [7; 12];
        id[4..].copy_from_slice(&(sent.len() as u64).to_be_bytes());
        sent.push(Instant::now());
        waits.push(None);
        socket.send(&Writer::new(wire::BINDING, 0, id).0).unwrap();
    }
    let last = Instant::now() + ANSWER_MAX;
    while waits.contains(&None) && Instant::now() < last {
        receive(&sent, &mut waits, last);
    }
    waits.into_iter().map(|wait| wait.unwrap_or(ANSWER_MAX)).collect()
}

/// The server has one CPU, senders and clients have the other: a wait is for the server.
fn cost_with(relays: usize, [outside, inside]: [usize; 2]) -> Cost {
    pin(inside).unwrap();
    // One user has all relays: where few descriptors are allowed, 6,000 are more than a user's share.
    let whole = ["--user-allocations-per-second", "0", "--user-share-percent", "100"];
    let server = Server::start(&[&["--listen", "127.0.0.1:0", "--workers", "1"][..], &whole].concat());
    pin(outside).unwrap();
    let mut clients: Vec<_> = (0..relays).map(|_| Client::new(server.listen[0], USER, PASSWORD)).collect();
    let relays: Vec<_> = clients.iter_mut().map(|client| client.allocate().unwrap()).collect();
    let (before, is_over) = (user_time(server.id()), AtomicBool::new(false));
    let mut waits = thread::scope(|scope| {
        let probes = scope.spawn(|| probe(server.listen[0], &is_over));
        while user_time(server.id()) - before < USER_TIME {
            spray(&relays);
        }
        is_over.store(true, Ordering::Relaxed);
        probes.join().unwrap()
    });
    let user = user_time(server.id()) - before;
    waits.sort_unstable();
    let farewell = server.stop();
    // Each client sent a request without credentials and one with them.
    let handled = farewell.received - 2 * relays.len() as u64 - waits.len() as u64;
    Cost { user_us_per_datagram: user.as_secs_f64() * 1e6 / handled as f64, binding_p50: waits[waits.len() / 2] }
}

fn median(costs: &mut [Cost]) -> Cost {
    let middle = costs.len() / 2;
    costs.sort_unstable_by(|a, b| a.user_us_per_datagram.total_cmp(&b.user_us_per_datagram));
    let user_us_per_datagram = costs[middle].user_us_per_datagram;
    costs.sort_unstable_by_key(|cost| cost.binding_p50);
    Cost { user_us_per_datagram, binding_p50: costs[middle].binding_p50 }
}

/// The bounds of the case: 1.2 times the user CPU of a datagram, 1.5 times the median wait of a Binding.
#[test]
fn six_thousand_relay_sockets_cost_a_datagram_what_fifty_cost() {
    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let cpus = available().unwrap();
    let cpus = [cpus[0], cpus[cpus.len() - 1]];
    tt_net::raise_descriptor_limit().unwrap();
    let mut costs = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for (costs, relays) in costs.iter_mut().zip([50, 6_000]) {
            let cost = cost_with(relays, cpus);
            println!(
                "{relays} relays: {:.2} us of user CPU, Binding p50 {:?}",
                cost.user_us_per_datagram, cost.binding_p50
            );
            costs.push(cost);
        }
    }
    let [few, many] = costs.each_mut().map(|costs| median(costs));
    let cpu = many.user_us_per_datagram / few.user_us_per_datagram;
    let wait = many.binding_p50.as_secs_f64() / few.binding_p50.as_secs_f64();
    measured("relay sockets", format_args!("{wait:.2} times the wait, {cpu:.2} times the CPU"));
    assert!(cpu <= 1.2 && wait <= 1.5, "{cpu:.2} times the CPU, {wait:.2} times the wait");
}
