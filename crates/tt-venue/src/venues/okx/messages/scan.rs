//! OKX's frames in the order of keys in which they are sent.

use super::general::{Numbers, book};
use crate::event::{AggressorSide, Event, EventBuffer, Levels, Trade};
use crate::scan::Cursor;

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"arg\":{\"channel\":\"")?;
    if cursor.passes(b"trades\"") {
        trades(&mut cursor, buffer)?;
        return Some(Event::Trades);
    }
    cursor.literal(b"books\"")?;
    order_book(&mut cursor, buffer)
}

#[inline(always)]
fn order_book(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    cursor.literal(b",\"instId\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b"},\"action\":\"")?;
    let is_update = cursor.passes(b"update\"");
    if !is_update {
        cursor.literal(b"snapshot\"")?;
    }
    let mut levels = Levels::default();
    cursor.literal(b",\"data\":[{\"asks\":[")?;
    cursor.okx_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_asks(0, middle);
    cursor.literal(b",\"bids\":[")?;
    cursor.okx_levels(&mut levels, buffer)?;
    levels.set_bids(middle, buffer.mark());
    cursor.literal(b",\"ts\":\"")?;
    let ts_event = cursor.quoted_unix_ms()?;
    let mut numbers = Numbers::default();
    if cursor.passes(b",\"checksum\":") {
        numbers.checksum = cursor.signed()?;
    }
    // The documentation has one order, the venue another.
    if cursor.passes(b",\"seqId\":") {
        numbers.id = Some(cursor.whole()?);
        cursor.literal(b",\"prevSeqId\":")?;
        numbers.previous = Some(cursor.signed()?);
    } else if cursor.passes(b",\"prevSeqId\":") {
        numbers.previous = Some(cursor.signed()?);
        cursor.literal(b",\"seqId\":")?;
        numbers.id = Some(cursor.whole()?);
    }
    cursor.literal(b"}]}")?;
    cursor.end()?;
    book(is_update, symbol, &numbers, levels, ts_event).ok()
}

#[inline(always)]
fn trades(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    cursor.literal(b",\"instId\":\"")?;
    cursor.symbol()?;
    cursor.literal(b"},\"data\":[")?;
    loop {
        cursor.literal(b"{\"instId\":\"")?;
        let symbol = cursor.symbol()?;
        cursor.literal(b",\"tradeId\":\"")?;
        let trade_id = cursor.quoted_whole()?;
        cursor.literal(b",\"px\":\"")?;
        let px = cursor.quoted()?;
        cursor.literal(b",\"sz\":\"")?;
        let qty = cursor.quoted()?;
        cursor.literal(b",\"side\":\"")?;
        let aggressor = if cursor.passes(b"buy\"") {
            AggressorSide::Buy
        } else {
            cursor.literal(b"sell\"")?;
            AggressorSide::Sell
        };
        cursor.literal(b",\"ts\":\"")?;
        let ts_event = cursor.quoted_unix_ms()?;
        if cursor.passes(b",\"count\":\"") {
            cursor.text()?;
        }
        if cursor.passes(b",\"source\":\"") {
            cursor.text()?;
        }
        if cursor.passes(b",\"seqId\":") {
            cursor.whole()?;
        }
        cursor.literal(b"}")?;
        buffer
            .push_trade(Trade { symbol, trade_id, px, qty, aggressor, in_market: true, is_history: false, ts_event })
            .ok()?;
        if !cursor.passes(b",") {
            break;
        }
    }
    cursor.literal(b"]}")?;
    cursor.end()
}
