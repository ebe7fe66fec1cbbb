//! Hyperliquid's frames in the orders of keys in which they are sent: the venue's own one, and the alphabetical one of
//! recorders that keep objects sorted.

use crate::event::{AggressorSide, BookSnapshot, Event, EventBuffer, Levels, Trade};
use crate::scan::Cursor;
use tt_model::Nanos;

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"channel\":\"")?;
    let event = if cursor.passes(b"l2Book\",\"data\":{\"coin\":\"") {
        Event::BookSnapshot(book(&mut cursor, buffer)?)
    } else {
        cursor.literal(b"trades\",\"data\":[")?;
        trades(&mut cursor, buffer)?;
        Event::Trades
    };
    cursor.literal(b"}")?;
    cursor.end()?;
    Some(event)
}

#[inline(always)]
fn book(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<BookSnapshot> {
    let symbol = Some(cursor.symbol()?);
    let time_first = cursor.passes(b",\"time\":");
    let mut ts_event = if time_first { cursor.unix_ms()? } else { Nanos(0) };
    cursor.literal(b",\"levels\":[[")?;
    let mut levels = Levels::default();
    side(cursor, &mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",[")?;
    side(cursor, &mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    cursor.literal(b"]")?;
    if !time_first {
        cursor.literal(b",\"time\":")?;
        ts_event = cursor.unix_ms()?;
    }
    cursor.literal(b"}")?;
    Some(BookSnapshot { symbol, last_id: 0, checksum: None, levels, ts_event })
}

/// `{"px":"px","sz":"sz","n":1},..]` after the opening bracket.
#[inline(always)]
fn side(cursor: &mut Cursor<'_>, levels: &mut Levels, buffer: &mut EventBuffer) -> Option<()> {
    if cursor.passes(b"]") {
        return Some(());
    }
    loop {
        let count_first = cursor.passes(b"{\"n\":");
        if count_first {
            cursor.whole()?;
            cursor.literal(b",\"px\":\"")?;
        } else {
            cursor.literal(b"{\"px\":\"")?;
        }
        let px = cursor.number()?;
        cursor.literal(b"\",\"sz\":\"")?;
        let qty = cursor.number()?;
        if count_first {
            cursor.literal(b"\"}")?;
        } else {
            cursor.literal(b"\",\"n\":")?;
            cursor.whole()?;
            cursor.literal(b"}")?;
        }
        buffer.push_level(levels, px, qty).ok()?;
        if !cursor.passes(b",") {
            return cursor.literal(b"]");
        }
    }
}

#[inline(always)]
fn trades(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    if cursor.passes(b"]") {
        return Some(());
    }
    loop {
        cursor.literal(b"{\"coin\":\"")?;
        let symbol = cursor.symbol()?;
        let trade = if cursor.passes(b",\"side\":\"") {
            let aggressor = aggressor(cursor)?;
            cursor.literal(b",\"px\":\"")?;
            let px = cursor.quoted()?;
            cursor.literal(b",\"sz\":\"")?;
            let qty = cursor.quoted()?;
            cursor.literal(b",\"time\":")?;
            let ts_event = cursor.unix_ms()?;
            cursor.literal(b",\"hash\":\"")?;
            cursor.text()?;
            cursor.literal(b",\"tid\":")?;
            let trade_id = cursor.whole()?;
            Trade { symbol, trade_id, px, qty, aggressor, in_market: true, is_history: false, ts_event }
        } else {
            cursor.literal(b",\"hash\":\"")?;
            cursor.text()?;
            cursor.literal(b",\"px\":\"")?;
            let px = cursor.quoted()?;
            cursor.literal(b",\"side\":\"")?;
            let aggressor = aggressor(cursor)?;
            cursor.literal(b",\"sz\":\"")?;
            let qty = cursor.quoted()?;
            cursor.literal(b",\"tid\":")?;
            let trade_id = cursor.whole()?;
            cursor.literal(b",\"time\":")?;
            let ts_event = cursor.unix_ms()?;
            Trade { symbol, trade_id, px, qty, aggressor, in_market: true, is_history: false, ts_event }
        };
        cursor.literal(b",\"users\":[\"")?;
        cursor.text()?;
        cursor.literal(b",\"")?;
        cursor.text()?;
        cursor.literal(b"]}")?;
        buffer.push_trade(trade).ok()?;
        if !cursor.passes(b",") {
            return cursor.literal(b"]");
        }
    }
}

/// `B` bids for it, `A` asks.
#[inline(always)]
fn aggressor(cursor: &mut Cursor<'_>) -> Option<AggressorSide> {
    if cursor.passes(b"B\"") {
        return Some(AggressorSide::Buy);
    }
    cursor.literal(b"A\"")?;
    Some(AggressorSide::Sell)
}
