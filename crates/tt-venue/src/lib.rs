//! Frames and rules of trading venues: WebSocket frames to typed events, without an OS.
//!
//! Each [`Venue`] has [`rules`] as data and readers of its frames. [`Venue::parse`] reads a frame into an
//! [`Event`](event::Event), whose lists are in an [`EventBuffer`](event::EventBuffer) that never grows. Numbers are
//! integers from the first digit on: a [`Decimal`](tt_model::Decimal) as the venue wrote it.
//!
//! ```
//! use tt_venue::Venue;
//! use tt_venue::event::{Event, EventBuffer};
//!
//! let mut buffer = EventBuffer::new(1_000, 100);
//! let frame = br#"{"e":"bookTicker","u":7,"s":"BTCUSDT","b":"10.0","B":"1","a":"10.1","A":"2","T":1700000000000,"E":1700000000000}"#;
//! let venue = Venue::of_frame(frame).expect("one venue sends such frames");
//! let Event::BookTicker(ticker) = venue.parse(frame, &mut buffer)? else { panic!("another event") };
//! assert_eq!((ticker.update_id, ticker.bid_px.to_string()), (7, "10.0".to_owned()));
//! # Ok::<(), tt_venue::ParseError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod checksum;
mod detection;
mod error;
pub mod event;
mod fields;
mod json;
pub mod listing;
pub mod rules;
mod scan;
mod status;
mod symbol;
mod time;
mod venues;

pub use checksum::{BookLevel, Checksum, LevelChecksum, OrderChecksum};
pub use detection::{Detection, FrameStart};
pub use error::ParseError;
pub use symbol::Symbol;
pub use venues::{Origin, Venue};
