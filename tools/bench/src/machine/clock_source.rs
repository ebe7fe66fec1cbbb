//! The clocks of this machine: what a read costs, how fine they are, how far they drift.

use crate::machine::measurement::{Measurement, chunks};
use nix::time::{ClockId, clock_gettime};
use std::fmt;
use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tt_meter::{Calibration, Clock, Scale};

const READS: u32 = 64;
/// Readings that the step is looked for in, at least; and how long it is looked for at most.
const STEP_READS: usize = 20_000;
const STEP_SPAN_NS: u64 = 25_000_000;
/// Tries of which the tightest pair of readings counts.
const PAIRS: u32 = 64;

/// A clock, and what it says at the same moment as `CLOCK_MONOTONIC_RAW`.
pub struct ClockSource<'a> {
    /// Cost of one read.
    pub cost: Measurement<'a>,
    /// It counts the time that passes, so that its drift means something.
    pub is_wall_time: bool,
    now_ns: Box<dyn Fn() -> f64 + 'a>,
    steps: Box<dyn Fn() -> Vec<u64> + 'a>,
    to_ns: fn(u64, Scale) -> f64,
    scale: Scale,
}

impl fmt::Debug for ClockSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockSource").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// Two clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    ns: f64,
    raw_ns: f64,
}

impl Pair {
    /// How much faster the clock ran than `CLOCK_MONOTONIC_RAW` from `earlier` to this, in parts per million.
    #[must_use]
    pub fn drift_ppm(&self, earlier: &Self) -> f64 {
        let raw_ns = self.raw_ns - earlier.raw_ns;
        if raw_ns <= 0.0 { 0.0 } else { ((self.ns - earlier.ns) - raw_ns) / raw_ns * 1e6 }
    }
}

impl ClockSource<'_> {
    /// Reads it together with `CLOCK_MONOTONIC_RAW`, as closely as possible.
    #[must_use]
    pub fn pair(&self) -> Pair {
        let mut best = (f64::INFINITY, Pair { ns: 0.0, raw_ns: 0.0 });
        for _ in 0..PAIRS {
            let before = os_ns(ClockId::CLOCK_MONOTONIC_RAW) as f64;
            let ns = (self.now_ns)();
            let width = os_ns(ClockId::CLOCK_MONOTONIC_RAW) as f64 - before;
            if width < best.0 {
                best = (width, Pair { ns, raw_ns: before + width / 2.0 });
            }
        }
        best.1
    }

    /// The smallest step between two different readings in a row, nanoseconds, but for steps that hardly ever come; `None`
    /// where the clock did not move.
    #[must_use]
    pub fn step_ns(&self) -> Option<f64> {
        common_step(&(self.steps)()).map(|step| (self.to_ns)(step, self.scale))
    }
}

/// The smallest difference but for the smallest hundredth. What is far less than a read takes is no time: some processors add
/// one so that no two readings of their counter are equal.
fn common_step(readings: &[u64]) -> Option<u64> {
    let (first, last) = (readings.first()?, readings.last()?);
    let read = last.saturating_sub(*first) / readings.len() as u64;
    let moved = readings.windows(2).map(|two| two[1].saturating_sub(two[0]));
    let mut steps: Vec<u64> = moved.filter(|step| *step > read / 4).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 100).copied()
}

/// Reads as fast as it can, until the clock has moved or long enough for a coarse one to do so twice.
fn readings(read: impl Fn() -> u64) -> Vec<u64> {
    let begin = os_ns(ClockId::CLOCK_MONOTONIC_RAW);
    let mut readings = Vec::with_capacity(STEP_READS);
    for _ in 0..STEP_READS {
        readings.push(read());
    }
    while readings.last() == readings.first() && os_ns(ClockId::CLOCK_MONOTONIC_RAW) - begin < STEP_SPAN_NS {
        readings.push(read());
    }
    readings
}

/// All clocks that a program might choose.
#[must_use]
pub fn clock_sources(calibration: &Calibration) -> Vec<ClockSource<'_>> {
    let counter = Clock::new(|| 0);
    let cycles = |read: u64, scale: Scale| scale.ns_f64(read as f64);
    let mut sources = Vec::new();
    if matches!((counter, calibration.clock), (Clock::Counter, Clock::Counter)) {
        sources.extend([
            source(
                calibration,
                "counter",
                "the counter alone (rdtsc), unordered",
                true,
                || Clock::Counter.unordered().0,
                cycles,
            ),
            source(
                calibration,
                "counter_start",
                "lfence, rdtsc: after all that comes before",
                true,
                || Clock::Counter.start().0,
                cycles,
            ),
            source(
                calibration,
                "counter_end",
                "rdtscp, lfence: and before all that comes after",
                true,
                || Clock::Counter.end().0,
                cycles,
            ),
        ]);
    }
    let ns = |read: u64, _: Scale| read as f64;
    let os = |name, what, id: ClockId, is_wall_time| {
        let read = move || os_ns(id);
        source(calibration, name, what, is_wall_time, read, ns)
    };
    sources.extend([
        os("monotonic", "clock_gettime(CLOCK_MONOTONIC)", ClockId::CLOCK_MONOTONIC, true),
        os("monotonic_raw", "clock_gettime(CLOCK_MONOTONIC_RAW)", ClockId::CLOCK_MONOTONIC_RAW, true),
        os("monotonic_coarse", "clock_gettime(CLOCK_MONOTONIC_COARSE)", ClockId::CLOCK_MONOTONIC_COARSE, false),
        os("realtime", "clock_gettime(CLOCK_REALTIME)", ClockId::CLOCK_REALTIME, true),
        os("boottime", "clock_gettime(CLOCK_BOOTTIME)", ClockId::CLOCK_BOOTTIME, true),
        os("thread_cpu", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)", ClockId::CLOCK_THREAD_CPUTIME_ID, false),
    ]);
    let origin = Instant::now();
    let since = move || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    sources.push(ClockSource {
        cost: timed(calibration, "instant", "std::time::Instant::now", Instant::now),
        ..source(calibration, "", "", true, since, ns)
    });
    let epoch = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    };
    sources.push(ClockSource {
        cost: timed(calibration, "system_time", "std::time::SystemTime::now", SystemTime::now),
        ..source(calibration, "", "", true, epoch, ns)
    });
    sources
}

fn source<'a>(
    calibration: &'a Calibration,
    name: &'static str,
    what: &str,
    is_wall_time: bool,
    read: impl Fn() -> u64 + Copy + 'a,
    to_ns: fn(u64, Scale) -> f64,
) -> ClockSource<'a> {
    // Readings are large numbers: their differences must survive as floats.
    let first = read();
    let scale = calibration.scale;
    let now_ns = Box::new(move || to_ns(read().wrapping_sub(first), scale));
    let steps = Box::new(move || readings(read));
    ClockSource { cost: timed(calibration, name, what, read), is_wall_time, now_ns, steps, to_ns, scale }
}

fn timed<'a, R>(
    calibration: &'a Calibration,
    name: &'static str,
    what: &str,
    read: impl Fn() -> R + 'a,
) -> Measurement<'a> {
    Measurement::new(name, what, READS, move || {
        Ok(chunks(calibration, 32, READS, || {
            black_box(read());
        }))
    })
}

fn os_ns(id: ClockId) -> u64 {
    clock_gettime(id).map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::{Pair, clock_sources, common_step};
    use tt_meter::{Calibration, Clock};

    #[test]
    fn a_clock_that_gains_a_microsecond_a_second_drifts_by_one_part_in_a_million() {
        let (first, last) = (Pair { ns: 5.0, raw_ns: 7.0 }, Pair { ns: 1_000_001_005.0, raw_ns: 1_000_000_007.0 });
        assert!((last.drift_ppm(&first) - 1.0).abs() < 1e-6);
    }

    /// A counter in steps of 26, read every 20, with one odd reading among many.
    #[test]
    fn a_step_that_hardly_ever_comes_is_no_resolution() {
        let mut readings: Vec<u64> = (0..1_000).map(|read| read * 20 / 26 * 26).collect();
        readings[500] += 9;
        assert_eq!(common_step(&readings), Some(26));
        // Where two readings would be equal, the second one is one more.
        let unequal: Vec<u64> = (0..1_000).map(|read| read * 13 / 26 * 26 + u64::from(read % 2 == 1)).collect();
        assert_eq!(common_step(&unequal), Some(25));
        assert_eq!(common_step(&[7, 7, 7]), None);
    }

    #[test]
    fn every_clock_has_a_step() {
        let origin = std::time::Instant::now();
        let mut os_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap();
        let calibration = Calibration::measure(Clock::new(|| 0), &mut os_ns, 20_000_000);
        for mut source in clock_sources(&calibration) {
            let step = source.step_ns();
            assert!(step.is_some_and(|step| step > 0.0), "{source:?} {step:?}");
            assert!(source.cost.block().unwrap().iter().all(|ns| *ns > 0.0));
        }
    }
}
