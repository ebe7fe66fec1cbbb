//! The time that a thread computed.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Returns the time for which the calling thread has had a CPU.
///
/// Other programs of the machine do not count, as they would in the time on the wall.
///
/// # Panics
/// The kernel has no such clock.
#[must_use]
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the thread's clock").into()
}
