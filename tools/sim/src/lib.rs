//! Venue simulator: a scripted true book per instrument, served as real WebSocket and REST on loopback in the words
//! of Binance (spot, USD-M), Kraken v2, OKX v5, Bybit v5 and Deribit.
//!
//! It shares no code with the engine that reads it, so that it cannot repeat the engine's mistakes: digits, checksums
//! and sequence numbers are its own. Everything about the market follows from one seed; clocks, clients and faults
//! change whether and when something is sent, never the true book. Fields are from the venues' documentation.

#![forbid(unsafe_code)]

mod account;
mod binance;
mod bybit;
mod chain;
mod crc;
mod deribit;
mod digits;
mod exchange;
pub mod faults;
mod instrument;
mod kraken;
mod market;
mod offline;
mod okx;
mod orders;
mod pace;
mod recording;
mod rng;
mod running;
mod script;
mod server;
mod singles;

pub use account::{API_KEY, API_KEY_ED25519, API_PRIVATE_KEY, API_SECRET, PASSPHRASE};
pub use exchange::Stats;
pub use instrument::{Instrument, LISTEN_KEY, Standing, Venue};
pub use market::{Fault, SnapshotFault};
pub use offline::{Offline, Received};
pub use recording::{RecordedFrame, RecordingConfig, record, record_each};
pub use running::{Config, Running, start};
pub use script::{Script, Side, Step, Trade, TrueBook};
pub use singles::{OrderLevel, OrderWindow, SingleOrder};
