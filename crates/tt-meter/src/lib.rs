//! Measuring without an OS: the clock, the stages that all engines share, the probe that times them, and a histogram.
//!
//! * [`Clock`] reads the machine's counter ([`Stamp`]), or a clock that the edge hands in where there is none.
//! * [`Calibration`] finds the [`Scale`] from cycles to nanoseconds and what one read costs.
//! * [`Probe`] is the argument of every engine's `handle_*`: [`Off`], or a [`Sampler`] that times every Nth pass.
//! * [`Histogram`] has a fixed size, merges and copies; its quantiles are within 1/32 of the value.
//!
//! A stage is often shorter than ten reads of the clock. Therefore the sampler keeps only sums of single stages, from
//! which means follow, and a histogram of whole passes alone, taken on passes in which no stage was stamped.

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
pub use sampler::{Sampler, StageTotal, Stages};
