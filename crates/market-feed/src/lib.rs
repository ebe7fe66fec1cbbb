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
mod instruments;
mod intake;
mod ledger;
mod listing;
mod liveness;
mod published;
mod reader;
mod recorded;
mod recorder;
mod replaying;
mod rest;
mod runner;
mod settings;
mod snapshot;
mod socket;
mod startup;
mod topics;
#[doc(hidden)]
pub mod unpack; // for the fuzz target inflate

pub use credentials::Credentials;
pub use format::level_text;
pub use instruments::Instrument;
pub use ledger::{Row, Times};
pub use published::FeedStatus;
pub use reader::Reader;
pub use recorded::{ToldInstrument, recorded_instrument, recorded_steps, recorded_venue};
pub use replaying::{Replaying, Run, hash_of};
pub use runner::{Running, start};
pub use settings::{FeedConfig, MarketConfig, OpenPosition, RecordingConfig, Timing};
pub use snapshot::{account_shown, ingest};
pub use startup::{Startup, StartupStep, Unreached};
pub use topics::{Refusal, topic_of_name};
