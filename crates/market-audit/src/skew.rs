//! Time from the venue's timestamp to the receipt; negative if the clocks disagree.

use tt_meter::Histogram;

/// Distribution of the delay of frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Skew {
    late: Histogram,
    early: Histogram,
    /// Frames with an earlier receive time than the previous one.
    pub(super) backwards: u64,
    last_ns: u64,
}

impl Skew {
    /// Records a frame with the venue's time.
    pub(super) fn record(&mut self, ts_recv_ns: u64, ts_event_ns: u64) {
        match ts_recv_ns.checked_sub(ts_event_ns) {
            Some(late) => self.late.record(late),
            None => self.early.record(ts_event_ns - ts_recv_ns),
        }
    }

    /// Records the receipt of any frame; returns whether it is earlier than the last one.
    pub(super) fn receive(&mut self, ts_recv_ns: u64) -> bool {
        let is_backwards = ts_recv_ns < self.last_ns;
        self.backwards += u64::from(is_backwards);
        self.last_ns = ts_recv_ns;
        is_backwards
    }

    /// Frames with both times.
    pub(super) const fn count(&self) -> u64 {
        self.late.count() + self.early.count()
    }

    /// Frames received before the venue's time.
    pub(super) const fn early(&self) -> u64 {
        self.early.count()
    }

    /// The `per_million`-quantile in nanoseconds, to two digits: a bucket is 3 % wide.
    pub(super) fn quantile(&self, per_million: u32) -> Option<i64> {
        let (early, count) = (self.early.count(), self.count());
        let rank = u128::from(count) * u128::from(per_million) / 1_000_000;
        let share = |rank: u128, of: u64| (rank * 1_000_000 / u128::from(of.max(1))).min(1_000_000) as u32;
        if rank < u128::from(early) {
            self.early.quantile(1_000_000 - share(rank, early), 0).map(|ns| -(two_digits(ns) as i64))
        } else {
            self.late.quantile(share(rank - u128::from(early), self.late.count()), 0).map(|ns| two_digits(ns) as i64)
        }
    }

    pub(super) fn min(&self) -> Option<i64> {
        self.early.max().map(|ns| -(ns as i64)).or_else(|| self.late.min().map(|ns| ns as i64))
    }

    pub(super) fn max(&self) -> Option<i64> {
        self.late.max().map(|ns| ns as i64).or_else(|| self.early.min().map(|ns| -(ns as i64)))
    }
}

/// Rounds to the two digits that a bucket of the histogram knows.
const fn two_digits(ns: u64) -> u64 {
    let mut unit = 1;
    while ns / unit >= 100 {
        unit *= 10;
    }
    (ns + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_no_digit_that_their_buckets_do_not_know() {
        assert_eq!([0, 9, 99, 149, 150, 995, 1_266_946_888].map(two_digits), [0, 9, 99, 150, 150, 1000, 1_300_000_000]);
        let mut skew = Skew::default();
        for ns in 0..100 {
            skew.record(1_000_000_000, 2_266_946_888 + ns);
        }
        assert_eq!((skew.quantile(500_000), skew.quantile(990_000)), (Some(-1_300_000_000), Some(-1_300_000_000)));
        assert_eq!((skew.min(), skew.max()), (Some(-1_266_946_987), Some(-1_266_946_888)), "as they were");
    }

    #[test]
    fn quantiles_cross_zero() {
        let mut skew = Skew::default();
        for ns in [50_u64, 80, 100, 120, 150] {
            skew.record(ns, 100);
        }
        assert_eq!((skew.min(), skew.max(), skew.early(), skew.count()), (Some(-50), Some(50), 2, 5));
        assert!(skew.quantile(100_000).unwrap() < 0 && skew.quantile(900_000).unwrap() > 0);
        assert!(skew.receive(5) != skew.receive(4));
        assert_eq!(skew.backwards, 1);
    }
}
