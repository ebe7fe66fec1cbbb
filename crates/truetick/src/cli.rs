//! The command line: global options, subcommands, log output and exit statuses.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::Config;
#[cfg(any(feature = "market", feature = "turn"))]
use crate::doctor;
use crate::logs::{self, LogFormat, LogLevel};
use crate::manual;
#[cfg(feature = "simulate")]
use crate::simulate;
#[cfg(feature = "market")]
use crate::{audit, market, record, replay, up};
#[cfg(feature = "bench")]
use crate::{bench, floor, why};
#[cfg(feature = "turn")]
use crate::{check, conform, credential, import, stun, turn};
#[cfg(feature = "risk")]
use crate::{gate, risk};
#[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
use crate::{serve, tour};

/// TURN server, verified order books and pre-trade risk gate
///
/// truetick is one binary with a STUN/TURN server, an exchange market-data engine whose order books are verified
/// against the venue, and a pre-trade risk gate. Every stage is timed.
#[derive(Debug, Parser)]
#[command(name = "truetick", version, propagate_version = true, subcommand_required = true)]
#[command(after_help = AFTER_HELP)]
struct Cli {
    /// Configuration file (TOML); flags override it
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL, display_order = 1_000)]
    config: Option<PathBuf>,

    /// Minimum log level [default: `level` of `[log]` in the configuration file, or info]
    #[arg(long, global = true, value_enum, help_heading = GLOBAL, display_order = 1_001)]
    log_level: Option<LogLevel>,

    /// Log format on standard error, one line per event
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = LogFormat::Text,
        help_heading = GLOBAL,
        display_order = 1_002
    )]
    log_format: LogFormat,

    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "--version --verbose prints commit, compiler and features, too.

Exit status: 0 success; 1 a start, run or check failed; 2 invalid arguments, or nothing to check; 3 incomplete.";

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all engines and the page at http://127.0.0.1:9641, on simulated or configured venues
    #[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
    Serve(serve::Args),
    /// Watch a call relayed, faults caught and orders refused on this machine, in half a minute
    #[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
    Demo(tour::Args),
    /// Run the STUN/TURN server over UDP, TCP and TLS
    #[cfg(feature = "turn")]
    Turn(Box<turn::Args>),
    /// Translate a turnserver.conf (coturn) or eturnal.yml and list what differs; status 1 if behaviour would change
    #[cfg(feature = "turn")]
    Import(import::Args),
    /// Print a time-limited TURN credential, or the configuration of a product that uses the server
    #[cfg(feature = "turn")]
    Credential(credential::Args),
    /// Check a TURN server from outside: transports, candidates, loss, wrong passwords, private peers, certificate
    #[cfg(feature = "turn")]
    Check(check::Args),
    /// Judge a TURN server from outside by RFC 8489 and RFC 8656, over UDP, TCP and TLS
    #[cfg(feature = "turn")]
    Conform(Box<conform::Args>),
    /// Ask a STUN server for this machine's public address; status 1 without a response
    #[cfg(feature = "turn")]
    Stun(stun::Args),
    /// Look at packets that the TURN server's kernel path relays
    #[cfg(feature = "turn")]
    Paths(turn_server::path_dump::command::Args),
    /// Serve the books of a venue: page, JSON API, streams and a table in the terminal
    #[cfg(feature = "market")]
    Up(up::Args),
    /// Follow order books of a venue and print them with their proofs
    #[cfg(feature = "market")]
    Market(Box<market::Args>),
    /// Check each step of connecting to a venue; or, as `doctor paths`, what the kernel path of the TURN server needs
    #[cfg(any(feature = "market", feature = "turn"))]
    Doctor(Box<doctor::Args>),
    /// Evaluate order intents against limits
    #[cfg(feature = "risk")]
    Risk(risk::Args),
    /// Control a running gate; check limits files; judge orders on a recorded market; read the gate's journal
    #[cfg(feature = "risk")]
    Gate(gate::Args),
    /// Run simulated venues on loopback (WebSocket and REST)
    #[cfg(feature = "simulate")]
    Simulate(simulate::Args),
    /// Record all inputs of the market engine to a file
    #[cfg(feature = "market")]
    Record(Box<record::Args>),
    /// Replay a recording and verify the resulting state
    #[cfg(feature = "market")]
    Replay(replay::Args),
    /// Check market-data recordings for gaps, bad checksums and crossed books
    #[cfg(feature = "market")]
    Audit(audit::Args),
    /// Measure the latency floor and the stalls of this machine
    #[cfg(feature = "bench")]
    Floor(floor::Args),
    /// Say how much of the time between two cores is the machine's, what stalls them, and what would help
    #[cfg(feature = "bench")]
    Why(why::Args),
    /// Measure every published figure on this machine
    #[cfg(feature = "bench")]
    Bench(Box<bench::Args>),
    /// Print completions for a shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(manual::ManArgs),
}

/// Runs the command that the process's arguments name.
///
/// Exit status 0: success, or stopped by a signal. 1: startup, run or check failed. 2: invalid arguments, or nothing to
/// check. 3: incomplete, such as a drain that timed out, or a machine too busy to measure.
#[must_use]
pub fn main() -> ExitCode {
    if asks_for_build(std::env::args_os().skip(1)) {
        println!("{}", build_text());
        return ExitCode::SUCCESS;
    }
    #[cfg(feature = "turn")]
    if is_called_turnserver(std::env::args_os().next()) {
        logs::start(None, LogFormat::Text);
        return status_of(turn::turnserver_main(std::env::args_os().skip(1)));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // clap prints usage and suggestions, and returns status 0 for --help and --version.
        Err(error) => error.exit(),
    };
    logs::start(cli.level(), cli.log_format);
    status_of(dispatch(cli))
}

/// Prints an error in one line, and returns the exit status.
fn status_of(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("truetick: {}", one_line(&format!("{error:#}")));
        #[cfg(feature = "bench")]
        if error.is::<::bench::BusyError>() {
            return ExitCode::from(::bench::STATUS_BUSY);
        }
        ExitCode::FAILURE
    })
}

/// Whether the program was started by the name of coturn's.
#[cfg(feature = "turn")]
fn is_called_turnserver(name: Option<OsString>) -> bool {
    name.as_deref().and_then(|name| std::path::Path::new(name).file_name()).is_some_and(|name| name == "turnserver")
}

/// Whether `arguments` are `--version --verbose`: clap answers `--version` before it reads what follows.
fn asks_for_build(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    arguments.len() == 2 && (has("--version") || has("-V")) && has("--verbose")
}

impl Cli {
    /// The level of the log, if not that of the file. By default a bench does not report the starts and ends of its engines.
    fn level(&self) -> Option<LogLevel> {
        #[cfg(feature = "bench")]
        if matches!((&self.command, self.log_level), (Command::Bench(_), None)) {
            return Some(LogLevel::Warn);
        }
        self.log_level
    }
}

/// Version, commit, compiler and features of this program.
fn build_text() -> String {
    let features = [
        ("turn", cfg!(feature = "turn")),
        ("market", cfg!(feature = "market")),
        ("risk", cfg!(feature = "risk")),
        ("bench", cfg!(feature = "bench")),
        ("simulate", cfg!(feature = "simulate")),
    ];
    let features: Vec<&str> = features.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
    let changed = if env!("TRUETICK_DIRTY") == "true" { " with changes" } else { "" };
    let path = if tt_simd::is_crc32_vectorised() { "carry-less multiplication" } else { "tables" };
    format!(
        "truetick {}\ncommit: {}{changed}\ncompiler: {}\nprofile: {}\nfeatures: {}\nsystem: {} {}\nCRC-32: {path}",
        env!("CARGO_PKG_VERSION"),
        env!("TRUETICK_COMMIT"),
        env!("TRUETICK_RUSTC"),
        env!("TRUETICK_PROFILE"),
        features.join(", "),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    let config = match &cli.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    logs::follow(&config.log);
    match cli.command {
        #[cfg(feature = "turn")]
        Command::Turn(args) => turn::run(*args, &config),
        #[cfg(feature = "turn")]
        Command::Import(args) => import::run(&args),
        #[cfg(feature = "turn")]
        Command::Check(args) => check::run(&args),
        #[cfg(feature = "turn")]
        Command::Conform(args) => conform::run(&args),
        #[cfg(feature = "turn")]
        Command::Credential(args) => credential::run(&args).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "turn")]
        Command::Stun(args) => stun::run(&args).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "turn")]
        Command::Paths(args) => turn_server::path_dump::command::run(&args),
        #[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
        Command::Serve(args) => serve::run(args, &config).map(|()| ExitCode::SUCCESS),
        #[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
        Command::Demo(args) => tour::run(&args),
        #[cfg(feature = "market")]
        Command::Up(args) => up::run(&args, &config).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "market")]
        Command::Market(args) => market::run(&args, &config).map(|()| ExitCode::SUCCESS),
        #[cfg(any(feature = "market", feature = "turn"))]
        Command::Doctor(args) => doctor::run(*args, &config),
        #[cfg(feature = "risk")]
        Command::Risk(args) => risk::run(args, &config).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "risk")]
        Command::Gate(args) => gate::run(&args),
        #[cfg(feature = "market")]
        Command::Record(args) => record::run(*args).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "market")]
        Command::Replay(args) => replay::run(args),
        #[cfg(feature = "market")]
        Command::Audit(args) => audit::run(args),
        #[cfg(feature = "simulate")]
        Command::Simulate(args) => simulate::run(args, &config).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "bench")]
        Command::Floor(args) => floor::run(args).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "bench")]
        Command::Why(args) => why::run(args).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::run(*args).map(|()| ExitCode::SUCCESS),
        Command::Completions(args) => manual::completions(&args, Cli::command()).map(|()| ExitCode::SUCCESS),
        Command::Man(args) => manual::man(&args, Cli::command()).map(|()| ExitCode::SUCCESS),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/cli.md is generated: `TRUETICK_ACCEPT=1 cargo test -p truetick --lib reference` writes it.
    #[test]
    fn reference_in_docs_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        let options = clap_markdown::MarkdownOptions::new().title("Command line".to_owned()).show_footer(false);
        let reference = clap_markdown::help_markdown_custom::<Cli>(&options) + include_str!("exit_statuses.md");
        if std::env::var_os("TRUETICK_ACCEPT").is_some() {
            std::fs::write(&path, &reference).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == reference, "docs/cli.md is out of date: run the test with TRUETICK_ACCEPT=1");
    }

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
