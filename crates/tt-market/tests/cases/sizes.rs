//! Books of more levels than there is room for: what is kept, what it takes, and what readers see.

use crate::wire::{Rig, SYMBOL};
use allocation_counter::measure;
use std::fmt::Write;
use std::time::{Duration, Instant};
use testkit::cpu_time;
use tt_market::candle::CandleSource;
use tt_market::{BookSide, Capacity, Engine, InstrumentSpec, Proof};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

const LEVELS: u64 = 1_000_000;
/// Changes in a frame.
const CHANGES: u64 = 10;
/// All memory that the engine below may ever take.
const BUDGET_BYTES: u64 = 8 << 20;

fn capacity() -> Capacity {
    Capacity {
        instruments: 1,
        connections: 1,
        pages: 4096,
        overflow_levels: 4096,
        backlogs: 1,
        backlog_levels: 4096,
        ..Capacity::default()
    }
}

/// The bids of `order`, ten in a frame, as Coinbase Exchange writes them: prices from 100.0 on in tenths.
fn frame(text: &mut String, order: impl Fn(u64) -> u64, first: u64) {
    text.clear();
    write!(text, "{{\"type\":\"l2update\",\"product_id\":\"{SYMBOL}\",\"changes\":[").unwrap();
    for i in first..first + CHANGES {
        let (px, comma) = (1000 + order(i), if i == first { "" } else { "," });
        write!(text, "{comma}[\"buy\",\"{}.{}\",\"1.000\"]", px / 10, px % 10).unwrap();
    }
    text.push_str("],\"time\":\"2023-11-14T22:13:20.000000Z\"}");
}

#[test]
fn case_m34_a_million_levels_keep_to_their_memory() {
    let scattered = |i: u64| i * 618_034_003 % LEVELS;
    let orders: [(&str, &dyn Fn(u64) -> u64); 3] =
        [("ascending", &|i| i), ("descending", &|i| LEVELS - 1 - i), ("random", &scattered)];
    for (name, order) in orders {
        let spec = InstrumentSpec {
            venue: Venue::CoinbaseExchange,
            symbol: Symbol::new(SYMBOL.as_bytes()).unwrap(),
            tick_size: Decimal::new(1, 1),
            lot_size: Decimal::new(1, 3),
            depth_max: None,
            candles: CandleSource::Trades,
        };
        let mut built = None;
        let taken = measure(|| {
            let mut engine = Engine::new(capacity());
            let id = engine.add_instrument(spec).unwrap();
            built = Some((engine, id));
        });
        let (mut engine, id) = built.unwrap();
        let mut now = Nanos::from_millis(1_700_000_000_000);
        let connection = engine.open_connection(Venue::CoinbaseExchange, now).unwrap();
        engine.subscribe(connection, id, now).unwrap();
        let whole = format!("{{\"type\":\"snapshot\",\"product_id\":\"{SYMBOL}\",\"bids\":[],\"asks\":[]}}");
        engine.handle_frame(now, connection, whole.as_bytes(), &mut Off).unwrap();
        let mut text = String::with_capacity(4096);
        let mut times_ns = Vec::with_capacity((LEVELS / CHANGES) as usize);
        for first in (0..LEVELS).step_by(CHANGES as usize) {
            frame(&mut text, order, first);
            now = now.saturating_add(Nanos(1000));
            let start = Instant::now();
            let used = measure(|| engine.handle_frame(now, connection, text.as_bytes(), &mut Off).map(drop).unwrap());
            times_ns.push(start.elapsed().as_nanos() as u64);
            assert_eq!(used.count_total, 0, "{name}: nothing is allocated");
        }
        times_ns.sort_unstable();
        let per_mille = |rank: usize| times_ns[times_ns.len() * rank / 1000];
        let (kept, _) = engine.levels_len(id).unwrap();
        let top = engine.board().top_of_book(id).unwrap();
        println!(
            "{name}: {} bytes, {kept} levels kept, frame of {CHANGES} levels p50 {} ns, p99.9 {} ns, max {} ns",
            taken.bytes_max,
            per_mille(500),
            per_mille(999),
            times_ns[times_ns.len() - 1]
        );
        assert!(taken.bytes_max <= BUDGET_BYTES, "{name}: {} bytes", taken.bytes_max);
        assert!(engine.pages_used() <= 1024 && kept <= 1024 * 64 + 4096, "{name}: {kept}");
        // What is kept is the best of it, in order, and readers know that it is not all.
        let depth = engine.board().depth(id).unwrap();
        let best: Vec<i64> = depth.bids().iter().map(|level| level.px.0).collect();
        assert_eq!(
            best,
            (0..best.len() as i64).map(|rank| 1000 + LEVELS as i64 - 1 - rank).collect::<Vec<_>>(),
            "{name}"
        );
        assert!(kept >= 4096 && top.status.is_truncated, "{name}: {kept}");
        assert_eq!(top.status.proof, Proof::Unverified, "{name}");
    }
}

/// Within one second, all of them far below a touch that stays where it is.
#[test]
fn case_m35_a_flood_of_far_prices_is_capped_and_flagged() {
    for venue in [Venue::BinanceSpot, Venue::Deribit, Venue::CoinbaseExchange, Venue::CoinbaseAdvanced] {
        let mut rig = Rig::live(venue);
        let touch = rig.touch();
        assert!(!rig.top().status.is_truncated, "{venue:?}");
        let mut prices = Vec::new();
        for batch in 0..1000_u64 {
            prices.clear();
            prices.extend((0..1000).map(|i| format!("{}.5", 1_000_000 + (batch * 1000 + i) * 7)));
            let far: Vec<_> = prices.iter().map(|px| (px.as_str(), "1.000")).collect();
            // The venue's own book of a million levels is of no use here.
            rig.wire.id += 1;
            let frame = rig.wire.frame(false, [&[], &far], rig.wire.id - 1, 0);
            rig.frame(&frame).unwrap();
        }
        let status = rig.top().status;
        assert_eq!((rig.touch(), status.proof, status.is_truncated), (touch, rig.best_proof(), true), "{venue:?}");
        let (bids, asks) = rig.engine.levels_len(rig.id).unwrap();
        assert!(bids == 2 && asks <= 64 * 256 + 4096, "{venue:?}: {asks}");
        assert_eq!((rig.counters().resyncs, rig.requests(5000)), (0, vec![]), "{venue:?}");
        // The next book of that instrument, and the other one, have room again.
        assert_eq!(rig.engine.board().top_of_book(InstrumentId(1)).map(|top| top.status.is_truncated), Some(false));
        let _ = rig.frame("{\"");
        rig.requests(5000);
        rig.answer();
        assert!(!rig.top().status.is_truncated && rig.proof() == rig.best_proof(), "{venue:?}");
    }
}

/// What a message of a whole book holds at venues that send all levels: tens of thousands of each side.
#[test]
fn a_message_of_a_hundred_thousand_levels_is_the_whole_book() {
    const SIDE: i64 = 50_000;
    let px = |tenths: i64| format!("{}.{}", tenths / 10, tenths % 10);
    let qty = |thousandths: i64| format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    // Each quantity is another one, so that no two levels can be confused.
    let sides = [BookSide::Bid, BookSide::Ask].map(|side| {
        let sign = if side == BookSide::Bid { -1 } else { 1 };
        (1..=SIDE).map(|rank| (600_000 + sign * rank, 2 * rank + (1 + sign) / 2)).collect::<Vec<_>>()
    });
    for venue in [Venue::CoinbaseAdvanced, Venue::CoinbaseExchange, Venue::Deribit] {
        let mut wire = Rig::new(venue).wire;
        let mut engine = Engine::new(Capacity { instruments: 1, connections: 1, ..Capacity::default() });
        let spec = InstrumentSpec {
            venue,
            symbol: Symbol::new(SYMBOL.as_bytes()).unwrap(),
            tick_size: Decimal::new(1, 1),
            lot_size: Decimal::new(1, 3),
            depth_max: None,
            candles: CandleSource::Trades,
        };
        let id = engine.add_instrument(spec).unwrap();
        let now = Nanos::from_millis(1_700_000_000_000);
        let connection = engine.open_connection(venue, now).unwrap();
        engine.subscribe(connection, id, now).unwrap();
        // The same of a hundredth of the levels: no level costs more in a long message than in a short one.
        let of = |levels: &[(i64, i64)]| levels.iter().map(|one| (px(one.0), qty(one.1))).collect::<Vec<_>>();
        let short = sides.each_ref().map(|side| of(&side[..SIDE as usize / 100]));
        let [bids, asks] =
            short.each_ref().map(|side| side.iter().map(|(px, qty)| (px.as_str(), qty.as_str())).collect::<Vec<_>>());
        let mut short_time = Duration::ZERO;
        for _ in 0..100 {
            wire.id += 1;
            let frame = wire.frame(true, [&bids, &asks], wire.id - 1, 0);
            let start = cpu_time();
            engine.handle_frame(now, connection, frame.as_bytes(), &mut Off).unwrap();
            short_time += cpu_time() - start;
        }
        let held = |engine: &Engine, side| {
            engine.levels(id, side).unwrap().map(|level| (level.px.0, level.qty.0)).collect::<Vec<_>>()
        };
        let texts = sides.each_ref().map(|side| side.iter().map(|one| (px(one.0), qty(one.1))).collect::<Vec<_>>());
        let [bids, asks] =
            texts.each_ref().map(|side| side.iter().map(|(px, qty)| (px.as_str(), qty.as_str())).collect::<Vec<_>>());
        wire.id += 1;
        let whole = wire.frame(true, [&bids, &asks], wire.id - 1, 0);
        let start = cpu_time();
        let used = measure(|| engine.handle_frame(now, connection, whole.as_bytes(), &mut Off).map(drop).unwrap());
        let time = cpu_time() - start;
        println!("{venue:?}: {} bytes in {time:?}, as many levels in short messages in {short_time:?}", whole.len());
        assert_eq!(used.count_total, 0, "{venue:?}: nothing is allocated");
        assert!(time < short_time * 4, "{venue:?}: {time:?}, in short messages {short_time:?}");
        let status = engine.board().top_of_book(id).unwrap().status;
        assert!(
            !status.is_truncated && status.proof.is_verified() == venue.rules().is_provable(),
            "{venue:?}: {status:?}"
        );
        assert_eq!([BookSide::Bid, BookSide::Ask].map(|side| held(&engine, side)), sides, "{venue:?}");
        // The last level of one side changes, that of the other goes.
        let [mut changed, mut gone] = sides.each_ref().map(|side| side.clone());
        changed.last_mut().unwrap().1 = 7;
        let (last, away) = (px(changed.last().unwrap().0), px(gone.pop().unwrap().0));
        wire.id += 1;
        let delta = wire.frame(false, [&[(last.as_str(), "0.007")], &[(away.as_str(), "0.000")]], wire.id - 1, 0);
        engine.handle_frame(now, connection, delta.as_bytes(), &mut Off).unwrap();
        assert_eq!([BookSide::Bid, BookSide::Ask].map(|side| held(&engine, side)), [changed, gone], "{venue:?}");
    }
}
