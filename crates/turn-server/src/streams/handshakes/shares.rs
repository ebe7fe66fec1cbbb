//! The handshakes in progress, by source.

use std::collections::{BTreeSet, HashMap};

/// Which source has how many handshakes in progress, and in which order they began.
#[derive(Debug, Default)]
pub(super) struct Shares {
    of_source: HashMap<u128, u32>,
    /// The same, in the order of their numbers.
    by_count: BTreeSet<(u32, u128)>,
    begun: BTreeSet<(u128, u64, u32)>,
}

impl Shares {
    /// Returns the handshakes in progress.
    pub(super) fn len(&self) -> usize {
        self.begun.len()
    }

    /// Counts a handshake. `serial` grows with each.
    pub(super) fn insert(&mut self, source: u128, serial: u64, slot: u32) {
        if self.begun.insert((source, serial, slot)) {
            self.set(source, |count| count + 1);
        }
    }

    pub(super) fn remove(&mut self, source: u128, serial: u64, slot: u32) {
        if self.begun.remove(&(source, serial, slot)) {
            self.set(source, |count| count.saturating_sub(1));
        }
    }

    /// Returns the oldest handshake of the source that has most, if `source` has none, or has fewer with one more.
    pub(super) fn surplus(&self, source: u128) -> Option<u32> {
        let (count, of) = *self.by_count.last()?;
        let own = self.of_source.get(&source).copied().unwrap_or_default();
        let oldest = self.begun.range((of, 0, 0)..).next().map(|(_, _, slot)| *slot);
        oldest.filter(|_| of != source && (own == 0 || own + 1 < count))
    }

    fn set(&mut self, source: u128, change: impl Fn(u32) -> u32) {
        let before = self.of_source.get(&source).copied().unwrap_or_default();
        let count = change(before);
        self.by_count.remove(&(before, source));
        if count == 0 {
            self.of_source.remove(&source);
        } else {
            self.of_source.insert(source, count);
            self.by_count.insert((count, source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_with_most_gives_its_oldest_to_one_with_fewer() {
        let mut shares = Shares::default();
        assert_eq!(shares.surplus(1), None);
        for (source, serial, slot) in [(1, 10, 3), (1, 11, 4), (1, 12, 5), (2, 13, 6), (2, 14, 7)] {
            shares.insert(source, serial, slot);
        }
        assert_eq!((shares.surplus(1), shares.surplus(2), shares.surplus(3)), (None, None, Some(3)), "3 and 2");
        shares.remove(2, 13, 6);
        shares.remove(2, 13, 6);
        assert_eq!((shares.surplus(1), shares.surplus(2), shares.surplus(3)), (None, Some(3), Some(3)), "3 and 1");
        shares.remove(1, 10, 3);
        shares.remove(1, 11, 4);
        shares.remove(2, 14, 7);
        assert_eq!((shares.surplus(1), shares.surplus(2)), (None, Some(5)), "1 and none");
        for (source, serial, slot) in [(1, 12, 5), (2, 13, 6), (2, 14, 7)] {
            shares.remove(source, serial, slot);
        }
        assert!(shares.len() == 0 && shares.of_source.is_empty() && shares.by_count.is_empty());
    }
}
