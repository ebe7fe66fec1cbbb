//! Coinbase Exchange's frames in the order of keys in which they are sent.

use crate::event::{
    AggressorSide, BookDelta, BookOrder, BookOrders, BookSnapshot, Event, EventBuffer, Levels, OrderAction, OrderId,
    Ticker, Trade,
};
use crate::scan::Cursor;
use tt_model::{Nanos, OrderSide};

/// Reads one frame, `None` where anything is not as expected.
#[inline]
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"type\":\"")?;
    let event = if cursor.passes(b"l2update\",\"product_id\":\"") {
        book_delta(&mut cursor, buffer).map(Event::BookDelta)
    } else if cursor.passes(b"ticker\",\"sequence\":") {
        buffer.push_ticker(ticker(&mut cursor)?).ok()?;
        Some(Event::Tickers)
    } else if cursor.passes(b"snapshot\",\"product_id\":\"") {
        book_snapshot(&mut cursor, buffer).map(Event::BookSnapshot)
    } else {
        let is_last = !cursor.passes(b"match\",\"trade_id\":");
        if is_last {
            cursor.literal(b"last_match\",\"trade_id\":")?;
        }
        let (trade, maker, number) = trade(&mut cursor)?;
        buffer.push_trade(Trade { is_history: is_last, ..trade }).ok()?;
        if !is_last {
            take(&trade, maker, number, buffer)?;
        }
        Some(Event::Trades)
    }?;
    cursor.literal(b"}")?;
    cursor.end()?;
    Some(event)
}

#[inline(always)]
fn book_delta(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<BookDelta> {
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"changes\":[")?;
    let levels = changes(cursor, buffer)?;
    cursor.literal(b",\"time\":\"")?;
    let ts_event = cursor.rfc3339()?;
    Some(BookDelta { symbol, first_id: 0, last_id: 0, previous_id: None, checksum: None, levels, ts_event })
}

/// `["buy","px","qty"],..]` after the opening bracket: the side of the first change, then, where there are any, the
/// changes of the other side in a second pass, so that each side's levels stand together.
#[inline(always)]
fn changes(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Levels> {
    let mut levels = Levels::default();
    if cursor.passes(b"]") {
        return Some(levels);
    }
    let mut again = *cursor;
    let mut ahead = *cursor;
    let first = side(&mut ahead)?;
    let is_mixed = changes_of(cursor, first, &mut levels, buffer)?;
    let middle = buffer.mark();
    let second = match first {
        OrderSide::Buy => OrderSide::Sell,
        OrderSide::Sell => OrderSide::Buy,
    };
    if is_mixed {
        changes_of(&mut again, second, &mut levels, buffer)?;
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

/// Keeps the changes of one side; returns whether there were others.
#[inline(always)]
fn changes_of(
    cursor: &mut Cursor<'_>,
    wanted: OrderSide,
    levels: &mut Levels,
    buffer: &mut EventBuffer,
) -> Option<bool> {
    let mut is_mixed = false;
    loop {
        let side = side(cursor)?;
        let px = cursor.number()?;
        cursor.literal(b"\",\"")?;
        let qty = cursor.number()?;
        cursor.literal(b"\"]")?;
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

/// A change up to its price.
#[inline(always)]
fn side(cursor: &mut Cursor<'_>) -> Option<OrderSide> {
    if cursor.passes(b"[\"buy\",\"") {
        return Some(OrderSide::Buy);
    }
    cursor.literal(b"[\"sell\",\"")?;
    Some(OrderSide::Sell)
}

fn book_snapshot(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<BookSnapshot> {
    let symbol = cursor.symbol()?;
    let mut levels = Levels::default();
    let asks_first = cursor.passes(b",\"asks\":[");
    if !asks_first {
        cursor.literal(b",\"bids\":[")?;
    }
    cursor.quoted_levels(&mut levels, buffer)?;
    let middle = buffer.mark();
    if asks_first {
        cursor.literal(b",\"bids\":[")?;
    } else {
        cursor.literal(b",\"asks\":[")?;
    }
    cursor.quoted_levels(&mut levels, buffer)?;
    let (one, two) = ((0, middle), (middle, buffer.mark()));
    let (bids, asks) = if asks_first { (two, one) } else { (one, two) };
    levels.set_bids(bids.0, bids.1);
    levels.set_asks(asks.0, asks.1);
    let ts_event = if cursor.passes(b",\"time\":\"") { cursor.rfc3339()? } else { Nanos(0) };
    Some(BookSnapshot { symbol: Some(symbol), last_id: 0, checksum: None, levels, ts_event })
}

#[inline(always)]
fn trade<'a>(cursor: &mut Cursor<'a>) -> Option<(Trade, &'a [u8], u64)> {
    let trade_id = cursor.whole()?;
    cursor.literal(b",\"maker_order_id\":")?;
    let [b'"', maker @ .., b'"'] = cursor.raw()? else { return None };
    cursor.literal(b",\"taker_order_id\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"side\":\"")?;
    // The venue names the maker's side.
    let aggressor = if cursor.passes(b"sell\"") {
        AggressorSide::Buy
    } else {
        cursor.literal(b"buy\"")?;
        AggressorSide::Sell
    };
    cursor.literal(b",\"size\":\"")?;
    let qty = cursor.quoted()?;
    cursor.literal(b",\"price\":\"")?;
    let px = cursor.quoted()?;
    cursor.literal(b",\"product_id\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"sequence\":")?;
    let number = cursor.whole()?;
    cursor.literal(b",\"time\":\"")?;
    let ts_event = cursor.rfc3339()?;
    Some((Trade { symbol, trade_id, px, qty, aggressor, in_market: true, is_history: false, ts_event }, maker, number))
}

/// Effect of the trade on an order-by-order book.
fn take(trade: &Trade, maker: &[u8], number: u64, buffer: &mut EventBuffer) -> Option<()> {
    let Trade { symbol, qty, ts_event, .. } = *trade;
    buffer.take_order(BookOrders { symbol, is_snapshot: false, number, checksum: None, ts_event }).ok()?;
    let side = match trade.aggressor {
        AggressorSide::Buy => OrderSide::Sell,
        AggressorSide::Sell => OrderSide::Buy,
    };
    let order_id = OrderId::new(maker).ok()?;
    buffer.push_book_order(BookOrder { action: OrderAction::Take, side, order_id, px: None, qty, ts_event }).ok()
}

#[inline(always)]
fn ticker(cursor: &mut Cursor<'_>) -> Option<Ticker> {
    cursor.whole()?;
    cursor.literal(b",\"product_id\":\"")?;
    let symbol = cursor.symbol()?;
    cursor.literal(b",\"price\":\"")?;
    let last_px = cursor.quoted()?;
    cursor.literal(b",\"open_24h\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"volume_24h\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"low_24h\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"high_24h\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"volume_30d\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"best_bid\":\"")?;
    let bid_px = cursor.quoted()?;
    let has_sizes = cursor.passes(b",\"best_bid_size\":\"");
    let bid_qty = if has_sizes { Some(cursor.quoted()?) } else { None };
    cursor.literal(b",\"best_ask\":\"")?;
    let ask_px = cursor.quoted()?;
    let mut ask_qty = None;
    if has_sizes {
        cursor.literal(b",\"best_ask_size\":\"")?;
        ask_qty = Some(cursor.quoted()?);
    }
    cursor.literal(b",\"side\":\"")?;
    cursor.text()?;
    cursor.literal(b",\"time\":\"")?;
    let ts_event = cursor.rfc3339()?;
    cursor.literal(b",\"trade_id\":")?;
    cursor.whole()?;
    cursor.literal(b",\"last_size\":\"")?;
    cursor.text()?;
    Some(Ticker {
        symbol,
        bid_px: Some(bid_px),
        bid_qty,
        ask_px: Some(ask_px),
        ask_qty,
        last_px: Some(last_px),
        ts_event,
        ..Ticker::default()
    })
}
