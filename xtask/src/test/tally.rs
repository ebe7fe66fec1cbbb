//! Counting: what libtest prints, and what tests say that they skipped.

use std::fmt;

/// What running a suite came to.
pub(crate) enum Outcome {
    Ran(Tally),
    /// Nothing of the suite could run; the reason.
    Skipped(String),
}

/// A test or suite that did not run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Skip {
    name: String,
    reason: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.reason)
    }
}

/// Tests passed, failed and skipped.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: Vec<Skip>,
    /// Names of what failed.
    pub(crate) failures: Vec<String>,
    /// The tests by name, where libtest named them.
    pub(crate) runs: Vec<TestRun>,
}

/// What became of one test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestRun {
    pub(crate) package: String,
    /// With the modules before it.
    pub(crate) name: String,
    pub(crate) passed: bool,
    /// It said that it skips, and passed to libtest.
    pub(crate) skipped: bool,
}

impl TestRun {
    /// Whether a list's `package::function` is this test.
    pub(crate) fn is_named(&self, named: &str) -> bool {
        let function = self.name.rsplit("::").next();
        named.split_once("::").is_some_and(|(package, name)| self.package == package && function == Some(name))
    }
}

/// Captures are no part of the repository; whether they must be there is told by `TRUETICK_REQUIRE_DATA`.
const CAPTURES_ABSENT: &str = "TRUETICK_DATA not set";

impl Tally {
    pub(crate) fn pass() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    pub(crate) fn fail(name: impl Into<String>) -> Self {
        Self { failed: 1, failures: vec![name.into()], ..Self::default() }
    }

    pub(crate) fn skip(name: &str, reason: &str) -> Self {
        let skip = Skip { name: name.to_owned(), reason: reason.to_owned() };
        Self { skipped: vec![skip], ..Self::default() }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
        self.runs.extend(other.runs);
    }

    /// Counts what was skipped as failed.
    pub(crate) fn forbid_skips(&mut self) {
        let (allowed, forbidden) = self.skipped.drain(..).partition(|skip| skip.reason.contains(CAPTURES_ABSENT));
        self.skipped = allowed;
        for skip in forbidden {
            self.failed += 1;
            self.failures.push(format!("{skip} (skipped, which CI does not allow)"));
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let skipped: Vec<_> = self.skipped.iter().map(ToString::to_string).collect();
        serde_json::json!({
            "passed": self.passed, "failed": self.failed, "skipped": skipped, "failures": self.failures,
        })
    }

    /// Counts the output of libtest run with `--show-output`.
    ///
    /// A test that prints `SKIP name: reason` has passed to libtest, and is skipped to us. `origin` goes before the names
    /// of tests that failed; its first word is their package.
    pub(crate) fn of_libtest(output: &str, origin: &str) -> Self {
        let mut tally = Self::default();
        let package = origin.split(' ').next().unwrap_or_default();
        let run =
            |name: &str, passed| TestRun { package: package.to_owned(), name: name.to_owned(), passed, skipped: false };
        let mut section = "";
        let mut skipped_in_section = false;
        for line in output.lines() {
            if let Some(rest) = line.strip_prefix("test result: ") {
                tally.passed += number_before(rest, " passed");
                tally.failed += number_before(rest, " failed");
            } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
                tally.failures.push(format!("{origin} {name}"));
                tally.runs.push(run(name, false));
            } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ok")) {
                tally.runs.push(run(name, true));
            } else if line.starts_with("---- ") && line.ends_with(" ----") {
                section = line.trim_matches(['-', ' ']).trim_end_matches(" stdout");
                skipped_in_section = false;
            } else if let Some(skip) = parse_skip(line) {
                // Only the first line of a test counts: a test skips once.
                if !skipped_in_section {
                    tally.skipped.push(skip);
                }
                skipped_in_section = true;
                tally.runs.iter_mut().filter(|run| run.name == section).for_each(|run| run.skipped = true);
            }
        }
        tally.passed = tally.passed.saturating_sub(tally.skipped.len() as u64);
        tally
    }
}

fn parse_skip(line: &str) -> Option<Skip> {
    let (name, reason) = line.strip_prefix("SKIP ")?.split_once(": ")?;
    Some(Skip { name: name.to_owned(), reason: reason.to_owned() })
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().filter(|before| before.len() < text.len()).unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 4 tests
test a ... ok
test book::b ... FAILED
test c ... ok
test d ... ok

successes:

---- c stdout ----
SKIP c: TRUETICK_DATA not set
SKIP c: again

---- d stdout ----
SKIP d: no coturn

failures:

---- book::b stdout ----
boom

test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn skipped_tests_do_not_count_as_passed() {
        let tally = Tally::of_libtest(OUTPUT, "x");
        assert_eq!(tally.summary(), "13 passed, 1 failed, 2 skipped");
        assert_eq!(tally.failures, ["x book::b"]);
        assert_eq!(tally.skipped[1].to_string(), "d: no coturn");
        let runs: Vec<_> = tally.runs.iter().map(|run| (&*run.name, run.passed, run.skipped)).collect();
        assert_eq!(runs, [("a", true, false), ("book::b", false, false), ("c", true, true), ("d", true, true)]);
        assert!(tally.runs[1].is_named("x::b") && !tally.runs[1].is_named("x::book"));
    }

    #[test]
    fn ci_forbids_skips_but_for_absent_captures() {
        let mut tally = Tally::of_libtest(OUTPUT, "x");
        tally.forbid_skips();
        assert_eq!(tally.summary(), "13 passed, 2 failed, 1 skipped");
        assert!(tally.failures[1].starts_with("d: no coturn"));
    }
}
