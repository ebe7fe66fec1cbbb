//! Checks each step of a venue connection.

mod all;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hyper::Uri;
use market_feed::doctor::printed::{Conclusion, JsonReport, TextReport, summary};
use market_feed::doctor::{ExamineOptions, Observer, examine};
use market_feed::{Credentials, FeedConfig};
use tt_os::stdout;
use tt_venue::Venue;

use crate::config::Config;
use crate::market;
use crate::simulated_venues as venues;

/// Instruments per simulated venue.
const SIMULATED_INSTRUMENTS: u32 = 3;

/// Book updates per second and simulated venue.
const SIMULATED_RATE_HZ: f64 = 200.0;

/// Flags of `truetick doctor` for venues.
#[derive(Debug, clap::Args)]
pub(super) struct VenueArgs {
    /// Venue
    #[arg(long, value_parser = market::venue, required_unless_present = "all")]
    venue: Option<Venue>,
    /// Check every venue, all at the same time, each with its main BTC pair, and print a table. With --json one object,
    /// which can be contributed
    #[arg(long, conflicts_with_all = ["venue", "symbols", "url", "rest_url", "region", "account_file", "depth", "level3", "rpi"])]
    all: bool,
    /// Symbols as the venue writes them [default: the venue's main BTC pair]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    symbols: Vec<String>,
    /// WebSocket address [default: the venue's]
    #[arg(long, value_name = "URL", conflicts_with = "simulated")]
    url: Option<Uri>,
    /// REST address [default: the host of --url, or the venue's]
    #[arg(long, value_name = "URL", conflicts_with = "simulated")]
    rest_url: Option<Uri>,
    /// Region of the venue whose addresses are checked, such as eea or us
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "simulated"])]
    region: Option<String>,
    /// Check the built-in simulator instead of the venue
    #[arg(long)]
    simulated: bool,
    /// TOML file with `key`, `secret` and `passphrase` of an account to log in with, readable by its owner only
    #[arg(long, value_name = "FILE")]
    account_file: Option<PathBuf>,
    /// Check the feed of single orders, at venues that have one. Needs --account-file, except with --simulated
    #[arg(long)]
    level3: bool,
    /// Check the books with orders that only retail clients can trade with (RPI), at venues that send them
    #[arg(long, conflicts_with = "level3")]
    rpi: bool,
    /// Levels per side, at venues that take a depth [default: the venue's usual depth]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Updates to wait for, per book
    #[arg(long, value_name = "N", default_value_t = 20)]
    updates: u64,
    /// Time limit of all steps together
    #[arg(long, value_name = "SECONDS", default_value_t = 90.0)]
    seconds: f64,
    /// Print one JSON object per step, and a summary
    #[arg(long)]
    json: bool,
}

/// Runs the steps. Status 0: no step failed. 1: a step failed. 2: invalid arguments.
///
/// # Errors
/// Standard output, or the simulator, cannot be used.
pub(super) fn run(args: VenueArgs, config: &Config) -> Result<ExitCode> {
    if !(args.seconds.is_finite() && args.seconds > 0.0 && args.seconds < 1e6) {
        eprintln!("truetick: --seconds must be above zero");
        return Ok(ExitCode::from(2));
    }
    let options = ExamineOptions { updates_min: args.updates.max(1), time_max: Duration::from_secs_f64(args.seconds) };
    let Some(venue) = args.venue else { return all::run(&args, &options) };
    let (feed, simulator) = match source(&args, venue, config) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("truetick: {error:#}");
            return Ok(ExitCode::from(2));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("doctor: runtime")?;
    let started = Instant::now();
    let (mut text, mut json) = (TextReport::default(), JsonReport);
    let observer: &mut dyn Observer = if args.json { &mut json } else { &mut text };
    let mut failed = false;
    let done = runtime.block_on(examine(&feed, &options, observer)).and_then(|found| {
        let rules = feed.venue.rules();
        let is_live = simulator.is_none() && feed.streams == Uri::from_static(rules.streams);
        failed = !found.failed.is_empty();
        let advice = (is_live && !failed).then(|| contribution(&feed));
        let (label, advice) = (rules.evidence.to_string(), advice.as_deref());
        let end = Conclusion { venue: rules.name, label: &label, took: started.elapsed(), advice };
        Ok(stdout::print(&summary(&found, &end, args.json))?)
    });
    stdout::ignore_broken_pipe(done)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the feed to check, and the simulator if it is simulated.
fn source(args: &VenueArgs, venue: Venue, config: &Config) -> Result<(FeedConfig, Option<sim::Running>)> {
    let (mut feed, simulator) = if args.simulated {
        let simulator = venues::start(SIMULATED_INSTRUMENTS, SIMULATED_RATE_HZ, 1)?;
        let found = venues::feeds(&simulator)?.into_iter().find(|feed| feed.venue == venue);
        let mut feed = found.with_context(|| format!("the built-in simulator has no {}", venue.name()))?;
        feed.symbols.truncate(1);
        (feed, Some(simulator))
    } else {
        let configured = config.market.feeds()?.into_iter().find(|feed| feed.venue == venue && args.url.is_none());
        let symbols = vec![venue.rules().main_symbol.to_owned()];
        let feed = match (&args.url, configured) {
            (_, Some(configured)) => configured,
            (Some(url), None) => FeedConfig::at(venue, url.clone(), symbols),
            (None, None) => FeedConfig::public(venue, symbols),
        };
        (feed, None)
    };
    if !args.symbols.is_empty() {
        feed.symbols.clone_from(&args.symbols);
    }
    let has_symbol = feed.symbols.iter().any(|symbol| !symbol.is_empty());
    ensure!(has_symbol, "doctor: the instruments of {} end: name one with --symbols", venue.name());
    if let Some(region) = &args.region {
        feed.use_region(region)?;
    }
    feed.rest = args.rest_url.clone().or(feed.rest);
    if let Some(path) = &args.account_file {
        feed.account = Some(Credentials::read(path)?);
    }
    if args.level3 {
        feed.account = feed.account.or_else(|| args.simulated.then(venues::account));
        feed.follow_orders()?;
    }
    if args.rpi {
        feed.follow_rpi()?;
    }
    feed.check_login()?;
    feed.depth = args.depth.unwrap_or(feed.depth);
    feed.check_addresses()?;
    Ok((feed, simulator))
}

/// Returns how to contribute the result of a successful run against the venue.
fn contribution(feed: &FeedConfig) -> String {
    let (name, symbols) = (feed.venue.name(), feed.symbols.join(","));
    let evidence = feed.venue.rules().evidence;
    let label = if evidence.captured.is_none() || evidence.is_out_of_date() {
        format!("{name} is labelled `{evidence}`; this run shows that it works.")
    } else {
        format!("{name} still matches its captures.")
    };
    format!(
        "{label} To contribute a capture, run truetick record --live --venue {name} --symbols {symbols} --seconds 600 --packed \
         --out {name}.ttj. Then open an issue with the recording, and the output of truetick audit {name}.ttj --json and of this command."
    )
}
