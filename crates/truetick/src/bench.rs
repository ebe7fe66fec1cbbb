//! `truetick bench`: every published row, measured on this machine.
//!
//! A row is an `operation`: a shipped function, inputs that vary, and the answer that a reference expects. The
//! `runner` times all rows in turn, block by block, so that what disturbs the machine disturbs all of them alike;
//! `tt-report` makes intervals, table, CSV and `summary.json` of it. `count` counts instructions instead of time.

mod count;
mod displaced;
pub(crate) mod environment;
pub(crate) mod exclusive;
mod figures;
mod market;
mod operation;
mod plan;
mod registry;
mod ring;
pub(crate) mod runner;
mod turn;

use std::path::PathBuf;

use clap::ValueEnum;

use crate::config::Config;
use plan::Plan;
use runner::Kept;
pub(crate) use runner::{REPORT_FILE, results_folder};

/// Flags of `truetick bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which rows, or `count`: instructions of one operation each, without any clock
    #[arg(value_enum, default_value_t = What::All)]
    what: What,

    /// Fewer samples, done within two minutes; labelled so wherever it is printed
    #[arg(long)]
    quick: bool,

    /// Only rows whose name contains this text
    #[arg(long, value_name = "TEXT")]
    row: Option<String>,

    /// Folder for the raw samples, summary.json and report.html; by default target/bench/DATE
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Every sample of what was timed one by one: `row,iteration,ns,block`; with `ring`, of every loop:
    /// `loop,run,iteration,cycles,ns,class`
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,

    /// With `count`: compare with the file of this CPU class in DIR, and fail where a count grew by more than 3 %
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,

    /// With `count`: write the file of this CPU class into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    write: Option<PathBuf>,

    #[command(flatten)]
    ring: ring::Flags,

    /// Run one row for a tracer: the child of `count`
    #[arg(long, hide = true, requires = "iterations")]
    traced_row: Option<String>,

    /// Operations of the traced row
    #[arg(long, hide = true)]
    iterations: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    All,
    Turn,
    Ring,
    Market,
    Count,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Turn => "turn",
            Self::Ring => "ring",
            Self::Market => "market",
            Self::Count => "count",
        }
    }

    /// The market's rows are many, so each has shorter blocks: all of them together are done within three minutes.
    const fn plan(self, quick: bool) -> Plan {
        let plan = Plan::new(quick);
        match (self, quick) {
            (Self::Market, false) => Plan { block_ns: 20_000_000, warmup_ns: 300_000_000, ..plan },
            (Self::All | Self::Turn | Self::Ring | Self::Market | Self::Count, _) => plan,
        }
    }

    fn includes(self, engine: &str) -> bool {
        matches!(self, Self::All | Self::Count) || self.name() == engine
    }
}

/// Measures, prints, and keeps the samples.
///
/// # Errors
/// Another bench is running, an answer is not the expected one, a loop was compiled away, a count grew, or a file
/// cannot be written.
pub fn run(args: Args, _config: &Config) -> anyhow::Result<()> {
    if let (Some(row), Some(iterations)) = (&args.traced_row, args.iterations) {
        return count::traced(row, iterations);
    }
    if args.what == What::Ring && args.row.is_none() {
        return ring::run(&args.ring, args.quick, Kept { out: args.out, csv: args.csv }, args.json);
    }
    let entries = registry::select(args.what, args.row.as_deref())?;
    if args.what == What::Count {
        return count::run(&entries, args.check.as_deref(), args.write.as_deref());
    }
    let kept = Kept { out: args.out, csv: args.csv };
    runner::run(&entries, args.what.name(), &args.what.plan(args.quick), kept, args.json)
}
