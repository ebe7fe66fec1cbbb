//! Kraken's single orders, its candles and the messages of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Event, EventBuffer};
use crate::fields;
use crate::scan::{Cursor, keys};
use tt_model::OrderSide;

keys! {
    ENVELOPE: "channel" "type" "timestamp" "sequence";
    CANDLE: "symbol" "open" "high" "low" "close" "trades" "volume" "vwap" "interval_begin" "interval" "timestamp";
    EXECUTION: "exec_type" "exec_id" "trade_id" "order_id" "order_userref" "cl_ord_id" "symbol" "side" "order_type"
        "order_qty" "display_qty" "limit_price" "limit_price_type" "order_status" "last_qty" "last_price" "cum_qty"
        "cum_cost" "avg_price" "cost" "liquidity_ind" "fees" "fee_usd_equiv" "fee_ccy_pref" "time_in_force" "post_only"
        "reduce_only" "no_mpp" "margin" "margin_borrow" "amended" "liquidated" "ord_ref_id" "ext_ord_id" "ext_exec_id"
        "stop_price" "triggers" "contingent" "cash_order_qty" "effective_time" "expire_time" "position_status"
        "sender_sub_id" "user" "reason" "cancel_reason" "timestamp";
    BOOK: "symbol" "checksum" "timestamp";
    ORDER: "event" "order_id" "limit_price" "order_qty" "timestamp";
    BALANCE: "asset" "asset_class" "balance" "wallets" "ledger_id" "ref_id" "timestamp" "type" "subtype" "category"
        "wallet_type" "wallet_id" "amount" "fee" "user";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{")?;
    let mut envelope = cursor.head(ENVELOPE, b"data")?;
    let event = match fields::text(&envelope, b"channel").ok()? {
        b"ohlc" => {
            let ts_event = fields::optional_rfc3339(&envelope, b"timestamp").ok()?;
            cursor.list(|cursor| buffer.push_candle(general::candle(&cursor.object(CANDLE)?, ts_event).ok()?).ok())?;
            // A time that follows the candles is not theirs yet.
            cursor.tail(&mut envelope)?;
            (fields::optional_rfc3339(&envelope, b"timestamp") == Ok(ts_event)).then_some(())?;
            cursor.end()?;
            return Some(Event::Candles);
        }
        b"level3" => {
            let kind = fields::text(&envelope, b"type").ok()?;
            cursor.literal(b"[{")?;
            let mut book = cursor.head(BOOK, b"bids")?;
            orders(&mut cursor, OrderSide::Buy, buffer)?;
            cursor.literal(b",\"asks\":")?;
            orders(&mut cursor, OrderSide::Sell, buffer)?;
            cursor.tail(&mut book)?;
            cursor.literal(b"]")?;
            Event::BookOrders(general::book_orders(kind, &book).ok()?)
        }
        b"executions" => {
            cursor.list(|cursor| account::take_execution(&cursor.object(EXECUTION)?, buffer).ok())?;
            account::executed(fields::text(&envelope, b"type").ok()?, buffer).ok()?
        }
        b"balances" => {
            cursor.list(|cursor| buffer.push_balance(account::balance(&cursor.object(BALANCE)?).ok()?).ok())?;
            Event::Account
        }
        _ => return None,
    };
    cursor.tail(&mut envelope)?;
    cursor.end()?;
    Some(event)
}

fn orders(cursor: &mut Cursor<'_>, side: OrderSide, buffer: &mut EventBuffer) -> Option<()> {
    cursor.list(|cursor| buffer.push_book_order(general::book_order(&cursor.object(ORDER)?, side).ok()?).ok())
}
