//! Reports of what `bench` measures, tables of kept results, and the judgement of contributed ones.
//!
//! * [`report`] turns samples into rows with intervals, tables, CSV, JSON and `report.html`.
//! * [`verify`] says whether a contributed result can be kept.
//! * [`tables`] generates the tables of BENCHMARKING.md from kept files.
//!
//! `bench` contains what measures. The crates are separate so that only measured code is optimised for speed.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

pub mod report;
pub mod tables;
pub mod verify;
