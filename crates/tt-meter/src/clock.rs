//! The clock that passes are timed with.

use crate::counter;

/// A moment on a [`Clock`], in its cycles. Only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Cycles from `earlier` to this moment, zero if `earlier` is later (two cores may disagree by a few cycles).
    #[must_use]
    #[inline(always)]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The source of timestamps.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's own counter: the TSC on x86-64, the virtual counter on 64-bit Arm.
    Counter,
    /// A clock of the edge, in nanoseconds that never go back.
    Os(fn() -> u64),
}

impl Clock {
    /// The machine's counter, or `os_ns` where this crate knows no counter.
    #[must_use]
    pub const fn new(os_ns: fn() -> u64) -> Self {
        if counter::PRESENT { Self::Counter } else { Self::Os(os_ns) }
    }

    /// The stamp before the work: every earlier instruction has completed.
    #[must_use]
    #[inline(always)]
    pub fn start(self) -> Stamp {
        match self {
            Self::Counter => Stamp(counter::start()),
            Self::Os(os_ns) => Stamp(os_ns()),
        }
    }

    /// The stamp after the work: every earlier instruction has completed and no later one has started, so that it can
    /// serve as the start of what follows.
    #[must_use]
    #[inline(always)]
    pub fn end(self) -> Stamp {
        match self {
            Self::Counter => Stamp(counter::end()),
            Self::Os(os_ns) => Stamp(os_ns()),
        }
    }

    /// A stamp without any order: the processor may take it before earlier work is done and after later work began. The
    /// cheapest, and wrong for what is short.
    #[must_use]
    #[inline(always)]
    pub fn unordered(self) -> Stamp {
        match self {
            Self::Counter => Stamp(counter::unordered()),
            Self::Os(os_ns) => Stamp(os_ns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Stamp};

    #[test]
    fn counter_never_goes_back_on_one_core() {
        let clock = Clock::new(|| unreachable!("the test machine has a counter"));
        let mut last = clock.start();
        for _ in 0..10_000 {
            let next = clock.end();
            assert!(next >= last);
            // Between two that are ordered, an unordered one has no room to go astray.
            let between = clock.unordered();
            last = clock.end();
            assert!(next <= between && between <= last);
        }
        assert!(last.since(Stamp(0)) > 0);
    }

    #[test]
    fn a_difference_saturates_where_two_cores_disagree() {
        assert_eq!(Stamp(5).since(Stamp(9)), 0);
        assert_eq!(Stamp(9).since(Stamp(5)), 4);
    }
}
