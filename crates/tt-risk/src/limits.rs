//! Limits of an account in an instrument.

use crate::{error::GateError, multiple::Multiple};
use tt_model::{Breach, Notional, Price, Qty};

/// Maximum of quantities and positions in lots: the sum of three fits into an `i64`.
pub(crate) const LOTS_CEILING: i64 = 1 << 61;

/// Limits of one account in one instrument. A value equal to a limit passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Step of limit prices, at least 1.
    pub px_step: Price,
    /// Step of quantities, at least 1.
    pub qty_step: Qty,
    /// Minimum quantity of an order, at least 1. An order that closes a position may be smaller.
    pub qty_min: Qty,
    /// Maximum quantity of an order.
    pub qty_max: Qty,
    /// Minimum price times quantity of an order. An order that closes a position may be smaller.
    pub notional_min: Notional,
    /// Maximum price times quantity of an order.
    pub notional_max: Notional,
    /// Maximum long position if all open buys and no open sells are filled.
    pub position_long_max: Qty,
    /// Maximum short position, as a positive number, if all open sells and no open buys are filled.
    pub position_short_max: Qty,
    /// Maximum open quantity per side.
    pub open_qty_max: Qty,
    /// Maximum number of open orders.
    pub open_orders_max: u32,
    /// Reasons that reject an order, in addition to [`Limits::ALWAYS`].
    pub enabled: Breach,
}

impl Limits {
    /// Reasons that every profile checks, because the other checks depend on them.
    pub const CORE: Breach = Breach::INSTRUMENT_UNKNOWN
        .union(Breach::NOT_PERMITTED)
        .union(Breach::PRICE_NONPOS)
        .union(Breach::QTY_MIN)
        .union(Breach::OPEN_QTY);

    /// Reasons that reject an order regardless of [`enabled`](Self::enabled): the core, and the rates, whose sums would
    /// overflow otherwise.
    pub const ALWAYS: Breach =
        Self::CORE.union(Breach::RATE_ACCOUNT).union(Breach::RATE_INSTRUMENT).union(Breach::RATE_GLOBAL);

    /// The eight checks for which other gates publish figures: kill switches, tick size, quantity, notional, price
    /// collar, position, open orders, one message rate.
    pub const EIGHT: Breach = Self::CORE
        .union(Breach(0b1111))
        .union(Breach::PRICE_TICK)
        .union(Breach::QTY_STEP)
        .union(Breach::QTY_MAX)
        .union(Breach::NOTIONAL_MIN)
        .union(Breach::NOTIONAL_MAX)
        .union(Breach::COLLAR_REF)
        .union(Breach::POS_LONG)
        .union(Breach::POS_SHORT)
        .union(Breach::OPEN_ORDERS)
        .union(Breach::RATE_ACCOUNT);

    /// Every reason that does not need stored orders.
    pub const PLAIN: Breach = Self::EIGHT
        .union(Self::ALWAYS)
        .union(Breach::REDUCE_ONLY_FLIP)
        .union(Breach::MD_STALE)
        .union(Breach::BOOK_UNVERIFIED);

    /// Reasons that a limits file may switch off in [`Gate`](crate::Gate). All others reject regardless of
    /// [`enabled`](Self::enabled).
    pub const OPTIONAL: Breach = Breach::BOOK_UNVERIFIED;

    /// Every reason that this version of the gate checks.
    pub const CHECKED: Breach = Self::PLAIN
        .union(Breach::REDUCE_ONLY_STATE)
        .union(Breach::DUP_ID)
        .union(Breach::SELF_MATCH)
        .union(Breach::EXPIRED)
        .union(Breach::SEQ_REPLAY)
        .union(Breach::UNRECONCILED)
        .union(Breach::MALFORMED)
        .union(Breach::CAPACITY)
        .union(Breach::CLOCK_FAULT)
        .union(Breach::JOURNAL)
        .union(Breach::COLLAR_TOUCH)
        .union(Breach::INSTRUMENT_HALTED)
        .union(Breach::DUP_ORDER)
        .union(Breach::ORDER_UNKNOWN)
        .union(Breach::GROSS_EXPOSURE)
        .union(Breach::NET_EXPOSURE)
        .union(Breach::OPEN_NOTIONAL)
        .union(Breach::CANCEL_RATIO)
        .union(Breach::BALANCE)
        .union(Breach::MARGIN)
        .union(Breach::LEVERAGE)
        .union(Breach::DAILY_LOSS)
        .union(Breach::DRAWDOWN)
        .union(Breach::REPEAT_EXEC);
}

/// [`Limits`] in the form that the evaluation reads: two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Prepared {
    pub(crate) px_step: Multiple,
    pub(crate) qty_step: Multiple,
    /// One lot below the minimum quantity.
    pub(crate) qty_above: i64,
    pub(crate) qty_max: i64,
    pub(crate) notional_min: u128,
    pub(crate) notional_max: u128,
    /// Long, short: indexed by the side of the order.
    pub(crate) position_max: [i64; 2],
    pub(crate) open_qty_max: i64,
    pub(crate) enabled: u64,
    pub(crate) open_orders_max: u32,
    pub(crate) px_zeros: u8,
    pub(crate) qty_zeros: u8,
}

const _: () = assert!(size_of::<Prepared>() == 128);

impl Prepared {
    /// The limits of an account before any were set: no order passes.
    pub(crate) const NONE: Self = Self {
        px_step: Multiple::NEVER,
        qty_step: Multiple::NEVER,
        qty_above: 0,
        qty_max: 0,
        notional_min: 0,
        notional_max: 0,
        position_max: [0; 2],
        open_qty_max: 0,
        enabled: Limits::CHECKED.0,
        open_orders_max: 0,
        px_zeros: 0,
        qty_zeros: 0,
    };

    /// # Errors
    /// [`GateError::LimitOutOfRange`] for a step or minimum quantity below 1, a negative limit, or one above 2^61 lots.
    pub(crate) fn of(limits: &Limits) -> Result<Self, GateError> {
        let step = |step: i64| u64::try_from(step).ok().filter(|step| *step > 0).ok_or(GateError::LimitOutOfRange);
        let lots = |qty: Qty| match qty.0 {
            0..=LOTS_CEILING => Ok(qty.0),
            _ => Err(GateError::LimitOutOfRange),
        };
        let product = |notional: Notional| u128::try_from(notional.0).map_err(|_| GateError::LimitOutOfRange);
        if limits.qty_min.0 < 1 {
            return Err(GateError::LimitOutOfRange);
        }
        let (px_step, px_zeros) = Multiple::of(step(limits.px_step.0)?);
        let (qty_step, qty_zeros) = Multiple::of(step(limits.qty_step.0)?);
        Ok(Self {
            px_step,
            qty_step,
            px_zeros,
            qty_zeros,
            qty_above: lots(limits.qty_min)? - 1,
            qty_max: lots(limits.qty_max)?,
            notional_min: product(limits.notional_min)?,
            notional_max: product(limits.notional_max)?,
            position_max: [lots(limits.position_long_max)?, lots(limits.position_short_max)?],
            open_qty_max: lots(limits.open_qty_max)?,
            open_orders_max: limits.open_orders_max,
            enabled: limits.enabled.union(Limits::ALWAYS).0,
        })
    }
}

crate::fields::visit!(
    Prepared: px_step, qty_step, qty_above, qty_max, notional_min, notional_max, position_max, open_qty_max, enabled,
    open_orders_max, px_zeros, qty_zeros
);
