//! What an account may do in an instrument.

use crate::{gate::Fault, multiple::Multiple};
use tt_model::{Breach, Notional, Price, Qty};

/// Larger quantities and positions, in lots, are not accepted as limits: sums of three of them stay within an `i64`.
pub(crate) const LOTS_CEILING: i64 = 1 << 61;

/// The limits of one account in one instrument. A value equal to a limit is within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Prices must be a multiple of this, at least 1.
    pub px_step: Price,
    /// Quantities must be a multiple of this, at least 1.
    pub qty_step: Qty,
    /// The least quantity of an order, at least 1. An order that closes a position may be smaller.
    pub qty_min: Qty,
    /// The largest quantity of an order.
    pub qty_max: Qty,
    /// The least price times quantity of an order. An order that closes a position may be smaller.
    pub notional_min: Notional,
    /// The largest price times quantity of an order.
    pub notional_max: Notional,
    /// The longest position that could come about if every open buy were filled and no sell.
    pub position_long_max: Qty,
    /// The shortest position that could come about if every open sell were filled and no buy, as a positive number.
    pub position_short_max: Qty,
    /// The largest quantity open on one side.
    pub open_qty_max: Qty,
    /// The largest number of open orders.
    pub open_orders_max: u32,
    /// Which reasons refuse an order. Those of [`Limits::ALWAYS`] do in any case.
    pub enabled: Breach,
}

impl Limits {
    /// Reasons that every evaluation looks for: without them nothing else has a meaning.
    pub const CORE: Breach = Breach::INSTRUMENT_UNKNOWN
        .union(Breach::NOT_PERMITTED)
        .union(Breach::PRICE_NONPOS)
        .union(Breach::QTY_MIN)
        .union(Breach::OPEN_QTY);

    /// Reasons that refuse an order whatever [`enabled`](Self::enabled) says: the core, and the rates, whose sums must
    /// not run away.
    pub const ALWAYS: Breach =
        Self::CORE.union(Breach::RATE_ACCOUNT).union(Breach::RATE_INSTRUMENT).union(Breach::RATE_GLOBAL);

    /// The eight checks that gates of this kind publish figures for: kill switches, tick size, quantity, notional, price
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

    /// Every reason that can be told without remembering single orders.
    pub const PLAIN: Breach = Self::EIGHT
        .union(Self::ALWAYS)
        .union(Breach::REDUCE_ONLY_FLIP)
        .union(Breach::MD_STALE)
        .union(Breach::BOOK_UNVERIFIED);

    /// Every reason that this version of the gate looks for.
    pub const CHECKED: Breach = Self::PLAIN.union(Breach::DUP_ID).union(Breach::SELF_MATCH);
}

/// [`Limits`] as the evaluation reads them: two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Prepared {
    pub(crate) px_step: Multiple,
    pub(crate) qty_step: Multiple,
    /// One lot below the least quantity.
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
    /// Before limits were set: nothing is allowed.
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
    /// [`Fault::LimitOutOfRange`] for a step or least quantity below 1, a negative limit, or one above 2^61 lots.
    pub(crate) fn of(limits: &Limits) -> Result<Self, Fault> {
        let step = |step: i64| u64::try_from(step).ok().filter(|step| *step > 0).ok_or(Fault::LimitOutOfRange);
        let lots = |qty: Qty| match qty.0 {
            0..=LOTS_CEILING => Ok(qty.0),
            _ => Err(Fault::LimitOutOfRange),
        };
        let product = |notional: Notional| u128::try_from(notional.0).map_err(|_| Fault::LimitOutOfRange);
        if limits.qty_min.0 < 1 {
            return Err(Fault::LimitOutOfRange);
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
