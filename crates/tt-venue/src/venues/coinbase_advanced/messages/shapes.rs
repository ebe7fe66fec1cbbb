//! Coinbase Advanced's prices and the messages of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Control, Event, EventBuffer, Trade};
use crate::fields::{self, Keyed};
use crate::json;
use crate::scan::{Cursor, keys};
use tt_model::Nanos;

keys! {
    ENVELOPE: "channel" "client_id" "timestamp" "sequence_num";
    EVENT: "type" "product_id";
    TRADE: "product_id" "trade_id" "price" "size" "time" "side" "bid" "ask";
    TICKER: "type" "product_id" "price" "volume_24_h" "low_24_h" "high_24_h" "low_52_w" "high_52_w"
        "price_percent_chg_24_h" "best_bid" "best_ask" "best_bid_quantity" "best_ask_quantity";
    CANDLE: "start" "high" "low" "open" "close" "volume" "product_id";
    BEAT: "current_time" "heartbeat_counter";
    ORDER: "avg_price" "cancel_reason" "client_order_id" "completion_percentage" "contract_expiry_type"
        "cumulative_quantity" "filled_value" "leaves_quantity" "limit_price" "number_of_fills" "order_id" "order_side"
        "order_type" "outstanding_hold_amount" "post_only" "product_id" "product_type" "reject_reason"
        "retail_portfolio_id" "risk_managed_by" "status" "stop_price" "time_in_force" "total_fees"
        "total_value_after_fees" "trigger_status" "creation_time" "end_time" "start_time" "last_fill_time";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{")?;
    let mut envelope = cursor.head(ENVELOPE, b"events")?;
    let ts_event = fields::rfc3339(&envelope, b"timestamp").ok()?;
    let number = json::bare_u64(envelope.get(b"sequence_num")?).ok()?;
    buffer.number_message(number).ok()?;
    let event = match fields::text(&envelope, b"channel").ok()? {
        b"market_trades" => {
            trades(&mut cursor, buffer)?;
            Event::Trades
        }
        b"ticker" | b"ticker_batch" => {
            lists(&mut cursor, b"tickers", |cursor| {
                buffer.push_ticker(general::ticker(&cursor.object(TICKER)?, ts_event).ok()?).ok()
            })?;
            Event::Tickers
        }
        b"candles" => {
            lists(&mut cursor, b"candles", |cursor| {
                buffer.push_candle(general::candle(&cursor.object(CANDLE)?, ts_event).ok()?).ok()
            })?;
            Event::Candles
        }
        b"user" => user(&mut cursor, ts_event, buffer)?,
        b"heartbeats" => {
            cursor.list(|cursor| cursor.object(BEAT).map(|_| ()))?;
            Event::Control(Control::Heartbeat)
        }
        _ => return None,
    };
    cursor.tail(&mut envelope)?;
    cursor.end()?;
    Some(event)
}

fn trades(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    cursor.list(|cursor| {
        cursor.literal(b"{")?;
        let mut event = cursor.head(EVENT, b"trades")?;
        let is_history = general::is_history(event.get(b"type")?);
        cursor.list(|cursor| {
            let trade = general::trade(&cursor.object(TRADE)?).ok()?;
            buffer.push_trade(Trade { is_history, ..trade }).ok()
        })?;
        cursor.tail(&mut event)
    })
}

/// Calls `each` before every element of the list of that name in every event.
fn lists<'a>(cursor: &mut Cursor<'a>, name: &[u8], mut each: impl FnMut(&mut Cursor<'a>) -> Option<()>) -> Option<()> {
    cursor.list(|cursor| {
        cursor.literal(b"{")?;
        let mut event = cursor.head(EVENT, name)?;
        cursor.list(&mut each)?;
        cursor.tail(&mut event)
    })
}

/// Own orders; a message with positions is left to the general path.
fn user(cursor: &mut Cursor<'_>, ts_event: Nanos, buffer: &mut EventBuffer) -> Option<Event> {
    cursor.list(|cursor| {
        cursor.literal(b"{")?;
        let mut event = cursor.head(EVENT, b"orders")?;
        let is_snapshot = match fields::text(&event, b"type").ok()? {
            b"snapshot" => true,
            b"update" => false,
            _ => return None,
        };
        cursor.list(|cursor| buffer.push_order_update(account::order(&cursor.object(ORDER)?, ts_event).ok()?).ok())?;
        if is_snapshot {
            account::cover_orders(buffer).ok()?;
        }
        cursor.tail(&mut event)
    })?;
    Some(Event::Account)
}
