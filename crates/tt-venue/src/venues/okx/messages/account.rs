//! OKX's private messages: own orders, positions, balances (okx.com/docs-v5, "Order channel" and its neighbours).

use crate::error::ParseError;
use crate::event::{
    Balance, Coverage, Event, EventBuffer, Fill, OrderId, OrderStatus, OrderUpdate, PositionLeg, PositionUpdate,
};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Object};
use tt_model::Decimal;

const SIDES: [&[u8]; 2] = [b"buy", b"sell"];

/// Reads a message of a private topic; `None` where the topic is none.
pub(super) fn event(topic: &[u8], outer: &Object<'_>, buffer: &mut EventBuffer) -> Option<Result<Event, ParseError>> {
    Some(match topic {
        b"orders" => orders(outer, buffer),
        b"orders-algo" => conditional_orders(outer, buffer),
        b"account" => balances(outer, buffer),
        b"positions" => positions(outer, buffer),
        _ => return None,
    })
}

fn orders(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| buffer.push_order_update(order(object)?))?;
    Ok(Event::OrderUpdates)
}

pub(super) fn order(object: &impl Keyed) -> Result<OrderUpdate, ParseError> {
    let filled_qty = fields::optional_amount(object, b"accFillSz")?.unwrap_or_default();
    Ok(OrderUpdate {
        symbol: Some(fields::symbol(object, b"instId")?),
        order_id: OrderId::new(fields::text(object, b"ordId")?)?,
        side: Some(fields::order_side(object, b"side", SIDES)?),
        status: status(fields::text(object, b"state")?)?,
        // A market order has no price.
        limit_px: Some(fields::optional_amount(object, b"px")?.unwrap_or_default()),
        qty: Some(fields::amount(object, b"sz")?),
        filled_qty: Some(filled_qty),
        fill: fill(object, filled_qty)?,
        ts_event: fields::unix_ms(object, b"uTime")?,
    })
}

/// The last execution; the fee of all of them is its own where it is the only one.
fn fill(object: &impl Keyed, filled_qty: Decimal) -> Result<Option<Fill>, ParseError> {
    let qty = fields::optional_amount(object, b"fillSz")?.filter(|qty| qty.mantissa != 0);
    let (Some(qty), Some(trade_id)) = (qty, fields::optional(object, b"tradeId")) else { return Ok(None) };
    let is_only_one = fields::difference(filled_qty, qty).is_ok_and(|rest| rest.mantissa == 0);
    let (paid, asset): (&[u8], &[u8]) = match fields::optional(object, b"fillFee") {
        Some(_) => (b"fillFee", b"fillFeeCcy"),
        None if is_only_one => (b"fee", b"feeCcy"),
        None => (b"", b""),
    };
    Ok(Some(Fill {
        trade_id: OrderId::new(json::text(trade_id)?)?,
        px: fields::amount(object, b"fillPx")?,
        qty,
        // The venue counts what is paid as negative.
        fee: fields::optional_number(object, paid)?.map(|fee| Decimal { mantissa: -fee.mantissa, ..fee }),
        fee_asset: fields::optional_symbol(object, asset)?,
        is_maker: match fields::optional(object, b"execType") {
            Some(word) => Some(json::text(word)? == b"M"),
            None => None,
        },
    }))
}

fn status(word: &[u8]) -> Result<OrderStatus, ParseError> {
    Ok(match word {
        b"live" => OrderStatus::New,
        b"partially_filled" => OrderStatus::PartiallyFilled,
        b"filled" => OrderStatus::Filled,
        b"canceled" | b"mmp_canceled" => OrderStatus::Cancelled,
        _ => return Err(ParseError::WrongType),
    })
}

/// Orders that wait for a condition, numbered by themselves; once it is met, an order of the other topic follows.
fn conditional_orders(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| buffer.push_order_update(conditional_order(object)?))?;
    Ok(Event::OrderUpdates)
}

pub(super) fn conditional_order(object: &impl Keyed) -> Result<OrderUpdate, ParseError> {
    let word = fields::text(object, b"state")?;
    Ok(OrderUpdate {
        symbol: Some(fields::symbol(object, b"instId")?),
        order_id: OrderId::conditional(fields::text(object, b"algoId")?)?,
        side: Some(fields::order_side(object, b"side", SIDES)?),
        status: match word {
            b"live" | b"pause" => OrderStatus::Pending,
            b"partially_effective" => OrderStatus::PartiallyFilled,
            b"effective" | b"order_placed" | b"filled" => OrderStatus::Filled,
            b"canceled" => OrderStatus::Cancelled,
            b"order_failed" => OrderStatus::Rejected,
            _ => return Err(ParseError::WrongType),
        },
        limit_px: None,
        qty: fields::optional_amount(object, b"sz")?,
        filled_qty: fields::optional_amount(object, b"actualSz")?,
        fill: None,
        ts_event: fields::unix_ms(object, b"uTime")?,
    })
}

fn balances(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |account| {
        fields::each(account.need(b"details")?, |object| buffer.push_balance(balance(object)?))
    })?;
    Ok(Event::Account)
}

pub(super) fn balance(object: &impl Keyed) -> Result<Balance, ParseError> {
    Ok(Balance {
        asset: fields::symbol(object, b"ccy")?,
        total: Some(fields::number(object, b"cashBal")?),
        free: fields::optional_number(object, b"availBal")?,
        locked: fields::optional_amount(object, b"frozenBal")?,
        change: None,
        ts_event: fields::unix_ms(object, b"uTime")?,
    })
}

fn positions(outer: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(outer.need(b"data")?, |object| buffer.push_position(position(object)?))?;
    cover_positions(outer, buffer)?;
    Ok(Event::Account)
}

pub(super) fn position(object: &impl Keyed) -> Result<PositionUpdate, ParseError> {
    let qty = fields::number(object, b"pos")?;
    let leg = match fields::text(object, b"posSide")? {
        b"net" => PositionLeg::Net,
        b"long" => PositionLeg::Long,
        b"short" => PositionLeg::Short,
        _ => return Err(ParseError::WrongType),
    };
    // The short one of two has no sign.
    let is_short = leg == PositionLeg::Short && qty.mantissa > 0;
    Ok(PositionUpdate {
        symbol: fields::symbol(object, b"instId")?,
        leg,
        qty: if is_short { Decimal { mantissa: -qty.mantissa, ..qty } } else { qty },
        entry_px: fields::optional_amount(object, b"avgPx")?.filter(|_| qty.mantissa != 0),
        unrealised: fields::optional_number(object, b"upl")?,
        ts_event: fields::unix_ms(object, b"uTime")?,
    })
}

/// A snapshot of several pages lists all positions.
pub(super) fn cover_positions(outer: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    if let Some(kind) = fields::optional(outer, b"eventType")
        && json::text(kind)? == b"snapshot"
    {
        let is_last = fields::optional(outer, b"lastPage").is_none_or(|last| last == b"true");
        buffer.cover_positions(if is_last { Coverage::All } else { Coverage::Part })?;
    }
    Ok(())
}
