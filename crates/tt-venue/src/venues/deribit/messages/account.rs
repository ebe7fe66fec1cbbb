//! Deribit's private messages: own orders, trades, positions, portfolio (docs.deribit.com, "Subscriptions").

use crate::error::ParseError;
use crate::event::{
    Balance, Event, EventBuffer, Execution, OrderId, OrderStatus, OrderUpdate, PositionLeg, PositionUpdate,
};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use tt_model::{Decimal, Nanos};

const SIDES: [&[u8]; 2] = [b"buy", b"sell"];

/// Reads the `data` of a private topic; `None` where the topic is none.
pub(super) fn event(topic: &[u8], raw: &[u8], buffer: &mut EventBuffer) -> Option<Result<Event, ParseError>> {
    Some(if topic.starts_with(b"user.orders.") {
        one_or_many(raw, |object| buffer.push_order_update(order(object)?)).map(|()| Event::OrderUpdates)
    } else if topic.starts_with(b"user.trades.") {
        one_or_many(raw, |object| buffer.push_execution(execution(object)?)).map(|()| Event::Account)
    } else if topic.starts_with(b"user.changes.") {
        Object::parse(raw).and_then(|object| changes(&object, buffer))
    } else if topic.starts_with(b"user.portfolio.") {
        Object::parse(raw).and_then(|object| portfolio(&object, buffer))
    } else {
        return None;
    })
}

/// The answer to a request that placed, changed or cancelled an order.
pub(super) fn order_answer(result: &Object<'_>, buffer: &mut EventBuffer) -> Option<Result<Event, ParseError>> {
    if result.get(b"order_state").is_some() {
        return Some(order(result).and_then(|update| buffer.push_order_update(update)).map(|()| Event::OrderUpdates));
    }
    let raw = result.get(b"order")?;
    Some(Object::parse(raw).and_then(|object| {
        buffer.push_order_update(order(&object)?)?;
        fields::optional_each(result, b"trades", |object| buffer.push_execution(execution(object)?))?;
        Ok(Event::Account)
    }))
}

/// A topic of single changes sends an object, one of an interval a list.
fn one_or_many(raw: &[u8], mut each: impl FnMut(&Object<'_>) -> Result<(), ParseError>) -> Result<(), ParseError> {
    if Elements::parse(raw).is_ok() { fields::each(raw, each) } else { each(&Object::parse(raw)?) }
}

fn changes(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::optional_each(object, b"orders", |object| buffer.push_order_update(order(object)?))?;
    fields::optional_each(object, b"trades", |object| buffer.push_execution(execution(object)?))?;
    fields::optional_each(object, b"positions", |object| buffer.push_position(position(object)?))?;
    Ok(Event::Account)
}

pub(super) fn order(object: &impl Keyed) -> Result<OrderUpdate, ParseError> {
    let filled_qty = fields::optional_amount(object, b"filled_amount")?;
    // A market order has the text `market_price` for a price.
    let limit_px = match fields::optional(object, b"price") {
        Some([b'"', ..]) => Some(Decimal::default()),
        Some(raw) => Some(json::bare_unsigned(raw)?),
        None => None,
    };
    Ok(OrderUpdate {
        symbol: Some(fields::symbol(object, b"instrument_name")?),
        order_id: OrderId::new(fields::text(object, b"order_id")?)?,
        side: Some(fields::order_side(object, b"direction", SIDES)?),
        status: status(fields::text(object, b"order_state")?, filled_qty)?,
        limit_px,
        qty: Some(fields::amount(object, b"amount")?),
        filled_qty,
        fill: None,
        ts_event: fields::unix_ms(object, b"last_update_timestamp")?,
    })
}

fn status(word: &[u8], filled_qty: Option<Decimal>) -> Result<OrderStatus, ParseError> {
    Ok(match word {
        b"untriggered" => OrderStatus::Pending,
        b"open" | b"triggered" if filled_qty.is_some_and(|qty| qty.mantissa != 0) => OrderStatus::PartiallyFilled,
        b"open" | b"triggered" => OrderStatus::New,
        b"filled" => OrderStatus::Filled,
        b"cancelled" => OrderStatus::Cancelled,
        b"rejected" => OrderStatus::Rejected,
        _ => return Err(ParseError::WrongType),
    })
}

pub(super) fn execution(object: &impl Keyed) -> Result<Execution, ParseError> {
    Ok(Execution {
        symbol: fields::symbol(object, b"instrument_name")?,
        order_id: OrderId::new(fields::text(object, b"order_id")?)?,
        execution_id: OrderId::new(fields::text(object, b"trade_id")?)?,
        side: fields::order_side(object, b"direction", SIDES)?,
        px: fields::amount(object, b"price")?,
        qty: fields::amount(object, b"amount")?,
        fee: fields::optional_number(object, b"fee")?,
        fee_asset: fields::optional_symbol(object, b"fee_currency")?,
        is_maker: match fields::optional(object, b"liquidity") {
            Some(word) => Some(json::text(word)? == b"M"),
            None => None,
        },
        ts_event: fields::unix_ms(object, b"timestamp")?,
    })
}

pub(super) fn position(object: &impl Keyed) -> Result<PositionUpdate, ParseError> {
    let size = fields::number(object, b"size")?;
    let is_short = fields::text(object, b"direction")? == b"sell" || size.mantissa < 0;
    let mantissa = size.mantissa.checked_abs().ok_or(ParseError::NumberRange)?;
    Ok(PositionUpdate {
        symbol: fields::symbol(object, b"instrument_name")?,
        leg: PositionLeg::Net,
        qty: Decimal { mantissa: if is_short { -mantissa } else { mantissa }, ..size },
        entry_px: fields::optional_amount(object, b"average_price")?.filter(|_| mantissa != 0),
        unrealised: fields::optional_number(object, b"floating_profit_loss")?,
        ts_event: fields::optional_unix_ms(object, b"creation_timestamp")?,
    })
}

pub(super) fn portfolio(object: &impl Keyed, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    buffer.push_balance(Balance {
        asset: fields::symbol(object, b"currency")?,
        total: Some(fields::number(object, b"balance")?),
        free: fields::optional_number(object, b"available_funds")?,
        locked: fields::optional_amount(object, b"locked_balance")?,
        change: None,
        ts_event: Nanos(0),
    })?;
    Ok(Event::Account)
}
