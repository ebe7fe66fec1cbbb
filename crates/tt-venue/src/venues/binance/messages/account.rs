//! Binance's messages of an account, spot and futures.

use super::general::{symbol, time};
use crate::error::ParseError;
use crate::event::{
    Balance, Control, Event, EventBuffer, Execution, Fill, OrderId, OrderList, OrderListStatus, OrderStatus,
    OrderUpdate, PositionLeg, PositionUpdate,
};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Object};
use tt_model::{Decimal, Nanos};

const SIDES: [&[u8]; 2] = [b"BUY", b"SELL"];

/// Reads an event of kind `kind`.
pub(super) fn event(kind: &[u8], object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    match kind {
        b"executionReport" => {
            buffer.push_order_update(order_update(object, object.need(b"E")?)?)?;
            Ok(Event::OrderUpdates)
        }
        b"ORDER_TRADE_UPDATE" => {
            let order = Object::parse(object.need(b"o")?)?;
            buffer.push_order_update(order_update(&order, object.need(b"E")?)?)?;
            Ok(Event::OrderUpdates)
        }
        b"ALGO_UPDATE" => {
            let order = Object::parse(object.need(b"o")?)?;
            buffer.push_order_update(conditional_order(&order, time(object.need(b"E")?)?)?)?;
            Ok(Event::OrderUpdates)
        }
        b"listStatus" => order_list(object).map(Event::OrderList),
        b"TRADE_LITE" => {
            buffer.push_execution(execution(object)?)?;
            Ok(Event::Account)
        }
        b"outboundAccountPosition" => {
            let ts_event = time(object.need(b"E")?)?;
            fields::each(object.need(b"B")?, |balance| buffer.push_balance(spot_balance(balance, ts_event)?))?;
            Ok(Event::Account)
        }
        b"balanceUpdate" => {
            buffer.push_balance(changed_balance(object)?)?;
            Ok(Event::Account)
        }
        b"ACCOUNT_UPDATE" => account_update(object, buffer),
        b"listenKeyExpired" => Ok(Event::Control(Control::LoginExpired)),
        _ => Err(ParseError::UnknownTopic),
    }
}

/// `TRADE_LITE`: an execution, sent before the order's own update.
pub(super) fn execution(object: &impl Keyed) -> Result<Execution, ParseError> {
    Ok(Execution {
        symbol: symbol(object)?,
        order_id: number(object, b"i")?,
        execution_id: number(object, b"t")?,
        side: fields::order_side(object, b"S", SIDES)?,
        px: json::quoted_unsigned(object.need(b"L")?)?,
        qty: json::quoted_unsigned(object.need(b"l")?)?,
        fee: None,
        fee_asset: None,
        is_maker: Some(json::boolean(object.need(b"m")?)?),
        ts_event: time(object.need(b"T")?)?,
    })
}

pub(super) fn spot_balance(object: &impl Keyed, ts_event: Nanos) -> Result<Balance, ParseError> {
    let free = json::quoted_unsigned(object.need(b"f")?)?;
    let locked = json::quoted_unsigned(object.need(b"l")?)?;
    Ok(Balance {
        asset: fields::symbol(object, b"a")?,
        total: Some(free.sum(locked)?),
        free: Some(free),
        locked: Some(locked),
        change: None,
        ts_event,
    })
}

pub(super) fn changed_balance(object: &impl Keyed) -> Result<Balance, ParseError> {
    let change = Some(fields::number(object, b"d")?);
    let (asset, ts_event) = (fields::symbol(object, b"a")?, time(object.need(b"E")?)?);
    Ok(Balance { asset, total: None, free: None, locked: None, change, ts_event })
}

fn account_update(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let ts_event = time(object.need(b"E")?)?;
    let account = Object::parse(object.need(b"a")?)?;
    fields::optional_each(&account, b"B", |balance| buffer.push_balance(margin_balance(balance, ts_event)?))?;
    fields::optional_each(&account, b"P", |object| buffer.push_position(position(object, ts_event)?))?;
    Ok(Event::Account)
}

pub(super) fn margin_balance(object: &impl Keyed, ts_event: Nanos) -> Result<Balance, ParseError> {
    Ok(Balance {
        asset: fields::symbol(object, b"a")?,
        total: Some(fields::number(object, b"wb")?),
        free: None,
        locked: None,
        change: fields::optional_number(object, b"bc")?,
        ts_event,
    })
}

pub(super) fn position(object: &impl Keyed, ts_event: Nanos) -> Result<PositionUpdate, ParseError> {
    Ok(PositionUpdate {
        symbol: symbol(object)?,
        leg: match fields::text(object, b"ps")? {
            b"BOTH" => PositionLeg::Net,
            b"LONG" => PositionLeg::Long,
            b"SHORT" => PositionLeg::Short,
            _ => return Err(ParseError::WrongType),
        },
        qty: fields::number(object, b"pa")?,
        entry_px: Some(fields::amount(object, b"ep")?).filter(|px| px.mantissa != 0),
        unrealised: fields::optional_number(object, b"up")?,
        ts_event,
    })
}

pub(super) fn order_update(object: &impl Keyed, ts_event: &[u8]) -> Result<OrderUpdate, ParseError> {
    let (qty, filled_qty) = (json::quoted_unsigned(object.need(b"q")?)?, json::quoted_unsigned(object.need(b"z")?)?);
    let status = match fields::text(object, b"X")? {
        // An automatic close is executed on arrival; nothing follows it.
        b"NEW_INSURANCE" | b"NEW_ADL" if is_whole(qty, filled_qty) => OrderStatus::Filled,
        word => order_status(word)?,
    };
    Ok(OrderUpdate {
        symbol: Some(symbol(object)?),
        order_id: number(object, b"i")?,
        side: Some(fields::order_side(object, b"S", SIDES)?),
        status,
        limit_px: Some(json::quoted_unsigned(object.need(b"p")?)?),
        qty: Some(qty),
        filled_qty: Some(filled_qty),
        fill: fill(object)?,
        ts_event: time(ts_event)?,
    })
}

/// Whether everything is executed, however many zeros either number ends in.
fn is_whole(qty: Decimal, filled_qty: Decimal) -> bool {
    fields::difference(qty, filled_qty).is_ok_and(|rest| rest.mantissa == 0)
}

fn fill(object: &impl Keyed) -> Result<Option<Fill>, ParseError> {
    let qty = json::quoted_unsigned(object.need(b"l")?)?;
    if qty.mantissa == 0 {
        return Ok(None);
    }
    Ok(Some(Fill {
        trade_id: number(object, b"t")?,
        px: json::quoted_unsigned(object.need(b"L")?)?,
        qty,
        fee: fields::optional_number(object, b"n")?,
        fee_asset: fields::optional_symbol(object, b"N")?,
        is_maker: fields::optional(object, b"m").map(json::boolean).transpose()?,
    }))
}

fn order_status(text: &[u8]) -> Result<OrderStatus, ParseError> {
    Ok(match text {
        b"PENDING_NEW" => OrderStatus::Pending,
        b"NEW" | b"NEW_INSURANCE" | b"NEW_ADL" | b"PENDING_CANCEL" => OrderStatus::New,
        b"PARTIALLY_FILLED" => OrderStatus::PartiallyFilled,
        b"FILLED" => OrderStatus::Filled,
        b"CANCELED" => OrderStatus::Cancelled,
        b"REJECTED" => OrderStatus::Rejected,
        b"EXPIRED" | b"EXPIRED_IN_MATCH" => OrderStatus::Expired,
        _ => return Err(ParseError::WrongType),
    })
}

/// An order that waits for its condition. Once that is met, an order with another number is placed.
pub(super) fn conditional_order(object: &impl Keyed, ts_event: Nanos) -> Result<OrderUpdate, ParseError> {
    let order_id = object.need(b"aid")?;
    json::bare_u64(order_id)?;
    let filled_qty = fields::optional_amount(object, b"aq")?;
    Ok(OrderUpdate {
        symbol: Some(symbol(object)?),
        order_id: OrderId::conditional(order_id)?,
        side: Some(fields::order_side(object, b"S", SIDES)?),
        status: match fields::text(object, b"X")? {
            b"NEW" | b"TRIGGERING" | b"TRIGGERED" => OrderStatus::Pending,
            b"FINISHED" if filled_qty.is_some_and(|qty| qty.mantissa != 0) => OrderStatus::Filled,
            b"FINISHED" | b"CANCELED" => OrderStatus::Cancelled,
            b"REJECTED" => OrderStatus::Rejected,
            b"EXPIRED" => OrderStatus::Expired,
            _ => return Err(ParseError::WrongType),
        },
        limit_px: Some(fields::amount(object, b"p")?),
        qty: Some(fields::amount(object, b"q")?),
        filled_qty,
        fill: None,
        ts_event,
    })
}

pub(super) fn order_list(object: &impl Keyed) -> Result<OrderList, ParseError> {
    let mut orders = 0;
    fields::each(object.need(b"O")?, |order| {
        number(order, b"i")?;
        orders += 1;
        Ok(())
    })?;
    Ok(OrderList {
        symbol: symbol(object)?,
        list_id: json::bare_u64(object.need(b"g")?)?,
        orders,
        status: match fields::text(object, b"L")? {
            b"EXECUTING" => OrderListStatus::Executing,
            b"ALL_DONE" => OrderListStatus::AllDone,
            b"REJECT" => OrderListStatus::Rejected,
            _ => return Err(ParseError::WrongType),
        },
        ts_event: time(object.need(b"E")?)?,
    })
}

/// An identifier that is a bare whole number.
fn number(object: &impl Keyed, key: &[u8]) -> Result<OrderId, ParseError> {
    let raw = object.need(key)?;
    json::bare_u64(raw)?;
    OrderId::new(raw)
}
