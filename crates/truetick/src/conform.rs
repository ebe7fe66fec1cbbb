//! `truetick conform`: a server judged from outside by RFC 8489 and RFC 8656.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use tt_os::progress::ProgressLine;
use tt_os::{shutdown, stdout};
use turn_check::{ConformOptions, Conformance, Scoreboard, Target, checks};

use crate::login::{self, LoginArgs};

/// Exit status if the server was not reached.
const STATUS_NOT_REACHED: u8 = 2;
/// Exit status if the judgement was interrupted.
const STATUS_INCOMPLETE: u8 = 3;

/// Flags of `truetick conform`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// turn:HOST[:PORT] (UDP, TCP, and TLS at 5349), turn:HOST[:PORT]?transport=udp|tcp, or turns:HOST[:PORT]
    #[arg(value_name = "URI", required_unless_present = "list")]
    target: Option<Target>,
    #[command(flatten)]
    login: LoginArgs,
    /// File with NAME:PASSWORD of another user, readable by its owner only [default with --secret-file: one is made]
    #[arg(long, value_name = "F")]
    other_user_file: Option<PathBuf>,
    /// Send malformed messages and a small flood, too; only at servers that are yours
    #[arg(long)]
    hostile: bool,
    /// Ids of requirements, separated by commas [default: all]
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = id)]
    only: Vec<String>,
    /// List the checks and judge nothing
    #[arg(long)]
    list: bool,
    /// Form of the scoreboard
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "json")]
    format: Format,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A form of the scoreboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each check as it ends, and the numbers
    Text,
    /// A table for a document
    Markdown,
}

/// Accepts the id of a check.
fn id(text: &str) -> Result<String, String> {
    let is_known = checks().any(|check| check.id.eq_ignore_ascii_case(text));
    if is_known { Ok(text.to_owned()) } else { Err("no check has this id; --list prints them".to_owned()) }
}

/// Judges the server, and returns the exit status: 0 if nothing failed, 1 if something did, 2 if the server was not
/// reached, 3 if the judgement was interrupted.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(target) = args.target.as_ref().filter(|_| !args.list) else {
        stdout::ignore_broken_pipe(stdout::print(&list(args.json)?).map_err(Into::into))?;
        return Ok(ExitCode::SUCCESS);
    };
    let other = args.other_user_file.as_deref();
    let other_login = match other {
        Some(file) => Some(login::of_user_file(file, "conform", "--other-user-file")?),
        None => args.login.other_login("conform")?,
    };
    let options = ConformOptions {
        login: args.login.login("conform")?,
        other_login,
        roots: Arc::new(args.login.roots("conform")?),
        is_hostile: args.hostile,
        only: args.only.clone(),
        stop: shutdown::flag().context("conform: cannot catch signals")?,
    };
    let scoreboard = judge(target, &options, args)?;
    let text = match (args.json, args.format) {
        (true, _) => serde_json::to_string_pretty(&scoreboard)? + "\n",
        (false, Format::Text) => scoreboard.summary(),
        (false, Format::Markdown) => scoreboard.markdown(),
    };
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))?;
    Ok(if options.stop.load(Ordering::Relaxed) {
        ExitCode::from(STATUS_INCOMPLETE)
    } else if !scoreboard.is_reached() {
        ExitCode::from(STATUS_NOT_REACHED)
    } else if scoreboard.failed() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Makes the scoreboard; text has its rows as they come, the other forms a progress line.
fn judge(target: &Target, options: &ConformOptions, args: &Args) -> anyhow::Result<Scoreboard> {
    let mut conformance = Conformance::new(target, options);
    let count = conformance.checks_left();
    ensure!(count > 0, "conform: --only: these checks send malformed messages and need --hostile");
    let mut progress = ProgressLine::new("conform");
    let host = target.host.clone();
    let mut scoreboard = Scoreboard { host, is_hostile: args.hostile, rows: Vec::new() };
    let is_streamed = !args.json && args.format == Format::Text;
    while let Some(row) = conformance.next() {
        if is_streamed {
            stdout::ignore_broken_pipe(stdout::print(&format!("{row}\n")).map_err(Into::into))?;
        } else {
            progress.update_steps(count - conformance.checks_left(), count);
        }
        scoreboard.rows.push(row);
    }
    progress.end();
    Ok(scoreboard)
}

fn list(is_json: bool) -> anyhow::Result<String> {
    match is_json {
        true => Ok(serde_json::to_string_pretty(&checks().collect::<Vec<_>>())? + "\n"),
        false => Ok(checks().map(|check| format!("{check}\n")).collect()),
    }
}
