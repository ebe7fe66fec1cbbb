//! Deltas that are kept while their book waits for a REST snapshot.

use alloc::vec::Vec;
use core::ops::Range;
use tt_venue::event::{BookDelta, BookOrder, Level};

/// One kept delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedDelta {
    pub(crate) delta: BookDelta,
    start: usize,
}

impl BufferedDelta {
    pub(crate) fn bids(&self) -> Range<usize> {
        self.start..self.start + self.delta.levels.bids().len()
    }

    pub(crate) fn asks(&self) -> Range<usize> {
        let bids = self.bids();
        bids.end..bids.end + self.delta.levels.asks().len()
    }
}

/// The deltas of one book since its resync began, in the order of their arrival. It never grows.
#[derive(Debug)]
pub(crate) struct Backlog {
    kept: Vec<BufferedDelta>,
    levels: Vec<Level>,
    /// The order that each delta concerns, in an order-by-order book.
    orders: Vec<Option<BookOrder>>,
}

impl Backlog {
    pub(crate) fn new(deltas_max: usize, levels_max: usize, orders_max: usize) -> Self {
        Self {
            kept: Vec::with_capacity(deltas_max),
            levels: Vec::with_capacity(levels_max),
            orders: Vec::with_capacity(orders_max),
        }
    }

    /// Keeps a delta whose levels stand in `levels`; `false` where there is no room.
    pub(crate) fn keep(&mut self, delta: &BookDelta, levels: &[Level]) -> bool {
        let fits =
            self.kept.len() < self.kept.capacity() && delta.levels.len() <= self.levels.capacity() - self.levels.len();
        if fits {
            let start = self.levels.len();
            self.levels.extend_from_slice(&levels[delta.levels.bids()]);
            self.levels.extend_from_slice(&levels[delta.levels.asks()]);
            self.kept.push(BufferedDelta { delta: *delta, start });
        }
        fits
    }

    /// Keeps the order of the last kept delta.
    pub(crate) fn keep_order(&mut self, order: Option<BookOrder>) {
        if self.orders.len() < self.orders.capacity() {
            self.orders.push(order);
        }
    }

    pub(crate) fn order(&self, index: usize) -> Option<BookOrder> {
        self.orders.get(index).copied().flatten()
    }

    pub(crate) fn last(&self) -> Option<&BookDelta> {
        self.kept.last().map(|kept| &kept.delta)
    }

    pub(crate) fn first(&self) -> Option<&BookDelta> {
        self.kept.first().map(|kept| &kept.delta)
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<BufferedDelta> {
        self.kept.get(index).copied()
    }

    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.levels.clear();
        self.orders.clear();
    }
}
