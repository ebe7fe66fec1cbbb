//! One instrument of a recording: its steps and the statistics of its messages.

use std::hash::Hasher as _;

use tt_market::BookSide;
use tt_market::board::TopOfBook;
use tt_meter::Histogram;
use tt_venue::Symbol;
use tt_venue::event::{BookDelta, Level, Levels};
use tt_venue::rules::Numbering;
use twox_hash::XxHash3_64;

use super::steps::Digits;

/// Remembered update ids, to distinguish a duplicate from a late update.
const IDS: usize = 64;

/// The position of an update after the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Later than all of them, with or without a gap.
    Next,
    /// A repetition.
    Duplicate,
    /// Older than a previous one.
    Late,
}

/// Statistics of one instrument.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) symbol: Symbol,
    pub(super) px: Digits,
    pub(super) qty: Digits,
    /// Number of changes to finer steps.
    pub(super) refined: u64,
    /// Whether a snapshot has shown the depth of the book.
    pub(super) has_depth: bool,
    /// Whether the book is followed order by order.
    pub(super) by_order: bool,
    pub(super) deltas: u64,
    pub(super) snapshots: u64,
    /// Applied book messages.
    pub(super) applied: u64,
    pub(super) levels: Box<Histogram>,
    /// Steps from the best price of the side, of each level of a delta.
    pub(super) distance: Box<Histogram>,
    pub(super) within_4096: u64,
    pub(super) within_16384: u64,
    ids: [u64; IDS],
    ids_next: usize,
    newest_id: u64,
    newest_ts: u64,
    last_hash: u64,
}

impl Watched {
    pub(super) fn new(symbol: Symbol, as_written: bool) -> Self {
        let digits = Digits::new(as_written);
        Self {
            symbol,
            px: digits,
            qty: digits,
            refined: 0,
            has_depth: false,
            by_order: false,
            deltas: 0,
            snapshots: 0,
            applied: 0,
            levels: Box::default(),
            distance: Box::default(),
            within_4096: 0,
            within_16384: 0,
            ids: [0; IDS],
            ids_next: 0,
            newest_id: 0,
            newest_ts: 0,
            last_hash: 0,
        }
    }

    /// Updates the steps from the digits of a list of levels.
    pub(super) fn see_levels(&mut self, list: &Levels, levels: &[Level]) {
        let levels = &levels[list.bids().start.min(list.asks().start)..list.bids().end.max(list.asks().end)];
        self.px.see(levels.iter().map(|level| level.px), list.px_decimals);
        self.qty.see(levels.iter().map(|level| level.qty), list.qty_decimals);
    }

    /// Measures a delta against the book before it.
    pub(super) fn measure(&mut self, delta: &BookDelta, levels: &[Level], top: &TopOfBook) {
        self.deltas += 1;
        self.levels.record(delta.levels.len() as u64);
        let sides = [(BookSide::Bid, delta.levels.bids(), top.bid), (BookSide::Ask, delta.levels.asks(), top.ask)];
        for (side, range, best) in sides {
            let Some(best) = best else { continue };
            for level in &levels[range] {
                let px = self.px.steps(level.px, delta.levels.px_decimals);
                let away = match side {
                    BookSide::Bid => best.px.0 - px,
                    BookSide::Ask => px - best.px.0,
                };
                let steps = away.max(0) as u64;
                self.distance.record(steps);
                self.within_4096 += u64::from(steps <= 4096);
                self.within_16384 += u64::from(steps <= 16_384);
            }
        }
    }

    /// Returns the position of a delta: by its id, or by the venue's time without ids.
    pub(super) fn order(&mut self, delta: &BookDelta, numbering: Numbering, frame: &[u8]) -> Order {
        if numbering == Numbering::None {
            return self.order_by_time(delta.ts_event.0, frame);
        }
        // A keep-alive repeats the id and changes nothing.
        if delta.levels.is_empty() && delta.previous_id == Some(delta.last_id) {
            return Order::Next;
        }
        let is_known = self.ids.contains(&delta.last_id);
        if is_known && delta.last_id != 0 {
            return Order::Duplicate;
        }
        let is_late = delta.last_id < self.newest_id;
        self.ids[self.ids_next % IDS] = delta.last_id;
        self.ids_next += 1;
        self.newest_id = self.newest_id.max(delta.last_id);
        if is_late { Order::Late } else { Order::Next }
    }

    fn order_by_time(&mut self, ts_event: u64, frame: &[u8]) -> Order {
        let hash = XxHash3_64::oneshot(frame);
        let (is_same, is_late) = (hash == self.last_hash, ts_event < self.newest_ts);
        self.last_hash = hash;
        self.newest_ts = self.newest_ts.max(ts_event);
        match (is_same, is_late) {
            (true, _) => Order::Duplicate,
            (false, true) => Order::Late,
            (false, false) => Order::Next,
        }
    }

    /// Handles a snapshot: ids may restart.
    pub(super) fn restart(&mut self) {
        self.snapshots += 1;
        self.forget();
    }

    /// Forgets the ids: a new connection may repeat updates.
    pub(super) fn forget(&mut self) {
        self.ids = [0; IDS];
        self.newest_id = 0;
        self.newest_ts = 0;
        self.last_hash = XxHash3_64::with_seed(0).finish();
    }
}
