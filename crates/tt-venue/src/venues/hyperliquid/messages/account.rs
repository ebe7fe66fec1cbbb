//! Hyperliquid's private messages: own orders, fills, fundings, positions.

use super::general::{symbol, time};
use crate::error::ParseError;
use crate::event::{
    Balance, Coverage, Event, EventBuffer, Execution, OrderId, OrderStatus, OrderUpdate, PositionLeg, PositionUpdate,
};
use crate::fields;
use crate::fields::Keyed;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use tt_model::{Decimal, Nanos};

/// Bids and asks.
const SIDES: [&[u8]; 2] = [b"B", b"A"];
/// What margin, profit and funding are counted in.
const MARGIN_ASSET: &[u8] = b"USDC";
/// The same token where it is not margin: another balance.
const SPOT_MARGIN_ASSET: &[u8] = b"USDC:spot";
/// What a list of all builders' orders names.
const ALL_BUILDERS: &[u8] = b"ALL_DEXS";

/// `orderUpdates`.
pub(super) fn orders(raw: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(raw, |object| {
        let update = order(object, &Object::parse(object.need(b"order")?)?)?;
        buffer.push_order_update(update)
    })?;
    Ok(Event::OrderUpdates)
}

/// An order, and what surrounds it.
pub(super) fn order(object: &impl Keyed, order: &impl Keyed) -> Result<OrderUpdate, ParseError> {
    let ts_event = fields::unix_ms(object, b"statusTimestamp")?;
    described(order, fields::text(object, b"status")?, ts_event)
}

/// An order of that status.
fn described(order: &impl Keyed, word: &[u8], ts_event: Nanos) -> Result<OrderUpdate, ParseError> {
    let (qty, left) = (fields::amount(order, b"origSz")?, fields::amount(order, b"sz")?);
    let is_partly_filled = fields::difference(qty, left).is_ok_and(|filled| filled.mantissa != 0);
    let status = status(word, is_partly_filled)?;
    // A filled order may have the quantity that it had before.
    let filled_qty = if status == OrderStatus::Filled { qty } else { fields::difference(qty, left)? };
    let order_id = order.need(b"oid")?;
    json::bare_u64(order_id)?;
    Ok(OrderUpdate {
        symbol: Some(symbol(order)?),
        order_id: OrderId::new(order_id)?,
        side: Some(fields::order_side(order, b"side", SIDES)?),
        status,
        limit_px: Some(fields::amount(order, b"limitPx")?),
        qty: Some(qty),
        filled_qty: Some(filled_qty),
        fill: None,
        ts_event,
    })
}

/// The venue has some thirty words, each of which names the reason before what happened.
fn status(word: &[u8], is_partly_filled: bool) -> Result<OrderStatus, ParseError> {
    Ok(match word {
        b"open" | b"triggered" if is_partly_filled => OrderStatus::PartiallyFilled,
        b"open" | b"triggered" => OrderStatus::New,
        b"filled" => OrderStatus::Filled,
        b"canceled" | b"scheduledCancel" => OrderStatus::Cancelled,
        b"rejected" => OrderStatus::Rejected,
        _ if word.ends_with(b"Canceled") => OrderStatus::Cancelled,
        _ if word.ends_with(b"Rejected") => OrderStatus::Rejected,
        _ => return Err(ParseError::WrongType),
    })
}

/// `userFills`, and the fills of `user`.
pub(super) fn fills(raw: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(raw, |object| buffer.push_execution(execution(object)?))?;
    Ok(Event::Account)
}

pub(super) fn execution(object: &impl Keyed) -> Result<Execution, ParseError> {
    let (order_id, execution_id) = (object.need(b"oid")?, object.need(b"tid")?);
    json::bare_u64(order_id)?;
    json::bare_u64(execution_id)?;
    Ok(Execution {
        symbol: symbol(object)?,
        order_id: OrderId::new(order_id)?,
        execution_id: OrderId::new(execution_id)?,
        side: fields::order_side(object, b"side", SIDES)?,
        px: fields::amount(object, b"px")?,
        qty: fields::amount(object, b"sz")?,
        fee: fields::optional_number(object, b"fee")?,
        fee_asset: fields::optional_symbol(object, b"feeToken")?,
        is_maker: Some(!json::boolean(object.need(b"crossed")?)?),
        ts_event: time(object, b"time")?,
    })
}

/// `user`: one of several things that happened to the account.
pub(super) fn user(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    if let Some(raw) = object.get(b"fills") {
        return fills(raw, buffer);
    }
    match object.get(b"funding") {
        Some(raw) => {
            buffer.push_balance(funding(&Object::parse(raw)?)?)?;
            Ok(Event::Account)
        }
        None => Err(ParseError::UnknownTopic),
    }
}

/// `userFundings`.
pub(super) fn fundings(raw: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(raw, |object| buffer.push_balance(funding(object)?))?;
    Ok(Event::Account)
}

pub(super) fn funding(object: &impl Keyed) -> Result<Balance, ParseError> {
    let change = Some(fields::number(object, b"usdc")?);
    let ts_event = time(object, b"time")?;
    Ok(Balance { asset: Symbol::new(MARGIN_ASSET)?, total: None, free: None, locked: None, change, ts_event })
}

/// `webData2` and `clearinghouseState`: all positions, and what they stand on.
pub(super) fn clearinghouse(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    clearinghouse_state(&Object::parse(object.need(b"clearinghouseState")?)?, buffer)
}

pub(super) fn clearinghouse_state(state: &impl Keyed, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    margin(state, buffer)?;
    positions(state, buffer)?;
    buffer.cover_positions(Coverage::All)?;
    Ok(Event::Account)
}

/// `allDexsClearinghouseState`: the positions at the venue's own perpetuals and at those of every builder, by the
/// builder's name. What a builder's margin is counted in is not said: only the venue's own is taken.
pub(super) fn clearinghouses(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let mut states = Elements::parse(object.need(b"clearinghouseStates")?)?;
    while let Some(pair) = states.next()? {
        let mut pair = Elements::parse(pair)?;
        let is_venues = json::text(pair.need()?)?.is_empty();
        let state = Object::parse(pair.need()?)?;
        pair.end()?;
        if is_venues {
            margin(&state, buffer)?;
        }
        positions(&state, buffer)?;
    }
    buffer.cover_positions(Coverage::All)?;
    Ok(Event::Account)
}

fn margin(state: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let ts_event = fields::optional_unix_ms(state, b"time")?;
    let margin = Object::parse(state.need(b"marginSummary")?)?;
    buffer.push_balance(Balance {
        asset: Symbol::new(MARGIN_ASSET)?,
        total: Some(fields::number(&margin, b"accountValue")?),
        free: fields::optional_number(state, b"withdrawable")?,
        locked: Some(fields::number(&margin, b"totalMarginUsed")?),
        change: None,
        ts_event,
    })
}

fn positions(state: &impl Keyed, buffer: &mut EventBuffer) -> Result<(), ParseError> {
    let ts_event = fields::optional_unix_ms(state, b"time")?;
    fields::each(state.need(b"assetPositions")?, |entry| {
        buffer.push_position(position(&Object::parse(entry.need(b"position")?)?, ts_event)?)
    })
}

/// `spotState`: the tokens of the account. The message has no time.
pub(super) fn tokens(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let state = Object::parse(object.need(b"spotState")?)?;
    fields::each(state.need(b"balances")?, |object| buffer.push_balance(token(object)?))?;
    Ok(Event::Account)
}

fn token(object: &impl Keyed) -> Result<Balance, ParseError> {
    let (total, held) = (fields::amount(object, b"total")?, fields::amount(object, b"hold")?);
    let asset = match fields::text(object, b"coin")? {
        MARGIN_ASSET => SPOT_MARGIN_ASSET,
        coin => coin,
    };
    Ok(Balance {
        asset: Symbol::new(asset)?,
        total: Some(total),
        free: Some(fields::difference(total, held)?),
        locked: Some(held),
        change: None,
        ts_event: Nanos(0),
    })
}

/// `openOrders`: every open order of all builders where it says so, else those of one, which end no others. An order's
/// time is that of its placement, older than what updates have said of it: it is left out.
pub(super) fn open_orders(object: &Object<'_>, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    fields::each(object.need(b"orders")?, |order| buffer.push_order_update(described(order, b"open", Nanos(0))?))?;
    if fields::text(object, b"dex")? == ALL_BUILDERS {
        buffer.cover_orders(Coverage::All)?;
    }
    Ok(Event::Account)
}

pub(super) fn position(object: &impl Keyed, ts_event: Nanos) -> Result<PositionUpdate, ParseError> {
    let qty: Decimal = fields::number(object, b"szi")?;
    Ok(PositionUpdate {
        symbol: symbol(object)?,
        leg: PositionLeg::Net,
        qty,
        entry_px: fields::optional_amount(object, b"entryPx")?,
        unrealised: fields::optional_number(object, b"unrealizedPnl")?,
        ts_event,
    })
}
