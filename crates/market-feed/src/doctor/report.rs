//! Results of the steps: passed to an observer as they end, and counted.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::step::Step;

/// Characters of a frame that are shown.
const EXCERPT_MAX: usize = 240;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The step succeeded.
    Ok,
    /// The step failed.
    Failed,
    /// The step was not tried: it does not apply, or an earlier step failed.
    Skipped,
}

impl Outcome {
    /// Returns the outcome's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The finding of one step.
#[derive(Debug)]
pub struct Finding {
    /// How the step ended.
    pub outcome: Outcome,
    /// What was found, as a sentence.
    pub text: String,
    /// What the user can do about it.
    pub advice: Option<String>,
    /// Beginnings of frames that show the problem.
    pub excerpts: Vec<String>,
    /// Measured values by name.
    pub facts: Map<String, Value>,
}

impl Finding {
    fn new(outcome: Outcome, text: String) -> Self {
        Self { outcome, text, advice: None, excerpts: Vec::new(), facts: Map::new() }
    }

    pub(super) fn ok(text: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, text.into())
    }

    /// `advice` is what the user can do about it.
    pub(super) fn failed(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, text.into()).advise(advice)
    }

    pub(super) fn skipped(text: impl Into<String>) -> Self {
        Self::new(Outcome::Skipped, text.into())
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

/// The end of one step.
#[derive(Debug)]
pub struct StepResult<'a> {
    /// The step.
    pub step: Step,
    /// The venue or the address that the step is about.
    pub subject: &'a str,
    /// What was found.
    pub finding: &'a Finding,
    /// How long the step took.
    pub took: Duration,
}

/// Receives the steps of an examination as they begin and end.
pub trait Observer {
    /// `step` begins; `subject` is the venue or the address that it is about.
    fn begin(&mut self, step: Step, subject: &str);

    /// A step has ended.
    ///
    /// # Errors
    /// The result cannot be shown; the examination ends.
    fn end(&mut self, result: &StepResult<'_>) -> io::Result<()>;
}

/// Counts of an examination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The steps that failed, each once.
    pub failed: Vec<&'static str>,
    /// Steps that succeeded.
    pub ok: usize,
    /// Steps that were not tried.
    pub skipped: usize,
}

/// The steps so far, and the time that is left.
pub(super) struct Report<'a> {
    observer: &'a mut dyn Observer,
    deadline: Instant,
    step_started: Instant,
    done: Vec<Step>,
    summary: Summary,
}

impl<'a> Report<'a> {
    /// A report on steps that take at most `time_max` together.
    pub(super) fn new(observer: &'a mut dyn Observer, time_max: Duration) -> Self {
        let now = Instant::now();
        Self { observer, deadline: now + time_max, step_started: now, done: Vec::new(), summary: Summary::default() }
    }

    /// Returns the time for a step that may take `most`.
    pub(super) fn left(&self, most: Duration) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).min(most)
    }

    /// Returns whether no time is left.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Begins a step about `subject`.
    pub(super) fn begin(&mut self, step: Step, subject: &str) {
        self.step_started = Instant::now();
        self.observer.begin(step, subject);
    }

    /// Ends the step that began last; returns whether it did not fail.
    ///
    /// # Errors
    /// The observer's.
    pub(super) fn end(&mut self, step: Step, subject: &str, finding: &Finding) -> io::Result<bool> {
        let took = self.step_started.elapsed();
        self.done.push(step);
        match finding.outcome {
            Outcome::Ok => self.summary.ok += 1,
            Outcome::Skipped => self.summary.skipped += 1,
            Outcome::Failed if self.summary.failed.contains(&step.name()) => {}
            Outcome::Failed => self.summary.failed.push(step.name()),
        }
        self.observer.end(&StepResult { step, subject, finding, took })?;
        Ok(finding.outcome != Outcome::Failed)
    }

    /// Ends every step that did not begin as skipped.
    ///
    /// # Errors
    /// The observer's.
    pub(super) fn skip_rest(&mut self, subject: &str) -> io::Result<()> {
        let reason = match self.summary.failed.last() {
            Some(step) => format!("not reached because {step} failed"),
            None => "not reached".to_owned(),
        };
        for step in Step::ALL {
            if !self.done.contains(&step) {
                self.step_started = Instant::now();
                self.end(step, subject, &Finding::skipped(reason.clone()))?;
            }
        }
        Ok(())
    }

    pub(super) fn into_summary(self) -> Summary {
        self.summary
    }
}
