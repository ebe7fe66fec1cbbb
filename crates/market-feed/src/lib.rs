//! Market-data feeds: venue connections, REST requests, recording and replay around [`tt_market::Engine`].
//!
//! Each feed has a thread with its own runtime, on which the engine is called in place, frame by frame. Other threads
//! read what it publishes through a [`Reader`] and never make it wait.
//!
//! ```
//! use std::time::Duration;
//!
//! use market_feed::{FeedConfig, MarketConfig, Venue, start};
//!
//! # fn main() -> anyhow::Result<()> {
//! // A simulated venue on loopback. For the real one: `FeedConfig::public(venue, symbols)`.
//! let simulator = sim::start(sim::Config { instruments: 1, ..sim::Config::default() })?;
//! let simulated = sim::Venue::ALL[2];
//! let venue = Venue::find(simulated.name()).expect("a venue of this name");
//! let streams = format!("ws://{}{}", simulator.address(simulated), simulated.streams_path()).parse()?;
//! let symbols = simulator.instruments(simulated).into_iter().map(|listed| listed.symbol).collect();
//! let feed = FeedConfig::at(venue, streams, symbols);
//!
//! let runner = start(MarketConfig { feeds: vec![feed], ..MarketConfig::default() })?;
//! let reader = runner.reader();
//! assert!(reader.wait(Duration::from_secs(30), || reader.all_verified()));
//! for instrument in reader.instruments() {
//!     let top = reader.top_of_book(instrument.id).expect("a followed instrument");
//!     println!("{} {:?} {:?} {}", instrument.name, top.bid, top.ask, top.status.proof.name());
//! }
//! runner.stop();
//! simulator.stop();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// What the doctor alone uses.
#![cfg_attr(not(feature = "doctor"), allow(dead_code))]

mod account;
mod address;
mod arrivals;
mod backoff;
#[cfg(feature = "config")]
pub mod config;
mod credentials;
mod dial;
#[cfg(feature = "doctor")]
pub mod doctor;
mod feed;
mod feeds;
mod format;
mod frame_timings;
mod instruments;
mod intake;
mod listener;
mod listing;
mod liveness;
#[doc(hidden)]
pub mod offline; // for the market world
mod random;
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
mod updates;

pub use arrivals::SilentTopic;
pub use credentials::Credentials;
pub use feeds::Feeds;
pub use format::level_text;
pub use frame_timings::{Row, Times};
pub use instruments::Instrument;
pub use listener::{BookChange, Event, Listener};
pub use reader::Reader;
pub use record_format::{InstrumentSetup, parse_instrument, parse_steps, parse_venue};
pub use replay::{Replay, ReplayedInstrument, Run, hash_runs};
pub use runner::{Runner, start};
pub use settings::{CandlesKept, FeedConfig, MarketConfig, OpenPosition, Publishing, RecordingConfig, Timing};
pub use snapshot::{account_counts, ingest_rows};
pub use startup::{Startup, StartupStep, Unreached};
pub use status::FeedStatus;
pub use topics::{Refusal, topic_of_name};

// What is needed to follow a venue and to read its books.
pub use tt_market::board::{Board, Depth, TickerState, TopOfBook, TradePrint};
pub use tt_market::changes::{BookEventKind, LevelChange};
pub use tt_market::venue_state::LiquidationState;
pub use tt_market::{BookSide, BookStatus, Proof, RestingOrder};
pub use tt_model::{Decimal, InstrumentId, Nanos, Price, Qty};
pub use tt_venue::rules::TopicKind;
pub use tt_venue::{BookLevel, Venue};
