//! Limits and reference price of an instrument.

use crate::rate::{Bucket, Rate};
use tt_model::{Breach, Price};

/// Limits of an instrument for all accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentLimits {
    /// Maximum distance of a price from the reference price, in 1/10,000 of the reference price.
    pub collar_bps: u32,
    /// Maximum age of a mark in nanoseconds.
    pub mark_age_max_ns: u64,
    /// Message rate of all accounts together.
    pub rate: Rate,
}

/// The reference price of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The venue's mark price, or the middle of the book; zero or negative if there is no price.
    pub ref_px: Price,
    /// Time of the price on the gate's clock.
    pub ts_ns: u64,
    /// Whether the source book is verified.
    pub is_verified: bool,
}

/// An instrument in the form that the evaluation reads: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Market {
    pub(crate) ref_px: i64,
    /// Lowest price of the collar, and the number of prices in it.
    pub(crate) px_low: i64,
    pub(crate) px_count: u64,
    /// Time at which the mark becomes too old; zero without a mark.
    pub(crate) stale_at_ns: u64,
    /// `BOOK_UNVERIFIED` if the book is not verified.
    pub(crate) unverified: u64,
    pub(crate) rate: Bucket,
}

const _: () = assert!(size_of::<Market>() == 64);

impl Market {
    /// An instrument without mark, limits or rate: every order is rejected.
    pub(crate) const UNKNOWN: Self = Self {
        ref_px: 0,
        px_low: 0,
        px_count: 0,
        stale_at_ns: 0,
        unverified: Breach::BOOK_UNVERIFIED.0,
        rate: Bucket::CLOSED,
    };

    /// Sets `mark`, and the collar and expiry that `limits` give it.
    pub(crate) fn set(&mut self, mark: &Mark, limits: &InstrumentLimits) {
        if mark.ref_px.0 <= 0 {
            *self = Self { rate: self.rate, ..Self::UNKNOWN };
            return;
        }
        (self.px_low, self.px_count) = band(mark.ref_px.0, limits.collar_bps);
        self.ref_px = mark.ref_px.0;
        self.stale_at_ns = mark.ts_ns.saturating_add(limits.mark_age_max_ns).saturating_add(1);
        self.unverified = u64::from(!mark.is_verified) * Breach::BOOK_UNVERIFIED.0;
    }
}

/// Returns the lowest price (at least zero) within `bps` of `ref_px` and the number of prices, both ends included.
fn band(ref_px: i64, bps: u32) -> (i64, u64) {
    let reference = i128::from(ref_px);
    let width = reference * i128::from(bps) / 10_000;
    let low = i64::try_from(reference - width).unwrap_or(0).max(0);
    let high = i64::try_from(reference + width).unwrap_or(i64::MAX);
    (low, low.abs_diff(high) + 1)
}
