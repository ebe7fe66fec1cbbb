//! Kraken's frames in the order of keys in which they are sent.

use crate::event::{AggressorSide, BookDelta, BookSnapshot, Control, Event, EventBuffer, Levels, Ticker, Trade};
use crate::scan::Cursor;
use tt_model::Nanos;

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"channel\":\"")?;
    if cursor.passes(b"heartbeat\"}") {
        cursor.end()?;
        return Some(Event::Control(Control::Heartbeat));
    }
    if cursor.passes(b"ticker\",\"type\":\"") {
        buffer.push_ticker(ticker(&mut cursor)?).ok()?;
        return Some(Event::Tickers);
    }
    if cursor.passes(b"trade\",\"type\":\"") {
        trades(&mut cursor, buffer)?;
        return Some(Event::Trades);
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

fn ticker(cursor: &mut Cursor<'_>) -> Option<Ticker> {
    cursor.text()?;
    cursor.literal(b",\"data\":[{\"symbol\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"bid\":")?;
    let bid_px = Some(cursor.number()?);
    cursor.literal(b",\"bid_qty\":")?;
    let bid_qty = Some(cursor.number()?);
    cursor.literal(b",\"ask\":")?;
    let ask_px = Some(cursor.number()?);
    cursor.literal(b",\"ask_qty\":")?;
    let ask_qty = Some(cursor.number()?);
    cursor.literal(b",\"last\":")?;
    let last_px = Some(cursor.number()?);
    cursor.literal(b",\"volume\":")?;
    cursor.number()?;
    cursor.literal(b",\"vwap\":")?;
    cursor.number()?;
    cursor.literal(b",\"low\":")?;
    cursor.number()?;
    cursor.literal(b",\"high\":")?;
    cursor.number()?;
    cursor.literal(b",\"change\":")?;
    signed(cursor)?;
    cursor.literal(b",\"change_pct\":")?;
    signed(cursor)?;
    let ts_event = if cursor.passes(b",\"timestamp\":\"") { cursor.rfc3339()? } else { Nanos(0) };
    cursor.literal(b"}]}")?;
    cursor.end()?;
    Some(Ticker { symbol, bid_px, bid_qty, ask_px, ask_qty, last_px, ts_event, ..Ticker::default() })
}

/// Passes a number with or without a sign.
fn signed(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.passes(b"-");
    cursor.number().map(|_| ())
}

fn trades(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    // The last trades before the subscription.
    let is_history = cursor.passes(b"snapshot\"");
    if !is_history {
        cursor.text()?;
    }
    cursor.literal(b",\"data\":[")?;
    loop {
        cursor.literal(b"{\"symbol\":\"")?;
        let symbol = cursor.symbol()?;
        cursor.literal(b",\"side\":\"")?;
        let aggressor = if cursor.passes(b"buy\"") {
            AggressorSide::Buy
        } else {
            cursor.literal(b"sell\"")?;
            AggressorSide::Sell
        };
        cursor.literal(b",\"price\":")?;
        let px = cursor.number()?;
        cursor.literal(b",\"qty\":")?;
        let qty = cursor.number()?;
        cursor.literal(b",\"ord_type\":\"")?;
        cursor.text()?;
        cursor.literal(b",\"trade_id\":")?;
        let trade_id = cursor.whole()?;
        cursor.literal(b",\"timestamp\":\"")?;
        let ts_event = cursor.rfc3339()?;
        cursor.literal(b"}")?;
        buffer
            .push_trade(Trade { symbol, trade_id, px, qty, aggressor, in_market: true, is_history, ts_event })
            .ok()?;
        if !cursor.passes(b",") {
            cursor.literal(b"]}")?;
            return cursor.end();
        }
    }
}
