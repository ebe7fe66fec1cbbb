//! Kraken's frames in the order of keys in which they are sent.

use crate::scan::Cursor;
use crate::{BookDelta, BookSnapshot, Control, Event, EventBuffer, Levels};

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(super) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"channel\":\"")?;
    if cursor.passes(b"heartbeat\"}") {
        cursor.end()?;
        return Some(Event::Control(Control::Heartbeat));
    }
    cursor.literal(b"book\",\"type\":\"")?;
    let is_update = cursor.passes(b"update\"");
    if !is_update {
        cursor.literal(b"snapshot\"")?;
    }
    cursor.literal(b",\"data\":[{\"symbol\":\"")?;
    let symbol = cursor.symbol()?;
    let mut levels = Levels::default();
    cursor.literal(b",\"bids\":[")?;
    cursor.named_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",\"asks\":[")?;
    cursor.named_levels(&mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    cursor.literal(b",\"checksum\":")?;
    let checksum = Some(u32::try_from(cursor.whole()?).ok()?);
    cursor.literal(b",\"timestamp\":\"")?;
    let ts_event = cursor.rfc3339()?;
    cursor.literal(b"}]}")?;
    cursor.end()?;
    Some(if is_update {
        Event::BookDelta(BookDelta { symbol, first_id: 0, last_id: 0, previous_id: None, checksum, levels, ts_event })
    } else {
        Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id: 0, checksum, levels, ts_event })
    })
}
