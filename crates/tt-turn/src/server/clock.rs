//! The wall clock, set by the caller.

use tt_model::Nanos;

/// Unix seconds, extrapolated from the last setting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WallClock {
    read_at: Nanos,
    unix_s: u64,
}

impl WallClock {
    pub(super) fn set(&mut self, now: Nanos, unix_s: u64) {
        *self = Self { read_at: now, unix_s };
    }

    #[inline]
    pub(super) fn unix_s(&self, now: Nanos) -> u64 {
        self.unix_s.saturating_add(now.saturating_sub(self.read_at).0 / Nanos::PER_SECOND)
    }
}
