//! The levels outside of a ladder's window: few, sorted, worst first.

use alloc::collections::VecDeque;

/// Levels as (key, quantity), ascending by key. It never grows.
#[derive(Debug)]
pub(crate) struct Overflow {
    /// What is displaced leaves at the front, and what a moving window leaves behind comes in at the back.
    levels: VecDeque<(i64, i64)>,
    len_max: usize,
}

/// What became of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is there, and was not before.
    Added,
    /// It was there before.
    Replaced,
    /// It is not there any more.
    Removed,
    /// It never was there.
    Absent,
    /// It is there, and the worst level, of the given key, was dropped for it.
    Displaced(i64),
    /// There was no room for it.
    Refused,
}

impl Overflow {
    pub(crate) fn new(len_max: usize) -> Self {
        Self { levels: VecDeque::with_capacity(len_max), len_max }
    }

    /// Sets the quantity at `key`; zero removes the level.
    pub(crate) fn set(&mut self, key: i64, qty: i64) -> Stored {
        match self.levels.binary_search_by_key(&key, |level| level.0) {
            Ok(at) if qty == 0 => {
                self.levels.remove(at);
                Stored::Removed
            }
            Ok(at) => {
                self.levels[at].1 = qty;
                Stored::Replaced
            }
            Err(_) if qty == 0 => Stored::Absent,
            Err(at) if self.levels.len() < self.len_max => {
                self.levels.insert(at, (key, qty));
                Stored::Added
            }
            Err(0) => Stored::Refused,
            Err(at) => {
                let dropped = self.levels[0].0;
                self.levels.pop_front();
                self.levels.insert(at - 1, (key, qty));
                Stored::Displaced(dropped)
            }
        }
    }

    /// Adds a level that is worse than all others while a list is filled; `false` where there is no room for it.
    pub(crate) fn push_worst(&mut self, key: i64, qty: i64) -> bool {
        let has_room = self.levels.len() < self.len_max;
        if has_room {
            self.levels.push_front((key, qty));
        }
        has_room
    }

    #[inline]
    pub(crate) fn best(&self) -> Option<(i64, i64)> {
        self.levels.back().copied()
    }

    pub(crate) fn worst(&self) -> Option<(i64, i64)> {
        self.levels.front().copied()
    }

    /// How many levels there are.
    pub(crate) fn len(&self) -> usize {
        self.levels.len()
    }

    /// The level of that index, worst first.
    pub(crate) fn get(&self, index: usize) -> Option<(i64, i64)> {
        self.levels.get(index).copied()
    }

    /// The quantity at `key`; zero where there is no level.
    pub(crate) fn qty(&self, key: i64) -> i64 {
        self.levels.binary_search_by_key(&key, |level| level.0).map_or(0, |at| self.levels[at].1)
    }

    /// Worst first.
    pub(crate) fn levels(&self) -> impl DoubleEndedIterator<Item = &(i64, i64)> {
        self.levels.iter()
    }

    /// Takes the best level with a key in `from..to` out.
    pub(crate) fn take_best_in(&mut self, from: i64, to: i64) -> Option<(i64, i64)> {
        let end = self.levels.partition_point(|level| level.0 < to);
        let at = end.checked_sub(1).filter(|at| self.levels[*at].0 >= from)?;
        self.levels.remove(at)
    }

    pub(crate) fn clear(&mut self) {
        self.levels.clear();
    }
}
