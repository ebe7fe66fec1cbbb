//! Binance's frames by name, in any order of keys.

use super::account;
use crate::error::ParseError;
use crate::event::{
    AggressorSide, BookDelta, BookSnapshot, BookTicker, Control, Event, EventBuffer, Levels, Liquidation, MarkPrice,
    Ticker, Trade, TradingHours, UnderlyingHours, UnderlyingMarket, VenueCandle,
};
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use tt_model::{Decimal, Nanos};

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
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
            Err(ParseError::UnknownTopic)
        };
    }
    if outer.get(b"error").is_some() || outer.get(b"code").is_some() {
        return Err(ParseError::Rejected);
    }
    event(&outer, buffer)
}

fn event(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
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
        b"24hrTicker" if object.get(b"b").is_none() => Err(ParseError::UnknownTopic),
        b"24hrTicker" => {
            buffer.push_ticker(ticker(object)?)?;
            Ok(Event::Tickers)
        }
        b"referencePrice" => {
            buffer.push_ticker(reference_price(object)?)?;
            Ok(Event::Tickers)
        }
        b"markPriceUpdate" => mark_price(object).map(Event::MarkPrice),
        b"aggTrade" => {
            buffer.push_trade(aggregate_trade(object)?)?;
            Ok(Event::Trades)
        }
        b"blockTrade" => {
            buffer.push_trade(block_trade(object)?)?;
            Ok(Event::Trades)
        }
        b"kline" => {
            let ts_event = time(object.need(b"E")?)?;
            buffer.push_candle(candle(&Object::parse(object.need(b"k")?)?, ts_event)?)?;
            Ok(Event::Candles)
        }
        b"forceOrder" => {
            buffer.push_liquidation(liquidation(&Object::parse(object.need(b"o")?)?)?)?;
            Ok(Event::Liquidations)
        }
        b"EquityUpdate" => session(object, UnderlyingMarket::Stocks),
        b"CommodityUpdate" => session(object, UnderlyingMarket::Commodities),
        b"serverShutdown" => Ok(Event::Control(Control::Ending)),
        kind => account::event(kind, object, buffer),
    }
}

/// The session of a market that perpetuals of stocks and commodities follow ("Trading Session Stream").
fn session(object: &Object<'_>, market: UnderlyingMarket) -> Result<Event, ParseError> {
    let session = match json::text(object.need(b"S")?)? {
        b"PRE_MARKET" => TradingHours::PreMarket,
        b"REGULAR" => TradingHours::Regular,
        b"AFTER_MARKET" => TradingHours::AfterMarket,
        b"OVERNIGHT" => TradingHours::Overnight,
        b"NO_TRADING" => TradingHours::Closed,
        _ => TradingHours::Unknown,
    };
    Ok(Event::Control(Control::Session(UnderlyingHours { market, session })))
}

pub(super) fn book_ticker(object: &impl Keyed) -> Result<BookTicker, ParseError> {
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

pub(super) fn ticker(object: &impl Keyed) -> Result<Ticker, ParseError> {
    Ok(Ticker {
        symbol: symbol(object)?,
        bid_px: Some(json::quoted_unsigned(object.need(b"b")?)?),
        bid_qty: Some(json::quoted_unsigned(object.need(b"B")?)?),
        ask_px: Some(json::quoted_unsigned(object.need(b"a")?)?),
        ask_qty: Some(json::quoted_unsigned(object.need(b"A")?)?),
        last_px: Some(json::quoted_unsigned(object.need(b"c")?)?),
        ts_event: time(object.need(b"E")?)?,
        ..Ticker::default()
    })
}

/// The price that the range of executions is around; null where a symbol has none.
fn reference_price(object: &Object<'_>) -> Result<Ticker, ParseError> {
    let px = object.need(b"r")?;
    Ok(Ticker {
        symbol: symbol(object)?,
        index_px: if px == b"null" { None } else { Some(json::quoted_unsigned(px)?) },
        ts_event: time(object.need(b"t")?)?,
        ..Ticker::default()
    })
}

fn trade(object: &Object<'_>) -> Result<Trade, ParseError> {
    let in_market = match object.get(b"X") {
        Some(kind) => json::text(kind)? == b"MARKET",
        None => true,
    };
    print(object, b"t", in_market)
}

/// Trades of one order at one price; numbered on their own.
pub(super) fn aggregate_trade(object: &impl Keyed) -> Result<Trade, ParseError> {
    print(object, b"a", true)
}

/// A trade that was agreed on elsewhere; its numbers are of a series of their own.
pub(super) fn block_trade(object: &impl Keyed) -> Result<Trade, ParseError> {
    print(object, b"t", false)
}

fn print(object: &impl Keyed, id: &[u8], in_market: bool) -> Result<Trade, ParseError> {
    let buyer_is_maker = json::boolean(object.need(b"m")?)?;
    Ok(Trade {
        symbol: symbol(object)?,
        trade_id: json::bare_u64(object.need(id)?)?,
        px: json::quoted_unsigned(object.need(b"p")?)?,
        qty: json::quoted_unsigned(object.need(b"q")?)?,
        aggressor: if buyer_is_maker { AggressorSide::Sell } else { AggressorSide::Buy },
        in_market,
        is_history: false,
        ts_event: time(object.need(b"T")?)?,
    })
}

pub(super) fn candle(candle: &impl Keyed, ts_event: Nanos) -> Result<VenueCandle, ParseError> {
    let number = |key: &[u8]| json::quoted_unsigned(candle.need(key)?);
    Ok(VenueCandle {
        symbol: symbol(candle)?,
        timeframe: timeframe(json::text(candle.need(b"i")?)?)?,
        ts_open: time(candle.need(b"t")?)?,
        open_px: number(b"o")?,
        high_px: number(b"h")?,
        low_px: number(b"l")?,
        close_px: number(b"c")?,
        volume: number(b"v")?,
        is_closed: json::boolean(candle.need(b"x")?)?,
        ts_event,
    })
}

/// `1m`, `4h`, `1d`, `1w`; a month is taken for 30 days.
fn timeframe(text: &[u8]) -> Result<Nanos, ParseError> {
    let (unit, digits) = text.split_last().ok_or(ParseError::WrongType)?;
    let seconds = match unit {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => 86_400,
        b'w' => 7 * 86_400,
        b'M' => 30 * 86_400,
        _ => return Err(ParseError::WrongType),
    };
    let count = json::digits_u64(digits)?;
    if count == 0 || count > 1000 { Err(ParseError::WrongType) } else { Ok(Nanos::from_secs(count * seconds)) }
}

pub(super) fn liquidation(order: &impl Keyed) -> Result<Liquidation, ParseError> {
    Ok(Liquidation {
        symbol: symbol(order)?,
        side: match json::text(order.need(b"S")?)? {
            b"BUY" => AggressorSide::Buy,
            b"SELL" => AggressorSide::Sell,
            _ => return Err(ParseError::WrongType),
        },
        px: json::quoted_unsigned(order.need(b"ap")?)?,
        qty: json::quoted_unsigned(order.need(b"z")?)?,
        ts_event: time(order.need(b"T")?)?,
    })
}

pub(super) fn mark_price(object: &impl Keyed) -> Result<MarkPrice, ParseError> {
    // Delivery contracts have no funding: their rate is an empty string.
    let funding_rate = match json::text(object.need(b"r")?)? {
        b"" => None,
        rate => Some(Decimal::parse(rate)?),
    };
    let next_funding = object.need(b"T")?;
    Ok(MarkPrice {
        symbol: symbol(object)?,
        mark_px: json::quoted_unsigned(object.need(b"p")?)?,
        // COIN-M sends it apart from the mark price.
        index_px: object.get(b"i").map_or(Ok(Decimal::default()), json::quoted_unsigned)?,
        funding_rate,
        ts_next_funding: if next_funding == b"0" { Nanos(0) } else { time(next_funding)? },
        ts_event: time(object.need(b"E")?)?,
    })
}

fn book_delta(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<BookDelta, ParseError> {
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

/// Reads a REST snapshot by the names of its keys.
///
/// # Errors
/// As [`parse_snapshot`](super::parse_snapshot).
pub(crate) fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    buffer.begin_general();
    json::check_utf8(body)?;
    let object = Object::parse(body)?;
    if object.get(b"code").is_some() {
        return Err(ParseError::VenueError);
    }
    Ok(BookSnapshot {
        symbol: None,
        last_id: json::bare_u64(object.need(b"lastUpdateId")?)?,
        checksum: None,
        levels: levels(object.need(b"bids")?, object.need(b"asks")?, buffer)?,
        ts_event: optional_time(&object, b"T")?,
    })
}

fn levels(bids: &[u8], asks: &[u8], buffer: &mut EventBuffer) -> Result<Levels, ParseError> {
    let mut list = Levels::default();
    let start = buffer.mark();
    side(bids, &mut list, buffer)?;
    let middle = buffer.mark();
    list.set_bids(start, middle);
    side(asks, &mut list, buffer)?;
    list.set_asks(middle, buffer.mark());
    Ok(list)
}

fn side(text: &[u8], list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
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

pub(super) fn symbol(object: &impl Keyed) -> Result<Symbol, ParseError> {
    Symbol::new(json::text(object.need(b"s")?)?)
}

fn optional_time(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    object.get(key).map_or(Ok(Nanos(0)), time)
}

pub(super) fn time(raw: &[u8]) -> Result<Nanos, ParseError> {
    crate::time::from_unix_ms_or_us(json::bare_u64(raw)?)
}
