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
//! except = "the part that does not hold, with the measured value"
//! ```
//!
//! A reason of the gate has `breached`, `equal` (to the limit) and `missing` (the input) in place of `engine`: tests, or a
//! text that says why there is none.
//!
//! Without tests it has `inapplicable`, `waiver` or `open` with the reason. A test is named by its package and its
//! function's name; a function called `rfc_rNNN_..`, `case_aNN_..`, `case_mNN_..`, `case_kNN_..` or `fault_fNN_..` is
//! listed under each id of its name.

mod citations;
mod list;
mod sources;

use std::ops::RangeInclusive;

use crate::tally::{Skip, TestResult, TestRun};
use crate::tree::Tree;
use crate::violation::Violation;

use list::{Entry, List};
use sources::Sources;

/// How many ids may be waived in all lists together.
const WAIVERS_MAX: usize = 3;
/// How many ids may be open in all lists together.
const OPEN_MAX: usize = 4;
/// Where a test of the whole program lies.
const OUTSIDE: &str = "crates/truetick/tests/";

/// A list's file, the letters of its ids with the last number of each, and what its tests' names begin with.
const LISTS: &[Scope] = &[
    Scope { path: "rfc.toml", letters: &[('R', 1..=116)], digits: 3, prefix: "rfc" },
    Scope { path: "cases.toml", letters: CASES, digits: 2, prefix: "case" },
    Scope { path: "faults.toml", letters: &[('F', 1..=23)], digits: 2, prefix: "fault" },
];

/// Attacks on the TURN server, faults of the market, what the gate refuses; and the gate's reasons by their bits.
const CASES: &[(char, RangeInclusive<usize>)] = &[('A', 1..=84), ('M', 1..=48), ('K', 1..=23), ('G', 0..=47)];

#[derive(Debug, Clone, Copy)]
struct Scope {
    path: &'static str,
    letters: &'static [(char, RangeInclusive<usize>)],
    digits: usize,
    prefix: &'static str,
}

impl Scope {
    fn ids(self) -> impl Iterator<Item = String> {
        let numbers =
            self.letters.iter().flat_map(|(letter, numbers)| numbers.clone().map(move |number| (letter, number)));
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
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let sources = Sources::read(tree);
    let (mut violations, mut waivers, mut open) = (Vec::new(), 0, 0);
    for scope in LISTS {
        let list = match List::read(tree, scope.path) {
            Ok(list) => list,
            Err(violation) => {
                violations.push(violation);
                continue;
            }
        };
        waivers += list.entries.iter().filter(|entry| entry.waiver.is_some()).count();
        open += list.entries.iter().filter(|entry| entry.open.is_some()).count();
        violations.extend(wrong_ids(*scope, &list));
        if scope.prefix == "rfc" {
            violations.extend(citations::uncited(tree, scope.path, &list));
        }
        violations.extend(list.entries.iter().flat_map(|entry| wrong_entry(scope.path, entry, &sources)));
    }
    if waivers > WAIVERS_MAX {
        violations.push(Violation::at("rfc.toml", 0, format!("{waivers} waivers, at most {WAIVERS_MAX}")));
    }
    if open > OPEN_MAX {
        violations.push(Violation::at("rfc.toml", 0, format!("{open} open ids, at most {OPEN_MAX}")));
    }
    violations
}

/// Tests that carry an id in their name and are not listed under it: a note, and a violation in CI.
pub(crate) fn unlisted_tests(tree: &Tree) -> Vec<Violation> {
    let sources = Sources::read(tree);
    let mut violations = Vec::new();
    for scope in LISTS {
        let Ok(list) = List::read(tree, scope.path) else { continue };
        violations.extend(unlisted(*scope, &list, &sources));
    }
    violations
}

fn wrong_ids(scope: Scope, list: &List) -> Vec<Violation> {
    let missing = scope.ids().filter(|id| !list.entries.iter().any(|entry| entry.id == *id));
    let mut violations: Vec<_> = missing.map(|id| Violation::at(scope.path, 0, format!("{id} is missing"))).collect();
    let strange = list.entries.iter().filter(|entry| !scope.ids().any(|id| id == entry.id));
    violations.extend(strange.map(|entry| Violation::at(scope.path, entry.line, format!("{} is no id", entry.id))));
    violations
}

fn wrong_entry(path: &str, entry: &Entry, sources: &Sources) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violation =
        |message: String| violations.push(Violation::at(path, entry.line, format!("{}: {message}", entry.id)));
    if entry.section.is_empty() || entry.says.is_empty() {
        violation("without a section or a requirement".to_owned());
    }
    let of_reason = [&entry.breached, &entry.equal, &entry.missing];
    if of_reason.iter().any(|part| part.is_some()) && of_reason.iter().any(|part| part.is_none()) {
        violation("needs `breached`, `equal` and `missing`".to_owned());
    }
    let words = [&entry.inapplicable, &entry.waiver, &entry.open].iter().filter(|word| word.is_some()).count();
    let has_tests = entry.tests().next().is_some();
    let is_settled = if has_tests { entry.inapplicable.is_none() && entry.waiver.is_none() } else { words == 1 };
    if !is_settled {
        violation("needs tests, or one of `inapplicable`, `waiver` and `open` with its reason".to_owned());
    }
    for test in entry.tests() {
        match sources.paths(test).as_slice() {
            [] => violation(format!("there is no test {test}")),
            [one] if entry.outside.contains(test) && !one.starts_with(OUTSIDE) => {
                violation(format!("{test} is not under {OUTSIDE}, and so not from outside"));
            }
            [_] => {}
            [_, ..] => violation(format!("{test} is the name of two tests")),
        }
    }
    violations
}

fn unlisted(scope: Scope, list: &List, sources: &Sources) -> Vec<Violation> {
    let mut violations = Vec::new();
    for test in &sources.tests {
        for id in scope.ids_in(&test.name) {
            let entry = list.entries.iter().find(|entry| entry.id == id);
            if !entry.is_some_and(|entry| entry.tests().any(|named| *named == test.named())) {
                let message = format!("list {} under {id} in {}", test.named(), scope.path);
                violations.push(Violation::at(&test.path, test.line, message));
            }
        }
    }
    violations
}

/// The tests that ran in one command.
pub(crate) struct Run<'a> {
    pub(crate) tests: &'a [TestRun],
    /// Every suite ran.
    pub(crate) is_complete: bool,
}

/// The result of judging the ids by a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Judgement {
    /// Ids that are met, inapplicable or waived.
    pub(crate) settled: usize,
    /// Id and test of what did not pass.
    pub(crate) unmet: Vec<String>,
    /// Ids that are open, or have a test that was skipped.
    pub(crate) skipped: Vec<Skip>,
    /// Ids that are met but for an exception, and the exception.
    pub(crate) exceptions: Vec<String>,
}

/// Judges each id by the tests of this run: all of its tests must have passed.
///
/// # Errors
/// A list cannot be read.
pub(crate) fn judge(tree: &Tree, run: &Run) -> anyhow::Result<Judgement> {
    let mut judgement = Judgement::default();
    for scope in LISTS {
        let list = List::read(tree, scope.path).map_err(|violation| anyhow::anyhow!("{violation}"))?;
        for entry in &list.entries {
            let before = (judgement.unmet.len(), judgement.skipped.len());
            entry.tests().for_each(|test| judge_test(&mut judgement, &entry.id, test, run));
            if let Some(reason) = &entry.open {
                let (name, requirement) = (entry.id.clone(), "open".to_owned());
                judgement.skipped.push(Skip { name, requirement, reason: format!("open: {reason}") });
            }
            judgement.settled += usize::from((judgement.unmet.len(), judgement.skipped.len()) == before);
            judgement.exceptions.extend(entry.except.iter().map(|except| format!("{}: {except}", entry.id)));
        }
    }
    Ok(judgement)
}

fn judge_test(judgement: &mut Judgement, id: &str, test: &str, run: &Run) {
    let mut skip = |requirement: &str, reason: String| {
        judgement.skipped.push(Skip { name: id.to_owned(), requirement: requirement.to_owned(), reason });
    };
    let mut of_test = run.tests.iter().filter(|run| run.is_named(test)).peekable();
    if of_test.peek().is_none() {
        if run.is_complete {
            judgement.unmet.push(format!("{id}: {test} did not run"));
        } else {
            skip("suite", format!("{test} is in none of the suites that ran"));
        }
        return;
    }
    for run in of_test {
        match run.result {
            TestResult::Passed => {}
            TestResult::Skipped => skip(&run.requirement, format!("{test} was skipped")),
            TestResult::Reported => skip("machine", format!("{test}, which judges the machine, failed")),
            TestResult::Failed => judgement.unmet.push(format!("{id}: {test} failed")),
        }
    }
}

#[cfg(test)]
mod tests;
