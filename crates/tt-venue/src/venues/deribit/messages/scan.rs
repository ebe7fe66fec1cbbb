//! Deribit's frames in the order of keys in which they are sent.

use crate::event::{BookDelta, BookSnapshot, Event, EventBuffer, Levels};
use crate::scan::Cursor;
use crate::symbol::Symbol;
use tt_model::Nanos;

/// Reads one frame, `None` where anything is not as expected: books of all levels are scanned.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{\"channel\":\"book.")?;
    cursor.text()?;
    cursor.literal(b",\"data\":{")?;
    if cursor.passes(b"\"timestamp\":") { book(&mut cursor, buffer) } else { older_book(&mut cursor, buffer) }
}

/// The book's members after the key `timestamp`, in the order of messages since 2025.
#[inline(always)]
fn book(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    let ts_event = cursor.unix_ms()?;
    cursor.literal(b",\"type\":\"")?;
    let is_change = is_change(cursor)?;
    cursor.literal(b",\"change_id\":")?;
    let last_id = cursor.whole()?;
    cursor.literal(b",\"instrument_name\":\"")?;
    let symbol = cursor.symbol()?;
    let levels = sides(cursor, buffer)?;
    let mut previous_id = None;
    if is_change {
        cursor.literal(b",\"prev_change_id\":")?;
        previous_id = Some(cursor.whole()?);
    }
    cursor.literal(b"}}}")?;
    cursor.end()?;
    Some(event(symbol, last_id, previous_id, levels, ts_event))
}

/// The book's members in the order of messages of 2021, which recordings hold.
#[inline(never)]
fn older_book(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    cursor.literal(b"\"type\":\"")?;
    let is_change = is_change(cursor)?;
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
    let levels = sides(cursor, buffer)?;
    cursor.literal(b"}}}")?;
    cursor.end()?;
    Some(event(symbol, last_id, previous_id, levels, ts_event))
}

#[inline(always)]
fn is_change(cursor: &mut Cursor<'_>) -> Option<bool> {
    let is_change = cursor.passes(b"change\"");
    if !is_change {
        cursor.literal(b"snapshot\"")?;
    }
    Some(is_change)
}

#[inline(always)]
fn sides(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Levels> {
    let mut levels = Levels::default();
    cursor.literal(b",\"bids\":[")?;
    cursor.marked_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",\"asks\":[")?;
    cursor.marked_levels(&mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    Some(levels)
}

#[inline(always)]
const fn event(symbol: Symbol, last_id: u64, previous_id: Option<u64>, levels: Levels, ts_event: Nanos) -> Event {
    let checksum = None;
    match previous_id {
        Some(_) => {
            Event::BookDelta(BookDelta { symbol, first_id: last_id, last_id, previous_id, checksum, levels, ts_event })
        }
        None => Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id, checksum, levels, ts_event }),
    }
}
