//! After its creation an engine allocates nothing, whatever its venue sends: books, prices, accounts, single orders.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use allocation_counter::measure;
use tt_market::candle::CandleSource;
use tt_market::{BookSide, DropReason};
use tt_market::{Capacity, ConnectionId, Engine, InstrumentSpec};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

const MS: u64 = 1_700_000_000_000;

fn engine(venue: Venue, book_orders: usize) -> (Engine, ConnectionId, InstrumentId) {
    let capacity = Capacity { instruments: 2, pages: 200, overflow_levels: 64, book_orders, ..Capacity::default() };
    let mut engine = Engine::new(capacity);
    let spec = InstrumentSpec {
        venue,
        symbol: Symbol::new(b"BTCUSDT").unwrap(),
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 3),
        depth_max: None,
        candles: CandleSource::BestBid,
    };
    let id = engine.add_instrument(spec).unwrap();
    if book_orders > 0 {
        engine.follow_orders(id).unwrap();
    }
    let connection = engine.open_connection(venue, Nanos::from_millis(MS)).unwrap();
    engine.subscribe(connection, id, Nanos::from_millis(MS)).unwrap();
    (engine, connection, id)
}

/// Feeds frames over and over until nothing new can be in them, then once more under the counter.
fn steady(engine: &mut Engine, connection: ConnectionId, frames: &[String]) -> u64 {
    let mut now = MS;
    let mut run = |engine: &mut Engine| {
        for frame in frames {
            now += 1;
            let _ = engine.handle_frame(Nanos::from_millis(now), connection, frame.as_bytes(), &mut Off);
            while engine.poll_request(Nanos::from_millis(now)).is_some() {}
            engine.handle_timeout(Nanos::from_millis(now));
        }
        engine.publish_counters();
    };
    measure(|| run(engine)).count_total + measure(|| run(engine)).count_total
}

/// Frames that come out of their usual order, by white space alone, take the general path.
fn both_ways(frames: Vec<String>) -> Vec<String> {
    frames.into_iter().flat_map(|frame| [frame.replacen(',', ", ", 1), frame]).collect()
}

fn bybit_linear(i: u64) -> Vec<String> {
    let (px, qty) = numbers(i);
    let kind = if i % 50 == 1 { "snapshot" } else { "delta" };
    // Every seventieth number is missing.
    let id = i + i / 70;
    let book = format!(
        "\"s\":\"BTCUSDT\",\"b\":[[\"{px}\",\"{qty}\"]],\"a\":[[\"{}\",\"{qty}\"]],\"u\":{id},\"seq\":{id}",
        px + 40
    );
    let order = format!(
        "\"symbol\":\"BTCUSDT\",\"orderId\":\"o{i}\",\"side\":\"Buy\",\"price\":\"{px}\",\"qty\":\"{qty}\",\"orderStatus\":\"New\",\"cumExecQty\":\"0\",\"updatedTime\":\"{}\"",
        MS + i
    );
    let execution = format!(
        "\"symbol\":\"BTCUSDT\",\"execId\":\"e{i}\",\"execPrice\":\"{px}\",\"execQty\":\"{qty}\",\"orderId\":\"o{i}\",\"isMaker\":false,\"side\":\"Buy\",\"execTime\":\"{MS}\""
    );
    let position = format!(
        "\"positionIdx\":0,\"symbol\":\"BTCUSDT\",\"side\":\"Buy\",\"size\":\"{qty}\",\"entryPrice\":\"{px}\",\"unrealisedPnl\":\"1\",\"updatedTime\":\"{}\"",
        MS + i
    );
    vec![
        format!(
            "{{\"topic\":\"orderbook.50.BTCUSDT\",\"type\":\"{kind}\",\"ts\":{MS},\"data\":{{{book}}},\"cts\":{MS}}}"
        ),
        format!(
            "{{\"topic\":\"tickers.BTCUSDT\",\"type\":\"delta\",\"data\":{{\"symbol\":\"BTCUSDT\",\"markPrice\":\"{px}\",\"bid1Price\":\"{px}\",\"bid1Size\":\"{qty}\"}},\"cs\":{i},\"ts\":{MS}}}"
        ),
        format!(
            "{{\"topic\":\"kline.1.BTCUSDT\",\"data\":[{{\"start\":{MS},\"end\":{MS},\"interval\":\"1\",\"open\":\"{px}\",\"close\":\"{px}\",\"high\":\"{px}\",\"low\":\"{px}\",\"volume\":\"1\",\"turnover\":\"1\",\"confirm\":false,\"timestamp\":{MS}}}],\"ts\":{MS},\"type\":\"snapshot\"}}"
        ),
        format!("{{\"id\":\"1\",\"topic\":\"order\",\"creationTime\":{MS},\"data\":[{{{order}}}]}}"),
        format!("{{\"topic\":\"execution\",\"id\":\"1\",\"creationTime\":{MS},\"data\":[{{{execution}}}]}}"),
        format!("{{\"id\":\"1\",\"topic\":\"position\",\"creationTime\":{MS},\"data\":[{{{position}}}]}}"),
        format!(
            "{{\"id\":\"1\",\"topic\":\"wallet\",\"creationTime\":{MS},\"data\":[{{\"totalEquity\":\"1\",\"coin\":[{{\"coin\":\"C{}\",\"walletBalance\":\"{px}\"}}]}}]}}",
            i % 300
        ),
    ]
}

fn okx(i: u64) -> Vec<String> {
    let (px, qty) = numbers(i);
    let (kind, previous) = if i % 50 == 1 { ("snapshot", -1) } else { ("update", i as i64 - 1) };
    let book = format!(
        "\"asks\":[[\"{}\",\"{qty}\",\"0\",\"1\"]],\"bids\":[[\"{px}\",\"{qty}\",\"0\",\"1\"]],\"ts\":\"{MS}\",\"checksum\":0,\"seqId\":{i},\"prevSeqId\":{previous}",
        px + 40
    );
    vec![
        format!(
            "{{\"arg\":{{\"channel\":\"books\",\"instId\":\"BTCUSDT\"}},\"action\":\"{kind}\",\"data\":[{{{book}}}]}}"
        ),
        format!(
            "{{\"arg\":{{\"channel\":\"tickers\",\"instId\":\"BTCUSDT\"}},\"data\":[{{\"instId\":\"BTCUSDT\",\"last\":\"{px}\",\"bidPx\":\"{px}\",\"bidSz\":\"{qty}\",\"ts\":\"{MS}\"}}]}}"
        ),
        format!(
            "{{\"arg\":{{\"channel\":\"trades\",\"instId\":\"BTCUSDT\"}},\"data\":[{{\"instId\":\"BTCUSDT\",\"tradeId\":\"{i}\",\"px\":\"{px}\",\"sz\":\"{qty}\",\"side\":\"buy\",\"ts\":\"{MS}\"}}]}}"
        ),
    ]
}

fn deribit(i: u64) -> Vec<String> {
    let (px, qty) = numbers(i);
    let (kind, previous) = if i % 50 == 1 {
        ("snapshot", String::new())
    } else {
        ("change", format!("\"prev_change_id\":{},", i - 1 - i / 60))
    };
    let book = format!(
        "\"type\":\"{kind}\",\"timestamp\":{MS},{previous}\"instrument_name\":\"BTCUSDT\",\"change_id\":{i},\"bids\":[[\"new\",{px},{qty}]],\"asks\":[[\"new\",{},{qty}]]",
        px + 40
    );
    let message = |topic: &str, data: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{\"channel\":\"{topic}\",\"data\":{{{data}}}}}}}"
        )
    };
    vec![
        message("book.BTCUSDT.raw", &book),
        message(
            "quote.BTCUSDT",
            &format!(
                "\"timestamp\":{MS},\"instrument_name\":\"BTCUSDT\",\"best_ask_price\":{px},\"best_bid_price\":{px},\"best_ask_amount\":{qty},\"best_bid_amount\":{qty}"
            ),
        ),
        message("user.portfolio.btc", &format!("\"balance\":{px},\"available_funds\":{qty},\"currency\":\"BTC\"")),
    ]
}

fn kraken(i: u64) -> Vec<String> {
    let (px, qty) = numbers(i);
    let kind = if i % 50 == 1 { "snapshot" } else { "update" };
    let ts = "2026-08-01T10:33:05.709950Z";
    let book = format!(
        "\"symbol\":\"BTCUSDT\",\"bids\":[{{\"price\":{px},\"qty\":{qty}}}],\"asks\":[],\"checksum\":{i},\"timestamp\":\"{ts}\""
    );
    let candle = format!(
        "\"symbol\":\"BTCUSDT\",\"open\":{px},\"high\":{px},\"low\":{px},\"close\":{px},\"trades\":1,\"volume\":1,\"vwap\":1,\"interval_begin\":\"{ts}\",\"interval\":1,\"timestamp\":\"{ts}\""
    );
    let order = format!(
        "\"order_id\":\"O{i}\",\"symbol\":\"BTCUSDT\",\"side\":\"buy\",\"order_status\":\"new\",\"timestamp\":\"{ts}\""
    );
    vec![
        format!("{{\"channel\":\"book\",\"type\":\"{kind}\",\"data\":[{{{book}}}]}}"),
        format!("{{\"channel\":\"ohlc\",\"type\":\"update\",\"timestamp\":\"{ts}\",\"data\":[{{{candle}}}]}}"),
        format!("{{\"channel\":\"executions\",\"type\":\"update\",\"data\":[{{{order}}}]}}"),
    ]
}

fn hyperliquid(i: u64) -> Vec<String> {
    let (px, qty) = numbers(i);
    let level = |px: u64| format!("[{{\"px\":\"{px}\",\"sz\":\"{qty}\",\"n\":1}}]");
    vec![
        format!(
            "{{\"channel\":\"l2Book\",\"data\":{{\"coin\":\"BTCUSDT\",\"time\":{MS},\"levels\":[{},{}]}}}}",
            level(px),
            level(px + 40)
        ),
        format!(
            "{{\"channel\":\"userFills\",\"data\":{{\"isSnapshot\":false,\"user\":\"0\",\"fills\":[{{\"coin\":\"BTCUSDT\",\"px\":\"{px}\",\"sz\":\"{qty}\",\"side\":\"B\",\"time\":{MS},\"oid\":{i},\"crossed\":true,\"fee\":\"0\",\"tid\":{i},\"feeToken\":\"USDC\"}}]}}}}"
        ),
    ]
}

/// What a venue says in one step.
type Frames = fn(u64) -> Vec<String>;

/// A price and a quantity.
const fn numbers(i: u64) -> (u64, u64) {
    (100 + i % 37, 1 + i % 5)
}

#[test]
fn books_tickers_candles_and_accounts_of_every_venue_allocate_nothing() {
    let venues: [(Venue, Frames); 5] = [
        (Venue::BybitLinear, bybit_linear),
        (Venue::Okx, okx),
        (Venue::Deribit, deribit),
        (Venue::Kraken, kraken),
        (Venue::Hyperliquid, hyperliquid),
    ];
    for (venue, of_one) in venues {
        let frames: Vec<String> = (1..200).flat_map(of_one).collect();
        let (mut engine, connection, _) = engine(venue, 0);
        assert_eq!(steady(&mut engine, connection, &both_ways(frames)), 0, "{venue:?}");
        let counters = engine.counters().venue(venue);
        assert!(counters.closes() && counters.snapshots > 0 && counters.general > 100, "{venue:?} {counters:?}");
    }
}

#[test]
fn orders_of_books_allocate_nothing_up_to_their_bound() {
    for venue in [Venue::CoinbaseExchange, Venue::Kraken] {
        let (mut engine, connection, id) = engine(venue, 500);
        let ts = "2026-08-01T10:33:05.709950Z";
        let frames: Vec<(String, String)> = (1..3000_u64)
            .map(|i| {
                let px = 100 + i % 90;
                let body = format!("{{\"bids\":[[\"{px}\",\"1\",\"a\"]],\"asks\":[],\"sequence\":{i},\"time\":\"{ts}\"}}");
                // More orders than there is room for, and now and then one that ends.
                let frame = if venue == Venue::Kraken {
                    let order = format!("\"order_id\":\"o{}\",\"limit_price\":{px},\"order_qty\":1", i % 700);
                    let (kind, event) = match i % 100 {
                        1 => ("snapshot", ""),
                        50 => ("update", "\"event\":\"delete\","),
                        _ => ("update", "\"event\":\"add\","),
                    };
                    format!("{{\"channel\":\"level3\",\"type\":\"{kind}\",\"data\":[{{\"symbol\":\"BTCUSDT\",\"checksum\":{i},\"bids\":[{{{event}{order}}}],\"asks\":[]}}]}}")
                } else {
                    let order = format!("\"order_id\":\"o{}\",\"price\":\"{px}\",\"remaining_size\":\"1\",\"side\":\"buy\"", i % 900);
                    let kind = if i % 7 == 0 { "done" } else { "open" };
                    let number = i + i / 1500;
                    format!("{{\"type\":\"{kind}\",\"time\":\"{ts}\",\"product_id\":\"BTCUSDT\",\"sequence\":{number},{order}}}")
                };
                (frame, body)
            })
            .collect();
        let used = measure(|| {
            for (i, (frame, body)) in frames.iter().enumerate() {
                let now = Nanos::from_millis(MS + 10 * i as u64);
                let _ = engine.handle_frame(now, connection, frame.as_bytes(), &mut Off);
                while engine.poll_request(now).is_some() {
                    let _ = engine.handle_snapshot(now, id, body.as_bytes(), &mut Off);
                }
                engine.handle_timeout(now);
            }
        });
        assert_eq!(used.count_total, 0, "{venue:?}");
        let counters = engine.counters().venue(venue);
        assert!(counters.closes() && counters.resyncs > 0, "{counters:?}");
        if venue == Venue::CoinbaseExchange {
            assert!(counters.dropped(DropReason::BookOrdersFull) > 0, "{counters:?}");
        }
    }
}

/// Frames of Kraken that its checksum proves: a queue of orders at one price, of which the oldest end.
fn proved_orders() -> Vec<String> {
    let (mut frames, mut queue) = (Vec::new(), Vec::new());
    let order = |event: &str, (number, qty): (u64, u64)| {
        let event = if event.is_empty() { String::new() } else { format!("\"event\":\"{event}\",") };
        let time = "\"timestamp\":\"2026-08-01T10:33:05.709950Z\"";
        format!("{{{event}\"order_id\":\"o{number}\",\"limit_price\":100.1,\"order_qty\":{qty}.000,{time}}}")
    };
    for i in 1..2000_u64 {
        let mut changed = vec![order(if i == 1 { "" } else { "add" }, (i, i % 9 + 1))];
        queue.push((i, i % 9 + 1));
        if queue.len() > 20 {
            changed.push(order("delete", queue.remove(0)));
        }
        let text: String = queue.iter().map(|(_, qty)| format!("1001{qty}000")).collect();
        let (kind, checksum) = (if i == 1 { "snapshot" } else { "update" }, tt_simd::crc32(text.as_bytes()));
        let orders = format!("\"bids\":[{}],\"asks\":[]", changed.join(","));
        let book = format!("{{\"symbol\":\"BTCUSDT\",\"checksum\":{checksum},{orders}}}");
        frames.push(format!("{{\"channel\":\"level3\",\"type\":\"{kind}\",\"data\":[{book}]}}"));
    }
    frames
}

#[test]
fn proved_orders_are_taken_and_read_without_an_allocation() {
    let (mut engine, connection, id) = engine(Venue::Kraken, 64);
    engine.follow_changes(64);
    let frames = proved_orders();
    let mut read = 0;
    let used = measure(|| {
        for (i, frame) in frames.iter().enumerate() {
            let now = Nanos::from_millis(MS + i as u64);
            engine.handle_frame(now, connection, frame.as_bytes(), &mut Off).unwrap();
            while engine.poll_book_event().is_some() {}
            read += engine.resting_orders(id, BookSide::Bid).into_iter().flatten().count();
        }
    });
    assert_eq!(used.count_total, 0);
    let counters = engine.counters().venue(Venue::Kraken);
    assert_eq!((counters.crc_matches, counters.crc_mismatches), (1999, 0));
    assert_eq!(read, (1..20).sum::<usize>() + 20 * 1980);
}
