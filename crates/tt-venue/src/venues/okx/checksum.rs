//! CRC-32 over the 25 best levels, as OKX computed it until June 2026.
//!
//! Bid and offer in turn, best first, each as `price:quantity` in the venue's text, joined by colons; a side that is
//! exhausted is skipped; the result is printed as a signed number. The venue's text has no trailing zeros, so that it
//! follows from the number.

use crate::checksum::BookLevel;
use crate::checksum::LevelChecksum;
use tt_model::Decimal;

/// Levels of each side that the checksum covers.
const LEVELS: usize = 25;
/// The texts of fifty levels: two numbers of up to nineteen digits, each with a sign for its point and a colon.
const TEXT_MAX: usize = 2 * LEVELS * 2 * 40;

/// The checksum of a book's levels.
pub(super) const OF_LEVELS: LevelChecksum = LevelChecksum { levels: LEVELS, is_always_sent: false, compute };

fn compute(bids: &[BookLevel], asks: &[BookLevel], tick_size: Decimal, lot_size: Decimal) -> u32 {
    let mut text = Text { bytes: [0; TEXT_MAX], len: 0 };
    for rank in 0..LEVELS {
        for level in [bids.get(rank), asks.get(rank)].into_iter().flatten() {
            text.push_number(level.px.0, tick_size);
            text.push_number(level.qty.0, lot_size);
        }
    }
    tt_simd::crc32(&text.bytes[..text.len.saturating_sub(1)])
}

struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl Text {
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// The number without trailing zeros, and a colon.
    fn push_number(&mut self, steps: i64, step: Decimal) {
        let mut number = u128::from(steps.unsigned_abs()) * u128::from(step.mantissa.unsigned_abs());
        let mut decimals = usize::from(step.decimals);
        while decimals > 0 && number.is_multiple_of(10) {
            number /= 10;
            decimals -= 1;
        }
        let mut digits = [b'0'; 40];
        let mut at = digits.len();
        while number != 0 || at > digits.len() - 1 - decimals {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        for (index, digit) in digits.iter().enumerate().skip(at) {
            if index == digits.len() - decimals {
                self.push(b'.');
            }
            self.push(*digit);
        }
        self.push(b':');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_model::{Price, Qty};

    /// The example of OKX's documentation of that time, with two levels of each side.
    #[test]
    fn the_documented_text_is_summed() {
        let level = |px, qty| BookLevel { px: Price(px), qty: Qty(qty) };
        let bids = [level(33_661, 7), level(33_660, 6)];
        let asks = [level(33_669, 20), level(33_670, 100)];
        let (tenth, hundredth) = (Decimal::new(1, 1), Decimal::new(1, 2));
        let expected = tt_simd::crc32(b"3366.1:0.07:3366.9:0.2:3366:0.06:3367:1");
        assert_eq!(compute(&bids, &asks, tenth, hundredth), expected);
        let expected = tt_simd::crc32(b"3366.1:0.07:3366.9:0.2:3366:0.06");
        assert_eq!(compute(&bids, &asks[..1], tenth, hundredth), expected);
    }
}
