//! Compares queues between two threads with truetick's ring, and the gate with an early-out gate. See README.md.

#![forbid(unsafe_code)]

mod campaign;
mod distribution;
mod early_out;
mod ends;
mod flow;
mod hand_over;
mod judging;
mod lines;
mod orders;
mod pace;
mod queues;
mod record;
mod rows;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bench::harness::exclusive::{Exclusive, WhenBusy, exit_code};
use bench::harness::notes::Stamp;
use bench::report::{Look, Runs};
use clap::{Parser, Subcommand};

use campaign::Campaign;
use queues::Queue;
use rows::Row;

/// Queues side by side: the same event, the same two cores, one after the other.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Option<Ask>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Ask {
    /// Prints the tables of a file of runs again
    Summarise {
        /// A file that `--out` wrote
        file: PathBuf,
        /// As Markdown, for a document
        #[arg(long)]
        markdown: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Flags {
    /// A look in about half a minute: fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Rows by name or by the beginning of their names, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Measure on a busy machine, too; the file says that the run was forced. Without it, such a run is refused
    #[arg(long)]
    force: bool,
    /// Queues by name, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    queues: Vec<String>,
    /// Runs of each row by each contestant [default: 60, quick 5]
    #[arg(long)]
    rounds: Option<u64>,
    /// Milliseconds of a run between two cores [default: 80, quick 60]
    #[arg(long)]
    run_ms: Option<u64>,
    /// Begin no round after so many seconds
    #[arg(long, default_value_t = 1_200)]
    seconds_max: u64,
    /// Seed of the order of the contestants and of the intervals
    #[arg(long, default_value_t = 64)]
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
        None => measure(&cli.flags),
    }
}

fn measure(flags: &Flags) -> anyhow::Result<()> {
    let lock = Exclusive::take(if flags.force { WhenBusy::Force } else { WhenBusy::Refuse })?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let stamp = Stamp::now(&root);
    let available = tt_os::cpu::available()?;
    let &[first, .., last] = available.as_slice() else { bail!("two CPUs are needed") };
    let own = std::env::current_exe()?;
    let folder = own.parent().context("this program lies in no folder")?;
    let (rounds, run_ms) = if flags.quick { (5, 60) } else { (60, 80) };
    let campaign = Campaign {
        rows: chosen_rows(&flags.rows)?,
        queues: chosen_queues(&flags.queues)?,
        rounds: flags.rounds.unwrap_or(rounds),
        run_ms: flags.run_ms.unwrap_or(run_ms),
        time_max: Duration::from_secs(flags.seconds_max),
        seed: flags.seed,
        out: flags.out.clone().unwrap_or_else(|| folder.join(format!("runs-{}.csv", std::process::id()))),
        cpus: [first, last],
        forced: lock.note(),
    };
    campaign::run(&campaign, &stamp, tt_os::clock::calibration())?;
    println!("\nruns: {}", campaign.out.display());
    summary::print(&Runs::read(&campaign.out)?, flags.seed, Look::Terminal)
}

fn chosen_rows(names: &[String]) -> anyhow::Result<Vec<Row>> {
    let mut chosen = Vec::new();
    for wanted in names {
        let before = chosen.len();
        chosen.extend(rows::ALL.into_iter().filter(|row| row.name.starts_with(wanted.as_str())));
        ensure!(chosen.len() > before, "there is no row {wanted}");
    }
    Ok(if names.is_empty() { rows::ALL.to_vec() } else { chosen })
}

fn chosen_queues(names: &[String]) -> anyhow::Result<Vec<Queue>> {
    if names.is_empty() {
        return Ok(queues::ALL.to_vec());
    }
    let named = |name: &String| Queue::of_name(name).with_context(|| format!("there is no queue {name}"));
    names.iter().map(named).collect()
}
