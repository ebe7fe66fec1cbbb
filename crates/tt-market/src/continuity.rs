//! Where a delta stands relative to the book.

use crate::BookDelta;
use crate::rules::{Numbering, Overlap};

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
            Self::None => false,
            Self::Chain => delta.previous_id.is_some(),
            Self::Range | Self::RangeFromOne | Self::Previous | Self::Connection => true,
        }
    }

    /// Where a delta stands after update `last_id`.
    ///
    /// Where numbers may fall, an old number is no proof of an old update: only the very last one is a duplicate.
    #[inline]
    pub(crate) fn continuity(self, last_id: u64, delta: &BookDelta) -> Continuity {
        let follows = match self {
            Self::None | Self::Connection => return Continuity::Next,
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
            Self::RangeFromOne | Self::Chain | Self::None | Self::Connection => delta.last_id == last_id,
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
