//! `truetick up`: the books of a venue on a page, in the JSON API and in streams, with one line.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use market_feed::FeedConfig;
use tt_venue::Venue;

use crate::config::Config;
use crate::market::{self, Following};
use crate::simulated_venues;

/// Flags of `truetick up`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Venue
    #[arg(long, value_parser = market::venue, required_unless_present = "simulated")]
    venue: Option<Venue>,
    /// Symbols as the venue writes them, such as BTCUSDT,ETHUSDT or BTC/USD
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "venue", required_unless_present = "simulated")]
    symbols: Vec<String>,
    /// Follow simulated venues on this machine, without a network [default: all of them]
    #[arg(long)]
    simulated: bool,
    /// Address of the page, metrics, JSON API and WebSocket streams [default: `listen` in `[http]`, or 127.0.0.1:9641]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

/// Instruments of each simulated venue, and its book updates per second over all of them.
const SIMULATED: (u32, f64) = (3, 200.0);

/// Runs until a signal or `--seconds` stops it.
///
/// # Errors
/// Invalid flags, an address in use, or a venue that lists none of the symbols.
pub(crate) fn run(args: &Args, config: &Config) -> Result<()> {
    let (instruments, rate) = SIMULATED;
    let venues = args.simulated.then(|| simulated_venues::start(instruments, rate, 1)).transpose()?;
    let feeds = match (&venues, args.venue) {
        (Some(venues), chosen) => simulated(venues, chosen, &args.symbols)?,
        (None, Some(venue)) => vec![FeedConfig::public(venue, args.symbols.clone())],
        (None, None) => Vec::new(),
    };
    let http = args.http.or(config.http.listen).unwrap_or(control::DEFAULT_LISTEN);
    let following = Following { http: Some(http), as_json: false, seconds: args.seconds, is_simulated: args.simulated };
    market::follow_feeds(feeds, false, &following, config)
}

/// The feeds of the simulated venues: of all, or of `chosen` with its `symbols`.
fn simulated(venues: &sim::Running, chosen: Option<Venue>, symbols: &[String]) -> Result<Vec<FeedConfig>> {
    let mut feeds = simulated_venues::feeds(venues)?;
    let Some(venue) = chosen else { return Ok(feeds) };
    feeds.retain(|feed| feed.venue == venue);
    let feed = feeds.first_mut().with_context(|| format!("--simulated: there is no simulated {}", venue.name()))?;
    if !symbols.is_empty() {
        let unknown = symbols.iter().find(|symbol| !feed.symbols.contains(symbol));
        ensure!(unknown.is_none(), "--symbols: the simulated {} has {}", venue.name(), feed.symbols.join(", "));
        feed.symbols = symbols.to_vec();
        feed.positions.retain(|position| symbols.contains(&position.symbol));
    }
    Ok(feeds)
}
