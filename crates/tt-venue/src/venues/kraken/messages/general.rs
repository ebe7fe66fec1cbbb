//! Kraken's frames by name, in any order of keys.

use super::account;
use crate::error::ParseError;
use crate::event::{
    AggressorSide, BookDelta, BookOrder, BookOrders, BookSnapshot, Control, Event, EventBuffer, Levels, OrderAction,
    OrderId, Ticker, Trade, VenueCandle,
};
use crate::fields::{self, Keyed};
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use crate::time;
use tt_model::{Nanos, OrderSide};

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    let Some(topic) = outer.get(b"channel") else {
        return response(&outer);
    };
    match json::text(topic)? {
        b"heartbeat" => Ok(Event::Control(Control::Heartbeat)),
        b"status" => Ok(Event::Control(Control::Status)),
        b"book" => book(&outer, buffer),
        b"ticker" => {
            buffer.push_ticker(ticker(&only_element(&outer)?)?)?;
            Ok(Event::Tickers)
        }
        b"trade" => {
            let is_history = outer.get(b"type").is_some_and(|kind| json::text(kind) == Ok(b"snapshot"));
            json::each(outer.need(b"data")?, |object| buffer.push_trade(Trade { is_history, ..trade(object)? }))?;
            Ok(Event::Trades)
        }
        b"level3" => level3(&outer, buffer),
        b"ohlc" => {
            let ts_event = fields::optional_rfc3339(&outer, b"timestamp")?;
            json::each(outer.need(b"data")?, |object| buffer.push_candle(candle(object, ts_event)?))?;
            Ok(Event::Candles)
        }
        b"executions" => account::executions(&outer, buffer),
        b"balances" => account::balances(&outer, buffer),
        _ => Err(ParseError::UnknownTopic),
    }
}

/// The answer to a request: it names no topic, and a refused subscription leaves the socket open and silent.
fn response(outer: &Object<'_>) -> Result<Event, ParseError> {
    let method = json::text(outer.need(b"method")?)?;
    match outer.get(b"success") {
        Some(success) if !json::boolean(success)? => Err(ParseError::Rejected),
        Some(_) | None if method == b"pong" => Ok(Event::Control(Control::Pong)),
        Some(_) => Ok(Event::Control(Control::Accepted)),
        None => Err(ParseError::Rejected),
    }
}

fn only_element<'a>(outer: &Object<'a>) -> Result<Object<'a>, ParseError> {
    let mut elements = Elements::parse(outer.need(b"data")?)?;
    let element = Object::parse(elements.need()?)?;
    elements.end()?;
    Ok(element)
}

fn book(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let object = only_element(outer)?;
    let symbol = symbol(&object)?;
    let checksum = u32::try_from(json::bare_u64(object.need(b"checksum")?)?).map_err(|_| ParseError::NumberRange)?;
    let checksum = Some(checksum);
    let levels = levels(&object, buffer)?;
    let ts_event = optional_time(&object)?;
    match json::text(outer.need(b"type")?)? {
        b"snapshot" => {
            Ok(Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id: 0, checksum, levels, ts_event }))
        }
        b"update" => Ok(Event::BookDelta(BookDelta {
            symbol,
            first_id: 0,
            last_id: 0,
            previous_id: None,
            checksum,
            levels,
            ts_event,
        })),
        _ => Err(ParseError::WrongType),
    }
}

fn level3(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let object = only_element(outer)?;
    for (key, side) in [(b"bids", OrderSide::Buy), (b"asks", OrderSide::Sell)] {
        json::each(object.need(key)?, |order| buffer.push_book_order(book_order(order, side)?))?;
    }
    book_orders(fields::text(outer, b"type")?, &object).map(Event::BookOrders)
}

/// What a message of `level3` says of the book as a whole.
pub(super) fn book_orders(kind: &[u8], object: &impl Keyed) -> Result<BookOrders, ParseError> {
    let checksum = u32::try_from(json::bare_u64(object.need(b"checksum")?)?).map_err(|_| ParseError::NumberRange)?;
    Ok(BookOrders {
        symbol: fields::symbol(object, b"symbol")?,
        is_snapshot: match kind {
            b"snapshot" => true,
            b"update" => false,
            _ => return Err(ParseError::WrongType),
        },
        number: 0,
        checksum: Some(checksum),
        ts_event: fields::optional_rfc3339(object, b"timestamp")?,
    })
}

/// An order of a snapshot names no event.
pub(super) fn book_order(object: &impl Keyed, side: OrderSide) -> Result<BookOrder, ParseError> {
    let action = match fields::optional(object, b"event").map(json::text).transpose()? {
        None | Some(b"add") => OrderAction::Add,
        Some(b"modify") => OrderAction::Change,
        Some(b"delete") => OrderAction::Delete,
        Some(_) => return Err(ParseError::WrongType),
    };
    Ok(BookOrder {
        action,
        side,
        order_id: OrderId::new(fields::text(object, b"order_id")?)?,
        px: Some(json::bare_unsigned(object.need(b"limit_price")?)?),
        qty: json::bare_unsigned(object.need(b"order_qty")?)?,
        ts_event: fields::optional_rfc3339(object, b"timestamp")?,
    })
}

fn levels(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Levels, ParseError> {
    let mut list = Levels::default();
    let start = buffer.mark();
    side(object.need(b"bids")?, &mut list, buffer)?;
    let middle = buffer.mark();
    list.set_bids(start, middle);
    side(object.need(b"asks")?, &mut list, buffer)?;
    list.set_asks(middle, buffer.mark());
    Ok(list)
}

fn side(text: &[u8], list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let mut levels = Elements::parse(text)?;
    while let Some(level) = levels.next()? {
        let level = Object::parse(level)?;
        let px = json::bare_unsigned(level.need(b"price")?)?;
        let qty = json::bare_unsigned(level.need(b"qty")?)?;
        buffer.push_level(list, px, qty)?;
    }
    Ok(())
}

fn ticker(object: &Object<'_>) -> Result<Ticker, ParseError> {
    Ok(Ticker {
        symbol: symbol(object)?,
        bid_px: Some(json::bare_unsigned(object.need(b"bid")?)?),
        bid_qty: Some(json::bare_unsigned(object.need(b"bid_qty")?)?),
        ask_px: Some(json::bare_unsigned(object.need(b"ask")?)?),
        ask_qty: Some(json::bare_unsigned(object.need(b"ask_qty")?)?),
        last_px: Some(json::bare_unsigned(object.need(b"last")?)?),
        ts_event: optional_time(object)?,
        ..Ticker::default()
    })
}

fn trade(object: &Object<'_>) -> Result<Trade, ParseError> {
    Ok(Trade {
        symbol: symbol(object)?,
        trade_id: json::bare_u64(object.need(b"trade_id")?)?,
        px: json::bare_unsigned(object.need(b"price")?)?,
        qty: json::bare_unsigned(object.need(b"qty")?)?,
        aggressor: match side_of(object)? {
            OrderSide::Buy => AggressorSide::Buy,
            OrderSide::Sell => AggressorSide::Sell,
        },
        in_market: true,
        is_history: false,
        ts_event: time::from_rfc3339(json::text(object.need(b"timestamp")?)?)?,
    })
}

/// The length of a candle is a number of minutes.
pub(super) fn candle(object: &impl Keyed, ts_event: Nanos) -> Result<VenueCandle, ParseError> {
    let number = |key: &[u8]| json::bare_unsigned(object.need(key)?);
    let timeframe = match json::bare_u64(object.need(b"interval")?)? {
        minutes @ 1..=43_200 => Nanos::from_secs(minutes * 60),
        _ => return Err(ParseError::WrongType),
    };
    Ok(VenueCandle {
        symbol: fields::symbol(object, b"symbol")?,
        timeframe,
        ts_open: fields::rfc3339(object, b"interval_begin")?,
        open_px: number(b"open")?,
        high_px: number(b"high")?,
        low_px: number(b"low")?,
        close_px: number(b"close")?,
        volume: number(b"volume")?,
        // The venue never says that a candle is complete; the next one begins.
        is_closed: false,
        ts_event,
    })
}

fn side_of(object: &Object<'_>) -> Result<OrderSide, ParseError> {
    match json::text(object.need(b"side")?)? {
        b"buy" => Ok(OrderSide::Buy),
        b"sell" => Ok(OrderSide::Sell),
        _ => Err(ParseError::WrongType),
    }
}

fn symbol(object: &Object<'_>) -> Result<Symbol, ParseError> {
    Symbol::new(json::text(object.need(b"symbol")?)?)
}

fn optional_time(object: &Object<'_>) -> Result<Nanos, ParseError> {
    object.get(b"timestamp").map_or(Ok(Nanos(0)), |raw| time::from_rfc3339(json::text(raw)?))
}
