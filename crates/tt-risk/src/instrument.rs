//! Limits and reference price of an instrument.

use crate::rate::{Bucket, Rate};
use tt_model::{Breach, IntentKind, OrderSide, Price};

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

/// The trading state of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstrumentState {
    /// Not known: no order passes.
    #[default]
    Unknown,
    /// Before the opening: limit orders pass.
    PreOpen,
    /// Every order passes.
    Open,
    /// Limit orders pass.
    Auction,
    /// No order passes.
    Halted,
    /// No order passes.
    Closed,
    /// No order passes.
    Expired,
}

impl InstrumentState {
    /// All of them. Journals hold the place in this list: a new one is added at the end.
    pub const ALL: [Self; 7] =
        [Self::Unknown, Self::PreOpen, Self::Open, Self::Auction, Self::Halted, Self::Closed, Self::Expired];

    /// Returns whether the state takes orders of `kind`.
    pub(crate) const fn takes(self, kind: IntentKind) -> bool {
        match self {
            Self::Open => true,
            Self::PreOpen | Self::Auction => kind.0 == IntentKind::LIMIT.0,
            Self::Unknown | Self::Halted | Self::Closed | Self::Expired => false,
        }
    }
}

/// What the venue enforces and allows in an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstrumentRules {
    /// Distance from the mark, or from the trigger of a stop, of the protection price that market orders are sent with, in
    /// 1/10,000. `None`: they are sent without, and match every own order.
    pub slip_bps: Option<u32>,
    /// Maximum distance of a limit price beyond the opposite touch, in 1/10,000 of the touch. `None`: not checked.
    pub touch_bps: Option<u32>,
    /// Maximum distance of a trigger price from the mark, in 1/10,000 of the mark.
    pub trigger_bps: u32,
    /// Whether prices may be zero or negative.
    pub may_be_negative: bool,
    /// Whether the venue itself keeps reduce-only orders from opening a position.
    pub enforces_reduce_only: bool,
    /// Whether the old terms of an order end before the new ones begin.
    pub replaces_atomically: bool,
    /// Maximum number of cancels and replaces per fill, in hundredths, of all accounts within
    /// [`Rules::cancel_window_ns`](crate::Rules::cancel_window_ns). `None`: not checked.
    pub cancels_per_fill_max_pct: Option<u32>,
    /// Maximum age of the book's proof, nanoseconds. `None`: a verified book's proof may have any age.
    pub proof_age_max_ns: Option<u64>,
}

/// The reference price of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The venue's mark price, or the middle of the book; zero or negative if there is no price.
    pub ref_px: Price,
    /// The best bid; zero or negative if there is none.
    pub bid_px: Price,
    /// The best offer; zero or negative if there is none.
    pub ask_px: Price,
    /// Time of the price on the gate's clock.
    pub ts_ns: u64,
    /// Whether the source book is verified.
    pub is_verified: bool,
    /// Time of the update that has proved the book last, on the gate's clock; zero if it is unknown.
    pub proof_ns: u64,
}

impl Mark {
    /// Maximum time of a mark after the gate's time, nanoseconds; two threads may read the clock in another order. A mark
    /// beyond it has the reason `MD_STALE`.
    pub const AHEAD_MAX_NS: u64 = 1_000_000;
}

/// In [`Market::fresh_ns`]: the book is not verified.
const UNVERIFIED: u64 = 1 << 63;

/// An instrument in the form that the evaluation reads: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Market {
    pub(crate) ref_px: i64,
    /// Lowest price of the collar, and the number of prices in it.
    pub(crate) px_low: i64,
    pub(crate) px_count: u64,
    /// Earliest time at which the mark is not from the future.
    fresh_from_ns: u64,
    /// From then until the mark is too old, zero without a mark; and [`UNVERIFIED`].
    fresh_ns: u64,
    pub(crate) rate: Bucket,
}

const _: () = assert!(size_of::<Market>() == 64);

/// What only orders of some kinds need of an instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Book {
    pub(crate) bid_px: i64,
    pub(crate) ask_px: i64,
    pub(crate) collar_bps: u32,
    pub(crate) proof_ns: u64,
}

/// An instrument's mark and book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<'a> {
    pub(crate) market: &'a Market,
    pub(crate) book: Book,
}

impl Quoted<'_> {
    /// Returns the reference price.
    pub(crate) fn reference(&self) -> Option<i64> {
        Some(self.market.ref_px).filter(|px| *px > 0)
    }

    /// Returns the best price that an order of `side` meets; none without a reference price.
    pub(crate) fn touch(&self, side: OrderSide) -> Option<i64> {
        let px = match side {
            OrderSide::Buy => self.book.ask_px,
            OrderSide::Sell => self.book.bid_px,
        };
        self.reference().and(Some(px)).filter(|px| *px > 0)
    }

    /// Returns whether `px` is within the collar.
    pub(crate) const fn is_in_collar(&self, px: i64) -> bool {
        px.wrapping_sub(self.market.px_low).cast_unsigned() < self.market.px_count
    }

    /// Returns whether `px` is at most `bps` away from the reference price.
    pub(crate) fn is_within(&self, px: i64, bps: u32) -> bool {
        let within = |reference: i64| {
            let width = width(reference, bps);
            (i128::from(px) - i128::from(reference)).abs() <= width
        };
        self.reference().is_some_and(within)
    }

    /// Returns whether the proof of the book is older than `rules` permit at `now_ns`, or from the future.
    pub(crate) fn is_proof_old(&self, now_ns: u64, rules: &InstrumentRules) -> bool {
        let Some(age_max_ns) = rules.proof_age_max_ns else { return false };
        let proof_ns = self.book.proof_ns;
        now_ns.saturating_sub(proof_ns) > age_max_ns || proof_ns > now_ns.saturating_add(Mark::AHEAD_MAX_NS)
    }

    /// Returns the ends of the collar's width around `px`.
    pub(crate) fn band_around(&self, px: i64) -> [Option<i64>; 2] {
        let width = width(px, self.book.collar_bps);
        [-width, width].map(|width| i64::try_from(i128::from(px) + width).ok())
    }
}

impl Market {
    /// An instrument without mark, limits or rate: every order is rejected.
    pub(crate) const UNKNOWN: Self =
        Self { ref_px: 0, px_low: 0, px_count: 0, fresh_from_ns: 0, fresh_ns: UNVERIFIED, rate: Bucket::CLOSED };

    /// Sets `mark`, and the collar and expiry that `limits` give it.
    pub(crate) fn set(&mut self, mark: &Mark, limits: &InstrumentLimits) {
        if mark.ref_px.0 <= 0 {
            *self = Self { rate: self.rate, ..Self::UNKNOWN };
            return;
        }
        (self.px_low, self.px_count) = band(mark.ref_px.0, limits.collar_bps);
        self.ref_px = mark.ref_px.0;
        self.fresh_from_ns = mark.ts_ns.saturating_sub(Mark::AHEAD_MAX_NS);
        let stale_at_ns = mark.ts_ns.saturating_add(limits.mark_age_max_ns).saturating_add(1);
        self.fresh_ns = (stale_at_ns - self.fresh_from_ns).min(UNVERIFIED - 1) | u64::from(!mark.is_verified) << 63;
    }

    /// Whether the mark is too old at `now_ns`, or from the future.
    #[inline(always)]
    pub(crate) const fn is_stale(&self, now_ns: u64) -> bool {
        // Before `fresh_from_ns` the difference wraps, and is longer than any time.
        now_ns.wrapping_sub(self.fresh_from_ns) >= self.fresh_ns & !UNVERIFIED
    }

    /// `BOOK_UNVERIFIED` if the book is not verified.
    #[inline(always)]
    pub(crate) const fn unverified(&self) -> u64 {
        (self.fresh_ns >> 63) * Breach::BOOK_UNVERIFIED.0
    }
}

/// Returns the lowest price (at least zero) within `bps` of `ref_px` and the number of prices, both ends included.
fn band(ref_px: i64, bps: u32) -> (i64, u64) {
    let (reference, width) = (i128::from(ref_px), width(ref_px, bps));
    let low = i64::try_from(reference - width).unwrap_or(0).max(0);
    let high = i64::try_from(reference + width).unwrap_or(i64::MAX);
    (low, low.abs_diff(high) + 1)
}

/// Returns `bps` 1/10,000 of the size of `px`, rounded down.
#[inline(always)]
pub(crate) fn width(px: i64, bps: u32) -> i128 {
    // A division of a word by a constant is a multiplication, one of two words a call.
    match px.unsigned_abs().checked_mul(bps.into()) {
        Some(product) => (product / 10_000).into(),
        None => i128::from(px.unsigned_abs()) * i128::from(bps) / 10_000,
    }
}

crate::fields::visit!(InstrumentLimits: collar_bps, mark_age_max_ns, rate);
crate::fields::visit!(
    InstrumentRules: slip_bps, touch_bps, trigger_bps, may_be_negative, enforces_reduce_only, replaces_atomically,
    cancels_per_fill_max_pct, proof_age_max_ns
);
crate::fields::visit_variants!(InstrumentState: Unknown, PreOpen, Open, Auction, Halted, Closed, Expired);
crate::fields::visit!(Mark: ref_px, bid_px, ask_px, ts_ns, is_verified, proof_ns);
crate::fields::visit!(Market: ref_px, px_low, px_count, fresh_from_ns, fresh_ns, rate);
