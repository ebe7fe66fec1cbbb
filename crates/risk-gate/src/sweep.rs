//! The order in which the marks of all instruments are set again.

use tt_model::InstrumentId;

/// Age that the mark of no instrument of the board exceeds when an order is judged.
const PERIOD_NS: u64 = 250_000_000;

/// The instruments of a board in turn, each once in [`PERIOD_NS`].
///
/// An order in a busy flow waits for few of many instruments; the first one after a pause waits for all of them, since
/// all marks have become old.
pub(crate) struct Sweep {
    instruments: Vec<InstrumentId>,
    next: usize,
    swept_ns: u64,
}

impl Sweep {
    /// Creates a sweep over `instruments` of which all are due.
    pub(crate) const fn new(instruments: Vec<InstrumentId>) -> Self {
        Self { instruments, next: 0, swept_ns: 0 }
    }

    /// Returns how many instruments are due at `now_ns`, by [`next`](Self::next).
    pub(crate) fn take_due(&mut self, now_ns: u64) -> usize {
        let len = self.instruments.len() as u64;
        let elapsed_ns = now_ns.abs_diff(self.swept_ns).min(PERIOD_NS);
        let due = len * elapsed_ns / PERIOD_NS;
        let counted_ns = if due == len { elapsed_ns } else { due * PERIOD_NS / len };
        self.swept_ns = now_ns.saturating_sub(elapsed_ns - counted_ns);
        due as usize
    }

    /// Returns the next instrument.
    pub(crate) fn next(&mut self) -> Option<InstrumentId> {
        let instrument = *self.instruments.get(self.next)?;
        self.next = (self.next + 1) % self.instruments.len();
        Some(instrument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sweep(len: u32) -> Sweep {
        Sweep::new((0..len).map(InstrumentId).collect())
    }

    fn due(sweep: &mut Sweep, now_ns: u64) -> Vec<u32> {
        (0..sweep.take_due(now_ns)).map(|_| sweep.next().unwrap().0).collect()
    }

    #[test]
    fn all_are_due_after_a_pause() {
        let mut sweep = sweep(1_000);
        assert_eq!(due(&mut sweep, 3_600_000 * MS).len(), 1_000);
        assert_eq!(due(&mut sweep, 3_600_000 * MS).len(), 0);
        assert_eq!(due(&mut sweep, 3_600_250 * MS).len(), 1_000);
    }

    /// 1,000 instruments in 250 ms are four in a millisecond.
    #[test]
    fn few_are_due_between_two_orders_of_a_busy_flow() {
        let mut sweep = sweep(1_000);
        due(&mut sweep, 1_000 * MS);
        for ms in 1..=250 {
            let first = 4 * (ms as u32 - 1);
            assert_eq!(due(&mut sweep, (1_000 + ms) * MS), (first..first + 4).collect::<Vec<_>>());
        }
        assert_eq!(due(&mut sweep, 1_251 * MS), [0, 1, 2, 3]);
    }

    /// Two instruments are due every 125 ms, however short the time between two orders is.
    #[test]
    fn no_mark_becomes_older_than_the_period() {
        let mut sweep = sweep(2);
        due(&mut sweep, 1_000 * MS);
        let seen: Vec<_> = (1..=500).flat_map(|ms| due(&mut sweep, (1_000 + ms) * MS)).collect();
        assert_eq!(seen, [0, 1, 0, 1]);
    }

    #[test]
    fn all_are_due_when_the_clock_was_set_back() {
        let mut sweep = sweep(3);
        due(&mut sweep, 10_000 * MS);
        assert_eq!(due(&mut sweep, 1_000 * MS).len(), 3);
        assert_eq!(due(&mut sweep, 1_084 * MS).len(), 1);
    }

    #[test]
    fn a_board_without_instruments_has_none_due() {
        let mut sweep = sweep(0);
        assert_eq!(sweep.take_due(1_000 * MS), 0);
        assert_eq!(sweep.next(), None);
    }
}
