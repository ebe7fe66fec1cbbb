//! Position of a delta in the sequence of its book.

use tt_venue::event::BookDelta;
use tt_venue::rules::{Numbering, Overlap};

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

/// Whether the delta has a number.
#[inline]
pub(crate) const fn is_numbered(numbering: Numbering, delta: &BookDelta) -> bool {
    match numbering {
        Numbering::None => false,
        Numbering::Chain => delta.previous_id.is_some(),
        Numbering::Range | Numbering::RangeFromOne | Numbering::Previous | Numbering::Connection => true,
    }
}

impl Continuity {
    /// Position of a delta after update `last_id`.
    ///
    /// Where numbers may fall, an old number is no proof of an old update: only the very last one is a duplicate. Times
    /// are no numbers: venues do not promise that they rise.
    #[inline]
    pub(crate) fn of(numbering: Numbering, last_id: u64, delta: &BookDelta) -> Self {
        let follows = match numbering {
            Numbering::None | Numbering::Connection => return Self::Next,
            Numbering::Range | Numbering::RangeFromOne => {
                delta.first_id == last_id.wrapping_add(1) && delta.last_id >= delta.first_id
            }
            Numbering::Previous => delta.previous_id == Some(last_id) && delta.last_id >= last_id,
            // An update without a number is proved by its checksum alone.
            Numbering::Chain if delta.previous_id.is_none() && delta.checksum.is_some() => return Self::Next,
            Numbering::Chain => delta.previous_id == Some(last_id),
        };
        let is_old = match numbering {
            Numbering::Range | Numbering::Previous => delta.last_id <= last_id,
            Numbering::RangeFromOne | Numbering::Chain | Numbering::None | Numbering::Connection => {
                delta.last_id == last_id
            }
        };
        if follows {
            Self::Next
        } else if is_old {
            Self::Duplicate
        } else {
            Self::Gap
        }
    }
}

impl Join {
    /// How a delta joins a snapshot of update `last_id`.
    pub(crate) fn of(overlap: Overlap, last_id: u64, delta: &BookDelta) -> Self {
        let (is_old, follows) = match overlap {
            Overlap::Next => (delta.last_id <= last_id, delta.first_id <= last_id.saturating_add(1)),
            Overlap::Same => (delta.last_id < last_id, delta.first_id <= last_id || delta.previous_id == Some(last_id)),
            Overlap::Follows => {
                (delta.last_id <= last_id, delta.previous_id.is_some_and(|previous| previous <= last_id))
            }
        };
        if is_old {
            Self::Superseded
        } else if follows {
            Self::Next
        } else {
            Self::TooNew
        }
    }
}
