//! Binance spot and USD-margined futures: frames, REST snapshots, and the rules of their update ids.

mod account;
mod general;
pub mod rules;
mod scan;
mod shapes;

use crate::{BookSnapshot, Event, EventBuffer, Fault};

pub use general::{parse as parse_general, parse_snapshot as parse_snapshot_general};

/// Reads one WebSocket frame, wrapped in its stream's name or not.
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

/// What USD-M and spot do not send, or not in their usual order.
#[inline(never)]
fn parse_other(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, Fault> {
    buffer.clear();
    if let Some(event) = scan::parse_coinm(frame, buffer) {
        return Ok(event);
    }
    buffer.clear();
    match shapes::parse(frame, buffer) {
        Some(event) => Ok(event),
        None => general::parse(frame, buffer),
    }
}

/// Reads the body of `GET /api/v3/depth` or `GET /fapi/v1/depth`.
///
/// # Errors
/// A [`Fault`] that [`is_malformed`](Fault::is_malformed), or `VenueError` if the body holds an error.
pub fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, Fault> {
    buffer.clear();
    match scan::parse_snapshot(body, buffer) {
        Some(snapshot) => Ok(snapshot),
        None => general::parse_snapshot(body, buffer),
    }
}
