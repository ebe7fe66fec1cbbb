//! `cargo xtask test`: every suite with progress, and one line at the end that says what came of it.
//!
//! What a suite needs is brought first: targets and components of the toolchain, Python and npm packages always,
//! Debian packages as root or with `--install` only. What cannot be brought is skipped by name and reason. With `CI`
//! in the environment a skip is a failure, unless the suite is optional.

mod binaries;
mod corpora;
mod decomposition;
mod process;
mod suites;
mod tally;
mod tools;
mod weaken;

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use binaries::Binaries;
use suites::{SUITES, Suite};
pub(crate) use tally::TestRun;
use tally::{Outcome, Tally};

/// What the suites share.
struct Workplace {
    root: PathBuf,
    /// One file a step, under the target folder.
    logs: PathBuf,
    /// Debian packages may be installed.
    may_install: bool,
    /// The tests, built once.
    binaries: OnceCell<Result<Binaries, String>>,
    /// The shipped program, built once.
    program: OnceCell<Result<PathBuf, String>>,
    /// The tests of the suites before.
    runs: RefCell<Vec<TestRun>>,
}

#[derive(Debug, Default, PartialEq)]
struct Options {
    install: bool,
    list: bool,
    json: Option<PathBuf>,
    suites: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--install" => options.install = true,
                "--list" => options.list = true,
                "--json" => options.json = Some(rest.next().context("--json FILE")?.into()),
                name if SUITES.iter().any(|suite| suite.name == name) => options.suites.push(name.to_owned()),
                other => anyhow::bail!("no suite or flag {other}; `cargo xtask test --list` names the suites"),
            }
        }
        Ok(options)
    }

    fn wants(&self, suite: &Suite) -> bool {
        self.suites.is_empty() || self.suites.iter().any(|name| name == suite.name)
    }
}

/// What one suite came to.
struct Record {
    suite: &'static str,
    tally: Tally,
    elapsed: Duration,
}

/// Runs the suites that `arguments` name, all of them if none is named.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = Options::parse(arguments)?;
    if options.list {
        for suite in SUITES {
            println!("{:<14} {}{}", suite.name, suite.about, if suite.optional { " (optional)" } else { "" });
        }
        return Ok(ExitCode::SUCCESS);
    }
    let in_ci = in_ci();
    let workplace = Workplace::prepare(options.install)?;
    let chosen: Vec<&Suite> = SUITES.iter().filter(|suite| options.wants(suite)).collect();
    let started = Instant::now();
    let mut records = Vec::new();
    for (index, suite) in chosen.iter().enumerate() {
        println!("[{}/{}] {}: {}", index + 1, chosen.len(), suite.name, suite.about);
        records.push(measure(suite, &workplace, in_ci));
    }
    report(&records, started.elapsed(), options.json.as_deref())
}

/// Whether what would else be told must fail.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}

fn measure(suite: &Suite, workplace: &Workplace, in_ci: bool) -> Record {
    let started = Instant::now();
    let mut tally = match (suite.run)(workplace) {
        Outcome::Ran(tally) => tally,
        Outcome::Skipped(reason) => Tally::skip(suite.name, &reason),
    };
    workplace.runs.borrow_mut().extend(std::mem::take(&mut tally.runs));
    if in_ci && !suite.optional {
        tally.forbid_skips();
    }
    let elapsed = started.elapsed();
    for skip in &tally.skipped {
        println!("      skipped {skip}");
    }
    for failure in &tally.failures {
        println!("      FAILED {failure}");
    }
    println!("      {}, {:.1} s", tally.summary(), elapsed.as_secs_f64());
    Record { suite: suite.name, tally, elapsed }
}

fn report(records: &[Record], elapsed: Duration, json: Option<&std::path::Path>) -> anyhow::Result<ExitCode> {
    let mut total = Tally::default();
    println!("\ntime by suite:");
    for record in records {
        println!("  {:<14} {:>7.1} s  {}", record.suite, record.elapsed.as_secs_f64(), record.tally.summary());
        total.add(record.tally.clone());
    }
    println!("  {:<14} {:>7.1} s", "all", elapsed.as_secs_f64());
    for skip in &total.skipped {
        println!("skipped {skip}");
    }
    for failure in &total.failures {
        println!("FAILED {failure}");
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&summary(records, &total))?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{}", total.summary());
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(records: &[Record], total: &Tally) -> serde_json::Value {
    let suites: Vec<_> = records
        .iter()
        .map(|record| {
            let mut value = record.tally.to_json();
            value["suite"] = record.suite.into();
            value["elapsed_s"] = record.elapsed.as_secs_f64().into();
            value
        })
        .collect();
    serde_json::json!({ "suites": suites, "total": total.to_json() })
}

impl Workplace {
    fn prepare(install: bool) -> anyhow::Result<Self> {
        let root = crate::workspace_root();
        let logs = root.join("target/xtask");
        std::fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        let may_install = install || tools::is_root();
        Ok(Self {
            root,
            logs,
            may_install,
            binaries: OnceCell::new(),
            program: OnceCell::new(),
            runs: RefCell::default(),
        })
    }

    /// The tests of the workspace, built on the first call.
    fn binaries(&self) -> Result<&Binaries, String> {
        self.binaries.get_or_init(|| Binaries::build(self)).as_ref().map_err(Clone::clone)
    }

    /// The shipped program, built on the first call.
    fn program(&self) -> Result<&PathBuf, String> {
        self.program.get_or_init(|| binaries::build_program(self)).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> anyhow::Result<Options> {
        Options::parse(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn suites_and_flags_are_told_apart() {
        let options = parse(&["--install", "fmt", "--json", "out", "tidy"]).unwrap();
        assert_eq!(options.suites, ["fmt", "tidy"]);
        assert!(options.install && !options.list);
        assert_eq!(options.json, Some("out".into()));
        assert!(options.wants(&SUITES[0]));
    }

    #[test]
    fn a_suite_that_does_not_exist_is_refused() {
        assert!(parse(&["fmtt"]).is_err());
        assert!(parse(&["--json"]).is_err());
    }
}
