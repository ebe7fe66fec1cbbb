//! After its creation an engine allocates nothing.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use allocation_counter::measure;
use tt_market::candle::CandleSource;
use tt_market::{BookSide, Capacity, ConnectionId, Engine, InstrumentSpec};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

const MS: u64 = 1_700_000_000_000;

fn engine(venue: Venue) -> (Engine, ConnectionId, InstrumentId) {
    let mut engine = Engine::new(Capacity { instruments: 2, pages: 200, overflow_levels: 64, ..Capacity::default() });
    let spec = InstrumentSpec {
        venue,
        symbol: Symbol::new(b"BTCUSDT").unwrap(),
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 3),
        depth_max: None,
        candles: CandleSource::BestBid,
    };
    let id = engine.add_instrument(spec).unwrap();
    let connection = engine.open_connection(venue, Nanos::from_millis(MS)).unwrap();
    (engine, connection, id)
}

/// Subscribes, joins, loses and resumes a book, with levels all over the place and beyond every capacity. Each frame
/// comes with the snapshot that the venue would have at that time.
fn exercise(engine: &mut Engine, connection: ConnectionId, id: InstrumentId, frames: &[(String, String)]) {
    engine.subscribe(connection, id, Nanos::from_millis(MS)).unwrap();
    for (i, (frame, body)) in frames.iter().enumerate() {
        let now = Nanos::from_millis(MS + 10 * i as u64);
        let _ = engine.handle_frame(now, connection, frame.as_bytes(), &mut Off);
        while engine.poll_request(now).is_some() {
            let _ = engine.handle_snapshot(now, id, body.as_bytes(), &mut Off);
        }
        engine.handle_timeout(now);
    }
    engine.publish_counters();
}

#[test]
fn frames_gaps_and_resyncs_allocate_nothing() {
    let mut frames = Vec::new();
    let mut seed = 9_u64;
    for i in 1..4000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (px, qty) = ((seed >> 40) % 9_000_000, seed >> 60);
        // Every hundredth number is missing; every fiftieth frame is broken.
        let id = i + i / 100;
        let level = format!("[\"{px}.5\",\"{qty}\"]");
        let sides =
            if seed >> 33 & 1 == 0 { [level, String::new()] } else { [String::new(), level.replacen('"', "\"1", 1)] };
        let end = if i % 50 == 7 { "" } else { "}" };
        let head = format!("\"e\":\"depthUpdate\",\"E\":{MS},\"s\":\"BTCUSDT\",\"U\":{id},\"u\":{id}");
        let delta = format!("{{{head},\"b\":[{}],\"a\":[{}]{end}", sides[0], sides[1]);
        let ticker = format!("{{\"u\":1,\"s\":\"BTCUSDT\",\"b\":\"{px}.5\",\"B\":\"1\",\"a\":\"{px}.6\",\"A\":\"2\"}}");
        let body = format!("{{\"lastUpdateId\":{id},\"bids\":[[\"10.0\",\"1\"]],\"asks\":[[\"10.1\",\"3\"]]}}");
        frames.push((delta, body.clone()));
        frames.push((ticker, body));
    }
    let (mut engine, connection, id) = engine(Venue::BinanceSpot);
    let used = measure(|| exercise(&mut engine, connection, id, &frames));
    assert_eq!(used.count_total, 0);
    engine.follow_changes(64);
    let mut changed = 0;
    let used = measure(|| {
        for half in frames.chunks(frames.len() / 100) {
            exercise(&mut engine, connection, id, half);
            while let Some(event) = engine.poll_book_event() {
                changed += event.changes.len();
            }
            let sides = [BookSide::Bid, BookSide::Ask];
            changed += sides.into_iter().map(|side| engine.levels(id, side).map_or(0, Iterator::count)).sum::<usize>();
        }
    });
    assert_eq!(used.count_total, 0);
    assert!(changed > 100, "{changed}");
    let counters = engine.counters().venue(Venue::BinanceSpot);
    assert!(counters.closes() && counters.deltas > 100 && counters.resyncs > 10, "{counters:?}");
}

#[test]
fn orders_come_and_go_at_full_capacity_without_allocation() {
    let (mut engine, connection, _) = engine(Venue::BinanceUsdm);
    let now = Nanos::from_millis(MS);
    let frame = |id: u64, state: &str| {
        let order = format!(
            "\"s\":\"BTCUSDT\",\"S\":\"SELL\",\"q\":\"2\",\"p\":\"1\",\"X\":\"{state}\",\"i\":{id},\"l\":\"0\",\"z\":\"0\",\"t\":0"
        );
        format!("{{\"e\":\"ORDER_TRADE_UPDATE\",\"T\":{MS},\"E\":{MS},\"o\":{{{order}}}}}")
    };
    let mut total = 0;
    for id in 0..40_000_u64 {
        let (new, old) = (frame(id * 7919, "NEW"), frame(id.saturating_sub(4000) * 7919, "CANCELED"));
        let used = measure(|| {
            engine.handle_frame(now, connection, new.as_bytes(), &mut Off).unwrap();
            if id >= 4000 {
                engine.handle_frame(now, connection, old.as_bytes(), &mut Off).unwrap();
            }
        });
        total += used.count_total;
    }
    assert_eq!((total, engine.orders_len()), (0, 4000));
}
