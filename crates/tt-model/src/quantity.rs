//! Numbers with a unit.

/// A price in whole steps of the instrument's `tick_size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Price(pub i64);

/// A quantity in whole steps of the instrument's lot size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Qty(pub i64);

/// A price multiplied by a quantity, in `tick_size` times lot size: the whole product of two `i64`, never rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Notional(pub i128);

impl Notional {
    /// The exact product of `px` and `qty`; it cannot overflow.
    #[must_use]
    pub const fn of(px: Price, qty: Qty) -> Self {
        Self(px.0 as i128 * qty.0 as i128)
    }
}

/// Nanoseconds on a clock that the caller names: monotonic for an engine's `now`, the Unix epoch for `ts_event`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Nanoseconds in a second.
    pub const PER_SECOND: u64 = 1_000_000_000;

    /// `seconds` as nanoseconds, saturating.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(Self::PER_SECOND))
    }

    /// `millis` as nanoseconds, saturating.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The later instant `self + other`, saturating.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The time since `earlier`, zero where `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// An instrument's dense number, given at subscription: an index, never text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct InstrumentId(pub u32);
