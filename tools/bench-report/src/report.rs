//! Reports: samples become rows with intervals, and rows become text, CSV, JSON and HTML.
//!
//! * [`Samples`] is the raw material of one row: blocks of values, nothing removed.
//! * [`Row`] is what it says: mean with a 95 % interval, quantiles where enough samples lie above, the [`Published`]
//!   figure, and a [`Mark`] that says which is better.
//! * [`Environment`] is the machine, the build and what disturbed the run. No row is written without it.
//! * [`ring::RingResult`] is what the ring's own bench found out, [`why::WhyResult`] the answer of `truetick why`.
//! * [`Report`] writes all of it to any `dyn io::Write`: [`Report::write_table`], [`Report::write_json`],
//!   [`Samples::write_csv`].
//! * [`Figures`] is what a run knows beyond its rows, for the figures of `report.html` and of the page;
//!   [`Document`] writes both.
//!
//! * [`Counts`] is a kept file of instruction counts.
//!
//! This module measures nothing and reads no clock.

mod aim;
mod bootstrap;
mod counts;
mod document;
pub(crate) mod environment;
mod figures;
pub mod floor;
pub mod ring;
mod row;
mod runs;
mod samples;
mod source;
mod summary;
mod table;
mod text_table;
pub mod why;

pub use aim::{Aim, Sizes, Verdict};
pub use bootstrap::{Bootstrap, Estimate};
pub use counts::Counts;
pub use document::Document;
pub use environment::{
    Build, Disturbance, Environment, FORCED, Machine, OTHERS_CPUS_MAX, PRESSURE_PCT_MAX, STEAL_PCT_MAX, Timing,
};
pub use figures::{AblationStep, CauseRate, Class, Figures, Layout, Sharing, Way};
pub use row::{Mark, Published, Quantiles, Row, RowText, Statistic, Unit};
pub use runs::Runs;
pub use samples::Samples;
pub use source::{Part, Source};
pub use summary::Report;
pub use text_table::{Look, TextTable, interval, verdict};
