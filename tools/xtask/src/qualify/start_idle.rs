//! How long the shipped program takes until it is ready, and what it costs when idle.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sched::{CloneFlags, unshare};

use super::{cargo, last_line};
use crate::soak::{HTTP, Program};

/// Starts of each command; the median counts.
const STARTS: usize = 11;
const READY_MAX: Duration = Duration::from_millis(150);
const AUDIT_MAX: Duration = Duration::from_millis(20);
/// Seconds of a recording that is audited.
const RECORDING_S: &str = "2";
/// How long an idle `turn` is watched.
const TURN_IDLE: Duration = Duration::from_secs(60);
/// The same for `serve`, whose page has five minutes of depth and trades.
const SERVE_IDLE: Duration = Duration::from_secs(360);
const TURN_KIB_MAX: u64 = 25 << 10;
const SERVE_KIB_MAX: u64 = 80 << 10;
/// Share of a core of an idle `turn`.
const TURN_SHARE_MAX: f64 = 0.001;

const TURN: &[&str] = &["turn", "--listen", "127.0.0.1:0", "--user", "ann:secret"];
const SERVE: &[&str] = &["serve", "--turn-listen", "127.0.0.1:0"];

/// Allocations whose memory is measured, and its bound.
const ALLOCATIONS: &str = "100000";
const ALLOCATIONS_KIB_MAX: u64 = 1 << 20;
/// The longest that the growth of a table may stop the server.
const PAUSE_US_MAX: u64 = 1_000;
/// Servers of one worker that are filled. A table grows at the same allocation in each; what else stops a thread does not
/// come at the same place.
const FILLS: usize = 3;
const ALLOCATIONS_LISTEN: &str = "127.0.0.1:13479";
/// Relays with a socket each: 129,024 ports.
const OWN: &[&str] = &["--relay-ip", "127.0.0.1", "--relay-ip", "127.0.0.2", "--relay-ports", "1024-65535"];
/// Relays that share sockets, on ports that clients do not use: 114,688.
const SHARED: &[&str] = &[
    "--relay-sockets",
    "shared",
    "--relay-ports",
    SHARED_PORTS,
    "--relay-ip",
    "127.0.0.1",
    "--relay-ip",
    "127.0.0.2",
    "--relay-ip",
    "127.0.0.3",
    "--relay-ip",
    "127.0.0.4",
    "--relay-ip",
    "127.0.0.5",
    "--relay-ip",
    "127.0.0.6",
    "--relay-ip",
    "127.0.0.7",
];
const SHARED_PORTS: &str = "49152-65535";

/// A figure with its bound.
struct Figure {
    text: String,
    is_within: bool,
}

/// Builds `truetick`, measures, prints each figure, and fails if one is above its bound.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let built = &*Program::build(root)?;
    let mut figures = Vec::new();
    let mut show = |measured: Vec<Figure>| {
        for Figure { text, is_within } in &measured {
            println!("{text}{}", if *is_within { "" } else { ": ABOVE" });
        }
        figures.extend(measured);
    };
    show(vec![ready(built, "turn", TURN)?, ready(built, "serve", SERVE)?, audit(root)?]);
    show(idle(built, ("turn", TURN), TURN_IDLE, TURN_KIB_MAX, Some(TURN_SHARE_MAX))?);
    show(idle(built, ("serve", SERVE), SERVE_IDLE, SERVE_KIB_MAX, None)?);
    show(allocations(root, built)?);
    let above: Vec<_> = figures.iter().filter(|figure| !figure.is_within).map(|figure| &*figure.text).collect();
    ensure!(above.is_empty(), "above: {}", above.join("; "));
    Ok(figures.iter().map(|figure| &*figure.text).collect::<Vec<_>>().join("; "))
}

/// Times from the start of a process until `/readyz` answers 200.
fn ready(built: &Path, name: &str, arguments: &[&str]) -> anyhow::Result<Figure> {
    median(&format!("{name} ready"), READY_MAX, || {
        let started = Instant::now();
        let _program = Program::start_at(built, arguments, HTTP.parse()?)?;
        Ok(started.elapsed())
    })
}

/// Times `truetick audit` of a short recording of a simulated venue.
fn audit(root: &Path) -> anyhow::Result<Figure> {
    let program = root.join("target/release/truetick");
    let path = root.join("target/start-idle.ttj");
    // `record` overwrites nothing.
    let _ = fs::remove_file(&path);
    let mut record = Command::new(&program);
    record.args(["record", "--venue", "kraken", "--symbols", "BTC/USD", "--seconds", RECORDING_S, "--out"]).arg(&path);
    ensure!(record.stdout(Stdio::null()).status()?.success(), "no recording");
    let name = format!("audit of {} KiB", fs::metadata(&path)?.len() >> 10);
    median(&name, AUDIT_MAX, || {
        let started = Instant::now();
        let status = Command::new(&program).arg("audit").arg(&path).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "the audit failed");
        Ok(started.elapsed())
    })
}

fn median(name: &str, max: Duration, run: impl Fn() -> anyhow::Result<Duration>) -> anyhow::Result<Figure> {
    let mut times = (0..STARTS).map(|_| run()).collect::<anyhow::Result<Vec<_>>>()?;
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (low, middle, high) = (ms(times[0]), times[STARTS / 2], ms(times[STARTS - 1]));
    let text = format!("{name} {:.1} ms of {:.0} ms ({low:.1} to {high:.1})", ms(middle), ms(max));
    Ok(Figure { text, is_within: middle <= max })
}

/// Makes [`ALLOCATIONS`]. Returns the resident memory of a server that holds them, and the longest time of an allocation
/// that took so long in each of [`FILLS`] servers. Relays have sockets where the process may have so many descriptors;
/// elsewhere those of a worker share one.
fn allocations(root: &Path, built: &Path) -> anyhow::Result<Vec<Figure>> {
    let (descriptors, needed) = (descriptors_max()?, ALLOCATIONS.parse::<u64>()? * 5 / 4);
    let (relays, about) = if descriptors < needed {
        reserve_ports()?;
        (SHARED, format!(", relays that share a socket: a process may have {descriptors} descriptors here"))
    } else {
        (OWN, String::new())
    };
    let Fill { made, kib, .. } = fill(root, built, relays)?;
    let one_worker = [relays, &["--workers", "1"]].concat();
    let fills = (0..FILLS).map(|_| fill(root, built, &one_worker)).collect::<anyhow::Result<Vec<_>>>()?;
    let times: Vec<&[u64]> = fills.iter().map(|fill| &*fill.times_us).collect();
    let (number, us) = longest_of_all(&times).context("no allocation was made")?;
    let (mib, max) = (kib as f64 / 1024.0, ALLOCATIONS_KIB_MAX >> 10);
    let memory = format!("turn {mib:.1} MiB of {max} MiB ({made}{about})");
    let pause = format!("no allocation above {us} us of {PAUSE_US_MAX} us in each of {FILLS} fills (number {number})");
    Ok(vec![
        Figure { text: memory, is_within: kib <= ALLOCATIONS_KIB_MAX },
        Figure { text: pause, is_within: us <= PAUSE_US_MAX },
    ])
}

/// Gives this thread, and what it starts from now on, a network namespace whose ports for relays are reserved, as relays
/// that share a socket require.
fn reserve_ports() -> anyhow::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace, which root may have")?;
    let status = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("ip")?;
    ensure!(status.success(), "ip link set lo up: {status}");
    // The files below are those of the reading thread's network.
    fs::write("/proc/sys/net/ipv4/ip_local_reserved_ports", SHARED_PORTS).context("reserved ports")
}

/// The number of descriptors that a process may have here.
fn descriptors_max() -> anyhow::Result<u64> {
    let output = Command::new("sh").args(["-c", "ulimit -Hn"]).output().context("sh")?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if text == "unlimited" { u64::MAX } else { text.parse().with_context(|| format!("ulimit: {text}"))? })
}

/// The place whose shortest time is the longest, and that time. `None` if there is none, or one list is shorter.
fn longest_of_all(lists: &[&[u64]]) -> Option<(usize, u64)> {
    let len = lists.first()?.len();
    let is_equal = lists.iter().all(|times| times.len() == len);
    let shortest = |place: usize| lists.iter().filter_map(|times| times.get(place)).min().copied().unwrap_or(u64::MAX);
    (0..len).filter(|_| is_equal).map(|place| (place, shortest(place))).max_by_key(|(_, us)| *us)
}

/// A server with [`ALLOCATIONS`].
struct Fill {
    /// What the client says.
    made: String,
    kib: u64,
    /// How long each took.
    times_us: Vec<u64>,
}

fn fill(root: &Path, built: &Path, flags: &[&str]) -> anyhow::Result<Fill> {
    let file = root.join("target/start-idle.times");
    let times = file.to_str().context("a path that is no text")?;
    let server = ["turn", "--listen", ALLOCATIONS_LISTEN, "--user", "ann:secret", "--allocations-max", ALLOCATIONS];
    let shares = ["--user-share-percent", "100", "--user-allocations-per-second", "0"];
    let program = Program::start_at(built, &[&server[..], &shares, flags].concat(), HTTP.parse()?)?;
    let client = ["run", "--release", "--quiet", "--locked", "--package", "testkit", "--example", "allocations", "--"];
    let made = last_line(cargo(root, &client).args([ALLOCATIONS_LISTEN, "ann", "secret", ALLOCATIONS, times]))?;
    let times_us = fs::read_to_string(&file)?.lines().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    ensure!(times_us.len().to_string() == ALLOCATIONS, "the client says how long {} took", times_us.len());
    Ok(Fill { made, kib: program.resident_kib()?, times_us })
}

/// Watches a program without clients: its resident memory, and the share of a core if `share_max` bounds it.
fn idle(
    built: &Path,
    (name, arguments): (&str, &[&str]),
    watched: Duration,
    kib_max: u64,
    share_max: Option<f64>,
) -> anyhow::Result<Vec<Figure>> {
    let program = Program::start_at(built, arguments, HTTP.parse()?)?;
    let (before, started) = (program.processor_time()?, Instant::now());
    thread::sleep(watched);
    let used = program.processor_time()?.saturating_sub(before);
    let share = used.as_secs_f64() / started.elapsed().as_secs_f64();
    let kib = program.resident_kib()?;
    let text = format!("{name} {:.1} MiB of {} MiB", kib as f64 / 1024.0, kib_max >> 10);
    let memory = Figure { text, is_within: kib <= kib_max };
    let max = share_max.map_or_else(String::new, |max| format!(" of {:.1} %", max * 100.0));
    let text = format!("{name} idle at {:.2} % of a core{max}", share * 100.0);
    Ok(vec![memory, Figure { text, is_within: share_max.is_none_or(|max| share <= max) }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_growth_comes_in_each_fill_and_noise_does_not() {
        assert_eq!(longest_of_all(&[&[90, 2_000, 70], &[3_000, 80, 75], &[80, 90, 4_000]]), Some((1, 80)));
        assert_eq!(longest_of_all(&[&[90, 80, 1_500], &[90, 2_000, 1_400], &[80, 90, 4_000]]), Some((2, 1_400)));
        for shorter in [&[&[1, 2][..], &[1]][..], &[&[1], &[1, 2]], &[]] {
            assert_eq!(longest_of_all(shorter), None);
        }
    }
}
