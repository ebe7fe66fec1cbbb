//! The cold half of measuring: what was sampled becomes rows with intervals, and rows become text, CSV and JSON.
//!
//! * [`Samples`] is the raw material of one row: blocks of values, nothing removed.
//! * [`Row`] is what it says: mean with a 95 % interval, quantiles where enough samples lie above, the [`Published`]
//!   figure beside it, and a [`Mark`] that says which is better.
//! * [`Environment`] is the machine, the build and what disturbed the run. No row is written without it.
//! * [`ring::RingResult`] is what the ring's own bench found out.
//! * [`Report`] writes all of it to any `impl io::Write`: [`Report::write_table`], [`Report::write_json`],
//!   [`Samples::write_csv`].
//! * [`Figures`] is what a run knows beyond its rows, for the figures of `report.html` and of the page;
//!   [`Document`] writes both.
//!
//! This crate measures nothing and reads no clock.

#![forbid(unsafe_code)]

mod aim;
pub mod assets;
mod bootstrap;
mod distribution;
mod document;
mod environment;
mod figures;
pub mod floor;
mod report;
pub mod ring;
mod row;
mod samples;
mod table;

pub use aim::{Aim, Sizes, Verdict};
pub use bootstrap::{Bootstrap, Estimate};
pub use distribution::{Binned, Bucket, Cause, Distribution, StallMark};
pub use document::{Document, REPORT_FORMAT};
pub use environment::{Build, Disturbance, Environment, Machine, Timing};
pub use figures::{CauseRate, Class, Control, Figures, JourneyStep, Layout, Sharing, Term, Way};
pub use report::Report;
pub use row::{Mark, Published, Quantiles, Row, RowText, Statistic, Unit};
pub use samples::Samples;
