//! `cargo xtask test`: suites with their times, and a last line `N passed, N failed, N skipped`.
//!
//! Without a suite's name and without `--all` the short suites run: they need no root, no network, no captures, and
//! install nothing. Whatever is missing is skipped by name and reason. With `CI` in the environment a skip is a failure
//! unless tools/xtask/skips.toml lists it.

mod aarch64;
mod background;
mod binaries;
mod budgets;
mod corpora;
mod examples;
mod features;
mod object;
mod old_kernel;
mod packages;
mod process;
mod python;
mod sanitizers;
mod shared_sockets;
mod skips;
mod space;
mod suites;
mod tools;
mod weaken;

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::in_ci;
use crate::programs::is_root;
use crate::tally::{Outcome, Tally, TestRun};
use background::Background;
use binaries::Binaries;
pub(crate) use process::Steps;
use skips::AllowedSkips;
use suites::{SUITES, Suite, Tier};

/// State shared by the suites.
struct Workplace {
    steps: Steps,
    /// Packages and components may be installed.
    may_install: bool,
    /// Every suite runs.
    is_complete: bool,
    /// The tests, built once.
    binaries: OnceCell<Result<Binaries, String>>,
    /// The shipped program, built once.
    program: OnceCell<Result<PathBuf, String>>,
    /// The tests of the suites before.
    runs: RefCell<Vec<TestRun>>,
    /// Ids that are met with an exception, for the end of the run.
    exceptions: RefCell<Vec<String>>,
}

/// Arguments of `cargo xtask test`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Run every suite, as CI does; as root, also install what is missing.
    #[arg(long, conflicts_with = "suites")]
    all: bool,
    /// Install what is missing: Debian packages, toolchain components, Python and npm packages.
    #[arg(long)]
    install: bool,
    /// List the suites.
    #[arg(long)]
    list: bool,
    /// Write a summary to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Suites to run [default: the short ones].
    #[arg(value_name = "SUITE", value_parser = SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>())]
    suites: Vec<String>,
}

impl Arguments {
    fn selects(&self, suite: &Suite) -> bool {
        match self.suites.as_slice() {
            [] => suite.tier == Tier::Short || (self.all && suite.tier == Tier::Full),
            names => names.iter().any(|name| name == suite.name),
        }
    }
}

/// The result of one suite.
struct Record {
    suite: &'static str,
    tally: Tally,
    elapsed: Duration,
    /// CPU time of its programs, on all cores together.
    cpu: Duration,
}

/// Runs the suites that `arguments` select.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for suite in SUITES {
            let mark = match (suite.tier, suite.is_required) {
                (Tier::Short, _) => "",
                (Tier::Full, true) => " (--all)",
                (Tier::Full, false) => " (--all, reported only)",
                (Tier::Named, _) => " (only if named)",
            };
            println!("{:<14} {}{mark}", suite.name, suite.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let place = Workplace::prepare(arguments)?;
    let allowed = AllowedSkips::read(&place.steps.root)?;
    let chosen: Vec<&Suite> = SUITES.iter().filter(|suite| arguments.selects(suite)).collect();
    let started = Instant::now();
    let mut records = Vec::new();
    let mut background = None;
    for (index, suite) in chosen.iter().enumerate() {
        if arguments.all {
            background = Background::start_before(suite.name, &place)?.or(background);
            if Background::runs(suite.name) {
                if let Some(background) = background.take() {
                    println!("[{}/{}] in the background of the suites before:", index + 1, chosen.len());
                    records.extend(background.finish());
                }
                continue;
            }
        }
        println!("[{}/{}] {}: {}", index + 1, chosen.len(), suite.name, suite.about);
        records.push(measure(suite, &place, &allowed));
    }
    report(&place, &records, started.elapsed(), arguments.json.as_deref())
}

fn measure(suite: &Suite, place: &Workplace, allowed: &AllowedSkips) -> Record {
    let (started, before) = (Instant::now(), cpu_of_children());
    let mut tally = match (suite.run)(place) {
        Outcome::Ran(tally) => tally,
        Outcome::Skipped(reason) => Tally::skip(suite.name, &reason),
    };
    if !suite.is_required {
        tally.report_only().iter().for_each(|failure| println!("      reported: {failure}"));
    }
    place.runs.borrow_mut().extend(std::mem::take(&mut tally.runs));
    if in_ci() && suite.is_required {
        tally.forbid_skips(|skip| allowed.permit(skip));
    }
    if in_ci() {
        space::give_back(&place.steps.root, suite.name);
    }
    let (elapsed, cpu) = (started.elapsed(), cpu_of_children().saturating_sub(before));
    for skip in &tally.skipped {
        println!("      skipped {skip}");
    }
    for failure in &tally.failures {
        println!("      FAILED {failure}");
    }
    println!("      {}, {:.1} s, CPU {:.0} s", tally.summary(), elapsed.as_secs_f64(), cpu.as_secs_f64());
    Record { suite: suite.name, tally, elapsed, cpu }
}

/// CPU time of the programs that have ended.
fn cpu_of_children() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
    Duration::from_micros(microseconds.unsigned_abs())
}

fn report(place: &Workplace, records: &[Record], elapsed: Duration, json: Option<&Path>) -> anyhow::Result<ExitCode> {
    let mut total = Tally::default();
    println!("\ntime by suite:");
    for Record { suite, tally, elapsed, cpu } in records {
        let (elapsed, cpu) = (elapsed.as_secs_f64(), cpu.as_secs_f64());
        println!("  {suite:<14} {elapsed:>7.1} s, CPU {cpu:>5.0} s  {}", tally.summary());
        total.add(tally.clone());
    }
    let cpu: Duration = records.iter().map(|record| record.cpu).sum();
    println!("  {:<14} {:>7.1} s, CPU {:>5.0} s", "all", elapsed.as_secs_f64(), cpu.as_secs_f64());
    let times = records.iter().map(|record| (record.suite, record.elapsed));
    budgets::exceeded(&place.steps.root, times)?.iter().for_each(|line| println!("over budget: {line}"));
    place.exceptions.borrow().iter().for_each(|line| println!("except {line}"));
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
            value["cpu_s"] = record.cpu.as_secs_f64().into();
            value
        })
        .collect();
    serde_json::json!({ "suites": suites, "total": total.to_json() })
}

impl Workplace {
    fn prepare(arguments: &Arguments) -> anyhow::Result<Self> {
        Ok(Self {
            steps: Steps::new(crate::workspace_root())?,
            may_install: arguments.install || (arguments.all && is_root()),
            is_complete: arguments.all,
            binaries: OnceCell::new(),
            program: OnceCell::new(),
            runs: RefCell::default(),
            exceptions: RefCell::default(),
        })
    }

    /// The tests of the workspace, built on the first call.
    fn binaries(&self) -> Result<&Binaries, String> {
        self.binaries.get_or_init(|| Binaries::build(&self.steps)).as_ref().map_err(Clone::clone)
    }

    /// The shipped program, built on the first call.
    fn program(&self) -> Result<&PathBuf, String> {
        self.program.get_or_init(|| binaries::build_program(&self.steps)).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(arguments: Arguments) -> Vec<&'static str> {
        SUITES.iter().filter(|suite| arguments.selects(suite)).map(|suite| suite.name).collect()
    }

    #[test]
    fn suites_are_selected_by_name_or_tier() {
        assert_eq!(selected(Arguments::default()), ["fmt", "tidy", "unit", "integration", "examples", "conformance"]);
        let all = selected(Arguments { all: true, ..Arguments::default() });
        let left_out = SUITES.iter().map(|suite| suite.name).filter(|name| !all.contains(name));
        assert_eq!(left_out.collect::<Vec<_>>(), ["weak-memory"]);
        let suites = vec!["miri".to_owned(), "fmt".to_owned()];
        assert_eq!(selected(Arguments { suites, ..Arguments::default() }), ["fmt", "miri"]);
    }
}
