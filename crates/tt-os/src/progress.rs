//! Progress on standard error: one line that is overwritten on a terminal, otherwise a line every 10 s.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Shorter work prints nothing.
const QUIET: Duration = Duration::from_secs(1);
/// Interval between two lines on a terminal.
const EVERY: Duration = Duration::from_millis(250);
/// Interval between two lines otherwise.
const EVERY_UNSEEN: Duration = Duration::from_secs(10);

/// The progress line of one task.
pub struct ProgressLine {
    name: String,
    started: Instant,
    printed: Option<Instant>,
    is_terminal: bool,
}

impl ProgressLine {
    /// Creates the line of the task `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), started: Instant::now(), printed: None, is_terminal: io::stderr().is_terminal() }
    }

    /// Prints that `bytes` of `len` are done, if the interval has passed.
    pub fn update(&mut self, bytes: u64, len: u64) {
        if !self.is_due() {
            return;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let (mb, rate) = (bytes as f64 / 1e6, bytes as f64 / 1e6 / seconds);
        let percent = bytes as f64 * 100.0 / len.max(1) as f64;
        self.print(&format!("{}: {percent:.0} %, {mb:.1} MB in {seconds:.0} s, {rate:.1} MB/s", self.name));
    }

    /// Prints that `done` of `count` steps are done and how long the others may take, if the interval has passed.
    pub fn update_steps(&mut self, done: usize, count: usize) {
        if !self.is_due() {
            return;
        }
        let left = count.saturating_sub(done) as f64 / done.max(1) as f64 * self.started.elapsed().as_secs_f64();
        self.print(&format!("{}: {done} of {count}, about {left:.0} s left", self.name));
    }

    fn is_due(&self) -> bool {
        let every = if self.is_terminal { EVERY } else { EVERY_UNSEEN };
        self.printed.map_or(self.started.elapsed() + every - QUIET, |printed| printed.elapsed()) >= every
    }

    fn print(&mut self, line: &str) {
        self.printed = Some(Instant::now());
        let mut err = io::stderr().lock();
        // A closed standard error is ignored.
        let _ = if self.is_terminal { write!(err, "\r{line}\x1b[K") } else { writeln!(err, "{line}") };
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.is_terminal && self.printed.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
