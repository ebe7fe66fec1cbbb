//! All rows, in the order in which they are printed.

use anyhow::ensure;

use super::{gate, market, ring, turn};
use crate::harness::entry::Entry;
use crate::harness::operation::Bench;

/// Which rows are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every row that others have published, too: all but those of the shipped gate, which take minutes.
    All,
    /// The rows of the TURN server.
    Turn,
    /// The rows of the ring and the evaluator.
    Ring,
    /// The rows of the shipped gate.
    Gate,
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
            Self::Gate => "gate",
            Self::Market => "market",
        }
    }

    fn includes(self, engine: &str) -> bool {
        self.name() == engine || (self == Self::All && engine != Self::Gate.name())
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

/// Returns the rows of every engine whose name contains `text`.
///
/// # Errors
/// No row matches.
pub(crate) fn named(text: Option<&str>) -> anyhow::Result<Vec<Entry>> {
    let found: Vec<Entry> =
        all().into_iter().filter(|entry| text.is_none_or(|text| entry.name.contains(text))).collect();
    ensure!(!found.is_empty(), "no row has {:?} in its name", text.unwrap_or_default());
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
    [turn::entries(), ring::entries(), gate::entries(), market::entries()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn all_rows_are_those_that_are_published() {
        let engines = |selection| select(selection, None).unwrap().iter().map(|entry| entry.engine).collect::<Vec<_>>();
        assert!(!engines(Selection::All).contains(&"gate") && engines(Selection::All).contains(&"market"));
        assert!(engines(Selection::Gate).iter().all(|engine| *engine == "gate"));
        assert_eq!(named(None).unwrap().len(), engines(Selection::All).len() + engines(Selection::Gate).len());
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
