//! From cycles to nanoseconds.

use crate::Clock;

/// The factor from cycles to nanoseconds, as `ns = cycles * mult >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    mult: u64,
    shift: u32,
}

impl Scale {
    /// For a clock whose cycles are nanoseconds already.
    pub const NANOSECONDS: Self = Self { mult: 1, shift: 0 };

    const SHIFT: u32 = 32;

    /// The scale by which `cycles` lasted `ns`; `None` where either is zero or the factor does not fit.
    #[must_use]
    pub const fn from_span(cycles: u64, ns: u64) -> Option<Self> {
        if cycles == 0 || ns == 0 {
            return None;
        }
        let mult = (((ns as u128) << Self::SHIFT) + cycles as u128 / 2) / cycles as u128;
        if mult == 0 || mult > u64::MAX as u128 {
            return None;
        }
        Some(Self { mult: mult as u64, shift: Self::SHIFT })
    }

    /// `cycles` in nanoseconds, rounded down.
    #[must_use]
    #[inline]
    pub const fn ns(self, cycles: u64) -> u64 {
        ((cycles as u128 * self.mult as u128) >> self.shift) as u64
    }

    /// `cycles`, which may be a mean, in nanoseconds.
    #[must_use]
    pub fn ns_f64(self, cycles: f64) -> f64 {
        cycles * self.mult as f64 / (1u64 << self.shift) as f64
    }

    /// Cycles in a second.
    #[must_use]
    pub fn cycles_per_s(self) -> f64 {
        1e9 * (1u64 << self.shift) as f64 / self.mult as f64
    }
}

/// The calibration of a clock: its scale and the cost of a read.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// The clock.
    pub clock: Clock,
    /// Its scale.
    pub scale: Scale,
    /// Cycles between two neighbouring reads ([`Clock::end`]), the least of many blocks: what a stamp adds to what it times.
    pub read_cycles: u64,
}

impl Calibration {
    /// Compares `clock` with `os_ns` (monotonic nanoseconds, such as `CLOCK_MONOTONIC_RAW`) for `span_ns`.
    ///
    /// A comparison is a read of `os_ns` between two of `clock`; of several tries the tightest counts, so that an
    /// interruption between the reads does not.
    #[must_use]
    pub fn measure(clock: Clock, os_ns: &mut impl FnMut() -> u64, span_ns: u64) -> Self {
        let read_cycles = read_cycles(clock);
        let Clock::Counter = clock else {
            return Self { clock, scale: Scale::NANOSECONDS, read_cycles };
        };
        let first = tightest(clock, os_ns);
        while os_ns().saturating_sub(first.1) < span_ns {
            core::hint::spin_loop();
        }
        let last = tightest(clock, os_ns);
        let scale = Scale::from_span(last.0.saturating_sub(first.0), last.1.saturating_sub(first.1));
        Self { clock, scale: scale.unwrap_or(Scale::NANOSECONDS), read_cycles }
    }

    /// A pair of readings (cycles, ns) to measure the drift of the scale with: two of them, a run apart.
    #[must_use]
    pub fn pair(&self, os_ns: &mut impl FnMut() -> u64) -> (u64, u64) {
        tightest(self.clock, os_ns)
    }

    /// Returns the drift between two [`pair`](Self::pair)s, in parts per million of the OS clock.
    #[must_use]
    pub fn drift_ppm(&self, first: (u64, u64), last: (u64, u64)) -> f64 {
        let os_ns = last.1.saturating_sub(first.1) as f64;
        if os_ns == 0.0 {
            return 0.0;
        }
        (self.scale.ns_f64(last.0.saturating_sub(first.0) as f64) - os_ns) / os_ns * 1e6
    }
}

fn tightest(clock: Clock, os_ns: &mut impl FnMut() -> u64) -> (u64, u64) {
    let mut best = (0, 0);
    let mut width = u64::MAX;
    for _ in 0..64 {
        let before = clock.end();
        let ns = os_ns();
        let after = clock.end();
        if after.since(before) < width {
            width = after.since(before);
            best = (before.0 + width / 2, ns);
        }
    }
    best
}

fn read_cycles(clock: Clock) -> u64 {
    const READS: u64 = 64;
    let mut least = u64::MAX;
    for _ in 0..256 {
        let first = clock.end();
        for _ in 1..READS {
            let _ = core::hint::black_box(clock.end());
        }
        least = least.min(clock.end().since(first) / READS);
    }
    least
}

#[cfg(test)]
mod tests {
    use super::{Calibration, Scale};
    use crate::Clock;

    #[test]
    fn scale_keeps_long_spans_exact_to_a_part_in_a_billion() {
        let scale = Scale::from_span(2_445_000_000, 1_000_000_000).expect("both are positive");
        assert_eq!(scale.ns(2_445), 1_000);
        let day = 86_400 * 2_445_000_000u64;
        assert!(scale.ns(day).abs_diff(86_400_000_000_000) < 86_400);
        assert!((scale.cycles_per_s() - 2.445e9).abs() < 2.0);
        assert!((scale.ns_f64(244.5) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn scale_refuses_nothing_per_something() {
        assert_eq!(Scale::from_span(0, 1), None);
        assert_eq!(Scale::from_span(1, 0), None);
    }

    #[test]
    fn calibration_of_an_os_clock_is_the_identity() {
        fn still() -> u64 {
            7
        }
        let calibration = Calibration::measure(Clock::Os(still), &mut still, 0);
        assert_eq!(calibration.scale, Scale::NANOSECONDS);
        assert_eq!(calibration.read_cycles, 0);
    }

    #[test]
    fn reports_drift_in_parts_per_million_of_the_os_clock() {
        let calibration = Calibration { clock: Clock::Counter, scale: Scale::NANOSECONDS, read_cycles: 0 };
        let drift = calibration.drift_ppm((0, 0), (1_000_050, 1_000_000));
        assert!((drift - 50.0).abs() < 1e-6, "{drift}");
    }
}
