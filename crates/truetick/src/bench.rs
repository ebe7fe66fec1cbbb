//! `truetick bench`: every published figure, measured on this machine.

use std::path::PathBuf;

use ::bench::report::Build;
use ::bench::{Destination, Programs, Selection, WhenBusy, count, ring, verify};
use anyhow::ensure;
use clap::ValueEnum;

use crate::results;

/// Flags of `truetick bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rows to measure; `all` leaves the gate's out, which take minutes; `count` counts the instructions of one
    /// operation per row instead of time; `verify` says whether results in JSON can be kept, and measures nothing
    #[arg(value_enum, default_value_t = What::All)]
    what: What,

    /// With `verify`: why.json, floor.json, ring.json or summary.json
    #[arg(value_name = "FILE", required_if_eq("what", "verify"))]
    files: Vec<PathBuf>,

    /// Fewer samples, at most two minutes; the result is labelled quick
    #[arg(long)]
    quick: bool,

    /// Measure on a busy machine, too; the result is labelled forced. Without it: status 3
    #[arg(long)]
    force: bool,

    /// Only rows whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    row: Option<String>,

    /// Folder for samples, summary.json and report.html [default: target/bench/DATE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write every sample that was timed by itself: `row,iteration,ns,block`; with `ring`, of every loop:
    /// `loop,run,iteration,cycles,ns,class`
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,

    /// With `count`: fail if a count exceeds the one in DIR for this CPU class by more than 3 %
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,

    /// With `count`: write the counts of this CPU class into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    write: Option<PathBuf>,

    #[command(flatten)]
    ring: RingArgs,

    /// Run one row for a tracer: the child of `count`
    #[arg(long, hide = true, requires = "iterations")]
    traced_row: Option<String>,

    /// Operations of the traced row
    #[arg(long, hide = true)]
    iterations: Option<u64>,

    /// Echo the messages of one WebSocket: the child of `market` that its streams are compared with
    #[arg(long, hide = true)]
    echo: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    All,
    Turn,
    Ring,
    Gate,
    Market,
    Count,
    Verify,
}

/// Flags of `bench ring` without `--row`.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "With `ring`, without --row")]
struct RingArgs {
    /// Recorded events of the one-in-flight loop, all runs together [default: 1000000, 100000 with --quick]
    #[arg(long, value_name = "N")]
    events: Option<usize>,

    /// Slots of the ring, rounded up to a power of two
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    slots: usize,

    /// Events before the recorded ones, in each run
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    warmup: usize,

    /// Events per second of an open loop; may repeat [default: 100000, 1000000 and 5000000]
    #[arg(long, value_name = "PER_SECOND")]
    rate: Vec<u32>,

    /// CPUs of the producer and the consumer [default: the first and the last available]
    #[arg(long, value_name = "A,B", value_parser = ::bench::cpu_pair)]
    cpus: Option<[usize; 2]>,

    /// Also measure the steps from a naive ring to the shipped one: cumulative, and each left out of the final build
    #[arg(long)]
    ablation: bool,

    /// Also measure ring layouts that were slower than the shipped one
    #[arg(long)]
    layouts: bool,

    /// Write a chart of the ablation, SVG
    #[arg(long, value_name = "FILE", requires = "ablation")]
    plot: Option<PathBuf>,
}

/// Measures, prints the result, and writes its files.
///
/// # Errors
/// `BusyError` on a busy machine; another bench is running, an answer differs from the reference, a loop was compiled away, a count grew, or a file
/// cannot be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    if let (Some(row), Some(iterations)) = (&args.traced_row, args.iterations) {
        return count::run_traced(row, iterations);
    }
    if args.echo {
        return ::bench::echo::serve();
    }
    ensure!(args.files.is_empty() || matches!(args.what, What::Verify), "only `bench verify` takes files");
    let selection = match args.what {
        What::All => Selection::All,
        What::Turn => Selection::Turn,
        What::Market => Selection::Market,
        What::Gate => Selection::Gate,
        What::Ring if args.row.is_none() => return ring::run(&ring_options(args)),
        What::Ring => Selection::Ring,
        What::Count => {
            let Args { row, check, write, .. } = args;
            return count::run(&count::Options { row, check, write, build: build(), tracee });
        }
        What::Verify => return verify::run(&args.files),
    };
    let (row, quick, json, when_busy) = (args.row, args.quick, args.json, when_busy(args.force));
    let destination = Destination { out: args.out, results: results::folder(), csv: args.csv };
    let echo = || ["--log-level", "off", "bench", "--echo"].map(str::to_owned).to_vec();
    let programs = Programs { server, echo };
    let build = build();
    ::bench::run(&::bench::Options { selection, row, quick, json, destination, build, tracee, programs, when_busy })
}

fn ring_options(args: Args) -> ring::Options {
    let RingArgs { events, slots, warmup, rate: rates, cpus, ablation, layouts, plot } = args.ring;
    let (quick, json, build, when_busy) = (args.quick, args.json, build(), when_busy(args.force));
    let destination = Destination { out: args.out, results: results::folder(), csv: args.csv };
    ring::Options {
        quick,
        events,
        slots,
        warmup,
        rates,
        cpus,
        ablation,
        layouts,
        plot,
        json,
        destination,
        build,
        when_busy,
    }
}

/// Action on a busy machine.
pub(crate) const fn when_busy(is_forced: bool) -> WhenBusy {
    if is_forced { WhenBusy::Force } else { WhenBusy::Refuse }
}

/// Arguments that make this program run `row` for a tracer.
fn tracee(row: &str, iterations: u64) -> Vec<String> {
    let iterations = iterations.to_string();
    ["--log-level", "off", "bench", "--traced-row", row, "--iterations", &iterations].map(str::to_owned).to_vec()
}

/// Arguments that make this program serve a book of the simulator in `bench`.
fn server(venue: &str, symbol: &str, url: &str) -> Vec<String> {
    let arguments = ["--log-level", "off", "market", "--venue", venue, "--symbols", symbol, "--url", url];
    arguments.into_iter().chain(["--http", "127.0.0.1:0", "--json"]).map(str::to_owned).collect()
}

/// The build of this program, which its build script finds out.
pub(crate) fn build() -> Build {
    Build {
        rustc: env!("TRUETICK_RUSTC").to_owned(),
        profile: env!("TRUETICK_PROFILE").to_owned(),
        flags: env!("TRUETICK_FLAGS").to_owned(),
        commit: env!("TRUETICK_COMMIT").to_owned(),
        dirty: env!("TRUETICK_DIRTY") == "true",
    }
}
