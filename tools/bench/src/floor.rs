//! `truetick floor`: what this machine can do, and what keeps a thread on it from running.

mod jitter;
mod measured;
mod warnings;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::machine::Jitter;
use crate::report::floor::FloorResult;
use crate::report::{Bootstrap, Build};
use anyhow::{Context as _, ensure};

use crate::harness::cpus;
use crate::harness::environment::{self, Before};
use crate::harness::exclusive::{Exclusive, WhenBusy};
use crate::harness::progress::progress;
use measured::Measured;
use tt_os::clock;
use tt_os::stdout;

/// What `truetick floor` measures, and where the result goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer blocks, shorter observation, no latency curve.
    pub quick: bool,
    /// Measure only stalls, for this many seconds on each core.
    pub jitter: Option<u64>,
    /// After each core alone, spin on all cores at once.
    pub at_once: bool,
    /// Gaps longer than this are stalls.
    pub threshold_ns: u64,
    /// Print JSON instead of tables.
    pub json: bool,
    /// Folder for `floor.json`, `floor.csv` and `stalls.csv`.
    pub out: Option<PathBuf>,
    /// The build that measures.
    pub build: Build,
    /// Action on a busy machine; `jitter` measures a busy machine as well.
    pub when_busy: WhenBusy,
}

/// How much is measured: fixed before anything is.
#[derive(Clone, Copy, Debug)]
struct Plan {
    quick: bool,
    /// Blocks of each row.
    blocks: u32,
    /// Watching the ways between cores, all pairs together.
    transfers_ns: u64,
    /// Spinning, each core.
    jitter_ns: u64,
    resamples: u32,
}

const SEED: u64 = 0x7472_7565_7469_636b;
const SECOND: u64 = 1_000_000_000;
/// Stalls of each core that are kept one by one.
const STALLS_MAX: usize = 200_000;

impl Plan {
    fn new(options: &Options, cores: usize) -> Self {
        let cores = cores.max(1) as u64;
        let (blocks, transfers_ns, jitter_ns, resamples) = if options.quick {
            (10, SECOND, (3 * SECOND / cores).min(SECOND), 2_000)
        } else {
            (60, 6 * SECOND, (20 * SECOND / cores).min(5 * SECOND), 10_000)
        };
        let jitter_ns = options.jitter.map_or(jitter_ns, |seconds| seconds * SECOND);
        Self { quick: options.quick, blocks, transfers_ns, jitter_ns, resamples }
    }
}

/// Measures, prints, and keeps the result where that was asked for.
///
/// # Errors
/// `BusyError` on a busy machine; a bench is running, a thread cannot be pinned, the clock drifts, or a file cannot be written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let exclusive = match options.jitter {
        Some(_) => Exclusive::lock()?,
        None => Exclusive::take(options.when_busy)?,
    };
    let calibration = clock::calibration();
    let cores = cpus::available();
    let plan = Plan::new(options, cores.len());
    // The first CPU serves most interrupts.
    let here = cores.last().copied().unwrap_or(0);
    let pinned = tt_os::cpu::pin(here);
    let before = Before::read(calibration);
    let throttle = tt_os::throttle::Throttle::read();

    let bootstrap = Bootstrap { resamples: plan.resamples, seed: SEED };
    let measured = match options.jitter {
        Some(_) => Measured::default(),
        None => measured::measure(calibration, &cores, &plan, &bootstrap)?,
    };
    let (alone, at_once) = spin(&cores, &plan, options)?;
    progress("");

    let mut environment = environment::record(calibration, &before, pinned.ok().map(|()| here), SEED);
    environment.build = options.build.clone();
    environment.machine.cores = cores.len();
    exclusive.record(&mut environment);
    environment.not_measured = warnings::not_measured(&measured, &alone, options);
    let result = FloorResult {
        truetick: "floor",
        quick: options.quick,
        resamples: plan.resamples,
        warnings: warnings::warnings(&environment, &throttle, &measured.transfers),
        environment,
        clocks: measured.clocks,
        transfers: measured.transfers,
        costs: measured.costs,
        latencies: measured.latencies,
        jitter: alone
            .iter()
            .map(|jitter| jitter::row(jitter, false))
            .chain(at_once.iter().map(|jitter| jitter::row(jitter, true)))
            .collect(),
    };
    if let Some(folder) = &options.out {
        keep(folder, &result, &alone, &at_once)?;
    }
    let mut stdout = io::stdout().lock();
    let written = if options.json { result.write_json(&mut stdout) } else { result.write_text(&mut stdout) };
    stdout::ignore_broken_pipe(written.context("cannot print"))?;
    let drift = result.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    Ok(())
}

/// Spins on each core by itself, then on all at once where that was asked for.
fn spin(cores: &[usize], plan: &Plan, options: &Options) -> anyhow::Result<(Vec<Jitter>, Vec<Jitter>)> {
    let calibration = clock::calibration();
    let plan = crate::machine::JitterPlan {
        span_ns: plan.jitter_ns,
        threshold_ns: options.threshold_ns,
        stalls_max: STALLS_MAX,
    };
    let spin = |cpus: &[usize]| {
        crate::machine::spin(cpus, plan, calibration.clock, calibration.scale).with_context(|| {
            format!("cannot spin on CPU {}", cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
        })
    };
    let seconds = plan.span_ns / SECOND;
    let mut alone = Vec::new();
    for (index, cpu) in cores.iter().enumerate() {
        progress(&format!("jitter of core {cpu}, {}/{}, {seconds} s each", index + 1, cores.len()));
        alone.extend(spin(&[*cpu])?);
    }
    if !options.at_once {
        return Ok((alone, Vec::new()));
    }
    progress(&format!("jitter of all cores at once, {seconds} s"));
    Ok((alone, spin(cores)?))
}

fn keep(folder: &Path, result: &FloorResult, alone: &[Jitter], at_once: &[Jitter]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let write = |name: &str, fill: &dyn Fn(&mut BufWriter<File>) -> io::Result<()>| {
        let path = folder.join(name);
        let written = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            fill(&mut file)?;
            file.flush()
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    };
    write("floor.json", &|file| result.write_json(file))?;
    write("floor.csv", &|file| result.write_csv(file))?;
    write("stalls.csv", &|file| {
        writeln!(file, "cpu,at_once,at_ns,length_ns,cause")?;
        for (jitter, at_once) in alone.iter().map(|jitter| (jitter, false)).chain(at_once.iter().map(|j| (j, true))) {
            for stall in &jitter.stalls {
                let (at_ns, length_ns, cause) = (stall.at_ns, stall.length_ns, stall.cause.name());
                writeln!(file, "{},{at_once},{at_ns},{length_ns},{cause}", stall.cpu)?;
            }
        }
        Ok(())
    })?;
    eprintln!("floor.json, floor.csv and stalls.csv: {}", folder.display());
    Ok(())
}
