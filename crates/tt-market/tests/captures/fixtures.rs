//! Single frames of message kinds that no capture holds, read exactly as a JSON library with exact numbers reads them,
//! and followed through the engine.

use crate::captured::{Capture, Feed};
use crate::parsers::{plain, plain_text, shuffle};
use serde_json::{Value, json};
use std::path::Path;
use testkit::require_captures;
use tt_journal::Record;
use tt_market::DropReason;
use tt_market::candle::CandleSource;
use tt_market::mark::Position;
use tt_market::orders::OrderState;
use tt_market::{Applied, InstrumentSpec};
use tt_model::{Decimal, Nanos, OrderSide};
use tt_venue::event::{AggressorSide, Event, EventBuffer, Fill, OrderId, OrderStatus, OrderUpdate, Ticker, Trade};
use tt_venue::{Symbol, Venue};

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join("fixtures").join(format!("{name}.json"))).unwrap()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The text as a venue sends it: without white space, which no string of these frames holds.
fn compact(text: &str) -> String {
    text.split_ascii_whitespace().collect()
}

/// Reads a frame as it is, without its white space, and with its keys in other orders; all must agree.
fn event(venue: Venue, text: &str) -> (Event, EventBuffer) {
    let parse = |text: &str| {
        let mut buffer = EventBuffer::new(64, 64);
        let event = venue.parse(text.as_bytes(), &mut buffer);
        (event.unwrap_or_else(|reason| panic!("{reason:?} {text}")), buffer)
    };
    let expected = parse(text);
    let mut others = vec![compact(text)];
    for mut seed in 0..20 {
        let mut other = String::new();
        shuffle(&value(text), &mut seed, &mut other);
        others.push(other);
    }
    for other in others {
        let (event, buffer) = parse(&other);
        assert_eq!(event, expected.0, "{other}");
        assert_eq!((buffer.trades(), buffer.order_updates()), (expected.1.trades(), expected.1.order_updates()));
    }
    expected
}

/// The number of a field, exactly, whether it is in quotes or not.
fn number(object: &Value, key: &str) -> String {
    let text = match &object[key] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => panic!("{key}: {other}"),
    };
    match text.strip_prefix('-') {
        Some(text) => format!("-{}", plain_text(text).unwrap()),
        None => plain_text(&text).unwrap(),
    }
}

fn ms(object: &Value, key: &str) -> Nanos {
    Nanos::from_millis(object[key].as_u64().unwrap())
}

/// The time of a field `YYYY-MM-DDThh:mm:ss.fZ`, its days counted one year and one month at a time.
fn rfc3339(object: &Value) -> Nanos {
    let text = object["timestamp"].as_str().unwrap();
    let part = |start: usize, len: usize| text[start..start + len].parse::<u64>().unwrap();
    let (year, month) = (part(0, 4), part(5, 2));
    let leap = |year: u64| u64::from(year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)));
    let years: u64 = (1970..year).map(|year| 365 + leap(year)).sum();
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months: u64 = lengths[..month as usize - 1].iter().sum();
    let seconds = ((years + months + part(8, 2) - 1) * 24 + part(11, 2)) * 3600 + part(14, 2) * 60 + part(17, 2);
    let fraction = text[20..].trim_end_matches('Z');
    Nanos(seconds * 1_000_000_000 + format!("{fraction:0<9}").parse::<u64>().unwrap())
}

fn symbol(text: &Value) -> Symbol {
    Symbol::new(text.as_str().unwrap().as_bytes()).unwrap()
}

/// An engine that follows one symbol in steps of 0.00000001.
fn follow(venue: Venue, name: Symbol, candles: CandleSource, ts_event: Nanos) -> Feed {
    let fine = Decimal::new(1, 8);
    let depth_max = venue.rules().truncates.then_some(25);
    let spec = InstrumentSpec { venue, symbol: name, tick_size: fine, lot_size: fine, depth_max, candles };
    let frames = vec![record(ts_event, "")];
    Feed::new(&Capture { specs: vec![spec], frames })
}

/// A frame that is received ten milliseconds after the venue's own time.
fn record(ts_event: Nanos, text: &str) -> Record {
    Record { ts_ns: ts_event.0 + 10_000_000, payload: text.as_bytes().to_vec() }
}

/// A price or quantity of the engine, which counts in steps of 0.00000001.
fn steps(count: i64) -> String {
    plain(Decimal::new(count, 8))
}

/// The same of a number's plain text.
fn count(plain: &str) -> i64 {
    let (digits, decimals) = plain.split_once("e-").unwrap();
    digits.parse::<i64>().unwrap() * 10_i64.pow(8 - decimals.parse::<u32>().unwrap())
}

#[test]
fn a_kraken_ticker_is_published_and_moves_the_candle_of_last_prices() {
    let Some(folder) = require_captures() else { return };
    let text = read(&folder, "kraken/ws_ticker_snapshot");
    let frame = value(&text);
    let expected = &frame["data"][0];
    let (Event::Tickers, buffer) = event(Venue::Kraken, &text) else { panic!("a ticker") };
    let [ticker] = *buffer.tickers() else { panic!("one ticker") };
    let Ticker { bid_px, bid_qty, ask_px, ask_qty, last_px, ts_event, .. } = ticker;
    for (read, key) in [(bid_px, "bid"), (bid_qty, "bid_qty"), (ask_px, "ask"), (ask_qty, "ask_qty"), (last_px, "last")]
    {
        assert_eq!(read.map(plain), Some(number(expected, key)), "{key}");
    }
    assert_eq!((ticker.symbol, ts_event), (symbol(&expected["symbol"]), rfc3339(expected)));

    let mut feed = follow(Venue::Kraken, ticker.symbol, CandleSource::LastPrice, ts_event);
    assert_eq!(feed.feed(&record(ts_event, &text)), Ok(Applied::Ticker(feed.id)));
    let mut later = frame.clone();
    later["data"][0]["last"] = json!(105_900.5);
    assert_eq!(feed.feed(&record(ts_event, &later.to_string())), Ok(Applied::Ticker(feed.id)));
    let board = feed.engine.board();
    let shown = board.ticker(feed.id).unwrap();
    let (bid, ask) = (shown.bid.unwrap(), shown.ask.unwrap());
    assert_eq!([steps(bid.px.0), steps(bid.qty.0)], [number(expected, "bid"), number(expected, "bid_qty")]);
    assert_eq!([steps(ask.px.0), steps(ask.qty.0)], [number(expected, "ask"), number(expected, "ask_qty")]);
    assert_eq!(steps(shown.last_px.0), number(&later["data"][0], "last"));
    let candle = board.candle(feed.id, 0).unwrap();
    assert_eq!(steps(candle.open_px.0), number(expected, "last"));
    assert_eq!((steps(candle.close_px.0), candle.updates), (number(&later["data"][0], "last"), 2));
    assert_eq!(
        (candle.high_px, candle.low_px),
        (candle.close_px.max(candle.open_px), candle.close_px.min(candle.open_px))
    );
}

#[test]
fn kraken_trades_of_one_frame_make_one_candle() {
    let Some(folder) = require_captures() else { return };
    let text = read(&folder, "kraken/ws_trade_update");
    let frame = value(&text);
    let expected = frame["data"].as_array().unwrap();
    let (first, buffer) = event(Venue::Kraken, &text);
    assert_eq!((first, buffer.trades().len()), (Event::Trades, expected.len()));
    for (trade, expected) in buffer.trades().iter().zip(expected) {
        let Trade { symbol: name, trade_id, px, qty, aggressor, in_market, is_history, ts_event } = *trade;
        assert_eq!((name, trade_id), (symbol(&expected["symbol"]), expected["trade_id"].as_u64().unwrap()));
        assert_eq!([plain(px), plain(qty)], [number(expected, "price"), number(expected, "qty")]);
        let side = if expected["side"] == "buy" { AggressorSide::Buy } else { AggressorSide::Sell };
        assert_eq!((aggressor, in_market, is_history, ts_event), (side, true, false, rfc3339(expected)));
    }
    let ts = rfc3339(&expected[0]);
    let mut feed = follow(Venue::Kraken, symbol(&expected[0]["symbol"]), CandleSource::Trades, ts);
    assert_eq!(feed.feed(&record(ts, &text)), Ok(Applied::Trades));
    let candle = feed.engine.board().candle(feed.id, 0).unwrap();
    let px: Vec<_> = expected.iter().map(|trade| count(&number(trade, "price"))).collect();
    assert_eq!([candle.open_px.0, candle.close_px.0], [px[0], px[px.len() - 1]]);
    assert_eq!([candle.low_px.0, candle.high_px.0], [*px.iter().min().unwrap(), *px.iter().max().unwrap()]);
    let volume: i64 = expected.iter().map(|trade| count(&number(trade, "qty"))).sum();
    assert_eq!((candle.volume.0, candle.updates), (volume, expected.len() as u64));
}

#[test]
fn a_binance_mark_price_moves_profit_and_loss() {
    let Some(folder) = require_captures() else { return };
    let text = read(&folder, "binance/futures_market_data_json_mark_price_stream");
    let expected = value(&text);
    let (Event::MarkPrice(mark), buffer) = event(Venue::BinanceUsdm, &compact(&text)) else { panic!("a mark price") };
    assert!(!buffer.is_general(), "the scanner knows the venue's order of keys");
    assert_eq!([plain(mark.mark_px), plain(mark.index_px)], [number(&expected, "p"), number(&expected, "i")]);
    assert_eq!(mark.funding_rate.map(plain), Some(number(&expected, "r")));
    assert_eq!((mark.ts_event, mark.ts_next_funding), (ms(&expected, "E"), ms(&expected, "T")));

    let mut feed = follow(Venue::BinanceUsdm, symbol(&expected["s"]), CandleSource::Trades, mark.ts_event);
    let entry_px = Decimal::new(mark.mark_px.mantissa - 250, mark.mark_px.decimals);
    for (slot, lots) in [(0, 300), (1, -40)] {
        let position = Position { instrument: feed.id, account: 7, lots, entry_px };
        feed.engine.set_position(slot, Some(position)).unwrap();
    }
    assert_eq!(feed.feed(&record(mark.ts_event, &text)), Ok(Applied::MarkPrice(feed.id)));
    let board = feed.engine.board();
    let profit = |slot| board.position(slot).map(|value| (value.pnl_mantissa, value.pnl_decimals));
    assert_eq!(profit(0), Some((300 * 250, mark.mark_px.decimals + 8)));
    let mut later = expected.clone();
    later["p"] = json!("11794.14998000");
    later["r"] = json!("-0.00000001");
    assert_eq!(feed.feed(&record(mark.ts_event, &later.to_string())), Ok(Applied::MarkPrice(feed.id)));
    assert_eq!((profit(0), profit(1)), (Some((300 * -1750, 16)), Some((-40 * -1750, 16))));
    assert_eq!(board.mark_price(feed.id).unwrap().funding_rate.map(plain), Some(number(&later, "r")));
}

/// What an order frame of Binance must become, and its numbers as the JSON library has them.
fn expected_order(object: &Value, ts_event: Nanos, status: OrderStatus) -> (String, OrderUpdate) {
    let exact = |key: &str| Decimal::parse(object[key].as_str().unwrap().as_bytes()).unwrap();
    let keys = ["p", "q", "z", "l", "L"];
    let shown: Vec<_> = keys.iter().map(|key| number(object, key)).collect();
    let decimal = |key: &str| object[key].as_str().map(|text| Decimal::parse(text.as_bytes()).unwrap());
    let fill = (exact("l").mantissa != 0).then(|| Fill {
        trade_id: OrderId::new(object["t"].to_string().as_bytes()).unwrap(),
        px: exact("L"),
        qty: exact("l"),
        fee: decimal("n"),
        fee_asset: object["N"].as_str().map(|text| Symbol::new(text.as_bytes()).unwrap()),
        is_maker: object["m"].as_bool(),
    });
    let update = OrderUpdate {
        symbol: Some(symbol(&object["s"])),
        order_id: OrderId::new(object["i"].to_string().as_bytes()).unwrap(),
        side: Some(if object["S"] == "BUY" { OrderSide::Buy } else { OrderSide::Sell }),
        status,
        limit_px: Some(exact("p")),
        qty: Some(exact("q")),
        filled_qty: Some(exact("z")),
        fill,
        ts_event,
    };
    (shown.join(" "), update)
}

fn shown(update: &OrderUpdate) -> String {
    let (qty, px) = update.fill.map_or_else(Default::default, |fill| (fill.qty, fill.px));
    let numbers = [update.limit_px.unwrap(), update.qty.unwrap(), update.filled_qty.unwrap(), qty, px];
    numbers.map(plain).join(" ")
}

/// Reads an order frame, holds it against the JSON library, and returns how the engine knows the order afterwards.
fn follow_order(feed: &mut Feed, venue: Venue, text: &str, status: OrderStatus) -> Option<OrderState> {
    let frame = value(text);
    let object = frame.get("event").or_else(|| frame.get("o").filter(|o| o.is_object())).unwrap_or(&frame);
    let ts_event = if frame["E"].is_u64() { ms(&frame, "E") } else { ms(object, "E") };
    let (numbers, expected) = expected_order(object, ts_event, status);
    let (first, buffer) = event(venue, text);
    assert_eq!((first, buffer.order_updates()), (Event::OrderUpdates, &[expected][..]), "{text}");
    assert_eq!(shown(&buffer.order_updates()[0]), numbers);
    assert_eq!(feed.feed(&record(ts_event, text)), Ok(Applied::Orders));
    feed.engine.order(venue, &expected.order_id).copied()
}

#[test]
fn binance_spot_reports_change_the_order_until_it_ends() {
    let Some(folder) = require_captures() else { return };
    let report = |name: &str| read(&folder, &format!("binance/spot_user_data_json_execution_report_{name}"));
    let (venue, new) = (Venue::BinanceSpot, report("new"));
    let ends =
        [("trade", OrderStatus::Filled), ("canceled", OrderStatus::Cancelled), ("expired", OrderStatus::Expired)];
    for (name, status) in ends {
        let first = value(&new);
        let mut feed = follow(venue, symbol(&first["s"]), CandleSource::Trades, ms(&first, "E"));
        let order = follow_order(&mut feed, venue, &new, OrderStatus::New).unwrap();
        assert_eq!(
            (order.instrument, order.side, order.status),
            (Some(feed.id), Some(OrderSide::Buy), OrderStatus::New)
        );
        assert_eq!([plain(order.limit_px), plain(order.qty)], [number(&first, "p"), number(&first, "q")]);
        let stop = follow_order(&mut feed, venue, &report("stop_loss"), OrderStatus::New).unwrap();
        assert_eq!((stop.side, feed.engine.orders_len()), (Some(OrderSide::Sell), 2));
        assert_eq!(follow_order(&mut feed, venue, &report(name), status), None, "{name}");
        assert_eq!((feed.engine.orders_len(), feed.counters().order_updates), (1, 3));
    }
    let wrapped = report("wrapped");
    let first = &value(&wrapped)["event"];
    let mut feed = follow(venue, symbol(&first["s"]), CandleSource::Trades, ms(first, "E"));
    assert!(follow_order(&mut feed, venue, &wrapped, OrderStatus::New).is_some());
}

#[test]
fn binance_usdm_updates_change_the_order_until_it_ends() {
    let Some(folder) = require_captures() else { return };
    let venue = Venue::BinanceUsdm;
    // An automatic close is executed on arrival, and no other update follows.
    let updates = [
        ("new", OrderStatus::New),
        ("trade_partial", OrderStatus::PartiallyFilled),
        ("trade", OrderStatus::PartiallyFilled),
        ("calculated_pending", OrderStatus::New),
        ("calculated", OrderStatus::Filled),
        ("settlement", OrderStatus::Filled),
        ("delivery", OrderStatus::Filled),
        ("adl", OrderStatus::Filled),
        ("insurance", OrderStatus::Filled),
    ];
    for (name, status) in updates {
        let text = read(&folder, &format!("binance/futures_user_data_json_order_update_{name}"));
        let frame = value(&text);
        let mut feed = follow(venue, symbol(&frame["o"]["s"]), CandleSource::Trades, ms(&frame, "E"));
        let order = follow_order(&mut feed, venue, &text, status);
        assert_eq!(order.map(|order| order.status), status.is_open().then_some(status), "{name}");
        assert_eq!(order.map(|order| plain(order.filled_qty)), status.is_open().then(|| number(&frame["o"], "z")));
    }
    // The fixtures' one order: opened, then executed in part, then ended by hand.
    let text = |name: &str| read(&folder, &format!("binance/futures_user_data_json_order_update_{name}"));
    let first = value(&text("new"));
    let mut feed = follow(venue, symbol(&first["o"]["s"]), CandleSource::Trades, ms(&first, "E"));
    follow_order(&mut feed, venue, &text("new"), OrderStatus::New).unwrap();
    let order = follow_order(&mut feed, venue, &text("trade_partial"), OrderStatus::PartiallyFilled).unwrap();
    assert_eq!((plain(order.qty), plain(order.filled_qty)), ("2e-3".to_owned(), "1e-3".to_owned()));
    let mut end = value(&text("trade_partial"));
    end["o"]["X"] = json!("EXPIRED_IN_MATCH");
    assert_eq!(follow_order(&mut feed, venue, &end.to_string(), OrderStatus::Expired), None);
    assert_eq!(feed.engine.orders_len(), 0);
}

/// No fixture of Kraken's `executions` exists: the frames are made from the field list of the venue's documentation,
/// of which an update of the state alone leaves most out.
#[test]
fn kraken_executions_change_the_order_until_it_ends() {
    let venue = Venue::Kraken;
    let name = Symbol::new(b"BTC/USD").unwrap();
    let id = OrderId::new(b"OK4GJX-KSTLS-7DZZO5").unwrap();
    let frame = |kind: &str, entries: &[Value]| {
        json!({"channel": "executions", "type": kind, "data": entries, "sequence": 3}).to_string()
    };
    let entry = |status: &str, second: u32| {
        let ts = format!("2026-08-01T10:33:{second:02}.709950Z");
        json!({"order_id": "OK4GJX-KSTLS-7DZZO5", "exec_type": status, "order_status": status, "timestamp": ts})
    };
    let with = |mut entry: Value, more: Value| {
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let opened = json!({"cl_ord_id": "a-1", "symbol": "BTC/USD", "side": "sell", "order_type": "limit",
        "order_qty": 0.00500000, "limit_price": 26500.10, "cum_qty": 0.0, "cum_cost": 0.0, "avg_price": 0.0,
        "time_in_force": "GTC", "post_only": false, "reduce_only": false});
    let pending = with(entry("pending_new", 5), opened);
    let filled = json!({"exec_type": "trade", "exec_id": "TX4", "trade_id": 365_573, "last_qty": 0.002,
        "last_price": 26_500.1, "cum_qty": 0.002, "cum_cost": 53.0002, "avg_price": 26500.1, "cost": 53.0002,
        "liquidity_ind": "m", "fees": [{"asset": "USD", "qty": 0.13780052}]});
    let partial = with(entry("partially_filled", 6), filled);

    let (first, buffer) = event(venue, &frame("snapshot", &[pending.clone(), partial.clone()]));
    assert_eq!((first, buffer.order_updates().len()), (Event::Account, 2));
    let [one, two] = buffer.order_updates() else { panic!("two updates") };
    assert_eq!((one.symbol, one.side, one.status), (Some(name), Some(OrderSide::Sell), OrderStatus::Pending));
    assert_eq!(one.limit_px.map(plain), Some(number(&pending, "limit_price")));
    assert_eq!([one.qty.map(plain), one.filled_qty.map(plain)], [Some("5e-3".to_owned()), Some("0e-0".to_owned())]);
    assert_eq!((one.order_id, one.fill, one.ts_event), (id, None, rfc3339(&pending)));
    let fill = two.fill.unwrap();
    assert_eq!((fill.trade_id, two.symbol, two.side, two.qty), (OrderId::new(b"TX4").unwrap(), None, None, None));
    assert_eq!([plain(fill.px), plain(fill.qty)], [number(&partial, "last_price"), number(&partial, "last_qty")]);

    let ts = rfc3339(&pending);
    let mut feed = follow(venue, name, CandleSource::Trades, ts);
    for (entry, status, done) in [
        (&pending, OrderStatus::Pending, "0e-0"),
        (&entry("new", 5), OrderStatus::New, "0e-0"),
        (&partial, OrderStatus::PartiallyFilled, "2e-3"),
    ] {
        assert_eq!(feed.feed(&record(ts, &frame("update", std::slice::from_ref(entry)))), Ok(Applied::Orders));
        let order = feed.engine.order(venue, &id).unwrap();
        assert_eq!(
            (order.status, plain(order.filled_qty), plain(order.qty)),
            (status, done.to_owned(), "5e-3".to_owned())
        );
        assert_eq!((order.instrument, order.side), (Some(feed.id), Some(OrderSide::Sell)), "sent once, kept since");
    }
    // One entry that cannot be applied costs no other entry of its frame.
    let stranger = with(entry("new", 7), json!({"order_id": "OTHER", "symbol": "XRP/USD"}));
    let late = entry("new", 4);
    let frame = frame("update", &[stranger, late, entry("canceled", 8)]);
    assert_eq!(feed.feed(&record(ts, &frame)), Err(DropReason::UnknownSymbol), "the first reason");
    assert_eq!((feed.engine.order(venue, &id), feed.engine.orders_len()), (None, 0));
    assert!(feed.counters().closes());
}

/// Message kinds that the engine does not read are refused as such: they must never cost a book its status.
#[test]
fn no_message_of_a_known_venue_counts_as_malformed() {
    let Some(folder) = require_captures() else { return };
    let mut seen = 0;
    for (venue, place, kinds) in [
        (Venue::Kraken, "kraken", &["ws_"][..]),
        (Venue::BinanceSpot, "binance", &["spot_user_data_json", "futures_market_data", "futures_user_data"]),
    ] {
        for entry in std::fs::read_dir(folder.join("fixtures").join(place)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            // Kraken Futures is another venue, and requests are what a client sends.
            let other = name.starts_with("ws_futures") || name.ends_with("_request");
            if other || !kinds.iter().any(|kind| name.starts_with(kind)) {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            let mut buffer = EventBuffer::new(64, 64);
            let result = venue.parse(&text, &mut buffer);
            // The venue's documentation gives these three a time in the year 1973.
            let invented = ["trade_stream", "depth_update_stream", "agg_trade_stream"]
                .map(|kind| format!("futures_market_data_json_{kind}"));
            match result {
                Ok(_) => {}
                Err(reason) if invented.contains(&name) => assert_eq!(reason, tt_venue::ParseError::Time, "{name}"),
                Err(reason) => assert!(!reason.is_malformed(), "{name}: {reason:?}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}
