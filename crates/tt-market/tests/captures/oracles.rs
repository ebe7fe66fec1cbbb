//! What a JSON library with exact numbers reads from the frames of Kraken's prices, Coinbase and Hyperliquid, in the
//! words of `parsers::shown`. `None` where the frame is no event, or a field is not of its type.

use crate::parsers::{is_number, plain_text};
use serde_json::Value;
use std::fmt::Write;
use tt_venue::Symbol;

const OTHER: &str = "other";

/// A text that may name an instrument.
fn name(value: Option<&Value>) -> Option<String> {
    Symbol::new(value?.as_str()?.as_bytes()).ok().map(|symbol| symbol.to_string())
}

/// An unsigned number in quotes.
fn quoted(value: Option<&Value>) -> Option<String> {
    plain_text(value?.as_str().filter(|text| is_number(text))?)
}

/// An unsigned number without quotes.
fn bare(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Number(number) => plain_text(&number.to_string()).filter(|_| is_number(&number.to_string())),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number with or without a sign, in quotes or not.
pub(crate) fn number(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    match text.strip_prefix('-') {
        Some(rest) if is_number(rest) => plain_text(rest).map(|plain| format!("-{plain}").replace("-0e-0", "0e-0")),
        Some(_) => None,
        None if is_number(&text) => plain_text(&text),
        None => None,
    }
}

/// As `number`, without a sign.
pub(crate) fn amount(value: Option<&Value>) -> Option<String> {
    let value = value?;
    let is_signed = match value {
        Value::String(text) => text.starts_with('-'),
        Value::Number(number) => number.to_string().starts_with('-'),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    };
    number(value).filter(|_| !is_signed)
}

/// As `amount`, and whether it is present at all: `-` where it is absent, null or empty.
pub(crate) fn optional_amount(value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => Some("-".to_owned()),
        Some(Value::String(text)) if text.is_empty() => Some("-".to_owned()),
        Some(value) => amount(Some(value)),
    }
}

/// Nanoseconds of `YYYY-MM-DDThh:mm:ss[.f]Z`, its days counted one year and one month at a time.
pub(crate) fn rfc3339(value: Option<&Value>) -> Option<u64> {
    let text = value?.as_str()?;
    let (date, time) = text.split_once('T')?;
    let time = time.strip_suffix('Z')?;
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let part = |text: Option<&str>, len: usize| {
        text.filter(|text| text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<u64>().ok()
    };
    let (mut dates, mut times) = (date.split('-'), time.split(':'));
    let (year, month, day) = (part(dates.next(), 4)?, part(dates.next(), 2)?, part(dates.next(), 2)?);
    let (hour, minute, second) = (part(times.next(), 2)?, part(times.next(), 2)?, part(times.next(), 2)?);
    if dates.next().is_some() || times.next().is_some() || !(2001..2200).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let leap = |year: u64| u64::from(year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)));
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if day == 0 || day > lengths[month as usize - 1] || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let years: u64 = (1970..year).map(|year| 365 + leap(year)).sum();
    let months: u64 = lengths[..month as usize - 1].iter().sum();
    let seconds = ((years + months + day - 1) * 24 + hour) * 3600 + minute * 60 + second;
    let ns = match fraction {
        None => 0,
        Some(digits) if (1..=9).contains(&digits.len()) => part(Some(&format!("{digits:0<9}")), 9)?,
        Some(_) => return None,
    };
    Some(seconds * 1_000_000_000 + ns)
}

/// A whole number in quotes.
fn digits(value: &Value) -> Option<u64> {
    value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

fn unix_ms(value: Option<&Value>) -> Option<u64> {
    value?.as_u64()?.checked_mul(1_000_000)
}

/// The side that took liquidity, by the venue's words for a buyer and a seller.
fn aggressor(value: Option<&Value>, buyer: &str, seller: &str) -> Option<&'static str> {
    let word = value?.as_str()?;
    if word == buyer {
        Some("Buy")
    } else if word == seller {
        Some("Sell")
    } else {
        None
    }
}

fn trade(symbol: &str, id: u64, numbers: [String; 2], side: &str, ns: u64) -> String {
    format!("trade {symbol} {id} {} {} {side} {ns};", numbers[0], numbers[1])
}

/// Best bid, best offer, last, mark, index, mid, funding, open interest: what is absent is `-`.
fn ticker(symbol: &str, numbers: [String; 10], ns: u64) -> String {
    format!("ticker {symbol} {} {ns};", numbers.join(" "))
}

/// The library keeps no order of keys.
fn sorted(mut lines: Vec<String>) -> String {
    lines.sort();
    lines.concat()
}

fn nothing() -> String {
    "-".to_owned()
}

fn levels(out: &mut String, side: impl Iterator<Item = Option<(String, String)>>) -> Option<()> {
    for level in side {
        let (px, qty) = level?;
        write!(out, " {px}x{qty}").ok()?;
    }
    out.push('|');
    Some(())
}

fn pair(level: &Value) -> Option<(String, String)> {
    let [px, qty] = level.as_array()?.as_slice() else { return None };
    Some((quoted(Some(px))?, quoted(Some(qty))?))
}

fn delta_head(symbol: &str, id: u64, ns: u64) -> String {
    let ids = [Some(id), Some(id), None::<u64>, None];
    format!("delta {symbol} {ids:?} {}", ns / 1_000_000)
}

fn snapshot_head(symbol: &str) -> String {
    format!("snapshot {symbol} {:?}", None::<u32>)
}

/// Kraken's `ticker` and `trade`.
pub(crate) fn kraken_prices(value: &Value) -> Option<String> {
    let data = value.get("data")?.as_array()?;
    if value.get("channel")?.as_str()? == "trade" {
        let past = if value.get("type").is_some_and(|kind| kind == "snapshot") { "history " } else { "" };
        return data
            .iter()
            .map(|one| {
                let numbers = [bare(one.get("price"))?, bare(one.get("qty"))?];
                let side = aggressor(one.get("side"), "buy", "sell")?;
                let id = one.get("trade_id")?.as_u64()?;
                let trade = trade(&name(one.get("symbol"))?, id, numbers, side, rfc3339(one.get("timestamp"))?);
                Some(format!("{past}{trade}"))
            })
            .collect();
    }
    let [one] = data.as_slice() else { return None };
    let mut numbers = std::array::from_fn(|_| nothing());
    for (slot, key) in ["bid", "bid_qty", "ask", "ask_qty", "last"].iter().enumerate() {
        numbers[slot] = bare(one.get(key))?;
    }
    let ns = one.get("timestamp").map_or(Some(0), |value| rfc3339(Some(value)))?;
    Some(ticker(&name(one.get("symbol"))?, numbers, ns))
}

/// Coinbase Exchange.
pub(crate) fn coinbase_exchange(value: &Value) -> Option<String> {
    let symbol = || name(value.get("product_id"));
    match value.get("type")?.as_str()? {
        "l2update" => {
            let mut out = delta_head(&symbol()?, 0, rfc3339(value.get("time"))?);
            let changes = value.get("changes")?.as_array()?;
            for wanted in ["buy", "sell"] {
                let side = changes.iter().filter_map(|change| {
                    let [side, px, qty] = change.as_array().map(Vec::as_slice).unwrap_or_default() else {
                        return Some(None);
                    };
                    match side.as_str() {
                        Some(word) if word == wanted => Some(quoted(Some(px)).zip(quoted(Some(qty)))),
                        Some("buy" | "sell") if quoted(Some(px)).and(quoted(Some(qty))).is_some() => None,
                        Some(_) | None => Some(None),
                    }
                });
                levels(&mut out, side)?;
            }
            Some(out)
        }
        "snapshot" => {
            let mut out = snapshot_head(&symbol()?);
            value.get("time").map_or(Some(0), |value| rfc3339(Some(value)))?;
            for side in ["bids", "asks"] {
                levels(&mut out, value.get(side)?.as_array()?.iter().map(pair))?;
            }
            Some(out)
        }
        "match" | "last_match" => {
            let numbers = [quoted(value.get("price"))?, quoted(value.get("size"))?];
            // The venue names the maker's side.
            let side = aggressor(value.get("side"), "sell", "buy")?;
            let ns = rfc3339(value.get("time"))?;
            let trade = trade(&symbol()?, value.get("trade_id")?.as_u64()?, numbers, side, ns);
            if value.get("type")? == "last_match" {
                return Some(format!("history {trade}"));
            }
            if value.get("maker_order_id").is_none() {
                return Some(trade);
            }
            Some(trade + &crate::expected::taken(value)?)
        }
        "ticker" => {
            let mut numbers = std::array::from_fn(|_| nothing());
            for (slot, key) in ["best_bid", "best_bid_size", "best_ask", "best_ask_size"].iter().enumerate() {
                numbers[slot] = optional_amount(value.get(key))?;
            }
            numbers[4] = amount(value.get("price"))?;
            Some(ticker(&symbol()?, numbers, rfc3339(value.get("time"))?))
        }
        "heartbeat" | "status" | "subscriptions" => Some(OTHER.to_owned()),
        _ => None,
    }
}

/// Coinbase Advanced.
pub(crate) fn coinbase_advanced(value: &Value) -> Option<String> {
    let sequence = value.get("sequence_num")?.as_u64()?;
    let ns = rfc3339(value.get("timestamp"))?;
    let events = value.get("events")?.as_array()?;
    let entries = |list: &str| {
        let lists: Option<Vec<_>> = events.iter().map(|event| event.get(list)?.as_array()).collect();
        Some(lists?.into_iter().flatten().cloned().collect::<Vec<_>>())
    };
    match value.get("channel")?.as_str()? {
        "l2_data" => {
            let [event] = events.as_slice() else { return None };
            let symbol = name(event.get("product_id"))?;
            let mut out = match event.get("type")?.as_str()? {
                "snapshot" => snapshot_head(&symbol),
                "update" => delta_head(&symbol, sequence, ns),
                _ => return None,
            };
            for wanted in ["bid", "offer"] {
                let side = event.get("updates")?.as_array()?.iter().filter_map(|update| {
                    let level = quoted(update.get("price_level")).zip(quoted(update.get("new_quantity")));
                    match update.get("side").and_then(Value::as_str) {
                        Some(word) if word == wanted => Some(level),
                        Some("bid" | "offer") if level.is_some() => None,
                        Some(_) | None => Some(None),
                    }
                });
                levels(&mut out, side)?;
            }
            Some(out)
        }
        "market_trades" => {
            let mut out = String::new();
            for event in value.get("events")?.as_array()? {
                let past = if event.get("type").is_some_and(|kind| kind == "snapshot") { "history " } else { "" };
                for one in event.get("trades")?.as_array()? {
                    out += &format!("{past}{}", advanced_trade(one)?);
                }
            }
            Some(out)
        }
        "ticker" | "ticker_batch" => {
            let lines: Option<Vec<_>> = entries("tickers")?
                .iter()
                .map(|one| {
                    let mut numbers = std::array::from_fn(|_| nothing());
                    let keys = ["best_bid", "best_bid_quantity", "best_ask", "best_ask_quantity"];
                    for (slot, key) in keys.iter().enumerate() {
                        numbers[slot] = optional_amount(one.get(key))?;
                    }
                    numbers[4] = amount(one.get("price"))?;
                    Some(ticker(&name(one.get("product_id"))?, numbers, ns))
                })
                .collect();
            Some(sorted(lines?))
        }
        "candles" => entries("candles")?
            .iter()
            .map(|one| {
                let keys = ["open", "high", "low", "close", "volume"];
                let numbers: Option<Vec<_>> = keys.iter().map(|key| amount(one.get(key))).collect();
                let start = one.get("start")?;
                let start_s = start.as_u64().or_else(|| digits(start))?;
                let ts = start_s.checked_mul(1_000_000_000)?;
                Some(candle(&name(one.get("product_id"))?, 300_000_000_000, ts, &numbers?))
            })
            .collect(),
        "heartbeats" | "subscriptions" | "status" => Some(OTHER.to_owned()),
        _ => None,
    }
}

fn advanced_trade(one: &Value) -> Option<String> {
    let numbers = [quoted(one.get("price"))?, quoted(one.get("size"))?];
    // The venue names the maker's side.
    let side = aggressor(one.get("side"), "SELL", "BUY")?;
    let id = one.get("trade_id")?;
    let id = id.as_u64().or_else(|| digits(id))?;
    Some(trade(&name(one.get("product_id"))?, id, numbers, side, rfc3339(one.get("time"))?))
}

fn candle(symbol: &str, timeframe: u64, ts_open: u64, numbers: &[String]) -> String {
    format!("candle {symbol} {timeframe} {ts_open} {};", numbers.join(" "))
}

/// Hyperliquid's `activeAssetCtx`.
fn hyperliquid_contract(data: &Value) -> Option<String> {
    let state = data.get("ctx")?;
    let mut numbers = std::array::from_fn(|_| nothing());
    for (slot, key) in [(5, "markPx"), (6, "oraclePx"), (9, "openInterest")] {
        numbers[slot] = amount(state.get(key))?;
    }
    numbers[8] = number(state.get("funding")?)?;
    numbers[7] = optional_amount(state.get("midPx"))?;
    Some(ticker(&name(data.get("coin"))?, numbers, 0))
}

/// Hyperliquid.
pub(crate) fn hyperliquid(value: &Value) -> Option<String> {
    let data = value.get("data");
    match value.get("channel")?.as_str()? {
        "l2Book" => {
            let data = data?;
            let mut out = snapshot_head(&name(data.get("coin"))?);
            unix_ms(data.get("time"))?;
            let [bids, asks] = data.get("levels")?.as_array()?.as_slice() else { return None };
            for side in [bids, asks] {
                let level = |level: &Value| quoted(level.get("px")).zip(quoted(level.get("sz")));
                levels(&mut out, side.as_array()?.iter().map(level))?;
            }
            Some(out)
        }
        "trades" => data?
            .as_array()?
            .iter()
            .map(|one| {
                let numbers = [quoted(one.get("px"))?, quoted(one.get("sz"))?];
                let side = aggressor(one.get("side"), "B", "A")?;
                Some(trade(
                    &name(one.get("coin"))?,
                    one.get("tid")?.as_u64()?,
                    numbers,
                    side,
                    unix_ms(one.get("time"))?,
                ))
            })
            .collect(),
        "bbo" => {
            let data = data?;
            let [bid, ask] = data.get("bbo")?.as_array()?.as_slice() else { return None };
            let mut numbers = std::array::from_fn(|_| nothing());
            for (slot, side) in [(0, bid), (2, ask)] {
                numbers[slot + 1] = "0e-0".to_owned();
                if !side.is_null() {
                    numbers[slot] = quoted(side.get("px"))?;
                    numbers[slot + 1] = quoted(side.get("sz"))?;
                }
            }
            Some(ticker(&name(data.get("coin"))?, numbers, unix_ms(data.get("time"))?))
        }
        "activeAssetCtx" => hyperliquid_contract(data?),
        "allMids" => {
            let mids: Option<Vec<_>> = data?
                .get("mids")?
                .as_object()?
                .iter()
                .map(|(coin, px)| {
                    let mut numbers = std::array::from_fn(|_| nothing());
                    numbers[7] = quoted(Some(px))?;
                    Some(ticker(&name(Some(&Value::String(coin.clone())))?, numbers, 0))
                })
                .collect();
            Some(sorted(mids?))
        }
        "candle" => {
            let one = data?;
            let numbers: Option<Vec<_>> = ["o", "h", "l", "c", "v"].iter().map(|key| amount(one.get(key))).collect();
            let (start, end) = (unix_ms(one.get("t"))?, unix_ms(one.get("T"))?);
            Some(candle(&name(one.get("s"))?, end.checked_sub(start)? + 1_000_000, start, &numbers?))
        }
        "pong" | "subscriptionResponse" => Some(OTHER.to_owned()),
        _ => None,
    }
}
