//! Waiting that ends.

use tt_meter::{Clock, Scale};

/// Looks for what is awaited between two looks at the clock.
const LOOKS: u32 = 4096;

/// When a thread that spins gives up: what it waits for may never get a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    clock: Clock,
    /// In the clock's cycles.
    at: u64,
}

impl Deadline {
    /// Waits on.
    pub const NEVER: Self = Self { clock: Clock::Os(|| 0), at: u64::MAX };

    /// `ns` nanoseconds from now.
    #[must_use]
    pub fn after_ns(clock: Clock, scale: Scale, ns: u64) -> Self {
        let cycles = scale.cycles_per_s() * ns as f64 / 1e9;
        Self { clock, at: clock.end().0.saturating_add(cycles as u64) }
    }

    /// Whether it has come.
    #[must_use]
    #[inline]
    pub fn is_over(self) -> bool {
        self.clock.start().0 >= self.at
    }

    /// Looks again and again until `is_there`; `None` when the deadline came first. It looks at the clock rarely.
    #[inline(always)]
    pub fn spin_until(self, mut is_there: impl FnMut() -> bool) -> Option<()> {
        loop {
            for _ in 0..LOOKS {
                if is_there() {
                    return Some(());
                }
            }
            if self.is_over() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Deadline;
    use tt_meter::{Clock, Scale};

    #[test]
    fn what_never_comes_is_given_up() {
        let clock = Clock::new(|| 0);
        let mut looks = 0_u64;
        let never = || {
            looks += 1;
            false
        };
        assert_eq!(Deadline::after_ns(clock, Scale::NANOSECONDS, 1_000).spin_until(never), None);
        assert!(looks > 0);
        assert_eq!(Deadline::after_ns(clock, Scale::NANOSECONDS, 0).spin_until(|| true), Some(()));
    }
}
