//! CRC-32 over the ten best levels, as Kraken computes it.
//!
//! Offers from low to high, then bids from high to low; of each level the digits of the price and of the quantity,
//! without their point and leading zeros (Kraken's "Spot WebSocket book checksum" guide, version 2).

use crate::BookLevel;
use crate::decimal::Scale;
use alloc::vec::Vec;

/// Levels of each side that the checksum covers.
pub(crate) const LEVELS: usize = 10;
/// The digits of twenty levels, each number at most nineteen.
const TEXT_MAX: usize = 2 * LEVELS * LEVEL_TEXT_MAX;

/// The checksum of a book whose best levels are `asks` and `bids`.
pub(crate) fn checksum(asks: &[BookLevel], bids: &[BookLevel], px: &Scale, qty: &Scale) -> u32 {
    let mut text = [0_u8; TEXT_MAX];
    let mut len = 0;
    for level in asks.iter().take(LEVELS).chain(bids.iter().take(LEVELS)) {
        len += write_digits(level.px.0.unsigned_abs() * px.step().mantissa.unsigned_abs(), &mut text[len..]);
        len += write_digits(level.qty.0.unsigned_abs() * qty.step().mantissa.unsigned_abs(), &mut text[len..]);
    }
    tt_simd::crc32(&text[..len])
}

/// The digits of one level at most.
pub(crate) const LEVEL_TEXT_MAX: usize = 2 * 19;

/// Appends what the checksum covers of one order, or of one level, in steps and lots.
pub(crate) fn push_level(text: &mut Vec<u8>, px: i64, qty_lots: i64, px_scale: &Scale, qty_scale: &Scale) {
    let mut digits = [0_u8; LEVEL_TEXT_MAX];
    let mut len = write_digits(px.unsigned_abs() * px_scale.step().mantissa.unsigned_abs(), &mut digits);
    len += write_digits(qty_lots.unsigned_abs() * qty_scale.step().mantissa.unsigned_abs(), &mut digits[len..]);
    text.extend_from_slice(&digits[..len]);
}

fn write_digits(mut number: u64, out: &mut [u8]) -> usize {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while number != 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let len = digits.len() - at;
    out[..len].copy_from_slice(&digits[at..]);
    len
}
