//! Tickers of many instruments, and the published shape of Melaya's cache: a map keyed by two strings.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{PoisonError, RwLock};

use anyhow::ensure;
use tt_model::SplitMix64;

use crate::books::Timing;
use crate::gauge::Gauge;

const VENUE: &str = "binance";
/// The venue's time of all tickers.
const TS_MS: u64 = 1_723_161_256_313;
const MINUTE_MS: u64 = 60_000;

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
             \"T\":{TS_MS},\"E\":{TS_MS}}}",
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

/// `count` tickers for instruments in no order.
pub(crate) fn tickers(seed: u64, instruments: usize, count: usize) -> Vec<Ticker> {
    let mut random = SplitMix64::new(seed);
    let one = |number: usize| {
        let px = 10_000 + random.index(1_000_000) as i64;
        let mut qty = || 1 + random.index(100_000) as i64;
        let (bid, ask) = ((px, qty()), (px + 1, qty()));
        Ticker { symbol: random.index(instruments), update_id: 1 + number as u64, bid, ask }
    };
    (0..count).map(one).collect()
}

/// What an instrument must show after all tickers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) last: Ticker,
    /// The lowest and the highest bid.
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// By instrument; `None` for one without a ticker.
pub(crate) fn seen(tickers: &[Ticker], instruments: usize) -> Vec<Option<Seen>> {
    let mut all = vec![None; instruments];
    for ticker in tickers {
        let px = ticker.bid.0;
        let seen = all[ticker.symbol].get_or_insert(Seen { last: *ticker, low: px, high: px });
        *seen = Seen { last: *ticker, low: seen.low.min(px), high: seen.high.max(px) };
    }
    all
}

/// A best bid and offer as a cache of this kind has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    bid: f64,
    bid_qty: f64,
    ask: f64,
    ask_qty: f64,
    update_id: u64,
}

impl Entry {
    fn of(ticker: &Ticker) -> Self {
        let (bid, ask) = (ticker.bid, ticker.ask);
        let qty = |qty: i64| qty as f64 / 1_000.0;
        Self {
            bid: float(bid.0),
            bid_qty: qty(bid.1),
            ask: float(ask.0),
            ask_qty: qty(ask.1),
            update_id: ticker.update_id,
        }
    }
}

fn float(px: i64) -> f64 {
    px as f64 / 10.0
}

/// The same with what truetick does besides: a candle of one minute, made of bids.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Candled {
    entry: Entry,
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    ts_start_ms: u64,
    updates: u64,
}

/// What a map keeps of an instrument.
pub(crate) trait Kept: Copy + Default {
    fn take(&mut self, entry: &Entry, ts_ms: u64);
    fn is_after(&self, seen: &Seen) -> bool;
}

impl Kept for Entry {
    #[inline]
    fn take(&mut self, entry: &Entry, _ts_ms: u64) {
        *self = *entry;
    }

    fn is_after(&self, seen: &Seen) -> bool {
        *self == Self::of(&seen.last)
    }
}

impl Kept for Candled {
    #[inline]
    fn take(&mut self, entry: &Entry, ts_ms: u64) {
        self.entry = *entry;
        let px = entry.bid;
        if self.updates == 0 || ts_ms.wrapping_sub(self.ts_start_ms) >= MINUTE_MS {
            (self.open, self.high, self.low, self.close) = (px, px, px, px);
            (self.ts_start_ms, self.updates) = (ts_ms - ts_ms % MINUTE_MS, 1);
            return;
        }
        self.high = self.high.max(px);
        self.low = self.low.min(px);
        self.close = px;
        self.updates += 1;
    }

    fn is_after(&self, seen: &Seen) -> bool {
        let Seen { last, low, high } = seen;
        let candle = [float(*low), float(*high), float(last.bid.0)];
        self.entry.is_after(seen) && [self.low, self.high, self.close] == candle
    }
}

/// What a cache of this kind is asked to write.
pub(crate) struct Write {
    symbol: String,
    entry: Entry,
    ts_ms: u64,
}

pub(crate) fn writes(symbols: &[String], tickers: &[Ticker]) -> Vec<Write> {
    let write =
        |ticker: &Ticker| Write { symbol: symbols[ticker.symbol].clone(), entry: Entry::of(ticker), ts_ms: TS_MS };
    tickers.iter().map(write).collect()
}

/// A map that finds an instrument's entry.
pub(crate) trait Map: Sized {
    type Value: Kept;

    fn new(symbols: &[String]) -> Self;
    fn write(&mut self, write: &Write);
    fn get(&self, symbol: &str) -> Option<&Self::Value>;
}

/// Keyed by two strings; each write makes its key.
pub(crate) struct TwoStrings<V>(HashMap<(String, String), V>);

impl<V: Kept> Map for TwoStrings<V> {
    type Value = V;

    fn new(symbols: &[String]) -> Self {
        Self(symbols.iter().map(|symbol| ((VENUE.to_owned(), symbol.clone()), V::default())).collect())
    }

    #[inline]
    fn write(&mut self, Write { symbol, entry, ts_ms }: &Write) {
        self.0.entry((VENUE.to_owned(), symbol.clone())).or_default().take(entry, *ts_ms);
    }

    fn get(&self, symbol: &str) -> Option<&V> {
        self.0.get(&(VENUE.to_owned(), symbol.to_owned()))
    }
}

/// The same as a map of maps, which finds an entry without a combined key.
pub(crate) struct Nested<V>(HashMap<String, HashMap<String, V>>);

impl<V: Kept> Map for Nested<V> {
    type Value = V;

    fn new(symbols: &[String]) -> Self {
        let inner = symbols.iter().map(|symbol| (symbol.clone(), V::default())).collect();
        Self(HashMap::from([(VENUE.to_owned(), inner)]))
    }

    #[inline]
    fn write(&mut self, Write { symbol, entry, ts_ms }: &Write) {
        if let Some(value) = self.0.get_mut(VENUE).and_then(|inner| inner.get_mut(symbol.as_str())) {
            value.take(entry, *ts_ms);
        }
    }

    fn get(&self, symbol: &str) -> Option<&V> {
        self.0.get(VENUE)?.get(symbol)
    }
}

/// The key of two strings with all that can be had for it: a hash made for speed, and no key for a look-up.
pub(crate) struct Borrowed<V>(hashbrown::HashMap<(String, String), V>);

#[derive(Hash)]
struct Pair<'a>(&'a str, &'a str);

impl hashbrown::Equivalent<(String, String)> for Pair<'_> {
    #[inline]
    fn equivalent(&self, key: &(String, String)) -> bool {
        self.0 == key.0 && self.1 == key.1
    }
}

impl<V: Kept> Map for Borrowed<V> {
    type Value = V;

    fn new(symbols: &[String]) -> Self {
        Self(symbols.iter().map(|symbol| ((VENUE.to_owned(), symbol.clone()), V::default())).collect())
    }

    #[inline]
    fn write(&mut self, Write { symbol, entry, ts_ms }: &Write) {
        if let Some(value) = self.0.get_mut(&Pair(black_box(VENUE), symbol)) {
            value.take(entry, *ts_ms);
        }
    }

    fn get(&self, symbol: &str) -> Option<&V> {
        self.0.get(&Pair(VENUE, symbol))
    }
}

/// A map behind a lock, which readers share.
pub(crate) struct Shared<M>(RwLock<M>);

impl<M: Map> Shared<M> {
    pub(crate) fn new(symbols: &[String]) -> Self {
        Self(RwLock::new(M::new(symbols)))
    }

    /// All writes once. Every instrument must then have its last entry.
    pub(crate) fn run(
        &self,
        writes: &[Write],
        symbols: &[String],
        seen: &[Option<Seen>],
        gauge: &Gauge,
    ) -> anyhow::Result<Timing> {
        let begin = gauge.begin();
        for write in writes {
            let write = black_box(write);
            self.0.write().unwrap_or_else(PoisonError::into_inner).write(write);
        }
        let ns = gauge.end(begin);
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (symbol, seen) in symbols.iter().zip(seen).filter_map(|(symbol, seen)| Some((symbol, seen.as_ref()?))) {
            ensure!(map.get(symbol).is_some_and(|value| value.is_after(seen)), "another entry is there for {symbol}");
        }
        Ok(Timing { ns, units: writes.len() as u64 })
    }
}
