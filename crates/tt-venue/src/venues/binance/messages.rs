//! Binance's frames to events.

mod account;
mod general;
mod scan;
mod shapes;

use crate::error::ParseError;
use crate::event::{BookSnapshot, Event, EventBuffer};

pub(in crate::venues) use general::parse as general;
pub(super) use general::parse_snapshot as parse_snapshot_general;
pub(in crate::venues) use scan::parse as scan;

/// Reads what spot and USD-margined futures do not send, or not in their usual order.
pub(in crate::venues) fn shapes(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    if let Some(event) = scan::parse_coinm(frame, buffer) {
        return Some(event);
    }
    buffer.clear();
    shapes::parse(frame, buffer)
}

/// Reads the body of `GET /api/v3/depth` or `GET /fapi/v1/depth`.
///
/// # Errors
/// A [`ParseError`] that [`is_malformed`](ParseError::is_malformed), or `VenueError` if the body holds an error.
pub(super) fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    buffer.clear();
    match scan::parse_snapshot(body, buffer) {
        Some(snapshot) => Ok(snapshot),
        None => general::parse_snapshot(body, buffer),
    }
}
