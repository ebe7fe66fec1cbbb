//! Deribit's frames in the order of keys in which they are sent.

use crate::scan::Cursor;
use crate::{BookDelta, BookSnapshot, Event, EventBuffer, Levels};

/// Reads one frame, `None` where anything is not as expected: books of all levels are scanned.
#[inline]
pub(super) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{\"channel\":\"book.")?;
    cursor.text()?;
    cursor.literal(b",\"data\":{\"type\":\"")?;
    let is_change = cursor.passes(b"change\"");
    if !is_change {
        cursor.literal(b"snapshot\"")?;
    }
    cursor.literal(b",\"timestamp\":")?;
    let ts_event = cursor.unix_ms()?;
    let mut previous_id = None;
    if is_change {
        cursor.literal(b",\"prev_change_id\":")?;
        previous_id = Some(cursor.whole()?);
    }
    cursor.literal(b",\"instrument_name\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"change_id\":")?;
    let last_id = cursor.whole()?;
    let mut levels = Levels::default();
    cursor.literal(b",\"bids\":[")?;
    cursor.marked_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",\"asks\":[")?;
    cursor.marked_levels(&mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    cursor.literal(b"}}}")?;
    cursor.end()?;
    let checksum = None;
    Some(if is_change {
        let first_id = last_id;
        Event::BookDelta(BookDelta { symbol, first_id, last_id, previous_id, checksum, levels, ts_event })
    } else {
        Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id, checksum, levels, ts_event })
    })
}
