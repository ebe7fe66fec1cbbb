//! Measures the decomposition of the ring's median that BENCHMARKING.md registers.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::WhenBusy;
use bench::decomposition::{Options, ProcessPlan, run, run_process};
use clap::Parser;

/// How much of the ring's median each of its terms takes: added, left out and delayed, in fresh processes.
#[derive(Debug, Parser)]
struct Cli {
    /// File for the result, JSON
    #[arg(long, required_unless_present = "process")]
    out: Option<PathBuf>,
    /// CPUs of the producer and the consumer [default: the first and the last available]
    #[arg(long, value_name = "A,B", value_parser = bench::cpu_pair)]
    cpus: Option<[usize; 2]>,
    /// Fewer processes and rounds; the result is labelled quick, and is no kept one
    #[arg(long)]
    quick: bool,
    /// Measure on a busy machine, too; the result says that it was forced
    #[arg(long)]
    force: bool,
    /// One process of a run: its number, two CPUs, rounds, events before those that count, events
    #[arg(long, hide = true, num_args = 6)]
    process: Option<Vec<usize>>,
}

fn main() -> ExitCode {
    bench::exit_code(perform(Cli::parse()))
}

fn perform(cli: Cli) -> anyhow::Result<()> {
    let Cli { out, cpus, quick, force, process } = cli;
    if let Some([number, sender, receiver, rounds, warmup, events]) = process.as_deref() {
        let plan = ProcessPlan { cpus: [*sender, *receiver], rounds: *rounds, events: (*warmup, *events) };
        return run_process(*number as u64, &plan);
    }
    let when_busy = if force { WhenBusy::Force } else { WhenBusy::Refuse };
    run(&Options { quick, cpus, out: out.unwrap_or_default(), when_busy })
}
