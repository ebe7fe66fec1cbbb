//! Books that nothing can prove: each frame is applied, and the book is that of a model made with a JSON library.

use crate::captured::{Capture, unproved};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tt_journal::Record;
use tt_market::DropReason;
use tt_market::counters::{Counters, VenueCounters};
use tt_market::{Applied, BookUpdate, Capacity, ConnectionId, Engine, InstrumentSpec, Proof, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

/// A number's text in steps of `10^-decimals`, by its digits alone.
fn steps(text: &str, decimals: usize) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (kept, rest) = fraction.split_at(fraction.len().min(decimals));
    assert!(rest.bytes().all(|digit| digit == b'0'), "{text} is finer than {decimals} decimals");
    format!("{whole}{kept:0<decimals$}").parse().unwrap()
}

fn decimals(value: &Value) -> usize {
    value.as_str().unwrap().split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len())
}

/// The levels of one book, by price.
#[derive(Default)]
struct Model {
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
    px_decimals: usize,
    qty_decimals: usize,
}

impl Model {
    fn set(&mut self, is_bid: bool, px: &Value, qty: &Value) {
        let side = if is_bid { &mut self.bids } else { &mut self.asks };
        let (px, qty) =
            (steps(px.as_str().unwrap(), self.px_decimals), steps(qty.as_str().unwrap(), self.qty_decimals));
        if qty == 0 {
            side.remove(&px);
        } else {
            side.insert(px, qty);
        }
    }

    /// The ten best levels of both sides.
    fn best(&self) -> [Vec<(i64, i64)>; 2] {
        let pair = |(px, qty): (&i64, &i64)| (*px, *qty);
        [self.bids.iter().rev().take(10).map(pair).collect(), self.asks.iter().take(10).map(pair).collect()]
    }
}

struct Follower {
    engine: Engine,
    connection: ConnectionId,
    venue: Venue,
}

impl Follower {
    fn new(specs: &[InstrumentSpec], now: Nanos) -> Self {
        let venue = specs[0].venue;
        let mut engine = Engine::new(Capacity { frame_levels: 65_536, overflow_levels: 65_536, ..Capacity::default() });
        let connection = engine.open_connection(venue, now).unwrap();
        for spec in specs {
            let id = engine.add_instrument(*spec).unwrap();
            engine.subscribe(connection, id, now).unwrap();
        }
        Self { engine, connection, venue }
    }

    fn feed(&mut self, now: Nanos, frame: &[u8]) -> Result<Applied, DropReason> {
        self.engine.handle_frame(now, self.connection, frame, &mut Off)
    }

    fn id(&self, symbol: &str) -> InstrumentId {
        self.engine.find_instrument(self.venue, &Symbol::new(symbol.as_bytes()).unwrap()).unwrap()
    }

    fn best(&self, id: InstrumentId) -> [Vec<(i64, i64)>; 2] {
        let depth = self.engine.board().depth(id).unwrap();
        [depth.bids(), depth.asks()].map(|side| side.iter().map(|level| (level.px.0, level.qty.0)).collect())
    }

    fn proof(&self, id: InstrumentId) -> Proof {
        self.engine.board().top_of_book(id).unwrap().status.proof
    }

    fn counters(&self) -> VenueCounters {
        let counters: &Counters = self.engine.counters();
        *counters.venue(self.venue)
    }

    /// What the engine asks for within the longest first wait, by instrument.
    fn requests(&mut self, now: Nanos) -> Vec<Request> {
        let now = now.saturating_add(Nanos::from_millis(50));
        let mut requests: Vec<_> = std::iter::from_fn(|| self.engine.poll_request(now)).collect();
        requests.sort_by_key(|request| match request {
            Request::FetchSnapshot { instrument } | Request::Resubscribe { instrument, .. } => Some(*instrument),
            Request::Pong { .. } | Request::Reconnect { .. } | Request::Replace { .. } => None,
        });
        requests
    }
}

/// The steps of every product, from the digits of all that is said of it.
fn products(frames: &[Record]) -> BTreeMap<String, Model> {
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    for frame in frames {
        let value: Value = serde_json::from_slice(&frame.payload).unwrap();
        let Some(product) = value["product_id"].as_str() else { continue };
        let model = models.entry(product.to_owned()).or_default();
        let levels = ["bids", "asks"].into_iter().flat_map(|side| value[side].as_array().into_iter().flatten());
        let levels = levels.map(|level| (&level[0], &level[1]));
        let changes = value["changes"].as_array().into_iter().flatten().map(|change| (&change[1], &change[2]));
        for (px, qty) in levels.chain(changes) {
            model.px_decimals = model.px_decimals.max(decimals(px));
            model.qty_decimals = model.qty_decimals.max(decimals(qty));
        }
    }
    models
}

#[test]
fn every_coinbase_exchange_frame_is_applied_and_its_ten_books_are_those_of_the_model() {
    let Some(Capture { frames, .. }) = Capture::require_coinbase_exchange() else { return };
    let mut models = products(&frames);
    let spec = |(product, model): (&String, &Model)| {
        let step = |decimals: usize| Decimal::new(1, u8::try_from(decimals).unwrap());
        unproved(Venue::CoinbaseExchange, product, step(model.px_decimals), step(model.qty_decimals))
    };
    let specs: Vec<_> = models.iter().map(spec).collect();
    assert_eq!(specs.len(), 10);
    let mut follower = Follower::new(&specs, Nanos(frames[0].ts_ns));
    for frame in &frames {
        let result = follower.feed(Nanos(frame.ts_ns), &frame.payload);
        assert!(result.is_ok(), "{result:?} {}", String::from_utf8_lossy(&frame.payload));
        let value: Value = serde_json::from_slice(&frame.payload).unwrap();
        let Some(product) = value["product_id"].as_str() else { continue };
        let (id, model) = (follower.id(product), models.get_mut(product).unwrap());
        for side in ["bids", "asks"] {
            for level in value[side].as_array().into_iter().flatten() {
                model.set(side == "bids", &level[0], &level[1]);
            }
        }
        for change in value["changes"].as_array().into_iter().flatten() {
            model.set(change[0] == "buy", &change[1], &change[2]);
        }
        match value["type"].as_str().unwrap() {
            "snapshot" | "l2update" => {
                assert_eq!((follower.best(id), follower.proof(id)), (model.best(), Proof::Unverified));
            }
            "ticker" => {
                let shown = follower.engine.board().ticker(id).unwrap();
                let text = |key: &str| steps(value[key].as_str().unwrap(), model.px_decimals);
                let found = (shown.bid.unwrap().px.0, shown.ask.unwrap().px.0, shown.last_px.0);
                assert_eq!(found, (text("best_bid"), text("best_ask"), text("price")));
            }
            _ => {}
        }
    }
    for (product, model) in &models {
        let held = (model.bids.len(), model.asks.len());
        assert_eq!(follower.engine.levels_len(follower.id(product)), Some(held), "{product}");
    }
    let counters = follower.counters();
    assert_eq!(
        (counters.deltas, counters.snapshots, counters.tickers, counters.trades, counters.controls),
        (9719, 10, 107, 97, 3)
    );
    assert_eq!(counters.history_trades, 10, "the last match of each product");
    assert_eq!((counters.frames, counters.applied, counters.drops_total()), (9946, 9946, 0));
    assert_eq!((counters.resyncs, counters.joins), (0, 10));
    // One snapshot has a quantity of eight whole digits, which no scanner reads.
    assert_eq!(counters.general, counters.controls + 1, "every other frame is scanned");
}

#[test]
fn every_hyperliquid_frame_is_applied_and_the_book_is_the_last_one_sent() {
    let Some(Capture { specs, frames }) = Capture::require_hyperliquid() else { return };
    let mut follower = Follower::new(&specs, Nanos(frames[0].ts_ns));
    let id = follower.id("BTC");
    let mut trades = 0;
    for frame in &frames {
        let result = follower.feed(Nanos(frame.ts_ns), &frame.payload);
        let value: Value = serde_json::from_slice(&frame.payload).unwrap();
        if value["channel"] == "trades" {
            assert_eq!(result, Ok(Applied::Trades));
            trades += value["data"].as_array().unwrap().len() as u64;
            continue;
        }
        assert_eq!(result, Ok(Applied::Book { instrument: id, update: BookUpdate::Snapshot }));
        let mut model = Model { qty_decimals: 5, ..Model::default() };
        for side in [0, 1] {
            for level in value["data"]["levels"][side].as_array().unwrap() {
                model.set(side == 0, &level["px"], &level["sz"]);
            }
        }
        assert_eq!((follower.best(id), follower.proof(id)), (model.best(), Proof::Unverified));
        assert_eq!(follower.engine.levels_len(id), Some((model.bids.len(), model.asks.len())));
    }
    let counters = follower.counters();
    assert_eq!((counters.frames, counters.applied, counters.snapshots), (55, 55, 46));
    assert_eq!((counters.trades + counters.duplicate_trades + counters.history_trades, counters.joins), (trades, 1));
    assert_eq!((counters.general, counters.resyncs), (0, 0));
}

const MS: u64 = 1_775_572_200_000;

/// A message of Coinbase Advanced with one event.
fn advanced(sequence: u64, topic: &str, event: &Value) -> String {
    let time = "2026-04-07T14:30:00.123456789Z";
    json!({"channel": topic, "timestamp": time, "sequence_num": sequence, "events": [event]}).to_string()
}

fn advanced_book(sequence: u64, kind: &str, product: &str, levels: &[(&str, &str, &str)]) -> String {
    let time = "2026-04-07T14:30:00.123456789Z";
    let update = |(side, px, qty): &(&str, &str, &str)| json!({"side": side, "event_time": time, "price_level": px, "new_quantity": qty});
    let updates: Vec<_> = levels.iter().map(update).collect();
    advanced(sequence, "l2_data", &json!({"type": kind, "product_id": product, "updates": updates}))
}

fn two_advanced_books() -> (Follower, [InstrumentId; 2]) {
    let spec = |product| unproved(Venue::CoinbaseAdvanced, product, Decimal::new(1, 2), Decimal::new(1, 8));
    let mut follower = Follower::new(&[spec("BTC-USD"), spec("ETH-USD")], Nanos::from_millis(MS));
    let ids = [follower.id("BTC-USD"), follower.id("ETH-USD")];
    for (sequence, product) in ["BTC-USD", "ETH-USD"].into_iter().enumerate() {
        let levels = [("bid", "10.00", "1"), ("bid", "9.99", "2"), ("offer", "10.01", "3")];
        let frame = advanced_book(sequence as u64, "snapshot", product, &levels);
        assert_eq!(
            follower.feed(Nanos::from_millis(MS), frame.as_bytes()),
            Ok(Applied::Book { instrument: ids[sequence], update: BookUpdate::Snapshot })
        );
    }
    assert_eq!(ids.map(|id| follower.proof(id)), [Proof::Sequence; 2]);
    (follower, ids)
}

#[test]
fn a_gap_in_coinbase_advanced_loses_all_books_of_the_connection_once() {
    let (mut follower, ids) = two_advanced_books();
    let now = Nanos::from_millis(MS);
    let levels = [("offer", "10.01", "0"), ("bid", "10.00", "4"), ("offer", "10.02", "5")];
    let frame = advanced_book(2, "update", "BTC-USD", &levels);
    assert_eq!(
        follower.feed(now, frame.as_bytes()),
        Ok(Applied::Book { instrument: ids[0], update: BookUpdate::Delta })
    );
    let scale = 100_000_000;
    let expected = [vec![(1000, 4 * scale), (999, 2 * scale)], vec![(1002, 5 * scale)]];
    assert_eq!(follower.best(ids[0]), expected);
    assert_eq!(follower.engine.board().top_of_book(ids[0]).unwrap().update_id, 2);
    assert_eq!(follower.feed(now, frame.as_bytes()), Err(DropReason::Duplicate));
    // Message 3 was about something that was not seen.
    let heartbeat = advanced(4, "heartbeats", &json!({"current_time": "2026-04-07", "heartbeat_counter": 9}));
    assert_eq!(follower.feed(now, heartbeat.as_bytes()), Ok(Applied::Control));
    assert_eq!(ids.map(|id| follower.proof(id)), [Proof::Stale; 2]);
    let connection = follower.connection;
    let wanted = ids.map(|instrument| Request::Resubscribe { instrument, connection });
    assert_eq!(follower.requests(now), wanted);
    let late = advanced_book(5, "update", "ETH-USD", &levels);
    assert_eq!(follower.feed(now, late.as_bytes()), Err(DropReason::AwaitingSnapshot));
    let fresh = advanced_book(6, "snapshot", "ETH-USD", &[("bid", "9.00", "1")]);
    assert_eq!(
        follower.feed(now, fresh.as_bytes()),
        Ok(Applied::Book { instrument: ids[1], update: BookUpdate::Snapshot })
    );
    assert_eq!(ids.map(|id| follower.proof(id)), [Proof::Stale, Proof::Sequence]);
    assert_eq!(follower.requests(now), []);
    let counters = follower.counters();
    assert_eq!((counters.gaps, counters.resyncs, counters.closes()), (1, 2, true));
}

#[test]
fn a_message_of_a_topic_that_is_not_read_is_no_gap() {
    let (mut follower, ids) = two_advanced_books();
    let now = Nanos::from_millis(MS);
    let novel = advanced(2, "novelty", &json!({}));
    assert_eq!(follower.feed(now, novel.as_bytes()), Err(DropReason::UnknownTopic));
    let frame = advanced_book(3, "update", "ETH-USD", &[("bid", "10.00", "0")]);
    assert_eq!(
        follower.feed(now, frame.as_bytes()),
        Ok(Applied::Book { instrument: ids[1], update: BookUpdate::Delta })
    );
    assert_eq!(follower.counters().gaps, 0);
}
