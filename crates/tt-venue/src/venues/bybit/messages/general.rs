//! Bybit's frames by name, in any order of keys.

use super::account;
use crate::error::ParseError;
use crate::event::{
    AggressorSide, BookDelta, BookSnapshot, Control, Event, EventBuffer, Levels, Liquidation, Ticker, Trade,
    VenueCandle,
};
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use crate::time;
use tt_model::Nanos;

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    let Some(topic) = outer.get(b"topic") else { return answer(&outer) };
    let topic = json::text(topic)?;
    let (kind, rest) = match topic.iter().position(|byte| *byte == b'.') {
        Some(dot) => (&topic[..dot], &topic[dot + 1..]),
        None => (topic, &topic[topic.len()..]),
    };
    match kind {
        b"orderbook" => order_book(&outer, rest, buffer),
        b"publicTrade" | b"trade" => {
            json::each(outer.need(b"data")?, |object| buffer.push_trade(trade(object)?))?;
            Ok(Event::Trades)
        }
        b"tickers" => {
            let ts_event = milliseconds(outer.need(b"ts")?)?;
            buffer.push_ticker(ticker(&Object::parse(outer.need(b"data")?)?, ts_event)?)?;
            Ok(Event::Tickers)
        }
        b"kline" => {
            // `kline.5.BTCUSDT`: the entries do not name the symbol.
            let dot = rest.iter().position(|byte| *byte == b'.').ok_or(ParseError::WrongType)?;
            let symbol = Symbol::new(&rest[dot + 1..])?;
            json::each(outer.need(b"data")?, |object| buffer.push_candle(candle(symbol, object)?))?;
            Ok(Event::Candles)
        }
        b"allLiquidation" => {
            json::each(outer.need(b"data")?, |object| buffer.push_liquidation(liquidation(object)?))?;
            Ok(Event::Liquidations)
        }
        _ => account::event(kind, &outer, buffer).unwrap_or(Err(ParseError::UnknownTopic)),
    }
}

/// The answer to a request, of which there are four forms. That of options names the topics and no operation.
fn answer(outer: &Object<'_>) -> Result<Event, ParseError> {
    if let Some(kind) = outer.get(b"type")
        && json::text(kind)? == b"COMMAND_RESP"
    {
        let is_accepted = json::boolean(outer.need(b"success")?)?;
        return if is_accepted { Ok(Event::Control(Control::Accepted)) } else { Err(ParseError::Rejected) };
    }
    let operation = json::text(outer.need(b"op")?)?;
    let is_pong = match outer.get(b"ret_msg") {
        Some(message) => json::text(message)? == b"pong",
        None => false,
    };
    if is_pong || operation == b"pong" {
        return Ok(Event::Control(Control::Pong));
    }
    match (operation, json::boolean(outer.need(b"success")?)?) {
        (_, false) => Err(ParseError::Rejected),
        (b"auth", true) => Ok(Event::Control(Control::LoggedIn)),
        (b"subscribe" | b"unsubscribe", true) => Ok(Event::Control(Control::Accepted)),
        (_, true) => Err(ParseError::UnknownTopic),
    }
}

fn order_book(outer: &Object<'_>, of: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let is_delta = match json::text(outer.need(b"type")?)? {
        b"delta" => true,
        b"snapshot" => false,
        _ => return Err(ParseError::WrongType),
    };
    let ts_event = milliseconds(outer.need(b"ts")?)?;
    // The matching engine's own time, where it is sent.
    let ts_event = outer.get(b"cts").map_or(Ok(ts_event), milliseconds)?;
    let data = Object::parse(outer.need(b"data")?)?;
    let symbol = symbol(&data, b"s")?;
    let update_id = json::bare_u64(data.need(b"u")?)?;
    if let Some(sequence) = data.get(b"seq") {
        json::bare_u64(sequence)?;
    }
    let (bids, asks) = (data.need(b"b")?, data.need(b"a")?);
    let levels = if of.starts_with(b"rpi.") {
        rpi_sides(bids, asks, buffer)?
    } else {
        json::quoted_sides(bids, asks, 2, buffer)?
    };
    Ok(book(is_delta, of.starts_with(b"full."), symbol, update_id, levels, ts_event))
}

/// Levels of `[price, quantity without RPI orders, quantity of RPI orders]`: both together are the level's.
fn rpi_sides(bids: &[u8], asks: &[u8], buffer: &mut EventBuffer) -> Result<Levels, ParseError> {
    let mut list = Levels::default();
    let start = buffer.mark();
    rpi_side(bids, &mut list, buffer)?;
    let middle = buffer.mark();
    list.set_bids(start, middle);
    rpi_side(asks, &mut list, buffer)?;
    list.set_asks(middle, buffer.mark());
    Ok(list)
}

fn rpi_side(raw: &[u8], list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let mut levels = Elements::parse(raw)?;
    while let Some(level) = levels.next()? {
        let mut level = Elements::parse(level)?;
        let px = json::quoted_unsigned(level.need()?)?;
        let mut qty = json::quoted_unsigned(level.need()?)?;
        // The scanner reads levels without it.
        if let Some(rpi) = level.next()? {
            qty = qty.sum(json::quoted_unsigned(rpi)?)?;
        }
        level.end()?;
        buffer.push_level(list, px, qty)?;
    }
    Ok(())
}

/// Reads the body of `GET /v5/market/full_orderbook`.
///
/// # Errors
/// A [`ParseError`] that [`is_malformed`](ParseError::is_malformed), or `VenueError` if the body holds an error.
pub(crate) fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    buffer.begin_general();
    json::check_utf8(body)?;
    let outer = Object::parse(body)?;
    if json::bare_u64(outer.need(b"retCode")?)? != 0 {
        return Err(ParseError::VenueError);
    }
    let result = Object::parse(outer.need(b"result")?)?;
    let ts_event = result.get(b"cts").map_or_else(|| result.need(b"ts"), Ok)?;
    Ok(BookSnapshot {
        symbol: None,
        last_id: json::bare_u64(result.need(b"u")?)?,
        checksum: None,
        levels: json::quoted_sides(result.need(b"b")?, result.need(b"a")?, 2, buffer)?,
        ts_event: milliseconds(ts_event)?,
    })
}

/// A book whose numbers start again is a whole one, whatever its type says: the service was restarted. Of books of all
/// levels the socket sends changes only.
#[inline]
pub(super) fn book(
    is_delta: bool,
    is_full: bool,
    symbol: Symbol,
    update_id: u64,
    levels: Levels,
    ts_event: Nanos,
) -> Event {
    if is_delta && (is_full || update_id != 1) {
        Event::BookDelta(BookDelta {
            symbol,
            first_id: update_id,
            last_id: update_id,
            previous_id: None,
            checksum: None,
            levels,
            ts_event,
        })
    } else {
        Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id: update_id, checksum: None, levels, ts_event })
    }
}

fn trade(object: &Object<'_>) -> Result<Trade, ParseError> {
    Ok(Trade {
        symbol: symbol(object, b"s")?,
        trade_id: json::quoted_id(object.need(b"i")?)?,
        px: json::quoted_unsigned(object.need(b"p")?)?,
        qty: json::quoted_unsigned(object.need(b"v")?)?,
        aggressor: side(object)?,
        // Block trades are agreed on elsewhere.
        in_market: !object.get(b"BT").map_or(Ok(false), json::boolean)?,
        is_history: false,
        ts_event: milliseconds(object.need(b"T")?)?,
    })
}

/// A snapshot names everything, a delta what changed.
pub(super) fn ticker(data: &impl Keyed, ts_event: Nanos) -> Result<Ticker, ParseError> {
    // Options have other names, and zeros where there is no price.
    let number = |key: &[u8]| json::optional_quoted(data.get(key));
    let best = |key: &[u8], of_option: &[u8]| match data.get(key) {
        Some(_) => number(key),
        None => Ok(number(of_option)?.filter(|best| best.mantissa != 0)),
    };
    let ts_next_funding = match data.get(b"nextFundingTime").map(json::text).transpose()? {
        None | Some(b"" | b"0") => None,
        Some(ms) => Some(time::from_unix_ms(json::digits_u64(ms)?)?),
    };
    Ok(Ticker {
        symbol: symbol(data, b"symbol")?,
        bid_px: best(b"bid1Price", b"bidPrice")?,
        bid_qty: best(b"bid1Size", b"bidSize")?,
        ask_px: best(b"ask1Price", b"askPrice")?,
        ask_qty: best(b"ask1Size", b"askSize")?,
        last_px: number(b"lastPrice")?,
        mark_px: number(b"markPrice")?,
        index_px: number(b"indexPrice")?,
        mid_px: None,
        funding_rate: json::optional_quoted_signed(data.get(b"fundingRate"))?,
        ts_next_funding,
        open_interest: number(b"openInterest")?,
        ts_event,
    })
}

pub(super) fn candle(symbol: Symbol, object: &impl Keyed) -> Result<VenueCandle, ParseError> {
    let number = |key: &[u8]| json::quoted_unsigned(object.need(key)?);
    let seconds = match json::text(object.need(b"interval")?)? {
        b"D" => 86_400,
        b"W" => 7 * 86_400,
        // A month is taken for 30 days.
        b"M" => 30 * 86_400,
        minutes => match json::digits_u64(minutes)? {
            minutes @ 1..=1440 => minutes * 60,
            _ => return Err(ParseError::WrongType),
        },
    };
    Ok(VenueCandle {
        symbol,
        timeframe: Nanos::from_secs(seconds),
        ts_open: milliseconds(object.need(b"start")?)?,
        open_px: number(b"open")?,
        high_px: number(b"high")?,
        low_px: number(b"low")?,
        close_px: number(b"close")?,
        volume: number(b"volume")?,
        is_closed: json::boolean(object.need(b"confirm")?)?,
        ts_event: milliseconds(object.need(b"timestamp")?)?,
    })
}

/// The venue names the side of the position: one that was long is closed by selling.
pub(super) fn liquidation(object: &impl Keyed) -> Result<Liquidation, ParseError> {
    Ok(Liquidation {
        symbol: symbol(object, b"s")?,
        side: match side(object)? {
            AggressorSide::Buy => AggressorSide::Sell,
            AggressorSide::Sell => AggressorSide::Buy,
        },
        px: json::quoted_unsigned(object.need(b"p")?)?,
        qty: json::quoted_unsigned(object.need(b"v")?)?,
        ts_event: milliseconds(object.need(b"T")?)?,
    })
}

fn side(object: &impl Keyed) -> Result<AggressorSide, ParseError> {
    match json::text(object.need(b"S")?)? {
        b"Buy" => Ok(AggressorSide::Buy),
        b"Sell" => Ok(AggressorSide::Sell),
        _ => Err(ParseError::WrongType),
    }
}

fn symbol(object: &impl Keyed, key: &[u8]) -> Result<Symbol, ParseError> {
    Symbol::new(json::text(object.need(key)?)?)
}

pub(super) fn milliseconds(raw: &[u8]) -> Result<Nanos, ParseError> {
    time::from_unix_ms(json::bare_u64(raw)?)
}
