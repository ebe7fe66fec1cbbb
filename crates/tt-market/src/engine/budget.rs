//! How often books may be synchronised again, and when.

use tt_model::{Nanos, SplitMix64};
use tt_venue::rules::Rate;

/// What is left of a venue's budget of resyncs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    rule: Rate,
    /// When the budget is whole again.
    ts_whole: Nanos,
}

impl Budget {
    pub(super) const fn new(rule: Rate) -> Self {
        Self { rule, ts_whole: Nanos(0) }
    }

    /// Takes one resync, if the budget has one.
    pub(super) fn take(&mut self, now: Nanos) -> bool {
        let has_one = self.rule.next_at(self.ts_whole, now) == now;
        if has_one {
            self.ts_whole = self.ts_whole.max(now).saturating_add(self.rule.gap);
        }
        has_one
    }
}

/// A share of `most` that is as good as random, the same for the same seed and number: `number` is never used twice.
pub(super) fn jitter(seed: u64, number: u64, most: Nanos) -> Nanos {
    Nanos(((u128::from(SplitMix64::nth(seed, number)) * u128::from(most.0)) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_one_at_a_time() {
        let mut budget = Budget::new(Rate { burst: 3, gap: Nanos::from_secs(1) });
        let at = |ms: u64| Nanos::from_millis(1_700_000_000_000 + ms);
        let taken: [bool; 7] = [0, 0, 0, 10, 999, 1000, 1001].map(|ms| budget.take(at(ms)));
        assert_eq!(taken, [true, true, true, false, false, true, false]);
        let taken: [bool; 4] = [60_000; 4].map(|ms| budget.take(at(ms)));
        assert_eq!(taken, [true, true, true, false], "never more than the burst");
    }

    #[test]
    fn jitter_spreads_and_repeats() {
        let most = Nanos(1000);
        let all: [u64; 64] = core::array::from_fn(|number| jitter(7, number as u64, most).0);
        assert!(all.iter().all(|share| *share < 1000));
        assert!(all.iter().any(|share| *share < 200) && all.iter().any(|share| *share > 800));
        assert_eq!(jitter(7, 5, most).0, all[5]);
        assert_ne!(jitter(8, 5, most).0, all[5]);
    }
}
