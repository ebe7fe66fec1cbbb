//! Exchange frames to market state, without an OS: books that carry their proof, tickers, candles, mark prices,
//! positions and own orders.
//!
//! One thread owns an [`Engine`] and calls it with frames and times; other threads read its [`Board`](board::Board).
//! Time is an argument: nanoseconds of the Unix epoch. After [`Engine::new`] nothing is allocated. Numbers are integers:
//! a [`Decimal`](tt_model::Decimal) as the venue wrote it, then whole steps of the instrument; the engine rejects what
//! does not fit exactly.
//!
//! ```
//! use tt_market::candle::CandleSource;
//! use tt_market::{Applied, BookUpdate, Capacity, Engine, InstrumentSpec, Proof, Request};
//! use tt_meter::Off;
//! use tt_model::{Decimal, Nanos};
//! use tt_venue::{Symbol, Venue};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let update = |id: u64, bid: &str| {
//!     let head = format!(r#""e":"depthUpdate","E":1700000000000,"s":"BTCUSDT","U":{id},"u":{id}"#);
//!     format!(r#"{{{head},"b":[["60000.00","{bid}"]],"a":[]}}"#)
//! };
//! let venue = Venue::of_frame(update(8, "2").as_bytes()).expect("one venue sends such frames");
//! let mut engine = Engine::new(Capacity { instruments: 1, ..Capacity::default() });
//! let instrument = engine.add_instrument(InstrumentSpec {
//!     venue,
//!     symbol: Symbol::new(b"BTCUSDT")?,
//!     tick_size: Decimal::new(1, 2),
//!     lot_size: Decimal::new(1, 5),
//!     depth_max: None,
//!     candles: CandleSource::Trades,
//! })?;
//! let board = engine.board(); // Clone it for other threads.
//!
//! // A connection. The engine requests what it needs, here a snapshot, which the caller fetches.
//! let mut now = Nanos::from_millis(1_700_000_000_000);
//! let connection = engine.open_connection(venue, now)?;
//! engine.subscribe(connection, instrument, now)?;
//! assert_eq!(engine.poll_request(now), Some(Request::FetchSnapshot { instrument }));
//!
//! // Until it arrives, the book is `Syncing` and updates are buffered.
//! let applied = engine.handle_frame(now, connection, update(8, "2").as_bytes(), &mut Off);
//! assert_eq!(applied, Ok(Applied::Book { instrument, update: BookUpdate::Buffered }));
//! now = now.saturating_add(Nanos::from_millis(30));
//! let body = br#"{"lastUpdateId":7,"bids":[["60000.00","1"]],"asks":[["60000.01","3"]]}"#;
//! engine.handle_snapshot(now, instrument, body, &mut Off)?;
//! let top = board.top_of_book(instrument).expect("an instrument of this engine");
//! assert_eq!((top.update_id, top.status.proof), (8, Proof::Sequence));
//!
//! // Update 9 is lost: the book is stale at once, what follows is buffered, and another snapshot is due.
//! let applied = engine.handle_frame(now, connection, update(10, "4").as_bytes(), &mut Off);
//! assert_eq!(applied, Ok(Applied::Book { instrument, update: BookUpdate::Buffered }));
//! assert_eq!(board.top_of_book(instrument).map(|top| top.status.proof), Some(Proof::Stale));
//! now = now.saturating_add(Nanos::from_secs(5));
//! assert_eq!(engine.poll_request(now), Some(Request::FetchSnapshot { instrument }));
//!
//! // At least ten times a second: silence and retries. At its end, the connection's books are stale.
//! engine.handle_timeout(now);
//! engine.close_connection(connection, now);
//! # Ok(())
//! # }
//! ```
//!
//! Every dropped frame has one [`DropReason`], and `frames = applied + drops` holds after every call
//! ([`VenueCounters`](counters::VenueCounters)).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod backlog;
pub mod board;
mod book;
pub mod candle;
mod capacity;
pub mod changes;
mod connection;
mod continuity;
pub mod counters;
mod drop_reason;
mod engine;
pub mod fills;
mod instrument;
mod l3_book;
mod listing;
pub mod mark;
pub mod orders;
mod positions;
mod proof;
mod quote;
mod scale;
mod seen_trades;
mod state_hash;
mod symbol_table;
pub mod venue_state;

pub use book::BookSide;
pub use capacity::Capacity;
pub use connection::ConnectionId;
pub use drop_reason::DropReason;
pub use engine::{AddError, Applied, BookUpdate, Difference, Engine, Incident, IncidentCause, Request};
pub use instrument::InstrumentSpec;
pub use l3_book::RestingOrder;
pub use proof::{BookStatus, Proof};
