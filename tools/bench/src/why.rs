//! `truetick why`: how much of the time from one core to another is the machine's, what stalls them, and what would help.

mod advice;
mod changes;
mod gate;
mod stalls;

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use tt_meter::Calibration;
use tt_os::{clock, stdout};

use crate::harness::cpus;
use crate::harness::environment::{self, Before};
use crate::harness::exclusive::{Exclusive, WhenBusy};
use crate::harness::plan::Plan;
use crate::harness::progress::progress;
use crate::harness::results::{Destination, write};
use crate::machine::{self, Placement, Threads, Topology};
use crate::report::why::{PairAnswer, WhyResult};
use crate::report::{Bootstrap, Build};
use crate::ring::chosen;
use crate::ring::latencies::{PLACEMENTS, mean};
use crate::ring::model::Model;
use crate::ring::rounds::{Rounds, Sizes, Variant};

/// Runs of a round from which the parts follow: each of two changes, with and without the other, and a repetition.
const PARTS: [Variant; 5] = [Variant::Gate, Variant::Again, Variant::Reader, Variant::Floor, Variant::FloorReader];

const NOT_MEASURED: [&str; 2] = [
    "hardware counters (none on most virtual machines)",
    "settings of the whole machine: each is named with its present value, and left as it is",
];

/// What `truetick why` measures, and where the result goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer events.
    pub quick: bool,
    /// CPUs of the producer and the consumer. [default: the first and the last available]
    pub cpus: Option<[usize; 2]>,
    /// Print JSON instead of text.
    pub json: bool,
    /// Files of the result.
    pub destination: Destination,
    /// The build that measures.
    pub build: Build,
    /// Action on a busy machine.
    pub when_busy: WhenBusy,
}

/// Rounds of each step and recorded events of each run: fixed before anything is measured.
#[derive(Clone, Copy, Debug)]
struct Amount {
    parts: (usize, usize),
    stalls: (usize, usize),
    changes: (usize, usize),
}

impl Amount {
    const fn new(quick: bool) -> Self {
        if quick {
            Self { parts: (12, 1_000), stalls: (20, 40_000), changes: (10, 1_000) }
        } else {
            Self { parts: (100, 5_000), stalls: (200, 20_000), changes: (40, 5_000) }
        }
    }
}

/// Measures, prints the answer, and writes `why.json`, `why.html` and `why.svg`.
///
/// # Errors
/// `BusyError` on a busy machine; another bench is running, there are no two CPUs, an answer differs from the reference,
/// the clock drifts, the ring lies below its physical floor, or a file cannot be written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let exclusive = Exclusive::take(options.when_busy)?;
    let calibration = clock::calibration();
    let cpus = chosen(options.cpus)?;
    let before = Before::read(calibration);
    let plan = Plan::new(options.quick);
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed };
    let amount = Amount::new(options.quick);
    let threads = Threads { cpus: Some(cpus), fifo: None };

    let (count, per_run) = amount.parts;
    let mut rounds = Rounds::new(calibration, Sizes::of_variants(&PARTS, threads, count, per_run));
    rounds.make(&|round, of| progress(&format!("round {round}/{of} of the line, the ring and the evaluator")))?;
    let others = machine::pairs_at_other_distances(&cpus::available(), cpus, &Topology::read);
    let others: Vec<PairAnswer> = others
        .into_iter()
        .map(|(cpus, distance)| other(calibration, cpus, distance, amount.parts, &bootstrap))
        .collect::<anyhow::Result<_>>()?;
    let stalls = stalls::watch(calibration, threads, amount.stalls)?;
    let changes = changes::measure(calibration, cpus, amount.changes, &bootstrap)?;
    progress("timing the gate that ships");
    let gate = gate::of_new_orders(calibration, &plan, &bootstrap, cpus[1])?;
    progress("");

    let mut environment = environment::record(calibration, &before, Some(cpus[1]), plan.seed);
    environment.build = options.build.clone();
    environment.machine.cores = cpus::available().len();
    exclusive.record(&mut environment);
    environment.not_measured = NOT_MEASURED.map(str::to_owned).to_vec();
    let placement = main_placement(&rounds);
    let model = Model { rounds: &rounds, placement, bootstrap: &bootstrap };
    let parts = model.parts();
    let floor = model.floors().into_iter().next();
    let p50_ns = match &parts {
        Some(parts) => parts.whole_ns,
        None => p50(&rounds, placement, calibration, &bootstrap).context("no event came through")?,
    };
    let result = WhyResult {
        truetick: "why",
        quick: options.quick,
        resamples: bootstrap.resamples,
        warnings: environment.warnings(),
        advice: advice::read(cpus, &stalls, &environment),
        environment,
        cpus,
        placement: placement.name().to_owned(),
        runs: runs_in(&rounds, placement),
        p50_ns,
        parts,
        floor,
        distance: machine::distance(cpus, &Topology::read).map(Placement::name),
        others,
        gate_ns: gate,
        stalls,
        changes,
    };
    let folder = options.destination.folder(&result.environment.date);
    keep(&folder, &result)?;
    let mut stdout = io::stdout().lock();
    let written = if options.json { result.write_json(&mut stdout) } else { result.write_text(&mut stdout) };
    stdout::ignore_broken_pipe(written.context("cannot print"))?;
    eprintln!("why.html (one page), why.svg (one picture) and why.json: {}", folder.display());
    let drift = result.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    result.environment.judge_floor(&result.below_floor())
}

/// The answer for another pair of CPUs.
fn other(
    calibration: &'static Calibration,
    cpus: [usize; 2],
    distance: Placement,
    (count, per_run): (usize, usize),
    bootstrap: &Bootstrap,
) -> anyhow::Result<PairAnswer> {
    let threads = Threads { cpus: Some(cpus), fifo: None };
    let mut rounds = Rounds::new(calibration, Sizes::of_variants(&PARTS, threads, count, per_run));
    let [one, two] = cpus;
    rounds.make(&|round, of| progress(&format!("round {round}/{of} of CPUs {one} and {two}")))?;
    let placement = main_placement(&rounds);
    let model = Model { rounds: &rounds, placement, bootstrap };
    let parts = model.parts();
    Ok(PairAnswer {
        cpus,
        distance: distance.name(),
        placement: placement.name().to_owned(),
        runs: runs_in(&rounds, placement),
        p50_ns: parts.as_ref().map(|parts| parts.whole_ns).or_else(|| p50(&rounds, placement, calibration, bootstrap)),
        parts,
        floor: model.floors().into_iter().next(),
    })
}

fn keep(folder: &Path, result: &WhyResult) -> anyhow::Result<()> {
    let svg = result.svg().context("cannot draw the picture")?;
    write(&folder.join("why.json"), &|file| result.write_json(file))?;
    write(&folder.join("why.html"), &|file| result.write_html(&svg, file))?;
    write(&folder.join("why.svg"), &|file| file.write_all(svg.as_bytes()))
}

/// The placement that most runs were made in.
fn main_placement(rounds: &Rounds) -> Placement {
    PLACEMENTS.into_iter().max_by_key(|placement| runs_in(rounds, *placement)).unwrap_or(Placement::Moved)
}

fn runs_in(rounds: &Rounds, placement: Placement) -> usize {
    rounds.made.iter().filter(|made| made.variant == Variant::Gate && made.run.placement == placement).count()
}

/// The mean of the runs' medians.
fn p50(
    rounds: &Rounds,
    placement: Placement,
    calibration: &Calibration,
    bootstrap: &Bootstrap,
) -> Option<crate::report::Estimate> {
    let here = rounds.made.iter().filter(|made| made.variant == Variant::Gate && made.run.placement == placement);
    let medians: Vec<f64> =
        here.filter_map(|made| made.run.p50_cycles()).map(|cycles| calibration.scale.ns_f64(cycles)).collect();
    mean(&medians, bootstrap)
}
