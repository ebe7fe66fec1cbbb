//! `truetick check`: what clients get from a TURN server, from outside.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use tt_os::stdout;
use turn_check::{Options, Outcome, Report, Row, Target};

use crate::login::LoginArgs;

/// Exit status if nothing was checked.
const STATUS_NOTHING: u8 = 2;

/// Flags of `truetick check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// turn:HOST[:PORT] (UDP, TCP, and TLS at 5349), turn:HOST[:PORT]?transport=udp|tcp, or turns:HOST[:PORT]
    #[arg(value_name = "URI")]
    target: Target,
    #[command(flatten)]
    login: LoginArgs,
    /// Messages to relay over each transport
    #[arg(long, value_name = "N", default_value_t = 100)]
    messages: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Printed<'a> {
    host: &'a str,
    is_ok: bool,
    #[serde(flatten)]
    report: &'a Report,
}

/// Checks the server, and returns the exit status: 0 without a failed step, 1 with one, 2 if nothing was checked.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let roots = Arc::new(args.login.roots("check")?);
    let options = Options { login: args.login.login("check")?, roots, messages: args.messages };
    let report = turn_check::check(&args.target, &options);
    let text = if args.json {
        let printed = Printed { host: &args.target.host, is_ok: report.is_ok(), report: &report };
        serde_json::to_string_pretty(&printed)? + "\n"
    } else {
        report.rows.iter().map(line).collect()
    };
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))?;
    let is_empty = report.rows.iter().all(|row| row.outcome == Outcome::Skipped);
    Ok(match (is_empty, report.is_ok()) {
        (true, _) => ExitCode::from(STATUS_NOTHING),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn line(row: &Row) -> String {
    let text: String = row.text.chars().flat_map(char::escape_debug).collect();
    format!("{:4} {:15} {:8} {text}\n", row.transport.name(), row.check, row.outcome.name())
}
