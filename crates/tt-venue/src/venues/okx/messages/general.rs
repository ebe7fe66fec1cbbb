//! OKX's frames by name, in any order of keys.

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
use tt_model::{Decimal, Nanos};

/// Reads one frame by the names of its keys: for frames that the faster readers do not know.
///
/// # Errors
/// See [`Venue::parse`](crate::venues::Venue::parse).
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.begin_general();
    if frame == b"pong" {
        return Ok(Event::Control(Control::Pong));
    }
    json::check_utf8(frame)?;
    let outer = Object::parse(frame)?;
    if let Some(event) = outer.get(b"event") {
        let code = outer.get(b"code").map(json::text).transpose()?;
        return answer(json::text(event)?, code);
    }
    let argument = Object::parse(outer.need(b"arg")?)?;
    let topic = json::text(argument.need(b"channel")?)?;
    let data = outer.need(b"data")?;
    match topic {
        b"books" | b"books-l2-tbt" | b"books50-l2-tbt" | b"books-rpi" | b"books-elp" => {
            let is_update = match json::text(outer.need(b"action")?)? {
                b"update" => true,
                b"snapshot" => false,
                _ => return Err(ParseError::WrongType),
            };
            order_book(is_update, symbol(&argument)?, &only(data)?, buffer)
        }
        b"books5" => order_book(false, symbol(&argument)?, &only(data)?, buffer),
        b"bbo-tbt" => {
            buffer.push_ticker(best_levels(symbol(&argument)?, &only(data)?)?)?;
            Ok(Event::Tickers)
        }
        b"trades" | b"trades-all" => {
            json::each(data, |object| buffer.push_trade(trade(object)?))?;
            Ok(Event::Trades)
        }
        b"tickers" | b"mark-price" | b"index-tickers" | b"funding-rate" | b"open-interest" => {
            json::each(data, |object| buffer.push_ticker(ticker(topic, object)?))?;
            Ok(Event::Tickers)
        }
        b"liquidation-orders" => {
            json::each(data, |object| liquidations(object, buffer))?;
            Ok(Event::Liquidations)
        }
        _ => match topic.strip_prefix(b"candle") {
            Some(length) => candles(timeframe(length)?, symbol(&argument)?, data, buffer),
            None => account::event(topic, &outer, buffer).unwrap_or(Err(ParseError::UnknownTopic)),
        },
    }
}

fn answer(event: &[u8], code: Option<&[u8]>) -> Result<Event, ParseError> {
    match event {
        // 60 s before an upgrade.
        b"notice" if code == Some(b"64008") => Ok(Event::Control(Control::Ending)),
        b"subscribe" | b"unsubscribe" => Ok(Event::Control(Control::Accepted)),
        b"login" => Ok(Event::Control(Control::LoggedIn)),
        b"notice" | b"channel-conn-count" => Ok(Event::Control(Control::Status)),
        b"error" | b"channel-conn-count-error" => Err(ParseError::Rejected),
        _ => Err(ParseError::UnknownTopic),
    }
}

/// The numbers of a book message as they stand there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) id: Option<u64>,
    /// -1 for none.
    pub(super) previous: Option<i64>,
    /// Zero for none.
    pub(super) checksum: i64,
}

fn order_book(
    is_update: bool,
    symbol: Symbol,
    object: &Object<'_>,
    buffer: &mut EventBuffer,
) -> Result<Event, ParseError> {
    let numbers = Numbers {
        id: object.get(b"seqId").map(json::bare_u64).transpose()?,
        previous: object.get(b"prevSeqId").map(json::bare_i64).transpose()?,
        checksum: object.get(b"checksum").map_or(Ok(0), json::bare_i64)?,
    };
    let levels = json::quoted_sides(object.need(b"bids")?, object.need(b"asks")?, 4, buffer)?;
    book(is_update, symbol, &numbers, levels, milliseconds(object)?)
}

/// Numbers are absent before 2023, and then there is a checksum. Only a snapshot may follow nothing.
#[inline]
pub(super) fn book(
    is_update: bool,
    symbol: Symbol,
    numbers: &Numbers,
    levels: Levels,
    ts_event: Nanos,
) -> Result<Event, ParseError> {
    let checksum = match i32::try_from(numbers.checksum) {
        Ok(0) => None,
        Ok(checksum) => Some(checksum as u32),
        Err(_) => return Err(ParseError::NumberRange),
    };
    let last_id = numbers.id.unwrap_or(0);
    if !is_update {
        return match numbers.previous {
            None | Some(-1) => {
                Ok(Event::BookSnapshot(BookSnapshot { symbol: Some(symbol), last_id, checksum, levels, ts_event }))
            }
            Some(_) => Err(ParseError::Number),
        };
    }
    let previous_id = match (numbers.previous, numbers.id) {
        (None, None) => None,
        (Some(previous), Some(_)) => {
            // No update has the greatest number: one that names none follows nothing.
            Some(if previous == -1 { u64::MAX } else { u64::try_from(previous).map_err(|_| ParseError::Number)? })
        }
        (None, Some(_)) | (Some(_), None) => return Err(ParseError::MissingKey),
    };
    let first_id = last_id;
    Ok(Event::BookDelta(BookDelta { symbol, first_id, last_id, previous_id, checksum, levels, ts_event }))
}

/// Reads the body of `GET /api/v5/market/books`.
///
/// # Errors
/// A [`ParseError`] that [`is_malformed`](ParseError::is_malformed), or `VenueError` if the body holds an error.
pub(crate) fn parse_snapshot(body: &[u8], buffer: &mut EventBuffer) -> Result<BookSnapshot, ParseError> {
    buffer.begin_general();
    json::check_utf8(body)?;
    let outer = Object::parse(body)?;
    if json::text(outer.need(b"code")?)? != b"0" {
        return Err(ParseError::VenueError);
    }
    let object = only(outer.need(b"data")?)?;
    Ok(BookSnapshot {
        symbol: None,
        last_id: json::bare_u64(object.need(b"seqId")?)?,
        checksum: None,
        levels: json::quoted_sides(object.need(b"bids")?, object.need(b"asks")?, 4, buffer)?,
        ts_event: milliseconds(&object)?,
    })
}

pub(super) fn best_levels(symbol: Symbol, object: &impl Keyed) -> Result<Ticker, ParseError> {
    let (bid_px, bid_qty) = best_level(object.need(b"bids")?)?;
    let (ask_px, ask_qty) = best_level(object.need(b"asks")?)?;
    let ts_event = milliseconds(object)?;
    Ok(Ticker { symbol, bid_px, bid_qty, ask_px, ask_qty, ts_event, ..Ticker::default() })
}

/// The one level of a side; an empty side has no quantity.
fn best_level(raw: &[u8]) -> Result<(Option<Decimal>, Option<Decimal>), ParseError> {
    let mut levels = Elements::parse(raw)?;
    let Some(level) = levels.next()? else { return Ok((None, Some(Decimal::default()))) };
    levels.end()?;
    let mut level = Elements::parse(level)?;
    let (px, qty) = (level.need()?, level.need()?);
    Ok((Some(json::quoted_unsigned(px)?), Some(json::quoted_unsigned(qty)?)))
}

fn trade(object: &Object<'_>) -> Result<Trade, ParseError> {
    Ok(Trade {
        symbol: symbol(object)?,
        trade_id: json::quoted_u64(object.need(b"tradeId")?)?,
        px: json::quoted_unsigned(object.need(b"px")?)?,
        qty: json::quoted_unsigned(object.need(b"sz")?)?,
        aggressor: side(object)?,
        in_market: true,
        is_history: false,
        ts_event: milliseconds(object)?,
    })
}

pub(super) fn ticker(topic: &[u8], object: &impl Keyed) -> Result<Ticker, ParseError> {
    let number = |key: &[u8]| json::optional_quoted(object.get(key));
    let mut ticker = Ticker { symbol: symbol(object)?, ts_event: milliseconds(object)?, ..Ticker::default() };
    match topic {
        b"tickers" => {
            ticker.bid_px = number(b"bidPx")?;
            ticker.bid_qty = number(b"bidSz")?;
            ticker.ask_px = number(b"askPx")?;
            ticker.ask_qty = number(b"askSz")?;
            ticker.last_px = number(b"last")?;
        }
        b"mark-price" => ticker.mark_px = number(b"markPx")?,
        b"index-tickers" => ticker.index_px = number(b"idxPx")?,
        b"open-interest" => ticker.open_interest = number(b"oi")?,
        _ => {
            ticker.funding_rate = json::optional_quoted_signed(object.get(b"fundingRate"))?;
            let ms = json::quoted_u64(object.need(b"fundingTime")?)?;
            ticker.ts_next_funding = Some(time::from_unix_ms(ms)?);
        }
    }
    Ok(ticker)
}

/// `[ts, open, high, low, close, volume, .., confirm]`.
pub(super) fn candles(
    timeframe: Nanos,
    symbol: Symbol,
    data: &[u8],
    buffer: &mut EventBuffer,
) -> Result<Event, ParseError> {
    let mut candles = Elements::parse(data)?;
    while let Some(candle) = candles.next()? {
        let mut values = Elements::parse(candle)?;
        let ts_open = time::from_unix_ms(json::quoted_u64(values.need()?)?)?;
        let [open_px, high_px, low_px, close_px, volume] = {
            let mut numbers = [Decimal::default(); 5];
            for number in &mut numbers {
                *number = json::quoted_unsigned(values.need()?)?;
            }
            numbers
        };
        let mut last: &[u8] = b"";
        while let Some(value) = values.next()? {
            last = json::text(value)?;
        }
        let is_closed = match last {
            b"0" => false,
            b"1" => true,
            _ => return Err(ParseError::WrongType),
        };
        let ts_event = Nanos(0);
        buffer.push_candle(VenueCandle {
            symbol,
            timeframe,
            ts_open,
            open_px,
            high_px,
            low_px,
            close_px,
            volume,
            is_closed,
            ts_event,
        })?;
    }
    Ok(Event::Candles)
}

/// `1m`, `4H`, `1D`, `1Dutc`, `1s`; a month is taken for 30 days.
pub(super) fn timeframe(text: &[u8]) -> Result<Nanos, ParseError> {
    let text = text.strip_suffix(b"utc").unwrap_or(text);
    let (unit, digits) = text.split_last().ok_or(ParseError::UnknownTopic)?;
    let seconds = match unit {
        b's' => 1,
        b'm' => 60,
        b'H' => 3600,
        b'D' => 86_400,
        b'W' => 7 * 86_400,
        b'M' => 30 * 86_400,
        _ => return Err(ParseError::UnknownTopic),
    };
    match json::digits_u64(digits) {
        Ok(count @ 1..=1000) => Ok(Nanos::from_secs(count * seconds)),
        Ok(_) | Err(_) => Err(ParseError::UnknownTopic),
    }
}

pub(super) fn liquidations(object: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let symbol = symbol(object)?;
    json::each(object.need(b"details")?, |detail| {
        let px = json::quoted_unsigned(detail.need(b"bkPx")?)?;
        let qty = json::quoted_unsigned(detail.need(b"sz")?)?;
        let (side, ts_event) = (side(detail)?, milliseconds(detail)?);
        buffer.push_liquidation(Liquidation { symbol, side, px, qty, ts_event })
    })
}

/// The one element of an array.
fn only(data: &[u8]) -> Result<Object<'_>, ParseError> {
    let mut elements = Elements::parse(data)?;
    let element = Object::parse(elements.need()?)?;
    elements.end()?;
    Ok(element)
}

fn side(object: &impl Keyed) -> Result<AggressorSide, ParseError> {
    match json::text(object.need(b"side")?)? {
        b"buy" => Ok(AggressorSide::Buy),
        b"sell" => Ok(AggressorSide::Sell),
        _ => Err(ParseError::WrongType),
    }
}

fn symbol(object: &impl Keyed) -> Result<Symbol, ParseError> {
    Symbol::new(json::text(object.need(b"instId")?)?)
}

fn milliseconds(object: &impl Keyed) -> Result<Nanos, ParseError> {
    time::from_unix_ms(json::quoted_u64(object.need(b"ts")?)?)
}
