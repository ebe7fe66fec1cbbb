//! `truetick bench ring`: NullRing's output, where its median goes, and the journey.

mod decomposed;
mod journey;
mod latencies;
mod layouts;
mod machine;
mod rounds;
mod tail;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Scale};
use tt_report::ring::{RingResult, Settings};
use tt_report::{Bootstrap, Document};

use super::super::environment::{self, Before};
use super::super::exclusive::Exclusive;
use super::super::figures::{self, Sketch};
use super::super::operation::Bench as _;
use super::super::runner::{self, Kept, default_folder, progress};
use super::lines::Lines;
use crate::clock;
use crate::output;
use machine::Granted;
use rounds::{Rounds, Sizes};

/// What the result cannot tell.
const NOT_MEASURED: [&str; 3] = [
    "hardware counters (none on most virtual machines)",
    "a distance between cores other than those that the host chose",
    "layout bias (all runs in one process)",
];

/// Flags of `bench ring` alone.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "With `ring`, without --row")]
pub(crate) struct Flags {
    /// Recorded events of the one-in-flight loop, all runs together; 1,000,000 unless told otherwise, 100,000 with --quick
    #[arg(long, value_name = "N")]
    events: Option<usize>,

    /// Slots of the ring, rounded up to a power of two
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    slots: usize,

    /// Events before the recorded ones, in each run
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    warmup: usize,

    /// Events a second of an open loop; may repeat. 100,000, 1,000,000 and 5,000,000 unless told otherwise
    #[arg(long, value_name = "PER_SECOND")]
    rate: Vec<u32>,

    /// The producer's CPU and the consumer's; the first and the last that this process may use unless told otherwise
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 2)]
    cpus: Option<Vec<usize>>,

    /// The ten steps from a naive ring to the shipped one, too: cumulative, and each left out of the final build
    #[arg(long)]
    journey: bool,

    /// The layouts that lost to the shipped ring beside it, too
    #[arg(long)]
    layouts: bool,

    /// The journey as an SVG
    #[arg(long, value_name = "FILE", requires = "journey")]
    plot: Option<PathBuf>,
}

/// Measures, prints, and keeps the result.
///
/// # Errors
/// Another bench is running, there are no two CPUs, an answer is not the expected one, the clock drifts, or a file
/// cannot be written.
pub(crate) fn run(flags: &Flags, quick: bool, kept: Kept, json: bool) -> anyhow::Result<()> {
    let exclusive = Exclusive::take()?;
    let calibration = clock::calibration();
    let cpus = chosen(flags.cpus.as_deref())?;
    let granted = Granted::ask();
    let sizes = Sizes::new(flags, quick, cpus, granted.fifo);
    let before = Before::read(calibration);
    let mut rounds = Rounds::new(calibration, sizes);
    let huge_pages = machine::huge_pages();
    rounds.make(&|round, of| progress(&format!("round {round}/{of}")))?;
    let lines = lines(cpus, rounds.sizes.rounds, calibration)?;

    let plan = super::super::plan::Plan::new(quick);
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed };
    let layouts = flags.layouts.then(|| {
        let progress = |round, of| progress(&format!("round {round}/{of} of layouts"));
        layouts::run(&rounds.sizes, calibration, &bootstrap, &progress)
    });
    let layouts = layouts.transpose()?.unwrap_or_default();
    let journey = flags.journey.then(|| {
        // Builds without locked memory must not have it.
        tt_os::memory::unlock_all().context("cannot unlock the memory")?;
        let progress = |round, of| progress(&format!("round {round}/{of} of the journey"));
        journey::run(&rounds.sizes, &granted, calibration, &bootstrap, &progress)
    });
    let journey = journey.transpose()?;

    progress("making intervals");
    let mut environment = environment::record(calibration, &before, Some(cpus[1]), plan.seed);
    environment.machine.cores = runner::cpus().len();
    environment.disturbance.load_before = exclusive.load;
    environment.not_measured = NOT_MEASURED.map(str::to_owned).to_vec();
    let scale = calibration.scale;
    let result = RingResult {
        truetick_bench: "ring",
        quick,
        resamples: bootstrap.resamples,
        warnings: environment.warnings(),
        settings: settings(&rounds, granted, huge_pages, cpus, scale),
        environment,
        loops: rounds.loops(&bootstrap),
        runs: rounds.made.iter().map(|made| rounds.run_of(made)).collect(),
        decompositions: decomposed::of_each_placement(&rounds, &bootstrap),
        tail: tail::of(&rounds),
        layouts,
        journey,
    };
    progress("");
    let folder = kept.out.unwrap_or_else(|| default_folder(&result.environment.date));
    write(&folder.join("ring.json"), &|file| result.write_json(file))?;
    draw(&folder, &result, &lines, calibration, &bootstrap)?;
    if let Some(path) = &kept.csv {
        write(path, &|file| rounds.write_csv(file))?;
    }
    if let (Some(path), Some(journey)) = (&flags.plot, &result.journey) {
        let svg = journey.svg().context("cannot draw the journey")?;
        write(path, &|file| file.write_all(svg.as_bytes()))?;
    }
    let mut stdout = io::stdout().lock();
    let written = if json { result.write_json(&mut stdout) } else { result.write_text(&mut stdout) };
    output::unless_unread(written.context("cannot print"))?;
    eprintln!("ring.json and report.html: {}", folder.display());
    let drift = result.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    Ok(())
}

/// What a cache line's way costs, in as many rounds.
fn lines(cpus: [usize; 2], rounds: usize, calibration: &Calibration) -> anyhow::Result<Lines> {
    let mut lines = Lines::new(cpus);
    for round in 0..rounds {
        progress(&format!("round of cache lines {}/{rounds}", round + 1));
        lines.round(calibration)?;
    }
    Ok(lines)
}

/// The result's figures, and those of the cache lines beside it.
fn draw(
    folder: &Path,
    result: &RingResult,
    lines: &Lines,
    calibration: &Calibration,
    bootstrap: &Bootstrap,
) -> anyhow::Result<()> {
    let mut figures = result.figures();
    lines.portray(&mut Sketch { figures: &mut figures, bootstrap, calibration, step_ns: result.settings.step_ns });
    figures::sort(&mut figures);
    runner::draw(folder, &Document::of_ring(result, &figures))
}

/// The producer's CPU and the consumer's.
fn chosen(wanted: Option<&[usize]>) -> anyhow::Result<[usize; 2]> {
    let available = runner::cpus();
    let cpus = match wanted {
        Some(&[first, second]) => [first, second],
        Some(_) | None => [available.first().copied().unwrap_or(0), available.last().copied().unwrap_or(0)],
    };
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
        idle: "between events the producer keeps the next slot's line".to_owned(),
        skew_ns: rounds.skew_ns(),
        cycle_ns: scale.ns_f64(1.0),
        step_ns: rounds.step_ns(),
    }
}

fn write(path: &Path, fill: &dyn Fn(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), fs::create_dir_all);
    let written = made.and_then(|()| {
        let mut file = BufWriter::new(File::create(path)?);
        fill(&mut file)?;
        file.flush()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}
