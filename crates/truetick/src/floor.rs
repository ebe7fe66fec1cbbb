//! `truetick floor`: the latency floor of this machine.

use std::path::PathBuf;

use ::bench::floor;

use crate::bench::{build, when_busy};

/// Flags of `truetick floor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fewer samples, at most 10 s, without the latency curve; the result is labelled quick
    #[arg(long)]
    quick: bool,

    /// Measure on a busy machine, too; the result is labelled forced. Without it: status 3, but not with --jitter
    #[arg(long)]
    force: bool,

    /// Report only scheduling stalls, observed for this long on each core
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    jitter: Option<u64>,

    /// After each core alone, spin on all cores at once
    #[arg(long)]
    at_once: bool,

    /// Shortest gap that counts as a stall
    #[arg(long, value_name = "NS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(200..))]
    threshold_ns: u64,

    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Folder for floor.json, floor.csv and stalls.csv
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Measures, prints the result, and writes its files.
///
/// # Errors
/// `BusyError` on a busy machine; another bench is running, a thread cannot be pinned, the clock drifts, or a file cannot be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    let Args { quick, force, jitter, at_once, threshold_ns, json, out } = args;
    let (build, when_busy) = (build(), when_busy(force));
    floor::run(&floor::Options { quick, jitter, at_once, threshold_ns, json, out, build, when_busy })
}
