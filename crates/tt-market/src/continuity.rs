//! Where a delta stands relative to the book.

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
