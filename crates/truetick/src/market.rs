//! `truetick market`: order books, tickers and candles from a venue's feeds, each book with its proof.

mod launch;
mod options;
mod page;
mod table;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hyper::Uri;
use market_feed::{Credentials, FeedConfig, MarketConfig, Publishing, Unreached};
use tt_os::shutdown::Shutdown;
use tt_os::stdout;
use tt_venue::Venue;

use crate::config::Config;

pub(crate) use launch::launch;
pub use options::SubscribeOptions;
pub(crate) use table::connecting;

use page::Page;

/// Flags of `truetick market`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Venue
    #[arg(long, value_parser = venue)]
    venue: Option<Venue>,
    /// Symbols as the venue writes them, such as BTCUSDT,ETHUSDT or BTC/USD
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "venue")]
    symbols: Vec<String>,
    /// WebSocket address [default: the venue's]
    #[arg(long, value_name = "URL", requires = "venue")]
    url: Option<Uri>,
    /// REST address [default: the host of --url, or the venue's]
    #[arg(long, value_name = "URL", requires = "url")]
    rest_url: Option<Uri>,
    /// Levels per side, at venues that take a depth [default: the venue's usual depth]
    #[arg(long, value_name = "N", requires = "venue")]
    depth: Option<u32>,
    /// Further subscriptions.
    #[command(flatten)]
    options: SubscribeOptions,
    /// TOML file with `key`, `secret` and `passphrase` of an account to follow, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "venue")]
    account_file: Option<PathBuf>,
    /// Pin the connection's thread to this CPU
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Serve the page, metrics, JSON API and WebSocket streams at this address [default: none, or `listen` in `[http]`]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Print JSON lines instead of a table
    #[arg(long)]
    json: bool,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

/// Returns the venue of a name with hyphens or underscores.
pub(crate) fn venue(name: &str) -> Result<Venue, String> {
    Venue::find(&name.replace('-', "_")).ok_or_else(|| {
        let known: Vec<String> = Venue::ALL.iter().map(|venue| venue.name().replace('_', "-")).collect();
        format!("possible values: {}", known.join(", "))
    })
}

/// Parses a venue's name for clap.
pub(crate) fn venue_of_name(name: &str) -> Result<Venue, String> {
    let names = || Venue::ALL.map(Venue::name).join(", ");
    Venue::find(&name.replace('-', "_")).ok_or_else(|| format!("one of {}", names()))
}

/// Runs until a signal or `--seconds` stops it.
///
/// # Errors
/// Invalid flags or configuration, or a missing system resource.
pub fn run(args: &Args, config: &Config) -> anyhow::Result<()> {
    let feeds = match args.venue {
        Some(venue) => vec![feed_of(args, venue)?],
        None => config.market.feeds()?,
    };
    anyhow::ensure!(!feeds.is_empty(), "no venue: use --venue and --symbols, or [[market.feeds]] in --config");
    let page = Page::new(args.http, &config.http)?;
    let most = args.seconds.map(Duration::try_from_secs_f64).transpose().context("--seconds")?;
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let publishing = page.as_ref().map(|_| Publishing { is_simulated: false });
    let market = MarketConfig { feeds, publishing, ..MarketConfig::default() };
    stdout::ignore_broken_pipe(follow(market, page, &shutdown, args.json, most))
}

fn follow(
    market: MarketConfig,
    page: Option<Page>,
    shutdown: &Shutdown,
    as_json: bool,
    most: Option<Duration>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let ended = async {
        match most {
            Some(most) => drop(tokio::time::timeout(most, shutdown.clone().requested()).await),
            None => shutdown.clone().requested().await,
        }
    };
    let unreached = |unreached: &Unreached| stdout::print(&connecting(unreached, as_json));
    let Some(running) = launch(market, ended, unreached)? else {
        anyhow::ensure!(shutdown.is_requested(), "market: no venue was reached within --seconds");
        return Ok(());
    };
    let control = page.map(|page| page.serve(&running)).transpose()?;
    if let Some(control) = &control {
        stdout::print(&table::served(control.listen(), as_json)).context("standard output")?;
    }
    let left = most.map(|most| most.saturating_sub(started.elapsed()));
    let shown = table::show(&running.reader(), shutdown, as_json, left);
    if let Some(control) = control {
        control.stop();
    }
    running.stop();
    shown.context("standard output")
}

fn feed_of(args: &Args, venue: Venue) -> anyhow::Result<FeedConfig> {
    anyhow::ensure!(!args.symbols.is_empty(), "no symbols: use --symbols A,B");
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
