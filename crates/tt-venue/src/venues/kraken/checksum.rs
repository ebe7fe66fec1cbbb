//! CRC-32 over the ten best levels, as Kraken computes it.
//!
//! Offers from low to high, then bids from high to low; of each level the digits of the price and of the quantity,
//! without their point and leading zeros (Kraken's "Spot WebSocket book checksum" guide, version 2).

use crate::checksum::BookLevel;
use crate::checksum::{LevelChecksum, OrderChecksum};
use alloc::vec::Vec;
use tt_model::Decimal;

/// Levels of each side that the checksum covers.
const LEVELS: usize = 10;
/// The digits of twenty levels, each number at most nineteen.
const TEXT_MAX: usize = 2 * LEVELS * LEVEL_TEXT_MAX;

/// The checksum of a book's levels.
pub(super) const OF_LEVELS: LevelChecksum = LevelChecksum { levels: LEVELS, is_always_sent: true, compute };
/// The checksum of a book's orders.
pub(super) const OF_ORDERS: OrderChecksum =
    OrderChecksum { levels: LEVELS, text_len_max: LEVEL_TEXT_MAX, push: push_order };

fn compute(bids: &[BookLevel], asks: &[BookLevel], tick_size: Decimal, lot_size: Decimal) -> u32 {
    let mut text = [0_u8; TEXT_MAX];
    let mut len = 0;
    for level in asks.iter().take(LEVELS).chain(bids.iter().take(LEVELS)) {
        len += write_digits(level.px.0.unsigned_abs() * tick_size.mantissa.unsigned_abs(), &mut text[len..]);
        len += write_digits(level.qty.0.unsigned_abs() * lot_size.mantissa.unsigned_abs(), &mut text[len..]);
    }
    tt_simd::crc32(&text[..len])
}

/// The digits of one level at most.
const LEVEL_TEXT_MAX: usize = 2 * 19;

fn push_order(text: &mut Vec<u8>, level: BookLevel, tick_size: Decimal, lot_size: Decimal) {
    let mut digits = [0_u8; LEVEL_TEXT_MAX];
    let mut len = write_digits(level.px.0.unsigned_abs() * tick_size.mantissa.unsigned_abs(), &mut digits);
    len += write_digits(level.qty.0.unsigned_abs() * lot_size.mantissa.unsigned_abs(), &mut digits[len..]);
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
