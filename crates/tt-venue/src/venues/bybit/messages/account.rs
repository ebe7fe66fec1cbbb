//! Bybit's private messages: own orders, executions, positions, balances (bybit-exchange.github.io/docs/v5/websocket).

use crate::error::ParseError;
use crate::event::{
    Balance, Event, EventBuffer, Execution, OrderId, OrderStatus, OrderUpdate, PositionLeg, PositionUpdate,
};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Object};
use tt_model::{Decimal, Nanos, OrderSide};

const SIDES: [&[u8]; 2] = [b"Buy", b"Sell"];

/// Reads a message of a private topic, which carries all categories or one (`order.linear`); `None` where it is none.
pub(super) fn event(kind: &[u8], outer: &Object<'_>, buffer: &mut EventBuffer) -> Option<Result<Event, ParseError>> {
    Some(match kind {
        b"order" => orders(outer, buffer),
        b"execution" => executions(outer, buffer),
        b"position" => positions(outer, buffer),
        b"wallet" => wallet(outer, buffer),
        _ => return None,
    })
}

fn orders(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| buffer.push_order_update(order(object)?))?;
    Ok(Event::OrderUpdates)
}

pub(super) fn order(object: &impl Keyed) -> Result<OrderUpdate, ParseError> {
    Ok(OrderUpdate {
        symbol: Some(fields::symbol(object, b"symbol")?),
        order_id: OrderId::new(fields::text(object, b"orderId")?)?,
        side: Some(fields::order_side(object, b"side", SIDES)?),
        status: status(fields::text(object, b"orderStatus")?)?,
        limit_px: fields::optional_amount(object, b"price")?,
        qty: fields::optional_amount(object, b"qty")?,
        filled_qty: fields::optional_amount(object, b"cumExecQty")?,
        fill: None,
        ts_event: fields::unix_ms(object, b"updatedTime")?,
    })
}

fn status(word: &[u8]) -> Result<OrderStatus, ParseError> {
    Ok(match word {
        // A conditional order has not reached the matching engine yet.
        b"Created" | b"Untriggered" => OrderStatus::Pending,
        b"New" | b"Triggered" => OrderStatus::New,
        b"PartiallyFilled" => OrderStatus::PartiallyFilled,
        b"Filled" => OrderStatus::Filled,
        b"Cancelled" | b"PartiallyFilledCanceled" | b"Deactivated" => OrderStatus::Cancelled,
        b"Rejected" => OrderStatus::Rejected,
        _ => return Err(ParseError::WrongType),
    })
}

/// `execution` and `execution.fast`, which leaves fees out. Fundings come here too, and execute nothing.
fn executions(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| take_execution(object, buffer))?;
    Ok(Event::Account)
}

pub(super) fn take_execution(object: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    match fields::optional(object, b"execType") {
        Some(kind) if json::text(kind)? == b"Funding" => Ok(()),
        Some(_) | None => buffer.push_execution(execution(object)?),
    }
}

fn execution(object: &impl Keyed) -> Result<Execution, ParseError> {
    Ok(Execution {
        symbol: fields::symbol(object, b"symbol")?,
        order_id: OrderId::new(fields::text(object, b"orderId")?)?,
        execution_id: OrderId::new(fields::text(object, b"execId")?)?,
        side: fields::order_side(object, b"side", SIDES)?,
        px: fields::amount(object, b"execPrice")?,
        qty: fields::amount(object, b"execQty")?,
        fee: fields::optional_number(object, b"execFee")?,
        fee_asset: fields::optional_symbol(object, b"feeCurrency")?,
        is_maker: Some(json::boolean(object.need(b"isMaker")?)?),
        ts_event: fields::unix_ms(object, b"execTime")?,
    })
}

fn positions(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| buffer.push_position(position(object)?))?;
    Ok(Event::Account)
}

pub(super) fn position(object: &impl Keyed) -> Result<PositionUpdate, ParseError> {
    let size = fields::amount(object, b"size")?;
    // An empty position has no side.
    let is_short = fields::optional_order_side(object, b"side", SIDES)? == Some(OrderSide::Sell);
    let entry_px = fields::optional_amount(object, b"entryPrice")?.filter(|_| size.mantissa != 0);
    Ok(PositionUpdate {
        symbol: fields::symbol(object, b"symbol")?,
        leg: match json::bare_u64(object.need(b"positionIdx")?)? {
            0 => PositionLeg::Net,
            1 => PositionLeg::Long,
            2 => PositionLeg::Short,
            _ => return Err(ParseError::WrongType),
        },
        qty: if is_short { Decimal { mantissa: -size.mantissa, ..size } } else { size },
        entry_px,
        unrealised: fields::optional_number(object, b"unrealisedPnl")?,
        ts_event: fields::unix_ms(object, b"updatedTime")?,
    })
}

fn wallet(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let ts_event = fields::unix_ms(outer, b"creationTime")?;
    fields::each(outer.need(b"data")?, |account| {
        fields::each(account.need(b"coin")?, |object| buffer.push_balance(balance(object, ts_event)?))
    })?;
    Ok(Event::Account)
}

pub(super) fn balance(object: &impl Keyed, ts_event: Nanos) -> Result<Balance, ParseError> {
    Ok(Balance {
        asset: fields::symbol(object, b"coin")?,
        total: Some(fields::number(object, b"walletBalance")?),
        free: fields::optional_number(object, b"availableToWithdraw")?,
        locked: fields::optional_amount(object, b"locked")?,
        change: None,
        ts_event,
    })
}
