//! The wall clock, set by the caller.

use tt_model::Nanos;

/// Unix time, extrapolated from the last setting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WallClock {
    read_at: Nanos,
    unix: Nanos,
}

impl WallClock {
    pub(super) fn set(&mut self, now: Nanos, unix: Nanos) {
        *self = Self { read_at: now, unix };
    }

    /// Returns the time since 1970.
    #[inline]
    pub(super) fn unix(&self, now: Nanos) -> Nanos {
        self.unix.saturating_add(now.saturating_sub(self.read_at))
    }

    #[inline]
    pub(super) fn unix_s(&self, now: Nanos) -> u64 {
        self.unix(now).0 / Nanos::PER_SECOND
    }
}
