//! Hyperliquid's frames by name, in any order of keys.

use super::account;
use crate::error::ParseError;
use crate::event::{AggressorSide, BookSnapshot, Control, Event, EventBuffer, Levels, Ticker, Trade, VenueCandle};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Elements, Members, Object};
use crate::symbol::Symbol;
use tt_model::{Decimal, Nanos};

/// In nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    match json::text(outer.need(b"channel")?)? {
        b"l2Book" => book(&Object::parse(outer.need(b"data")?)?, buffer).map(Event::BookSnapshot),
        b"trades" => {
            let mut elements = Elements::parse(outer.need(b"data")?)?;
            while let Some(element) = elements.next()? {
                buffer.push_trade(trade(&Object::parse(element)?)?)?;
            }
            Ok(Event::Trades)
        }
        b"bbo" => one_ticker(best_levels(&Object::parse(outer.need(b"data")?)?)?, buffer),
        b"activeAssetCtx" => {
            let object = Object::parse(outer.need(b"data")?)?;
            one_ticker(contract(symbol(&object)?, &Object::parse(object.need(b"ctx")?)?)?, buffer)
        }
        b"activeSpotAssetCtx" => {
            let object = Object::parse(outer.need(b"data")?)?;
            one_ticker(spot_market(symbol(&object)?, &Object::parse(object.need(b"ctx")?)?)?, buffer)
        }
        b"allMids" => mids(&Object::parse(outer.need(b"data")?)?, buffer),
        b"candle" => {
            buffer.push_candle(candle(&Object::parse(outer.need(b"data")?)?)?)?;
            Ok(Event::Candles)
        }
        b"orderUpdates" => account::orders(outer.need(b"data")?, buffer),
        b"userFills" => account::fills(Object::parse(outer.need(b"data")?)?.need(b"fills")?, buffer),
        b"userFundings" => account::fundings(Object::parse(outer.need(b"data")?)?.need(b"fundings")?, buffer),
        b"user" => account::user(&Object::parse(outer.need(b"data")?)?, buffer),
        b"webData2" | b"clearinghouseState" => account::clearinghouse(&Object::parse(outer.need(b"data")?)?, buffer),
        b"allDexsClearinghouseState" => account::clearinghouses(&Object::parse(outer.need(b"data")?)?, buffer),
        b"spotState" => account::tokens(&Object::parse(outer.need(b"data")?)?, buffer),
        b"openOrders" => account::open_orders(&Object::parse(outer.need(b"data")?)?, buffer),
        b"pong" => Ok(Event::Control(Control::Pong)),
        b"subscriptionResponse" => Ok(Event::Control(Control::Accepted)),
        b"error" => Err(ParseError::Rejected),
        _ => Err(ParseError::UnknownTopic),
    }
}

fn book(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    let symbol = Some(symbol(object)?);
    let mut sides = Elements::parse(object.need(b"levels")?)?;
    let mut levels = Levels::default();
    let start = buffer.mark();
    side(sides.need()?, &mut levels, buffer)?;
    let middle = buffer.mark();
    levels.set_bids(start, middle);
    side(sides.need()?, &mut levels, buffer)?;
    levels.set_asks(middle, buffer.mark());
    sides.end()?;
    Ok(BookSnapshot { symbol, last_id: 0, checksum: None, levels, ts_event: time(object, b"time")? })
}

fn side(text: &[u8], levels: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let mut elements = Elements::parse(text)?;
    while let Some(level) = elements.next()? {
        let level = Object::parse(level)?;
        let px = json::quoted_unsigned(level.need(b"px")?)?;
        let qty = json::quoted_unsigned(level.need(b"sz")?)?;
        buffer.push_level(levels, px, qty)?;
    }
    Ok(())
}

fn trade(object: &Object<'_>) -> Result<Trade, ParseError> {
    Ok(Trade {
        symbol: symbol(object)?,
        trade_id: json::bare_u64(object.need(b"tid")?)?,
        px: json::quoted_unsigned(object.need(b"px")?)?,
        qty: json::quoted_unsigned(object.need(b"sz")?)?,
        // `B` bids for it, `A` asks.
        aggressor: match json::text(object.need(b"side")?)? {
            b"B" => AggressorSide::Buy,
            b"A" => AggressorSide::Sell,
            _ => return Err(ParseError::WrongType),
        },
        in_market: true,
        is_history: false,
        ts_event: time(object, b"time")?,
    })
}

fn one_ticker(ticker: Ticker, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.push_ticker(ticker)?;
    Ok(Event::Tickers)
}

/// An empty side is null.
pub(super) fn best_levels(object: &impl Keyed) -> Result<Ticker, ParseError> {
    let mut sides = Elements::parse(object.need(b"bbo")?)?;
    let (bid, ask) = (best_level(sides.need()?)?, best_level(sides.need()?)?);
    sides.end()?;
    Ok(Ticker {
        symbol: symbol(object)?,
        bid_px: bid.0,
        bid_qty: bid.1,
        ask_px: ask.0,
        ask_qty: ask.1,
        ts_event: time(object, b"time")?,
        ..Ticker::default()
    })
}

fn best_level(raw: &[u8]) -> Result<(Option<Decimal>, Option<Decimal>), ParseError> {
    if raw == b"null" {
        return Ok((None, Some(Decimal::default())));
    }
    let level = Object::parse(raw)?;
    let px = json::quoted_unsigned(level.need(b"px")?)?;
    Ok((Some(px), Some(json::quoted_unsigned(level.need(b"sz")?)?)))
}

/// Mark price, oracle price, funding and open interest of a perpetual. The funding is of the running hour.
pub(super) fn contract(symbol: Symbol, state: &impl Keyed) -> Result<Ticker, ParseError> {
    Ok(Ticker {
        symbol,
        mark_px: Some(fields::amount(state, b"markPx")?),
        index_px: Some(fields::amount(state, b"oraclePx")?),
        mid_px: fields::optional_amount(state, b"midPx")?,
        funding_rate: Some(fields::number(state, b"funding")?),
        open_interest: Some(fields::amount(state, b"openInterest")?),
        ..Ticker::default()
    })
}

/// Mark price of a spot market or an outcome.
fn spot_market(symbol: Symbol, state: &impl Keyed) -> Result<Ticker, ParseError> {
    Ok(Ticker {
        symbol,
        mark_px: Some(fields::amount(state, b"markPx")?),
        mid_px: fields::optional_amount(state, b"midPx")?,
        ..Ticker::default()
    })
}

pub(super) fn mids(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let mut members = Members::parse(object.need(b"mids")?)?;
    while let Some((coin, px)) = members.next()? {
        let symbol = Symbol::new(coin)?;
        let mid_px = Some(json::quoted_unsigned(px)?);
        if buffer.tickers().iter().any(|ticker| ticker.symbol == symbol) {
            return Err(ParseError::DuplicateKey);
        }
        buffer.push_ticker(Ticker { symbol, mid_px, ..Ticker::default() })?;
    }
    Ok(Event::Tickers)
}

pub(super) fn candle(object: &impl Keyed) -> Result<VenueCandle, ParseError> {
    let ts_open = time(object, b"t")?;
    // The end is the last millisecond of the candle.
    let timeframe = Nanos(time(object, b"T")?.0.checked_sub(ts_open.0).ok_or(ParseError::Time)? + MILLISECOND);
    Ok(VenueCandle {
        symbol: fields::symbol(object, b"s")?,
        timeframe,
        ts_open,
        open_px: fields::amount(object, b"o")?,
        high_px: fields::amount(object, b"h")?,
        low_px: fields::amount(object, b"l")?,
        close_px: fields::amount(object, b"c")?,
        volume: fields::amount(object, b"v")?,
        is_closed: false,
        ts_event: Nanos(0),
    })
}

pub(super) fn symbol(object: &impl Keyed) -> Result<Symbol, ParseError> {
    Symbol::new(json::text(object.need(b"coin")?)?)
}

pub(super) fn time(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    crate::time::from_unix_ms(json::bare_u64(object.need(key)?)?)
}
