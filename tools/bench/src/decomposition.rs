//! The decomposition of the ring's median by intervention: `cargo run --release -p bench --bin decomposition`.
//!
//! Every term is added and left out, and delayed by known times, in many fresh processes. BENCHMARKING.md registers the
//! design and the judgement.

mod build;
mod ends;
mod judgement;
mod process;
mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tt_model::SplitMix64;
use tt_os::{clock, stdout};

pub use judgement::{Judgement, TermFigures, Verdict};
pub use process::{Process, ProcessPlan, run as run_process};

use crate::harness::cpus;
use crate::harness::environment::{self, Before};
use crate::harness::exclusive::{Exclusive, WhenBusy};
use crate::harness::notes::Stamp;
use crate::harness::plan::Plan;
use crate::harness::progress::progress;
use crate::harness::results::write;
use crate::report::{Bootstrap, Build, Environment};
use crate::ring::chosen;

/// Fresh processes, rounds of each, and events of each run: registered in BENCHMARKING.md before the kept run.
const FULL: Amount = Amount { processes: 60, rounds: 6, events: (500, 4_000) };
const QUICK: Amount = Amount { processes: 10, rounds: 2, events: (500, 2_000) };
/// Most bytes that are put into a process's environment, which moves its stack.
const ENVIRONMENT_BYTES_MAX: usize = 4_096;

#[derive(Clone, Copy, Debug)]
struct Amount {
    processes: u64,
    rounds: usize,
    events: (usize, usize),
}

/// What is measured, and where the result goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Few processes: a trial, whose result cannot be kept.
    pub quick: bool,
    /// CPUs of the sender and the receiver. [default: the first and the last available]
    pub cpus: Option<[usize; 2]>,
    /// File of the result.
    pub out: PathBuf,
    /// Action on a busy machine.
    pub when_busy: WhenBusy,
}

/// The result file.
#[derive(Debug, Serialize)]
pub struct DecompositionResult {
    /// Always `decomposition`.
    pub truetick_bench: &'static str,
    /// Few processes.
    pub quick: bool,
    /// Resamples of the intervals.
    pub resamples: u32,
    /// Machine, build and disturbance.
    pub environment: Environment,
    /// Reasons for doubt.
    pub warnings: Vec<String>,
    /// CPUs of the sender and the receiver.
    pub cpus: [usize; 2],
    /// Events of a run before the recorded ones, and recorded ones.
    pub events: (usize, usize),
    /// `None` where too few processes have every build in the placement that counts.
    pub judgement: Option<Judgement>,
    /// Every median of every process.
    pub processes: Vec<Process>,
}

/// Starts the processes one after the other, judges what they measured, prints it and writes the file.
///
/// # Errors
/// `BusyError` on a busy machine; another bench is running, there are no two CPUs, a process fails, the clock drifts, or
/// the file cannot be written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let exclusive = Exclusive::take(options.when_busy)?;
    let calibration = clock::calibration();
    let cpus = chosen(options.cpus)?;
    let amount = if options.quick { QUICK } else { FULL };
    let plan = Plan::new(options.quick);
    let before = Before::read(calibration);
    let mut processes = Vec::new();
    for number in 0..amount.processes {
        progress(&format!("process {}/{}", number + 1, amount.processes));
        processes.push(start(number, &ProcessPlan { cpus, rounds: amount.rounds, events: amount.events })?);
    }
    progress("");
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed };
    let mut environment = environment::record(calibration, &before, Some(cpus[1]), plan.seed);
    environment.build = build();
    environment.machine.cores = cpus::available().len();
    exclusive.record(&mut environment);
    environment.not_measured = vec!["hardware counters (none on most virtual machines)".to_owned()];
    let result = DecompositionResult {
        truetick_bench: "decomposition",
        quick: options.quick,
        resamples: bootstrap.resamples,
        warnings: environment.warnings(),
        environment,
        cpus,
        events: amount.events,
        judgement: judgement::judge(&processes, &bootstrap),
        processes,
    };
    write(&options.out, &|file| serde_json::to_writer(file, &result).map_err(io::Error::other))?;
    let mut stdout = io::stdout().lock();
    stdout::ignore_broken_pipe(result.write_text(&mut stdout).context("cannot print"))?;
    eprintln!("{}", options.out.display());
    let drift = result.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    Ok(())
}

/// Starts this program again for one process, and reads what it measured.
fn start(number: u64, plan: &ProcessPlan) -> anyhow::Result<Process> {
    let program = std::env::current_exe().context("this program has no path")?;
    let [sender, receiver] = plan.cpus;
    let (warmup, events) = plan.events;
    let arguments = [number, sender as u64, receiver as u64, plan.rounds as u64, warmup as u64, events as u64];
    let layout = "-".repeat(SplitMix64::new(number).index(ENVIRONMENT_BYTES_MAX));
    let output = Command::new(program)
        .arg("--process")
        .args(arguments.map(|argument| argument.to_string()))
        .env("TRUETICK_LAYOUT", layout)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process")?;
    ensure!(output.status.success(), "process {number} failed: {}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("process {number} printed no result"))
}

/// The build, by the sources that this program was made from.
fn build() -> Build {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Stamp { commit, .. } = Stamp::now(&root);
    let rustc = Command::new("rustc").arg("--version").current_dir(&root).output();
    let rustc =
        rustc.map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Build {
        rustc,
        profile: if cfg!(debug_assertions) { "debug".to_owned() } else { "release".to_owned() },
        flags: String::new(),
        dirty: commit.ends_with('+'),
        commit: commit.trim_end_matches('+').to_owned(),
    }
}
