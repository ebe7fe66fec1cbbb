//! What a JSON library with exact numbers reads from the frames of venues whose updates name each other: Bybit, OKX and
//! Deribit, in the words of `parsers::shown`. `None` where the frame is no event, or a field is not of its type.

use crate::parsers::{is_number, plain_text};
use serde_json::Value;
use std::fmt::Write;
use tt_venue::Symbol;

/// A text that is a number without a sign.
fn quoted(value: &Value) -> Option<String> {
    plain_text(value.as_str().filter(|text| is_number(text))?)
}

/// A number without a sign.
fn bare(value: &Value) -> Option<String> {
    let text = value.as_number()?.to_string();
    plain_text(&text).filter(|_| is_number(&text))
}

fn symbol(value: Option<&Value>) -> Option<String> {
    Symbol::new(value?.as_str()?.as_bytes()).ok().map(|symbol| symbol.to_string())
}

/// Digits in quotes.
fn digits(value: Option<&Value>) -> Option<u64> {
    value?.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

fn bybit_trade_id(text: &str) -> Option<u64> {
    if text.len() != 36 {
        return text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    }
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
    if lengths != [8, 4, 4, 4, 12] || !lower {
        return None;
    }
    let number = u128::from_str_radix(&parts.concat(), 16).ok()?;
    Some((number >> 64) as u64 ^ number as u64)
}

/// Bybit.
pub(crate) fn bybit(value: &Value) -> Option<String> {
    let Some(topic) = value.get("topic") else {
        let pong = value.get("ret_msg").is_some_and(|text| text == "pong");
        let op = value.get("op")?.as_str()?;
        let known = pong || op == "pong" || ["subscribe", "unsubscribe", "auth"].contains(&op);
        let passes = pong || op == "pong" || value.get("success")?.as_bool()?;
        return (known && passes).then(|| "other".to_owned());
    };
    let kind = topic.as_str()?.split('.').next()?;
    let data = value.get("data")?;
    match kind {
        "orderbook" => {
            let ts = value.get("ts")?.as_u64()?;
            let ts = value.get("cts").map_or(Some(ts), Value::as_u64)?;
            data.get("seq").map_or(Some(0), Value::as_u64)?;
            let (name, id) = (symbol(data.get("s"))?, data.get("u")?.as_u64()?);
            let none: Option<u64> = None;
            let mut out = match value.get("type")?.as_str()? {
                "delta" if id != 1 => format!("delta {name} {:?} {ts}", [Some(id), Some(id), none, none]),
                "delta" | "snapshot" => format!("snapshot {name} {none:?}"),
                _ => return None,
            };
            sides(&mut out, data.get("b")?, data.get("a")?, 2, quoted)?;
            Some(out)
        }
        "publicTrade" | "trade" => {
            let mut out = String::new();
            for trade in data.as_array()? {
                let text = |key: &str| trade.get(key)?.as_str();
                if !["Buy", "Sell"].contains(&text("S")?) || trade.get("BT").is_some_and(|block| !block.is_boolean()) {
                    return None;
                }
                let ns = trade.get("T")?.as_u64()?.checked_mul(1_000_000)?;
                let (px, qty) = (quoted(trade.get("p")?)?, quoted(trade.get("v")?)?);
                let id = bybit_trade_id(text("i")?)?;
                write!(out, "trade {} {id} {px} {qty} {} {ns};", symbol(trade.get("s"))?, text("S")?).ok()?;
            }
            Some(out)
        }
        _ => None,
    }
}

/// OKX.
pub(crate) fn okx(value: &Value) -> Option<String> {
    if let Some(event) = value.get("event") {
        let known = ["subscribe", "unsubscribe", "login", "notice", "channel-conn-count"];
        return known.contains(&event.as_str()?).then(|| "other".to_owned());
    }
    let argument = value.get("arg")?;
    let topic = argument.get("channel")?.as_str()?;
    let data = value.get("data")?.as_array()?;
    match topic {
        "books" => {
            let [book] = data.as_slice() else { return None };
            let name = symbol(argument.get("instId"))?;
            let ts = digits(book.get("ts"))?;
            let id = book.get("seqId").map_or(Some(None), |id| id.as_u64().map(Some))?;
            let previous = book.get("prevSeqId").map_or(Some(None), |id| id.as_i64().map(Some))?;
            let checksum = book.get("checksum").map_or(Some(0), Value::as_i64)?;
            let checksum = i32::try_from(checksum).ok()? as u32;
            let checksum = (checksum != 0).then_some(u64::from(checksum));
            let mut out = match value.get("action")?.as_str()? {
                "snapshot" if previous.is_none_or(|previous| previous == -1) => {
                    format!("snapshot {name} {checksum:?}")
                }
                "update" if id.is_some() == previous.is_some() => {
                    let previous = previous.map(|previous| u64::try_from(previous).unwrap_or(u64::MAX));
                    format!(
                        "delta {name} {:?} {ts}",
                        [Some(id.unwrap_or(0)), Some(id.unwrap_or(0)), previous, checksum]
                    )
                }
                _ => return None,
            };
            sides(&mut out, book.get("bids")?, book.get("asks")?, 4, quoted)?;
            Some(out)
        }
        "trades" => {
            let mut out = String::new();
            for trade in data {
                let side = match trade.get("side")?.as_str()? {
                    "buy" => "Buy",
                    "sell" => "Sell",
                    _ => return None,
                };
                let ns = digits(trade.get("ts"))?.checked_mul(1_000_000)?;
                let (px, qty) = (quoted(trade.get("px")?)?, quoted(trade.get("sz")?)?);
                let id = digits(trade.get("tradeId"))?;
                write!(out, "trade {} {id} {px} {qty} {side} {ns};", symbol(trade.get("instId"))?).ok()?;
            }
            Some(out)
        }
        "tickers" => {
            let mut out = String::new();
            for ticker in data {
                let number = |key: &str| match ticker.get(key) {
                    None => Some("-".to_owned()),
                    Some(Value::String(text)) if text.is_empty() => Some("-".to_owned()),
                    Some(value) => quoted(value),
                };
                let values: Option<Vec<_>> =
                    ["bidPx", "bidSz", "askPx", "askSz", "last"].map(number).into_iter().collect();
                let (name, ts) = (symbol(ticker.get("instId"))?, digits(ticker.get("ts"))?);
                let ns = ts.checked_mul(1_000_000)?;
                write!(out, "ticker {name} {} - - - - - {ns};", values?.join(" ")).ok()?;
            }
            Some(out)
        }
        _ => None,
    }
}

/// Deribit.
pub(crate) fn deribit(value: &Value) -> Option<String> {
    (value.get("jsonrpc")?.as_str()? == "2.0").then_some(())?;
    let Some(method) = value.get("method") else {
        value.get("id")?.as_u64()?;
        return (value.get("result").is_some() && value.get("error").is_none()).then(|| "other".to_owned());
    };
    let parameters = value.get("params")?;
    if method.as_str()? == "heartbeat" {
        let kind = parameters.get("type")?.as_str()?;
        return ["heartbeat", "test_request"].contains(&kind).then(|| "other".to_owned());
    }
    (method == "subscription").then_some(())?;
    let data = parameters.get("data")?;
    let (name, ts) = (symbol(data.get("instrument_name"))?, data.get("timestamp")?.as_u64()?);
    match parameters.get("channel")?.as_str()?.split('.').next()? {
        "book" => {
            let id = data.get("change_id")?.as_u64()?;
            let none: Option<u64> = None;
            let mut out = match data.get("type")?.as_str()? {
                "snapshot" => format!("snapshot {name} {none:?}"),
                "change" => {
                    let previous = data.get("prev_change_id")?.as_u64()?;
                    format!("delta {name} {:?} {ts}", [Some(id), Some(id), Some(previous), none])
                }
                _ => return None,
            };
            for side in ["bids", "asks"] {
                for level in data.get(side)?.as_array()? {
                    let [mark, px, qty] = level.as_array()?.as_slice() else { return None };
                    let is_deleted = mark.as_str()? == "delete";
                    let (px, qty) = (bare(px)?, bare(qty)?);
                    let known = ["new", "change", "delete"].contains(&mark.as_str()?);
                    (known && is_deleted == (qty == "0e-0")).then_some(())?;
                    write!(out, " {px}x{qty}").ok()?;
                }
                out.push('|');
            }
            Some(out)
        }
        "ticker" => {
            let number = |key: &str| match data.get(key) {
                None | Some(Value::Null) => Some("-".to_owned()),
                Some(value) => bare(value),
            };
            let best = |px: &str, qty: &str| match number(px)?.as_str() {
                "-" | "0e-0" => {
                    Some(["-".to_owned(), if data.get(px).is_some() { "0e-0".to_owned() } else { "-".to_owned() }])
                }
                found => Some([found.to_owned(), number(qty)?]),
            };
            let [bid, ask] = [best("best_bid_price", "best_bid_amount")?, best("best_ask_price", "best_ask_amount")?];
            let [last, mark, index] = [number("last_price")?, number("mark_price")?, number("index_price")?];
            let funding = match data.get("current_funding") {
                None | Some(Value::Null) => "-".to_owned(),
                Some(value) => {
                    let text = value.as_number()?.to_string();
                    match text.strip_prefix('-') {
                        Some(text) => format!("-{}", plain_text(text)?).replace("-0e-0", "0e-0"),
                        None => plain_text(&text)?,
                    }
                }
            };
            let interest = number("open_interest")?;
            let [bid, ask] = [bid.join(" "), ask.join(" ")];
            let ns = ts.checked_mul(1_000_000)?;
            Some(format!("ticker {name} {bid} {ask} {last} {mark} {index} - {funding} {interest} {ns};"))
        }
        _ => None,
    }
}

/// Both sides, whose levels are arrays of `len` elements: two numbers, then texts.
fn sides(
    out: &mut String,
    bids: &Value,
    asks: &Value,
    len: usize,
    number: impl Fn(&Value) -> Option<String>,
) -> Option<()> {
    for side in [bids, asks] {
        for level in side.as_array()? {
            let level = level.as_array().filter(|level| level.len() == len)?;
            level[2..].iter().all(Value::is_string).then_some(())?;
            write!(out, " {}x{}", number(&level[0])?, number(&level[1])?).ok()?;
        }
        out.push('|');
    }
    Some(())
}
