//! Compares order books and tickers of other projects with truetick's, on the same frames. See README.md.

#![forbid(unsafe_code)]

mod books;
mod counting;
mod gauge;
mod input;
mod kraken;
mod rows;
mod summary;
mod tickers;
mod truetick;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bench::harness::exclusive::{Exclusive, WhenBusy, exit_code};
use bench::harness::notes::Stamp;
use bench::harness::random::shuffled;
use bench::report::{Look, Runs};
use clap::{Parser, Subcommand};
use tt_model::SplitMix64;
use tt_os::readings::Readings;

use gauge::Gauge;
use input::Extent;
use rows::{CONTESTANTS, Contestant, Field, Row};
use summary::COLUMNS;

/// Market engines side by side: the same frames, one core, one after the other.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Option<Ask>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Ask {
    /// Prints the table of a file of runs again
    Summarise {
        /// A file that `--out` wrote
        file: PathBuf,
        /// As Markdown, for a document
        #[arg(long)]
        markdown: bool,
    },
    /// Counts the instructions of each row by each contestant, which are the same whatever the neighbours do
    Count {
        /// Rows by name, separated by commas [default: all]
        #[arg(long, value_delimiter = ',')]
        rows: Vec<String>,
        /// File to append counts to [default: a new one in the folder of this program]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// A few operations of one row, with a stop before and after them, for `count`
    #[command(hide = true)]
    Traced { row: String, contestant: String, seed: u64 },
}

#[derive(Debug, clap::Args)]
struct Flags {
    /// Three rounds instead of 30
    #[arg(long)]
    quick: bool,
    /// Measure on a busy machine, too; the file says that the run was forced. Without it, such a run is refused
    #[arg(long)]
    force: bool,
    /// Rows by name, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Runs of each row by each contestant [default: 30, quick 3]
    #[arg(long)]
    rounds: Option<u64>,
    /// Begin no round after so many seconds
    #[arg(long, default_value_t = 1_200)]
    seconds_max: u64,
    /// Seed of the order of the contestants, of the tickers and of the intervals
    #[arg(long, default_value_t = 310)]
    seed: u64,
    /// File to append runs to [default: a new one in the folder of this program]
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit_code(run(Cli::parse()))
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Ask::Summarise { file, markdown }) => {
            let look = if markdown { Look::Markdown } else { Look::Terminal };
            ensure!(file.exists(), "there is no file {}", file.display());
            summary::print(&Runs::read(&file)?, cli.flags.seed, look)
        }
        Some(Ask::Count { rows, out }) => {
            let out = out.map_or_else(|| new_file("counts"), Ok)?;
            counting::run(&chosen_rows(&rows)?, cli.flags.seed, &stamp(), &out)
        }
        Some(Ask::Traced { row, contestant, seed }) => {
            let row = chosen_rows(&[row])?[0];
            let named = CONTESTANTS.into_iter().find(|it| it.name() == contestant);
            counting::traced(&row, named.with_context(|| format!("there is no contestant {contestant}"))?, seed)
        }
        None => measure(&cli.flags),
    }
}

fn stamp() -> Stamp {
    Stamp::now(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."))
}

/// A new file in the folder of this program.
fn new_file(what: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("this program lies in no folder")?;
    Ok(folder.join(format!("{what}-{}.csv", std::process::id())))
}

fn measure(flags: &Flags) -> anyhow::Result<()> {
    let lock = Exclusive::take(if flags.force { WhenBusy::Force } else { WhenBusy::Refuse })?;
    let stamp = stamp();
    let out = flags.out.clone().map_or_else(|| new_file("runs"), Ok)?;
    let rounds = flags.rounds.unwrap_or(if flags.quick { 3 } else { 30 });
    let rows = chosen_rows(&flags.rows)?;
    let cpu = *tt_os::cpu::available()?.last().context("no CPU")?;
    tt_os::cpu::pin(cpu).with_context(|| format!("cannot use CPU {cpu}"))?;
    let calibration = tt_os::clock::calibration();
    let mut field = Field::new(flags.seed, Extent::TIMED)?;
    let gauge = Gauge::Clock(*calibration);

    let mut notes = bench::harness::notes::notes(&stamp, calibration, flags.seed);
    notes.extend(lock.note());
    notes.push(format!("on CPU {cpu}; {rounds} rounds, contestants in a new random order for each row and round"));
    notes.extend(field.notes());
    notes.extend(CONTESTANTS.iter().map(|contestant| format!("{}: {}", contestant.name(), contestant.what())));
    notes.extend(rows.iter().map(|row| format!("row {}: {}", row.name, row.what)));
    notes.push("not measured: hardware counters, cold caches, energy".into());
    Runs::append(&out, &notes, &COLUMNS, &[])?;

    let first = Runs::read(&out)?.next_round();
    let mut order = SplitMix64::new(flags.seed ^ first << 32);
    let (began, time_max) = (Instant::now(), Duration::from_secs(flags.seconds_max));
    for number in 0..rounds {
        if began.elapsed() > time_max {
            println!("the time is up after {number} rounds");
            break;
        }
        let mut runs = Vec::new();
        for row in shuffled(&mut order, &rows) {
            let contestants: Vec<Contestant> =
                CONTESTANTS.into_iter().filter(|contestant| contestant.takes_part(row.work)).collect();
            for contestant in shuffled(&mut order, &contestants) {
                let before = Readings::take();
                let timing = field.run(row.work, contestant, &gauge);
                let (steal_pct, _) = bench::harness::notes::steal(&before);
                runs.push(summary::line(&stamp, &row, contestant, first + number, &timing, steal_pct));
            }
        }
        Runs::append(&out, &[], &COLUMNS, &runs)?;
        println!("round {} of {rounds} after {:.0} s", number + 1, began.elapsed().as_secs_f64());
    }
    println!("\nruns: {}", out.display());
    summary::print(&Runs::read(&out)?, flags.seed, Look::Terminal)
}

fn chosen_rows(names: &[String]) -> anyhow::Result<Vec<Row>> {
    let named = |name: &String| {
        rows::ALL.into_iter().find(|row| row.name == name).with_context(|| format!("there is no row {name}"))
    };
    if names.is_empty() { Ok(rows::ALL.to_vec()) } else { names.iter().map(named).collect() }
}
