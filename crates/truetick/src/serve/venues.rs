//! The simulated venues and how the market engine follows them.

use anyhow::{Context as _, Result};

use crate::market::{FeedConfig, OpenPosition};

/// Each simulated venue, the engine's name of it, and where its streams are.
const VENUES: [(sim::Venue, tt_market::Venue, &str); 6] = [
    (sim::Venue::BinanceSpot, tt_market::Venue::BinanceSpot, "/stream"),
    (sim::Venue::BinanceUsdm, tt_market::Venue::BinanceUsdm, "/stream"),
    (sim::Venue::Kraken, tt_market::Venue::Kraken, "/v2"),
    (sim::Venue::Okx, tt_market::Venue::Okx, "/ws/v5/public"),
    (sim::Venue::Bybit, tt_market::Venue::BybitLinear, "/v5/public/linear"),
    (sim::Venue::Deribit, tt_market::Venue::Deribit, "/ws/api/v2"),
];

/// The simulated venues.
pub(super) const ALL: [sim::Venue; 6] = [VENUES[0].0, VENUES[1].0, VENUES[2].0, VENUES[3].0, VENUES[4].0, VENUES[5].0];

/// Starts the venues on free ports of loopback.
pub(crate) fn start(instruments: u32, rate_hz: f64, seed: u64) -> Result<sim::Running> {
    sim::start(sim::Config { instruments, rate_hz, seed, ..sim::Config::default() }).context("simulated venues")
}

/// Feeds of every instrument of every venue.
pub(crate) fn feeds(venues: &sim::Running) -> Result<Vec<FeedConfig>> {
    let feed = |&(simulated, venue, path): &(sim::Venue, tt_market::Venue, &str)| {
        let symbols = venues.instruments(simulated).into_iter().map(|listed| listed.symbol).collect();
        let streams = format!("ws://{}{path}", venues.address(simulated)).parse().context("a venue's address")?;
        let mut feed = FeedConfig::at(venue, streams, symbols);
        let is_binance = matches!(simulated, sim::Venue::BinanceSpot | sim::Venue::BinanceUsdm);
        feed.listen_key = is_binance.then(|| sim::LISTEN_KEY.to_owned());
        if venue == tt_market::Venue::BinanceUsdm {
            // A position in the first instrument, so that mark prices have something to value.
            let first = feed.symbols.first().cloned().into_iter();
            let entry_px = tt_market::Decimal::new(61_800, 0);
            feed.positions = first.map(|symbol| OpenPosition { symbol, lots: 250, entry_px }).collect();
        }
        Ok(feed)
    };
    VENUES.iter().map(feed).collect()
}
