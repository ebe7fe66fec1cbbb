//! Progress on standard error: one line that is overwritten. Without a terminal nothing is printed.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Shorter work prints nothing.
const QUIET: Duration = Duration::from_secs(1);
/// Interval between two lines.
const EVERY: Duration = Duration::from_millis(250);

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

    /// Prints that `bytes` of `len` are done, at which rate, and how long the rest may take, if the interval has passed.
    pub fn update(&mut self, bytes: u64, len: u64) {
        if self.is_due() {
            self.print(&bytes_line(&self.name, bytes, len, self.started.elapsed()));
        }
    }

    /// Prints that `done` of `count` steps are done and how long the others may take, if the interval has passed.
    pub fn update_steps(&mut self, done: usize, count: usize) {
        if !self.is_due() {
            return;
        }
        let left = left_s(done as u64, count as u64, self.started.elapsed());
        self.print(&format!("{}: {done} of {count}, about {left:.0} s left", self.name));
    }

    fn is_due(&self) -> bool {
        self.is_terminal && self.printed.map_or(self.started.elapsed() >= QUIET, |printed| printed.elapsed() >= EVERY)
    }

    fn print(&mut self, line: &str) {
        self.printed = Some(Instant::now());
        // A closed standard error is ignored.
        let _ = write!(io::stderr().lock(), "\r{line}\x1b[K");
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.printed.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn bytes_line(name: &str, bytes: u64, len: u64, elapsed: Duration) -> String {
    let (mb, of_mb) = (bytes as f64 / 1e6, len as f64 / 1e6);
    let percent = bytes as f64 * 100.0 / len.max(1) as f64;
    let (rate, left) = (mb / elapsed.as_secs_f64(), left_s(bytes, len, elapsed));
    format!("{name}: {percent:.0} %, {mb:.1} of {of_mb:.1} MB, {rate:.1} MB/s, about {left:.0} s left")
}

/// Returns the seconds that the rest takes at the rate so far.
fn left_s(done: u64, count: u64, elapsed: Duration) -> f64 {
    count.saturating_sub(done) as f64 / done.max(1) as f64 * elapsed.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_part_done_the_rate_and_the_time_left() {
        let line = bytes_line("replay", 50_000_000, 200_000_000, Duration::from_secs(4));
        assert_eq!(line, "replay: 25 %, 50.0 of 200.0 MB, 12.5 MB/s, about 12 s left");
        // Neither an empty file nor one that has grown since divides by zero or counts backwards.
        assert_eq!(
            bytes_line("replay", 3, 0, Duration::from_secs(1)),
            "replay: 300 %, 0.0 of 0.0 MB, 0.0 MB/s, about 0 s left"
        );
        assert!((left_s(1, 4, Duration::from_secs(2)) - 6.0).abs() < 1e-9);
    }
}
