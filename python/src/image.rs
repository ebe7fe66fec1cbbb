//! The levels of a book at one update.

use market_feed::{BookChange, BookEventKind, BookLevel, BookSide, BookStatus, Decimal, Nanos, level_text};

/// The best levels of a book after an update.
#[derive(Clone, Debug)]
pub(crate) struct BookImage {
    pub(crate) instrument: u32,
    pub(crate) kind: BookEventKind,
    pub(crate) update_id: u64,
    pub(crate) previous_id: u64,
    pub(crate) ts_event: Nanos,
    pub(crate) ts_recv: Nanos,
    pub(crate) status: BookStatus,
    pub(crate) tick_size: Decimal,
    pub(crate) lot_size: Decimal,
    /// Price and quantity of the bids, then of the asks; best first.
    pub(crate) levels: Vec<[i64; 2]>,
    pub(crate) bids_len: usize,
    /// Whether a side has more levels than are kept: bids, asks.
    pub(crate) has_more: [bool; 2],
    /// Updates of the instrument that the reader was too slow for.
    pub(crate) missed: u64,
}

impl BookImage {
    /// Copies the best `levels_max` levels of each side.
    pub(crate) fn of(change: &BookChange<'_>, levels_max: usize) -> Self {
        let (tick_size, lot_size) = change.steps();
        let mut levels = Vec::with_capacity(levels_max.min(128) * 2);
        let mut take = |side| {
            let mut all = change.levels(side);
            levels.extend(all.by_ref().take(levels_max).map(|level| [level.px.0, level.qty.0]));
            (levels.len(), all.next().is_some())
        };
        let (bids_len, more_bids) = take(BookSide::Bid);
        let (_, more_asks) = take(BookSide::Ask);
        Self {
            instrument: change.instrument.0,
            kind: change.kind,
            update_id: change.update_id,
            previous_id: change.previous_id,
            ts_event: change.ts_event,
            ts_recv: change.ts_recv,
            status: change.status,
            tick_size,
            lot_size,
            levels,
            bids_len,
            has_more: [more_bids, more_asks],
            missed: 0,
        }
    }

    /// Start and number of a side's levels.
    pub(crate) const fn range(&self, side: BookSide) -> (usize, usize) {
        match side {
            BookSide::Bid => (0, self.bids_len),
            BookSide::Ask => (self.bids_len, self.levels.len() - self.bids_len),
        }
    }

    /// Price and quantity of a level as text.
    pub(crate) fn level(&self, index: usize) -> (String, String) {
        let [px, qty] = self.levels[index];
        let level = BookLevel { px: market_feed::Price(px), qty: market_feed::Qty(qty) };
        level_text(level, self.tick_size, self.lot_size)
    }
}
