//! `truetick doctor --all`: every venue at the same time, as a table or as one JSON object.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use market_feed::FeedConfig;
use market_feed::doctor::{ExamineOptions, Observer, Step, StepResult, Summary, examine, printed};
use serde_json::{Value, json};
use tt_os::clock::unix_now;
use tt_os::stdout;
use tt_venue::Venue;

use super::{SIMULATED_INSTRUMENTS, SIMULATED_RATE_HZ, VenueArgs};
use crate::simulated_venues as venues;

/// The columns before the text.
const HEADER: &str = "venue              result  seconds  rules\n";

/// The steps of one venue.
#[derive(Default)]
struct Collector {
    steps: Vec<Value>,
    /// The text of the first step that failed.
    failure: Option<String>,
}

impl Observer for Collector {
    fn begin(&mut self, _step: Step, _subject: &str) {}

    fn end(&mut self, result: &StepResult<'_>) -> io::Result<()> {
        self.steps.push(printed::step(result));
        if result.finding.outcome.name() == "failed" && self.failure.is_none() {
            self.failure = Some(format!("{}: {}", result.step.name(), result.finding.text));
        }
        Ok(())
    }
}

/// What became of one venue.
struct Visited {
    venue: Venue,
    collector: Collector,
    summary: Summary,
    took: Duration,
}

/// Examines every venue. Status 0: no step of any venue failed. 1: one did.
pub(super) fn run(args: &VenueArgs, options: &ExamineOptions) -> Result<ExitCode> {
    let (feeds, simulator) = feeds(args.simulated)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("doctor: runtime")?;
    let visits = runtime.block_on(visit_all(&feeds, options))?;
    let text = if args.json { object(&visits, simulator.is_some()) } else { table(&visits) };
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(anyhow::Error::new))?;
    let all_passed = visits.iter().all(|visited| visited.summary.failed.is_empty());
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every venue with its main BTC pair, where there always is one; or those that the simulator plays.
fn feeds(simulated: bool) -> Result<(Vec<FeedConfig>, Option<sim::Running>)> {
    if !simulated {
        let public = |venue: &Venue| FeedConfig::public(*venue, vec![venue.rules().main_symbol.to_owned()]);
        return Ok((
            Venue::ALL.iter().filter(|venue| !venue.rules().main_symbol.is_empty()).map(public).collect(),
            None,
        ));
    }
    let simulator = venues::start(SIMULATED_INSTRUMENTS, SIMULATED_RATE_HZ, 1)?;
    let mut feeds = venues::feeds(&simulator)?;
    feeds.iter_mut().for_each(|feed| feed.symbols.truncate(1));
    Ok((feeds, Some(simulator)))
}

async fn visit_all(feeds: &[FeedConfig], options: &ExamineOptions) -> Result<Vec<Visited>> {
    let shows_progress = io::stderr().is_terminal();
    let mut running: FuturesUnordered<_> = feeds.iter().map(|feed| visit(feed, options)).collect();
    let mut visits: Vec<Visited> = Vec::new();
    while let Some(visited) = running.next().await {
        visits.push(visited?);
        if shows_progress {
            eprint!("\r{} of {} venues\x1b[K", visits.len(), feeds.len());
        }
    }
    if shows_progress {
        eprint!("\r\x1b[K");
    }
    tt_model::sort_short_by_key(&mut visits, |visited| feeds.iter().position(|feed| feed.venue == visited.venue));
    Ok(visits)
}

async fn visit(feed: &FeedConfig, options: &ExamineOptions) -> Result<Visited> {
    let started = Instant::now();
    let mut collector = Collector::default();
    let summary = examine(feed, options, &mut collector).await?;
    Ok(Visited { venue: feed.venue, collector, summary, took: started.elapsed() })
}

fn table(visits: &[Visited]) -> String {
    let mut text = HEADER.to_owned();
    for Visited { venue, collector, summary, took } in visits {
        let word = if summary.failed.is_empty() { "ok" } else { "failed" };
        let (name, seconds) = (venue.name(), took.as_secs_f64());
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:18} {word:7} {seconds:7.1}  {}", venue.rules().evidence);
        if let Some(failure) = &collector.failure {
            let _ = writeln!(text, "                   {failure}");
        }
    }
    let failed = visits.iter().filter(|visited| !visited.summary.failed.is_empty()).count();
    let _ = writeln!(text, "{} of {} venues passed every step", visits.len() - failed, visits.len());
    text
}

fn object(visits: &[Visited], simulated: bool) -> String {
    let venues = visits.iter().map(|Visited { venue, collector, summary, took }| {
        let evidence = venue.rules().evidence;
        json!({
            "venue": venue.name(),
            "verdict": if summary.failed.is_empty() { "ok" } else { "failed" },
            "seconds": took.as_secs_f64(),
            "rules": {
                "label": evidence.to_string(), "captured": evidence.captured, "changed": evidence.changed,
                "checked": evidence.checked, "source": evidence.source,
            },
            "steps": collector.steps,
        })
    });
    let report = json!({
        "truetick": env!("CARGO_PKG_VERSION"), "unix_s": unix_now().0 / 1_000_000_000, "simulated": simulated,
        "venues": venues.collect::<Vec<_>>(),
    });
    format!("{report}\n")
}
