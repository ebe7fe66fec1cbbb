//! Binance's messages of an account, spot and futures.

use super::general::{symbol, time};
use crate::json::{self, Elements, Object};
use crate::{
    Balance, Decimal, Event, EventBuffer, Execution, Fault, Fill, OrderId, OrderStatus, OrderUpdate, PositionLeg,
    PositionUpdate, Symbol,
};
use tt_model::{Nanos, OrderSide};

/// Reads an event of kind `kind`.
pub(super) fn event(kind: &[u8], object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, Fault> {
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
        b"TRADE_LITE" => {
            buffer.push_execution(execution(object)?)?;
            Ok(Event::Account)
        }
        b"outboundAccountPosition" => {
            let ts_event = time(object.need(b"E")?)?;
            let mut balances = Elements::parse(object.need(b"B")?)?;
            while let Some(balance) = balances.next()? {
                buffer.push_balance(spot_balance(&Object::parse(balance)?, ts_event)?)?;
            }
            Ok(Event::Account)
        }
        b"balanceUpdate" => {
            let change = Some(Decimal::parse(json::text(object.need(b"d")?)?)?);
            let asset = Symbol::new(json::text(object.need(b"a")?)?)?;
            let ts_event = time(object.need(b"E")?)?;
            buffer.push_balance(Balance { asset, total: None, free: None, change, ts_event })?;
            Ok(Event::Account)
        }
        b"ACCOUNT_UPDATE" => account_update(object, buffer),
        _ => Err(Fault::UnknownTopic),
    }
}

fn execution(object: &Object<'_>) -> Result<Execution, Fault> {
    let id = |key: &[u8]| {
        let id = object.need(key)?;
        json::bare_u64(id)?;
        OrderId::new(id)
    };
    Ok(Execution {
        symbol: symbol(object)?,
        order_id: id(b"i")?,
        execution_id: id(b"t")?,
        side: side(object)?,
        px: json::quoted_unsigned(object.need(b"L")?)?,
        qty: json::quoted_unsigned(object.need(b"l")?)?,
        fee: None,
        is_maker: Some(json::boolean(object.need(b"m")?)?),
        ts_event: time(object.need(b"T")?)?,
    })
}

fn spot_balance(object: &Object<'_>, ts_event: Nanos) -> Result<Balance, Fault> {
    let free = json::quoted_unsigned(object.need(b"f")?)?;
    let locked = json::quoted_unsigned(object.need(b"l")?)?;
    let asset = Symbol::new(json::text(object.need(b"a")?)?)?;
    Ok(Balance { asset, total: Some(free.sum(locked)?), free: Some(free), change: None, ts_event })
}

fn account_update(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, Fault> {
    let ts_event = time(object.need(b"E")?)?;
    let account = Object::parse(object.need(b"a")?)?;
    let signed = |object: &Object<'_>, key: &[u8]| Decimal::parse(json::text(object.need(key)?)?);
    if let Some(balances) = account.get(b"B") {
        let mut balances = Elements::parse(balances)?;
        while let Some(balance) = balances.next()? {
            let balance = Object::parse(balance)?;
            let asset = Symbol::new(json::text(balance.need(b"a")?)?)?;
            let total = Some(signed(&balance, b"wb")?);
            let change = Some(signed(&balance, b"bc")?);
            buffer.push_balance(Balance { asset, total, free: None, change, ts_event })?;
        }
    }
    if let Some(positions) = account.get(b"P") {
        let mut positions = Elements::parse(positions)?;
        while let Some(position) = positions.next()? {
            let position = Object::parse(position)?;
            let entry_px = json::quoted_unsigned(position.need(b"ep")?)?;
            buffer.push_position(PositionUpdate {
                symbol: symbol(&position)?,
                leg: match json::text(position.need(b"ps")?)? {
                    b"BOTH" => PositionLeg::Net,
                    b"LONG" => PositionLeg::Long,
                    b"SHORT" => PositionLeg::Short,
                    _ => return Err(Fault::WrongType),
                },
                qty: signed(&position, b"pa")?,
                entry_px: (entry_px.mantissa != 0).then_some(entry_px),
                unrealised: Some(signed(&position, b"up")?),
                ts_event,
            })?;
        }
    }
    Ok(Event::Account)
}

fn side(object: &Object<'_>) -> Result<OrderSide, Fault> {
    match json::text(object.need(b"S")?)? {
        b"BUY" => Ok(OrderSide::Buy),
        b"SELL" => Ok(OrderSide::Sell),
        _ => Err(Fault::WrongType),
    }
}

fn order_update(object: &Object<'_>, ts_event: &[u8]) -> Result<OrderUpdate, Fault> {
    let order_id = object.need(b"i")?;
    json::bare_u64(order_id)?;
    let last_qty = json::quoted_unsigned(object.need(b"l")?)?;
    let fill = if last_qty.mantissa == 0 {
        None
    } else {
        Some(Fill {
            trade_id: json::bare_u64(object.need(b"t")?)?,
            px: json::quoted_unsigned(object.need(b"L")?)?,
            qty: last_qty,
        })
    };
    let (qty, filled_qty) = (object.need(b"q")?, object.need(b"z")?);
    let status = match json::text(object.need(b"X")?)? {
        // An automatic close is executed on arrival; nothing follows it.
        b"NEW_INSURANCE" | b"NEW_ADL" if qty == filled_qty => OrderStatus::Filled,
        text => order_status(text)?,
    };
    Ok(OrderUpdate {
        symbol: Some(symbol(object)?),
        order_id: OrderId::new(order_id)?,
        side: Some(side(object)?),
        status,
        limit_px: Some(json::quoted_unsigned(object.need(b"p")?)?),
        qty: Some(json::quoted_unsigned(qty)?),
        filled_qty: Some(json::quoted_unsigned(filled_qty)?),
        fill,
        ts_event: time(ts_event)?,
    })
}

fn order_status(text: &[u8]) -> Result<OrderStatus, Fault> {
    Ok(match text {
        b"PENDING_NEW" => OrderStatus::Pending,
        b"NEW" | b"NEW_INSURANCE" | b"NEW_ADL" | b"PENDING_CANCEL" => OrderStatus::New,
        b"PARTIALLY_FILLED" => OrderStatus::PartiallyFilled,
        b"FILLED" => OrderStatus::Filled,
        b"CANCELED" => OrderStatus::Cancelled,
        b"REJECTED" => OrderStatus::Rejected,
        b"EXPIRED" | b"EXPIRED_IN_MATCH" => OrderStatus::Expired,
        _ => return Err(Fault::WrongType),
    })
}
