//! What an engine is given memory for.

use crate::candle::TIMEFRAMES_MAX;
use tt_model::Nanos;

/// Every bound of an engine. Memory is taken once, by `Engine::new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Instruments of all venues.
    pub instruments: usize,
    /// Connections open at a time.
    pub connections: usize,
    /// Pages of 64 price steps for all books together; 520 bytes each.
    pub pages: usize,
    /// Levels outside of its window that one book side keeps; the worst are dropped and counted beyond it. 16 bytes each.
    pub overflow_levels: usize,
    /// Levels in one frame or snapshot; 16 bytes each. A frame with more is dropped as `too_many_levels`, and its book
    /// is lost. Whole books of some venues have tens of thousands.
    pub frame_levels: usize,
    /// Trades, order updates and entries of each other list in one frame.
    pub frame_entries: usize,
    /// Books that can be joined to a REST snapshot at the same time.
    pub backlogs: usize,
    /// Deltas that are kept for one join.
    pub backlog_deltas: usize,
    /// Levels of those deltas together.
    pub backlog_levels: usize,
    /// Orders of all books that are followed order by order, and of one snapshot of those; 300 bytes each. A book of
    /// which no more orders fit is lost, and the frame is dropped as `book_orders_full`. Zero where none is followed.
    pub book_orders: usize,
    /// Live orders of all accounts.
    pub orders: usize,
    /// The newest own executions, of which each counts once.
    pub fills: usize,
    /// Positions of all accounts.
    pub positions: usize,
    /// Assets of all accounts.
    pub balances: usize,
    /// Spreads the moments of resyncs: engines with different seeds do not ask their venue at the same time.
    pub jitter_seed: u64,
    /// Lengths of the candles; zero ends the list.
    pub timeframes: [Nanos; TIMEFRAMES_MAX],
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            instruments: 64,
            connections: 16,
            pages: 32_768,
            overflow_levels: 4096,
            frame_levels: 131_072,
            frame_entries: 1024,
            backlogs: 8,
            backlog_deltas: 512,
            backlog_levels: 32_768,
            book_orders: 0,
            orders: 4096,
            fills: 1024,
            positions: 64,
            balances: 256,
            jitter_seed: 0,
            timeframes: [Nanos::from_secs(60), Nanos(0), Nanos(0), Nanos(0)],
        }
    }
}

impl Capacity {
    /// How many timeframes are given.
    #[must_use]
    pub fn timeframes_len(&self) -> usize {
        self.timeframes.iter().position(|timeframe| timeframe.0 == 0).unwrap_or(TIMEFRAMES_MAX)
    }
}
