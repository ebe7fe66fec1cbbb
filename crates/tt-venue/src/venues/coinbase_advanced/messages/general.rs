//! Coinbase Advanced's frames by name, in any order of keys.

use super::account;
use crate::error::ParseError;
use crate::event::{
    AggressorSide, BookDelta, BookSnapshot, Control, Event, EventBuffer, Levels, Ticker, Trade, VenueCandle,
};
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use crate::{fields, time};
use tt_model::Nanos;

/// The venue's own candles have one length.
const CANDLE: Nanos = Nanos::from_secs(300);

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    let Some(topic) = outer.get(b"channel") else {
        return if fields::text(&outer, b"type")? == b"error" {
            Err(ParseError::Rejected)
        } else {
            Err(ParseError::UnknownTopic)
        };
    };
    let sequence = json::bare_u64(outer.need(b"sequence_num")?)?;
    let ts_event = fields::rfc3339(&outer, b"timestamp")?;
    buffer.number_message(sequence)?;
    let events = outer.need(b"events")?;
    match json::text(topic)? {
        b"l2_data" => book(events, sequence, ts_event, buffer),
        b"market_trades" => {
            trades(events, buffer)?;
            Ok(Event::Trades)
        }
        b"ticker" | b"ticker_batch" => {
            lists(events, b"tickers", |object| buffer.push_ticker(ticker(object, ts_event)?))?;
            Ok(Event::Tickers)
        }
        b"candles" => {
            lists(events, b"candles", |object| buffer.push_candle(candle(object, ts_event)?))?;
            Ok(Event::Candles)
        }
        b"user" => account::user(events, ts_event, buffer),
        b"heartbeats" => Ok(Event::Control(Control::Heartbeat)),
        b"subscriptions" => Ok(Event::Control(Control::Accepted)),
        b"status" => Ok(Event::Control(Control::Status)),
        _ => Err(ParseError::UnknownTopic),
    }
}

/// A subscription repeats the last hundred of each product.
fn trades(events: &[u8], buffer: &mut EventBuffer) -> Result<(), ParseError> {
    fields::each(events, |event| {
        let is_history = fields::optional(event, b"type").is_some_and(is_history);
        fields::each(event.need(b"trades")?, |object| buffer.push_trade(Trade { is_history, ..trade(object)? }))
    })
}

/// Whether an event is the answer to a subscription.
pub(super) fn is_history(kind: &[u8]) -> bool {
    json::text(kind) == Ok(b"snapshot")
}

/// Calls `each` with every object of the list of that name in every event.
fn lists(
    events: &[u8],
    name: &[u8],
    mut each: impl FnMut(&Object<'_>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    fields::each(events, |event| fields::each(event.need(name)?, &mut each))
}

/// A message concerns one book.
fn book(events: &[u8], last_id: u64, ts_event: Nanos, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let mut elements = Elements::parse(events)?;
    let event = Object::parse(elements.need()?)?;
    elements.end()?;
    let symbol = fields::symbol(&event, b"product_id")?;
    let updates = event.need(b"updates")?;
    let mut levels = Levels::default();
    let start = buffer.mark();
    updates_of(updates, b"bid", b"offer", &mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(start, middle);
    updates_of(updates, b"offer", b"bid", &mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    match fields::text(&event, b"type")? {
        b"snapshot" => {
            Ok(Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id, checksum: None, levels, ts_event }))
        }
        b"update" => Ok(Event::BookDelta(BookDelta {
            symbol,
            first_id: last_id,
            last_id,
            previous_id: None,
            checksum: None,
            levels,
            ts_event,
        })),
        _ => Err(ParseError::WrongType),
    }
}

/// Keeps the levels of one side; there is no third.
fn updates_of(
    updates: &[u8],
    wanted: &[u8],
    other: &[u8],
    levels: &mut Levels,
    buffer: &mut EventBuffer,
) -> Result<(), ParseError> {
    fields::each(updates, |object| {
        let side = fields::text(object, b"side")?;
        let px = json::quoted_unsigned(object.need(b"price_level")?)?;
        let qty = json::quoted_unsigned(object.need(b"new_quantity")?)?;
        if side == wanted {
            buffer.push_level(levels, px, qty)
        } else if side == other {
            Ok(())
        } else {
            Err(ParseError::WrongType)
        }
    })
}

pub(super) fn trade(object: &impl Keyed) -> Result<Trade, ParseError> {
    Ok(Trade {
        symbol: product(object)?,
        trade_id: fields::whole(object, b"trade_id")?,
        px: json::quoted_unsigned(object.need(b"price")?)?,
        qty: json::quoted_unsigned(object.need(b"size")?)?,
        // The venue names the maker's side.
        aggressor: match fields::text(object, b"side")? {
            b"SELL" => AggressorSide::Buy,
            b"BUY" => AggressorSide::Sell,
            _ => return Err(ParseError::WrongType),
        },
        in_market: true,
        is_history: false,
        ts_event: fields::rfc3339(object, b"time")?,
    })
}

/// `ticker_batch` leaves the best levels out.
pub(super) fn ticker(object: &impl Keyed, ts_event: Nanos) -> Result<Ticker, ParseError> {
    Ok(Ticker {
        symbol: product(object)?,
        bid_px: fields::optional_amount(object, b"best_bid")?,
        bid_qty: fields::optional_amount(object, b"best_bid_quantity")?,
        ask_px: fields::optional_amount(object, b"best_ask")?,
        ask_qty: fields::optional_amount(object, b"best_ask_quantity")?,
        last_px: Some(fields::amount(object, b"price")?),
        ts_event,
        ..Ticker::default()
    })
}

pub(super) fn candle(object: &impl Keyed, ts_event: Nanos) -> Result<VenueCandle, ParseError> {
    let start_s = fields::whole(object, b"start")?;
    Ok(VenueCandle {
        symbol: product(object)?,
        timeframe: CANDLE,
        ts_open: time::from_unix_ms(start_s.checked_mul(1000).ok_or(ParseError::Time)?)?,
        open_px: fields::amount(object, b"open")?,
        high_px: fields::amount(object, b"high")?,
        low_px: fields::amount(object, b"low")?,
        close_px: fields::amount(object, b"close")?,
        volume: fields::amount(object, b"volume")?,
        is_closed: false,
        ts_event,
    })
}

pub(super) fn product(object: &impl Keyed) -> Result<Symbol, ParseError> {
    fields::symbol(object, b"product_id")
}
