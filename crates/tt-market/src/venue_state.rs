//! State that a venue computes itself, as published: its own candles and its last liquidation.

use tt_model::{Decimal, Nanos};
use tt_venue::event::{AggressorSide, Liquidation, VenueCandle};

/// A candle of the venue's own, the newest of its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueCandleState {
    /// The first price.
    pub open_px: Decimal,
    /// The highest price.
    pub high_px: Decimal,
    /// The lowest price.
    pub low_px: Decimal,
    /// The last price up to now.
    pub close_px: Decimal,
    /// The traded quantity, in the venue's unit of quantity.
    pub volume: Decimal,
    /// Its beginning, Unix epoch.
    pub ts_open: Nanos,
    /// Whether it is complete.
    pub is_closed: bool,
}

impl VenueCandleState {
    pub(crate) const fn new(event: &VenueCandle) -> Self {
        Self {
            open_px: event.open_px,
            high_px: event.high_px,
            low_px: event.low_px,
            close_px: event.close_px,
            volume: event.volume,
            ts_open: event.ts_open,
            is_closed: event.is_closed,
        }
    }

    pub(crate) fn to_words(self) -> [u64; 7] {
        let numbers = [self.open_px, self.high_px, self.low_px, self.close_px, self.volume];
        let [open, high, low, close, volume] = numbers.map(|number| number.mantissa as u64);
        let scales = numbers.iter().rev().fold(0, |scales, number| scales << 8 | u64::from(number.decimals));
        [open, high, low, close, volume, scales | u64::from(self.is_closed) << 40, self.ts_open.0]
    }

    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        let number = |index: usize| Decimal::new(words[index] as i64, (words[5] >> (8 * index)) as u8);
        Self {
            open_px: number(0),
            high_px: number(1),
            low_px: number(2),
            close_px: number(3),
            volume: number(4),
            ts_open: Nanos(words[6]),
            is_closed: words[5] >> 40 & 1 == 1,
        }
    }
}

/// A liquidation of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiquidationState {
    /// What the closing order did: `Sell` closes a long position.
    pub side: AggressorSide,
    /// The price.
    pub px: Decimal,
    /// The quantity, in the venue's unit of quantity.
    pub qty: Decimal,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
    /// When the frame was received, Unix epoch.
    pub ts_recv: Nanos,
    /// How many liquidations of the instrument there were up to this one.
    pub count: u64,
}

impl LiquidationState {
    pub(crate) const fn new(event: &Liquidation, ts_recv: Nanos, count: u64) -> Self {
        let Liquidation { side, px, qty, ts_event, .. } = *event;
        Self { side, px, qty, ts_event, ts_recv, count }
    }

    pub(crate) fn to_words(self) -> [u64; 7] {
        let is_sell = u64::from(self.side == AggressorSide::Sell);
        let scales = u64::from(self.px.decimals) | u64::from(self.qty.decimals) << 8 | is_sell << 16;
        let (px, qty) = (self.px.mantissa as u64, self.qty.mantissa as u64);
        [px, qty, scales, self.ts_event.0, self.ts_recv.0, self.count, 0]
    }

    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        Self {
            side: if words[2] >> 16 & 1 == 1 { AggressorSide::Sell } else { AggressorSide::Buy },
            px: Decimal::new(words[0] as i64, words[2] as u8),
            qty: Decimal::new(words[1] as i64, (words[2] >> 8) as u8),
            ts_event: Nanos(words[3]),
            ts_recv: Nanos(words[4]),
            count: words[5],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_read_back() {
        let number = |mantissa: i64, decimals: u8| Decimal::new(mantissa, decimals);
        let candle = VenueCandleState {
            open_px: number(1, 0),
            high_px: number(29, 1),
            low_px: number(-3, 2),
            close_px: number(4, 3),
            volume: number(i64::MAX, 18),
            ts_open: Nanos(60_000_000_000),
            is_closed: true,
        };
        assert_eq!(VenueCandleState::from_words(candle.to_words()), candle);
        for side in [AggressorSide::Buy, AggressorSide::Sell] {
            let (px, qty) = (number(991_012_345_678, 8), number(14, 3));
            let last = LiquidationState { side, px, qty, ts_event: Nanos(5), ts_recv: Nanos(6), count: 7 };
            assert_eq!(LiquidationState::from_words(last.to_words()), last);
        }
    }
}
