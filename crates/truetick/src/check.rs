//! `truetick check`: what clients get from a TURN server, from outside.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use tt_os::{regular_file, secret_file, stdout};
use turn_check::{Login, Options, Outcome, Report, Row, Target};
use zeroize::Zeroizing;

use crate::credential;

/// Exit status if nothing was checked.
const STATUS_NOTHING: u8 = 2;
/// Time for which a credential for the check is valid.
const TTL: Duration = Duration::from_secs(600);

/// Flags of `truetick check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// turn:HOST[:PORT] (UDP, TCP, and TLS at 5349), turn:HOST[:PORT]?transport=udp|tcp, or turns:HOST[:PORT]
    #[arg(value_name = "URI")]
    target: Target,
    /// File with a secret of time-limited credentials, readable by its owner only; needs --user
    #[arg(long, value_name = "F", requires = "user", conflicts_with = "user_file")]
    secret_file: Option<PathBuf>,
    /// Name for the credential from --secret-file
    #[arg(long, value_name = "NAME", requires = "secret_file")]
    user: Option<String>,
    /// File with NAME:PASSWORD in its first line, readable by its owner only
    #[arg(long, value_name = "F")]
    user_file: Option<PathBuf>,
    /// File with further authorities of certificates, PEM
    #[arg(long, value_name = "F")]
    authority_file: Option<PathBuf>,
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
    let pem = args.authority_file.as_ref().map(|path| {
        regular_file::read(path).with_context(|| format!("check: --authority-file: cannot read {}", path.display()))
    });
    let pem = pem.transpose()?;
    let roots = turn_check::roots_of(pem.as_ref().map(|pem| pem.bytes.as_slice()));
    let roots = Arc::new(roots.map_err(anyhow::Error::msg).context("check: --authority-file")?);
    let options = Options { login: login(args)?, roots, messages: args.messages };
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

fn login(args: &Args) -> anyhow::Result<Option<Login>> {
    match (&args.secret_file, &args.user, &args.user_file) {
        (Some(secret), Some(user), _) => {
            let secret = secret_file::read_first_line(secret).context("check: --secret-file")?;
            let (name, password) = credential::make(&secret, user, TTL)?;
            Ok(Some(Login { name, password }))
        }
        (_, _, Some(file)) => {
            let line = secret_file::read_first_line(file).context("check: --user-file")?;
            let Some((name, password)) = line.split_once(':') else { bail!("check: --user-file: not NAME:PASSWORD") };
            ensure!(
                !name.is_empty() && !password.is_empty(),
                "check: --user-file: name and password must not be empty"
            );
            Ok(Some(Login { name: name.to_owned(), password: Zeroizing::new(password.to_owned()) }))
        }
        (_, _, None) => Ok(None),
    }
}
