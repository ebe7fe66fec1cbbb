//! One instrument's book: two ladders that share the engine's slab of pages.

mod ladder;
mod levels;
mod overflow;
mod slab;

pub(crate) use ladder::{Ladder, Replaced};
pub(crate) use levels::LadderLevels;
pub(crate) use slab::PageSlab;

use tt_model::{OrderSide, Price, Qty};
use tt_venue::BookLevel;

#[cfg(test)]
mod tests;

/// A side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BookSide {
    /// Who wants to buy; best is highest.
    Bid,
    /// Who wants to sell; best is lowest.
    Ask,
}

impl BookSide {
    /// The side on which such orders rest.
    pub(crate) const fn of(side: OrderSide) -> Self {
        match side {
            OrderSide::Buy => Self::Bid,
            OrderSide::Sell => Self::Ask,
        }
    }

    /// A price as a key of which the highest is best. It is its own inverse.
    #[inline]
    pub(crate) const fn key(self, px: i64) -> i64 {
        match self {
            Self::Bid => px,
            Self::Ask => !px,
        }
    }
}

/// The levels of both sides.
#[derive(Debug)]
pub(crate) struct Book {
    bids: Ladder,
    asks: Ladder,
}

impl Book {
    pub(crate) fn new(overflow_max: usize) -> Self {
        Self { bids: Ladder::new(overflow_max), asks: Ladder::new(overflow_max) }
    }

    #[inline]
    pub(crate) fn side(&self, side: BookSide) -> &Ladder {
        match side {
            BookSide::Bid => &self.bids,
            BookSide::Ask => &self.asks,
        }
    }

    #[inline]
    pub(crate) fn side_mut(&mut self, side: BookSide) -> &mut Ladder {
        match side {
            BookSide::Bid => &mut self.bids,
            BookSide::Ask => &mut self.asks,
        }
    }

    /// Fills `out` with the best levels of a side, best first, and returns how many there are.
    #[inline]
    pub(crate) fn top(&self, side: BookSide, slab: &PageSlab, out: &mut [BookLevel]) -> usize {
        let mut count = 0;
        self.side(side).walk(slab, |key, qty| {
            let Some(level) = out.get_mut(count) else { return false };
            *level = BookLevel { px: Price(side.key(key)), qty: Qty(qty) };
            count += 1;
            count < out.len()
        });
        count
    }

    pub(crate) fn clear(&mut self, slab: &mut PageSlab) {
        self.bids.clear(slab);
        self.asks.clear(slab);
    }
}
