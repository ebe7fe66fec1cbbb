//! Binance's frames in the order of keys in which they are sent.

mod coinm;

use crate::event::{AggressorSide, BookDelta, BookSnapshot, BookTicker, Event, EventBuffer, Levels, MarkPrice, Trade};
use crate::scan::Cursor;
use tt_model::Nanos;

pub(super) use coinm::parse as parse_coinm;

/// Reads one frame of spot or USD-M, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    let wrapped = cursor.passes(b"{\"stream\":\"");
    if wrapped {
        cursor.text()?;
        cursor.literal(b",\"data\":{")?;
    } else {
        cursor.literal(b"{")?;
    }
    let event = event(&mut cursor, buffer)?;
    if !cursor.passes(b"}") {
        newer_members(&mut cursor)?;
    }
    if wrapped {
        cursor.literal(b"}")?;
    }
    cursor.end()?;
    Some(event)
}

/// Passes what USD-M has added to the end of its messages since 2025, and the end.
#[cold]
fn newer_members(cursor: &mut Cursor<'_>) -> Option<()> {
    let pair_first = cursor.passes(b",\"ps\":\"");
    if pair_first {
        cursor.text()?;
    }
    if cursor.passes(b",\"st\":") {
        cursor.whole()?;
    }
    if !pair_first && cursor.passes(b",\"ps\":\"") {
        cursor.text()?;
    }
    cursor.literal(b"}")
}

#[inline(always)]
fn event(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    if cursor.passes(b"\"u\":") {
        return spot_book_ticker(cursor).map(Event::BookTicker);
    }
    cursor.literal(b"\"e\":\"")?;
    if cursor.passes(b"bookTicker\",\"u\":") {
        return usdm_book_ticker(cursor).map(Event::BookTicker);
    }
    if cursor.passes(b"depthUpdate\",\"E\":") {
        return book_delta(cursor, buffer).map(Event::BookDelta);
    }
    if cursor.passes(b"trade\",\"E\":") {
        buffer.push_trade(trade(cursor)?).ok()?;
        return Some(Event::Trades);
    }
    cursor.literal(b"markPriceUpdate\",\"E\":")?;
    mark_price(cursor).map(Event::MarkPrice)
}

/// `u, s, b, B, a, A` from the value of `u` on, which both kinds share.
#[inline(always)]
fn spot_book_ticker(cursor: &mut Cursor<'_>) -> Option<BookTicker> {
    let update_id = cursor.whole()?;
    cursor.literal(b",\"s\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"b\":\"")?;
    let bid_px = cursor.quoted()?;
    cursor.literal(b",\"B\":\"")?;
    let bid_qty = cursor.quoted()?;
    cursor.literal(b",\"a\":\"")?;
    let ask_px = cursor.quoted()?;
    cursor.literal(b",\"A\":\"")?;
    let ask_qty = cursor.quoted()?;
    Some(BookTicker { symbol, update_id, bid_px, bid_qty, ask_px, ask_qty, ts_event: Nanos(0) })
}

#[inline(always)]
fn usdm_book_ticker(cursor: &mut Cursor<'_>) -> Option<BookTicker> {
    let ticker = spot_book_ticker(cursor)?;
    cursor.literal(b",\"T\":")?;
    let ts_event = cursor.unix_ms_or_us()?;
    cursor.literal(b",\"E\":")?;
    cursor.any_time()?;
    Some(BookTicker { ts_event, ..ticker })
}

#[inline(always)]
fn book_delta(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<BookDelta> {
    let ts_event = cursor.unix_ms_or_us()?;
    let is_usdm = cursor.passes(b",\"T\":");
    if is_usdm {
        cursor.any_time()?;
    }
    cursor.literal(b",\"s\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"U\":")?;
    let first_id = cursor.whole()?;
    cursor.literal(b",\"u\":")?;
    let last_id = cursor.whole()?;
    let mut previous_id = None;
    if is_usdm {
        cursor.literal(b",\"pu\":")?;
        previous_id = Some(cursor.whole()?);
    }
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

#[inline(always)]
fn trade(cursor: &mut Cursor<'_>) -> Option<Trade> {
    cursor.unix_ms_or_us()?;
    let usdm_time = if cursor.passes(b",\"T\":") { Some(cursor.unix_ms_or_us()?) } else { None };
    cursor.literal(b",\"s\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"t\":")?;
    let trade_id = cursor.whole()?;
    cursor.literal(b",\"p\":\"")?;
    let px = cursor.quoted()?;
    cursor.literal(b",\"q\":\"")?;
    let qty = cursor.quoted()?;
    let mut in_market = true;
    let ts_event = match usdm_time {
        Some(ts_event) => {
            cursor.literal(b",\"X\":\"")?;
            in_market = cursor.passes(b"MARKET\"");
            if !in_market {
                cursor.text()?;
            }
            ts_event
        }
        None => {
            cursor.literal(b",\"T\":")?;
            cursor.unix_ms_or_us()?
        }
    };
    cursor.literal(b",\"m\":")?;
    let aggressor = if cursor.boolean()? { AggressorSide::Sell } else { AggressorSide::Buy };
    if usdm_time.is_none() {
        cursor.literal(b",\"M\":")?;
        cursor.boolean()?;
    }
    Some(Trade { symbol, trade_id, px, qty, aggressor, in_market, is_history: false, ts_event })
}

#[inline(always)]
fn mark_price(cursor: &mut Cursor<'_>) -> Option<MarkPrice> {
    let ts_event = cursor.unix_ms_or_us()?;
    cursor.literal(b",\"s\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"p\":\"")?;
    let mark_px = cursor.quoted()?;
    cursor.literal(b",\"i\":\"")?;
    let index_px = cursor.quoted()?;
    cursor.literal(b",\"P\":\"")?;
    cursor.quoted()?;
    cursor.literal(b",\"r\":\"")?;
    let is_negative = cursor.passes(b"-");
    let rate = cursor.quoted()?;
    let funding_rate = Some(if is_negative { tt_model::Decimal { mantissa: -rate.mantissa, ..rate } } else { rate });
    cursor.literal(b",\"T\":")?;
    let ts_next_funding = cursor.unix_ms_or_us()?;
    Some(MarkPrice { symbol, mark_px, index_px, funding_rate, ts_next_funding, ts_event })
}

/// Reads a REST snapshot, `None` where anything is not as expected.
pub(super) fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Option<BookSnapshot> {
    let mut cursor = Cursor::new(body);
    cursor.literal(b"{\"lastUpdateId\":")?;
    let last_id = cursor.whole()?;
    let mut ts_event = Nanos(0);
    if cursor.passes(b",\"E\":") {
        cursor.whole()?;
        cursor.literal(b",\"T\":")?;
        ts_event = cursor.unix_ms_or_us()?;
    }
    if cursor.passes(b",\"symbol\":\"") {
        cursor.text()?;
        cursor.literal(b",\"pair\":\"")?;
        cursor.text()?;
    }
    cursor.literal(b",\"bids\":[")?;
    let mut levels = Levels::default();
    cursor.quoted_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    cursor.literal(b",\"asks\":[")?;
    cursor.quoted_levels(&mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    cursor.literal(b"}")?;
    cursor.end()?;
    Some(BookSnapshot { symbol: None, last_id, checksum: None, levels, ts_event })
}
