//! An entry of the list of rows.

use super::operation::Bench;

/// A row of the registry. Making its bench may take a while, so only selected rows are made.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// `turn`, `ring` or `market`.
    pub(crate) engine: &'static str,
    /// Name of the bench, which is the name of its row where it has one.
    pub(crate) name: &'static str,
    /// Makes the bench.
    pub(crate) make: fn() -> anyhow::Result<Box<dyn Bench>>,
    /// Whether its instructions can be counted.
    pub(crate) counted: bool,
}
