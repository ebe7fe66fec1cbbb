//! The lists of what the TURN server, the market engine and the gate must do, and the tests that show it: `rfc.toml`,
//! `cases.toml`, `faults.toml`.
//!
//! A list is a table for each id:
//!
//! ```toml
//! [R001]
//! section = "RFC 8489 section 5"
//! says = "the requirement in our words"
//! outside = ["truetick::rfc_r001_.."]     # tests of the whole program over sockets
//! engine = ["tt-turn::rfc_r001_.."]       # tests in virtual time or of one crate
//! except = "why a part of it does not apply"
//! ```
//!
//! In place of tests stands `inapplicable` or `waiver` with its reason. A test is named by its package and its
//! function's name; a function called `rfc_rNNN_..`, `case_aNN_..`, `case_mNN_..`, `case_kNN_..` or `fault_fNN_..` is
//! listed under each id of its name.

mod citations;
mod list;
mod sources;

use crate::test::TestRun;
use crate::tidy::{Fault, Tree};

use list::{Entry, List};
use sources::Sources;

/// How many ids may be waived in all lists together.
const WAIVERS_MAX: usize = 3;
/// Where a test of the whole program lies.
const OUTSIDE: &str = "crates/truetick/tests/";

/// A list's file, the letters of its ids with the last number of each, and what its tests' names begin with.
const LISTS: &[Scope] = &[
    Scope { path: "rfc.toml", letters: &[('R', 116)], digits: 3, prefix: "rfc" },
    Scope { path: "cases.toml", letters: &[('A', 84), ('M', 48), ('K', 10)], digits: 2, prefix: "case" },
    Scope { path: "faults.toml", letters: &[('F', 23)], digits: 2, prefix: "fault" },
];

#[derive(Debug, Clone, Copy)]
struct Scope {
    path: &'static str,
    letters: &'static [(char, usize)],
    digits: usize,
    prefix: &'static str,
}

impl Scope {
    fn ids(self) -> impl Iterator<Item = String> {
        let numbers = self.letters.iter().flat_map(|(letter, last)| (1..=*last).map(move |number| (letter, number)));
        numbers.map(move |(letter, number)| format!("{letter}{number:0width$}", width = self.digits))
    }

    /// This list's ids in a test's name: `rfc_r092_r094_case_a59_words` has two of one list and one of another.
    fn ids_in(self, name: &str) -> Vec<String> {
        let parts =
            name.split('_').take_while(|part| LISTS.iter().any(|scope| scope.prefix == *part || scope.is_id(part)));
        let parts: Vec<_> = parts.collect();
        if parts.first().is_none_or(|first| LISTS.iter().all(|scope| scope.prefix != *first)) {
            return Vec::new();
        }
        parts.into_iter().filter(|part| self.is_id(part)).map(str::to_ascii_uppercase).collect()
    }

    fn is_id(self, part: &str) -> bool {
        self.letters.iter().any(|(letter, _)| {
            let digits = part.strip_prefix(letter.to_ascii_lowercase());
            digits.is_some_and(|d| d.len() == self.digits && d.bytes().all(|byte| byte.is_ascii_digit()))
        })
    }
}

/// Faults of the lists against the tree: every id once, every test named and there.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let sources = Sources::read(tree);
    let (mut faults, mut waivers) = (Vec::new(), 0);
    for scope in LISTS {
        let list = match List::read(tree, scope.path) {
            Ok(list) => list,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        waivers += list.entries.iter().filter(|entry| entry.waiver.is_some()).count();
        faults.extend(wrong_ids(*scope, &list));
        if scope.prefix == "rfc" {
            faults.extend(citations::uncited(tree, scope.path, &list));
        }
        faults.extend(list.entries.iter().flat_map(|entry| wrong_entry(scope.path, entry, &sources)));
    }
    if waivers > WAIVERS_MAX {
        faults.push(Fault::at("rfc.toml", 0, format!("{waivers} waivers, at most {WAIVERS_MAX}")));
    }
    faults
}

/// Tests that carry an id and are not listed under it, and ids that no test meets yet: told while one works, and faults
/// in CI.
pub(crate) fn open(tree: &Tree) -> Vec<Fault> {
    let sources = Sources::read(tree);
    let mut faults = Vec::new();
    for scope in LISTS {
        let Ok(list) = List::read(tree, scope.path) else { continue };
        let open = list.entries.iter().filter_map(|entry| Some((entry, entry.open.as_ref()?)));
        faults.extend(open.map(|(entry, why)| Fault::at(scope.path, entry.line, format!("{}: {why}", entry.id))));
        faults.extend(unlisted(*scope, &list, &sources));
    }
    faults
}

fn wrong_ids(scope: Scope, list: &List) -> Vec<Fault> {
    let missing = scope.ids().filter(|id| !list.entries.iter().any(|entry| entry.id == *id));
    let mut faults: Vec<_> = missing.map(|id| Fault::at(scope.path, 0, format!("{id} is missing"))).collect();
    let strange = list.entries.iter().filter(|entry| !scope.ids().any(|id| id == entry.id));
    faults.extend(strange.map(|entry| Fault::at(scope.path, entry.line, format!("{} is no id", entry.id))));
    faults
}

fn wrong_entry(path: &str, entry: &Entry, sources: &Sources) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |message: String| faults.push(Fault::at(path, entry.line, format!("{}: {message}", entry.id)));
    if entry.section.is_empty() || entry.says.is_empty() {
        fault("without a section or a requirement".to_owned());
    }
    let words = [&entry.inapplicable, &entry.waiver, &entry.open].iter().filter(|word| word.is_some()).count();
    let has_tests = entry.tests().next().is_some();
    let is_settled = if has_tests { entry.inapplicable.is_none() && entry.waiver.is_none() } else { words == 1 };
    if !is_settled {
        fault("wants tests, or else one of `inapplicable` and `waiver` with its reason".to_owned());
    }
    for test in entry.tests() {
        match sources.paths(test).as_slice() {
            [] => fault(format!("there is no test {test}")),
            [one] if entry.outside.contains(test) && !one.starts_with(OUTSIDE) => {
                fault(format!("{test} is not under {OUTSIDE}, and so not from outside"));
            }
            [_] => {}
            [_, ..] => fault(format!("{test} is the name of two tests")),
        }
    }
    faults
}

fn unlisted(scope: Scope, list: &List, sources: &Sources) -> Vec<Fault> {
    let mut faults = Vec::new();
    for test in &sources.tests {
        for id in scope.ids_in(&test.name) {
            let entry = list.entries.iter().find(|entry| entry.id == id);
            if !entry.is_some_and(|entry| entry.tests().any(|named| *named == test.named())) {
                let message = format!("list {} under {id} in {}", test.named(), scope.path);
                faults.push(Fault::at(&test.path, test.line, message));
            }
        }
    }
    faults
}

/// What became of the ids in a run of the suites.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Judgement {
    /// Ids that are met, inapplicable or waived.
    pub(crate) settled: usize,
    /// Id and test of what did not pass.
    pub(crate) unmet: Vec<String>,
    /// Id, test and reason of what was skipped.
    pub(crate) skipped: Vec<String>,
}

/// Judges each id by the tests of this run: all of its tests must have passed.
///
/// # Errors
/// Where a list cannot be read.
pub(crate) fn judge(tree: &Tree, runs: &[TestRun]) -> anyhow::Result<Judgement> {
    let mut judgement = Judgement::default();
    for scope in LISTS {
        let list = List::read(tree, scope.path).map_err(|fault| anyhow::anyhow!("{fault}"))?;
        for entry in &list.entries {
            let before = (judgement.unmet.len(), judgement.skipped.len());
            entry.tests().for_each(|test| judge_test(&mut judgement, &entry.id, test, runs));
            if entry.open.is_some() {
                judgement.skipped.push(format!("{}: open", entry.id));
            }
            judgement.settled += usize::from((judgement.unmet.len(), judgement.skipped.len()) == before);
        }
    }
    Ok(judgement)
}

fn judge_test(judgement: &mut Judgement, id: &str, test: &str, runs: &[TestRun]) {
    let mut of_test = runs.iter().filter(|run| run.is_named(test)).peekable();
    if of_test.peek().is_none() {
        judgement.unmet.push(format!("{id}: {test} did not run"));
    }
    for run in of_test {
        if run.skipped {
            judgement.skipped.push(format!("{id}: {test} was skipped"));
        } else if !run.passed {
            judgement.unmet.push(format!("{id}: {test} failed"));
        }
    }
}

#[cfg(test)]
mod tests;
