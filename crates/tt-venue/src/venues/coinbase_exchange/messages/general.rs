//! Coinbase Exchange's frames by name, in any order of keys.

use crate::error::ParseError;
use crate::event::{
    AggressorSide, BookDelta, BookOrder, BookOrders, BookSnapshot, Control, Event, EventBuffer, Levels, OrderAction,
    OrderId, Ticker, Trade,
};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use tt_model::{Decimal, Nanos, OrderSide};

const SIDES: [&[u8]; 2] = [b"buy", b"sell"];

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    if frame.starts_with(b"[") {
        return compact(frame);
    }
    let object = Object::parse(frame)?;
    match json::text(object.need(b"type")?)? {
        b"l2update" => book_delta(&object, buffer).map(Event::BookDelta),
        b"snapshot" => book_snapshot(&object, buffer).map(Event::BookSnapshot),
        kind @ (b"match" | b"last_match") => {
            buffer.push_trade(Trade { is_history: kind == b"last_match", ..trade(&object)? })?;
            // The last one before the subscription took its order before.
            if kind == b"match" && object.get(b"maker_order_id").is_some() {
                buffer.take_order(book_orders(&object)?)?;
                buffer.push_book_order(taken(&object)?)?;
            }
            Ok(Event::Trades)
        }
        kind @ (b"received" | b"open" | b"done" | b"change") => {
            if let Some(order) = book_order(kind, &object)? {
                buffer.push_book_order(order)?;
            }
            Ok(Event::BookOrders(book_orders(&object)?))
        }
        // A stop order has been placed: it does not rest in the book.
        b"activate" => Ok(Event::Control(Control::Status)),
        b"ticker" => {
            buffer.push_ticker(ticker(&object)?)?;
            Ok(Event::Tickers)
        }
        b"heartbeat" => Ok(Event::Control(Control::Heartbeat)),
        b"status" => Ok(Event::Control(Control::Status)),
        b"subscriptions" => Ok(Event::Control(Control::Accepted)),
        b"error" => Err(ParseError::Rejected),
        _ => Err(ParseError::UnknownTopic),
    }
}

/// A message of the channel `level3`, which no rules ask for: an array of texts. It names neither the number nor the
/// side of a trade, so that `full` is followed instead.
fn compact(frame: &[u8]) -> Result<Event, ParseError> {
    let mut members = Elements::parse(frame)?;
    json::text(members.need()?)?;
    while let Some(member) = members.next()? {
        json::text(member)?;
    }
    Err(ParseError::UnknownTopic)
}

fn book_delta(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<BookDelta, ParseError> {
    let symbol = symbol(object)?;
    let changes = object.need(b"changes")?;
    let mut levels = Levels::default();
    let start = buffer.mark();
    changes_of(changes, b"buy", b"sell", &mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(start, middle);
    changes_of(changes, b"sell", b"buy", &mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    let ts_event = time(object)?;
    Ok(BookDelta { symbol, first_id: 0, last_id: 0, previous_id: None, checksum: None, levels, ts_event })
}

/// Keeps the changes of one side; there is no third.
fn changes_of(
    changes: &[u8],
    wanted: &[u8],
    other: &[u8],
    levels: &mut Levels,
    buffer: &mut EventBuffer,
) -> Result<(), ParseError> {
    let mut elements = Elements::parse(changes)?;
    while let Some(change) = elements.next()? {
        let mut change = Elements::parse(change)?;
        let side = json::text(change.need()?)?;
        let px = json::quoted_unsigned(change.need()?)?;
        let qty = json::quoted_unsigned(change.need()?)?;
        change.end()?;
        if side == wanted {
            buffer.push_level(levels, px, qty)?;
        } else if side != other {
            return Err(ParseError::WrongType);
        }
    }
    Ok(())
}

fn book_snapshot(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    let symbol = Some(symbol(object)?);
    let mut levels = Levels::default();
    let start = buffer.mark();
    side(object.need(b"bids")?, &mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(start, middle);
    side(object.need(b"asks")?, &mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    let ts_event = if object.get(b"time").is_some() { time(object)? } else { Nanos(0) };
    Ok(BookSnapshot { symbol, last_id: 0, checksum: None, levels, ts_event })
}

fn side(text: &[u8], levels: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let mut elements = Elements::parse(text)?;
    while let Some(level) = elements.next()? {
        let mut pair = Elements::parse(level)?;
        let px = json::quoted_unsigned(pair.need()?)?;
        let qty = json::quoted_unsigned(pair.need()?)?;
        pair.end()?;
        buffer.push_level(levels, px, qty)?;
    }
    Ok(())
}

/// What a message of `full` says of the book as a whole.
pub(super) fn book_orders(object: &impl Keyed) -> Result<BookOrders, ParseError> {
    Ok(BookOrders {
        symbol: fields::symbol(object, b"product_id")?,
        is_snapshot: false,
        number: json::bare_u64(object.need(b"sequence")?)?,
        checksum: None,
        ts_event: fields::rfc3339(object, b"time")?,
    })
}

/// What a match took from the maker's order.
fn taken(object: &impl Keyed) -> Result<BookOrder, ParseError> {
    Ok(BookOrder {
        action: OrderAction::Take,
        side: fields::order_side(object, b"side", SIDES)?,
        order_id: OrderId::new(fields::text(object, b"maker_order_id")?)?,
        px: None,
        qty: json::quoted_unsigned(object.need(b"size")?)?,
        ts_event: fields::rfc3339(object, b"time")?,
    })
}

/// What happens to an order; `None` where it does not rest in the book: it was just received, or has no price.
pub(super) fn book_order(kind: &[u8], object: &impl Keyed) -> Result<Option<BookOrder>, ParseError> {
    let (action, px, qty) = match kind {
        b"open" => {
            let qty = json::quoted_unsigned(object.need(b"remaining_size")?)?;
            (OrderAction::Add, Some(json::quoted_unsigned(object.need(b"price")?)?), qty)
        }
        b"done" if fields::optional(object, b"price").is_some() => (OrderAction::Delete, None, Decimal::default()),
        b"change" => match fields::optional_amount(object, b"new_size")? {
            Some(qty) => (OrderAction::Change, fields::optional_amount(object, b"new_price")?, qty),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let side = fields::order_side(object, b"side", SIDES)?;
    let order_id = OrderId::new(fields::text(object, b"order_id")?)?;
    let ts_event = fields::rfc3339(object, b"time")?;
    Ok(Some(BookOrder { action, side, order_id, px, qty, ts_event }))
}

/// Reads the body of `GET /products/{product}/book?level=3`.
///
/// # Errors
/// A [`ParseError`] that [`is_malformed`](ParseError::is_malformed), or `VenueError` if the body holds an error.
pub(crate) fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    buffer.begin_general();
    json::check_utf8(body)?;
    let object = Object::parse(body)?;
    if object.get(b"message").is_some() {
        return Err(ParseError::VenueError);
    }
    for (key, side) in [(b"bids", OrderSide::Buy), (b"asks", OrderSide::Sell)] {
        let mut orders = Elements::parse(object.need(key)?)?;
        while let Some(order) = orders.next()? {
            let mut order = Elements::parse(order)?;
            let px = Some(json::quoted_unsigned(order.need()?)?);
            let qty = json::quoted_unsigned(order.need()?)?;
            let order_id = OrderId::new(json::text(order.need()?)?)?;
            order.end()?;
            let (action, ts_event) = (OrderAction::Add, Nanos(0));
            buffer.push_book_order(BookOrder { action, side, order_id, px, qty, ts_event })?;
        }
    }
    Ok(BookSnapshot {
        symbol: None,
        last_id: json::bare_u64(object.need(b"sequence")?)?,
        checksum: None,
        levels: Levels::default(),
        ts_event: fields::optional_rfc3339(&object, b"time")?,
    })
}

fn trade(object: &Object<'_>) -> Result<Trade, ParseError> {
    Ok(Trade {
        symbol: symbol(object)?,
        trade_id: json::bare_u64(object.need(b"trade_id")?)?,
        px: json::quoted_unsigned(object.need(b"price")?)?,
        qty: json::quoted_unsigned(object.need(b"size")?)?,
        // The venue names the maker's side.
        aggressor: match json::text(object.need(b"side")?)? {
            b"sell" => AggressorSide::Buy,
            b"buy" => AggressorSide::Sell,
            _ => return Err(ParseError::WrongType),
        },
        in_market: true,
        is_history: false,
        ts_event: time(object)?,
    })
}

fn ticker(object: &Object<'_>) -> Result<Ticker, ParseError> {
    Ok(Ticker {
        symbol: symbol(object)?,
        bid_px: fields::optional_amount(object, b"best_bid")?,
        // The sizes came later than the feed itself.
        bid_qty: fields::optional_amount(object, b"best_bid_size")?,
        ask_px: fields::optional_amount(object, b"best_ask")?,
        ask_qty: fields::optional_amount(object, b"best_ask_size")?,
        last_px: Some(fields::amount(object, b"price")?),
        ts_event: time(object)?,
        ..Ticker::default()
    })
}

fn symbol(object: &Object<'_>) -> Result<Symbol, ParseError> {
    fields::symbol(object, b"product_id")
}

fn time(object: &Object<'_>) -> Result<Nanos, ParseError> {
    fields::rfc3339(object, b"time")
}
