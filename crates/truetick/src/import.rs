//! `truetick import`: the configuration of another TURN server as one of truetick.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;
use tt_os::stdout;
use turn_import::{CredentialFiles, Import, Row};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::turn::{Permissions, import_coturn, import_eturnal};

/// Flags of `truetick import`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// turnserver.conf of coturn or eturnal.yml of eturnal
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the users, the secrets and the passwords of the databases in FILE to turn-users, turn-secrets,
    /// turn-database-password and turn-stats-database-password in this folder, readable by their owner only
    #[arg(long, value_name = "FOLDER")]
    credentials: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    toml: &'a str,
    changes_behaviour: bool,
    options: &'a [Row],
}

/// Exit status for a file that cannot be read.
const STATUS_UNREADABLE: u8 = 2;

/// Prints the TOML and how each option is treated, and returns the exit status: 1 if behaviour would change, 2 if the
/// file cannot be read.
///
/// # Errors
/// A file with credentials cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_yaml = args.file.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
    let import = match is_yaml {
        true => import_eturnal(&args.file, Permissions::Wanted),
        false => import_coturn(Some(&args.file), &[], Permissions::Wanted),
    };
    let import = match import {
        Ok(import) => import,
        Err(error) => {
            eprintln!("truetick: {error:#}");
            return Ok(ExitCode::from(STATUS_UNREADABLE));
        }
    };
    let folder = args.credentials.as_deref().unwrap_or(Path::new("/etc/truetick"));
    let files = CredentialFiles {
        users: folder.join("turn-users"),
        secrets: folder.join("turn-secrets"),
        database_password: folder.join("turn-database-password"),
        stats_database_password: folder.join("turn-stats-database-password"),
    };
    if args.credentials.is_some() {
        write_credentials(&import, &files)?;
    }
    let toml = import.to_toml(Some(&files));
    Config::parse(&toml).context("the TOML of the import is invalid")?;
    let changes_behaviour = import.changes_behaviour();
    let text = if args.json {
        serde_json::to_string_pretty(&Report { toml: &toml, changes_behaviour, options: &import.rows })? + "\n"
    } else {
        text_of(&import, &toml, args.credentials.is_none().then_some(&files))
    };
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))?;
    Ok(if changes_behaviour { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the TOML, with the table as comments behind it. `missing` are files that have not been written.
fn text_of(import: &Import, toml: &str, missing: Option<&CredentialFiles>) -> String {
    let mut text = toml.to_owned();
    let mut line = |words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", format!("# {words}").trim_end());
    };
    line("");
    for (count, path) in [
        (import.users.len(), missing.map(|files| &files.users)),
        (import.secrets.len(), missing.map(|files| &files.secrets)),
        (import.database_password.iter().len(), missing.map(|files| &files.database_password)),
        (import.stats_database_password.iter().len(), missing.map(|files| &files.stats_database_password)),
    ] {
        if let (Some(path), true) = (path, count > 0) {
            line(&format!("{} does not exist yet: --credentials FOLDER writes it", path.display()));
        }
    }
    let mut rows: Vec<&Row> = import.rows.iter().collect();
    tt_model::sort_short_by_key(&mut rows, |row| std::cmp::Reverse(row.outcome));
    for row in rows {
        let value = if row.value.is_empty() { String::new() } else { format!(" {}", row.value.escape_debug()) };
        let keys = if row.keys.is_empty() { String::new() } else { format!(" -> {}", row.keys) };
        let reason = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
        line(&format!("{:8} {:9} {}{value}{keys}{reason}", row.outcome.name(), row.place, row.option.escape_debug()));
    }
    line("");
    line(match import.changes_behaviour() {
        true => "behaviour would change: see `differs` and `refused`",
        false => "behaviour would not change",
    });
    text
}

/// Writes the files with credentials. An existing file is an error.
fn write_credentials(import: &Import, files: &CredentialFiles) -> anyhow::Result<()> {
    for (path, lines) in [
        (&files.users, &import.users[..]),
        (&files.secrets, &import.secrets),
        (&files.database_password, import.database_password.as_slice()),
        (&files.stats_database_password, import.stats_database_password.as_slice()),
    ] {
        if !lines.is_empty() {
            write_lines(path, lines).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

fn write_lines(path: &Path, lines: &[Zeroizing<String>]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    lines.iter().try_for_each(|line| writeln!(file, "{}", line.as_str()))
}
