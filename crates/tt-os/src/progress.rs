//! Progress of long work, on standard error: one line that is written over on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Work that takes no longer than this says nothing.
const QUIET: Duration = Duration::from_secs(1);
/// Between two lines on a terminal.
const EVERY: Duration = Duration::from_millis(250);
/// Between two lines elsewhere.
const EVERY_UNSEEN: Duration = Duration::from_secs(10);

/// How far one piece of work has got.
pub struct ProgressLine {
    name: String,
    started: Instant,
    told: Option<Instant>,
    is_terminal: bool,
}

impl ProgressLine {
    /// Starts a line for the work `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), started: Instant::now(), told: None, is_terminal: io::stderr().is_terminal() }
    }

    /// Says how many of `len` bytes are done, if it is time to.
    pub fn update(&mut self, bytes: u64, len: u64) {
        let every = if self.is_terminal { EVERY } else { EVERY_UNSEEN };
        let since = self.told.map_or(self.started.elapsed() + every - QUIET, |told| told.elapsed());
        if since < every {
            return;
        }
        self.told = Some(Instant::now());
        let seconds = self.started.elapsed().as_secs_f64();
        let (mb, rate) = (bytes as f64 / 1e6, bytes as f64 / 1e6 / seconds);
        let percent = bytes as f64 * 100.0 / len.max(1) as f64;
        let line = format!("{}: {percent:.0} %, {mb:.1} MB in {seconds:.0} s, {rate:.1} MB/s", self.name);
        let mut err = io::stderr().lock();
        // Nobody is left to tell when standard error is gone.
        let _ = if self.is_terminal { write!(err, "\r{line}\x1b[K") } else { writeln!(err, "{line}") };
    }

    /// Leaves the line.
    pub fn end(&mut self) {
        if self.is_terminal && self.told.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
