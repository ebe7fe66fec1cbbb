//! An examination as text or JSON lines on standard output.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use tt_os::stdout;

use super::{Finding, Observer, Step, StepResult, Summary};

/// Column at which the text of a line begins.
const INDENT: usize = 33;

/// The last lines of a report.
#[derive(Clone, Copy, Debug)]
pub struct Conclusion<'a> {
    /// Name of the venue.
    pub venue: &'a str,
    /// What is known of its rules.
    pub label: &'a str,
    /// How long the examination took.
    pub took: Duration,
    /// What to do next.
    pub advice: Option<&'a str>,
}

/// One line per step, and progress on a terminal.
#[derive(Clone, Copy, Debug)]
pub struct TextReport {
    shows_progress: bool,
}

impl Default for TextReport {
    fn default() -> Self {
        Self { shows_progress: io::stderr().is_terminal() }
    }
}

impl Observer for TextReport {
    fn begin(&mut self, step: Step, subject: &str) {
        if self.shows_progress {
            eprint!("\r...      {:12} {subject}\x1b[K", step.name());
            // A closed standard error is ignored.
            let _ = io::stderr().flush();
        }
    }

    fn end(&mut self, result: &StepResult<'_>) -> io::Result<()> {
        if self.shows_progress {
            eprint!("\r\x1b[K");
        }
        stdout::print(&lines(result))
    }
}

/// One JSON object per step.
#[derive(Clone, Copy, Debug)]
pub struct JsonReport;

impl Observer for JsonReport {
    fn begin(&mut self, _step: Step, _subject: &str) {}

    fn end(&mut self, result: &StepResult<'_>) -> io::Result<()> {
        stdout::print(&format!("{}\n", step(result)))
    }
}

/// Returns a step as a JSON object.
#[must_use]
pub fn step(result: &StepResult<'_>) -> Value {
    let StepResult { step, subject, finding, took } = result;
    let Finding { outcome, text, advice, excerpts, facts } = finding;
    json!({
        "step": step.name(), "of": subject, "outcome": outcome.name(), "took_ms": took.as_secs_f64() * 1e3,
        "text": text, "advice": advice, "excerpts": excerpts, "facts": facts,
    })
}

fn lines(result: &StepResult<'_>) -> String {
    let StepResult { step, subject, finding, took } = result;
    let (outcome, step, ms) = (finding.outcome.name(), step.name(), took.as_secs_f64() * 1e3);
    let mut text = format!("{outcome:8} {step:12} {ms:7.1} ms  {subject}: {}\n", finding.text);
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

/// Returns the summary as text or as a JSON object.
#[must_use]
pub fn summary(summary: &Summary, end: &Conclusion<'_>, as_json: bool) -> String {
    let Summary { failed, ok, skipped } = summary;
    let (venue, label, seconds) = (end.venue, end.label, end.took.as_secs_f64());
    let word = if failed.is_empty() { "ok" } else { "failed" };
    if as_json {
        let line = json!({
            "verdict": word, "venue": venue, "label": label, "failed": failed, "ok": ok, "skipped": skipped,
            "seconds": seconds, "advice": end.advice,
        });
        return format!("{line}\n");
    }
    let at = if failed.is_empty() { String::new() } else { format!(" at {}", failed.join(", ")) };
    let mut text = format!("{venue} ({label}): {word}{at}; {ok} ok, {skipped} skipped, in {seconds:.1} s\n");
    if let Some(advice) = end.advice {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{advice}");
    }
    text
}
