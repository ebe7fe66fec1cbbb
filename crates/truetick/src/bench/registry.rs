//! All rows, in the order in which they are printed.

use anyhow::ensure;

use super::operation::Bench;
use super::{What, market, ring, turn};

/// How to make a bench; making it may take a while, so only those that were asked for are made.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// `turn`, `ring`, `market`.
    pub(crate) engine: &'static str,
    /// The name of the bench, which is the name of its row where it has one.
    pub(crate) name: &'static str,
    /// Makes it.
    pub(crate) make: fn() -> anyhow::Result<Box<dyn Bench>>,
    /// Whether its instructions can be counted.
    pub(crate) counted: bool,
}

/// The rows of `what` whose name contains `text`.
///
/// # Errors
/// There is none.
pub(crate) fn select(what: What, text: Option<&str>) -> anyhow::Result<Vec<Entry>> {
    let wanted = |entry: &Entry| what.includes(entry.engine) && text.is_none_or(|text| entry.name.contains(text));
    let found: Vec<Entry> = all().into_iter().filter(wanted).collect();
    ensure!(!found.is_empty(), "no row of `{}` has {:?} in its name", what.name(), text.unwrap_or_default());
    Ok(found)
}

/// The bench named `name`.
///
/// # Errors
/// There is none, or it cannot be made.
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

    /// Every answer of every row, against its reference.
    #[test]
    fn every_row_gives_the_expected_answers() {
        for entry in all() {
            let mut bench = (entry.make)().unwrap_or_else(|error| panic!("{}: {error:#}", entry.name));
            bench.verify().unwrap_or_else(|error| panic!("{}: {error:#}", entry.name));
        }
    }
}
