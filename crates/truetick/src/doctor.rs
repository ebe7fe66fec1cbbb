//! `truetick doctor`: checks each step of a venue connection.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hyper::Uri;
use market_feed::doctor::{ExamineOptions, Observer, examine};
use market_feed::{Credentials, FeedConfig};
use tt_os::stdout;
use tt_venue::Venue;
use tt_venue::rules::Tested;

use self::report::{Conclusion, JsonReport, TextReport};
use crate::config::Config;
use crate::market;
use crate::simulated_venues as venues;

/// Instruments of the built-in simulator's venues.
const SIMULATED_INSTRUMENTS: u32 = 3;

/// Its book updates per second of each venue.
const SIMULATED_RATE_HZ: f64 = 200.0;

/// Flags of `truetick doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The venue
    #[arg(long, value_parser = market::venue)]
    venue: Venue,
    /// The venue's symbols; one that it surely has unless told otherwise
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    symbols: Vec<String>,
    /// WebSocket address instead of the venue's own
    #[arg(long, value_name = "URL", conflicts_with = "simulated")]
    url: Option<Uri>,
    /// REST address instead of the venue's own; the host of --url unless told otherwise
    #[arg(long, value_name = "URL", conflicts_with = "simulated")]
    rest_url: Option<Uri>,
    /// The built-in simulator's venue instead of the true one
    #[arg(long)]
    simulated: bool,
    /// `key`, `secret` and `passphrase` (TOML) of an account to log in with, in a file that only its owner may read
    #[arg(long, value_name = "FILE")]
    account_file: Option<PathBuf>,
    /// Levels of each side, where the venue wants to know
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Updates of each book that are waited for
    #[arg(long, value_name = "N", default_value_t = 20)]
    updates: u64,
    /// All of it takes no longer than this
    #[arg(long, value_name = "SECONDS", default_value_t = 90.0)]
    seconds: f64,
    /// One JSON object a step, and one at the end
    #[arg(long)]
    json: bool,
}

/// Takes the steps: status 0 where all is well, 1 where a step failed, 2 where the arguments make no sense.
///
/// # Errors
/// Standard output, or the simulator, cannot be used.
pub fn run(args: Args, config: &Config) -> Result<ExitCode> {
    let (feed, simulator) = match source(&args, config) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("truetick: {error:#}");
            return Ok(ExitCode::from(2));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("doctor: runtime")?;
    let options = ExamineOptions { updates_min: args.updates.max(1), time_max: Duration::from_secs_f64(args.seconds) };
    let started = Instant::now();
    let (mut text, mut json) = (TextReport::new(), JsonReport);
    let observer: &mut dyn Observer = if args.json { &mut json } else { &mut text };
    let mut failed = false;
    let done = runtime.block_on(examine(&feed, &options, observer)).and_then(|summary| {
        let rules = feed.venue.rules();
        let is_live = simulator.is_none() && feed.streams == Uri::from_static(rules.streams);
        failed = !summary.failed.is_empty();
        let advice = (is_live && !failed).then(|| contribution(&feed));
        let (label, advice) = (rules.tested.name(), advice.as_deref());
        let end = Conclusion { venue: rules.name, label, took: started.elapsed(), advice };
        Ok(stdout::print(&report::summary(&summary, &end, args.json))?)
    });
    stdout::ignore_broken_pipe(done)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What is examined, and the simulator where that is where it is.
fn source(args: &Args, config: &Config) -> Result<(FeedConfig, Option<sim::Running>)> {
    ensure!(args.seconds.is_finite() && args.seconds > 0.0 && args.seconds < 1e6, "--seconds must be above zero");
    let venue = args.venue;
    let (mut feed, simulator) = if args.simulated {
        let simulator = venues::start(SIMULATED_INSTRUMENTS, SIMULATED_RATE_HZ, 1)?;
        let found = venues::feeds(&simulator)?.into_iter().find(|feed| feed.venue == venue);
        let mut feed = found.with_context(|| format!("the built-in simulator does not play {}", venue.name()))?;
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
    feed.rest = args.rest_url.clone().or(feed.rest);
    if let Some(path) = &args.account_file {
        feed.account = Some(Credentials::read(path)?);
    }
    feed.depth = args.depth.unwrap_or(feed.depth);
    feed.check_addresses()?;
    Ok((feed, simulator))
}

/// What a good run against the venue itself is worth to others.
fn contribution(feed: &FeedConfig) -> String {
    let (name, symbols) = (feed.venue.name(), feed.symbols.join(","));
    let label = match feed.venue.rules().tested {
        Tested::UnverifiedLive => {
            format!("This run is what the label `unverified live` of {name} lacked: it could be changed.")
        }
        Tested::Captured => format!("{name} still is as it was captured."),
    };
    format!(
        "{label} A capture makes it last: truetick record --live --venue {name} --symbols {symbols} --seconds 600 --packed \
         --out {name}.ttj, then the recording, the output of truetick audit {name}.ttj --json and of this command in an issue."
    )
}
