//! How long the shipped program takes until it is ready, and what it costs when idle.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{cargo, last_line};
use crate::soak::{HTTP, Program};

/// Starts of each command; the median counts.
const STARTS: usize = 11;
const READY_MAX: Duration = Duration::from_millis(150);
const AUDIT_MAX: Duration = Duration::from_millis(20);
/// Seconds of a recording that is audited.
const RECORDING_S: &str = "2";
/// How long an idle program is watched.
const IDLE: Duration = Duration::from_secs(60);
const TURN_KIB_MAX: u64 = 25 << 10;
const SERVE_KIB_MAX: u64 = 80 << 10;
/// Share of a core of an idle `turn`.
const TURN_SHARE_MAX: f64 = 0.001;

const TURN: &[&str] = &["turn", "--listen", "127.0.0.1:0", "--user", "ann:secret"];
const SERVE: &[&str] = &["serve", "--turn-listen", "127.0.0.1:0"];

/// Allocations whose memory is measured, and its bound.
const ALLOCATIONS: &str = "100000";
const ALLOCATIONS_KIB_MAX: u64 = 1 << 20;
const ALLOCATIONS_LISTEN: &str = "127.0.0.1:13479";

/// A figure with its bound.
struct Figure {
    text: String,
    is_within: bool,
}

/// Builds `truetick`, measures, prints each figure, and fails if one is above its bound.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let built = &*Program::build(root)?;
    let mut figures = vec![ready(built, "turn", TURN)?, ready(built, "serve", SERVE)?, audit(root)?];
    figures.extend(idle(built, "turn", TURN, TURN_KIB_MAX, Some(TURN_SHARE_MAX))?);
    figures.extend(idle(built, "serve", SERVE, SERVE_KIB_MAX, None)?);
    figures.push(allocations(root, built)?);
    for Figure { text, is_within } in &figures {
        println!("{text}{}", if *is_within { "" } else { ": ABOVE" });
    }
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

/// Makes [`ALLOCATIONS`], and returns the resident memory of the server that holds them.
fn allocations(root: &Path, built: &Path) -> anyhow::Result<Figure> {
    let server = ["turn", "--listen", ALLOCATIONS_LISTEN, "--user", "ann:secret", "--allocations-max", ALLOCATIONS];
    let pools = ["--relay-ip", "127.0.0.1", "--relay-ip", "127.0.0.2", "--relay-ports", "1024-65535"];
    let shares = ["--user-share-percent", "100", "--user-allocations-per-second", "0"];
    let program = Program::start_at(built, &[&server[..], &pools, &shares].concat(), HTTP.parse()?)?;
    let client = ["run", "--release", "--quiet", "--locked", "--package", "testkit", "--example", "allocations", "--"];
    let made = last_line(cargo(root, &client).args([ALLOCATIONS_LISTEN, "ann", "secret", ALLOCATIONS]))?;
    let kib = program.resident_kib()?;
    let (mib, max) = (kib as f64 / 1024.0, ALLOCATIONS_KIB_MAX >> 10);
    Ok(Figure { text: format!("turn {mib:.1} MiB of {max} MiB ({made})"), is_within: kib <= ALLOCATIONS_KIB_MAX })
}

/// Watches a program without clients for [`IDLE`]: its resident memory, and the share of a core if `share_max` bounds it.
fn idle(
    built: &Path,
    name: &str,
    arguments: &[&str],
    kib_max: u64,
    share_max: Option<f64>,
) -> anyhow::Result<Vec<Figure>> {
    let program = Program::start_at(built, arguments, HTTP.parse()?)?;
    let (before, started) = (program.processor_time()?, Instant::now());
    thread::sleep(IDLE);
    let used = program.processor_time()?.saturating_sub(before);
    let share = used.as_secs_f64() / started.elapsed().as_secs_f64();
    let kib = program.resident_kib()?;
    let text = format!("{name} {:.1} MiB of {} MiB", kib as f64 / 1024.0, kib_max >> 10);
    let memory = Figure { text, is_within: kib <= kib_max };
    let max = share_max.map_or_else(String::new, |max| format!(" of {:.1} %", max * 100.0));
    let text = format!("{name} idle at {:.2} % of a core{max}", share * 100.0);
    Ok(vec![memory, Figure { text, is_within: share_max.is_none_or(|max| share <= max) }])
}
