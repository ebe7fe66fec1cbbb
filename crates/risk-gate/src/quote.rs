//! Reference prices for the gate.

use tt_model::{InstrumentId, Nanos, Price};
use tt_risk::Mark;

/// The top of an instrument's book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    /// The best bid in steps of the instrument's price; zero if there is none.
    pub bid_px: i64,
    /// The best offer; zero if there is none.
    pub ask_px: i64,
    /// When the book was received, Unix epoch.
    pub ts_recv: Nanos,
    /// Whether the book is verified.
    pub is_verified: bool,
}

impl Quote {
    /// Returns the middle of bid and offer as reference price; no price if one of them is missing.
    #[must_use]
    pub const fn mark(self) -> Mark {
        if self.bid_px <= 0 || self.ask_px <= 0 {
            return Mark { ref_px: Price(0), ts_ns: 0, is_verified: false };
        }
        Mark { ref_px: Price(self.bid_px.midpoint(self.ask_px)), ts_ns: self.ts_recv.0, is_verified: self.is_verified }
    }
}

/// Reads the newest quote of an instrument. The gate's thread calls it before every intent, so it must not block.
pub trait QuoteSource: Send + Sync {
    /// Returns the newest quote; `None` for an unknown instrument.
    fn quote(&self, instrument: InstrumentId) -> Option<Quote>;
}
