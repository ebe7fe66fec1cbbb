//! `truetick why`: how much of the latency between two cores is the machine's.

use std::path::PathBuf;

use ::bench::Destination;

use crate::bench::{build, when_busy};
use crate::results;

/// Flags of `truetick why`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fewer events, about ten seconds; the result is labelled quick
    #[arg(long)]
    quick: bool,

    /// Measure on a busy machine, too; the result is labelled forced. Without it: status 3
    #[arg(long)]
    force: bool,

    /// CPUs of the producer and the consumer [default: the first and the last available]
    #[arg(long, value_name = "A,B", value_parser = ::bench::cpu_pair)]
    cpus: Option<[usize; 2]>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// Folder for why.html, why.svg and why.json [default: target/bench/DATE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Measures, prints the answer, and writes its files.
///
/// # Errors
/// Those of [`::bench::why::run`].
pub fn run(args: Args) -> anyhow::Result<()> {
    let Args { quick, force, cpus, json, out } = args;
    let destination = Destination { out, results: results::folder(), csv: None };
    let (build, when_busy) = (build(), when_busy(force));
    ::bench::why::run(&::bench::why::Options { quick, cpus, json, destination, build, when_busy })
}
