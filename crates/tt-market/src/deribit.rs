//! Deribit: JSON-RPC 2.0 over WebSocket.

mod account;
mod general;
pub mod rules;
mod scan;
mod shapes;

use crate::{Event, EventBuffer, Fault};

pub use general::parse as parse_general;

/// Reads one WebSocket frame.
///
/// # Errors
/// A [`Fault`] that [`is_malformed`](Fault::is_malformed), `UnknownTopic`, `Refused` or `VenueError`.
#[inline]
pub fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, Fault> {
    buffer.clear();
    match scan::parse(frame, buffer) {
        Some(event) => Ok(event),
        None => parse_other(frame, buffer),
    }
}

/// What is rarer, or not in its usual order.
#[inline(never)]
fn parse_other(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, Fault> {
    buffer.clear();
    match shapes::parse(frame, buffer) {
        Some(event) => Ok(event),
        None => general::parse(frame, buffer),
    }
}
