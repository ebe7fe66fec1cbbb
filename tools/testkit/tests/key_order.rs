//! The simulated venues write their keys in the order in which the venues do, which the engine's scanners expect.

use std::collections::BTreeSet;

use sim::RecordingConfig;
use tt_venue::Venue;
use tt_venue::event::{Event, EventBuffer};

/// 2026-08-01 00:00:00 UTC.
const START_UNIX_US: u64 = 1_785_542_400_000_000;

/// The content of a market or account event; `None` for events of the connection only.
const fn news(event: &Event) -> Option<&'static str> {
    match event {
        Event::BookTicker(_) => Some("best quotes"),
        Event::BookDelta(_) => Some("book deltas"),
        Event::BookSnapshot(_) => Some("book snapshots"),
        Event::BookOrders(_) => Some("orders of a book"),
        Event::Trades => Some("trades"),
        Event::Tickers => Some("tickers"),
        Event::MarkPrice(_) => Some("mark prices"),
        Event::Candles => Some("candles"),
        Event::Liquidations => Some("liquidations"),
        Event::OrderUpdates => Some("order updates"),
        Event::Account => Some("account"),
        Event::OrderList(_) | Event::Control(_) => None,
    }
}

#[test]
fn no_scanner_leaves_a_healthy_venues_news_to_the_general_path() {
    const BOOK: &[&str] = &["book deltas", "book snapshots", "tickers", "trades"];
    const SPOT: &[&str] = &["best quotes", "book deltas", "book snapshots", "order updates", "tickers", "trades"];
    let venues: [(_, _, &[&str]); 6] = [
        (sim::Venue::BinanceSpot, Venue::BinanceSpot, SPOT),
        (sim::Venue::BinanceUsdm, Venue::BinanceUsdm, &[SPOT, &["mark prices"]].concat()),
        (sim::Venue::Kraken, Venue::Kraken, BOOK),
        (sim::Venue::Okx, Venue::Okx, BOOK),
        (sim::Venue::Bybit, Venue::BybitLinear, BOOK),
        (sim::Venue::Deribit, Venue::Deribit, BOOK),
    ];
    let mut buffer = EventBuffer::new(1 << 16, 64);
    for (simulated, venue, expected) in venues {
        let mut seen = BTreeSet::new();
        let config =
            RecordingConfig { venue: simulated, seed: 1, steps: 2000, start_unix_us: START_UNIX_US, step_us: 40_000 };
        for frame in sim::record(&config) {
            let (frame, bytes) = (&frame.text, frame.text.as_bytes());
            let event = if frame.starts_with("{\"lastUpdateId\"") {
                (venue.rules().snapshot.expect("by REST").parse)(bytes, &mut buffer).map(Event::BookSnapshot)
            } else {
                venue.parse(bytes, &mut buffer)
            };
            let event = event.unwrap_or_else(|fault| panic!("{venue:?}: {fault:?} {frame}"));
            if let Some(news) = news(&event) {
                assert!(!buffer.is_general(), "{venue:?} {news}: {frame}");
                seen.insert(news);
            }
        }
        let expected: BTreeSet<_> = expected.iter().copied().collect();
        assert_eq!(seen, expected, "{venue:?}");
    }
}
