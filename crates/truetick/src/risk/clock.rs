//! The clock of intents, marks and verdicts.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds of the Unix epoch that never go back: read once, then counted on. The market engine's receive times are
/// of the same epoch, so that the age of a quote can be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch_ns: u64,
    start: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch_ns: ns(epoch), start: Instant::now() }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.epoch_ns.saturating_add(ns(self.start.elapsed()))
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
