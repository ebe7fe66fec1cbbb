//! Exchange frames to market state, without an OS: books that carry their proof, tickers, candles, mark prices,
//! positions and own orders.
//!
//! The loop of the caller, for each connection on one thread:
//!
//! ```text
//! let connection = engine.open_connection(venue, now)?;    a new epoch: frames of the old connection are dropped
//! engine.subscribe(connection, instrument, now)?;          the book is `Syncing`
//! loop {
//!     engine.handle_frame(ts_recv, connection, frame, probe)   Ok(what changed) or Err(why it was dropped)
//!     while let Some(request) = engine.poll_request(now)       fetch a snapshot, or subscribe again
//!         engine.handle_snapshot(now, instrument, body, probe) or engine.snapshot_failed(instrument, now)
//!     engine.handle_timeout(now)                               at least ten times a second: silence, retries
//! }
//! engine.close_connection(connection, now)                 its books are `Stale` before the next read
//! ```
//!
//! Time is an argument: nanoseconds of the Unix epoch, never read here. After `Engine::new` nothing is allocated.
//! Numbers are integers from the first digit on: a [`Decimal`](tt_model::Decimal) as the venue wrote it, then whole steps of the
//! instrument; what does not fit exactly is rejected.
//!
//! The ten nouns: a [`Venue`](tt_venue::Venue) sends frames over a connection ([`ConnectionId`]); a frame parses into an [`Event`](tt_venue::event::Event)
//! whose levels stand in the [`EventBuffer`](tt_venue::event::EventBuffer); a [`Symbol`](tt_venue::Symbol) leads to the instrument ([`InstrumentSpec`]); its book has a
//! [`BookStatus`] with a [`Proof`]; other threads read the [`Board`]; a dropped frame has one [`DropReason`], and
//! [`VenueCounters`] close: frames = applied + drops.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod backlog;
mod board;
mod book;
mod candle;
mod capacity;
mod connection;
mod continuity;
mod counters;
mod drop_reason;
mod engine;
mod fills;
mod instrument;
mod l3_book;
mod listing;
mod mark;
mod orders;
mod positions;
mod proof;
mod quote;
mod scale;
mod seen_trades;
mod state_hash;
mod symbol_table;
mod venue_state;

pub use board::{Board, DEPTH, Depth, TRADES, TickerState, TopOfBook, TradePrint};
pub use book::BookSide;
pub use candle::{Candle, CandleSource, TIMEFRAMES_MAX};
pub use capacity::Capacity;
pub use connection::ConnectionId;
pub use counters::{CLOCKS_APART_MAX, Counters, VenueCounters};
pub use drop_reason::DropReason;
pub use engine::{AddError, Applied, BookUpdate, Engine, Request};
pub use fills::FillState;
pub use instrument::InstrumentSpec;
pub use mark::{Contract, Mark, Position, PositionMark};
pub use orders::OrderState;
pub use proof::{BookStatus, Proof};
pub use venue_state::{LiquidationState, VenueCandleState};
