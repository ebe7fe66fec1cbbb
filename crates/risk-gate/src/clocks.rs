//! The clocks that the gate's thread watches next to its own, which never steps, and stops while the machine sleeps.

use tt_os::clock::{WallTime, suspended_ns, wall_time};
use tt_risk::Mark;

/// Readings of the time of sleep at the start, of which the largest counts: an interrupted one is too small.
const FIRST_READINGS: usize = 8;

/// Where the clocks are read.
#[derive(Clone, Copy)]
pub(crate) struct Clocks {
    /// For how long the machine has slept.
    pub(crate) suspended_ns: fn() -> u64,
    /// The system's clock, and the interval between two readings.
    pub(crate) wall: fn() -> WallTime,
    pub(crate) wall_every_ns: u64,
}

impl Clocks {
    /// The clocks of the machine.
    pub(crate) const MACHINE: Self = Self { suspended_ns, wall: wall_time, wall_every_ns: 1_000_000_000 };
}

/// What the gate's thread knows of the clocks.
pub(crate) struct ClockWatch {
    clocks: Clocks,
    suspended_ns: u64,
    wall_due_ns: u64,
}

impl ClockWatch {
    /// Reads the time of sleep; the system's clock is due at once.
    pub(crate) fn new(clocks: Clocks) -> Self {
        let suspended_ns = (0..FIRST_READINGS).map(|_| (clocks.suspended_ns)()).max().unwrap_or(0);
        Self { clocks, suspended_ns, wall_due_ns: 0 }
    }

    /// Returns for how long the machine has slept since the last call; `None` for less than marks may be ahead.
    pub(crate) fn take_sleep(&mut self) -> Option<u64> {
        let slept_ns = (self.clocks.suspended_ns)().checked_sub(self.suspended_ns)?;
        let is_long = slept_ns > Mark::AHEAD_MAX_NS;
        self.suspended_ns += if is_long { slept_ns } else { 0 };
        is_long.then_some(slept_ns)
    }

    /// Returns the system's clock, if it is due.
    pub(crate) fn take_wall_time(&mut self, now_ns: u64) -> Option<WallTime> {
        (now_ns >= self.wall_due_ns).then(|| {
            self.wall_due_ns = now_ns + self.clocks.wall_every_ns;
            (self.clocks.wall)()
        })
    }
}

#[cfg(test)]
mod tests;
