//! The clock of this machine, compared once with the kernel's.

use std::sync::OnceLock;

use nix::time::{ClockId, clock_gettime};
use tt_meter::{Calibration, Clock};

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: never set, never slewed.
#[must_use]
pub fn monotonic_raw_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC_RAW)
        .map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

/// The machine's counter where its rate is constant and the kernel trusts it, else `CLOCK_MONOTONIC_RAW`, with its scale
/// and cost. The first call takes 50 ms, later ones nothing.
pub fn calibration() -> &'static Calibration {
    static CALIBRATION: OnceLock<Calibration> = OnceLock::new();
    CALIBRATION.get_or_init(|| {
        let machine = tt_os::machine::Machine::read();
        let trusted = cfg!(target_arch = "aarch64") || machine.trusts_tsc();
        let clock = if trusted { Clock::new(monotonic_raw_ns) } else { Clock::Os(monotonic_raw_ns) };
        Calibration::measure(clock, &mut monotonic_raw_ns, 50_000_000)
    })
}
