//! A reload of 100,000 users: no Binding waits for it, and the memory of the process hardly grows.

mod hanging;

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use testkit::measured;

use crate::operators::operated::{Operated, PATIENCE};
use crate::wire::{self, Writer};

const USERS: usize = 100_000;
const EVERY: Duration = Duration::from_millis(1);
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(5);

/// A file of users without ann, whom every test knows.
fn users(generation: u32) -> String {
    let mut text = String::from("ann:ann-secret\n");
    for number in 0..USERS {
        writeln!(text, "user-{number}:password-{generation}-{number}").unwrap();
    }
    text
}

/// How long a thread had a CPU, and how long it waited for one (proc_pid_schedstat(5), fields 1 and 2).
fn cpu_and_waited(task: &str) -> [Duration; 2] {
    // A worker that retires takes its numbers with it.
    let Ok(stat) = std::fs::read_to_string(format!("{task}/schedstat")) else { return [Duration::ZERO; 2] };
    let mut fields = stat.split(' ').map(|field| Duration::from_nanos(field.parse().unwrap_or_default()));
    [fields.next().unwrap(), fields.next().unwrap()]
}

/// The threads of the server that relay.
fn workers(server: &Operated) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let tasks = tasks.map(|task| task.unwrap().path().display().to_string());
    let is_worker = |task: &String| {
        let name = std::fs::read_to_string(format!("{task}/comm")).unwrap_or_default();
        name.trim_end().strip_prefix("turn-").is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let workers: Vec<_> = tasks.filter(is_worker).collect();
    assert!(workers.len() >= 2, "{workers:?}");
    workers
}

/// Waits for the answers of Binding requests, each sorted.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) whole: Vec<Duration>,
    /// Without the time in which this thread or a worker was ready and had no CPU: the load of the machine.
    pub(crate) of_server: Vec<Duration>,
    /// What the busier worker computed meanwhile.
    pub(crate) computed: Vec<Duration>,
}

/// Sends a Binding request every millisecond until the log has `records` reloads.
fn waits_until_reloaded(server: &Operated, records: usize) -> Waits {
    waits_until(server, || server.log().matches("configuration reloaded").count() >= records)
}

/// Sends a Binding request every millisecond, at least one, until `is_done`.
pub(crate) fn waits_until(server: &Operated, mut is_done: impl FnMut() -> bool) -> Waits {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.listen).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (workers, own) = (workers(server), format!("/proc/self/task/{}", nix::unistd::gettid()));
    let read = || workers.iter().map(|task| cpu_and_waited(task)).collect::<Vec<_>>();
    let (mut bytes, mut waits) = ([0; 1_500], Waits::default());
    let started = Instant::now();
    while waits.whole.is_empty() || !is_done() {
        assert!(started.elapsed() < PATIENCE, "{}", server.log());
        let (own_before, before) = (cpu_and_waited(&own)[1], read());
        let sent = Instant::now();
        socket.send(&Writer::new(wire::BINDING, 0, [7; 12]).0).unwrap();
        socket.recv(&mut bytes).unwrap();
        let (whole, after) = (sent.elapsed(), read());
        let [computed, waited] = [0, 1].map(|field| {
            before.iter().zip(&after).map(|(from, to)| to[field].saturating_sub(from[field])).max().unwrap()
        });
        waits.whole.push(whole);
        waits.of_server.push(whole.saturating_sub(waited + (cpu_and_waited(&own)[1] - own_before)));
        waits.computed.push(computed);
        let rest = EVERY.saturating_sub(sent.elapsed());
        if rest > Duration::ZERO {
            thread::park_timeout(rest);
        }
    }
    for waits in [&mut waits.whole, &mut waits.of_server, &mut waits.computed] {
        waits.sort_unstable();
    }
    waits
}

fn memory(server: &Operated, line: &str) -> u64 {
    testkit::memory_bytes(server.id(), line) >> 20
}

/// The bounds of the case: a pause of 5 ms, and 1.2 times the memory.
#[test]
fn a_reload_of_many_users_pauses_no_worker() {
    let server = Operated::start("", &[]);
    server.rewrite("users", &users(0));
    server.signal(Signal::SIGHUP);
    waits_until_reloaded(&server, 1);
    let before = memory(&server, "VmRSS");
    // The maximum starts again (proc_pid_clear_refs(5)).
    std::fs::write(format!("/proc/{}/clear_refs", server.id()), "5").unwrap();
    let mut all = Vec::new();
    for generation in 1..4 {
        server.rewrite("users", &users(generation));
        server.signal(Signal::SIGHUP);
        all.push(waits_until_reloaded(&server, 1 + generation as usize));
    }
    let (after, most) = (memory(&server, "VmRSS"), memory(&server, "VmHWM"));
    for Waits { whole, of_server, computed } in &all {
        let (count, p50) = (whole.len(), whole[whole.len() / 2]);
        let [whole, of_server, computed] = [whole, of_server, computed].map(|waits| waits[count - 1]);
        println!(
            "{count} Bindings: p50 {p50:?}, longest {whole:?}, {of_server:?} while all had a CPU, a worker computed \
             {computed:?}"
        );
    }
    println!("{before} MB before, {after} MB after, {most} MB at most");
    assert!(server.client("ann").allocate().is_ok());
    // Interrupts and a hypervisor stop threads too, and no counter of a thread shows it: the best of three reloads.
    let longest =
        |of_one: fn(&Waits) -> &Vec<Duration>| all.iter().map(|waits| of_one(waits).last()).collect::<Vec<_>>();
    let pauses = [longest(|waits| &waits.of_server), longest(|waits| &waits.computed)];
    let all_of =
        |pauses: &[Option<&Duration>]| pauses.iter().flatten().map(|it| format!("{it:.2?}")).collect::<Vec<_>>();
    let [waits, computed] = pauses.each_ref().map(|pauses| all_of(pauses).join(", "));
    measured(
        "reload",
        format_args!(
            "memory {:.2} times; longest waits {waits}; a worker computed {computed}",
            most as f64 / before as f64
        ),
    );
    for longest in pauses {
        assert!(longest.iter().flatten().min().unwrap() <= &&PAUSE_MAX, "{longest:?}");
    }
    assert!(most * 10 <= before * 12, "{most} MB at most, {before} MB before");
}
