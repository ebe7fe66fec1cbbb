//! What a capture's books truly were: kept in sorted maps by a JSON library, without a look at the engine.

use crate::captured::Capture;
use serde_json::Value;
use std::collections::BTreeMap;
use tt_journal::Record;
use tt_market::InstrumentSpec;
use tt_model::{Decimal, Price, Qty};
use tt_venue::{BookLevel, Venue};

/// Best levels of both sides, as the engine publishes them.
pub(crate) type Sides = (Vec<BookLevel>, Vec<BookLevel>);

/// One update of the book that is followed.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    /// Its frame's place in the capture.
    pub(crate) frame: usize,
    pub(crate) last_id: u64,
    pub(crate) checksum: Option<i64>,
    /// Whether it is a bid, the price and the quantity in steps.
    levels: Vec<(bool, i64, i64)>,
}

/// A book as it truly is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
    /// Levels that fell out of the subscribed depth with the last update.
    pub(crate) truncated: usize,
}

impl Book {
    pub(crate) fn apply(&mut self, update: &Update, depth_max: Option<usize>) {
        for (is_bid, px, qty) in &update.levels {
            let side = if *is_bid { &mut self.bids } else { &mut self.asks };
            if *qty == 0 {
                side.remove(px);
            } else {
                side.insert(*px, *qty);
            }
        }
        self.truncated = 0;
        while depth_max.is_some_and(|depth| self.bids.len() > depth) {
            self.bids.pop_first();
            self.truncated += 1;
        }
        while depth_max.is_some_and(|depth| self.asks.len() > depth) {
            self.asks.pop_last();
            self.truncated += 1;
        }
    }

    /// The best `len` levels of both sides as (price, quantity), best first.
    pub(crate) fn levels(&self, len: usize) -> [Vec<(i64, i64)>; 2] {
        let bids = self.bids.iter().rev().take(len).map(|(px, qty)| (*px, *qty)).collect();
        let asks = self.asks.iter().take(len).map(|(px, qty)| (*px, *qty)).collect();
        [bids, asks]
    }

    /// The ten best levels.
    pub(crate) fn sides(&self) -> Sides {
        let level = |(px, qty): (i64, i64)| BookLevel { px: Price(px), qty: Qty(qty) };
        let [bids, asks] = self.levels(10).map(|side| side.into_iter().map(level).collect());
        (bids, asks)
    }
}

/// One instrument of a capture: its updates, and the book before the first of them.
pub(crate) struct Truth {
    pub(crate) spec: InstrumentSpec,
    pub(crate) frames: Vec<Record>,
    pub(crate) start: Book,
    /// The update that `start` includes.
    pub(crate) start_id: u64,
    pub(crate) updates: Vec<Update>,
}

fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// A number in whole steps.
fn steps(value: &Value, step: Decimal) -> i64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = Decimal::parse(text.as_bytes()).unwrap();
    let decimals = number.decimals.max(step.decimals);
    let (number, step) = (number.mantissa_at(decimals).unwrap(), step.mantissa_at(decimals).unwrap());
    assert_eq!(number % step, 0);
    number / step
}

pub(crate) fn is_binance(venue: Venue) -> bool {
    matches!(venue, Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm)
}

/// Where the parts of a book's message stand: kind, symbol, payload.
fn book_of(venue: Venue, frame: &Value) -> Option<(&str, &Value, &Value)> {
    let found = if is_binance(venue) {
        let frame = frame.get("data").unwrap_or(frame);
        if frame.get("lastUpdateId").is_some() {
            return Some(("snapshot", &Value::Null, frame));
        }
        (frame.get("e")?, frame.get("s")?, frame)
    } else if venue == Venue::Kraken {
        (frame.get("channel")? == "book").then_some(())?;
        (frame.get("type")?, at(frame, "/data/0/symbol"), at(frame, "/data/0"))
    } else if venue == Venue::Okx {
        (at(frame, "/arg/channel") == "books").then_some(())?;
        (frame.get("action")?, at(frame, "/arg/instId"), at(frame, "/data/0"))
    } else if venue == Venue::Deribit {
        (at(frame, "/params/data/type"), at(frame, "/params/data/instrument_name"), at(frame, "/params/data"))
    } else {
        (frame.get("type")?, at(frame, "/data/s"), at(frame, "/data"))
    };
    Some((found.0.as_str()?, found.1, found.2))
}

impl Truth {
    /// The capture's instrument of that number, with every frame of it, and the others' frames left out.
    pub(crate) fn of(capture: &Capture, instrument: usize) -> Self {
        let spec = capture.specs[instrument];
        let venue = spec.venue;
        let name = spec.symbol.to_string();
        let mut truth = Self { spec, frames: Vec::new(), start: Book::default(), start_id: 0, updates: Vec::new() };
        let mut segments = Vec::new();
        for record in &capture.frames {
            let frame: Value = serde_json::from_slice(&record.payload).unwrap();
            let Some((kind, symbol, book)) = book_of(venue, &frame) else {
                truth.frames.push(record.clone());
                continue;
            };
            if symbol.as_str().is_some_and(|symbol| symbol != name) {
                continue;
            }
            let is_short = book.get("b").is_some_and(Value::is_array);
            let [bids, asks] = if is_short { ["b", "a"] } else { ["bids", "asks"] };
            let mut levels = Vec::new();
            for (is_bid, side) in [(true, bids), (false, asks)] {
                for level in book.get(side).and_then(Value::as_array).into_iter().flatten() {
                    let [px, qty] = if venue == Venue::Kraken {
                        [&level["price"], &level["qty"]]
                    } else {
                        let first = usize::from(venue == Venue::Deribit);
                        [&level[first], &level[first + 1]]
                    };
                    levels.push((is_bid, steps(px, spec.tick_size), steps(qty, spec.lot_size)));
                }
            }
            let id = ["u", "change_id", "lastUpdateId", "seqId"].iter().find_map(|key| book.get(*key)?.as_u64());
            let update = Update {
                frame: truth.frames.len(),
                last_id: id.unwrap_or(0),
                checksum: book.get("checksum").and_then(Value::as_i64),
                levels,
            };
            match kind {
                "snapshot" => {
                    // A book that restarts is another one; the longest is followed.
                    let new =
                        Self { spec, frames: Vec::new(), start: Book::default(), start_id: 0, updates: Vec::new() };
                    if !is_binance(venue) {
                        segments.push(std::mem::replace(&mut truth, new));
                    }
                    truth.start.apply(&update, None);
                    truth.start_id = update.last_id;
                }
                "depthUpdate" | "update" | "delta" | "change" => {
                    truth.frames.push(record.clone());
                    truth.updates.push(update);
                }
                _ => truth.frames.push(record.clone()),
            }
        }
        segments.push(truth);
        let mut truth = segments.into_iter().max_by_key(|truth| truth.updates.len()).unwrap();
        let start_id = truth.start_id;
        truth.updates.retain(|update| start_id == 0 || update.last_id > start_id);
        truth
    }

    /// The message, or the REST body, that would bring `book` as it was after `update` with the number `id`.
    pub(crate) fn snapshot(&self, book: &Book, update: &Update, id: u64) -> Vec<u8> {
        let (symbol, venue) = (self.spec.symbol, self.spec.venue);
        let [bids, asks] = book.levels(if is_binance(venue) { 300 } else { 1000 }).map(|side| {
            let mut out = String::new();
            for (px, qty) in side {
                let (px, qty) = (text(px, self.spec.tick_size), text(qty, self.spec.lot_size));
                let level = if venue == Venue::Kraken {
                    format!("{{\"price\":{px},\"qty\":{qty}}},")
                } else if venue == Venue::Deribit {
                    format!("[\"new\",{px},{qty}],")
                } else if venue == Venue::Okx {
                    format!("[\"{px}\",\"{qty}\",\"0\",\"1\"],")
                } else {
                    format!("[\"{px}\",\"{qty}\"],")
                };
                out.push_str(&level);
            }
            out.pop();
            out
        });
        let sum = update.checksum.unwrap_or(0);
        let time = 1_700_000_000_000_u64;
        let text = if is_binance(venue) {
            format!("{{\"lastUpdateId\":{id},\"bids\":[{bids}],\"asks\":[{asks}]}}")
        } else if venue == Venue::Kraken {
            let data = format!("{{\"symbol\":\"{symbol}\",\"bids\":[{bids}],\"asks\":[{asks}],\"checksum\":{sum},");
            let data = format!("{data}\"timestamp\":\"2026-08-01T00:00:00.000000Z\"}}");
            format!("{{\"channel\":\"book\",\"type\":\"snapshot\",\"data\":[{data}]}}")
        } else if venue == Venue::Okx {
            let topic = format!("{{\"channel\":\"books\",\"instId\":\"{symbol}\"}}");
            let data = format!("{{\"asks\":[{asks}],\"bids\":[{bids}],\"ts\":\"{time}\",\"checksum\":{sum}}}");
            format!("{{\"arg\":{topic},\"action\":\"snapshot\",\"data\":[{data}]}}")
        } else if venue == Venue::Deribit {
            let head = format!("\"type\":\"snapshot\",\"timestamp\":{time},\"instrument_name\":\"{symbol}\"");
            let data = format!("{{{head},\"change_id\":{id},\"bids\":[{bids}],\"asks\":[{asks}]}}");
            let topic = format!("\"channel\":\"book.{symbol}.raw\"");
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{{topic},\"data\":{data}}}}}")
        } else {
            let data = format!("{{\"s\":\"{symbol}\",\"b\":[{bids}],\"a\":[{asks}],\"u\":{id},\"seq\":1}}");
            let head = format!("\"topic\":\"orderbook.500.{symbol}\",\"type\":\"snapshot\",\"ts\":{time}");
            format!("{{{head},\"data\":{data},\"cts\":{time}}}")
        };
        text.into_bytes()
    }
}

/// A number of steps in plain digits.
fn text(steps: i64, step: Decimal) -> String {
    let number = steps * step.mantissa;
    let decimals = usize::from(step.decimals);
    if decimals == 0 {
        return number.to_string();
    }
    let digits = format!("{number:0>width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    format!("{whole}.{fraction}")
}
