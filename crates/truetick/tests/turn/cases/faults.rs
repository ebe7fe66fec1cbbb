//! System calls that fail: case A80. `strace` makes them fail inside of the running server, and lets go of it again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::stage::{Stage, UDP};
use testkit::{Requirement, find_program, require};

use crate::server::Server;
use crate::wire::{self, ALLOCATE, BINDING};

const PATIENCE: Duration = Duration::from_secs(20);

/// `strace` at the workers of a running server; lets go of them when dropped.
struct Injection {
    strace: Child,
    workers: Vec<PathBuf>,
}

impl Injection {
    /// Lets each `call` of all `workers` fail with `error`. `when` is strace's word for which of them.
    fn start(stage: &Stage, workers: usize, call: &str, error: &str, when: &str) -> Self {
        let workers = worker_threads(stage.server.id(), workers);
        let rule = format!("inject={call}:error={error}:when={when}");
        let mut strace = Command::new("strace");
        strace.args(["-q", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &rule]);
        for worker in &workers {
            strace.arg("-p").arg(worker.file_name().unwrap());
        }
        let strace = strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let injection = Self { strace, workers };
        injection.wait_until(|tracer| tracer == injection.strace.id());
        injection
    }

    /// Waits until each worker has the tracer that is wanted.
    fn wait_until(&self, wanted: impl Fn(u32) -> bool) {
        let tracer = |thread: &PathBuf| -> Option<u32> {
            let status = std::fs::read_to_string(thread.join("status")).ok()?;
            status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()
        };
        let is_so = testkit::wait_until(PATIENCE, || self.workers.iter().filter_map(tracer).all(&wanted));
        assert!(is_so, "strace does not get hold of the server, or does not let go");
    }
}

/// The server's `count` workers, each the folder of its thread. A thread gives itself its name.
fn worker_threads(pid: u32, count: usize) -> Vec<PathBuf> {
    let mut workers = Vec::new();
    let are_there = testkit::wait_until(PATIENCE, || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|thread| thread.unwrap().path());
        let name = |thread: &PathBuf| std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
        let is_worker =
            |name: &str| name.trim().strip_prefix("turn-").is_some_and(|number| number.parse::<u16>().is_ok());
        workers = threads.filter(|thread| is_worker(&name(thread))).collect();
        workers.len() == count
    });
    assert!(are_there, "{} threads are called turn-N, not {count}", workers.len());
    workers
}

impl Drop for Injection {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.strace.id() as i32), Signal::SIGTERM);
        let _ = self.strace.wait();
        if !thread::panicking() {
            self.wait_until(|tracer| tracer == 0);
        }
    }
}

/// Skips the test unless `strace` may attach to a server.
fn require_strace() -> Option<()> {
    require(Requirement::Program, find_program("strace", "strace"))?;
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let may_attach = scope.trim().parse().unwrap_or(0) == 0 || nix::unistd::geteuid().is_root();
    require(Requirement::Privilege, may_attach.then_some(()).ok_or("strace may not attach"))
}

/// The answers and the relayed payloads of these are refused by the kernel; each is counted under its reason.
#[test]
fn case_a80_sending_fails() {
    let Some(()) = require_strace() else { return };
    let stage = Stage::new();
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    let peer = stage.peer();
    assert_eq!(caller.bind(0x4000, peer.addr()), 0);
    for (error, name) in [
        ("ENOBUFS", "send_no_buffers"),
        ("ENOMEM", "send_no_buffers"),
        ("EAGAIN", "send_would_block"),
        ("EMSGSIZE", "send_too_large"),
        ("EPERM", "send_forbidden"),
        ("ENETUNREACH", "send_unreachable"),
        ("EHOSTUNREACH", "send_unreachable"),
        ("ECONNREFUSED", "send_refused"),
        ("EIO", "send_other"),
    ] {
        let before = stage.ledger();
        let injection = Injection::start(&stage, 4, "sendmmsg", error, "1+");
        for _ in 0..3 {
            let binding = caller.request(BINDING);
            caller.send(&binding.0);
            caller.send(&[0x40, 0, 0, 1, b'x']);
            caller.send_to(peer.addr(), b"y");
            peer.send(relayed, b"z");
        }
        let after = stage.ledger();
        drop(injection);
        assert_eq!(after.drops[name], before.drops[name] + 12, "{error}: {after:?}");
        assert_eq!((after.dropped, after.out), (before.dropped + 12, before.out), "{error}");
        assert!(caller.hears_nothing());
        caller.send(&[0x40, 0, 0, 2, b'o', b'k']);
        assert_eq!(peer.receive(), (b"ok".to_vec(), relayed), "{error}");
        stage.probe();
    }
}

/// Nothing is lost that the kernel still has: it is read once it can be read.
#[test]
fn case_a80_receiving_and_waiting_fail_for_a_while() {
    let Some(()) = require_strace() else { return };
    let stage = Stage::new();
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    let peer = stage.peer();
    assert_eq!(caller.bind(0x4000, peer.addr()), 0);
    for (calls, error) in [
        ("recvmmsg", "ENOBUFS"),
        ("recvmmsg", "ENOMEM"),
        ("recvmmsg", "EINTR"),
        ("recvmmsg", "ENETUNREACH"),
        ("recvmmsg", "EIO"),
        ("epoll_wait,epoll_pwait", "EINTR"),
    ] {
        let injection = Injection::start(&stage, 4, calls, error, "1..20");
        for number in 0..5 {
            caller.send(&[0x40, 0, 0, 1, number]);
            peer.send(relayed, &[number]);
        }
        for number in 0..5 {
            assert_eq!(peer.receive(), (vec![number], relayed), "{calls} {error}");
            assert_eq!(caller.receive(), [0x40, 0, 0, 1, number], "{calls} {error}");
        }
        drop(injection);
        stage.ledger();
        stage.probe();
    }
}

/// The sockets that were bound ahead are allocated; further requests get 508 until there are more. A socket is polled
/// when it is allocated.
#[test]
fn case_a80_sockets_cannot_be_had() {
    let Some(()) = require_strace() else { return };
    for (call, error, name, ahead) in [
        ("socket", "EMFILE", "no_descriptors", 64),
        ("socket", "ENFILE", "no_descriptors", 64),
        ("socket", "ENOBUFS", "no_buffers", 64),
        ("bind", "EPERM", "forbidden", 64),
        ("bind", "EADDRNOTAVAIL", "bad_address", 64),
        ("epoll_ctl", "ENOMEM", "no_buffers", 1),
    ] {
        let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--http", "127.0.0.1:0"];
        let stage = Stage::of(Server::start(&[&flags[..], &["--allow-own-host", "127.0.0.0/8"]].concat()));
        let mut callers = vec![stage.caller()];
        callers[0].allocate();
        let injection = Injection::start(&stage, 1, call, error, "1+");
        let refused = loop {
            let mut caller = stage.caller();
            let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
            let code = caller.ask(request).code();
            if code != 0 {
                break code;
            }
            callers.push(caller);
            assert!(callers.len() < 1_000, "{call} does not fail");
        };
        assert_eq!(refused, 508, "{call} {error}");
        assert!(callers.len() >= ahead, "{} were bound ahead", callers.len());
        // Who has an allocation keeps it.
        let peer = stage.peer();
        assert_eq!(callers[0].permit(peer.addr()), 0);
        callers[0].send_to(peer.addr(), b"goes on");
        assert_eq!(peer.receive().0, b"goes on");
        drop(injection);
        let started = Instant::now();
        let mut late = stage.caller();
        loop {
            let request = late.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
            match late.ask(request).code() {
                0 => break,
                code => assert_eq!(code, 508),
            }
            assert!(started.elapsed() < PATIENCE, "it does not recover from {call} {error}");
        }
        stage.probe();
        let line = stage.server.stop().line;
        assert!(line.contains(&format!("relay sockets failed: {name}")), "{call} {error}: {line}");
    }
}
