//! Kraken's private messages: own orders with their executions, and balances.

use crate::error::ParseError;
use crate::event::{Balance, Coverage, Event, EventBuffer, Execution, Fill, OrderId, OrderStatus, OrderUpdate};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;

const SIDES: [&[u8]; 2] = [b"buy", b"sell"];

/// `executions`. The snapshot lists all open orders: one that is missing ended before the subscription.
pub(super) fn executions(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| take_execution(object, buffer))?;
    executed(fields::text(outer, b"type")?, buffer)
}

pub(super) fn take_execution(object: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    match fields::optional(object, b"order_status") {
        Some(word) => buffer.push_order_update(order(object, json::text(word)?)?),
        // An execution of the past, of which the snapshot can bring fifty.
        None => buffer.push_execution(execution(object)?),
    }
}

/// The event of executions that stand in the buffer, by the message's type.
pub(super) fn executed(kind: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    match kind {
        b"snapshot" => buffer.cover_orders(Coverage::All)?,
        b"update" if buffer.executions().is_empty() => return Ok(Event::OrderUpdates),
        b"update" => {}
        _ => return Err(ParseError::WrongType),
    }
    Ok(Event::Account)
}

fn order(object: &impl Keyed, word: &[u8]) -> Result<OrderUpdate, ParseError> {
    let status = match word {
        b"pending_new" => OrderStatus::Pending,
        b"new" => OrderStatus::New,
        b"partially_filled" => OrderStatus::PartiallyFilled,
        b"filled" => OrderStatus::Filled,
        b"canceled" => OrderStatus::Cancelled,
        b"expired" => OrderStatus::Expired,
        _ => return Err(ParseError::WrongType),
    };
    Ok(OrderUpdate {
        symbol: fields::optional_symbol(object, b"symbol")?,
        order_id: OrderId::new(fields::text(object, b"order_id")?)?,
        side: fields::optional_order_side(object, b"side", SIDES)?,
        status,
        limit_px: fields::optional_amount(object, b"limit_price")?,
        qty: fields::optional_amount(object, b"order_qty")?,
        filled_qty: fields::optional_amount(object, b"cum_qty")?,
        fill: if fields::optional(object, b"last_qty").is_some() { Some(fill(object)?) } else { None },
        ts_event: fields::rfc3339(object, b"timestamp")?,
    })
}

fn fill(object: &impl Keyed) -> Result<Fill, ParseError> {
    let (fee, fee_asset) = match fields::optional(object, b"fees") {
        Some(raw) => only_fee(raw)?,
        None => (None, None),
    };
    Ok(Fill {
        trade_id: OrderId::new(fields::text(object, b"exec_id")?)?,
        px: fields::amount(object, b"last_price")?,
        qty: fields::amount(object, b"last_qty")?,
        fee,
        fee_asset,
        is_maker: match fields::optional(object, b"liquidity_ind") {
            Some(word) => Some(json::text(word)? == b"m"),
            None => None,
        },
    })
}

/// The fee, if it was paid in one asset.
fn only_fee(raw: &[u8]) -> Result<(Option<tt_model::Decimal>, Option<Symbol>), ParseError> {
    let mut elements = Elements::parse(raw)?;
    let Some(first) = elements.next()? else { return Ok((None, None)) };
    if elements.next()?.is_some() {
        return Ok((None, None));
    }
    let fee = Object::parse(first)?;
    Ok((Some(fields::number(&fee, b"qty")?), Some(fields::symbol(&fee, b"asset")?)))
}

fn execution(object: &impl Keyed) -> Result<Execution, ParseError> {
    let Fill { trade_id, px, qty, fee, fee_asset, is_maker } = fill(object)?;
    Ok(Execution {
        symbol: fields::symbol(object, b"symbol")?,
        order_id: OrderId::new(fields::text(object, b"order_id")?)?,
        execution_id: trade_id,
        side: fields::order_side(object, b"side", SIDES)?,
        px,
        qty,
        fee,
        fee_asset,
        is_maker,
        ts_event: fields::rfc3339(object, b"timestamp")?,
    })
}

/// `balances`: all of them, then each one that the ledger changes.
pub(super) fn balances(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| buffer.push_balance(balance(object)?))?;
    Ok(Event::Account)
}

pub(super) fn balance(object: &impl Keyed) -> Result<Balance, ParseError> {
    Ok(Balance {
        asset: fields::symbol(object, b"asset")?,
        total: Some(fields::number(object, b"balance")?),
        free: None,
        locked: None,
        change: fields::optional_number(object, b"amount")?,
        ts_event: fields::optional_rfc3339(object, b"timestamp")?,
    })
}
