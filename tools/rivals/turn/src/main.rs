//! One load generator against truetick, its rivals and the floor, one core each, side by side. See README.md.

#![forbid(unsafe_code)]

mod campaign;
mod client;
mod cycle;
mod drive;
mod echo;
mod environment;
mod face;
mod histogram;
mod payload;
mod prepare;
mod process;
mod record;
mod rivals;
mod rows;
mod spray;
mod stage;
mod stun;
mod summary;
mod traffic;
mod trial;
mod veth;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};

use bench::harness::exclusive::{Exclusive, WhenBusy, exit_code};
use bench::report::Look;
use campaign::{Campaign, Cores};
use rivals::{Contestant, Places};
use rows::Row;

/// TURN servers side by side: the same load, the same core, one after the other.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Option<Ask>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Ask {
    /// Builds what can be built: truetick, turn-server, pion
    Prepare,
    /// Prints the table of a file of runs again
    Summarise {
        /// A file that `--out` wrote
        file: PathBuf,
        /// As Markdown, for a document
        #[arg(long)]
        markdown: bool,
    },
    /// The floor: sends back what comes in
    #[command(hide = true)]
    Echo {
        /// Where it listens
        listen: SocketAddr,
    },
}

#[derive(Debug, clap::Args)]
struct Flags {
    /// Where generator and servers are: on loopback addresses, or as root in namespaces with veth devices between them,
    /// where truetick's kernel path and the smallest XDP program run, too
    #[arg(long, value_enum, default_value_t = Topology::Loopback)]
    topology: Topology,
    /// About two minutes: fewer rows, fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Measure on a busy machine, too; the file says that the run was forced. Without it, such a run is refused
    #[arg(long)]
    force: bool,
    /// Rows by name, or by the beginning of their names where no row has that one, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Servers by name, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    servers: Vec<String>,
    /// Runs of each row against each server [default: 10, quick 3]
    #[arg(long)]
    rounds: Option<u64>,
    /// Milliseconds of a run [default: 400, quick 250]
    #[arg(long)]
    run_ms: Option<u64>,
    /// Begin no round after so many seconds
    #[arg(long, default_value_t = 1_200)]
    seconds_max: u64,
    /// Leave out the pass that counts system calls
    #[arg(long)]
    no_calls: bool,
    /// Seed of payloads, of the order of the servers, and of the intervals
    #[arg(long, default_value_t = 8_656)]
    seed: u64,
    /// File that runs are appended to [default: a new one under the target folder]
    #[arg(long)]
    out: Option<PathBuf>,
    /// The truetick to measure [default: built from this workspace]
    #[arg(long)]
    truetick: Option<PathBuf>,
    /// Another coturn to measure, such as /opt/coturn/bin/turnserver: stock, tuned, and multiplexed where it can
    #[arg(long, value_name = "PATH")]
    coturn: Option<PathBuf>,
    /// Take what was built before as it is
    #[arg(long)]
    no_build: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Topology {
    Loopback,
    Veth,
}

fn main() -> ExitCode {
    exit_code(run(Cli::parse()))
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Ask::Echo { listen }) => echo::serve(listen),
        Some(Ask::Prepare) => prepare::build(&places(&cli.flags)?),
        Some(Ask::Summarise { file, markdown }) => {
            if cli.flags.topology == Topology::Veth {
                veth::print(&record::Runs::read(&file)?, cli.flags.seed);
                return Ok(());
            }
            let look = if markdown { Look::Markdown } else { Look::Terminal };
            summary::print(&record::Runs::read(&file)?, cli.flags.seed, look);
            Ok(())
        }
        None => measure(&cli.flags),
    }
}

fn measure(flags: &Flags) -> anyhow::Result<()> {
    let places = places(flags)?;
    let lock = Exclusive::take(if flags.force { WhenBusy::Force } else { WhenBusy::Refuse })?;
    if !flags.no_build {
        prepare::build(&places)?;
    }
    let out = flags.out.clone().unwrap_or_else(|| places.built.join(format!("runs-{}.csv", std::process::id())));
    if flags.topology == Topology::Veth {
        return measure_veth(flags, &places, out, lock.note());
    }
    let (rounds, run_ms, memory_rounds) = if flags.quick { (3, 250, 1) } else { (10, 400, 3) };
    let campaign = Campaign {
        rows: chosen_rows(flags)?,
        contestants: chosen_servers(flags)?,
        rounds: flags.rounds.unwrap_or(rounds),
        duration: Duration::from_millis(flags.run_ms.unwrap_or(run_ms)),
        counts_calls: !flags.no_calls,
        memory_rounds,
        time_max: Duration::from_secs(flags.seconds_max),
        seed: flags.seed,
        out,
        forced: lock.note(),
    };
    campaign::run(&campaign, &places, Cores::choose())?;
    println!("\nruns: {}", campaign.out.display());
    summary::print(&record::Runs::read(&campaign.out)?, flags.seed, Look::Terminal);
    Ok(())
}

fn measure_veth(flags: &Flags, places: &Places, out: PathBuf, forced: Option<String>) -> anyhow::Result<()> {
    let (rounds, run_ms) = if flags.quick { (3, 250) } else { (10, 400) };
    let plan = veth::Plan {
        rounds: flags.rounds.unwrap_or(rounds),
        duration: Duration::from_millis(flags.run_ms.unwrap_or(run_ms)),
        is_quick: flags.quick,
        seed: flags.seed,
        out,
        time_max: Duration::from_secs(flags.seconds_max),
        forced,
    };
    veth::run(&plan, places, Cores::choose())?;
    println!("\nruns: {}", plan.out.display());
    veth::print(&record::Runs::read(&plan.out)?, flags.seed);
    Ok(())
}

fn places(flags: &Flags) -> anyhow::Result<Places> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize()?;
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent).context("this program lies in no target folder")?;
    let built = target.join("turn-relay");
    std::fs::create_dir_all(&built)?;
    let truetick = flags.truetick.clone().unwrap_or_else(|| built.join("workspace/release/truetick"));
    Ok(Places { port: rivals::free_port()?, root, built, truetick, coturn: flags.coturn.clone() })
}

fn chosen_rows(flags: &Flags) -> anyhow::Result<Vec<Row>> {
    let mut rows = rows::all();
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let mut chosen = Vec::new();
    for wanted in &flags.rows {
        let is_a_row = names.contains(wanted);
        let before = chosen.len();
        chosen.extend(names.iter().filter(|name| if is_a_row { *name == wanted } else { name.starts_with(wanted) }));
        ensure!(chosen.len() > before, "there is no row {wanted}");
    }
    let is_due = |row: &Row| !row.work.is_on_demand() && (row.is_quick || !flags.quick);
    rows.retain(|row| if flags.rows.is_empty() { is_due(row) } else { chosen.contains(&&row.name) });
    Ok(rows)
}

fn chosen_servers(flags: &Flags) -> anyhow::Result<Vec<Contestant>> {
    let names = &flags.servers;
    if names.is_empty() {
        let is_default = |one: &Contestant| (flags.coturn.is_some() || !one.is_other()) && !one.is_one_socket();
        return Ok(rivals::ALL.into_iter().filter(is_default).collect());
    }
    let named = |name: &String| Contestant::of_name(name).with_context(|| format!("there is no server {name}"));
    names.iter().map(named).collect()
}
