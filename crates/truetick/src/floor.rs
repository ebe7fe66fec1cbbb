//! `truetick floor`: what this machine can do, and what keeps a thread on it from running.

mod jitter;
mod measured;
mod warnings;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tt_floor::Jitter;
use tt_report::Bootstrap;
use tt_report::floor::FloorResult;

use crate::bench::environment::{self, Before};
use crate::bench::exclusive::Exclusive;
use crate::bench::runner::{cpus, progress};
use crate::clock;
use crate::config::Config;
use crate::output;
use measured::Measured;

/// Flags of `truetick floor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fewer blocks, shorter looks, no curve: done within ten seconds; labelled so wherever it is printed
    #[arg(long)]
    quick: bool,

    /// Spin on each core for so long and tell what kept it from spinning; nothing else is measured
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    jitter: Option<u64>,

    /// Spin on all cores at once, too, after one after the other
    #[arg(long)]
    at_once: bool,

    /// Gaps longer than this are stalls
    #[arg(long, value_name = "NS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(200..))]
    threshold_ns: u64,

    /// Print the result as JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Folder for floor.json, floor.csv and stalls.csv
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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
    fn new(args: &Args, cores: usize) -> Self {
        let cores = cores.max(1) as u64;
        let (blocks, transfers_ns, jitter_ns, resamples) = if args.quick {
            (10, SECOND, (3 * SECOND / cores).min(SECOND), 2_000)
        } else {
            (60, 6 * SECOND, (20 * SECOND / cores).min(5 * SECOND), 10_000)
        };
        let jitter_ns = args.jitter.map_or(jitter_ns, |seconds| seconds * SECOND);
        Self { quick: args.quick, blocks, transfers_ns, jitter_ns, resamples }
    }
}

/// Measures, prints, and keeps the result where that was asked for.
///
/// # Errors
/// A bench is running, a thread cannot be pinned, the clock drifts, or a file cannot be written.
pub fn run(args: Args, _config: &Config) -> anyhow::Result<()> {
    let exclusive = Exclusive::take()?;
    let calibration = clock::calibration();
    let cores = cpus();
    let plan = Plan::new(&args, cores.len());
    // The first CPU serves most interrupts.
    let here = cores.last().copied().unwrap_or(0);
    let pinned = tt_os::cpu::pin(here);
    let before = Before::read(calibration);
    let throttle = tt_os::throttle::Throttle::read();

    let bootstrap = Bootstrap { resamples: plan.resamples, seed: SEED };
    let measured = match args.jitter {
        Some(_) => Measured::default(),
        None => measured::measure(calibration, &cores, &plan, &bootstrap)?,
    };
    let (alone, at_once) = spin(&cores, &plan, &args)?;
    progress("");

    let mut environment = environment::record(calibration, &before, pinned.ok().map(|()| here), SEED);
    environment.machine.cores = cores.len();
    environment.disturbance.load_before = exclusive.load;
    environment.not_measured = warnings::not_measured(&measured, &alone, &args);
    let result = FloorResult {
        truetick: "floor",
        quick: args.quick,
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
    if let Some(folder) = &args.out {
        keep(folder, &result, &alone, &at_once)?;
    }
    let mut stdout = io::stdout().lock();
    let written = if args.json { result.write_json(&mut stdout) } else { result.write_text(&mut stdout) };
    output::unless_unread(written.context("cannot print"))?;
    let drift = result.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    Ok(())
}

/// Spins on each core by itself, then on all at once where that was asked for.
fn spin(cores: &[usize], plan: &Plan, args: &Args) -> anyhow::Result<(Vec<Jitter>, Vec<Jitter>)> {
    let calibration = clock::calibration();
    let plan =
        tt_floor::JitterPlan { span_ns: plan.jitter_ns, threshold_ns: args.threshold_ns, stalls_max: STALLS_MAX };
    let spin = |cpus: &[usize]| {
        tt_floor::spin(cpus, plan, calibration.clock, calibration.scale).with_context(|| {
            format!("cannot spin on CPU {}", cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
        })
    };
    let seconds = plan.span_ns / SECOND;
    let mut alone = Vec::new();
    for (index, cpu) in cores.iter().enumerate() {
        progress(&format!("jitter of core {cpu}, {}/{}, {seconds} s each", index + 1, cores.len()));
        alone.extend(spin(&[*cpu])?);
    }
    if !args.at_once {
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
