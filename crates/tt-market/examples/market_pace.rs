//! Times the shipped functions on captured USD-M frames: `TRUETICK_DATA=... market_pace`.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;
use tt_journal::GzLines;
use tt_market::candle::CandleSource;
use tt_market::{Capacity, Engine, InstrumentSpec, Proof};
use tt_meter::Off;
use tt_model::{Decimal, Nanos};
use tt_venue::event::{Event, EventBuffer};
use tt_venue::{Symbol, Venue};

fn main() {
    let Some(folder) = std::env::var_os("TRUETICK_DATA").map(PathBuf::from) else {
        println!("TRUETICK_DATA is not set");
        return;
    };
    let path = folder.join("binance/usdm_btcusdt_20240808.gz");
    let records: Vec<_> = GzLines::open(&path).expect("the capture opens").map(|r| r.expect("a record")).collect();
    let frames: Vec<(u64, &[u8])> = records.iter().map(|r| (r.ts_ns, &r.payload[..])).collect();
    let is = |kind: &str| {
        let tag = format!("\"e\":\"{kind}\"");
        let has = move |f: &&(u64, &[u8])| f.1[..60].windows(tag.len()).any(|w| w == tag.as_bytes());
        frames.iter().filter(has).copied().collect::<Vec<_>>()
    };
    let mut buffer = EventBuffer::new(10_240, 16);
    for kind in ["bookTicker", "trade", "depthUpdate"] {
        let chosen = is(kind);
        let mut levels = 0;
        let mut best = f64::MAX;
        for _ in 0..12 {
            levels = 0;
            let start = Instant::now();
            for frame in &chosen {
                black_box(Venue::BinanceSpot.parse(black_box(frame.1), &mut buffer).expect("a captured frame parses"));
                levels += buffer.levels().len();
            }
            best = best.min(start.elapsed().as_nanos() as f64);
        }
        let per_level = if levels == 0 { 0.0 } else { best / levels as f64 };
        println!("parse {kind}: {:.1} ns a frame, {per_level:.1} ns a level", best / chosen.len() as f64);
    }
    let start = Instant::now();
    for _ in 0..10_000 {
        black_box(Instant::now());
    }
    pace_events(&frames, start.elapsed().as_nanos() as f64 / 10_000.0);
    pace_tickers(&frames);
    pace_frames(&frames);
}

/// One parsed frame, or the REST snapshot among them.
enum Step<'a> {
    Event(Event, EventBuffer),
    Snapshot(&'a [u8]),
}

fn steps<'a>(frames: &[(u64, &'a [u8])]) -> Vec<(Nanos, Step<'a>)> {
    let step = |(ts, frame): &(u64, &'a [u8])| {
        let mut buffer = EventBuffer::new(frame.windows(2).filter(|w| w == b"[\"").count(), 1);
        let step = match Venue::BinanceSpot.parse(frame, &mut buffer) {
            Ok(event) => Step::Event(event, buffer),
            Err(_) => Step::Snapshot(frame),
        };
        (Nanos(*ts), step)
    };
    frames.iter().map(step).collect()
}

/// Applies the tickers alone, in one run.
fn pace_tickers(frames: &[(u64, &[u8])]) {
    let steps: Vec<_> = steps(frames).into_iter().filter(|step| is_ticker(&step.1)).collect();
    let mut best = f64::MAX;
    for _ in 0..12 {
        let (mut engine, connection, _) = engine(frames[0].0);
        let start = Instant::now();
        for (ts, step) in &steps {
            if let Step::Event(event, buffer) = step {
                let _ = black_box(engine.handle_event(*ts, connection, event, buffer, &mut Off));
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    println!("ticker: {:.1} ns (one candle)", best / steps.len() as f64);
}

fn is_ticker(step: &Step<'_>) -> bool {
    matches!(step, Step::Event(Event::BookTicker(_), _))
}

/// Applies parsed events; the clock's own cost is taken off each delta.
fn pace_events(frames: &[(u64, &[u8])], clock_ns: f64) {
    let steps = steps(frames);
    let (mut best, mut levels) = (f64::MAX, 0);
    for _ in 0..8 {
        let (mut engine, connection, id) = engine(frames[0].0);
        let mut in_deltas = 0.0;
        levels = 0;
        for (ts, step) in &steps {
            match step {
                Step::Snapshot(body) => {
                    engine.handle_snapshot(*ts, id, body, &mut Off).expect("the snapshot joins");
                }
                Step::Event(event @ Event::BookDelta(_), buffer) => {
                    let start = Instant::now();
                    let _ = black_box(engine.handle_event(*ts, connection, event, buffer, &mut Off));
                    in_deltas += start.elapsed().as_nanos() as f64 - clock_ns;
                    levels += buffer.levels().len();
                }
                Step::Event(event, buffer) => {
                    let _ = black_box(engine.handle_event(*ts, connection, event, buffer, &mut Off));
                }
            }
        }
        best = best.min(in_deltas);
    }
    println!("delta: {:.1} ns, {:.2} ns a level", best / 6551.0, best / levels as f64);
}

fn pace_frames(frames: &[(u64, &[u8])]) {
    let mut all = f64::MAX;
    for _ in 0..8 {
        let (mut engine, connection, id) = engine(frames[0].0);
        let start = Instant::now();
        for (ts, frame) in frames {
            if frame.starts_with(b"{\"last") {
                engine.handle_snapshot(Nanos(*ts), id, frame, &mut Off).expect("the snapshot joins");
            } else {
                let _ = black_box(engine.handle_frame(Nanos(*ts), connection, frame, &mut Off));
            }
        }
        all = all.min(start.elapsed().as_nanos() as f64);
        let counters = engine.counters().venue(Venue::BinanceUsdm);
        assert_eq!((counters.oracle_matches, counters.gaps), (629, 0));
        assert!(engine.board().top_of_book(id).is_some_and(|top| top.status.proof != Proof::Stale));
    }
    println!("handle_frame: {:.1} ns a frame", all / frames.len() as f64);
    let mut best = f64::MAX;
    let snapshot = frames.iter().find(|f| f.1.starts_with(b"{\"last")).expect("the capture has a snapshot");
    for _ in 0..50 {
        let (mut engine, _, id) = engine(frames[0].0);
        let start = Instant::now();
        engine.handle_snapshot(Nanos(snapshot.0), id, snapshot.1, &mut Off).expect("the snapshot joins");
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    println!("REST snapshot 1000x2 with parsing, cold: {best:.0} ns");
}

fn engine(ts: u64) -> (Engine, tt_market::ConnectionId, tt_model::InstrumentId) {
    let mut engine = Engine::new(Capacity::default());
    let spec = InstrumentSpec {
        venue: Venue::BinanceUsdm,
        symbol: Symbol::new(b"BTCUSDT").expect("a symbol"),
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 3),
        depth_max: None,
        candles: CandleSource::BestBid,
    };
    let id = engine.add_instrument(spec).expect("there is room");
    let connection = engine.open_connection(Venue::BinanceUsdm, Nanos(ts)).expect("there is room");
    engine.subscribe(connection, id, Nanos(ts)).expect("the connection is open");
    while engine.poll_request(Nanos(ts)).is_some() {}
    (engine, connection, id)
}
