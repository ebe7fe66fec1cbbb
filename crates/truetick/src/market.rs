//! `truetick market`: order books, tickers and candles from a venue's feeds, each book with its proof.

mod options;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hyper::Uri;
use market_feed::{Credentials, FeedConfig, MarketConfig, Unreached, start_when_reached};
use tt_os::shutdown::Shutdown;
use tt_os::stdout;
use tt_venue::Venue;

use crate::config::Config;

pub use options::SubscribeOptions;

/// Flags of `truetick market`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The venue
    #[arg(long, value_parser = venue)]
    venue: Option<Venue>,
    /// Symbols as the venue writes them, such as BTCUSDT,ETHUSDT or BTC/USD
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "venue")]
    symbols: Vec<String>,
    /// WebSocket address instead of the venue's own
    #[arg(long, value_name = "URL", requires = "venue")]
    url: Option<Uri>,
    /// REST address instead of the venue's own; the host of --url unless told otherwise
    #[arg(long, value_name = "URL", requires = "url")]
    rest_url: Option<Uri>,
    /// Levels per side, if the venue offers a choice [default: the venue's usual number]
    #[arg(long, value_name = "N", requires = "venue")]
    depth: Option<u32>,
    /// What else of it.
    #[command(flatten)]
    options: SubscribeOptions,
    /// `key`, `secret` and `passphrase` (TOML) of the account that is followed, too, in a file that only its owner may read
    #[arg(long, value_name = "FILE", requires = "venue")]
    account_file: Option<PathBuf>,
    /// CPU that the connection's thread is pinned to
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// JSON lines instead of a table
    #[arg(long)]
    json: bool,
    /// Ends after this many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

/// A venue by its name, with hyphens or as in the configuration.
pub(crate) fn venue(name: &str) -> Result<Venue, String> {
    Venue::find(&name.replace('-', "_")).ok_or_else(|| {
        let known: Vec<String> = Venue::ALL.iter().map(|venue| venue.name().replace('_', "-")).collect();
        format!("possible values: {}", known.join(", "))
    })
}

/// The venue of a name, for the command line.
pub(crate) fn venue_of_name(name: &str) -> Result<Venue, String> {
    let names = || Venue::ALL.map(Venue::name).join(", ");
    Venue::find(&name.replace('-', "_")).ok_or_else(|| format!("one of {}", names()))
}

/// Runs until a signal ends it.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(args: Args, config: &Config) -> anyhow::Result<()> {
    let feeds = match args.venue {
        Some(venue) => vec![feed_of(&args, venue)?],
        None => config.market.feeds()?,
    };
    anyhow::ensure!(!feeds.is_empty(), "which venue? --venue and --symbols, or [[market.feeds]] in --config");
    let most = args.seconds.map(Duration::try_from_secs_f64).transpose().context("--seconds")?;
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let market = MarketConfig { feeds, ..MarketConfig::default() };
    stdout::ignore_broken_pipe(follow(market, &shutdown, args.json, most))
}

fn follow(market: MarketConfig, shutdown: &Shutdown, as_json: bool, most: Option<Duration>) -> anyhow::Result<()> {
    let started = Instant::now();
    let ended = async {
        match most {
            Some(most) => drop(tokio::time::timeout(most, shutdown.clone().requested()).await),
            None => shutdown.clone().requested().await,
        }
    };
    let tell = |unreached: &Unreached| stdout::print(&table::connecting(unreached, as_json)).context("standard output");
    let Some(running) = start_when_reached(market, ended, tell)? else {
        anyhow::ensure!(shutdown.is_requested(), "market: no venue was reached within --seconds");
        return Ok(());
    };
    let left = most.map(|most| most.saturating_sub(started.elapsed()));
    let shown = table::show(&running.reader(), shutdown, as_json, left);
    running.stop();
    shown.context("standard output")
}

fn feed_of(args: &Args, venue: Venue) -> anyhow::Result<FeedConfig> {
    anyhow::ensure!(!args.symbols.is_empty(), "which symbols? --symbols A,B");
    let mut feed = match &args.url {
        Some(url) => FeedConfig::at(venue, url.clone(), args.symbols.clone()),
        None => FeedConfig::public(venue, args.symbols.clone()),
    };
    feed.rest = args.rest_url.clone().or(feed.rest);
    feed.ask_depth(args.depth)?;
    args.options.apply_to(&mut feed);
    feed.account = args.account_file.as_deref().map(Credentials::read).transpose()?;
    feed.cpu = args.cpu;
    Ok(feed)
}
