//! Where a delta stands relative to the book.

use crate::BookDelta;
use crate::rules::{Numbering, Overlap};
use tt_model::Nanos;

/// A delta relative to the update before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuity {
    /// It follows.
    Next,
    /// The book holds it already.
    Duplicate,
    /// Something between is missing.
    Gap,
}

/// A delta relative to a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// The snapshot holds it already.
    Superseded,
    /// It continues the snapshot.
    Next,
    /// Updates between the snapshot and this delta are missing.
    TooNew,
}

impl Numbering {
    /// Whether the delta has a number.
    #[inline]
    pub(crate) fn numbers(self, delta: &BookDelta) -> bool {
        match self {
            Self::None | Self::Times => false,
            Self::Chain => delta.previous_id.is_some(),
            Self::Range | Self::RangeFromOne | Self::Previous | Self::Connection => true,
        }
    }

    /// Where a delta stands after update `last_id`, which the venue made at `last_ts` (zero where nobody knows).
    ///
    /// Where numbers may fall, an old number is no proof of an old update: only the very last one is a duplicate. A time
    /// that falls is one: what came later was applied before it, and only a snapshot tells what the book is.
    #[inline]
    pub(crate) fn continuity(self, last_id: u64, last_ts: Nanos, delta: &BookDelta) -> Continuity {
        let follows = match self {
            Self::None | Self::Connection => return Continuity::Next,
            Self::Times if delta.ts_event < last_ts && delta.ts_event.0 != 0 => return Continuity::Gap,
            Self::Times => return Continuity::Next,
            Self::Range | Self::RangeFromOne => {
                delta.first_id == last_id.wrapping_add(1) && delta.last_id >= delta.first_id
            }
            Self::Previous => delta.previous_id == Some(last_id) && delta.last_id >= last_id,
            // Before it numbered its updates, OKX proved them by checksum alone.
            Self::Chain if delta.previous_id.is_none() && delta.checksum.is_some() => return Continuity::Next,
            Self::Chain => delta.previous_id == Some(last_id),
        };
        let is_old = match self {
            Self::Range | Self::Previous => delta.last_id <= last_id,
            Self::RangeFromOne | Self::Chain | Self::None | Self::Times | Self::Connection => delta.last_id == last_id,
        };
        if follows {
            Continuity::Next
        } else if is_old {
            Continuity::Duplicate
        } else {
            Continuity::Gap
        }
    }
}

impl Overlap {
    /// How a delta joins a snapshot of update `last_id`.
    pub(crate) fn join(self, last_id: u64, delta: &BookDelta) -> Join {
        let (is_old, follows) = match self {
            Self::Next => (delta.last_id <= last_id, delta.first_id <= last_id.saturating_add(1)),
            Self::Same => (delta.last_id < last_id, delta.first_id <= last_id || delta.previous_id == Some(last_id)),
            Self::Follows => (delta.last_id <= last_id, delta.previous_id.is_some_and(|previous| previous <= last_id)),
        };
        if is_old {
            Join::Superseded
        } else if follows {
            Join::Next
        } else {
            Join::TooNew
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Levels, Symbol};

    #[test]
    fn times_that_fall_are_a_gap_and_times_that_stand_or_are_absent_are_none() {
        let delta = |ms: u64| BookDelta {
            symbol: Symbol::new(b"BTC/USD").expect("short"),
            first_id: 0,
            last_id: 0,
            previous_id: None,
            ts_event: Nanos::from_millis(ms),
            checksum: None,
            levels: Levels::default(),
        };
        let after = |last_ms, ms| Numbering::Times.continuity(7, Nanos::from_millis(last_ms), &delta(ms));
        assert_eq!([after(5, 6), after(5, 5), after(5, 0), after(0, 5)], [Continuity::Next; 4]);
        assert_eq!(after(6, 5), Continuity::Gap);
    }
}
