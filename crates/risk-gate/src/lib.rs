//! A pre-trade gate on its own thread: order intents in and verdicts out through single-producer single-consumer rings.
//!
//! ```text
//! strategy --OrderIntent--> gate thread --Verdict--> strategy
//! venue -------Report-----> gate thread                          (fills, cancels, rejects)
//! any thread --limits, kill switches--> gate thread
//! ```
//!
//! [`start`] takes a [`tt_risk::Gate`] with its limits, for example from a [`LimitsFile`], and returns the [`Running`]
//! gate and its [`Ports`]. Before each intent the thread applies pending reports and changes of limits, and reads
//! the instrument's newest [`Quote`]. It sleeps while its rings are empty. Other threads read what it publishes through
//! [`Board`], and control it through [`Control`]. The crate never sends an order.
//!
//! See `examples/intents.rs` for a complete program.

#![forbid(unsafe_code)]

mod board;
pub mod config;
mod control;
mod limits_file;
mod modes;
mod ports;
mod quote;
mod runner;
mod status;
#[cfg(test)]
mod tests;

pub use board::{AccountStatus, Board, BoardRow, Judgement, Tally, Timings};
pub use control::{Control, SetLimitsError};
pub use limits_file::{Instrument, LimitsFile};
pub use modes::Modes;
pub use ports::{IntentSender, Ports, ReportSender, VerdictReceiver};
pub use quote::{Quote, QuoteSource};
pub use runner::{GateConfig, Running, start};
