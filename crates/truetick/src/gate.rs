//! `truetick gate`: limits files, the gate's journal, and control of a running gate.

mod journal;
mod limits;
#[cfg(feature = "market")]
mod rehearsal;
mod remote;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

/// Subcommands of `truetick gate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a limits file and print what it means
    Check(Check),
    /// Compare two limits files: what loosens, what tightens, who is beyond the new limits
    Diff(Diff),
    /// Replace the limits of a running gate by those of a file
    Load(Load),
    /// Stop all orders of a scope in a running gate; cancels pass
    Kill(Scope),
    /// Let only orders pass that reduce a position
    Reduce(Scope),
    /// Let the orders of a scope pass again
    Resume(Scope),
    /// Cancel every open order of a scope, whoever has sent it, and wait until the venue has ended them
    Cancel(Cancel),
    /// Judge intents against a recorded market: marks, proofs and rates of its books, and the record behind each refusal
    #[cfg(feature = "market")]
    Rehearse(rehearsal::Args),
    /// Perform a journal again and compare every answer bit by bit
    Replay(Journal),
    /// Write a snapshot of a journal, so that the next start performs only the records behind it; a gate may be running
    Snapshot(Journal),
    /// Say in plain words why a verdict was given: exposure, mark and limits at its time
    Explain(Explain),
    /// Print a journal as CSV
    Export(Journal),
}

/// A limits file.
#[derive(Debug, clap::Args)]
struct Check {
    /// Limits file, format 1 or 2
    #[arg(value_name = "FILE")]
    limits: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Two limits files.
#[derive(Debug, clap::Args)]
struct Diff {
    /// Limits file in force
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Limits file to compare with it
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Folder of a gate's journal: also list the accounts whose positions and orders there are beyond the new limits
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A running gate.
#[derive(Debug, clap::Args)]
struct Gate {
    /// Address of the page and the JSON API of the running gate
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9641")]
    url: String,
    /// File with the API token (api_token_file in [http] there)
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

/// What a mode is for.
#[derive(Debug, clap::Args)]
struct Scope {
    /// global, account:NAME, strategy:NAME or instrument:SYMBOL; a number is a name too
    #[arg(value_name = "SCOPE")]
    scope: String,
    #[command(flatten)]
    gate: Gate,
}

/// Orders to cancel.
#[derive(Debug, clap::Args)]
struct Cancel {
    #[command(flatten)]
    scope: Scope,
    /// Longest wait for the venue, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u32,
}

#[derive(Debug, clap::Args)]
struct Load {
    /// Limits file, format 2, whose version is the next one
    #[arg(value_name = "FILE")]
    limits: PathBuf,
    #[command(flatten)]
    gate: Gate,
}

/// A journal.
#[derive(Debug, clap::Args)]
struct Journal {
    /// Folder of the journal
    #[arg(value_name = "DIR")]
    journal: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Explain {
    /// Number of the verdict, `seq` in the rows of `truetick risk`
    #[arg(value_name = "N")]
    verdict: u64,
    /// Folder of the journal
    #[arg(long, value_name = "DIR")]
    journal: PathBuf,
}

/// Runs the subcommand.
///
/// # Errors
/// A limits file that is refused, a journal that is broken or of another version, a running gate that cannot be reached or
/// refuses, or a standard output that is gone.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Check(args) => limits::check(&args.limits, args.json),
        Command::Diff(args) => limits::diff(&args.old, &args.new, args.journal.as_deref(), args.json),
        Command::Load(args) => remote::load(&args.limits, &args.gate),
        Command::Kill(args) => remote::set_mode("kill", args),
        Command::Reduce(args) => remote::set_mode("reduce", args),
        Command::Resume(args) => remote::set_mode("active", args),
        Command::Cancel(args) => remote::cancel(&args.scope, args.wait),
        #[cfg(feature = "market")]
        Command::Rehearse(args) => rehearsal::run(args).map(|()| ExitCode::SUCCESS),
        Command::Replay(args) => journal::replay(&args.journal),
        Command::Snapshot(args) => journal::snapshot(&args.journal),
        Command::Explain(args) => journal::explain(&args.journal, args.verdict),
        Command::Export(args) => journal::export(&args.journal),
    }
}
