//! Binance's frames by name, in any order of keys.

use crate::json::{self, Elements, Object};
use crate::{
    AggressorSide, BookDelta, BookSnapshot, BookTicker, Control, Event, EventBuffer, Fault, Fill, Levels, MarkPrice,
    OrderId, OrderStatus, OrderUpdate, Symbol, Ticker, Trade,
};
use tt_model::{Nanos, OrderSide};

/// Reads one frame by the names of its keys; what [`parse`](super::parse) falls back to.
///
/// # Errors
/// As [`parse`](super::parse).
pub fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, Fault> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    if let Some(payload) = outer.get(b"data").or_else(|| outer.get(b"event")) {
        return event(&Object::parse(payload)?, buffer);
    }
    if let Some(result) = outer.get(b"result") {
        return if result == b"null" || outer.get(b"status") == Some(b"200") {
            Ok(Event::Control(Control::Accepted))
        } else {
            Err(Fault::UnknownTopic)
        };
    }
    if outer.get(b"error").is_some() || outer.get(b"code").is_some() {
        return Err(Fault::Refused);
    }
    event(&outer, buffer)
}

fn event(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, Fault> {
    let Some(kind) = object.get(b"e") else {
        // Spot's bookTicker is the one event without a type.
        return book_ticker(object).map(Event::BookTicker);
    };
    match json::text(kind)? {
        b"bookTicker" => book_ticker(object).map(Event::BookTicker),
        b"depthUpdate" => book_delta(object, buffer).map(Event::BookDelta),
        b"trade" => {
            buffer.push_trade(trade(object)?)?;
            Ok(Event::Trades)
        }
        // The one of USD-M names no best levels.
        b"24hrTicker" if object.get(b"b").is_none() => Err(Fault::UnknownTopic),
        b"24hrTicker" => ticker(object).map(Event::Ticker),
        b"markPriceUpdate" => mark_price(object).map(Event::MarkPrice),
        b"executionReport" => {
            buffer.push_order_update(order_update(object, object.need(b"E")?)?)?;
            Ok(Event::OrderUpdates)
        }
        b"ORDER_TRADE_UPDATE" => {
            let order = Object::parse(object.need(b"o")?)?;
            buffer.push_order_update(order_update(&order, object.need(b"E")?)?)?;
            Ok(Event::OrderUpdates)
        }
        _ => Err(Fault::UnknownTopic),
    }
}

fn book_ticker(object: &Object<'_>) -> Result<BookTicker, Fault> {
    Ok(BookTicker {
        symbol: symbol(object)?,
        update_id: json::bare_u64(object.need(b"u")?)?,
        bid_px: json::quoted_unsigned(object.need(b"b")?)?,
        bid_qty: json::quoted_unsigned(object.need(b"B")?)?,
        ask_px: json::quoted_unsigned(object.need(b"a")?)?,
        ask_qty: json::quoted_unsigned(object.need(b"A")?)?,
        ts_event: optional_time(object, b"T")?,
    })
}

fn ticker(object: &Object<'_>) -> Result<Ticker, Fault> {
    Ok(Ticker {
        symbol: symbol(object)?,
        bid_px: json::quoted_unsigned(object.need(b"b")?)?,
        bid_qty: json::quoted_unsigned(object.need(b"B")?)?,
        ask_px: json::quoted_unsigned(object.need(b"a")?)?,
        ask_qty: json::quoted_unsigned(object.need(b"A")?)?,
        last_px: json::quoted_unsigned(object.need(b"c")?)?,
        ts_event: time(object.need(b"E")?)?,
    })
}

fn trade(object: &Object<'_>) -> Result<Trade, Fault> {
    let in_market = match object.get(b"X") {
        Some(kind) => json::text(kind)? == b"MARKET",
        None => true,
    };
    let buyer_is_maker = json::boolean(object.need(b"m")?)?;
    Ok(Trade {
        symbol: symbol(object)?,
        trade_id: json::bare_u64(object.need(b"t")?)?,
        px: json::quoted_unsigned(object.need(b"p")?)?,
        qty: json::quoted_unsigned(object.need(b"q")?)?,
        aggressor: if buyer_is_maker { AggressorSide::Sell } else { AggressorSide::Buy },
        in_market,
        ts_event: time(object.need(b"T")?)?,
    })
}

fn mark_price(object: &Object<'_>) -> Result<MarkPrice, Fault> {
    // Delivery contracts have no funding: their rate is an empty string.
    let funding_rate = match json::text(object.need(b"r")?)? {
        b"" => None,
        rate => Some(crate::Decimal::parse(rate)?),
    };
    let next_funding = object.need(b"T")?;
    Ok(MarkPrice {
        symbol: symbol(object)?,
        mark_px: json::quoted_unsigned(object.need(b"p")?)?,
        index_px: json::quoted_unsigned(object.need(b"i")?)?,
        funding_rate,
        ts_next_funding: if next_funding == b"0" { Nanos(0) } else { time(next_funding)? },
        ts_event: time(object.need(b"E")?)?,
    })
}

fn order_update(object: &Object<'_>, ts_event: &[u8]) -> Result<OrderUpdate, Fault> {
    let side = match json::text(object.need(b"S")?)? {
        b"BUY" => OrderSide::Buy,
        b"SELL" => OrderSide::Sell,
        _ => return Err(Fault::WrongType),
    };
    let order_id = object.need(b"i")?;
    json::bare_u64(order_id)?;
    let last_qty = json::quoted_unsigned(object.need(b"l")?)?;
    let fill = if last_qty.mantissa == 0 {
        None
    } else {
        Some(Fill {
            trade_id: json::bare_u64(object.need(b"t")?)?,
            px: json::quoted_unsigned(object.need(b"L")?)?,
            qty: last_qty,
        })
    };
    let (qty, filled_qty) = (object.need(b"q")?, object.need(b"z")?);
    let status = match json::text(object.need(b"X")?)? {
        // An automatic close is executed on arrival; nothing follows it.
        b"NEW_INSURANCE" | b"NEW_ADL" if qty == filled_qty => OrderStatus::Filled,
        text => order_status(text)?,
    };
    Ok(OrderUpdate {
        symbol: Some(symbol(object)?),
        order_id: OrderId(Symbol::new(order_id)?),
        side: Some(side),
        status,
        limit_px: Some(json::quoted_unsigned(object.need(b"p")?)?),
        qty: Some(json::quoted_unsigned(qty)?),
        filled_qty: Some(json::quoted_unsigned(filled_qty)?),
        fill,
        ts_event: time(ts_event)?,
    })
}

fn order_status(text: &[u8]) -> Result<OrderStatus, Fault> {
    Ok(match text {
        b"PENDING_NEW" => OrderStatus::Pending,
        b"NEW" | b"NEW_INSURANCE" | b"NEW_ADL" | b"PENDING_CANCEL" => OrderStatus::New,
        b"PARTIALLY_FILLED" => OrderStatus::PartiallyFilled,
        b"FILLED" => OrderStatus::Filled,
        b"CANCELED" => OrderStatus::Cancelled,
        b"REJECTED" => OrderStatus::Rejected,
        b"EXPIRED" | b"EXPIRED_IN_MATCH" => OrderStatus::Expired,
        _ => return Err(Fault::WrongType),
    })
}

fn book_delta(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<BookDelta, Fault> {
    let previous_id = match object.get(b"pu") {
        Some(id) => Some(json::bare_u64(id)?),
        None => None,
    };
    Ok(BookDelta {
        symbol: symbol(object)?,
        first_id: json::bare_u64(object.need(b"U")?)?,
        last_id: json::bare_u64(object.need(b"u")?)?,
        previous_id,
        checksum: None,
        levels: levels(object.need(b"b")?, object.need(b"a")?, buffer)?,
        ts_event: time(object.need(b"E")?)?,
    })
}

/// Reads a REST snapshot by the names of its keys; what [`parse_snapshot`](super::parse_snapshot) falls back to.
///
/// # Errors
/// As [`parse_snapshot`](super::parse_snapshot).
pub fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, Fault> {
    buffer.begin_general();
    json::check_utf8(body)?;
    let object = Object::parse(body)?;
    if object.get(b"code").is_some() {
        return Err(Fault::VenueError);
    }
    Ok(BookSnapshot {
        symbol: None,
        last_id: json::bare_u64(object.need(b"lastUpdateId")?)?,
        checksum: None,
        levels: levels(object.need(b"bids")?, object.need(b"asks")?, buffer)?,
        ts_event: optional_time(&object, b"T")?,
    })
}

fn levels(bids: &[u8], asks: &[u8], buffer: &mut EventBuffer) -> Result<Levels, Fault> {
    let mut list = Levels::default();
    let start = buffer.mark();
    side(bids, &mut list, buffer)?;
    let middle = buffer.mark();
    list.set_bids(start, middle);
    side(asks, &mut list, buffer)?;
    list.set_asks(middle, buffer.mark());
    Ok(list)
}

fn side(text: &[u8], list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), Fault> {
    let mut levels = Elements::parse(text)?;
    while let Some(level) = levels.next()? {
        let mut pair = Elements::parse(level)?;
        let px = json::quoted_unsigned(pair.need()?)?;
        let qty = json::quoted_unsigned(pair.need()?)?;
        pair.end()?;
        buffer.push_level(list, px, qty)?;
    }
    Ok(())
}

fn symbol(object: &Object<'_>) -> Result<Symbol, Fault> {
    Symbol::new(json::text(object.need(b"s")?)?)
}

fn optional_time(object: &Object<'_>, key: &[u8]) -> Result<Nanos, Fault> {
    object.get(key).map_or(Ok(Nanos(0)), time)
}

fn time(raw: &[u8]) -> Result<Nanos, Fault> {
    crate::time::from_unix_ms(json::bare_u64(raw)?)
}
