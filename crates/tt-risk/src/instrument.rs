//! What the gate knows of an instrument's market.

use crate::rate::{Bucket, Rate};
use tt_model::{Breach, Price};

/// Limits of an instrument that hold for every account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentLimits {
    /// How far a price may be from the reference price, in 1/10,000 of it.
    pub collar_bps: u32,
    /// How long a mark counts, in nanoseconds.
    pub mark_age_max_ns: u64,
    /// Messages of all accounts together.
    pub rate: Rate,
}

/// The market's state as the gate uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The reference price: the venue's mark price, or the middle of the book. Not above zero means that there is none.
    pub ref_px: Price,
    /// When the market was so, on the gate's clock.
    pub ts_ns: u64,
    /// Whether the book that it was taken from carries a proof that the caller accepts.
    pub is_verified: bool,
}

/// An instrument as the evaluation reads it: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Market {
    pub(crate) ref_px: i64,
    /// The lowest price within the collar, and how many there are.
    pub(crate) px_low: i64,
    pub(crate) px_count: u64,
    /// The first moment at which the mark is too old; zero without a mark.
    pub(crate) stale_at_ns: u64,
    /// `BOOK_UNVERIFIED` where the book carries no proof.
    pub(crate) unverified: u64,
    pub(crate) rate: Bucket,
}

const _: () = assert!(size_of::<Market>() == 64);

impl Market {
    /// Without a mark, limits or a rate: every order is refused.
    pub(crate) const UNKNOWN: Self = Self {
        ref_px: 0,
        px_low: 0,
        px_count: 0,
        stale_at_ns: 0,
        unverified: Breach::BOOK_UNVERIFIED.0,
        rate: Bucket::CLOSED,
    };

    /// Takes `mark` in, and the band and age that follow from `limits`.
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

/// The prices within `bps` of `ref_px`, both ends included: the lowest, zero at least, and how many.
fn band(ref_px: i64, bps: u32) -> (i64, u64) {
    let reference = i128::from(ref_px);
    let width = reference * i128::from(bps) / 10_000;
    let low = i64::try_from(reference - width).unwrap_or(0).max(0);
    let high = i64::try_from(reference + width).unwrap_or(i64::MAX);
    (low, low.abs_diff(high) + 1)
}
