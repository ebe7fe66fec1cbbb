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

mod admin;
mod board;
mod clocks;
pub mod config;
mod control;
mod dead_man;
mod durable;
mod input;
mod journal;
mod levels;
mod modes;
mod ports;
mod quote;
mod runner;
mod sender;
mod status;
mod sweep;
#[cfg(test)]
mod tests;

pub use admin::{Admin, Scopes, limits_text};
pub use board::{AccountStatus, Board, BoardRow, Judgement, Tally, Timings};
pub use control::{Acknowledged, Cancelled, Control, SetLimitsError};
pub use dead_man::DeadMan;
pub use durable::{DurableGate, Recovered};
pub use gate_limits::{Change, Excess, Instrument, LimitsFile, Sense, utc_text};
pub use input::{Answer, Difference, Input, StatedOrder, Statement, perform};
pub use journal::recovery::{Snapshot, excesses, recover, snapshot};
pub use journal::replay::{Divergence, JournalReader, JournalRecord, Replay, Replayed, open as open_journal, replay};
pub use journal::{Durability, JournalConfig, JournalPosition, Keeper, KeeperThread, Storage};
pub use modes::{Modes, ModesFile};
pub use ports::{CancelReceiver, IntentSender, Ports, ReportSender, VerdictReceiver};
pub use quote::{Quote, QuoteSource};
pub use runner::{GateConfig, Running, start};
pub use sender::{NotSent, Sender};
