//! The clocks of this process: the calibrated cycle counter, and wall time that never steps.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use tt_meter::{Calibration, Clock};
use tt_model::Nanos;

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
        let machine = crate::machine::Machine::read();
        let trusted = cfg!(target_arch = "aarch64") || machine.trusts_tsc();
        let clock = if trusted { Clock::new(monotonic_raw_ns) } else { Clock::Os(monotonic_raw_ns) };
        Calibration::measure(clock, &mut monotonic_raw_ns, 50_000_000)
    })
}

/// Returns nanoseconds since the Unix epoch. The epoch is read once per process and then counted on with the monotonic
/// clock, so that the time never steps and ages between engines are exact.
#[must_use]
pub fn unix_now() -> Nanos {
    static START: OnceLock<(u64, Instant)> = OnceLock::new();
    let (epoch_ns, start) = START.get_or_init(|| {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (u64::try_from(epoch.as_nanos()).unwrap_or(u64::MAX), Instant::now())
    });
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Nanos(epoch_ns.saturating_add(elapsed_ns))
}
