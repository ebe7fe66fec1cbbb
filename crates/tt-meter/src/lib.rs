//! Timing of code that takes nanoseconds: the CPU's counter, calibration, stages, a sampling probe and a histogram.
//!
//! * [`Clock`] reads the CPU's counter ([`Stamp`]), or a clock of the caller where this crate knows no counter.
//! * [`Calibration`] measures the [`Scale`] from cycles to nanoseconds and the cost of one read.
//! * [`Probe`] is an argument of every engine's `handle_*`: [`Off`], or a [`Sampler`] that times one pass in N.
//! * [`Histogram`] has a fixed size, merges and copies; its quantiles are within 1/32 of the value.
//!
//! A stage is often shorter than ten reads of the clock. Therefore the sampler keeps only a sum for each stage, which
//! gives the mean, and a histogram of whole passes, taken from passes in which no stage was timed.
//!
//! # Example
//!
//! ```
//! use std::time::Instant;
//! use tt_meter::{Calibration, Clock, Probe, Sampler, Stage};
//!
//! /// An engine times its stages by the probe that its caller passes.
//! fn handle(bytes: &[u8], probe: &mut impl Probe) -> u64 {
//!     probe.begin();
//!     let number: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
//!     probe.mark(Stage::Parse);
//!     let answer = number * 2;
//!     probe.mark(Stage::Build);
//!     probe.end();
//!     answer
//! }
//!
//! let started = Instant::now();
//! let mut os_ns = || started.elapsed().as_nanos() as u64;
//! let calibration = Calibration::measure(Clock::new(|| 0), &mut os_ns, 1_000_000);
//!
//! let mut sampler = Sampler::new(calibration.clock, 1);
//! for _ in 0..100 {
//!     assert_eq!(handle(b"ab", &mut sampler), 390);
//! }
//! let stages = sampler.stages();
//! assert_eq!((stages.passes, stages.pass.count()), (100, 50));
//! let parse_ns = stages.mean_ns(Stage::Parse, &calibration).expect("half of the passes time their stages");
//! assert!(parse_ns >= 0.0);
//! ```

#![no_std]

mod calibration;
mod clock;
mod counter;
mod histogram;
mod probe;
mod sampler;

pub use calibration::{Calibration, Scale};
pub use clock::{Clock, Stamp};
pub use histogram::Histogram;
pub use probe::{Off, Probe, Stage};
pub use sampler::{PassParts, Sampler, StageTotal, Stages};
