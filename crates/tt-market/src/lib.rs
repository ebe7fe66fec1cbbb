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
//! Numbers are integers from the first digit on: a [`Decimal`] as the venue wrote it, then whole steps of the
//! instrument; what does not fit exactly is rejected.
//!
//! The ten nouns: a [`Venue`] sends frames over a connection ([`ConnectionId`]); a frame parses into an [`Event`]
//! whose levels stand in the [`EventBuffer`]; a [`Symbol`] leads to the instrument ([`InstrumentSpec`]); its book has a
//! [`Standing`] with a [`Proof`]; other threads read the [`Board`]; a dropped frame has one [`Fault`], and
//! [`VenueCounters`] close: frames = applied + drops.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arbiter;
mod backlog;
pub mod binance;
mod board;
mod book;
pub mod bybit;
mod candle;
mod capacity;
pub mod coinbase_advanced;
pub mod coinbase_exchange;
mod connection;
mod continuity;
mod counters;
mod decimal;
pub mod deribit;
mod engine;
mod event;
mod fault;
mod fields;
mod fills;
pub mod hyperliquid;
mod instrument;
mod json;
pub mod kraken;
mod listing;
mod mark;
pub mod okx;
mod orders;
mod positions;
mod proof;
mod quote;
mod resting;
pub mod rules;
mod scan;
mod seen_trades;
mod state_hash;
mod symbol;
mod symbol_table;
mod time;
mod venue;
mod venue_state;

pub use arbiter::{Arbiter, ArbiterCounters, Arbitrated, Feed};
pub use board::{Board, DEPTH, Depth, TRADES, TickerState, TopOfBook, TradePrint};
pub use book::{BookLevel, BookSide};
pub use candle::{Candle, CandleSource, TIMEFRAMES_MAX};
pub use capacity::Capacity;
pub use connection::ConnectionId;
pub use counters::{CLOCKS_APART_MAX, Counters, VenueCounters};
pub use decimal::{DECIMALS_MAX, Decimal, Scale};
pub use engine::{AddError, Applied, Engine, Request};
pub use event::{
    AggressorSide, Balance, BookDelta, BookOrder, BookOrders, BookSnapshot, BookTicker, Control, Coverage, Event,
    EventBuffer, Execution, Fill, Level, Levels, Liquidation, MarkPrice, OrderAction, OrderId, OrderList,
    OrderListStatus, OrderStatus, OrderUpdate, PositionLeg, PositionUpdate, Ticker, Trade, VenueCandle,
};
pub use fault::Fault;
pub use fills::FillState;
pub use instrument::InstrumentSpec;
pub use mark::{Contract, ContractUnit, Mark, Position, PositionMark};
pub use orders::OrderState;
pub use proof::{Proof, Standing};
pub use rules::Rules;
pub use symbol::Symbol;
pub use venue::Venue;
pub use venue_state::{LiquidationState, VenueCandleState};
