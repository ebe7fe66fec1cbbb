//! Books that are sent order by order, against plain lists of orders: Coinbase's `full`, joined to its REST book and
//! numbered, and Kraken's `level3` with a checksum over every order of ten levels.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::collections::BTreeMap;
use std::fmt::Write;
use tt_market::DropReason;
use tt_market::board::Board;
use tt_market::candle::CandleSource;
use tt_market::{
    AddError, Applied, BookSide, BookUpdate, Capacity, ConnectionId, Engine, InstrumentSpec, Proof, Request,
    RestingOrder,
};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

const TS: &str = "2026-08-01T10:33:05.709950Z";

/// One order: its number, price in cents, quantity in thousandths; the oldest first.
type Order = (u64, i64, i64);

/// Orders of both sides, bids first.
#[derive(Clone, Debug, Default)]
struct Truth {
    sides: [Vec<Order>; 2],
    next: u64,
}

impl Truth {
    fn find(&self, number: u64) -> Option<(usize, usize)> {
        let at = |side: usize| Some((side, self.sides[side].iter().position(|order| order.0 == number)?));
        at(0).or_else(|| at(1))
    }

    /// The best ten levels, as price and sum of quantities.
    fn levels(&self, side: usize) -> Vec<(i64, i64)> {
        let mut levels: BTreeMap<i64, i64> = BTreeMap::new();
        for (_, px, qty) in &self.sides[side] {
            *levels.entry(*px).or_default() += qty;
        }
        let mut levels: Vec<_> = levels.into_iter().collect();
        if side == 0 {
            levels.reverse();
        }
        levels
    }

    /// Orders sorted by level, best first, the oldest of a level first.
    fn sorted(&self, side: usize) -> Vec<Order> {
        let mut orders = self.sides[side].clone();
        orders.sort_by_key(|order| if side == 0 { -order.1 } else { order.1 });
        orders
    }

    /// Leaves the best `depth` levels.
    fn cut(&mut self, depth: usize) {
        for side in 0..2 {
            let kept: Vec<i64> = self.levels(side).iter().take(depth).map(|level| level.0).collect();
            self.sides[side].retain(|order| kept.contains(&order.1));
        }
    }

    /// Kraken's checksum: the digits of every order of the ten best levels, offers first.
    fn checksum(&self) -> u32 {
        let mut text = String::new();
        for side in [1, 0] {
            let best: Vec<i64> = self.levels(side).iter().take(10).map(|level| level.0).collect();
            for (_, px, qty) in self.sorted(side).iter().filter(|order| best.contains(&order.1)) {
                write!(text, "{px}{qty}").unwrap();
            }
        }
        // Bit by bit, as the polynomial is written down.
        !text.bytes().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0xEDB8_8320))
        })
    }
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn px(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn qty(thousandths: i64) -> String {
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

fn uuid(number: u64) -> String {
    format!("d50ec984-77a8-460a-b958-{number:012x}")
}

const SIDES: [&str; 2] = ["buy", "sell"];

struct Follower {
    engine: Engine,
    board: Board,
    connection: ConnectionId,
    id: InstrumentId,
    venue: Venue,
    now: u64,
}

impl Follower {
    fn new(venue: Venue, book_orders: usize, depth_max: Option<usize>) -> Self {
        Self::with_steps(venue, book_orders, depth_max, [Decimal::new(1, 2), Decimal::new(1, 3)])
    }

    fn with_steps(venue: Venue, book_orders: usize, depth_max: Option<usize>, steps: [Decimal; 2]) -> Self {
        let mut engine = Engine::new(Capacity { instruments: 2, book_orders, ..Capacity::default() });
        let spec = InstrumentSpec {
            venue,
            symbol: Symbol::new(b"BTC-USD").unwrap(),
            tick_size: steps[0],
            lot_size: steps[1],
            depth_max,
            candles: CandleSource::Trades,
        };
        let id = engine.add_instrument(spec).unwrap();
        engine.follow_orders(id).unwrap();
        let now = 1_785_580_385_000_000_000;
        let connection = engine.open_connection(venue, Nanos(now)).unwrap();
        engine.subscribe(connection, id, Nanos(now)).unwrap();
        let board = engine.board();
        Self { engine, board, connection, id, venue, now }
    }

    fn feed(&mut self, frame: &str) -> Result<Applied, DropReason> {
        self.now += 1_000_000;
        let result = self.engine.handle_frame(Nanos(self.now), self.connection, frame.as_bytes(), &mut Off);
        assert!(self.engine.counters().venue(self.venue).closes());
        result
    }

    fn proof(&self) -> Proof {
        self.board.top_of_book(self.id).unwrap().status.proof
    }

    fn assert_is(&self, truth: &Truth) {
        let depth = self.board.depth(self.id).unwrap();
        for (side, shown) in [depth.bids(), depth.asks()].into_iter().enumerate() {
            let shown: Vec<(i64, i64)> = shown.iter().map(|level| (level.px.0, level.qty.0)).collect();
            let expected: Vec<_> = truth.levels(side).into_iter().take(shown.len().max(10)).collect();
            assert_eq!(shown, expected);
        }
        for (at, side) in [BookSide::Bid, BookSide::Ask].into_iter().enumerate() {
            let shown: Vec<RestingOrder> = self.engine.resting_orders(self.id, side).unwrap().collect();
            let found: Vec<(String, i64, i64)> =
                shown.iter().map(|order| (order.order_id.to_string(), order.px.0, order.qty.0)).collect();
            let order = |(number, px, qty): Order| {
                let id = if self.venue == Venue::Kraken { format!("O{number:05}-BXL4E-5WGINO") } else { uuid(number) };
                (id, px, qty)
            };
            assert_eq!(found, truth.sorted(at).into_iter().map(order).collect::<Vec<_>>());
            let mut ahead = (i64::MIN, 0, 0);
            for order in &shown {
                ahead = if ahead.0 == order.px.0 { ahead } else { (order.px.0, 0, 0) };
                assert_eq!((order.position, order.qty_ahead.0), (ahead.1, ahead.2));
                ahead = (ahead.0, ahead.1 + 1, ahead.2 + order.qty.0);
            }
        }
        let (bids, asks) = self.engine.levels_len(self.id).unwrap();
        assert_eq!([bids, asks], [truth.levels(0).len(), truth.levels(1).len()]);
    }
}

#[test]
fn a_second_book_of_all_orders_agrees_with_the_first_or_costs_it() {
    let mut follower = Follower::new(Venue::CoinbaseExchange, 256, None);
    let (mut truth, mut draw, mut number) = (Truth::default(), Draw(11), 100);
    let rest = |follower: &mut Follower, truth: &Truth, number| {
        let (id, now, body) = (follower.id, Nanos(follower.now), coinbase_book(truth, number));
        let result = follower.engine.handle_snapshot(now, id, body.as_bytes(), &mut Off);
        assert!(follower.engine.counters().venue(follower.venue).closes());
        result
    };
    let step = |follower: &mut Follower, truth: &mut Truth, draw: &mut Draw, number: &mut u64| {
        *number += 1;
        follower.feed(&numbered(&coinbase_message(truth, draw), *number))
    };
    assert!(follower.engine.poll_request(Nanos(follower.now)).is_some());
    rest(&mut follower, &truth, number).unwrap();
    for _ in 0..200 {
        step(&mut follower, &mut truth, &mut draw, &mut number).unwrap();
    }
    // Of the moment, of some messages ago, and of some that are on their way.
    let compared = Ok(Applied::Book { instrument: follower.id, update: BookUpdate::Compared });
    follower.engine.begin_comparison(follower.id, Nanos(follower.now)).unwrap();
    assert_eq!(rest(&mut follower, &truth, number), compared);
    assert_eq!(follower.proof(), Proof::Snapshot);
    follower.engine.begin_comparison(follower.id, Nanos(follower.now)).unwrap();
    let (earlier, at) = (truth.clone(), number);
    for _ in 0..7 {
        step(&mut follower, &mut truth, &mut draw, &mut number).unwrap();
    }
    assert_eq!(rest(&mut follower, &earlier, at), compared);
    follower.engine.begin_comparison(follower.id, Nanos(follower.now)).unwrap();
    let mut ahead = (truth.clone(), Draw(draw.0), number);
    let messages: Vec<String> = (0..7).map(|_| coinbase_message(&mut ahead.0, &mut ahead.1)).collect();
    ahead.2 += 7;
    let buffered = Ok(Applied::Book { instrument: follower.id, update: BookUpdate::Buffered });
    assert_eq!(rest(&mut follower, &ahead.0, ahead.2), buffered);
    for message in messages {
        number += 1;
        follower.feed(&numbered(&message, number)).unwrap();
    }
    truth = ahead.0;
    assert!(!follower.engine.is_comparing(follower.id));
    follower.assert_is(&truth);
    let counters = follower.engine.counters().venue(follower.venue);
    assert_eq!((counters.snapshot_matches, counters.snapshot_mismatches), (3, 0));
    // An order that the feed has never named.
    follower.engine.begin_comparison(follower.id, Nanos(follower.now)).unwrap();
    let mut other = truth.clone();
    other.sides[0].push((77_777, 9_985, 13));
    let held = truth.levels(0).into_iter().find(|level| level.0 == 9_985).map_or(0, |level| level.1);
    assert_eq!(rest(&mut follower, &other, number), Err(DropReason::SnapshotMismatch));
    let difference = follower.engine.poll_difference().unwrap();
    assert_eq!((difference.side, difference.px.0, difference.update_id), (BookSide::Bid, 9_985, number));
    assert_eq!((difference.book_qty.0, difference.snapshot_qty.0), (held, held + 13));
    assert!(!follower.proof().is_verified());
    assert_eq!(follower.engine.counters().venue(follower.venue).snapshot_mismatches, 1);
}

/// What the exchange says next of its book: a message of `full` without its number.
fn coinbase_message(truth: &mut Truth, draw: &mut Draw) -> String {
    let side = draw.below(2) as usize;
    let all = truth.sides[side].len() as u64;
    let head = format!("\"time\":\"{TS}\",\"product_id\":\"BTC-USD\",\"sequence\":#");
    match draw.below(10) {
        0..4 if all < 60 => {
            truth.next += 1;
            let cents = if side == 0 { 9_990 - draw.below(40) } else { 10_010 + draw.below(40) } as i64;
            let (number, amount) = (truth.next, draw.below(5000) as i64 + 1);
            truth.sides[side].push((number, cents, amount));
            let order = format!("\"price\":\"{}\",\"remaining_size\":\"{}\"", px(cents), qty(amount));
            format!(
                "{{\"type\":\"open\",{head},\"order_id\":\"{}\",{order},\"side\":\"{}\"}}",
                uuid(number),
                SIDES[side]
            )
        }
        4..6 if all > 0 => {
            let (number, cents, _) = truth.sides[side].remove(draw.below(all) as usize);
            let order = format!("\"price\":\"{}\",\"order_id\":\"{}\"", px(cents), uuid(number));
            format!(
                "{{\"type\":\"done\",{head},{order},\"reason\":\"canceled\",\"side\":\"{}\",\"remaining_size\":\"1\"}}",
                SIDES[side]
            )
        }
        6..8 if all > 0 => {
            let order = &mut truth.sides[side][draw.below(all) as usize];
            let part = draw.below(order.2 as u64) as i64 + 1;
            let number = order.0;
            order.2 -= part;
            let at = px(order.1);
            truth.sides[side].retain(|order| order.2 > 0);
            truth.next += 1;
            let ids = format!(
                "\"trade_id\":{},\"maker_order_id\":\"{}\",\"taker_order_id\":\"{}\"",
                truth.next,
                uuid(number),
                uuid(1)
            );
            let trade = format!("\"side\":\"{}\",\"size\":\"{}\",\"price\":\"{at}\"", SIDES[side], qty(part));
            format!("{{\"type\":\"match\",{ids},{trade},\"product_id\":\"BTC-USD\",\"sequence\":#,\"time\":\"{TS}\"}}")
        }
        8 if all > 0 => {
            let order = &mut truth.sides[side][draw.below(all) as usize];
            let (old, number) = (order.2, order.0);
            order.2 = draw.below(old as u64) as i64 + 1;
            let sizes = format!("\"old_size\":\"{}\",\"new_size\":\"{}\"", qty(old), qty(order.2));
            format!(
                "{{\"type\":\"change\",{head},\"order_id\":\"{}\",{sizes},\"price\":\"{}\",\"side\":\"{}\"}}",
                uuid(number),
                px(order.1),
                SIDES[side]
            )
        }
        _ => format!(
            "{{\"type\":\"received\",{head},\"order_id\":\"{}\",\"size\":\"1\",\"price\":\"99.9\",\"side\":\"buy\",\"order_type\":\"limit\"}}",
            uuid(999_999)
        ),
    }
}

fn numbered(message: &str, number: u64) -> String {
    message.replace("\"sequence\":#", &format!("\"sequence\":{number}"))
}

/// The REST book of all orders.
fn coinbase_book(truth: &Truth, number: u64) -> String {
    let side = |side: usize| {
        let order = |(number, cents, amount): &Order| {
            format!("[\"{}\",\"{}\",\"{}\"]", px(*cents), qty(*amount), uuid(*number))
        };
        truth.sorted(side).iter().map(order).collect::<Vec<_>>().join(",")
    };
    format!(
        "{{\"bids\":[{}],\"asks\":[{}],\"sequence\":{number},\"auction_mode\":false,\"auction\":null,\"time\":\"{TS}\"}}",
        side(0),
        side(1)
    )
}

#[test]
fn coinbase_orders_make_the_true_book_and_a_missing_number_costs_it() {
    let mut follower = Follower::new(Venue::CoinbaseExchange, 256, None);
    let (mut truth, mut draw) = (Truth::default(), Draw(3));
    let mut number = 100;
    let mut lost = 0;
    assert!(follower.engine.poll_request(Nanos(follower.now)).is_some());
    let (id, empty) = (follower.id, coinbase_book(&truth, number));
    follower.engine.handle_snapshot(Nanos(follower.now), id, empty.as_bytes(), &mut Off).unwrap();
    for step in 0..6_000_u64 {
        let message = coinbase_message(&mut truth, &mut draw);
        number += 1;
        let frame = numbered(&message, number);
        // Now and then a message does not arrive, or twice.
        let is_missing = step > 50 && draw.below(200) == 0;
        if !is_missing {
            let was_live = follower.proof() == Proof::Sequence;
            match follower.feed(&frame) {
                Ok(Applied::Book { update: BookUpdate::Snapshot | BookUpdate::Delta, .. }) => {
                    assert_eq!(follower.proof(), Proof::Sequence);
                    follower.assert_is(&truth);
                    if draw.below(50) == 0 {
                        assert_eq!(follower.feed(&frame), Err(DropReason::Duplicate));
                        follower.assert_is(&truth);
                    }
                }
                Ok(Applied::Book { update: BookUpdate::Buffered, .. }) => {
                    lost += u64::from(was_live);
                    assert!(!follower.proof().is_verified());
                }
                other => panic!("{other:?} {frame}"),
            }
        }
        while let Some(request) = follower.engine.poll_request(Nanos(follower.now)) {
            assert!(matches!(request, Request::FetchSnapshot { .. }));
            let body = coinbase_book(&truth, number);
            let id = follower.id;
            let result = follower.engine.handle_snapshot(Nanos(follower.now), id, body.as_bytes(), &mut Off);
            assert!(
                matches!(
                    result,
                    Ok(Applied::Book { update: BookUpdate::Snapshot | BookUpdate::Delta, .. })
                        | Err(DropReason::SnapshotTooOld)
                ),
                "{result:?}"
            );
        }
        follower.engine.handle_timeout(Nanos(follower.now));
    }
    let counters = follower.engine.counters().venue(Venue::CoinbaseExchange);
    assert!(lost > 10 && counters.gaps == lost, "{lost} {counters:?}");
    assert!(counters.sequence_matches > 4000 && counters.trades > 500, "{counters:?}");
    assert_eq!(counters.crossed, 0);
}

/// A login adds members to the messages of own orders, and messages without a number: none of it is a gap
/// (docs.cdp.coinbase.com/exchange/websocket-feed/channels, "Full Channel").
#[test]
fn what_a_login_adds_to_the_messages_of_coinbase_is_no_gap() {
    let mut follower = Follower::new(Venue::CoinbaseExchange, 256, None);
    let (mut truth, mut draw) = (Truth::default(), Draw(5));
    let mut number = 100;
    assert!(follower.engine.poll_request(Nanos(follower.now)).is_some());
    let (id, empty) = (follower.id, coinbase_book(&truth, number));
    follower.engine.handle_snapshot(Nanos(follower.now), id, empty.as_bytes(), &mut Off).unwrap();
    let own = "\"user_id\":\"5844eceecf7e803e259d0365\",\"profile_id\":\"765d1549-9660-4be2-97d4-fa2d65fa3352\"";
    let taker = "\"taker_user_id\":\"5844eceecf7e803e259d0365\",\"taker_fee_rate\":\"0.005\"";
    let activated = format!(
        "{{\"type\":\"activate\",\"product_id\":\"BTC-USD\",\"timestamp\":\"1483736448.299000\",{own},\
         \"order_id\":\"7b52009b-64fd-0a2a-49e6-d8a939753077\",\"stop_type\":\"entry\",\"side\":\"buy\",\
         \"stop_price\":\"80\",\"size\":\"2\",\"funds\":\"50\",\"private\":true}}"
    );
    let (mut added, mut between) = (0, 0);
    for _ in 0..3_000 {
        number += 1;
        let mut frame = numbered(&coinbase_message(&mut truth, &mut draw), number);
        let members = match draw.below(4) {
            0 => own,
            1 => taker,
            _ => "",
        };
        if !members.is_empty() {
            frame = format!("{},{members}}}", &frame[..frame.len() - 1]);
            added += 1;
        }
        follower.feed(&frame).unwrap_or_else(|reason| panic!("{reason:?} {frame}"));
        assert_eq!(follower.proof(), Proof::Sequence, "{frame}");
        if draw.below(20) == 0 {
            assert_eq!(follower.feed(&activated), Ok(Applied::Control));
            between += 1;
        }
        follower.assert_is(&truth);
    }
    let counters = follower.engine.counters().venue(Venue::CoinbaseExchange);
    assert!(added > 1_000 && between > 100, "{added} {between}");
    assert_eq!((counters.gaps, counters.resyncs, counters.drops_total()), (0, 0, 0), "{counters:?}");
}

/// A book is fetched for an earlier number than that of the messages kept for it: what is kept brings it up to date.
#[test]
fn orders_kept_for_a_snapshot_are_replayed() {
    let mut follower = Follower::new(Venue::CoinbaseExchange, 256, None);
    let (mut truth, mut draw) = (Truth::default(), Draw(8));
    for _ in 0..40 {
        coinbase_message(&mut truth, &mut draw);
    }
    assert!(follower.engine.poll_request(Nanos(follower.now)).is_some());
    let body = coinbase_book(&truth, 500);
    for number in 501..=540 {
        let message = coinbase_message(&mut truth, &mut draw);
        assert!(matches!(
            follower.feed(&numbered(&message, number)),
            Ok(Applied::Book { update: BookUpdate::Buffered, .. })
        ));
    }
    let id = follower.id;
    follower.engine.handle_snapshot(Nanos(follower.now), id, body.as_bytes(), &mut Off).unwrap();
    assert_eq!(follower.proof(), Proof::Sequence);
    follower.assert_is(&truth);
    assert_eq!(follower.engine.book_orders_len(), truth.sides[0].len() + truth.sides[1].len());
}

#[test]
fn an_execution_of_no_order_and_an_order_too_many_cost_the_book() {
    let mut follower = Follower::new(Venue::CoinbaseExchange, 8, None);
    let truth = Truth { sides: [vec![(1, 9_990, 500)], vec![(2, 10_010, 500)]], next: 2 };
    assert!(follower.engine.poll_request(Nanos(follower.now)).is_some());
    let id = follower.id;
    let join = |follower: &mut Follower| {
        let body = coinbase_book(&truth, 500);
        follower.engine.handle_snapshot(Nanos(follower.now), id, body.as_bytes(), &mut Off).unwrap();
    };
    join(&mut follower);
    let trade =
        "\"trade_id\":1,\"maker_order_id\":\"#M\",\"taker_order_id\":\"t\",\"side\":\"sell\",\"size\":\"0.600\"";
    let trade = format!(
        "{{\"type\":\"match\",{trade},\"price\":\"100.10\",\"product_id\":\"BTC-USD\",\"sequence\":501,\"time\":\"{TS}\"}}"
    );
    // More than there is, or of an order that is not there.
    for maker in [2, 3] {
        assert_eq!(follower.feed(&trade.replace("#M", &uuid(maker))), Err(DropReason::UnknownOrder));
        assert!(matches!(follower.proof(), Proof::Stale | Proof::Syncing));
        follower.now += 10_000_000_000;
        assert!(follower.engine.poll_request(Nanos(follower.now)).is_some());
        join(&mut follower);
    }
    let open = |number: u64| {
        let order = format!(
            "\"order_id\":\"{}\",\"price\":\"99.00\",\"remaining_size\":\"0.100\",\"side\":\"buy\"",
            uuid(number)
        );
        format!(
            "{{\"type\":\"open\",\"time\":\"{TS}\",\"product_id\":\"BTC-USD\",\"sequence\":{},{order}}}",
            490 + number
        )
    };
    for number in 11..17 {
        assert!(matches!(
            follower.feed(&open(number)),
            Ok(Applied::Book { update: BookUpdate::Snapshot | BookUpdate::Delta, .. })
        ));
    }
    assert_eq!(follower.feed(&open(17)), Err(DropReason::BookOrdersFull));
    assert_eq!(follower.proof(), Proof::Stale);
    let mut engine = Engine::new(Capacity::default());
    let spec = *follower.engine.instrument(id).unwrap();
    let id = engine.add_instrument(spec).unwrap();
    assert_eq!(engine.follow_orders(id), Err(AddError::Full), "no room was asked for");
    let spec = InstrumentSpec { venue: Venue::Okx, ..spec };
    let id = engine.add_instrument(spec).unwrap();
    assert_eq!(engine.follow_orders(id), Err(AddError::BadInstrument), "no such feed");
}

fn kraken_order(order: &Order, event: Option<&str>) -> String {
    let event = event.map_or_else(String::new, |event| format!("\"event\":\"{event}\","));
    let numbers = format!("\"limit_price\":{},\"order_qty\":{}", px(order.1), qty(order.2));
    format!("{{{event}\"order_id\":\"O{:05}-BXL4E-5WGINO\",{numbers},\"timestamp\":\"{TS}\"}}", order.0)
}

fn kraken_frame(kind: &str, sides: &[Vec<String>; 2], checksum: u32) -> String {
    let orders = format!("\"bids\":[{}],\"asks\":[{}]", sides[0].join(","), sides[1].join(","));
    let book = format!("{{\"symbol\":\"BTC-USD\",\"checksum\":{checksum},{orders},\"timestamp\":\"{TS}\"}}");
    format!("{{\"channel\":\"level3\",\"type\":\"{kind}\",\"data\":[{book}]}}")
}

fn kraken_snapshot(truth: &Truth) -> String {
    let side = |side: usize| truth.sorted(side).iter().map(|order| kraken_order(order, None)).collect();
    kraken_frame("snapshot", &[side(0), side(1)], truth.checksum())
}

/// A few changes in one message; the true book after them is cut to `depth` levels, as the venue does.
fn kraken_update(truth: &mut Truth, draw: &mut Draw, depth: usize) -> [Vec<String>; 2] {
    let mut changes = [Vec::new(), Vec::new()];
    for _ in 0..=draw.below(3) {
        let side = draw.below(2) as usize;
        let all = truth.sides[side].len() as u64;
        match draw.below(8) {
            0..4 => {
                truth.next += 1;
                let cents = if side == 0 { 9_990 - draw.below(30) } else { 10_010 + draw.below(30) } as i64;
                let order = (truth.next, cents, draw.below(5000) as i64 + 1);
                truth.sides[side].push(order);
                changes[side].push(kraken_order(&order, Some("add")));
            }
            4..6 if all > 4 => {
                let (number, cents, _) = truth.sides[side].remove(draw.below(all) as usize);
                changes[side].push(kraken_order(&(number, cents, 0), Some("delete")));
            }
            6 if all > 0 => {
                // Less of it: its rank stays.
                let order = &mut truth.sides[side][draw.below(all) as usize];
                order.2 = draw.below(order.2 as u64) as i64 + 1;
                changes[side].push(kraken_order(order, Some("modify")));
            }
            7 if all > 0 => {
                // At another price, behind all others there.
                let (number, cents, amount) = truth.sides[side].remove(draw.below(all) as usize);
                let order = (number, if side == 0 { cents - 1 } else { cents + 1 }, amount);
                truth.sides[side].push(order);
                changes[side].push(kraken_order(&order, Some("modify")));
            }
            _ => {}
        }
    }
    truth.cut(depth);
    changes
}

#[test]
fn kraken_orders_are_proved_by_their_checksum_at_every_frame() {
    let mut follower = Follower::new(Venue::Kraken, 1024, Some(12));
    let (mut truth, mut draw) = (Truth::default(), Draw(4));
    for _ in 0..60 {
        kraken_update(&mut truth, &mut draw, 12);
    }
    follower.feed(&kraken_snapshot(&truth)).unwrap();
    assert_eq!(follower.proof(), Proof::Crc);
    for _ in 0..4_000 {
        let changes = kraken_update(&mut truth, &mut draw, 12);
        let frame = kraken_frame("update", &changes, truth.checksum());
        assert_eq!(
            follower.feed(&frame),
            Ok(Applied::Book { instrument: follower.id, update: BookUpdate::Delta }),
            "{frame}"
        );
        assert_eq!(follower.proof(), Proof::Crc);
        follower.assert_is(&truth);
        assert_eq!(follower.engine.book_orders_len(), truth.sides[0].len() + truth.sides[1].len());
    }
    let counters = *follower.engine.counters().venue(Venue::Kraken);
    assert_eq!((counters.crc_matches, counters.crc_mismatches), (4_001, 0));
    // The rank of two orders is part of the proof: the sums are the same, the checksum is not.
    let at = truth.levels(0)[0].0;
    truth.sides[0].push((90_001, at, 7));
    truth.sides[0].push((90_002, at, 8));
    let changes =
        [vec![kraken_order(&(90_002, at, 8), Some("add")), kraken_order(&(90_001, at, 7), Some("add"))], vec![]];
    assert_eq!(follower.feed(&kraken_frame("update", &changes, truth.checksum())), Err(DropReason::ChecksumMismatch));
    assert_eq!(follower.proof(), Proof::Stale);
    follower.now += 1_000_000_000;
    assert!(matches!(follower.engine.poll_request(Nanos(follower.now)), Some(Request::Resubscribe { .. })));
    follower.feed(&kraken_snapshot(&truth)).unwrap();
    assert_eq!(follower.proof(), Proof::Crc);
    follower.assert_is(&truth);
    assert!(truth.find(90_001).is_some());
}

/// The venue lists finer steps: orders keep their prices, quantities and ranks, of which the next checksum is made.
#[test]
fn finer_steps_cost_no_order() {
    let mut follower = Follower::new(Venue::Kraken, 1024, Some(12));
    let (mut truth, mut draw) = (Truth::default(), Draw(9));
    for _ in 0..80 {
        kraken_update(&mut truth, &mut draw, 12);
    }
    follower.feed(&kraken_snapshot(&truth)).unwrap();
    follower.engine.refine(follower.id, Decimal::new(1, 3), Decimal::new(1, 5)).unwrap();
    for (_, px, qty) in truth.sides.iter_mut().flatten() {
        (*px, *qty) = (*px * 10, *qty * 100);
    }
    let gone = truth.sides[0].remove(3);
    let came = (truth.next + 1, truth.levels(1)[0].0 - 1, 12_345);
    truth.sides[1].push(came);
    truth.cut(12);
    let order = |event: &str, (number, px, qty): Order| {
        let (px, qty) = (Decimal::new(px, 3), Decimal::new(qty, 5));
        let numbers = format!("\"limit_price\":{px},\"order_qty\":{qty}");
        format!("{{\"event\":\"{event}\",\"order_id\":\"O{number:05}-BXL4E-5WGINO\",{numbers},\"timestamp\":\"{TS}\"}}")
    };
    let frame = kraken_frame("update", &[vec![order("delete", gone)], vec![order("add", came)]], truth.checksum());
    follower.feed(&frame).unwrap();
    assert_eq!(follower.proof(), Proof::Crc);
    follower.assert_is(&truth);
    assert_eq!(follower.engine.book_orders_len(), truth.sides[0].len() + truth.sides[1].len());
}

/// The example of Kraken's guide "Spot WebSockets v2: level3 checksum": prices in tenths, quantities in units of 1e-8.
#[test]
fn the_checksum_of_the_documents_example_fits() {
    let bids: &[(i64, i64)] = &[
        (449_394, 88_968_699),
        (449_394, 45_210_000),
        (449_394, 10_000_000),
        (449_394, 14_296_323),
        (449_394, 25_000_000),
        (449_394, 10_292_988),
        (449_394, 33_880_000),
        (449_394, 128_140_860),
        (449_371, 3_346_877),
        (449_347, 35_630_000),
        (449_302, 22_734_299),
        (449_302, 1_000_000),
        (449_302, 5_550_000),
        (449_302, 70_000_000),
        (449_302, 15_000_000),
        (449_280, 105_240),
        (449_196, 33_870_000),
        (449_195, 7_610_000),
        (449_120, 35_630_000),
        (449_097, 6_690_000),
        (449_019, 88_982),
    ];
    let asks: &[(i64, i64)] = &[
        (449_395, 452_308_393),
        (449_395, 111_261),
        (449_395, 100_000),
        (449_395, 1_000_000),
        (449_500, 10_334_926),
        (449_530, 64_537),
        (449_550, 250_000),
        (449_596, 35_630_000),
        (449_596, 35_630_000),
        (449_601, 338_072),
        (449_602, 88_967_575),
        (449_670, 314_392_283),
        (449_785, 6_778_960),
        (449_792, 35_630_000),
    ];
    let mut number = 0;
    let orders = [bids, asks].map(|side| {
        let order = |(px, qty): &(i64, i64)| {
            number += 1;
            let (px, qty) = (Decimal::new(*px, 1), Decimal::new(*qty, 8));
            let numbers = format!("\"limit_price\":{px},\"order_qty\":{qty}");
            format!("{{\"order_id\":\"O{number:05}-BXL4E-5WGINO\",{numbers},\"timestamp\":\"{TS}\"}}")
        };
        side.iter().map(order).collect::<Vec<_>>()
    });
    let steps = [Decimal::new(1, 1), Decimal::new(1, 8)];
    let mut follower = Follower::with_steps(Venue::Kraken, 64, Some(10), steps);
    assert_eq!(
        follower.feed(&kraken_frame("snapshot", &orders, 1_063_832_830)),
        Err(DropReason::ChecksumMismatch),
        "another checksum does not fit"
    );
    let mut follower = Follower::with_steps(Venue::Kraken, 64, Some(10), steps);
    follower.feed(&kraken_frame("snapshot", &orders, 1_063_832_831)).unwrap();
    assert_eq!(follower.proof(), Proof::Crc);
    assert_eq!(follower.engine.book_orders_len(), bids.len() + asks.len());
}
