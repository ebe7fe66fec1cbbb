//! The simulated venues and how the market engine follows them.

use anyhow::{Context as _, Result};
use market_feed::{Credentials, FeedConfig, OpenPosition};
use tt_model::Decimal;
use tt_venue::Venue;
use tt_venue::rules::TopicKind;

/// Starts the venues on free ports of loopback.
pub(crate) fn start(instruments: u32, rate_hz: f64, seed: u64) -> Result<sim::Running> {
    start_with(sim::Config { instruments, rate_hz, seed, ..sim::Config::default() })
}

pub(crate) fn start_with(config: sim::Config) -> Result<sim::Running> {
    sim::start(config).context("simulated venues")
}

/// Returns feeds of every instrument of every venue. Books are as deep as the simulator's where a venue offers that.
pub(crate) fn feeds(venues: &sim::Running) -> Result<Vec<FeedConfig>> {
    sim::Venue::ALL.into_iter().map(|simulated| feed(venues, simulated)).collect()
}

/// Returns the account that the simulated venues know.
pub(crate) fn account() -> Credentials {
    Credentials::new(sim::API_KEY, sim::API_SECRET, sim::PASSPHRASE)
}

fn feed(venues: &sim::Running, simulated: sim::Venue) -> Result<FeedConfig> {
    let venue = Venue::find(simulated.name()).with_context(|| format!("{}: unknown venue", simulated.name()))?;
    let symbols = venues.instruments(simulated).into_iter().map(|listed| listed.symbol).collect();
    let streams = format!("ws://{}{}", venues.address(simulated), simulated.streams_path());
    let mut feed = FeedConfig::at(venue, streams.parse().context("a venue's address")?, symbols);
    let is_enough = |depth: &&u32| venues.levels().is_some_and(|levels| **depth >= levels);
    feed.ask_depth(venue.rules().depths.iter().find(is_enough).copied())?;
    feed.listen_key = simulated.listen_key().map(str::to_owned);
    if venue.rules().default_topics().any(|topic| topic.kind == TopicKind::MarkPrice) {
        // A position in the first instrument, so that mark prices have something to value.
        let first = feed.symbols.first().cloned().into_iter();
        let entry_px = Decimal::new(61_800, 0);
        feed.positions = first.map(|symbol| OpenPosition { symbol, lots: 250, entry_px }).collect();
    }
    feed.also.extend(simulated.has_liquidations().then_some(TopicKind::Liquidations));
    Ok(feed)
}
