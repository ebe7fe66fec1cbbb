//! Tickers of many instruments, and the published shape of Melaya's cache: a map keyed by two strings.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::RwLock;

use anyhow::{Context as _, ensure};
use rounds::Order;
use tt_meter::Calibration;

use crate::books::Timing;

/// Tickers of one run, for instruments in no order.
const TICKERS: usize = 1 << 16;
const VENUE: &str = "binance";

/// One best bid and offer: price in tenths, quantity in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticker {
    pub(crate) symbol: usize,
    pub(crate) update_id: u64,
    pub(crate) bid: (i64, i64),
    pub(crate) ask: (i64, i64),
}

impl Ticker {
    /// As Binance sends it.
    pub(crate) fn frame(&self, symbols: &[String]) -> String {
        let px = |px: i64| format!("{}.{}0", px / 10, px % 10);
        let qty = |qty: i64| format!("{}.{:03}", qty / 1_000, qty % 1_000);
        format!(
            "{{\"e\":\"bookTicker\",\"u\":{},\"s\":\"{}\",\"b\":\"{}\",\"B\":\"{}\",\"a\":\"{}\",\"A\":\"{}\",\
             \"T\":1723161256313,\"E\":1723161256313}}",
            self.update_id,
            symbols[self.symbol],
            px(self.bid.0),
            qty(self.bid.1),
            px(self.ask.0),
            qty(self.ask.1)
        )
    }
}

/// Symbols like the venue's.
pub(crate) fn symbols(instruments: usize) -> Vec<String> {
    (0..instruments).map(|number| format!("COIN{number:05}USDT")).collect()
}

pub(crate) fn tickers(seed: u64, instruments: usize) -> Vec<Ticker> {
    let mut random = Order::new(seed);
    let one = |number: usize| {
        let px = 10_000 + random.below(1_000_000) as i64;
        let mut qty = || 1 + random.below(100_000) as i64;
        let (bid, ask) = ((px, qty()), (px + 1, qty()));
        Ticker { symbol: random.below(instruments), update_id: 1 + number as u64, bid, ask }
    };
    (0..TICKERS).map(one).collect()
}

/// What a cache of this kind keeps of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Entry {
    bid: f64,
    bid_qty: f64,
    ask: f64,
    ask_qty: f64,
    update_id: u64,
}

/// What a cache of this kind is asked to write.
struct Write {
    symbol: String,
    entry: Entry,
}

/// A map keyed by two strings behind a lock, which readers share; each write makes its key.
pub(crate) struct TwoStrings {
    map: RwLock<HashMap<(String, String), Entry>>,
    writes: Vec<Write>,
}

/// The same with a map of maps, which finds an entry without a key of its own.
pub(crate) struct Nested {
    map: RwLock<HashMap<String, HashMap<String, Entry>>>,
    writes: Vec<Write>,
}

fn writes(symbols: &[String], tickers: &[Ticker]) -> Vec<Write> {
    let write = |ticker: &Ticker| {
        let (px, qty) = (|px: i64| px as f64 / 10.0, |qty: i64| qty as f64 / 1_000.0);
        let (bid, ask) = (ticker.bid, ticker.ask);
        let entry = Entry {
            bid: px(bid.0),
            bid_qty: qty(bid.1),
            ask: px(ask.0),
            ask_qty: qty(ask.1),
            update_id: ticker.update_id,
        };
        Write { symbol: symbols[ticker.symbol].clone(), entry }
    };
    tickers.iter().map(write).collect()
}

impl TwoStrings {
    pub(crate) fn new(symbols: &[String], tickers: &[Ticker]) -> Self {
        let entry = |symbol: &String| ((VENUE.to_owned(), symbol.clone()), Entry::default());
        Self { map: RwLock::new(symbols.iter().map(entry).collect()), writes: writes(symbols, tickers) }
    }

    pub(crate) fn run(&self, calibration: &Calibration) -> anyhow::Result<Timing> {
        let begin = calibration.clock.start();
        for write in &self.writes {
            let Write { symbol, entry } = black_box(write);
            let mut map = self.map.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            map.insert((VENUE.to_owned(), symbol.clone()), *entry);
        }
        let ns = calibration.scale.ns_f64(calibration.clock.end().since(begin) as f64);
        let last = self.writes.last().context("no ticker")?;
        let map = self.map.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        ensure!(map.get(&(VENUE.to_owned(), last.symbol.clone())) == Some(&last.entry), "another entry is there");
        Ok(Timing { ns, units: self.writes.len() as u64 })
    }
}

impl Nested {
    pub(crate) fn new(symbols: &[String], tickers: &[Ticker]) -> Self {
        let inner = symbols.iter().map(|symbol| (symbol.clone(), Entry::default())).collect();
        Self { map: RwLock::new(HashMap::from([(VENUE.to_owned(), inner)])), writes: writes(symbols, tickers) }
    }

    pub(crate) fn run(&self, calibration: &Calibration) -> anyhow::Result<Timing> {
        let begin = calibration.clock.start();
        let mut written = 0;
        for write in &self.writes {
            let Write { symbol, entry } = black_box(write);
            let mut map = self.map.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(place) = map.get_mut(VENUE).and_then(|inner| inner.get_mut(symbol.as_str())) {
                *place = *entry;
                written += 1;
            }
        }
        let ns = calibration.scale.ns_f64(calibration.clock.end().since(begin) as f64);
        ensure!(written == self.writes.len(), "{written} of {} tickers written", self.writes.len());
        Ok(Timing { ns, units: self.writes.len() as u64 })
    }
}
