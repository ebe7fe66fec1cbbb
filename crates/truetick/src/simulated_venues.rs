//! The simulated venues and how the market engine follows them.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use market_feed::{Credentials, FeedConfig, OpenPosition};
use sim::Fault;
use tt_model::Decimal;
use tt_status::market_feeds::Simulator;
use tt_venue::Venue;
use tt_venue::rules::TopicKind;

/// Starts the venues on free ports of loopback.
pub(crate) fn start(instruments: u32, rate_hz: f64, seed: u64) -> Result<sim::Running> {
    sim::start(sim::Config { instruments, rate_hz, seed, ..sim::Config::default() }).context("simulated venues")
}

/// Returns feeds of every instrument of every venue.
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

/// The faults that visitors of the page may inject.
pub(crate) struct Faults(pub(crate) Arc<sim::Running>);

/// A lost update, a repeated one, two swapped ones, a changed digit, and a connection that goes silent.
const FAULTS: [Fault; 5] = [Fault::Drop, Fault::Duplicate, Fault::Swap, Fault::FlipDigit, Fault::HalfOpen];

impl Simulator for Faults {
    fn faults(&self) -> Vec<&'static str> {
        FAULTS.map(Fault::name).to_vec()
    }

    fn inject(&self, venue: &str, symbol: &str, fault: &str) -> Result<(), String> {
        let of = sim::Venue::ALL.into_iter().find(|of| of.name() == venue);
        let of = of.ok_or_else(|| format!("no simulated venue `{venue}`"))?;
        let index = self.0.instruments(of).iter().position(|listed| listed.symbol == symbol);
        let index = index.ok_or_else(|| format!("{venue} has no symbol `{symbol}`"))?;
        let fault =
            FAULTS.into_iter().find(|known| known.name() == fault).ok_or_else(|| format!("no fault `{fault}`"))?;
        self.0.fault(of, index, fault);
        Ok(())
    }
}
