//! Suites that keep one core busy: they run at low priority while the suites before them run.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Record, Workplace};
use crate::tally::Tally;

/// The suites, in the order of the list. Each builds in a separate target folder.
const NAMES: [&str; 5] = ["loom", "weaken", "shuttle", "miri", "tsan"];
/// They start before this suite.
const BEFORE: &str = "examples";

/// Another `cargo xtask test`, which runs them.
pub(super) struct Background {
    child: Child,
    log: PathBuf,
    summary: PathBuf,
}

impl Background {
    /// Starts the suites if `suite` is the one before which they start.
    pub(super) fn start_before(suite: &str, place: &Workplace) -> anyhow::Result<Option<Self>> {
        if suite != BEFORE {
            return Ok(None);
        }
        // rustup does not install two things at once; what is missing skips its suite.
        for component in ["miri", "rust-src"] {
            let _ = place.bring_nightly(component);
        }
        let [log, summary] =
            ["log", "json"].map(|kind| place.steps.root.join("target/xtask/background").with_extension(kind));
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new("nice");
        command.args(["-n", "10"]).arg(program).arg("test").args(NAMES).arg("--json").arg(&summary);
        let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn();
        Ok(Some(Self { child: child.context("cannot start nice")?, log, summary }))
    }

    /// Whether `suite` is one of them.
    pub(super) fn runs(suite: &str) -> bool {
        NAMES.contains(&suite)
    }

    /// Waits for their end, prints what they printed, and returns their results in their order; without all of them,
    /// one that failed.
    pub(super) fn finish(self) -> Vec<Record> {
        self.results().unwrap_or_else(|error| {
            let tally = Tally::fail(format!("{}: {error:#}", NAMES.join(", ")));
            vec![Record { suite: NAMES[0], tally, elapsed: Duration::ZERO, cpu: Duration::ZERO }]
        })
    }

    fn results(mut self) -> anyhow::Result<Vec<Record>> {
        let status = self.child.wait().context("cannot wait for the background suites")?;
        let text = std::fs::read_to_string(&self.log).with_context(|| self.log.display().to_string())?;
        text.lines().filter(|line| line.starts_with(['[', ' '])).for_each(|line| println!("   |{line}"));
        let summary = std::fs::read_to_string(&self.summary).with_context(|| format!("{status}: no summary"))?;
        let records = records(&serde_json::from_str(&summary)?)?;
        ensure!(records.len() == NAMES.len(), "{} of {} suites ended", records.len(), NAMES.len());
        Ok(records)
    }
}

/// The results in a summary that `--json` wrote.
fn records(summary: &Value) -> anyhow::Result<Vec<Record>> {
    let suites = summary["suites"].as_array().context("a summary has suites")?;
    let record = |suite: &Value| {
        let name = NAMES.into_iter().find(|name| suite["suite"] == *name).context("another suite")?;
        let time = |key: &str| -> anyhow::Result<Duration> {
            Ok(Duration::try_from_secs_f64(suite[key].as_f64().context("a time")?)?)
        };
        let (elapsed, cpu) = (time("elapsed_s")?, time("cpu_s")?);
        Ok(Record { suite: name, tally: Tally::from_json(suite).context("a tally")?, elapsed, cpu })
    };
    suites.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::suites::{SUITES, Tier};

    #[test]
    fn they_are_suites_of_ci_after_the_one_before_which_they_start() {
        let place = |name| SUITES.iter().position(|suite| suite.name == name).unwrap();
        for name in NAMES {
            assert!(place(name) > place(BEFORE), "{name}");
            let suite = &SUITES[place(name)];
            assert!(suite.tier == Tier::Full && suite.is_required, "{name}");
        }
        assert!(NAMES.is_sorted_by_key(|name| place(*name)));
    }

    #[test]
    fn results_come_back_whole() {
        let mut tally = Tally::skip("loom", "why: because");
        tally.add(Tally::pass());
        tally.add(Tally::fail("a::b"));
        let whole = [Record {
            suite: "loom",
            tally: tally.clone(),
            elapsed: Duration::from_millis(1_500),
            cpu: Duration::from_millis(2_500),
        }];
        let read = records(&super::super::summary(&whole, &tally)).unwrap();
        assert_eq!((read[0].suite, &read[0].tally), ("loom", &tally));
        assert_eq!((read[0].elapsed, read[0].cpu), (whole[0].elapsed, whole[0].cpu));
        assert!(records(&serde_json::json!({ "suites": [{ "suite": "fmt" }] })).is_err());
        assert!(records(&serde_json::json!({ "suites": [{ "suite": "miri", "elapsed_s": 1.0 }] })).is_err());
    }
}
