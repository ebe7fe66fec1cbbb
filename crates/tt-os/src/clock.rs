//! The clocks of this process: the calibrated cycle counter, Unix time that never steps, and wall time.

use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use tt_meter::{Calibration, Clock};
use tt_model::Nanos;

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: never set, never slewed.
#[must_use]
pub fn monotonic_raw_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC_RAW)
        .map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

/// `CLOCK_MONOTONIC`, the clock of [`Instant`].
#[must_use]
pub fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// The machine's counter where its rate is constant and the kernel trusts it, else `CLOCK_MONOTONIC_RAW`. Stamps need no
/// scale: whoever takes them does not wait for [`calibration`].
pub fn clock() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(|| {
        let trusted = cfg!(target_arch = "aarch64") || crate::machine::Machine::at_start().trusts_tsc();
        if trusted { Clock::new(monotonic_raw_ns) } else { Clock::Os(monotonic_raw_ns) }
    })
}

/// The [`clock`] with its scale and cost. The first call takes 50 ms, later ones nothing.
pub fn calibration() -> &'static Calibration {
    static CALIBRATION: OnceLock<Calibration> = OnceLock::new();
    CALIBRATION.get_or_init(|| Calibration::measure(clock(), &mut monotonic_raw_ns, 50_000_000))
}

/// Begins the first call of [`calibration`] on another thread, so that the first report does not wait for it.
pub fn calibrate_ahead() {
    static BEGUN: Once = Once::new();
    // Without a thread the first caller measures.
    BEGUN.call_once(|| drop(std::thread::Builder::new().name("calibration".to_owned()).spawn(calibration)));
}

/// Returns nanoseconds since the Unix epoch. The epoch is read once per process and then counted on with the monotonic
/// clock, so that the time never steps and ages between engines are exact.
#[must_use]
pub fn unix_now() -> Nanos {
    static START: OnceLock<(u64, Instant)> = OnceLock::new();
    let (epoch_ns, start) = START.get_or_init(|| (wall_time_ns(SystemTime::now()).0, Instant::now()));
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Nanos(epoch_ns.saturating_add(elapsed_ns))
}

/// Returns for how long the machine has slept since it was started, nanoseconds: `CLOCK_BOOTTIME` counts on while it sleeps,
/// [`unix_now`] and `CLOCK_MONOTONIC` stand still.
///
/// A call that is interrupted between the two clocks returns less, never more.
#[must_use]
pub fn suspended_ns() -> u64 {
    let read = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    let with_sleep = read(ClockId::CLOCK_BOOTTIME);
    let slept = with_sleep.saturating_sub(read(ClockId::CLOCK_MONOTONIC));
    u64::try_from(slept.as_nanos()).unwrap_or(u64::MAX)
}

/// A reading of the system's clock, which steps when the clock is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallTime {
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
    /// Maximum error against UTC in nanoseconds, as the service that synchronises the clock states it; `None` if the clock
    /// is not synchronised, or the kernel does not say.
    pub error_ns: Option<u64>,
}

/// Reads the system's clock and its error.
#[must_use]
pub fn wall_time() -> WallTime {
    WallTime { unix_ns: wall_time_ns(SystemTime::now()).0, error_ns: wall_error_ns() }
}

/// Reads `now` and the system's clock at one moment: returns both, the second in nanoseconds since the Unix epoch.
///
/// A thread may be taken off its CPU between the two readings. So `now` is read on both sides, the pair whose sides are
/// nearest is kept, and its `now` lies between them: the two are apart by half of that distance at most.
pub fn with_unix_time(mut now: impl FnMut() -> Nanos) -> (Nanos, Nanos) {
    paired(&mut now, || wall_time_ns(SystemTime::now()))
}

fn paired(now: &mut dyn FnMut() -> Nanos, mut unix: impl FnMut() -> Nanos) -> (Nanos, Nanos) {
    const NEAR_NS: u64 = 10_000;
    const TRIES: usize = 5;
    let mut best = None;
    for _ in 0..TRIES {
        let (before, unix, after) = (now(), unix(), now());
        let distance = after.0.saturating_sub(before.0);
        let pair = (Nanos(before.0 + distance / 2), unix);
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, pair));
        }
        if distance <= NEAR_NS {
            break;
        }
    }
    best.map_or((Nanos(0), Nanos(0)), |(_, pair)| pair)
}

fn wall_time_ns(time: SystemTime) -> Nanos {
    Nanos(u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX))
}

/// Reads the clock's state without changing it (adjtimex(2)), which needs no right.
fn wall_error_ns() -> Option<u64> {
    let mut state = core::mem::MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: `state` is a whole `timex` that outlives the call. With `modes` 0 the kernel only writes it.
    let answer = unsafe { libc::adjtimex(state.as_mut_ptr()) };
    // SAFETY: a `timex` holds integers alone, for which zeros and whatever the kernel writes are values.
    let state = unsafe { state.assume_init() };
    let is_known = answer >= 0 && answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    let error_us = u64::try_from(state.maxerror).ok().filter(|_| is_known)?;
    error_us.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_those_of_the_calibrated_clock() {
        let kind = std::mem::discriminant(&clock());
        assert_eq!(kind, std::mem::discriminant(&calibration().clock));
    }

    #[test]
    fn unix_time_counts_on_with_the_monotonic_clock() {
        let (first, start) = (unix_now().0, Instant::now());
        let later = std::iter::repeat_with(unix_now).find(|now| now.0 - first > 2_000_000).unwrap();
        let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap();
        assert!(later.0 - first <= elapsed_ns + 1_000_000, "{} in {elapsed_ns}", later.0 - first);
    }

    /// A thread that loses its CPU for 10 ms before or after the reading of the system's clock does not shift the pair.
    #[test]
    fn a_pause_between_two_clocks_shifts_no_pair() {
        use std::cell::Cell;
        const PAUSE: u64 = 10_000_000;
        // Both clocks count the same time; the readings before which the thread pauses differ.
        for paused in [[0, 1], [1, 4], [2, 5], [4, 7]] {
            let (time, reading) = (Cell::new(1_000), Cell::new(0));
            let read = || {
                time.set(time.get() + if paused.contains(&reading.get()) { PAUSE } else { 100 });
                reading.set(reading.get() + 1);
                Nanos(time.get())
            };
            let (now, unix) = paired(&mut { read }, read);
            assert!(now.0.abs_diff(unix.0) <= 100, "{paused:?}: {now:?} {unix:?}");
        }
        // Where it pauses each time, the pair is no worse than half of the pause.
        let time = Cell::new(0);
        let read = |step: u64| {
            time.set(time.get() + step);
            Nanos(time.get())
        };
        let (now, unix) = paired(&mut || read(100), || read(PAUSE));
        assert!(now.0.abs_diff(unix.0) <= PAUSE / 2 + 100, "{now:?} {unix:?}");
    }

    /// Against `/proc/uptime`, which the kernel prints from `CLOCK_BOOTTIME` to 10 ms.
    #[test]
    fn the_time_of_sleep_is_what_boot_time_has_beyond_monotonic_time() {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime_s: f64 = text.split(' ').next().unwrap().parse().unwrap();
        let monotonic = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
        let slept = suspended_ns() as f64 / 1e9;
        assert!((uptime_s - monotonic.as_secs_f64() - slept).abs() < 5.0, "{uptime_s} {monotonic:?} {slept}");
        assert!(suspended_ns().abs_diff(suspended_ns()) < 1_000_000_000);
    }

    #[test]
    fn wall_time_is_that_of_the_system() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let WallTime { unix_ns, error_ns } = wall_time();
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        assert!((before..=after).contains(&unix_ns) || after < before, "{before} {unix_ns} {after}");
        assert!(error_ns.is_none_or(|error_ns| error_ns > 0 && error_ns < 1_000_000_000_000), "{error_ns:?}");
    }
}
