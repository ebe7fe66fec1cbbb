//! Market-data feeds: venue connections, REST requests, recording and replay around [`tt_market::Engine`].
//!
//! Each connection has a thread with its own runtime, on which the engine is called in place, frame by frame. Other
//! threads read what it publishes through a [`Reader`].

#![forbid(unsafe_code)]

mod account;
mod backoff;
pub mod config;
mod credentials;
mod dial;
pub mod doctor;
mod feed;
mod format;
mod frame_timings;
mod instruments;
mod intake;
mod listing;
mod liveness;
mod reader;
mod record_format;
mod recorder;
mod replay;
mod rest;
mod runner;
mod settings;
mod snapshot;
mod socket;
mod startup;
mod status;
mod topics;
#[doc(hidden)]
pub mod unpack; // for the fuzz target inflate

pub use credentials::Credentials;
pub use format::level_text;
pub use frame_timings::{Row, Times};
pub use instruments::Instrument;
pub use reader::Reader;
pub use record_format::{InstrumentSetup, parse_instrument, parse_steps, parse_venue};
pub use replay::{Replay, Run, hash_runs};
pub use runner::{Runner, start};
pub use settings::{FeedConfig, MarketConfig, OpenPosition, RecordingConfig, Timing};
pub use snapshot::{account_counts, ingest_rows};
pub use startup::{Startup, StartupStep, Unreached};
pub use status::FeedStatus;
pub use topics::{Refusal, topic_of_name};
