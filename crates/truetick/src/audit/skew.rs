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

    /// The `per_million`-quantile in nanoseconds.
    pub(super) fn quantile(&self, per_million: u32) -> Option<i64> {
        let (early, count) = (self.early.count(), self.count());
        let rank = u128::from(count) * u128::from(per_million) / 1_000_000;
        let share = |rank: u128, of: u64| (rank * 1_000_000 / u128::from(of.max(1))).min(1_000_000) as u32;
        if rank < u128::from(early) {
            self.early.quantile(1_000_000 - share(rank, early), 0).map(|ns| -(ns as i64))
        } else {
            self.late.quantile(share(rank - u128::from(early), self.late.count()), 0).map(|ns| ns as i64)
        }
    }

    pub(super) fn min(&self) -> Option<i64> {
        self.early.max().map(|ns| -(ns as i64)).or_else(|| self.late.min().map(|ns| ns as i64))
    }

    pub(super) fn max(&self) -> Option<i64> {
        self.late.max().map(|ns| ns as i64).or_else(|| self.early.min().map(|ns| -(ns as i64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
