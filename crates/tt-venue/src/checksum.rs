//! What a venue's checksum covers and how it is computed.

use alloc::vec::Vec;
use tt_model::{Decimal, Price, Qty};

/// A price and the quantity there, in steps of the instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookLevel {
    /// The price in steps of `tick_size`.
    pub px: Price,
    /// The quantity in lots, positive.
    pub qty: Qty,
}

/// The checksum that book frames carry.
#[derive(Clone, Copy, Debug)]
pub enum Checksum {
    /// None.
    None,
    /// Over the best levels of both sides.
    Levels(LevelChecksum),
    /// Over every order of the best levels of both sides, the oldest first.
    Orders(OrderChecksum),
}

impl Checksum {
    /// The most levels of a side that any checksum covers.
    pub const LEVELS_MAX: usize = 25;

    /// Levels of each side that the checksum covers.
    #[inline]
    #[must_use]
    pub const fn levels(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Levels(checksum) => checksum.levels,
            Self::Orders(checksum) => checksum.levels,
        }
    }

    /// Whether the venue has no checksum.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// A checksum over the best levels of both sides.
#[derive(Clone, Copy, Debug)]
pub struct LevelChecksum {
    /// Levels of each side that it covers, at most [`Checksum::LEVELS_MAX`].
    pub levels: usize,
    /// Whether every book frame carries it.
    pub is_always_sent: bool,
    /// Computes it from bids and offers, both best first, and the sizes of a price step and of a lot.
    pub compute: fn(bids: &[BookLevel], asks: &[BookLevel], tick_size: Decimal, lot_size: Decimal) -> u32,
}

/// A CRC-32 over the text of every order of the best levels: offers first, best level first, oldest order first.
#[derive(Clone, Copy, Debug)]
pub struct OrderChecksum {
    /// Levels of each side that it covers, at most [`Checksum::LEVELS_MAX`].
    pub levels: usize,
    /// The most bytes of text of one order.
    pub text_len_max: usize,
    /// Appends the text of one order: its price and quantity in steps, and the sizes of these steps.
    pub push: fn(text: &mut Vec<u8>, level: BookLevel, tick_size: Decimal, lot_size: Decimal),
}
