//! Coinbase Exchange: frames of its public feed. Its level 2 book numbers nothing, so that nothing can verify
//! it; the book of all orders is numbered.

mod general;
pub(crate) mod rules;
mod scan;
mod shapes;

use crate::{Event, EventBuffer, Fault};

pub use general::{parse as parse_general, parse_snapshot};

/// Reads one WebSocket frame.
///
/// # Errors
/// A [`Fault`] that [`is_malformed`](Fault::is_malformed), `UnknownTopic` or `Refused`.
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
