//! Bybit's frames in the order of keys in which they are sent.

use super::general::book;
use crate::event::{AggressorSide, Event, EventBuffer, Levels, Trade};
use crate::scan::Cursor;

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"topic\":\"")?;
    if cursor.passes(b"orderbook.") {
        return order_book(&mut cursor, buffer);
    }
    cursor.literal(b"publicTrade.")?;
    trades(&mut cursor, buffer)?;
    Some(Event::Trades)
}

#[inline(always)]
fn order_book(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    let is_full = cursor.passes(b"full.");
    cursor.text()?;
    cursor.literal(b",\"type\":\"")?;
    let is_delta = cursor.passes(b"delta\"");
    if !is_delta {
        cursor.literal(b"snapshot\"")?;
    }
    cursor.literal(b",\"ts\":")?;
    let mut ts_event = cursor.unix_ms()?;
    cursor.literal(b",\"data\":{\"s\":\"")?;
    let symbol = cursor.symbol()?;
    let mut levels = Levels::default();
    cursor.literal(b",\"b\":[")?;
    cursor.quoted_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",\"a\":[")?;
    cursor.quoted_levels(&mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    cursor.literal(b",\"u\":")?;
    let update_id = cursor.whole()?;
    cursor.literal(b",\"seq\":")?;
    cursor.whole()?;
    cursor.literal(b"}")?;
    if cursor.passes(b",\"cts\":") {
        ts_event = cursor.unix_ms()?;
    }
    cursor.literal(b"}")?;
    cursor.end()?;
    Some(book(is_delta, is_full, symbol, update_id, levels, ts_event))
}

#[inline(always)]
fn trades(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    cursor.text()?;
    cursor.literal(b",\"type\":\"snapshot\",\"ts\":")?;
    cursor.any_time()?;
    cursor.literal(b",\"data\":[")?;
    loop {
        cursor.literal(b"{\"T\":")?;
        let ts_event = cursor.unix_ms()?;
        cursor.literal(b",\"s\":\"")?;
        let symbol = cursor.symbol()?;
        cursor.literal(b",\"S\":\"")?;
        let aggressor = if cursor.passes(b"Buy\"") {
            AggressorSide::Buy
        } else {
            cursor.literal(b"Sell\"")?;
            AggressorSide::Sell
        };
        cursor.literal(b",\"v\":\"")?;
        let qty = cursor.quoted()?;
        cursor.literal(b",\"p\":\"")?;
        let px = cursor.quoted()?;
        if cursor.passes(b",\"L\":\"") {
            cursor.text()?;
        }
        cursor.literal(b",\"i\":\"")?;
        let trade_id = cursor.quoted_id()?;
        cursor.literal(b",\"BT\":")?;
        let in_market = !cursor.boolean()?;
        if cursor.passes(b",\"RPI\":") {
            cursor.boolean()?;
        }
        if cursor.passes(b",\"seq\":") {
            cursor.whole()?;
        }
        cursor.literal(b"}")?;
        buffer
            .push_trade(Trade { symbol, trade_id, px, qty, aggressor, in_market, is_history: false, ts_event })
            .ok()?;
        if !cursor.passes(b",") {
            break;
        }
    }
    cursor.literal(b"]}")?;
    cursor.end()
}
