//! Candles mirrored live from trades or tickers.

use tt_model::{Nanos, Price, Qty};

/// The most timeframes of an engine.
pub const TIMEFRAMES_MAX: usize = 4;

/// One candle that is still open, or the last one of a quiet instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candle {
    /// The first price.
    pub open_px: Price,
    /// The highest price.
    pub high_px: Price,
    /// The lowest price.
    pub low_px: Price,
    /// The last price.
    pub close_px: Price,
    /// The traded quantity in lots; zero where candles are made from tickers.
    pub volume: Qty,
    /// When it began, Unix epoch: a multiple of its timeframe.
    pub ts_start: Nanos,
    /// How many trades or tickers made it.
    pub updates: u64,
}

/// What candles are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CandleSource {
    /// The price and quantity of each trade.
    #[default]
    Trades,
    /// The best bid of each ticker.
    BestBid,
    /// The last price of each ticker.
    LastPrice,
}

impl Candle {
    #[inline]
    pub(crate) fn to_words(self) -> [u64; 7] {
        [
            self.open_px.0 as u64,
            self.high_px.0 as u64,
            self.low_px.0 as u64,
            self.close_px.0 as u64,
            self.volume.0 as u64,
            self.ts_start.0,
            self.updates,
        ]
    }

    #[inline]
    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        Self {
            open_px: Price(words[0] as i64),
            high_px: Price(words[1] as i64),
            low_px: Price(words[2] as i64),
            close_px: Price(words[3] as i64),
            volume: Qty(words[4] as i64),
            ts_start: Nanos(words[5]),
            updates: words[6],
        }
    }

    /// Adds a price at `ts`; begins the next candle where `ts` lies in it. A price of an earlier candle is left out
    /// and answered with `false`.
    #[inline]
    pub(crate) fn add(&mut self, timeframe: Nanos, ts: Nanos, px: Price, qty: Qty) -> bool {
        let age = ts.0.wrapping_sub(self.ts_start.0);
        if self.updates == 0 || age >= timeframe.0 {
            return self.begin(timeframe, ts, px, qty);
        }
        self.high_px = self.high_px.max(px);
        self.low_px = self.low_px.min(px);
        self.close_px = px;
        self.volume = Qty(self.volume.0.saturating_add(qty.0));
        self.updates += 1;
        true
    }

    /// Adds a price that is older than the last one: it may be the highest or the lowest, never the last one.
    pub(crate) fn add_late(&mut self, timeframe: Nanos, ts: Nanos, px: Price, qty: Qty) -> bool {
        let close_px = self.close_px;
        let is_known = self.updates != 0;
        let added = self.add(timeframe, ts, px, qty);
        if added && is_known && self.updates > 1 {
            self.close_px = close_px;
        }
        added
    }

    #[cold]
    fn begin(&mut self, timeframe: Nanos, ts: Nanos, px: Price, qty: Qty) -> bool {
        if self.updates != 0 && ts < self.ts_start {
            return false;
        }
        let ts_start = Nanos(ts.0 - ts.0 % timeframe.0.max(1));
        *self = Self { open_px: px, high_px: px, low_px: px, close_px: px, volume: qty, ts_start, updates: 1 };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candle_covers_its_timeframe_and_no_late_price() {
        let minute = Nanos::from_secs(60);
        let mut candle = Candle::default();
        for (s, px, qty) in [(61, 10, 1), (62, 14, 2), (90, 7, 3), (119, 9, 4)] {
            assert!(candle.add(minute, Nanos::from_secs(s), Price(px), Qty(qty)));
        }
        let expected = Candle {
            open_px: Price(10),
            high_px: Price(14),
            low_px: Price(7),
            close_px: Price(9),
            volume: Qty(10),
            ts_start: minute,
            updates: 4,
        };
        assert_eq!(candle, expected);
        assert!(!candle.add(minute, Nanos::from_secs(59), Price(99), Qty(1)));
        assert_eq!(candle, expected);
        assert!(candle.add(minute, Nanos::from_secs(240), Price(5), Qty(1)));
        assert_eq!((candle.ts_start, candle.open_px, candle.updates), (Nanos::from_secs(240), Price(5), 1));
        assert!(candle.add_late(minute, Nanos::from_secs(241), Price(9), Qty(1)));
        assert_eq!((candle.high_px, candle.close_px, candle.volume), (Price(9), Price(5), Qty(2)));
        assert_eq!(Candle::from_words(candle.to_words()), candle);
    }
}
