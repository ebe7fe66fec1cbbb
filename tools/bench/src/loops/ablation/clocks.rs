//! Clocks of the first steps.

use crate::loops::hand_over::Stamps;
use std::time::Instant;
use tt_meter::Clock;

/// The standard library's clock, in nanoseconds since this was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naive(Instant);

impl Naive {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    #[inline(always)]
    fn ns(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Stamps for Naive {
    #[inline(always)]
    fn before(self) -> u64 {
        self.ns()
    }

    #[inline(always)]
    fn after(self) -> u64 {
        self.ns()
    }
}

/// The counter read without any order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unordered(pub(super) Clock);

impl Stamps for Unordered {
    #[inline(always)]
    fn before(self) -> u64 {
        self.0.unordered().0
    }

    #[inline(always)]
    fn after(self) -> u64 {
        self.0.unordered().0
    }
}
