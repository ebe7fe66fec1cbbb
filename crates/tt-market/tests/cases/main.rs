//! What may go wrong between a venue and a book (M01 to M46 of `cases.toml`), on made-up frames.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

mod books;
mod checksums;
mod comparison;
mod connections;
mod freshness;
mod numbers;
mod readers;
mod sequences;
mod sizes;
mod speed;
mod texts;
mod venues;
mod wire;

use tt_market::DropReason;
use tt_market::board::TopOfBook;
use tt_market::candle::CandleSource;
use tt_market::mark::Position;
use tt_market::{
    AddError, Applied, BookUpdate, Capacity, ConnectionId, Engine, Incident, IncidentCause, InstrumentSpec,
};
use tt_market::{Proof, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::event::{OrderId, OrderStatus};
use tt_venue::{Symbol, Venue};

const MS: u64 = 1_700_000_000_000;

struct Bench {
    engine: Engine,
    id: InstrumentId,
    connection: ConnectionId,
    venue: Venue,
    now: Nanos,
}

impl Bench {
    fn new(venue: Venue) -> Self {
        let mut engine = Engine::new(Capacity { instruments: 4, pages: 64, ..Capacity::default() });
        let spec = |symbol: &[u8]| InstrumentSpec {
            venue,
            symbol: Symbol::new(symbol).unwrap(),
            tick_size: Decimal::new(1, 1),
            lot_size: Decimal::new(1, 3),
            depth_max: venue.rules().truncates.then_some(25),
            candles: CandleSource::Trades,
        };
        let id = engine.add_instrument(spec(b"BTCUSDT")).unwrap();
        let other = engine.add_instrument(spec(b"ETHUSDT")).unwrap();
        let now = Nanos::from_millis(MS);
        let connection = engine.open_connection(venue, now).unwrap();
        engine.subscribe(connection, id, now).unwrap();
        engine.subscribe(connection, other, now).unwrap();
        Self { engine, id, connection, venue, now }
    }

    fn frame(&mut self, frame: &str) -> Result<Applied, DropReason> {
        self.now = self.now.saturating_add(Nanos(1000));
        let result = self.engine.handle_frame(self.now, self.connection, frame.as_bytes(), &mut Off);
        assert!(self.engine.counters().venue(self.venue).closes());
        result
    }

    fn spot(&mut self, first: u64, last: u64, bids: &str, asks: &str) -> Result<Applied, DropReason> {
        let ids = format!("\"U\":{first},\"u\":{last}");
        self.frame(&format!(
            "{{\"e\":\"depthUpdate\",\"E\":{MS},\"s\":\"BTCUSDT\",{ids},\"b\":[{bids}],\"a\":[{asks}]}}"
        ))
    }

    fn usdm(&mut self, first: u64, last: u64, previous: u64) -> Result<Applied, DropReason> {
        let ids = format!("\"U\":{first},\"u\":{last},\"pu\":{previous}");
        let times = format!("\"E\":{MS},\"T\":{MS}");
        self.frame(&format!(
            "{{\"e\":\"depthUpdate\",{times},\"s\":\"BTCUSDT\",{ids},\"b\":[[\"9.9\",\"{last}\"]],\"a\":[]}}"
        ))
    }

    fn snapshot(&mut self, last_id: u64) -> Result<Applied, DropReason> {
        let levels = "\"bids\":[[\"10.0\",\"1.000\"],[\"9.9\",\"2\"]],\"asks\":[[\"10.1\",\"3\"]]";
        let body = format!("{{\"lastUpdateId\":{last_id},{levels}}}");
        self.engine.handle_snapshot(self.now, self.id, body.as_bytes(), &mut Off)
    }

    /// What the engine asks for within the longest first wait.
    fn requests(&mut self) -> Vec<Request> {
        let id = self.id;
        self.now = self.now.saturating_add(Nanos::from_millis(50));
        let requests = std::iter::from_fn(|| self.engine.poll_request(self.now));
        let own = |request: &Request| match request {
            Request::FetchSnapshot { instrument } | Request::Resubscribe { instrument, .. } => *instrument == id,
            Request::Reconnect { .. } | Request::Pong { .. } | Request::Replace { .. } => true,
        };
        requests.filter(own).collect()
    }

    fn top(&self) -> TopOfBook {
        self.engine.board().top_of_book(self.id).unwrap()
    }

    fn fetch(&self) -> Vec<Request> {
        vec![Request::FetchSnapshot { instrument: self.id }]
    }

    /// A spot book that is live at update 110.
    fn live_spot() -> Self {
        let mut bench = Self::new(Venue::BinanceSpot);
        assert_eq!(bench.requests(), bench.fetch());
        bench.spot(101, 110, "", "").unwrap();
        bench.snapshot(100).unwrap();
        assert_eq!((bench.top().status.proof, bench.top().update_id), (Proof::Sequence, 110));
        bench
    }
}

#[test]
fn case_m01_a_delta_before_the_snapshot_is_kept_and_nothing_shown() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    assert_eq!(bench.requests(), bench.fetch());
    assert_eq!(
        bench.spot(101, 110, "[\"10.0\",\"5\"]", ""),
        Ok(Applied::Book { instrument: bench.id, update: BookUpdate::Buffered })
    );
    assert_eq!((bench.top().bid, bench.top().status.proof), (None, Proof::Syncing));
}

#[test]
fn case_m02_a_snapshot_older_than_the_first_kept_delta_is_fetched_again_later() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    assert_eq!(bench.requests(), bench.fetch());
    bench.spot(101, 110, "", "").unwrap();
    assert_eq!(bench.snapshot(99), Err(DropReason::SnapshotTooOld));
    assert_eq!(bench.requests(), [], "not before its wait");
    bench.now = bench.now.saturating_add(Nanos::from_secs(1));
    assert_eq!(bench.requests(), bench.fetch());
    assert_eq!(bench.requests(), [], "once");
    bench.snapshot(100).unwrap();
    assert_eq!(bench.top().status.proof, Proof::Sequence);
}

#[test]
fn case_m03_deltas_during_the_fetch_are_replayed() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    bench.requests();
    bench.spot(90, 95, "[\"10.0\",\"7\"]", "").unwrap();
    bench.spot(96, 103, "[\"10.0\",\"8.5\"]", "").unwrap();
    bench.spot(104, 104, "[\"9.9\",\"0\"]", "[\"10.2\",\"4\"]").unwrap();
    bench.snapshot(98).unwrap();
    let depth = bench.engine.board().depth(bench.id).unwrap();
    assert_eq!(depth.bids().iter().map(|l| (l.px.0, l.qty.0)).collect::<Vec<_>>(), [(100, 8500)]);
    assert_eq!(depth.asks().iter().map(|l| (l.px.0, l.qty.0)).collect::<Vec<_>>(), [(101, 3000), (102, 4000)]);
    assert_eq!((bench.top().update_id, bench.top().status.proof), (104, Proof::Sequence));
    let counters = bench.engine.counters().venue(Venue::BinanceSpot);
    assert_eq!((counters.kept, counters.superseded, counters.replayed, counters.discarded), (3, 1, 2, 0));
}

#[test]
fn a_snapshot_ahead_of_the_stream_goes_live_with_the_delta_that_reaches_it() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    bench.requests();
    bench.snapshot(100).unwrap();
    assert_eq!(bench.top().status.proof, Proof::Syncing, "no delta has continued it");
    assert_eq!(bench.spot(95, 100, "", ""), Err(DropReason::Superseded));
    bench.spot(99, 101, "", "").unwrap();
    assert_eq!(bench.top().status.proof, Proof::Sequence);
}

#[test]
fn case_m04_usdm_joins_over_the_snapshot_and_follows_pu() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    bench.requests();
    bench.usdm(80, 99, 70).unwrap();
    bench.usdm(100, 120, 99).unwrap();
    bench.snapshot(105).unwrap();
    assert_eq!((bench.top().update_id, bench.top().status.proof), (120, Proof::Sequence));
    bench.usdm(130, 140, 120).unwrap();
    assert_eq!(
        bench.usdm(141, 150, 139),
        Ok(Applied::Book { instrument: bench.id, update: BookUpdate::Buffered }),
        "pu is not the last u"
    );
    assert_eq!(bench.top().status.proof, Proof::Stale);
    assert_eq!(bench.requests(), bench.fetch());
}

#[test]
fn case_m05_a_gap_is_stale_at_once_and_asks_for_one_snapshot() {
    let mut bench = Bench::live_spot();
    assert_eq!(bench.spot(112, 115, "", ""), Ok(Applied::Book { instrument: bench.id, update: BookUpdate::Buffered }));
    let cause = IncidentCause::Gap { expected: 110, received: 111 };
    let incident = Incident { instrument: bench.id, update_id: 110, cause };
    assert_eq!((bench.engine.poll_incident(), bench.engine.poll_incident()), (Some(incident), None));
    let top = bench.top();
    assert_eq!((top.status.proof, top.update_id, top.proof_update_id()), (Proof::Stale, 110, Some(110)));
    bench.spot(116, 117, "", "").unwrap();
    bench.spot(119, 120, "", "").unwrap();
    assert_eq!(bench.requests(), bench.fetch());
    assert_eq!(bench.engine.counters().venue(Venue::BinanceSpot).gaps, 1);
    bench.snapshot(119).unwrap();
    assert_eq!((bench.top().status.proof, bench.top().update_id), (Proof::Sequence, 120));
    assert_eq!(bench.requests(), []);
}

#[test]
fn case_m06_a_doubled_delta_is_counted_and_changes_nothing() {
    let mut bench = Bench::live_spot();
    bench.spot(111, 112, "[\"10.0\",\"4\"]", "").unwrap();
    bench.spot(113, 113, "[\"10.0\",\"6\"]", "").unwrap();
    let before = bench.top();
    assert_eq!(bench.spot(111, 112, "[\"10.0\",\"4\"]", ""), Err(DropReason::Duplicate));
    let cause = bench.engine.poll_incident().map(|incident| incident.cause);
    assert_eq!(cause, Some(IncidentCause::Duplicate { received: 112 }));
    assert_eq!(bench.top(), before);
    assert_eq!(bench.engine.counters().venue(Venue::BinanceSpot).dropped(DropReason::Duplicate), 1);
}

#[test]
fn case_m10_an_empty_delta_moves_the_id_alone() {
    let mut bench = Bench::live_spot();
    let before = bench.top();
    bench.spot(111, 111, "", "").unwrap();
    assert_eq!((bench.top().update_id, bench.top().bid), (111, before.bid));
}

#[test]
fn case_m15_a_crossed_book_is_flagged_and_resynchronised_after_a_while() {
    let mut bench = Bench::live_spot();
    bench.spot(111, 111, "[\"10.5\",\"1\"]", "").unwrap();
    assert!(bench.top().status.is_crossed);
    bench.engine.handle_timeout(bench.now);
    assert_eq!(bench.requests(), []);
    bench.now = bench.now.saturating_add(Nanos::from_secs(1));
    bench.engine.handle_timeout(bench.now);
    assert_eq!((bench.top().status.proof, bench.requests()), (Proof::Stale, bench.fetch()));
    assert_eq!(bench.engine.poll_incident().map(|incident| incident.cause), Some(IncidentCause::Other));
}

#[test]
fn case_m18_numbers_that_are_none_make_the_book_stale() {
    for number in ["-1", "-0", "NaN", "", " 1", "0x10", "١", "1e400", "0.12345678901234567891"] {
        let mut bench = Bench::live_spot();
        assert!(bench.spot(111, 111, &format!("[\"{number}\",\"1\"]"), "").is_err(), "{number}");
        assert_eq!((bench.top().status.proof, bench.requests()), (Proof::Stale, bench.fetch()), "{number}");
    }
    let mut bench = Bench::live_spot();
    assert_eq!(bench.spot(111, 111, "[\"10.05\",\"1\"]", ""), Err(DropReason::OffTickSize));
    assert_eq!(bench.top().status.proof, Proof::Stale);
}

#[test]
fn case_m30_frames_of_a_closed_connection_are_dropped() {
    let mut bench = Bench::live_spot();
    let old = bench.connection;
    bench.engine.close_connection(old, bench.now);
    assert_eq!(bench.top().status.proof, Proof::Stale);
    bench.connection = bench.engine.open_connection(Venue::BinanceSpot, bench.now).unwrap();
    bench.engine.subscribe(bench.connection, bench.id, bench.now).unwrap();
    let new = std::mem::replace(&mut bench.connection, old);
    assert_eq!(bench.spot(111, 111, "", ""), Err(DropReason::OldConnection));
    bench.connection = new;
    assert_eq!(bench.requests(), bench.fetch());
    assert_eq!(bench.spot(111, 111, "", ""), Ok(Applied::Book { instrument: bench.id, update: BookUpdate::Buffered }));
}

#[test]
fn case_m29_silence_makes_stale_and_asks_for_a_connection() {
    let mut bench = Bench::live_spot();
    bench.now = bench.now.saturating_add(Nanos::from_secs(61));
    bench.engine.handle_timeout(bench.now);
    assert_eq!(bench.top().status.proof, Proof::Stale);
    assert_eq!(bench.requests(), [Request::Reconnect { connection: bench.connection }]);
}

#[test]
fn case_m31_m32_refusals_and_strangers_are_named() {
    let mut bench = Bench::new(Venue::Kraken);
    assert_eq!(
        bench.frame("{\"method\":\"subscribe\",\"success\":false,\"error\":\"depth\"}"),
        Err(DropReason::Rejected)
    );
    assert_eq!(bench.frame("{\"channel\":\"novel\",\"data\":[]}"), Err(DropReason::UnknownTopic));
    let mut bench = Bench::live_spot();
    let other = "{\"u\":1,\"s\":\"XRPUSDT\",\"b\":\"1\",\"B\":\"1\",\"a\":\"1\",\"A\":\"1\"}";
    assert_eq!(bench.frame(other), Err(DropReason::UnknownSymbol));
    assert_eq!(bench.top().status.proof, Proof::Sequence, "another symbol's trouble");
}

#[test]
fn case_m36_a_snapshot_out_of_order_is_refused() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    bench.requests();
    for bids in ["[\"9.9\",\"1\"],[\"10.0\",\"1\"]", "[\"9.9\",\"1\"],[\"9.9\",\"1\"]", "[\"9.9\",\"0\"]"] {
        let body = format!("{{\"lastUpdateId\":7,\"bids\":[{bids}],\"asks\":[]}}");
        let result = bench.engine.handle_snapshot(bench.now, bench.id, body.as_bytes(), &mut Off);
        assert_eq!(result, Err(DropReason::SnapshotOrder));
    }
}

#[test]
fn trades_make_candles_and_orders_live_until_they_end() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    for (t, px) in [(0, "10.0"), (1, "10.7"), (2, "9.8")] {
        let times = format!("\"E\":{0},\"T\":{0}", MS + t);
        let trade = format!("\"t\":{t},\"p\":\"{px}\",\"q\":\"0.5\",\"X\":\"MARKET\",\"m\":true");
        bench.frame(&format!("{{\"e\":\"trade\",{times},\"s\":\"BTCUSDT\",{trade}}}")).unwrap();
    }
    let candle = bench.engine.board().candle(bench.id, 0).unwrap();
    let prices = [candle.open_px, candle.high_px, candle.low_px, candle.close_px].map(|px| px.0);
    assert_eq!((prices, candle.volume.0, candle.updates), ([100, 107, 98, 98], 1500, 3));
    for (state, live) in [("NEW", 1), ("PARTIALLY_FILLED", 1), ("FILLED", 0)] {
        let order = format!(
            "\"s\":\"BTCUSDT\",\"S\":\"BUY\",\"q\":\"2\",\"p\":\"10.0\",\"X\":\"{state}\",\"i\":77,\"l\":\"0\",\"z\":\"0.5\",\"t\":0"
        );
        let frame = format!("{{\"e\":\"ORDER_TRADE_UPDATE\",\"T\":{MS},\"E\":{MS},\"o\":{{{order}}}}}");
        assert_eq!(bench.frame(&frame), Ok(Applied::Orders));
        assert_eq!(bench.engine.orders_len(), live);
        let known = bench.engine.order(Venue::BinanceUsdm, &OrderId::new(b"77").unwrap());
        assert_eq!(known.map(|order| order.filled_qty), (live == 1).then_some(Decimal::new(5, 1)));
        assert!(known.is_none_or(|order| order.status != OrderStatus::Filled));
    }
}

#[test]
fn a_mark_price_values_every_position_of_its_instrument() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    for (slot, lots) in [(0, 1500), (1, -200), (2, 1)] {
        let position = Position { instrument: bench.id, account: slot, lots, entry_px: Decimal::new(10, 0) };
        bench.engine.set_position(usize::from(slot), Some(position)).unwrap();
    }
    let rates = format!("\"p\":\"10.50000000\",\"i\":\"10.4\",\"P\":\"0\",\"r\":\"-0.00010000\",\"T\":{MS}");
    bench.frame(&format!("{{\"e\":\"markPriceUpdate\",\"E\":{MS},\"s\":\"BTCUSDT\",{rates}}}")).unwrap();
    let board = bench.engine.board();
    let mark = board.mark_price(bench.id).unwrap();
    assert_eq!(mark.funding_rate, Some(Decimal::new(-10_000, 8)));
    let worth = |slot| board.position(slot).map(|position| (position.pnl_mantissa, position.pnl_decimals));
    assert_eq!(worth(0), Some((75_000_000_000, 11)), "1.5 x 0.5");
    assert_eq!(worth(1), Some((-10_000_000_000, 11)));
    assert_eq!(worth(2), Some((50_000_000, 11)));
    assert_eq!(worth(3), None);
}

/// A hasher that keeps what it is handed.
#[derive(Default)]
struct Kept(Vec<u8>);

impl std::hash::Hasher for Kept {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Bench {
    fn published(&self) -> Vec<u8> {
        let mut kept = Kept::default();
        self.engine.board().hash_into(&mut kept);
        kept.0
    }
}

const SNAPSHOT: &[u8] =
    br#"{"lastUpdateId":100,"bids":[["9.9","1.5"],["9.8","2"]],"asks":[["10.1","3"],["10.2","4"]]}"#;

#[test]
fn every_value_that_is_published_changes_the_hashed_bytes() {
    let at = |bench: &mut Bench, frame: &str| {
        let before = bench.published();
        bench.frame(frame).unwrap();
        assert_ne!(bench.published(), before, "{frame}");
    };
    let mut bench = Bench::new(Venue::BinanceUsdm);
    while bench.engine.poll_request(bench.now).is_some() {}
    bench.engine.handle_snapshot(bench.now, bench.id, SNAPSHOT, &mut Off).unwrap();
    bench.usdm(99, 101, 98).unwrap();
    let entry_px = Decimal::new(10, 0);
    bench.engine.set_position(0, Some(Position { instrument: bench.id, account: 1, lots: 5, entry_px })).unwrap();
    let times = format!("\"E\":{MS},\"T\":{MS}");
    at(
        &mut bench,
        &format!(
            "{{\"e\":\"trade\",{times},\"s\":\"BTCUSDT\",\"t\":1,\"p\":\"10.0\",\"q\":\"1\",\"X\":\"MARKET\",\"m\":true}}"
        ),
    );
    at(
        &mut bench,
        &format!(
            "{{\"e\":\"bookTicker\",\"u\":500,\"s\":\"BTCUSDT\",\"b\":\"9.9\",\"B\":\"7\",\"a\":\"10.1\",\"A\":\"3\",{times}}}"
        ),
    );
    at(
        &mut bench,
        &format!(
            "{{\"e\":\"markPriceUpdate\",\"E\":{MS},\"s\":\"BTCUSDT\",\"p\":\"10.05\",\"i\":\"10\",\"P\":\"10\",\"r\":\"0.0001\",\"T\":{MS}}}"
        ),
    );
    // The same inputs make the same bytes.
    let before = bench.published();
    assert_eq!(bench.published(), before);
    bench.usdm(102, 103, 101).unwrap();
    assert_ne!(bench.published(), before);
}

#[test]
fn a_book_counted_in_finer_steps_is_the_same_book() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    let mut fine = Bench::new(Venue::BinanceUsdm);
    let (tick_size, lot_size) = (Decimal::new(1, 3), Decimal::new(1, 5));
    fine.engine.refine(fine.id, tick_size, lot_size).unwrap();
    for bench in [&mut bench, &mut fine] {
        while bench.engine.poll_request(bench.now).is_some() {}
        bench.engine.handle_snapshot(bench.now, bench.id, SNAPSHOT, &mut Off).unwrap();
        bench.usdm(99, 101, 98).unwrap();
        let times = format!("\"E\":{MS},\"T\":{MS}");
        bench.frame(&format!("{{\"e\":\"trade\",{times},\"s\":\"BTCUSDT\",\"t\":1,\"p\":\"10.0\",\"q\":\"1\",\"X\":\"MARKET\",\"m\":true}}")).unwrap();
        bench.frame(&format!("{{\"e\":\"bookTicker\",\"u\":103,\"s\":\"BTCUSDT\",\"b\":\"9.9\",\"B\":\"103\",\"a\":\"10.1\",\"A\":\"3\",{times}}}")).unwrap();
    }
    // One was fine from the beginning, the other becomes so in the middle.
    bench.engine.refine(bench.id, tick_size, lot_size).unwrap();
    assert_eq!(bench.published(), fine.published());
    assert_eq!(bench.engine.levels_len(bench.id), fine.engine.levels_len(fine.id));
    for bench in [&mut bench, &mut fine] {
        bench.usdm(102, 103, 101).unwrap();
        assert_eq!(bench.top().status.proof, Proof::Oracle, "the ticker that was kept counts in the new steps");
    }
    assert_eq!(bench.published(), fine.published());
    assert_eq!(bench.engine.refine(bench.id, Decimal::new(3, 3), lot_size), Err(AddError::BadSize));
    assert_eq!(bench.engine.refine(bench.id, Decimal::new(1, 18), lot_size), Err(AddError::BadSize));
    assert_eq!(bench.published(), fine.published(), "a step that does not fit changes nothing");
}

impl Bench {
    fn bybit(&mut self, kind: &str, id: u64, bids: &str) -> Result<Applied, DropReason> {
        let data = format!("{{\"s\":\"BTCUSDT\",\"b\":[{bids}],\"a\":[[\"10.1\",\"3\"]],\"u\":{id},\"seq\":9}}");
        let head = format!("\"topic\":\"orderbook.50.BTCUSDT\",\"type\":\"{kind}\",\"ts\":{MS}");
        self.frame(&format!("{{{head},\"data\":{data},\"cts\":{MS}}}"))
    }

    fn okx(&mut self, action: &str, previous: i64, id: u64, bids: &str) -> Result<Applied, DropReason> {
        let topic = "{\"channel\":\"books\",\"instId\":\"BTCUSDT\"}";
        let numbers = format!("\"checksum\":0,\"prevSeqId\":{previous},\"seqId\":{id}");
        let data = format!("{{\"asks\":[],\"bids\":[{bids}],\"ts\":\"{MS}\",{numbers}}}");
        self.frame(&format!("{{\"arg\":{topic},\"action\":\"{action}\",\"data\":[{data}]}}"))
    }

    fn proof(&self) -> (Proof, u64) {
        (self.top().status.proof, self.top().update_id)
    }

    fn resubscribe(&self) -> Vec<Request> {
        vec![Request::Resubscribe { instrument: self.id, connection: self.connection }]
    }
}

#[test]
fn case_m08_numbers_that_restart_are_an_epoch_with_a_snapshot_and_a_gap_without() {
    let mut bench = Bench::new(Venue::BybitLinear);
    bench.bybit("snapshot", 700, "[\"10.0\",\"1\"]").unwrap();
    bench.bybit("delta", 701, "[\"9.9\",\"2\"]").unwrap();
    // The service was restarted: the whole book, whatever the message is called.
    for (epoch, kind) in [(1, "delta"), (2, "snapshot")] {
        bench.bybit(kind, 1, "[\"9.8\",\"4\"]").unwrap();
        assert_eq!(bench.proof(), (Proof::Sequence, 1));
        assert_eq!(bench.engine.levels_len(bench.id), Some((1, 1)), "the old levels are gone");
        bench.bybit("delta", 2, "[\"9.7\",\"1\"]").unwrap();
        assert_eq!(bench.engine.counters().venue(Venue::BybitLinear).epochs, epoch);
    }
    assert_eq!(bench.bybit("delta", 2, ""), Err(DropReason::Duplicate));
    // A restart whose first message was lost.
    assert_eq!(bench.requests(), []);
    bench.bybit("snapshot", 700, "[\"10.0\",\"1\"]").unwrap();
    assert_eq!(bench.bybit("delta", 2, ""), Err(DropReason::Gap));
    assert_eq!((bench.proof(), bench.requests()), ((Proof::Stale, 700), bench.resubscribe()));
    assert_eq!(bench.requests(), [], "once");
    assert_eq!(bench.bybit("delta", 3, ""), Err(DropReason::AwaitingSnapshot));
    bench.bybit("snapshot", 3, "[\"10.0\",\"1\"]").unwrap();
    assert_eq!((bench.proof(), bench.requests()), ((Proof::Sequence, 3), vec![]));
}

#[test]
fn case_m09_okx_chains_keeps_alive_and_restarts() {
    let mut bench = Bench::new(Venue::Okx);
    assert_eq!(bench.okx("update", 10, 20, ""), Err(DropReason::AwaitingSnapshot));
    bench.okx("snapshot", -1, 100, "[\"10.0\",\"1\",\"0\",\"1\"]").unwrap();
    bench.okx("update", 100, 107, "[\"9.9\",\"2\",\"0\",\"1\"]").unwrap();
    bench.okx("update", 107, 107, "").unwrap();
    assert_eq!(bench.proof(), (Proof::Sequence, 107), "nothing changed, and that is known");
    bench.okx("update", 107, 5, "[\"9.9\",\"0\",\"0\",\"0\"]").unwrap();
    bench.okx("update", 5, 12, "").unwrap();
    assert_eq!((bench.proof(), bench.engine.counters().venue(Venue::Okx).epochs), ((Proof::Sequence, 12), 1));
    assert_eq!(bench.okx("update", 5, 12, ""), Err(DropReason::Duplicate));
    assert_eq!(bench.okx("update", 3, 8, ""), Err(DropReason::Gap), "a lower number is no old one");
    assert_eq!((bench.proof().0, bench.requests()), (Proof::Stale, bench.resubscribe()));
    bench.okx("snapshot", -1, 30, "").unwrap();
    assert_eq!(bench.okx("update", -1, 31, ""), Err(DropReason::Gap), "only a snapshot follows nothing");
}

#[test]
fn okx_joins_by_rest_where_asked_to() {
    let mut bench = Bench::new(Venue::Okx);
    bench.engine.set_join_by_rest(bench.id, true).unwrap();
    bench.engine.subscribe(bench.connection, bench.id, bench.now).unwrap();
    assert_eq!(bench.requests(), bench.fetch());
    let level = "[\"10.0\",\"7\",\"0\",\"1\"]";
    assert_eq!(bench.okx("snapshot", -1, 100, level), Err(DropReason::Superseded), "the first message is not kept");
    assert_eq!(
        bench.okx("update", 100, 110, ""),
        Ok(Applied::Book { instrument: bench.id, update: BookUpdate::Buffered })
    );
    assert_eq!(
        bench.okx("update", 110, 120, level),
        Ok(Applied::Book { instrument: bench.id, update: BookUpdate::Buffered })
    );
    let body = |id: u64| {
        let levels = "\"asks\":[[\"10.1\",\"3\",\"0\",\"1\"]],\"bids\":[[\"9.9\",\"2\",\"0\",\"1\"]]";
        format!("{{\"code\":\"0\",\"msg\":\"\",\"data\":[{{{levels},\"ts\":\"{MS}\",\"seqId\":{id}}}]}}")
    };
    let take = |bench: &mut Bench, id| bench.engine.handle_snapshot(bench.now, bench.id, body(id).as_bytes(), &mut Off);
    assert_eq!(take(&mut bench, 99), Err(DropReason::SnapshotTooOld));
    bench.now = bench.now.saturating_add(Nanos::from_secs(1));
    assert_eq!(bench.requests(), bench.fetch());
    take(&mut bench, 115).unwrap();
    assert_eq!(bench.proof(), (Proof::Sequence, 120), "115 lies within the update from 110 to 120");
    assert_eq!(bench.top().bid.map(|level| level.px.0), Some(100));
    bench.okx("update", 120, 121, "").unwrap();
    assert_eq!(bench.engine.set_join_by_rest(InstrumentId(9), true), Err(AddError::BadInstrument));
}

#[test]
fn case_m13_a_checksum_that_stays_wrong_ends_in_unverified_and_leaves_other_books_alone() {
    let mut bench = Bench::new(Venue::Kraken);
    let frame = |symbol: &str, kind: &str, checksum: u32| {
        let levels = "\"bids\":[{\"price\":10.0,\"qty\":1.000}],\"asks\":[{\"price\":10.1,\"qty\":2.000}]";
        let rest = format!("\"checksum\":{checksum},\"timestamp\":\"2026-08-01T00:00:00.000000Z\"");
        let data = format!("{{\"symbol\":\"{symbol}\",{levels},{rest}}}");
        format!("{{\"channel\":\"book\",\"type\":\"{kind}\",\"data\":[{data}]}}")
    };
    // CRC-32 of "1012000" and "1001000": the offer, then the bid.
    let right = 3_803_366_861;
    bench.frame(&frame("ETHUSDT", "snapshot", right)).unwrap();
    let mut waits = Vec::new();
    for _ in 0..5 {
        assert_eq!(bench.frame(&frame("BTCUSDT", "snapshot", 1)), Err(DropReason::ChecksumMismatch));
        let cause = bench.engine.poll_incident().map(|incident| incident.cause);
        assert_eq!(cause, Some(IncidentCause::Checksum { expected: 1, received: right }));
        let lost = bench.now;
        while bench.requests().is_empty() {}
        waits.push(bench.now.0 - lost.0);
    }
    assert!(waits.windows(2).skip(1).all(|pair| pair[0] < 2 * pair[1]) && waits[4] > 5 * waits[0], "{waits:?}");
    bench.frame(&frame("BTCUSDT", "snapshot", 1)).unwrap();
    assert_eq!(bench.top().status.proof, Proof::Unverified);
    bench.frame(&frame("BTCUSDT", "update", 2)).unwrap();
    assert_eq!((bench.top().status.proof, bench.requests()), (Proof::Unverified, vec![]), "no more resyncs");
    let other = bench.engine.board().top_of_book(InstrumentId(1)).unwrap();
    assert_eq!(other.status.proof, Proof::Crc);
    for _ in 0..100 {
        bench.frame(&frame("BTCUSDT", "update", right)).unwrap();
    }
    assert_eq!(bench.top().status.proof, Proof::Crc, "relied on again after a hundred that fit");
}

/// `{"e":"serverShutdown"}` raw, and as a combined stream wraps it; OKX's notice 64008 and another one.
#[test]
fn an_announced_end_asks_for_a_successor_once() {
    let raw = format!(r#"{{"e":"serverShutdown","E":{MS}}}"#);
    let wrapped = format!(r#"{{"stream":"!serverShutdown","data":{raw}}}"#);
    let okx = r#"{"event":"notice","code":"64008","msg":"The connection will soon be closed for a service upgrade. Please reconnect.","connId":"a4d3ae55"}"#;
    for (venue, frame) in [(Venue::BinanceSpot, &raw), (Venue::BinanceUsdm, &wrapped), (Venue::Okx, &okx.to_owned())] {
        let mut bench = Bench::new(venue);
        bench.requests();
        assert_eq!((bench.frame(frame), bench.frame(frame)), (Ok(Applied::Control), Ok(Applied::Control)));
        assert_eq!(bench.requests(), [Request::Replace { connection: bench.connection }], "{venue:?}: once");
    }
    let mut bench = Bench::new(Venue::Okx);
    bench.requests();
    assert_eq!(bench.frame(&okx.replace("64008", "64009")), Ok(Applied::Control));
    assert_eq!(bench.requests(), []);
}

#[test]
fn a_successor_takes_a_numbered_book_over_where_it_continues() {
    let mut bench = Bench::live_spot();
    let old = bench.connection;
    let successor = bench.engine.open_connection(Venue::BinanceSpot, bench.now).unwrap();
    bench.engine.announce_successor(successor, bench.id, bench.now).unwrap();
    let by = |bench: &mut Bench, connection, first, last| {
        bench.connection = connection;
        bench.spot(first, last, "[\"9.8\",\"1\"]", "")
    };
    // Ahead of the book: it comes on the old connection, too.
    assert_eq!(by(&mut bench, successor, 116, 120), Err(DropReason::ForeignConnection));
    assert!(bench.engine.awaits_successor(bench.id));
    assert!(by(&mut bench, old, 111, 115).is_ok());
    // The same update again: from here on the successor has everything.
    assert_eq!(by(&mut bench, successor, 111, 115), Err(DropReason::Superseded));
    assert_eq!((bench.proof(), bench.engine.awaits_successor(bench.id)), ((Proof::Sequence, 115), false));
    bench.engine.close_connection(old, bench.now);
    assert_eq!(bench.proof(), (Proof::Sequence, 115), "no reader sees a change");
    assert_eq!(by(&mut bench, successor, 114, 115), Err(DropReason::Superseded));
    assert!(by(&mut bench, successor, 116, 120).is_ok());
    assert_eq!((bench.proof(), bench.requests()), ((Proof::Sequence, 120), vec![]));
    // Or at once, with the first update that continues the book; the old connection is out of it then.
    let third = bench.engine.open_connection(Venue::BinanceSpot, bench.now).unwrap();
    bench.engine.announce_successor(third, bench.id, bench.now).unwrap();
    assert!(by(&mut bench, third, 119, 125).is_ok());
    assert_eq!(by(&mut bench, successor, 126, 130), Err(DropReason::ForeignConnection));
    bench.engine.close_connection(successor, bench.now);
    assert_eq!(bench.proof(), (Proof::Sequence, 125));
    // What is missing between the two is a gap.
    let fourth = bench.engine.open_connection(Venue::BinanceSpot, bench.now).unwrap();
    bench.engine.announce_successor(fourth, bench.id, bench.now).unwrap();
    bench.engine.close_connection(third, bench.now);
    let _ = by(&mut bench, fourth, 127, 130);
    assert_eq!((bench.top().status.proof, bench.requests()), (Proof::Stale, bench.fetch()));
}

#[test]
fn a_successors_snapshot_takes_a_chained_book_over() {
    let mut bench = Bench::new(Venue::Okx);
    bench.okx("snapshot", -1, 10, "[\"10.0\",\"1\",\"0\",\"1\"]").unwrap();
    bench.okx("update", 10, 12, "").unwrap();
    let old = bench.connection;
    let open = |bench: &mut Bench| {
        let successor = bench.engine.open_connection(Venue::Okx, bench.now).unwrap();
        bench.engine.announce_successor(successor, bench.id, bench.now).unwrap();
        successor
    };
    bench.connection = open(&mut bench);
    assert_eq!(bench.okx("update", 12, 14, ""), Err(DropReason::ForeignConnection), "before its snapshot");
    assert_eq!(bench.proof(), (Proof::Sequence, 12));
    bench.okx("snapshot", -1, 15, "[\"10.0\",\"2\",\"0\",\"1\"]").unwrap();
    assert_eq!((bench.proof(), bench.engine.awaits_successor(bench.id)), ((Proof::Sequence, 15), false));
    bench.engine.close_connection(old, bench.now);
    assert!(bench.okx("update", 15, 16, "").is_ok());
    assert_eq!((bench.proof(), bench.requests()), ((Proof::Sequence, 16), vec![]));
    // Without a snapshot, the next number decides.
    let before = bench.connection;
    bench.connection = open(&mut bench);
    bench.engine.close_connection(before, bench.now);
    assert_eq!(bench.proof(), (Proof::Sequence, 16));
    assert!(bench.okx("update", 16, 17, "").is_ok());
    let before = bench.connection;
    bench.connection = open(&mut bench);
    bench.engine.close_connection(before, bench.now);
    assert_eq!(bench.okx("update", 18, 19, ""), Err(DropReason::Gap));
    assert_eq!(bench.requests(), bench.resubscribe());
    // A successor that ends takes nothing with it.
    bench.okx("snapshot", -1, 20, "").unwrap();
    let (current, successor) = (bench.connection, open(&mut bench));
    bench.engine.close_connection(successor, bench.now);
    assert_eq!((bench.connection, bench.proof()), (current, (Proof::Sequence, 20)));
    bench.engine.close_connection(current, bench.now);
    assert_eq!(bench.top().status.proof, Proof::Stale);
}

/// Only a new snapshot shows such a book on another connection.
#[test]
fn a_book_without_numbers_is_asked_for_again_where_no_snapshot_came() {
    let mut bench = Bench::new(Venue::Hyperliquid);
    let frame = |ms: u64| {
        let level = r#"{"px":"10.0","sz":"1.000","n":1}"#;
        format!(r#"{{"channel":"l2Book","data":{{"coin":"BTCUSDT","time":{ms},"levels":[[{level}],[]]}}}}"#)
    };
    bench.frame(&frame(MS)).unwrap();
    assert_eq!(bench.top().status.proof, Proof::Unverified);
    let (old, now) = (bench.connection, bench.now);
    bench.connection = bench.engine.open_connection(Venue::Hyperliquid, now).unwrap();
    bench.engine.announce_successor(bench.connection, bench.id, now).unwrap();
    bench.engine.close_connection(old, now);
    assert_eq!((bench.top().status.proof, bench.requests()), (Proof::Stale, bench.resubscribe()));
}

#[test]
fn resyncs_are_spread_and_keep_to_the_budget() {
    const BOOKS: u32 = 700;
    let spec = |number: u32| InstrumentSpec {
        venue: Venue::Deribit,
        symbol: Symbol::new(format!("BTC-{number}").as_bytes()).unwrap(),
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 1),
        depth_max: None,
        candles: CandleSource::Trades,
    };
    let run = |jitter_seed: u64| {
        let capacity =
            Capacity { instruments: BOOKS as usize, jitter_seed, overflow_levels: 16, ..Capacity::default() };
        let mut engine = Engine::new(capacity);
        let mut now = Nanos::from_millis(MS);
        let connection = engine.open_connection(Venue::Deribit, now).unwrap();
        for number in 0..BOOKS {
            let id = engine.add_instrument(spec(number)).unwrap();
            engine.subscribe(connection, id, now).unwrap();
            let head = format!("\"type\":\"snapshot\",\"timestamp\":{MS},\"instrument_name\":\"BTC-{number}\"");
            let data = format!("{{{head},\"change_id\":1,\"bids\":[],\"asks\":[]}}");
            let topic = format!("\"channel\":\"book.BTC-{number}.raw\"");
            let parameters = format!("\"params\":{{{topic},\"data\":{data}}}");
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",{parameters}}}");
            engine.handle_frame(now, connection, frame.as_bytes(), &mut Off).unwrap();
        }
        // It is unknown whose the broken frame was: all books are lost at once.
        assert!(engine.handle_frame(now, connection, b"{\"jsonrpc", &mut Off).is_err());
        let mut asked = Vec::new();
        for ms in 0..10_000 {
            now = Nanos::from_millis(MS + ms);
            asked.extend(std::iter::from_fn(|| engine.poll_request(now)).map(|request| (ms, request)));
        }
        asked
    };
    let asked = run(7);
    assert_eq!(asked.len(), BOOKS as usize, "one for each book");
    let until = |end: u64| asked.iter().filter(|(ms, _)| *ms < end).count() as u64;
    assert!(until(1) < 100, "not all at the same time");
    assert!(until(60) >= 400, "the burst: {}", until(60));
    for ms in [60, 500, 1000, 2000] {
        assert!(until(ms) <= 401 + ms / 7, "then one in 7 ms: {} in {ms} ms", until(ms));
    }
    assert_eq!(run(7), asked, "the same again");
    assert_ne!(run(8), asked);
}
