//! A ring that is full: what readers get instead of what found no room.

use crate::CandlesKept;
use std::collections::BTreeMap;
use std::time::Duration;

use tt_market::candle::CandleSource;
use tt_market::{BookSide, Capacity, ConnectionId, Engine, InstrumentSpec};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::listing::ContractUnit;
use tt_venue::{Symbol, Venue};

use super::super::handover::READERS_HERE_MAX;
use super::super::tests::Kept;
use super::*;

const ID: InstrumentId = InstrumentId(0);
const SLOTS: usize = 64;

struct Rig {
    engine: Engine,
    connection: ConnectionId,
    sender: UpdateSender,
    books: Arc<Books>,
    distributor: SharedDistributor,
    kept: Arc<Kept>,
    update_id: u64,
    tick_size: Decimal,
    /// The levels that the reader has, by text of the price.
    sides: [BTreeMap<String, String>; 2],
    seq: u64,
    lost: u64,
}

impl Rig {
    fn new() -> Self {
        let venue = Venue::BinanceSpot;
        let mut engine = Engine::new(Capacity { instruments: 1, pages: 64, ..Capacity::default() });
        let (tick_size, lot_size) = (Decimal::new(1, 1), Decimal::new(1, 3));
        let symbol = Symbol::new(b"BTCUSDT").unwrap();
        let spec =
            InstrumentSpec { venue, symbol, tick_size, lot_size, depth_max: None, candles: CandleSource::Trades };
        engine.add_instrument(spec).unwrap();
        engine.follow_changes(64);
        let now = Nanos::from_millis(1_700_000_000_000);
        let connection = engine.open_connection(venue, now).unwrap();
        engine.subscribe(connection, ID, now).unwrap();
        while engine.poll_request(now).is_some() {}
        let subject = Subject::new("binance_spot", "BTC/USDT", 0, true, [tick_size, lot_size], ContractUnit::Base);
        let books = Arc::new(Books::new([BookCopy::new(subject, CandlesKept::default())]));
        let (producer, events) = spsc::ring(SLOTS);
        let distributor = SharedDistributor::new(Distributor::new(Arc::clone(&books), Instant::now()));
        let ring = distributor.lock().add(Ring { events, first: 0, sharing: Vec::new() });
        let (thread, lost) = (thread::current(), Arc::clone(&books.counts.lost_by_feeds));
        let handover = Handover { books: Arc::clone(&books), distributor: distributor.clone(), ring, thread };
        let sender = UpdateSender::new(producer, 1, lost, Some(handover));
        let kept = Arc::new(Kept::default());
        let sink: Arc<dyn Sink> = Arc::clone(&kept) as Arc<dyn Sink>;
        let kind = StreamKind::Books { depth: None, every: None };
        books.book(0).unwrap().subscribe(kind, &sink, &books.counts, Instant::now());
        sink.flush();
        let mut rig = Self {
            engine,
            connection,
            sender,
            books,
            distributor,
            kept,
            update_id: 100,
            tick_size,
            sides: Default::default(),
            seq: 0,
            lost: 0,
        };
        rig.frame();
        let levels: Vec<String> = (0..40).map(|i| format!("[\"{}.0\",\"1\"]", 900 - i)).collect();
        let body = format!("{{\"lastUpdateId\":100,\"bids\":[{}],\"asks\":[[\"901.0\",\"2\"]]}}", levels.join(","));
        rig.engine.handle_snapshot(now, ID, body.as_bytes(), &mut Off).unwrap();
        rig.send();
        rig
    }

    /// The next update: a level that comes and one that goes.
    fn frame(&mut self) {
        self.update_id += 1;
        let id = self.update_id;
        let (new, old) = (800 - id % 50, 800 - (id + 25) % 50);
        let bids = format!("[\"{new}.5\",\"{id}\"],[\"{old}.5\",\"0\"]");
        let frame = format!(
            "{{\"e\":\"depthUpdate\",\"E\":1700000000000,\"s\":\"BTCUSDT\",\"U\":{id},\"u\":{id},\"b\":[{bids}],\"a\":[]}}"
        );
        let now = Nanos::from_millis(1_700_000_000_000 + id);
        let _ = self.engine.handle_frame(now, self.connection, frame.as_bytes(), &mut Off);
        self.send();
    }

    fn send(&mut self) {
        while let Some(event) = self.engine.poll_book_event() {
            let head = self.sender.begin(&event);
            self.sender.finish(&self.engine, head);
        }
    }

    /// Lets the publisher take what is in the ring, and the reader what it got.
    fn drain(&mut self) {
        while self.distributor.lock().advance(Instant::now()) > 0 {}
        self.read();
    }

    /// Lets the reader take what it got.
    fn read(&mut self) {
        for message in std::mem::take(&mut *self.kept.0.lock().unwrap()) {
            let kind = message["type"].as_str().unwrap();
            if kind == "gap" {
                self.lost += message["lost"].as_u64().unwrap();
                self.seq += message["lost"].as_u64().unwrap() - 1;
                continue;
            }
            let seq = message["seq"].as_u64().unwrap();
            assert!(seq == self.seq + 1 || seq == 0, "{seq} after {}: {message}", self.seq);
            self.seq = seq;
            for (side, name) in self.sides.iter_mut().zip(["bids", "asks"]) {
                if kind == "snapshot" {
                    side.clear();
                }
                for level in message[name].as_array().into_iter().flatten() {
                    let text = |name: &str| level[name].as_str().unwrap().to_owned();
                    if text("qty").bytes().all(|byte| matches!(byte, b'0' | b'.')) {
                        side.remove(&text("px"));
                    } else {
                        side.insert(text("px"), text("qty"));
                    }
                }
            }
        }
    }

    fn assert_same(&self) {
        for (side, kept) in [BookSide::Bid, BookSide::Ask].into_iter().zip(&self.sides) {
            let text = |steps: i64, step: Decimal| tt_status::decimal_text::steps_text(steps, step);
            let level =
                |level: tt_venue::BookLevel| (text(level.px.0, self.tick_size), text(level.qty.0, Decimal::new(1, 3)));
            let expected: BTreeMap<String, String> = self.engine.levels(ID, side).unwrap().map(level).collect();
            assert_eq!(*kept, expected);
        }
    }
}

/// Whether the publisher's thread, which this one is here, was woken.
fn was_woken() -> bool {
    let asked = Instant::now();
    thread::park_timeout(Duration::from_millis(50));
    asked.elapsed() < Duration::from_millis(50)
}

#[test]
fn a_feed_with_few_readers_publishes_itself() {
    let mut rig = Rig::new();
    rig.drain();
    rig.frame();
    rig.sender.wake();
    assert!(!was_woken());
    rig.read();
    rig.assert_same();
}

#[test]
fn a_feed_leaves_it_to_the_thread_while_that_is_at_it_and_where_many_read() {
    let mut rig = Rig::new();
    rig.drain();
    let distributor = rig.distributor.clone();
    let held = distributor.lock();
    rig.frame();
    rig.sender.wake();
    drop(held);
    assert!(was_woken() && rig.kept.0.lock().unwrap().is_empty());
    let others: Vec<_> = (0..READERS_HERE_MAX).map(|_| Arc::new(Kept::default()) as Arc<dyn Sink>).collect();
    for sink in &others {
        rig.books.book(0).unwrap().subscribe(StreamKind::Trades, sink, &rig.books.counts, Instant::now());
    }
    rig.frame();
    rig.sender.wake();
    assert!(was_woken() && rig.kept.0.lock().unwrap().is_empty());
    rig.drain();
    rig.assert_same();
}

#[test]
fn a_message_that_waits_in_a_feeds_turn_wakes_the_thread_that_sends_it_in_time() {
    let mut rig = Rig::new();
    rig.drain();
    let slow: Arc<dyn Sink> = Arc::new(Kept::default());
    let kind = StreamKind::Books { depth: None, every: Some(Duration::from_millis(1)) };
    rig.books.book(0).unwrap().subscribe(kind, &slow, &rig.books.counts, Instant::now());
    let due = rig.distributor.lock().due();
    // The first message leaves at once, the next one waits.
    rig.frame();
    rig.frame();
    rig.sender.wake();
    assert!(was_woken());
    assert!(rig.distributor.lock().due() < due);
}

#[test]
fn a_full_ring_costs_a_mark_and_a_snapshot() {
    let mut rig = Rig::new();
    rig.drain();
    rig.assert_same();
    for round in 0..50 {
        // Room for a few of these; the others are lost until a whole book fits.
        (0..round * 3).for_each(|_| rig.frame());
        rig.drain();
        rig.frame();
        rig.drain();
        rig.assert_same();
    }
    assert!(rig.lost > 1000, "{}", rig.lost);
    assert_eq!(rig.books.counts.read().lost_by_feeds, rig.lost);
}

#[test]
fn what_is_owed_in_a_quiet_market_is_sent_without_an_update() {
    let mut rig = Rig::new();
    (0..200).for_each(|_| rig.frame());
    rig.drain();
    assert_eq!(rig.lost, 0, "nothing has come since");
    let board = rig.engine.board();
    rig.sender.send_owed(&rig.engine, &board);
    rig.drain();
    rig.assert_same();
    assert!(rig.lost > 100, "{}", rig.lost);
}

#[test]
fn a_book_that_finds_no_room_again_is_no_further_loss() {
    let mut rig = Rig::new();
    (0..200).for_each(|_| rig.frame());
    let lost = rig.books.counts.read().lost_by_feeds;
    let board = rig.engine.board();
    (0..5).for_each(|_| rig.sender.send_owed(&rig.engine, &board));
    assert_eq!(rig.books.counts.read().lost_by_feeds, lost);
    rig.drain();
    rig.sender.send_owed(&rig.engine, &board);
    rig.drain();
    assert_eq!(rig.lost, lost);
}

#[test]
fn a_stale_book_that_is_owed_has_no_levels() {
    let mut rig = Rig::new();
    (0..200).for_each(|_| rig.frame());
    rig.engine.close_connection(rig.connection, Nanos::from_millis(1_700_000_001_000));
    rig.send();
    rig.drain();
    let board = rig.engine.board();
    rig.sender.send_owed(&rig.engine, &board);
    rig.drain();
    assert!(rig.sides.iter().all(BTreeMap::is_empty), "{:?}", rig.sides);
    let book = rig.books.book(0).unwrap().excerpt(10).into_book(Nanos(0));
    assert_eq!((book.proof, book.bid_levels), ("stale", 0));
}

#[test]
fn finer_steps_come_before_the_book_that_is_counted_in_them() {
    let mut rig = Rig::new();
    (0..200).for_each(|_| rig.frame());
    rig.engine.refine(ID, Decimal::new(1, 2), Decimal::new(1, 3)).unwrap();
    rig.sender.change_steps(ID, Decimal::new(1, 2), Decimal::new(1, 3));
    rig.send();
    rig.tick_size = Decimal::new(1, 2);
    rig.drain();
    rig.frame();
    rig.drain();
    rig.assert_same();
    assert!(rig.sides[0].keys().all(|px| px.ends_with("00") || px.ends_with("50")), "{:?}", rig.sides[0]);
}
