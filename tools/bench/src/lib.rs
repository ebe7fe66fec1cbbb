//! Timed rows, the latency floor of the machine, and their reports.
//!
//! * [`machine`] measures the machine alone: caches, the kernel's calls, lines between two cores, stalls.
//! * [`loops`] times events through the ring between two cores.
//! * [`report`] turns samples into rows with intervals, tables, CSV, JSON and `report.html`. It measures nothing, and is
//!   in a crate that is optimised for size, as [`verify`] is.
//! * [`harness`] runs one row: block by block, with every answer compared to a reference.
//! * [`rows`] holds the rows of the three engines. A row calls the shipped function.
//! * [`runner`] times all rows in turn; [`count`] counts instructions instead of time.
//! * [`decomposition`] measures each term of the ring's median by intervention, in fresh processes.
//! * [`ring`] is `truetick bench ring`, [`floor`] is `truetick floor`, [`why`] is `truetick why`.
//!
//! The command line is in the `truetick` crate; it fills [`Options`], [`ring::Options`], [`floor::Options`] and
//! [`why::Options`].

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

pub mod count;
pub mod decomposition;
pub mod floor;
pub mod harness;
pub mod loops;
pub mod machine;
pub mod ring;
pub mod rows;
pub mod runner;
pub mod why;

pub use bench_report::{report, verify};
pub use harness::cpus::cpu_pair;
pub use harness::exclusive::{BusyError, STATUS_BUSY, WhenBusy, exit_code};
pub use harness::results::Destination;
pub use rows::market::streams::{Programs, echo};
pub use rows::registry::Selection;
pub use runner::{Options, run};
