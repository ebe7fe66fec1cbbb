//! The command line: global flags, subcommands, log output, and one line for every way to fail.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::config::Config;
use crate::{audit, bench, floor, market, record, replay, risk, serve, simulate, turn};

/// STUN/TURN server, market-state engine and pre-trade risk gate on one measured hot path.
#[derive(Debug, Parser)]
#[command(name = "truetick", version, propagate_version = true)]
struct Cli {
    /// Configuration in TOML: sections [turn], [market], [risk], [http]. Flags win over the file
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Least severe records that are written to standard error
    #[arg(long, global = true, value_enum, default_value_t = LogLevel::Info)]
    log_level: LogLevel,

    /// Shape of the records: one line of text, or one JSON object, each
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// All three engines and the page at http://127.0.0.1:9641, with nothing to configure
    Serve(serve::Args),
    /// The STUN/TURN server alone
    Turn(Box<turn::Args>),
    /// Order books, tickers and candles from a venue's feeds, each book with its proof
    Market(market::Args),
    /// A live venue, step by step: what works, how long it takes, and what to do about what does not
    Doctor(Box<market::doctor::Args>),
    /// The pre-trade gate alone
    Risk(risk::Args),
    /// Scripted venues on loopback: WebSocket and REST
    Simulate(simulate::Args),
    /// Everything that goes into the market engine, written to a file
    Record(Box<record::Args>),
    /// A recording through the market engine again: the same state, or status 1
    Replay(replay::Args),
    /// Anybody's recordings of market data: gaps, wrong checksums, crossed books; status 1 when something is wrong
    Audit(audit::Args),
    /// What this machine can do, and what keeps a thread on it from running
    Floor(floor::Args),
    /// Every published row, measured on this machine
    Bench(bench::Args),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// Runs the command that the process's arguments name.
///
/// Status 0: done, or ended by a signal. 3: ended by a signal while allocations lived. 1: failed, with one line on standard error that says why. 2: the
/// arguments make no sense, with one line that says which.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    write_logs(cli.log_level, cli.log_format);
    match dispatch(cli) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("truetick: {}", one_line(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    let config = match &cli.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let done = match cli.command {
        Command::Turn(args) => return turn::run(*args, &config),
        Command::Serve(args) => serve::run(args, &config),
        Command::Market(args) => market::run(args, &config),
        Command::Doctor(args) => return market::doctor::run(*args, &config),
        Command::Risk(args) => risk::run(args, &config),
        Command::Record(args) => record::run(*args),
        Command::Replay(args) => return replay::run(args),
        Command::Audit(args) => return audit::run(args),
        Command::Simulate(args) => simulate::run(args, &config),
        Command::Floor(args) => floor::run(args, &config),
        Command::Bench(args) => bench::run(args, &config),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn write_logs(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let records = tracing_subscriber::fmt().with_max_level(level).with_writer(|| OneLine).with_ansi(false);
    match format {
        LogFormat::Text => records.init(),
        LogFormat::Json => records.json().init(),
    }
}

/// Standard error, to which each record goes as one line whatever it holds.
struct OneLine;

impl io::Write for OneLine {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(escaped(&String::from_utf8_lossy(record)).as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// `record` with every control character but the last line feed written as JSON and people read it.
fn escaped(record: &str) -> String {
    let (body, end) = record.strip_suffix('\n').map_or((record, ""), |body| (body, "\n"));
    let mut text = String::with_capacity(record.len());
    for c in body.chars() {
        if c.is_control() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text + end
}

/// Prints help where help was asked for; everything else is one line and status 2.
fn refuse(error: &clap::Error) -> ExitCode {
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked_for {
        // Nobody is left to tell when standard output is gone.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprintln!("truetick: which command? See `truetick --help`");
    } else {
        eprintln!("truetick: {}", usage_line(&error.to_string()));
    }
    ExitCode::from(2)
}

/// The first paragraph of clap's report: what is wrong, without the usage and tips that follow.
fn usage_line(report: &str) -> String {
    let paragraph = report.split("\n\n").next().unwrap_or_default();
    one_line(paragraph.trim_start_matches("error: "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_record_is_one_line_whatever_it_holds() {
        let record = "user=\"a\r\nb\u{1b}[2J\u{9b}\0\" \u{e9}\n";
        assert_eq!(escaped(record), "user=\"a\\u000d\\u000ab\\u001b[2J\\u009b\\u0000\" \u{e9}\n");
    }

    #[test]
    fn a_missing_argument_is_told_in_one_line() {
        let report = "error: the following required arguments were not provided:\n  --a <A>\n\nUsage: x --a <A>\n";
        assert_eq!(usage_line(report), "the following required arguments were not provided: --a <A>");
    }
}
