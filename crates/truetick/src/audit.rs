//! `truetick audit`: checks market-data recordings, of truetick and others, with the whole engine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use market_audit::{Failed, as_json, as_text, examine};
use serde_json::{Value, json};
use tt_venue::Venue;

use tt_os::shutdown::Shutdown;
use tt_os::stdout;

/// Exit status if an input cannot be read.
const STATUS_UNREADABLE: u8 = 2;
/// Exit status if a file contains no record.
const STATUS_NOTHING_CHECKED: u8 = 2;

/// Flags of `truetick audit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Recordings of truetick, hftbacktest, cryptofeed (.ws, with the .http in the same folder), cbcap, or JSON lines;
    /// plain, gzip or zip
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The files are parts of one recording, in this order
    #[arg(long)]
    continued: bool,
    /// Venue [default: detected from the content]
    #[arg(long, value_name = "VENUE", value_parser = crate::market::venue)]
    venue: Option<Venue>,
    /// Print one JSON line per recording instead of a table
    #[arg(long)]
    json: bool,
}

/// Audits the files. Status 0: no error. 1: errors. 2: a file cannot be read, or contains no record.
///
/// # Errors
/// Standard output is gone, or signals cannot be caught.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    // The REST responses of a cryptofeed recording are read with its frames.
    let is_companion = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "http");
    let files: Vec<PathBuf> = match args.files.iter().filter(|path| !is_companion(path)).cloned().collect::<Vec<_>>() {
        none if none.is_empty() => args.files.clone(),
        files => files,
    };
    let recordings: Vec<&[PathBuf]> =
        if args.continued { vec![&files] } else { files.iter().map(std::slice::from_ref).collect() };
    let (mut is_unreadable, mut is_wrong, mut is_empty) = (false, false, false);
    for recording in recordings {
        let started = Instant::now();
        let shown = recording.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
        let examined = match examine(recording, args.venue, &shutdown) {
            Ok(examined) => examined,
            Err(Failed::Unreadable(reason)) => {
                is_unreadable = true;
                if args.json {
                    let line = json!({"file": shown, "unreadable": reason, "right": false});
                    stdout::ignore_broken_pipe(stdout::print(&format!("{line}\n")).context("standard output"))?;
                } else {
                    eprintln!("truetick: {shown}: {reason}");
                }
                continue;
            }
            Err(Failed::Ended) => return Ok(ExitCode::FAILURE),
        };
        is_wrong |= !examined.is_right();
        is_empty |= examined.records() == 0;
        let seconds = started.elapsed().as_secs_f64();
        let text = if args.json {
            let mut line: Value = as_json(&examined, seconds);
            line["file"] = json!(shown);
            format!("{line}\n")
        } else {
            format!("{shown}\n{}", as_text(&examined, seconds))
        };
        stdout::ignore_broken_pipe(stdout::print(&text).context("standard output"))?;
    }
    Ok(match (is_unreadable, is_wrong, is_empty) {
        (true, _, _) => ExitCode::from(STATUS_UNREADABLE),
        (false, true, _) => ExitCode::FAILURE,
        (false, false, true) => ExitCode::from(STATUS_NOTHING_CHECKED),
        (false, false, false) => ExitCode::SUCCESS,
    })
}
