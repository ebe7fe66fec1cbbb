//! What came of each step: told as it ends, and summed up at the end.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::step::Step;
use crate::output;

/// Characters of a frame that are shown.
const EXCERPT_MAX: usize = 240;

/// Where the text of a line begins.
const INDENT: usize = 33;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Failed,
    /// It was not tried: there was nothing to try, or an earlier step failed.
    Skipped,
}

impl Outcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// What came of one step.
#[derive(Debug)]
pub(super) struct Finding {
    outcome: Outcome,
    told: String,
    advice: Option<String>,
    excerpts: Vec<String>,
    facts: Map<String, Value>,
}

impl Finding {
    fn new(outcome: Outcome, told: String) -> Self {
        Self { outcome, told, advice: None, excerpts: Vec::new(), facts: Map::new() }
    }

    pub(super) fn ok(told: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, told.into())
    }

    /// `advice` is what the user can do about it.
    pub(super) fn failed(told: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, told.into()).advise(advice)
    }

    pub(super) fn skipped(told: impl Into<String>) -> Self {
        Self::new(Outcome::Skipped, told.into())
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Shows the beginning of `frame`, after what is odd about it.
    pub(super) fn excerpt(mut self, odd: &str, frame: &str) -> Self {
        self.excerpts.push(format!("{odd}: {}", excerpt(frame)));
        self
    }

    pub(super) fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }
}

/// The beginning of a frame on one line.
pub(super) fn excerpt(frame: &str) -> String {
    let mut shown: String =
        frame.chars().take(EXCERPT_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if frame.chars().nth(EXCERPT_MAX).is_some() {
        shown.push_str("...");
    }
    shown
}

/// How it went.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The steps that failed, each once.
    pub(super) failed: Vec<&'static str>,
    ok: usize,
    skipped: usize,
}

/// The report, written while the steps are taken.
#[derive(Debug)]
pub(super) struct Report {
    as_json: bool,
    shows_progress: bool,
    started: Instant,
    deadline: Instant,
    step_started: Instant,
    done: Vec<Step>,
    verdict: Verdict,
}

impl Report {
    /// A report on steps that take no longer than `most` together.
    pub(super) fn new(as_json: bool, most: Duration) -> Self {
        let now = Instant::now();
        let shows_progress = !as_json && io::stderr().is_terminal();
        let (deadline, done, verdict) = (now + most, Vec::new(), Verdict::default());
        Self { as_json, shows_progress, started: now, deadline, step_started: now, done, verdict }
    }

    /// What a step may take that would take `most`.
    pub(super) fn left(&self, most: Duration) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).min(most)
    }

    /// Whether no time is left.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// A step begins, with `of` as what it is about.
    pub(super) fn begin(&mut self, step: Step, of: &str) {
        self.step_started = Instant::now();
        if self.shows_progress {
            eprint!("\r...      {:12} {of}\x1b[K", step.name());
            // Progress that cannot be shown is no failure.
            let _ = io::stderr().flush();
        }
    }

    /// The step that began last has ended. Whether it did not fail.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(super) fn end(&mut self, step: Step, of: &str, finding: &Finding) -> io::Result<bool> {
        let took = self.step_started.elapsed();
        self.done.push(step);
        match finding.outcome {
            Outcome::Ok => self.verdict.ok += 1,
            Outcome::Skipped => self.verdict.skipped += 1,
            Outcome::Failed if self.verdict.failed.contains(&step.name()) => {}
            Outcome::Failed => self.verdict.failed.push(step.name()),
        }
        if self.shows_progress {
            eprint!("\r\x1b[K");
        }
        let text = if self.as_json { line(step, of, finding, took) } else { lines(step, of, finding, took) };
        output::print(&text)?;
        Ok(finding.outcome != Outcome::Failed)
    }

    /// The steps that were not come to are skipped.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(super) fn skip_rest(&mut self, of: &str) -> io::Result<()> {
        let reason = match self.verdict.failed.last() {
            Some(step) => format!("not come to after {step}"),
            None => "not come to".to_owned(),
        };
        for step in Step::ALL {
            if !self.done.contains(&step) {
                self.step_started = Instant::now();
                self.end(step, of, &Finding::skipped(reason.clone()))?;
            }
        }
        Ok(())
    }

    /// Whether no step failed.
    pub(super) const fn is_well(&self) -> bool {
        self.verdict.failed.is_empty()
    }

    /// The last words: whether everything is well, and what to do with that.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(super) fn conclude(self, of: &str, label: &str, advice: Option<&str>) -> io::Result<Verdict> {
        let Self { as_json, started, verdict, .. } = self;
        let Verdict { failed, ok, skipped } = &verdict;
        let seconds = started.elapsed().as_secs_f64();
        let word = if failed.is_empty() { "ok" } else { "failed" };
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = if as_json {
            let line = json!({
                "verdict": word, "venue": of, "label": label, "failed": failed, "ok": ok, "skipped": skipped,
                "seconds": seconds, "advice": advice,
            });
            writeln!(text, "{line}")
        } else {
            let at = if failed.is_empty() { String::new() } else { format!(" at {}", failed.join(", ")) };
            writeln!(text, "{of} ({label}): {word}{at}; {ok} ok, {skipped} skipped, in {seconds:.1} s")
        };
        if let Some(advice) = advice.filter(|_| !as_json) {
            let _ = writeln!(text, "{advice}");
        }
        output::print(&text)?;
        Ok(verdict)
    }
}

fn line(step: Step, of: &str, finding: &Finding, took: Duration) -> String {
    let Finding { outcome, told, advice, excerpts, facts } = finding;
    let line = json!({
        "step": step.name(), "of": of, "outcome": outcome.name(), "took_ms": took.as_secs_f64() * 1e3, "told": told,
        "advice": advice, "excerpts": excerpts, "facts": facts,
    });
    format!("{line}\n")
}

fn lines(step: Step, of: &str, finding: &Finding, took: Duration) -> String {
    let (outcome, step, ms) = (finding.outcome.name(), step.name(), took.as_secs_f64() * 1e3);
    let mut text = format!("{outcome:8} {step:12} {ms:7.1} ms  {of}: {}\n", finding.told);
    let mark = " ".repeat(INDENT);
    // Writing to a String cannot fail.
    for excerpt in &finding.excerpts {
        let _ = writeln!(text, "{mark}| {excerpt}");
    }
    if let Some(advice) = &finding.advice {
        let _ = writeln!(text, "{mark}> {advice}");
    }
    text
}
