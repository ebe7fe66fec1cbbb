//! `truetick bench ring`: latencies through the ring, controls, stalls, layouts and the ablation.

mod ablation;
mod floor_check;
pub(crate) mod latencies;
mod layouts;
mod machine;
pub(crate) mod model;
pub(crate) mod references;
pub(crate) mod rounds;
mod sources;
pub(crate) mod tail;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Scale};
use tt_os::{clock, stdout};

use crate::harness::cpus;
use crate::harness::environment::{self, Before};
use crate::harness::exclusive::{Exclusive, WhenBusy};
use crate::harness::figures::{self, Sketch};
use crate::harness::operation::Bench as _;
use crate::harness::plan::Plan;
use crate::harness::progress::progress;
use crate::harness::results::{Destination, write, write_document};
use crate::report::ring::{RingResult, Settings};
use crate::report::{Bootstrap, Build, Document};
use crate::rows::ring::lines::Lines;
use machine::Granted;
use rounds::{Rounds, Sizes};

/// Returns what the run does not measure.
const NOT_MEASURED: [&str; 3] = [
    "hardware counters (none on most virtual machines)",
    "a distance between cores other than those that the host chose",
    "layout bias (all runs in one process)",
];

/// What `truetick bench ring` measures, and where the result goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer samples.
    pub quick: bool,
    /// Recorded events of the one-in-flight loop, all runs together. [default: 1,000,000; 100,000 if quick]
    pub events: Option<usize>,
    /// Slots of the ring, rounded up to a power of two.
    pub slots: usize,
    /// Events before the recorded ones, in each run.
    pub warmup: usize,
    /// Rates of the open loops, events per second. [default: 100,000, 1,000,000 and 5,000,000]
    pub rates: Vec<u32>,
    /// CPUs of the producer and the consumer. [default: the first and the last available]
    pub cpus: Option<[usize; 2]>,
    /// Also measure the steps from a naive ring to the shipped one.
    pub ablation: bool,
    /// Also measure the ring layouts that were slower than the shipped one.
    pub layouts: bool,
    /// File for a chart of the ablation, SVG.
    pub plot: Option<PathBuf>,
    /// Print JSON instead of tables.
    pub json: bool,
    /// Files of the result.
    pub destination: Destination,
    /// The build that is measured.
    pub build: Build,
    /// Action on a busy machine.
    pub when_busy: WhenBusy,
}

/// Measures, prints the result, and writes its files.
///
/// # Errors
/// `BusyError` on a busy machine; another bench is running, there are no two CPUs, an answer differs from the reference,
/// the clock drifts, the ring lies below its physical floor, or a file cannot be written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let exclusive = Exclusive::take(options.when_busy)?;
    let calibration = clock::calibration();
    let cpus = chosen(options.cpus)?;
    let granted = Granted::ask();
    let sizes = Sizes::new(options, cpus, granted.fifo);
    let before = Before::read(calibration);
    let mut rounds = Rounds::new(calibration, sizes);
    let huge_pages = machine::huge_pages();
    rounds.make(&|round, of| progress(&format!("round {round}/{of}")))?;
    let lines = lines(cpus, rounds.sizes.rounds, calibration)?;

    let plan = Plan::new(options.quick);
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed };
    let layouts = options.layouts.then(|| {
        let progress = |round, of| progress(&format!("round {round}/{of} of layouts"));
        layouts::run(&rounds.sizes, calibration, &bootstrap, &progress)
    });
    let layouts = layouts.transpose()?.unwrap_or_default();
    let ablation = options.ablation.then(|| {
        // Builds without locked memory must not have it.
        tt_os::memory::unlock_all().context("cannot unlock the memory")?;
        let progress = |round, of| progress(&format!("round {round}/{of} of the ablation"));
        ablation::run(&rounds.sizes, &granted, calibration, &bootstrap, &progress)
    });
    let ablation = ablation.transpose()?;

    progress("making intervals");
    let mut environment = environment::record(calibration, &before, Some(cpus[1]), plan.seed);
    environment.build = options.build.clone();
    environment.machine.cores = cpus::available().len();
    exclusive.record(&mut environment);
    environment.not_measured = NOT_MEASURED.map(str::to_owned).to_vec();
    let scale = calibration.scale;
    let result = RingResult {
        truetick_bench: "ring",
        quick: options.quick,
        resamples: bootstrap.resamples,
        warnings: environment.warnings(),
        settings: settings(&rounds, granted, huge_pages, cpus, scale),
        environment,
        loops: rounds.loops(&bootstrap),
        runs: rounds.made.iter().map(|made| rounds.run_of(made)).collect(),
        references: references::of_each_placement(&rounds, &bootstrap),
        tail: tail::of(&rounds),
        layouts,
        ablation,
    };
    progress("");
    let folder = options.destination.folder(&result.environment.date);
    write(&folder.join("ring.json"), &|file| result.write_json(file))?;
    draw(&folder, &result, &lines, calibration, &bootstrap)?;
    if let Some(path) = &options.destination.csv {
        write(path, &|file| rounds.write_csv(file))?;
    }
    if let (Some(path), Some(ablation)) = (&options.plot, &result.ablation) {
        let svg = ablation.svg().context("cannot draw the ablation")?;
        write(path, &|file| file.write_all(svg.as_bytes()))?;
    }
    let mut stdout = io::stdout().lock();
    let written = if options.json { result.write_json(&mut stdout) } else { result.write_text(&mut stdout) };
    stdout::ignore_broken_pipe(written.context("cannot print"))?;
    eprintln!("ring.json and report.html: {}", folder.display());
    let drift = result.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    result.environment.judge_floor(&result.below_floor())
}

/// Measures the transfer of a cache line, in as many rounds.
fn lines(cpus: [usize; 2], rounds: usize, calibration: &Calibration) -> anyhow::Result<Lines> {
    let mut lines = Lines::new(cpus);
    for round in 0..rounds {
        progress(&format!("round of cache lines {}/{rounds}", round + 1));
        lines.round(calibration)?;
    }
    Ok(lines)
}

/// Writes `report.json` and `report.html` with the figures of the result and of the cache lines.
fn draw(
    folder: &Path,
    result: &RingResult,
    lines: &Lines,
    calibration: &Calibration,
    bootstrap: &Bootstrap,
) -> anyhow::Result<()> {
    let mut figures = result.figures();
    lines.portray(&mut Sketch { figures: &mut figures, bootstrap, calibration, step_ns: result.settings.step_ns });
    figures.parts = sources::map();
    figures::sort(&mut figures);
    write_document(folder, &Document::of_ring(result, &figures))
}

/// The producer's CPU and the consumer's.
pub(crate) fn chosen(wanted: Option<[usize; 2]>) -> anyhow::Result<[usize; 2]> {
    let available = cpus::available();
    let cpus = wanted.unwrap_or_else(|| [available.first(), available.last()].map(|cpu| cpu.copied().unwrap_or(0)));
    ensure!(cpus[0] != cpus[1], "two CPUs are needed");
    for cpu in cpus {
        ensure!(available.contains(&cpu), "CPU {cpu} is not there, or this process may not use it");
    }
    Ok(cpus)
}

fn settings(rounds: &Rounds, granted: Granted, huge_pages: String, cpus: [usize; 2], scale: Scale) -> Settings {
    Settings {
        events: rounds.sizes.events as u64,
        capacity: rounds.sizes.slots.next_power_of_two() as u64,
        warmup_events: rounds.sizes.warmup as u64,
        cpus,
        priority: granted.priority,
        locked_memory: granted.locked_memory,
        huge_pages,
        idle: "between events the producer does nothing, but in hold_next and floor_hold_next".to_owned(),
        skew_ns: rounds.skew_ns(),
        cycle_ns: scale.ns_f64(1.0),
        step_ns: rounds.step_ns(),
    }
}
