//! Coinbase Advanced's `user` messages: own orders and positions.

use super::general::product;
use crate::error::ParseError;
use crate::event::{Coverage, Event, EventBuffer, OrderId, OrderStatus, OrderUpdate, PositionLeg, PositionUpdate};
use crate::fields;
use crate::fields::Keyed;
use crate::json::Object;
use tt_model::{Decimal, Nanos};

const SIDES: [&[u8]; 2] = [b"BUY", b"SELL"];
/// Open orders come in snapshots of so many; a shorter one is the last.
const ORDERS_PER_SNAPSHOT: usize = 50;

/// `user`.
pub(super) fn user(events: &[u8], ts_event: Nanos, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(events, |event| {
        let is_snapshot = match fields::text(event, b"type")? {
            b"snapshot" => true,
            b"update" => false,
            _ => return Err(ParseError::WrongType),
        };
        fields::optional_each(event, b"orders", |object| buffer.push_order_update(order(object, ts_event)?))?;
        if is_snapshot {
            cover_orders(buffer)?;
        }
        let Some(positions) = fields::optional(event, b"positions") else { return Ok(()) };
        let positions = Object::parse(positions)?;
        fields::optional_each(&positions, b"perpetual_futures_positions", |object| {
            buffer.push_position(perpetual(object, ts_event)?)
        })?;
        fields::optional_each(&positions, b"expiring_futures_positions", |object| {
            buffer.push_position(expiring(object, ts_event)?)
        })
    })?;
    Ok(Event::Account)
}

/// After the orders of a snapshot.
pub(super) fn cover_orders(buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let is_last = buffer.order_updates().len() < ORDERS_PER_SNAPSHOT;
    buffer.cover_orders(if is_last { Coverage::All } else { Coverage::Part })
}

pub(super) fn order(object: &impl Keyed, ts_event: Nanos) -> Result<OrderUpdate, ParseError> {
    let filled = fields::amount(object, b"cumulative_quantity")?;
    let qty = filled.sum(fields::amount(object, b"leaves_quantity")?)?;
    Ok(OrderUpdate {
        symbol: Some(product(object)?),
        order_id: OrderId::new(fields::text(object, b"order_id")?)?,
        side: Some(fields::order_side(object, b"order_side", SIDES)?),
        status: status(fields::text(object, b"status")?, filled)?,
        limit_px: fields::optional_amount(object, b"limit_price")?,
        qty: Some(qty),
        filled_qty: Some(filled),
        fill: None,
        ts_event,
    })
}

fn status(word: &[u8], filled: Decimal) -> Result<OrderStatus, ParseError> {
    Ok(match word {
        b"PENDING" | b"QUEUED" => OrderStatus::Pending,
        b"OPEN" | b"CANCEL_QUEUED" | b"EDIT_QUEUED" if filled.mantissa != 0 => OrderStatus::PartiallyFilled,
        b"OPEN" | b"CANCEL_QUEUED" | b"EDIT_QUEUED" => OrderStatus::New,
        b"FILLED" => OrderStatus::Filled,
        b"CANCELLED" => OrderStatus::Cancelled,
        b"FAILED" => OrderStatus::Rejected,
        b"EXPIRED" => OrderStatus::Expired,
        _ => return Err(ParseError::WrongType),
    })
}

/// A perpetual's size has its sign.
fn perpetual(object: &Object<'_>, ts_event: Nanos) -> Result<PositionUpdate, ParseError> {
    Ok(PositionUpdate {
        symbol: product(object)?,
        leg: PositionLeg::Net,
        qty: fields::number(object, b"net_size")?,
        entry_px: fields::optional_amount(object, b"entry_vwap")?,
        unrealised: fields::optional_number(object, b"unrealized_pnl")?,
        ts_event,
    })
}

/// A future's contracts have a side instead.
fn expiring(object: &Object<'_>, ts_event: Nanos) -> Result<PositionUpdate, ParseError> {
    let contracts = fields::amount(object, b"number_of_contracts")?;
    let qty = match fields::text(object, b"side")? {
        b"LONG" | b"Long" => contracts,
        b"SHORT" | b"Short" => Decimal { mantissa: -contracts.mantissa, ..contracts },
        _ => return Err(ParseError::WrongType),
    };
    Ok(PositionUpdate {
        symbol: product(object)?,
        leg: PositionLeg::Net,
        qty,
        entry_px: fields::optional_amount(object, b"entry_price")?,
        unrealised: fields::optional_number(object, b"unrealized_pnl")?,
        ts_event,
    })
}
