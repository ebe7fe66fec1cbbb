//! Coinbase Advanced's book frames in the order of keys in which they are sent.

use crate::event::{BookDelta, BookSnapshot, Event, EventBuffer, Levels};
use crate::scan::Cursor;
use tt_model::OrderSide;

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"channel\":\"l2_data\",")?;
    // The live feed has left it out since 2025.
    if cursor.passes(b"\"client_id\":\"") {
        cursor.text()?;
        cursor.literal(b",")?;
    }
    cursor.literal(b"\"timestamp\":\"")?;
    let ts_event = cursor.rfc3339()?;
    cursor.literal(b",\"sequence_num\":")?;
    let last_id = cursor.whole()?;
    cursor.literal(b",\"events\":[{\"type\":\"")?;
    let is_update = cursor.passes(b"update\"");
    if !is_update {
        cursor.literal(b"snapshot\"")?;
    }
    cursor.literal(b",\"product_id\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"updates\":[")?;
    let levels = updates(&mut cursor, buffer)?;
    cursor.literal(b"}]}")?;
    cursor.end()?;
    buffer.number_message(last_id).ok()?;
    Some(if is_update {
        let first_id = last_id;
        Event::BookDelta(BookDelta { symbol, first_id, last_id, previous_id: None, checksum: None, levels, ts_event })
    } else {
        Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id, checksum: None, levels, ts_event })
    })
}

/// The levels after the opening bracket: the side of the first one, then, where there are any, those of the other side
/// in a second pass, so that each side's levels stand together.
#[inline(always)]
fn updates(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Levels> {
    let mut levels = Levels::default();
    if cursor.passes(b"]") {
        return Some(levels);
    }
    let mut again = *cursor;
    let mut ahead = *cursor;
    let first = side(&mut ahead)?;
    let is_mixed = updates_of(cursor, first, &mut levels, buffer)?;
    let middle = buffer.mark();
    let second = match first {
        OrderSide::Buy => OrderSide::Sell,
        OrderSide::Sell => OrderSide::Buy,
    };
    if is_mixed {
        updates_of(&mut again, second, &mut levels, buffer)?;
    }
    let (one, two) = ((0, middle), (middle, buffer.mark()));
    let (bids, asks) = match first {
        OrderSide::Buy => (one, two),
        OrderSide::Sell => (two, one),
    };
    levels.set_bids(bids.0, bids.1);
    levels.set_asks(asks.0, asks.1);
    Some(levels)
}

/// Keeps the levels of one side; returns whether there were others.
#[inline(always)]
fn updates_of(
    cursor: &mut Cursor<'_>,
    wanted: OrderSide,
    levels: &mut Levels,
    buffer: &mut EventBuffer,
) -> Option<bool> {
    let mut is_mixed = false;
    loop {
        let side = side(cursor)?;
        cursor.literal(b",\"event_time\":\"")?;
        cursor.text()?;
        cursor.literal(b",\"price_level\":\"")?;
        let px = cursor.quoted()?;
        cursor.literal(b",\"new_quantity\":\"")?;
        let qty = cursor.quoted()?;
        cursor.literal(b"}")?;
        if side == wanted {
            buffer.push_level(levels, px, qty).ok()?;
        } else {
            is_mixed = true;
        }
        if !cursor.passes(b",") {
            cursor.literal(b"]")?;
            return Some(is_mixed);
        }
    }
}

/// A level up to the quote after its side.
#[inline(always)]
fn side(cursor: &mut Cursor<'_>) -> Option<OrderSide> {
    if cursor.passes(b"{\"side\":\"bid\"") {
        return Some(OrderSide::Buy);
    }
    cursor.literal(b"{\"side\":\"offer\"")?;
    Some(OrderSide::Sell)
}
