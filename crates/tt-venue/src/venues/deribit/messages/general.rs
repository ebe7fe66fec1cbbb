//! Deribit's frames by name, in any order of keys.

use super::account;
use crate::error::ParseError;
use crate::event::{
    AggressorSide, BookDelta, BookSnapshot, Control, Event, EventBuffer, InstrumentState, Levels, Liquidation, Ticker,
    Trade, VenueCandle,
};
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::listing::InstrumentStatus;
use crate::symbol::Symbol;
use crate::time;
use core::str;
use tt_model::{Decimal, Nanos};

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    if json::text(outer.need(b"jsonrpc")?)? != b"2.0" {
        return Err(ParseError::WrongType);
    }
    let Some(method) = outer.get(b"method") else { return answer(&outer, buffer) };
    let parameters = Object::parse(outer.need(b"params")?)?;
    match json::text(method)? {
        b"subscription" => {}
        b"heartbeat" => {
            return match json::text(parameters.need(b"type")?)? {
                b"test_request" => Ok(Event::Control(Control::TestRequest)),
                b"heartbeat" => Ok(Event::Control(Control::Heartbeat)),
                _ => Err(ParseError::WrongType),
            };
        }
        _ => return Err(ParseError::UnknownTopic),
    }
    let topic = json::text(parameters.need(b"channel")?)?;
    let data = parameters.need(b"data")?;
    let kind = topic.split(|byte| *byte == b'.').next().unwrap_or_default();
    match kind {
        b"book" => order_book(&Object::parse(data)?, buffer),
        b"ticker" | b"incremental_ticker" => {
            buffer.push_ticker(ticker(&Object::parse(data)?)?)?;
            Ok(Event::Tickers)
        }
        b"quote" => {
            buffer.push_ticker(best_levels(&Object::parse(data)?)?)?;
            Ok(Event::Tickers)
        }
        b"trades" => {
            json::each(data, |object| trade(object, buffer))?;
            Ok(Event::Trades)
        }
        b"platform_state" => platform_state(&Object::parse(data)?),
        b"instrument" if topic.starts_with(b"instrument.state.") => instrument_state(&Object::parse(data)?),
        b"chart" => {
            buffer.push_candle(candle(topic, &Object::parse(data)?)?)?;
            Ok(Event::Candles)
        }
        _ => account::event(topic, data, buffer).unwrap_or(Err(ParseError::UnknownTopic)),
    }
}

/// `{"maintenance":true}` before the platform goes down; `{"price_index":"btc_usd","locked":true}` where trading stops
/// or, with `false`, goes on: there is no message for each instrument of that index, only its state in the list.
fn platform_state(data: &Object<'_>) -> Result<Event, ParseError> {
    let is_ending = data.get(b"maintenance").map(json::boolean).transpose()?.unwrap_or(false);
    let is_lock = data.get(b"locked").map(json::boolean).transpose()?.is_some();
    Ok(Event::Control(match (is_ending, is_lock) {
        (true, _) => Control::Ending,
        (false, true) => Control::ListChanged,
        (false, false) => Control::Status,
    }))
}

/// `{"timestamp":1553080940000,"state":"delivered","instrument_name":"BTC-22MAR19"}`.
fn instrument_state(data: &Object<'_>) -> Result<Event, ParseError> {
    let word = str::from_utf8(json::text(data.need(b"state")?)?).ok();
    let status = InstrumentStatus::of(word);
    Ok(Event::Control(Control::Instrument(InstrumentState { symbol: symbol(data)?, status })))
}

/// The response to a request, which may contain an own order.
fn answer(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    if outer.get(b"error").is_some() {
        return Err(ParseError::Rejected);
    }
    json::bare_u64(outer.need(b"id")?)?;
    let accepted = Ok(Event::Control(Control::Accepted));
    match outer.need(b"result")? {
        result @ [b'{', ..] => account::order_answer(&Object::parse(result)?, buffer).unwrap_or(accepted),
        _ => accepted,
    }
}

/// The book of all levels has a type and chains; a grouped one is whole each time and has neither.
fn order_book(data: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let symbol = symbol(data)?;
    let ts_event = milliseconds(data, b"timestamp")?;
    let last_id = json::bare_u64(data.need(b"change_id")?)?;
    let kind = data.get(b"type").map(json::text).transpose()?;
    let mut levels = Levels::default();
    side(data.need(b"bids")?, kind.is_some(), &mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(0, middle);
    side(data.need(b"asks")?, kind.is_some(), &mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    let checksum = None;
    match kind {
        Some(b"change") => {
            let previous_id = Some(json::bare_u64(data.need(b"prev_change_id")?)?);
            let first_id = last_id;
            Ok(Event::BookDelta(BookDelta { symbol, first_id, last_id, previous_id, checksum, levels, ts_event }))
        }
        None | Some(b"snapshot") => {
            Ok(Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id, checksum, levels, ts_event }))
        }
        Some(_) => Err(ParseError::WrongType),
    }
}

/// `["new",px,amount]`, or `[px,amount]` in a grouped book.
fn side(raw: &[u8], is_marked: bool, list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let mut levels = Elements::parse(raw)?;
    while let Some(level) = levels.next()? {
        let mut level = Elements::parse(level)?;
        let is_deleted = match if is_marked { json::text(level.need()?)? } else { b"new" } {
            b"new" | b"change" => false,
            b"delete" => true,
            _ => return Err(ParseError::WrongType),
        };
        let px = json::bare_unsigned(level.need()?)?;
        let qty = json::bare_unsigned(level.need()?)?;
        level.end()?;
        if is_deleted != (qty.mantissa == 0) {
            return Err(ParseError::Number);
        }
        buffer.push_level(list, px, qty)?;
    }
    Ok(())
}

pub(super) fn ticker(data: &impl Keyed) -> Result<Ticker, ParseError> {
    let number = |key: &[u8]| json::optional_bare(data.get(key));
    let levels = best_levels(data)?;
    Ok(Ticker {
        last_px: number(b"last_price")?,
        mark_px: number(b"mark_price")?,
        index_px: number(b"index_price")?,
        funding_rate: json::optional_bare_signed(data.get(b"current_funding"))?,
        open_interest: number(b"open_interest")?,
        ..levels
    })
}

/// A side that is empty has a price of null or zero.
pub(super) fn best_levels(data: &impl Keyed) -> Result<Ticker, ParseError> {
    let level = |px: &[u8], qty: &[u8]| -> Result<(Option<Decimal>, Option<Decimal>), ParseError> {
        let raw = data.get(px);
        match json::optional_bare(raw)?.filter(|px| px.mantissa != 0) {
            Some(px) => Ok((Some(px), json::optional_bare(data.get(qty))?)),
            None => Ok((None, raw.map(|_| Decimal::default()))),
        }
    };
    let (bid_px, bid_qty) = level(b"best_bid_price", b"best_bid_amount")?;
    let (ask_px, ask_qty) = level(b"best_ask_price", b"best_ask_amount")?;
    let (symbol, ts_event) = (symbol(data)?, milliseconds(data, b"timestamp")?);
    Ok(Ticker { symbol, bid_px, bid_qty, ask_px, ask_qty, ts_event, ..Ticker::default() })
}

/// A trade, and the liquidation that it was where the venue says so.
pub(super) fn trade(object: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let symbol = symbol(object)?;
    let (px, qty) = (json::bare_unsigned(object.need(b"price")?)?, json::bare_unsigned(object.need(b"amount")?)?);
    let aggressor = match json::text(object.need(b"direction")?)? {
        b"buy" => AggressorSide::Buy,
        b"sell" => AggressorSide::Sell,
        _ => return Err(ParseError::WrongType),
    };
    let other = match aggressor {
        AggressorSide::Buy => AggressorSide::Sell,
        AggressorSide::Sell => AggressorSide::Buy,
    };
    let ts_event = milliseconds(object, b"timestamp")?;
    if let Some(sides) = object.get(b"liquidation") {
        let closing = match json::text(sides)? {
            b"T" => &[aggressor][..],
            b"M" => &[other],
            b"MT" => &[aggressor, other],
            _ => return Err(ParseError::WrongType),
        };
        for side in closing {
            buffer.push_liquidation(Liquidation { symbol, side: *side, px, qty, ts_event })?;
        }
    }
    // A block trade is agreed on elsewhere.
    let in_market = object.get(b"block_trade_id").is_none();
    let trade_id = json::bare_u64(object.need(b"trade_seq")?)?;
    buffer.push_trade(Trade { symbol, trade_id, px, qty, aggressor, in_market, is_history: false, ts_event })
}

/// `chart.trades.BTC-PERPETUAL.1`: the candle names neither its instrument nor its length.
pub(super) fn candle(topic: &[u8], data: &impl Keyed) -> Result<VenueCandle, ParseError> {
    let name = topic.strip_prefix(b"chart.trades.").ok_or(ParseError::UnknownTopic)?;
    let dot = name.iter().rposition(|byte| *byte == b'.').ok_or(ParseError::WrongType)?;
    let seconds = match &name[dot + 1..] {
        b"1D" => 86_400,
        minutes => match json::digits_u64(minutes)? {
            minutes @ 1..=1440 => minutes * 60,
            _ => return Err(ParseError::WrongType),
        },
    };
    let number = |key: &[u8]| json::bare_unsigned(data.need(key)?);
    Ok(VenueCandle {
        symbol: Symbol::new(&name[..dot])?,
        timeframe: Nanos::from_secs(seconds),
        ts_open: milliseconds(data, b"tick")?,
        open_px: number(b"open")?,
        high_px: number(b"high")?,
        low_px: number(b"low")?,
        close_px: number(b"close")?,
        volume: number(b"volume")?,
        // The venue never says that a candle is complete; the next one begins.
        is_closed: false,
        ts_event: Nanos(0),
    })
}

fn symbol(object: &impl Keyed) -> Result<Symbol, ParseError> {
    Symbol::new(json::text(object.need(b"instrument_name")?)?)
}

fn milliseconds(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    time::from_unix_ms(json::bare_u64(object.need(key)?)?)
}
