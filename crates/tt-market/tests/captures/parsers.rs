//! Scanner, general path and a JSON library read the same from captured frames, and from what becomes of them.

use crate::captured::Capture;
use crate::{chained, expected, oracles};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use std::fmt::Write;
use std::sync::LazyLock;
use tt_journal::Record;

use tt_model::Decimal;
use tt_venue::ParseError;
use tt_venue::event::{BookOrders, Event, EventBuffer};
use tt_venue::{Symbol, Venue};

pub(crate) fn parse(venue: Venue, frame: &[u8], buffer: &mut EventBuffer, general: bool) -> Result<String, ParseError> {
    let event = if general { venue.parse_general(frame, buffer) } else { venue.parse(frame, buffer) };
    event.map(|event| shown(&event, buffer))
}

/// A number without regard to how many zeros end it.
pub(crate) fn plain(number: Decimal) -> String {
    let (mut mantissa, mut decimals) = (number.mantissa, number.decimals);
    while decimals > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        decimals -= 1;
    }
    format!("{mantissa}e-{decimals}")
}

/// The same of a number's text, by big whole numbers.
pub(crate) fn plain_text(text: &str) -> Option<String> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut digits: String = format!("{whole}{fraction}");
    let mut decimals = i32::try_from(fraction.len()).ok()? - exponent;
    while decimals > 0 && digits.ends_with('0') {
        digits.pop();
        decimals -= 1;
    }
    while decimals < 0 && digits.len() < 30 {
        digits.push('0');
        decimals += 1;
    }
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0e-0".to_owned() } else { format!("{digits}e-{decimals}") })
}

fn shown(event: &Event, buffer: &EventBuffer) -> String {
    let mut out = String::new();
    let levels = |out: &mut String, levels: &tt_venue::event::Levels| {
        for range in [levels.bids(), levels.asks()] {
            for level in &buffer.levels()[range] {
                let px = Decimal::new(level.px, levels.px_decimals);
                write!(out, " {}x{}", plain(px), plain(Decimal::new(level.qty, levels.qty_decimals))).unwrap();
            }
            out.push('|');
        }
    };
    match event {
        Event::BookTicker(t) => {
            let numbers = [t.bid_px, t.bid_qty, t.ask_px, t.ask_qty].map(plain).join(" ");
            write!(out, "ticker {} {} {numbers}", t.symbol, t.update_id).unwrap();
        }
        Event::Trades => {
            for t in buffer.trades() {
                let (px, qty, side) = (plain(t.px), plain(t.qty), t.aggressor);
                let past = if t.is_history { "history " } else { "" };
                write!(out, "{past}trade {} {} {px} {qty} {side:?} {};", t.symbol, t.trade_id, t.ts_event.0).unwrap();
            }
            out.push_str(&buffer.taken_order().map_or_else(String::new, |update| orders(update, buffer)));
        }
        Event::BookDelta(d) => {
            let ids = [Some(d.first_id), Some(d.last_id), d.previous_id, d.checksum.map(u64::from)];
            write!(out, "delta {} {ids:?} {}", d.symbol, d.ts_event.0 / 1_000_000).unwrap();
            levels(&mut out, &d.levels);
        }
        Event::BookSnapshot(s) => {
            write!(out, "snapshot {} {:?}", s.symbol.unwrap(), s.checksum).unwrap();
            levels(&mut out, &s.levels);
        }
        Event::Tickers => {
            let mut lines = Vec::new();
            for t in buffer.tickers() {
                let best = [t.bid_px, t.bid_qty, t.ask_px, t.ask_qty, t.last_px];
                let other = [t.mark_px, t.index_px, t.mid_px, t.funding_rate, t.open_interest];
                let numbers: Vec<_> =
                    best.iter().chain(&other).map(|number| number.map_or("-".to_owned(), plain)).collect();
                lines.push(format!("ticker {} {} {};", t.symbol, numbers.join(" "), t.ts_event.0));
            }
            lines.sort();
            out.push_str(&lines.concat());
        }
        Event::Candles => {
            for c in buffer.candles() {
                let numbers = [c.open_px, c.high_px, c.low_px, c.close_px, c.volume].map(plain).join(" ");
                write!(out, "candle {} {} {} {numbers};", c.symbol, c.timeframe.0, c.ts_open.0).unwrap();
            }
        }
        Event::Liquidations => {
            for one in buffer.liquidations() {
                let (px, qty, side) = (plain(one.px), plain(one.qty), one.side);
                write!(out, "liquidation {} {side:?} {px} {qty} {};", one.symbol, one.ts_event.0).unwrap();
            }
        }
        Event::MarkPrice(m) => {
            let (mark, index, rate) = (plain(m.mark_px), plain(m.index_px), maybe(m.funding_rate));
            write!(out, "mark {} {mark} {index} {rate} {} {}", m.symbol, m.ts_next_funding.0, m.ts_event.0).unwrap();
        }
        Event::BookOrders(update) => out.push_str(&orders(update, buffer)),
        Event::OrderUpdates | Event::Account => {
            for line in entries(buffer) {
                out.push_str(&line);
                out.push(';');
            }
        }
        Event::OrderList(_) | Event::Control(_) => out.push_str("other"),
    }
    out
}

/// What a frame says about the orders of a book.
fn orders(update: &BookOrders, buffer: &EventBuffer) -> String {
    let BookOrders { symbol, is_snapshot, number, checksum, ts_event } = update;
    let mut out = format!("orders {symbol} {is_snapshot} {number} {} {};", checksum.unwrap_or(0), ts_event.0);
    for one in buffer.book_orders() {
        let numbers = format!("{} {}", maybe(one.px), plain(one.qty));
        write!(out, "{:?} {:?} {} {numbers};", one.action, one.side, one.order_id).unwrap();
    }
    out
}

/// A number that may be untold.
pub(crate) fn maybe(number: Option<Decimal>) -> String {
    number.map_or("-".to_owned(), plain)
}

/// Everything that a frame says about an account, one line for each entry, and whether it lists all.
pub(crate) fn entries(buffer: &EventBuffer) -> Vec<String> {
    let mut lines = Vec::new();
    for order in buffer.order_updates() {
        let symbol = order.symbol.map_or("-".to_owned(), |symbol| symbol.to_string());
        let side = order.side.map_or("-".to_owned(), |side| format!("{side:?}"));
        let numbers = [order.limit_px, order.qty, order.filled_qty].map(maybe).join(" ");
        lines.push(format!(
            "order {symbol} {} {side} {:?} {numbers} {}",
            order.order_id, order.status, order.ts_event.0
        ));
        if let Some(fill) = order.fill {
            let numbers = [Some(fill.px), Some(fill.qty), fill.fee].map(maybe).join(" ");
            let asset = fill.fee_asset.map_or("-".to_owned(), |asset| asset.to_string());
            let maker = fill.is_maker.map_or("-".to_owned(), |maker| maker.to_string());
            lines.push(format!("fill {} {numbers} {asset} {maker}", fill.trade_id));
        }
    }
    for one in buffer.executions() {
        let numbers = [Some(one.px), Some(one.qty), one.fee].map(maybe).join(" ");
        let asset = one.fee_asset.map_or("-".to_owned(), |asset| asset.to_string());
        let maker = one.is_maker.map_or("-".to_owned(), |maker| maker.to_string());
        let head = format!("execution {} {} {} {:?}", one.symbol, one.order_id, one.execution_id, one.side);
        lines.push(format!("{head} {numbers} {asset} {maker} {}", one.ts_event.0));
    }
    for one in buffer.balances() {
        let numbers = [one.total, one.free, one.locked, one.change].map(maybe).join(" ");
        lines.push(format!("balance {} {numbers} {}", one.asset, one.ts_event.0));
    }
    for one in buffer.positions() {
        let numbers = [Some(one.qty), one.entry_px, one.unrealised].map(maybe).join(" ");
        lines.push(format!("position {} {:?} {numbers} {}", one.symbol, one.leg, one.ts_event.0));
    }
    lines.push(format!("{:?} {:?}", buffer.orders_coverage(), buffer.positions_coverage()));
    lines
}

/// What the JSON library reads, `None` where the frame is no event or a field is not of its type.
fn oracle(venue: Venue, frame: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(frame).ok()?;
    if let Some(account) = expected::read(venue, &value) {
        return Some(account);
    }
    match venue {
        Venue::Kraken | Venue::KrakenDerivatives => oracle_kraken(&value),
        Venue::CoinbaseExchange => oracles::coinbase_exchange(&value),
        Venue::CoinbaseAdvanced => oracles::coinbase_advanced(&value),
        Venue::Hyperliquid => oracles::hyperliquid(&value),
        Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse | Venue::BybitOption => chained::bybit(&value),
        Venue::Okx => chained::okx(&value),
        Venue::Deribit => chained::deribit(&value),
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm => {
            oracle_binance(value.get("data").unwrap_or(&value))
        }
    }
}

fn oracle_binance(data: &Value) -> Option<String> {
    let quoted = |value: &Value| plain_text(value.as_str().filter(|text| is_number(text))?);
    let whole = |key: &str| data.get(key)?.as_u64();
    let symbol = data.get("s")?.as_str()?;
    let symbol = Symbol::new(symbol.as_bytes()).ok()?.to_string();
    let kind = data.get("e").map_or(Some("bookTicker"), Value::as_str)?;
    Some(match kind {
        "bookTicker" => {
            data.get("T").map_or(Some(0), Value::as_u64)?;
            let numbers: Option<Vec<_>> = ["b", "B", "a", "A"].iter().map(|key| quoted(data.get(key)?)).collect();
            format!("ticker {symbol} {} {}", whole("u")?, numbers?.join(" "))
        }
        "trade" => {
            let side = if data.get("m")?.as_bool()? { "Sell" } else { "Buy" };
            data.get("X").map_or(Some(""), Value::as_str)?;
            let ns = whole("T")?.checked_mul(1_000_000)?;
            let (px, qty) = (quoted(data.get("p")?)?, quoted(data.get("q")?)?);
            format!("trade {symbol} {} {px} {qty} {side} {ns};", whole("t")?)
        }
        "depthUpdate" => {
            let previous = match data.get("pu") {
                Some(id) => Some(id.as_u64()?),
                None => None,
            };
            let ids = [Some(whole("U")?), Some(whole("u")?), previous, None];
            let mut out = format!("delta {symbol} {ids:?} {}", whole("E")?);
            for side in ["b", "a"] {
                for level in data.get(side)?.as_array()? {
                    let [px, qty] = level.as_array()?.as_slice() else { return None };
                    write!(out, " {}x{}", quoted(px)?, quoted(qty)?).ok()?;
                }
                out.push('|');
            }
            out
        }
        _ => return None,
    })
}

fn oracle_kraken(value: &Value) -> Option<String> {
    match value.get("channel")?.as_str()? {
        "book" => {}
        "ticker" | "trade" => return oracles::kraken_prices(value),
        "ohlc" | "level3" | "executions" | "balances" => return None,
        _ => return Some("other".to_owned()),
    }
    let [data] = value.get("data")?.as_array()?.as_slice() else { return None };
    let symbol = data.get("symbol")?.as_str()?;
    let symbol = Symbol::new(symbol.as_bytes()).ok()?.to_string();
    let checksum = Some(data.get("checksum")?.as_u64()?);
    let mut out = match value.get("type")?.as_str()? {
        "snapshot" => format!("snapshot {symbol} {checksum:?}"),
        "update" => {
            let none: Option<u64> = None;
            let ids = [Some(0), Some(0), none, checksum];
            format!("delta {symbol} {ids:?} {}", unix_ms(data.get("timestamp")?.as_str()?)?)
        }
        _ => return None,
    };
    for side in ["bids", "asks"] {
        for level in data.get(side)?.as_array()? {
            let number = |key: &str| match level.get(key)? {
                Value::Number(number) => plain_text(&number.to_string()).filter(|_| is_number(&number.to_string())),
                Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
            };
            write!(out, " {}x{}", number("price")?, number("qty")?).ok()?;
        }
        out.push('|');
    }
    Some(out)
}

/// Whether a text is a JSON number without a sign.
pub(crate) fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
        && text.trim() == text
}

/// Only times of the captures' year are recognised; others are `None`, and the engine's own tests cover them.
fn unix_ms(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("2026-08-0")?;
    let (day, rest) = rest.split_once('T')?;
    let (time, fraction) = rest.strip_suffix('Z')?.split_once('.')?;
    let ms: String = fraction.chars().chain("00".chars()).take(3).collect();
    let [hour, minute, second]: [&str; 3] = time.split(':').collect::<Vec<_>>().try_into().ok()?;
    let two = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() == 2);
    let day = (two(&format!("0{day}"))? - 1) * 24;
    // 2026-08-01T00:00:00Z.
    let seconds = 1_785_542_400 + (day + two(hour)?) * 3600 + two(minute)? * 60 + two(second)?;
    Some(seconds * 1000 + ms.parse::<u64>().ok()?)
}

/// Reads a frame by the scanner and by the general path, which must agree.
pub(crate) fn agree(venue: Venue, frame: &[u8]) {
    let mut buffer = EventBuffer::new(4096, 64);
    let scanned = parse(venue, frame, &mut buffer, false);
    assert_eq!(scanned, parse(venue, frame, &mut buffer, true), "{}", String::from_utf8_lossy(frame));
}

/// Reads a frame all three ways. The engine may refuse what the library lets pass, for a reason that it names.
pub(crate) fn compare(venue: Venue, frame: &[u8]) {
    let mut buffer = EventBuffer::new(4096, 64);
    let scanned = parse(venue, frame, &mut buffer, false);
    let general = parse(venue, frame, &mut buffer, true);
    assert_eq!(scanned, general, "{}", String::from_utf8_lossy(frame));
    let expected = oracle(venue, frame);
    match (&scanned, &expected) {
        (Ok(scanned), Some(expected)) => assert_eq!(scanned, expected, "{}", String::from_utf8_lossy(frame)),
        (Ok(scanned), None) => {
            // Control frames are nothing to the oracle; a Kraken time of another year is not read by it.
            let other = scanned == "other" || venue == Venue::Kraken;
            assert!(other && serde_json::from_slice::<Value>(frame).is_ok(), "{}", String::from_utf8_lossy(frame));
        }
        (Err(reason), Some(_)) => {
            let stricter = [
                ParseError::DuplicateKey,
                ParseError::Number,
                ParseError::NumberRange,
                ParseError::Time,
                ParseError::WrongType,
                ParseError::MissingKey,
                ParseError::UnknownTopic,
                ParseError::Rejected,
                ParseError::Nesting,
            ];
            assert!(stricter.contains(reason), "{reason:?} {}", String::from_utf8_lossy(frame));
        }
        (Err(_), None) => {}
    }
}

struct Frames {
    venue: Venue,
    frames: Vec<Record>,
}

fn require_all() -> Option<Vec<Frames>> {
    let captures = [
        Capture::require_usdm()?,
        Capture::require_spot()?,
        Capture::require_coinm()?,
        Capture::require_kraken(10)?,
        Capture::require_kraken(25)?,
        Capture::require_coinbase_exchange()?,
        Capture::require_hyperliquid()?,
        Capture::require_bybit()?,
        Capture::require_okx()?,
        Capture::require_deribit()?,
    ];
    let frames = |capture: Capture| Frames { venue: capture.venue(), frames: capture.frames };
    let mut all: Vec<_> = captures.into_iter().map(frames).collect();
    for kind in &mut all {
        kind.frames.retain(|frame| !frame.payload.starts_with(b"{\"lastUpdateId\""));
    }
    Some(all)
}

#[test]
fn captured_frames_read_the_same_three_ways() {
    let Some(all) = require_all() else { return };
    for kind in &all {
        for frame in &kind.frames {
            compare(kind.venue, &frame.payload);
        }
    }
}

#[test]
fn rest_snapshots_read_the_same_both_ways() {
    let Some(capture) = Capture::require_usdm() else { return };
    let body = capture.frames.iter().find(|frame| frame.payload.starts_with(b"{\"lastUpdateId\"")).unwrap();
    let reader = Venue::BinanceUsdm.rules().snapshot.unwrap();
    let (mut one, mut two) = (EventBuffer::new(4096, 1), EventBuffer::new(4096, 1));
    let scanned = (reader.parse)(&body.payload, &mut one).unwrap();
    assert!(!one.is_general());
    assert_eq!(scanned, (reader.parse_general)(&body.payload, &mut two).unwrap());
    assert_eq!(one.levels(), two.levels());
    assert_eq!((scanned.levels.bids().len(), scanned.levels.asks().len()), (1000, 1000));
    for end in 0..400 {
        assert!((reader.parse)(&body.payload[..end], &mut one).is_err());
    }
}

#[test]
fn case_m22_frames_truncated_at_every_byte_are_refused() {
    let Some(all) = require_all() else { return };
    let mut buffer = EventBuffer::new(4096, 64);
    for kind in &all {
        for frame in kind.frames.iter().step_by(((kind.frames.len() / 20).max(1)).max(1)) {
            for end in 0..frame.payload.len() {
                assert!(parse(kind.venue, &frame.payload[..end], &mut buffer, false).is_err());
            }
            let mut trailing = frame.payload.clone();
            trailing.push(b'x');
            assert!(parse(kind.venue, &trailing, &mut buffer, false).is_err());
        }
    }
}

/// Writes a value with the members of each object in another order and with white space.
pub(crate) fn shuffle(value: &Value, seed: &mut u64, out: &mut String) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let by = (*seed >> 33) as usize % members.len().max(1);
            members.rotate_left(by);
            if *seed >> 20 & 1 == 1 {
                members.reverse();
            }
            out.push_str("{ ");
            for (i, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "\t,\n" });
                write!(out, "\"{key}\" : ").unwrap();
                shuffle(value, seed, out);
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " ," });
                shuffle(element, seed, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => write!(out, "{value}").unwrap(),
    }
}

#[test]
fn case_m23_order_of_keys_and_white_space_change_nothing() {
    let Some(all) = require_all() else { return };
    let mut buffer = EventBuffer::new(4096, 64);
    let mut seed = 7;
    for kind in &all {
        for frame in kind.frames.iter().step_by(((kind.frames.len() / 300).max(1)).max(1)) {
            let value: Value = serde_json::from_slice(&frame.payload).unwrap();
            let mut text = String::new();
            shuffle(&value, &mut seed, &mut text);
            let expected = parse(kind.venue, &frame.payload, &mut buffer, false);
            assert_eq!(parse(kind.venue, text.as_bytes(), &mut buffer, false), expected, "{text}");
            assert!(buffer.is_general());
        }
    }
}

static FRAMES: LazyLock<Option<Vec<Frames>>> = LazyLock::new(require_all);

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_frames_read_the_same_three_ways(kind in any::<Index>(), frame in any::<Index>(), edits in
        prop::collection::vec((any::<Index>(), 0_u8..4, prop_oneof![any::<u8>(), prop::sample::select(&b"0123456789.-+eE\"\\,:{}[] null"[..])]), 1..3)) {
        if let Some(all) = FRAMES.as_ref() {
            let kind = &all[kind.index(all.len())];
            let mut text = kind.frames[frame.index(kind.frames.len())].payload.clone();
            for (at, edit, byte) in edits {
                let at = at.index(text.len());
                match edit {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    2 => { text.remove(at); }
                    _ => {
                        let copy = text[at..text.len().min(at + 12)].to_vec();
                        text.splice(at..at, copy);
                    }
                }
            }
            compare(kind.venue, &text);
        }
    }
}
