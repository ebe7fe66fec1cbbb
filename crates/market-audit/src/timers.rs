//! When the engine's timers are run over frames that were received in the past.

use tt_model::Nanos;

/// Time between two runs: the engine wants ten a second.
const EVERY: Nanos = Nanos::from_millis(100);

/// The times of the last run and of the last frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    last_run: Nanos,
    last_frame: Nanos,
}

impl Timers {
    /// Records a frame; returns whether there was none for longer than `silence_max` before it.
    pub(super) fn is_silent(&mut self, now: Nanos, silence_max: Nanos) -> bool {
        let since = now.saturating_sub(std::mem::replace(&mut self.last_frame, now));
        since > silence_max && since < now
    }

    /// Returns whether the engine's timers are due, and takes note of their run.
    pub(super) fn are_due(&mut self, now: Nanos) -> bool {
        let is_due = now.saturating_sub(self.last_run) >= EVERY;
        if is_due {
            self.last_run = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_ends_no_silence_and_a_late_one_does() {
        let mut timers = Timers::default();
        let max = Nanos::from_secs(10);
        let at = |ms: u64| Nanos::from_millis(1_700_000_000_000 + ms);
        let found = [0, 10_000, 20_001, 20_002].map(|ms| timers.is_silent(at(ms), max));
        assert_eq!(found, [false, false, true, false]);
        let found = [0, 99, 100, 150, 200].map(|ms| timers.are_due(at(ms)));
        assert_eq!(found, [true, false, true, false, true]);
    }
}
