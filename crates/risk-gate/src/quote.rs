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
    /// When the update was received that has proved the book last, Unix epoch; zero if it is unknown.
    pub proof_ts: Nanos,
    /// The feed's number of the update that led to this quote: verdicts on the board name it.
    pub update_id: u64,
}

impl Quote {
    /// Returns the middle of bid and offer as reference price; no price if one of them is missing, or the
    /// bid is above the offer.
    #[must_use]
    pub const fn mark(self) -> Mark {
        let Self { bid_px, ask_px, ts_recv, is_verified, proof_ts, update_id: _ } = self;
        if bid_px <= 0 || ask_px <= 0 || bid_px > ask_px {
            let none = Price(0);
            return Mark { ref_px: none, bid_px: none, ask_px: none, ts_ns: 0, is_verified: false, proof_ns: 0 };
        }
        let ref_px = Price(bid_px.midpoint(ask_px));
        let (bid_px, ask_px) = (Price(bid_px), Price(ask_px));
        Mark { ref_px, bid_px, ask_px, ts_ns: ts_recv.0, is_verified, proof_ns: proof_ts.0 }
    }
}

/// Reads the newest quote of an instrument. The gate's thread calls it before every intent, so it must not block.
pub trait QuoteSource: Send + Sync {
    /// Returns the newest quote; `None` for an unknown instrument.
    fn quote(&self, instrument: InstrumentId) -> Option<Quote>;
}
