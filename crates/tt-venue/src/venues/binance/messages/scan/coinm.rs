//! COIN-M's best levels and books, which name the pair after the symbol; the rest is as on USD-M.

use crate::event::{BookDelta, BookTicker, Event, EventBuffer, Levels};
use crate::scan::Cursor;
use tt_model::Nanos;

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues::binance) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    let wrapped = cursor.passes(b"{\"stream\":\"");
    if wrapped {
        cursor.text()?;
        cursor.literal(b",\"data\":{")?;
    } else {
        cursor.literal(b"{")?;
    }
    let event = if cursor.passes(b"\"u\":") {
        Event::BookTicker(book_ticker(&mut cursor)?)
    } else {
        cursor.literal(b"\"e\":\"depthUpdate\",\"E\":")?;
        Event::BookDelta(book_delta(&mut cursor, buffer)?)
    };
    cursor.literal(b"}")?;
    if wrapped {
        cursor.literal(b"}")?;
    }
    cursor.end()?;
    Some(event)
}

fn book_ticker(cursor: &mut Cursor<'_>) -> Option<BookTicker> {
    let update_id = cursor.whole()?;
    cursor.literal(b",\"e\":\"bookTicker\",\"s\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"ps\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"b\":\"")?;
    let bid_px = cursor.quoted()?;
    cursor.literal(b",\"B\":\"")?;
    let bid_qty = cursor.quoted()?;
    cursor.literal(b",\"a\":\"")?;
    let ask_px = cursor.quoted()?;
    cursor.literal(b",\"A\":\"")?;
    let ask_qty = cursor.quoted()?;
    cursor.literal(b",\"T\":")?;
    let ts_event: Nanos = cursor.unix_ms_or_us()?;
    cursor.literal(b",\"E\":")?;
    cursor.any_time()?;
    Some(BookTicker { symbol, update_id, bid_px, bid_qty, ask_px, ask_qty, ts_event })
}

fn book_delta(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<BookDelta> {
    let ts_event = cursor.unix_ms_or_us()?;
    cursor.literal(b",\"T\":")?;
    cursor.any_time()?;
    cursor.literal(b",\"s\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"ps\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"U\":")?;
    let first_id = cursor.whole()?;
    cursor.literal(b",\"u\":")?;
    let last_id = cursor.whole()?;
    cursor.literal(b",\"pu\":")?;
    let previous_id = Some(cursor.whole()?);
    cursor.literal(b",\"b\":[")?;
    let mut levels = Levels::default();
    cursor.quoted_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",\"a\":[")?;
    cursor.quoted_levels(&mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    Some(BookDelta { symbol, first_id, last_id, previous_id, checksum: None, levels, ts_event })
}
