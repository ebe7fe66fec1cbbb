//! Deribit's tickers, trades, candles, and the messages of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Event, EventBuffer};
use crate::scan::{Cursor, keys};

keys! {
    TICKER: "timestamp" "type" "underlying_price" "underlying_index" "state" "stats" "settlement_price" "open_interest"
        "min_price" "max_price" "mark_price" "mark_iv" "last_price" "interest_rate" "instrument_name" "index_price"
        "interest_value" "greeks" "estimated_delivery_price" "bid_iv" "best_bid_price" "best_bid_amount"
        "best_ask_price" "best_ask_amount" "ask_iv" "current_funding" "funding_8h" "delivery_price";
    QUOTE: "timestamp" "instrument_name" "best_ask_price" "best_bid_price" "best_ask_amount" "best_bid_amount";
    TRADE: "timestamp" "iv" "price" "amount" "direction" "index_price" "instrument_name" "trade_seq" "mark_price"
        "tick_direction" "liquidation" "legs" "combo_id" "contracts" "combo_trade_id" "trade_id" "block_trade_id"
        "block_trade_leg_count" "block_rfq_id";
    CANDLE: "tick" "open" "high" "low" "close" "volume" "cost";
    ORDER: "label" "price" "user_id" "amount" "direction" "time_in_force" "instrument_name" "web" "api" "order_id"
        "creation_timestamp" "replaced" "filled_amount" "last_update_timestamp" "post_only" "reduce_only"
        "cancel_reason" "average_price" "trigger_price" "trigger" "mmp" "contracts" "reject_post_only" "order_state"
        "order_type" "is_liquidation" "risk_reducing" "is_rebalance" "is_secondary_oto" "oto_order_ids" "oco_ref"
        "display_amount" "usd" "implv" "advanced" "mobile" "app_name" "quote" "mmp_group" "quote_set_id"
        "auto_replaced" "triggered" "trigger_order_id" "trigger_offset" "original_order_type" "is_primary_otoco"
        "trigger_reference_price" "trigger_fill_condition" "primary_order_id" "user";
    EXECUTION: "trade_id" "trade_seq" "order_id" "instrument_name" "direction" "price" "amount" "fee" "fee_currency"
        "liquidity" "timestamp" "state" "order_type" "index_price" "mark_price" "underlying_price" "tick_direction"
        "self_trade" "profit_loss" "post_only" "reduce_only" "mmp" "matching_id" "label" "contracts" "iv" "api"
        "risk_reducing" "user_id" "block_trade_id" "combo_id" "combo_trade_id" "legs" "advanced" "liquidation"
        "quote_id" "quote_set_id";
    POSITION: "instrument_name" "size" "direction" "average_price" "floating_profit_loss" "kind" "total_profit_loss"
        "size_currency" "settlement_price" "realized_profit_loss" "realized_funding" "open_orders_margin" "mark_price"
        "maintenance_margin" "leverage" "interest_value" "initial_margin" "index_price" "estimated_liquidation_price"
        "delta" "average_price_usd" "floating_profit_loss_usd" "gamma" "theta" "vega" "creation_timestamp";
    PORTFOLIO: "total_maintenance_margin_usd" "projected_initial_margin" "total_delta_total_usd" "options_gamma_map"
        "options_session_rpl" "options_session_upl" "futures_session_rpl" "fee_balance" "projected_maintenance_margin"
        "session_upl" "projected_delta_total" "initial_margin" "options_pl" "options_vega_map" "margin_balance"
        "balance" "maintenance_margin" "total_initial_margin_usd" "additional_reserve" "locked_balance" "options_value"
        "options_delta" "margin_model" "portfolio_margining_enabled" "options_gamma" "available_funds"
        "cross_collateral_enabled" "delta_total" "options_theta_map" "spot_reserve" "total_equity_usd" "options_theta"
        "futures_session_upl" "delta_total_map" "session_rpl" "futures_pl" "available_withdrawal_funds" "options_vega"
        "equity" "total_pl" "currency" "total_margin_balance_usd" "estimated_liquidation_ratio"
        "estimated_liquidation_ratio_map" "locked_balance_usd";
    CHANGES: "instrument_name";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{\"channel\":")?;
    let [b'"', topic @ .., b'"'] = cursor.raw()? else { return None };
    cursor.literal(b",\"data\":")?;
    let event = match topic.split(|byte| *byte == b'.').next()? {
        b"ticker" | b"incremental_ticker" => {
            buffer.push_ticker(general::ticker(&cursor.object(TICKER)?).ok()?).ok()?;
            Event::Tickers
        }
        b"quote" => {
            buffer.push_ticker(general::best_levels(&cursor.object(QUOTE)?).ok()?).ok()?;
            Event::Tickers
        }
        b"trades" => {
            cursor.list(|cursor| general::trade(&cursor.object(TRADE)?, buffer).ok())?;
            Event::Trades
        }
        b"chart" => {
            buffer.push_candle(general::candle(topic, &cursor.object(CANDLE)?).ok()?).ok()?;
            Event::Candles
        }
        b"user" => private(topic, &mut cursor, buffer)?,
        _ => return None,
    };
    cursor.literal(b"}}")?;
    cursor.end()?;
    Some(event)
}

fn private(topic: &[u8], cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    if topic.starts_with(b"user.orders.") {
        one_or_many(cursor, |cursor| order(cursor, buffer))?;
        return Some(Event::OrderUpdates);
    }
    if topic.starts_with(b"user.trades.") {
        one_or_many(cursor, |cursor| execution(cursor, buffer))?;
        return Some(Event::Account);
    }
    if topic.starts_with(b"user.portfolio.") {
        account::portfolio(&cursor.object(PORTFOLIO)?, buffer).ok()?;
        return Some(Event::Account);
    }
    topic.starts_with(b"user.changes.").then_some(())?;
    cursor.literal(b"{")?;
    let mut changes = cursor.head(CHANGES, b"orders")?;
    cursor.list(|cursor| order(cursor, buffer))?;
    cursor.literal(b",\"trades\":")?;
    cursor.list(|cursor| execution(cursor, buffer))?;
    cursor.literal(b",\"positions\":")?;
    cursor.list(|cursor| buffer.push_position(account::position(&cursor.object(POSITION)?).ok()?).ok())?;
    cursor.tail(&mut changes)?;
    Some(Event::Account)
}

fn order(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    buffer.push_order_update(account::order(&cursor.object(ORDER)?).ok()?).ok()
}

fn execution(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    buffer.push_execution(account::execution(&cursor.object(EXECUTION)?).ok()?).ok()
}

/// A topic of single changes sends an object, one of an interval a list.
fn one_or_many<'a>(cursor: &mut Cursor<'a>, mut each: impl FnMut(&mut Cursor<'a>) -> Option<()>) -> Option<()> {
    let mut ahead = *cursor;
    if ahead.passes(b"[") { cursor.list(each) } else { each(cursor) }
}
