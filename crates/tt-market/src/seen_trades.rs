//! The newest trades of an instrument, so that what a new subscription repeats counts once.

use alloc::boxed::Box;
use tt_model::Nanos;
use tt_venue::rules::TradeIds;

/// Numbers below the highest one that are remembered: ten times what any venue repeats to a new subscription.
const WINDOW: u64 = 1024;
const WORDS: usize = WINDOW as usize / 64;
/// Buckets of scattered numbers, and numbers of a bucket: one cache line each.
const BUCKETS: usize = 128;
const BUCKET_IDS: usize = 8;

/// Order of a trade relative to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TradeOrder {
    /// It is the newest.
    Next,
    /// It is new, but older than one that came before.
    Late,
    /// It came before.
    Repeated,
}

/// Numbers and the time of the newest trades.
#[derive(Debug)]
pub(crate) struct SeenTrades {
    ids: Ids,
    id_max: u64,
    ts_newest: Nanos,
}

#[derive(Debug)]
enum Ids {
    /// A bit for each of the [`WINDOW`] numbers up to the highest one, at the number modulo the window.
    Counted([u64; WORDS]),
    /// The newest numbers of each bucket, the newest first.
    Scattered(Box<[[u64; BUCKET_IDS]; BUCKETS]>),
}

impl SeenTrades {
    pub(crate) fn new(ids: TradeIds) -> Self {
        let ids = match ids {
            TradeIds::Counted => Ids::Counted([0; WORDS]),
            TradeIds::Scattered => Ids::Scattered(Box::new([[0; BUCKET_IDS]; BUCKETS])),
        };
        Self { ids, id_max: 0, ts_newest: Nanos(0) }
    }

    /// Takes note of a trade. Without a number (zero), a repetition cannot be detected.
    #[inline]
    pub(crate) fn note(&mut self, trade_id: u64, ts_event: Nanos) -> TradeOrder {
        let is_newer = ts_event > self.ts_newest;
        let (is_repeated, is_lower) = match &mut self.ids {
            _ if trade_id == 0 => (false, false),
            Ids::Counted(bits) if trade_id > self.id_max => {
                forget(bits, self.id_max, trade_id);
                set(bits, trade_id);
                (false, false)
            }
            Ids::Counted(bits) if self.id_max - trade_id < WINDOW => (set(bits, trade_id), true),
            // Far below: long known, unless the venue began to count again.
            Ids::Counted(bits) if is_newer => {
                *bits = [0; WORDS];
                set(bits, trade_id);
                self.id_max = trade_id;
                (false, false)
            }
            Ids::Counted(_) => (true, true),
            Ids::Scattered(buckets) => (insert(buckets, trade_id), false),
        };
        if is_repeated {
            return TradeOrder::Repeated;
        }
        self.id_max = self.id_max.max(trade_id);
        if ts_event < self.ts_newest || (is_lower && !is_newer) {
            return TradeOrder::Late;
        }
        self.ts_newest = ts_event;
        TradeOrder::Next
    }
}

/// Forgets the numbers that leave the window, and those that were skipped.
#[inline]
fn forget(bits: &mut [u64; WORDS], id_max: u64, trade_id: u64) {
    if trade_id - id_max >= WINDOW {
        *bits = [0; WORDS];
        return;
    }
    for id in id_max + 1..trade_id {
        bits[(id % WINDOW / 64) as usize] &= !(1 << (id % 64));
    }
    bits[(trade_id % WINDOW / 64) as usize] &= !(1 << (trade_id % 64));
}

/// Sets the number's bit; returns whether it was set.
#[inline]
fn set(bits: &mut [u64; WORDS], trade_id: u64) -> bool {
    let word = &mut bits[(trade_id % WINDOW / 64) as usize];
    let bit = 1 << (trade_id % 64);
    let was_set = *word & bit != 0;
    *word |= bit;
    was_set
}

/// Puts the number into its bucket; returns whether it was there.
#[inline]
fn insert(buckets: &mut [[u64; BUCKET_IDS]; BUCKETS], trade_id: u64) -> bool {
    // The golden ratio's multiple spreads numbers that differ in few bits.
    let bucket = &mut buckets[(trade_id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize];
    if bucket.contains(&trade_id) {
        return true;
    }
    bucket.copy_within(..BUCKET_IDS - 1, 1);
    bucket[0] = trade_id;
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_repeated_and_late_trades() {
        for ids in [TradeIds::Counted, TradeIds::Scattered] {
            let mut seen = SeenTrades::new(ids);
            for (id, ts, order) in [
                (10, 100, TradeOrder::Next),
                (11, 100, TradeOrder::Next),
                (10, 100, TradeOrder::Repeated),
                (9, 90, TradeOrder::Late),
                (9, 90, TradeOrder::Repeated),
                (7, 120, TradeOrder::Next),
                (0, 120, TradeOrder::Next),
                (0, 120, TradeOrder::Next),
            ] {
                assert_eq!(seen.note(id, Nanos(ts)), order, "{ids:?} {id} {ts}");
            }
        }
    }

    #[test]
    fn a_window_of_1024_numbers_is_remembered_and_below_it_all_but_a_new_count_is_repeated() {
        let mut seen = SeenTrades::new(TradeIds::Counted);
        // Every number but 1500.
        for id in (1000..2000).filter(|id| *id != 1500) {
            assert_eq!(seen.note(id, Nanos(id)), TradeOrder::Next);
        }
        assert!((1000..2000).filter(|id| *id != 1500).all(|id| seen.note(id, Nanos(id)) == TradeOrder::Repeated));
        assert_eq!(seen.note(1500, Nanos(1500)), TradeOrder::Late);
        assert_eq!(seen.note(1500, Nanos(1500)), TradeOrder::Repeated);
        assert_eq!(seen.note(1999 - 1023, Nanos(5)), TradeOrder::Late, "the last of the window");
        assert_eq!(seen.note(1999 - 1024, Nanos(5)), TradeOrder::Repeated, "below the window");
        // Skipped numbers are not set by those that were at their place before.
        assert_eq!(seen.note(2100, Nanos(2100)), TradeOrder::Next);
        assert!((2000..2100).rev().all(|id| seen.note(id, Nanos(id)) == TradeOrder::Late));
        assert_eq!(seen.note(u64::MAX, Nanos(3000)), TradeOrder::Next);
        assert_eq!(seen.note(1, Nanos(3000)), TradeOrder::Repeated);
        assert_eq!(seen.note(1, Nanos(3001)), TradeOrder::Next, "the venue counts again");
        assert_eq!(seen.note(2, Nanos(3001)), TradeOrder::Next);
    }

    #[test]
    fn the_newest_hundred_scattered_numbers_are_remembered_among_ten_thousand() {
        let mut seen = SeenTrades::new(TradeIds::Scattered);
        let id = |n: u64| n.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(23) | 1;
        for n in 0..10_000 {
            assert_eq!(seen.note(id(n), Nanos(n)), TradeOrder::Next);
            if n % 100 == 99 {
                assert!((n - 99..=n).all(|n| seen.note(id(n), Nanos(n)) == TradeOrder::Repeated), "{n}");
            }
        }
    }
}
