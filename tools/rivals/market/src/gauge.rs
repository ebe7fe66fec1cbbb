//! What a run is measured by: a clock, or an onlooker who steps through it.

use nix::sys::signal::{Signal, raise};
use tt_meter::{Calibration, Stamp};

/// Marks the ends of what is measured.
#[derive(Debug)]
pub(crate) enum Gauge {
    /// Nanoseconds.
    Clock(Calibration),
    /// Nothing: what comes before a count, so that memory and caches of the allocator are there.
    Off,
    /// The process stops at both ends, and whoever traces it counts the instructions between them.
    Steps,
}

impl Gauge {
    /// Where the time begins.
    #[inline]
    pub(crate) fn begin(&self) -> Stamp {
        match self {
            Self::Clock(calibration) => calibration.clock.start(),
            Self::Off => Stamp::default(),
            Self::Steps => stop(),
        }
    }

    /// Nanoseconds since `begin`; zero where there is no clock.
    #[inline]
    pub(crate) fn end(&self, begin: Stamp) -> f64 {
        match self {
            Self::Clock(calibration) => calibration.scale.ns_f64(calibration.clock.end().since(begin) as f64),
            Self::Off => 0.0,
            Self::Steps => {
                stop();
                0.0
            }
        }
    }
}

#[cold]
fn stop() -> Stamp {
    // Without a tracer the child stays stopped; the signal itself cannot fail.
    let _ = raise(Signal::SIGSTOP);
    Stamp::default()
}
