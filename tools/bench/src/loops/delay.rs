//! A known time, to be added where something is measured.

use std::hint::black_box;
use tt_meter::{Clock, Scale};

/// Steps that the calibration times at once, and how often.
const STEPS: u32 = 20_000;
const TRIES: u32 = 25;

/// A chain of dependent instructions as long as was asked for: each begins when the one before it has ended, so that it
/// adds its whole length to what it follows and nothing can overlap with it.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    steps: u32,
    ns: f64,
}

impl Delay {
    /// Calibrates a delay of about `ns` nanoseconds on the calling thread's core: the quickest of many tries.
    #[must_use]
    pub fn calibrate(clock: Clock, scale: Scale, ns: f64) -> Self {
        let quickest = (0..TRIES).map(|_| {
            let start = clock.end();
            black_box(chain(STEPS, black_box(1)));
            clock.end().since(start)
        });
        let step_ns = scale.ns_f64(quickest.min().unwrap_or(1) as f64) / f64::from(STEPS);
        let steps = (ns / step_ns).round().max(1.0) as u32;
        Self { steps, ns: f64::from(steps) * step_ns }
    }

    /// No time, by the same code: a build with it differs from one with a delay by the delay alone.
    pub const NONE: Self = Self { steps: 0, ns: 0.0 };

    /// How long it is, nanoseconds.
    #[must_use]
    pub const fn ns(self) -> f64 {
        self.ns
    }

    /// Spends the time once `after` is known; what it returns is known when the time is over.
    #[must_use]
    #[inline(always)]
    pub fn spend(self, after: u64) -> u64 {
        chain(self.steps, after)
    }
}

#[inline(always)]
fn chain(steps: u32, seed: u64) -> u64 {
    let mut word = seed;
    for _ in 0..steps {
        // The shift keeps the compiler from folding many multiplications into one.
        word = (word ^ word >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::Delay;
    use tt_meter::{Calibration, Clock};

    /// Twice as long is twice as long: measured, not computed.
    #[test]
    fn a_longer_delay_takes_as_much_longer() {
        let origin = std::time::Instant::now();
        let mut os_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap();
        let Calibration { clock, scale, .. } = Calibration::measure(Clock::new(|| 0), &mut os_ns, 20_000_000);
        let least = |delay: Delay| {
            let once = |_| {
                let start = clock.end();
                std::hint::black_box(delay.spend(std::hint::black_box(start.0)));
                clock.end().since(start)
            };
            scale.ns_f64((0..2_000).map(once).min().unwrap() as f64)
        };
        let longer = |_| {
            let delays = [2_000.0, 4_000.0].map(|ns| Delay::calibrate(clock, scale, ns));
            least(delays[1]) - least(delays[0])
        };
        // A core may change its frequency between calibration and use. It does not do so every time.
        let tries: Vec<f64> = (0..20).map(longer).collect();
        assert!(tries.iter().any(|longer| (1_900.0..2_100.0).contains(longer)), "{tries:?} ns for 2,000 ns");
    }
}
