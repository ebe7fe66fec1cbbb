//! Venue simulator: a scripted true book per instrument, served as real WebSocket and REST on loopback in the words
//! of Binance (spot, USD-M) and Kraken v2.
//!
//! It shares no code with the engine that reads it, so that it cannot repeat the engine's mistakes: digits, checksums
//! and sequence numbers are its own. Everything about the market follows from one seed; clocks, clients and faults
//! change when and whether something is told, never what is true. Fields are from the venues' documentation.

#![forbid(unsafe_code)]

mod binance;
mod crc;
mod digits;
mod exchange;
mod instrument;
mod kraken;
mod market;
mod orders;
mod pace;
mod recording;
mod rng;
mod running;
mod script;
mod server;

pub use binance::LISTEN_KEY;
pub use exchange::Stats;
pub use instrument::{Instrument, Venue};
pub use market::Fault;
pub use recording::{RecordedFrame, RecordingConfig, record};
pub use running::{Config, Running, start};
pub use script::{Script, Side, Step, Trade, TrueBook};
