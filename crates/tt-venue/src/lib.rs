//! Frames and rules of trading venues: WebSocket frames to typed events, without an OS.
//!
//! Each [`Venue`] has [`rules`] as data and readers of its frames. [`Venue::parse`] reads a frame into an
//! [`Event`](event::Event), whose lists are in an [`EventBuffer`](event::EventBuffer) that never grows. Numbers are
//! integers from the first digit on: a [`Decimal`](tt_model::Decimal) as the venue wrote it.

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
mod symbol;
mod time;
mod venues;

pub use checksum::{BookLevel, Checksum, LevelChecksum, OrderChecksum};
pub use detection::{Detection, FrameStart};
pub use error::ParseError;
pub use symbol::Symbol;
pub use venues::{Origin, Venue};
