//! Binance's rarer messages and those of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Control, Event, EventBuffer};
use crate::scan::{Cursor, keys};

keys! {
    BOOK_TICKER: "u" "E" "T" "s" "b" "B" "a" "A" "st" "ps";
    MARK_PRICE: "E" "s" "p" "ap" "i" "P" "r" "T" "st";
    AGGREGATE: "E" "a" "s" "p" "q" "nq" "f" "l" "T" "m" "M" "st";
    BLOCK: "E" "s" "t" "p" "q" "T" "m";
    TICKER: "E" "s" "p" "P" "w" "x" "c" "Q" "b" "B" "a" "A" "o" "h" "l" "v" "q" "O" "C" "F" "L" "n" "st";
    CANDLE: "t" "T" "s" "i" "f" "L" "o" "c" "h" "l" "v" "n" "x" "q" "V" "Q" "B";
    LIQUIDATION: "s" "ps" "S" "o" "f" "q" "p" "ap" "X" "l" "z" "T" "st";
    SPOT_ORDER: "E" "s" "c" "S" "o" "f" "q" "p" "P" "F" "g" "C" "x" "X" "r" "i" "l" "z" "L" "n" "N" "T" "t" "v" "I" "w"
        "m" "M" "O" "Z" "Y" "Q" "W" "V" "d" "D" "j" "J" "A" "B" "u" "U" "Cs" "pl" "pL" "pY" "b" "a" "k" "uS" "eR";
    SPOT_BALANCE: "a" "f" "l";
    CHANGED_BALANCE: "E" "a" "d" "T";
    ORDER_LIST: "E" "s" "g" "c" "l" "L" "r" "C" "T" "O";
    ORDER: "s" "c" "S" "o" "f" "q" "p" "ap" "sp" "x" "X" "i" "l" "z" "L" "N" "n" "T" "t" "b" "a" "m" "R" "wt" "ot" "ps"
        "cp" "AP" "cr" "pP" "si" "ss" "rp" "V" "pm" "gtd" "er" "ma";
    CONDITIONAL: "caid" "aid" "at" "o" "s" "S" "ps" "f" "q" "X" "ai" "ap" "aq" "act" "tp" "p" "V" "wt" "pm" "cp" "pP"
        "R" "tt" "gtd" "rm";
    EXECUTION: "E" "T" "s" "c" "S" "q" "p" "i" "l" "L" "t" "m";
    ACCOUNT: "m";
    MARGIN_BALANCE: "a" "wb" "cw" "bc";
    POSITION: "s" "pa" "ep" "bep" "cr" "up" "mt" "iw" "ps";
    EXPIRED: "E" "listenKey";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    let is_wrapped = if cursor.passes(b"{\"stream\":\"") {
        cursor.text()?;
        cursor.literal(b",\"data\":")?;
        true
    } else if cursor.passes(b"{\"subscriptionId\":") {
        cursor.whole()?;
        cursor.literal(b",\"event\":")?;
        true
    } else {
        false
    };
    cursor.literal(b"{\"e\":\"")?;
    let event = match public(&mut cursor, buffer) {
        Some(event) => event,
        None => private(&mut cursor, buffer)?,
    };
    if is_wrapped {
        cursor.literal(b"}")?;
    }
    cursor.end()?;
    Some(event)
}

/// Reads a public message after the quote before its kind. A frame that fails leaves the cursor after its kind, where no
/// other kind is found.
fn public(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    if cursor.passes(b"bookTicker\",") {
        return Some(Event::BookTicker(general::book_ticker(&cursor.members(BOOK_TICKER)?).ok()?));
    }
    if cursor.passes(b"markPriceUpdate\",") {
        return Some(Event::MarkPrice(general::mark_price(&cursor.members(MARK_PRICE)?).ok()?));
    }
    if cursor.passes(b"aggTrade\",") {
        buffer.push_trade(general::aggregate_trade(&cursor.members(AGGREGATE)?).ok()?).ok()?;
        return Some(Event::Trades);
    }
    if cursor.passes(b"blockTrade\",") {
        buffer.push_trade(general::block_trade(&cursor.members(BLOCK)?).ok()?).ok()?;
        return Some(Event::Trades);
    }
    if cursor.passes(b"24hrTicker\",") {
        buffer.push_ticker(general::ticker(&cursor.members(TICKER)?).ok()?).ok()?;
        return Some(Event::Tickers);
    }
    if cursor.passes(b"kline\",\"E\":") {
        let ts_event = cursor.unix_ms_or_us()?;
        cursor.literal(b",\"s\":\"")?;
        cursor.text()?;
        cursor.literal(b",\"k\":")?;
        buffer.push_candle(general::candle(&cursor.object(CANDLE)?, ts_event).ok()?).ok()?;
        cursor.literal(b"}")?;
        return Some(Event::Candles);
    }
    cursor.literal(b"forceOrder\",\"E\":")?;
    cursor.raw()?;
    cursor.literal(b",\"o\":")?;
    buffer.push_liquidation(general::liquidation(&cursor.object(LIQUIDATION)?).ok()?).ok()?;
    cursor.literal(b"}")?;
    Some(Event::Liquidations)
}

/// As `public`, of an account.
fn private(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    use crate::fields::Keyed;
    if cursor.passes(b"ORDER_TRADE_UPDATE\",") {
        let ts_event = times(cursor)?;
        cursor.literal(b"\"o\":")?;
        buffer.push_order_update(account::order_update(&cursor.object(ORDER)?, ts_event).ok()?).ok()?;
        cursor.literal(b"}")?;
        return Some(Event::OrderUpdates);
    }
    if cursor.passes(b"executionReport\",") {
        let order = cursor.members(SPOT_ORDER)?;
        buffer.push_order_update(account::order_update(&order, order.get(b"E")?).ok()?).ok()?;
        return Some(Event::OrderUpdates);
    }
    if cursor.passes(b"TRADE_LITE\",") {
        buffer.push_execution(account::execution(&cursor.members(EXECUTION)?).ok()?).ok()?;
        return Some(Event::Account);
    }
    if cursor.passes(b"ALGO_UPDATE\",") {
        let ts_event = general::time(times(cursor)?).ok()?;
        cursor.literal(b"\"o\":")?;
        buffer.push_order_update(account::conditional_order(&cursor.object(CONDITIONAL)?, ts_event).ok()?).ok()?;
        cursor.literal(b"}")?;
        return Some(Event::OrderUpdates);
    }
    if cursor.passes(b"ACCOUNT_UPDATE\",") {
        return account_update(cursor, buffer);
    }
    if cursor.passes(b"outboundAccountPosition\",\"E\":") {
        let ts_event = cursor.unix_ms_or_us()?;
        cursor.literal(b",\"u\":")?;
        cursor.raw()?;
        cursor.literal(b",\"B\":")?;
        cursor.list(|cursor| {
            buffer.push_balance(account::spot_balance(&cursor.object(SPOT_BALANCE)?, ts_event).ok()?).ok()
        })?;
        cursor.literal(b"}")?;
        return Some(Event::Account);
    }
    if cursor.passes(b"balanceUpdate\",") {
        buffer.push_balance(account::changed_balance(&cursor.members(CHANGED_BALANCE)?).ok()?).ok()?;
        return Some(Event::Account);
    }
    if cursor.passes(b"listStatus\",") {
        return Some(Event::OrderList(account::order_list(&cursor.members(ORDER_LIST)?).ok()?));
    }
    cursor.literal(b"listenKeyExpired\",")?;
    cursor.members(EXPIRED)?;
    Some(Event::Control(Control::LoginExpired))
}

fn account_update(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    let ts_event = general::time(times(cursor)?).ok()?;
    cursor.literal(b"\"a\":{")?;
    let mut reason = cursor.head(ACCOUNT, b"B")?;
    cursor.list(|cursor| {
        buffer.push_balance(account::margin_balance(&cursor.object(MARGIN_BALANCE)?, ts_event).ok()?).ok()
    })?;
    cursor.literal(b",\"P\":")?;
    cursor.list(|cursor| buffer.push_position(account::position(&cursor.object(POSITION)?, ts_event).ok()?).ok())?;
    cursor.tail(&mut reason)?;
    cursor.literal(b"}")?;
    Some(Event::Account)
}

/// Passes `E` and `T` in either order, and the comma after them; returns the raw value of `E`.
fn times<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    if cursor.passes(b"\"T\":") {
        cursor.raw()?;
        cursor.literal(b",\"E\":")?;
        let ts_event = cursor.raw()?;
        cursor.literal(b",")?;
        return Some(ts_event);
    }
    cursor.literal(b"\"E\":")?;
    let ts_event = cursor.raw()?;
    cursor.literal(b",")?;
    if cursor.passes(b"\"T\":") {
        cursor.raw()?;
        cursor.literal(b",")?;
    }
    Some(ts_event)
}
