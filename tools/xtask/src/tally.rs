//! Counting: what libtest prints, and what tests record as skipped.

use std::fmt;

/// The result of a suite.
pub(crate) enum Outcome {
    Ran(Tally),
    /// Nothing of the suite could run; the reason.
    Skipped(String),
}

/// A test or suite that did not run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Skip {
    pub(crate) name: String,
    /// The missing requirement, in testkit's words; the suite's name if a whole suite is skipped.
    pub(crate) requirement: String,
    pub(crate) reason: String,
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

/// The result of one test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestRun {
    pub(crate) package: String,
    /// With its modules.
    pub(crate) name: String,
    pub(crate) result: TestResult,
    /// The missing requirement of a skipped test, in testkit's words.
    pub(crate) requirement: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestResult {
    Passed,
    Failed,
    /// libtest counts it as passed.
    Skipped,
    /// Failed in a suite that judges the machine.
    Reported,
}

impl TestRun {
    /// Whether a list's `package::function` is this test.
    pub(crate) fn is_named(&self, named: &str) -> bool {
        let function = self.name.rsplit("::").next();
        named.split_once("::").is_some_and(|(package, name)| self.package == package && function == Some(name))
    }
}

impl Tally {
    pub(crate) fn pass() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    pub(crate) fn fail(name: impl Into<String>) -> Self {
        Self { failed: 1, failures: vec![name.into()], ..Self::default() }
    }

    pub(crate) fn skip(name: &str, reason: &str) -> Self {
        let skip = Skip { name: name.to_owned(), requirement: name.to_owned(), reason: reason.to_owned() };
        Self { skipped: vec![skip], ..Self::default() }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
        self.runs.extend(other.runs);
    }

    /// Counts as failed what was skipped and `is_allowed` rejects.
    pub(crate) fn forbid_skips(&mut self, is_allowed: impl Fn(&Skip) -> bool) {
        let (allowed, forbidden) = self.skipped.drain(..).partition(is_allowed);
        self.skipped = allowed;
        for skip in forbidden {
            self.failed += 1;
            self.failures.push(format!("{skip} (skipped, and not listed in tools/xtask/skips.toml)"));
        }
    }

    /// Takes the failures out of the verdict.
    pub(crate) fn report_only(&mut self) -> Vec<String> {
        self.failed = 0;
        for run in self.runs.iter_mut().filter(|run| run.result == TestResult::Failed) {
            run.result = TestResult::Reported;
        }
        std::mem::take(&mut self.failures)
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

    /// Reads what [`to_json`](Self::to_json) returned: no runs, and of a skip what is printed.
    pub(crate) fn from_json(value: &serde_json::Value) -> Option<Self> {
        let texts = |key: &str| -> Option<Vec<String>> {
            value[key].as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let skip = |text: String| {
            let (name, reason) = text.split_once(": ")?;
            Some(Skip { name: name.to_owned(), requirement: name.to_owned(), reason: reason.to_owned() })
        };
        Some(Self {
            passed: value["passed"].as_u64()?,
            failed: value["failed"].as_u64()?,
            skipped: texts("skipped")?.into_iter().map(skip).collect::<Option<_>>()?,
            failures: texts("failures")?,
            runs: Vec::new(),
        })
    }

    /// Counts the output of libtest; `skips` are the records of `testkit::require` in this run.
    ///
    /// `origin` goes before the names of tests that failed; its first word is their package.
    pub(crate) fn of_libtest(output: &str, skips: &str, origin: &str) -> Self {
        let mut tally = Self::default();
        let package = origin.split(' ').next().unwrap_or_default();
        for line in output.lines() {
            if let Some(rest) = line.strip_prefix("test result: ") {
                tally.passed += number_before(rest, " passed");
                tally.failed += number_before(rest, " failed");
            } else if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
                let name = name.trim_end_matches(" - should panic");
                let result = match result {
                    "ok" => TestResult::Passed,
                    "FAILED" => TestResult::Failed,
                    _ => continue,
                };
                if result == TestResult::Failed {
                    tally.failures.push(format!("{origin} {name}"));
                }
                let (package, name) = (package.to_owned(), name.to_owned());
                tally.runs.push(TestRun { package, name, result, requirement: String::new() });
            }
        }
        skips.lines().for_each(|record| tally.record_skip(record, origin));
        tally
    }

    /// Moves a test from the passed ones to the skipped ones.
    fn record_skip(&mut self, record: &str, origin: &str) {
        let mut fields = record.split('\t');
        let [name, requirement, reason] = [(); 3].map(|()| fields.next().unwrap_or_default().to_owned());
        let Some(run) = self.runs.iter_mut().find(|run| run.name == name) else {
            // A thread of the test's own, or one test thread: nothing says which test it was.
            self.add(Self::fail(format!("{origin}: a skip without a test: {record}")));
            return;
        };
        if run.result == TestResult::Passed {
            run.result = TestResult::Skipped;
            run.requirement.clone_from(&requirement);
            self.passed -= 1;
            self.skipped.push(Skip { name, requirement, reason });
        }
    }
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
test a - should panic ... ok
test book::b ... FAILED
test c ... ok
test d ... ok

failures:
boom

test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";
    const SKIPS: &str = "c\tcaptures\tTRUETICK_DATA is not set\nc\tcaptures\tagain\nd\tprogram\tno coturn\n";

    #[test]
    fn skipped_tests_do_not_count_as_passed() {
        let tally = Tally::of_libtest(OUTPUT, SKIPS, "x");
        assert_eq!(tally.summary(), "1 passed, 1 failed, 2 skipped");
        assert_eq!(tally.failures, ["x book::b"]);
        assert_eq!(tally.skipped[1].to_string(), "d: no coturn");
        let runs: Vec<_> = tally.runs.iter().map(|run| (&*run.name, run.result)).collect();
        use TestResult::{Failed, Passed, Skipped};
        assert_eq!(runs, [("a", Passed), ("book::b", Failed), ("c", Skipped), ("d", Skipped)]);
        assert!(tally.runs[1].is_named("x::b") && !tally.runs[1].is_named("x::book"));
    }

    #[test]
    fn a_failed_test_that_recorded_a_skip_stays_failed() {
        let tally = Tally::of_libtest(OUTPUT, "book::b\tprogram\tnone\n", "x");
        assert_eq!(tally.summary(), "3 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_skip_of_no_test_is_a_failure() {
        let tally = Tally::of_libtest(OUTPUT, "main\tprogram\tnone\n", "x");
        assert_eq!(tally.summary(), "3 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn skips_that_are_not_listed_are_failures() {
        let mut tally = Tally::of_libtest(OUTPUT, SKIPS, "x");
        tally.forbid_skips(|skip| skip.requirement == "captures");
        assert_eq!(tally.summary(), "1 passed, 2 failed, 1 skipped");
        assert!(tally.failures[1].starts_with("d: no coturn"));
    }

    #[test]
    fn what_judges_the_machine_is_reported_only() {
        let mut tally = Tally::of_libtest(OUTPUT, "", "x");
        assert_eq!(tally.report_only(), ["x book::b"]);
        assert_eq!(tally.summary(), "3 passed, 0 failed, 0 skipped");
        assert_eq!(tally.runs[1].result, TestResult::Reported);
    }
}
