//! All rows, in the order in which they are printed.

use anyhow::ensure;

use super::{market, ring, turn};
use crate::harness::entry::Entry;
use crate::harness::operation::Bench;

/// Which rows are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All rows of all engines.
    All,
    /// The rows of the TURN server.
    Turn,
    /// The rows of the ring and the gate.
    Ring,
    /// The rows of the market engine.
    Market,
}

impl Selection {
    /// Returns the name on the command line and in the result.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Turn => "turn",
            Self::Ring => "ring",
            Self::Market => "market",
        }
    }

    fn includes(self, engine: &str) -> bool {
        self == Self::All || self.name() == engine
    }
}

/// Selects the rows of `selection` whose name contains `text`.
///
/// # Errors
/// No row matches.
pub(crate) fn select(selection: Selection, text: Option<&str>) -> anyhow::Result<Vec<Entry>> {
    let matches = |entry: &Entry| selection.includes(entry.engine) && text.is_none_or(|text| entry.name.contains(text));
    let found: Vec<Entry> = all().into_iter().filter(matches).collect();
    ensure!(!found.is_empty(), "no row of `{}` has {:?} in its name", selection.name(), text.unwrap_or_default());
    Ok(found)
}

/// Makes the bench named `name`.
///
/// # Errors
/// No row has this name, or its bench cannot be made.
pub(crate) fn make(name: &str) -> anyhow::Result<Box<dyn Bench>> {
    let entry = all().into_iter().find(|entry| entry.name == name);
    (entry.ok_or_else(|| anyhow::anyhow!("no row is named {name:?}"))?.make)()
}

fn all() -> Vec<Entry> {
    [turn::entries(), ring::entries(), market::entries()].concat()
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// Rows of 10,000 instruments take minutes without optimisation: `truetick bench` verifies them before it times them.
    #[test]
    fn every_row_gives_the_expected_answers() {
        for entry in all().into_iter().filter(|entry| !entry.name.contains("_10000")) {
            let mut bench = (entry.make)().unwrap_or_else(|error| panic!("{}: {error:#}", entry.name));
            bench.verify().unwrap_or_else(|error| panic!("{}: {error:#}", entry.name));
        }
    }
}
