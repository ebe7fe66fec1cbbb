//! Exposure of an account in an instrument.

use crate::{error::GateError, limits::LOTS_CEILING};
use tt_model::{Breach, OrderIntent, OrderSide, Qty};

/// Exposure of an account in an instrument: position and open orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Position in lots: positive if long, negative if short.
    pub position: Qty,
    /// Lots of open buys: accepted, and neither filled nor cancelled.
    pub open_buy_qty: Qty,
    /// Lots of open sells.
    pub open_sell_qty: Qty,
    /// Open orders of both sides.
    pub open_orders: u32,
}

/// [`Exposure`] in the form that the evaluation uses: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct State {
    pub(crate) position: i64,
    /// Buys, sells: indexed by the side of the order.
    pub(crate) open_qty: [i64; 2],
    pub(crate) open_orders: u32,
    has_limits: bool,
    pub(crate) has_exposure: bool,
    /// Reasons that apply to every intent: no limits or exposure set yet, or an unknown account or instrument.
    pub(crate) barred: u64,
}

const _: () = assert!(size_of::<State>() == 64);

impl State {
    /// No exposure, and `reasons` reject every order.
    pub(crate) const fn barred(reasons: Breach) -> Self {
        let barred = reasons.0;
        Self { position: 0, open_qty: [0; 2], open_orders: 0, has_limits: false, has_exposure: false, barred }
    }

    /// Notes that limits were set.
    pub(crate) const fn set_limited(&mut self) {
        self.has_limits = true;
        self.unbar();
    }

    /// Notes that limits were withdrawn.
    pub(crate) const fn withdraw_limits(&mut self) {
        self.has_limits = false;
        self.barred = Breach::NOT_PERMITTED.0;
    }

    const fn unbar(&mut self) {
        if self.has_limits && self.has_exposure {
            self.barred = 0;
        }
    }

    /// Replaces the exposure.
    pub(crate) fn restore(&mut self, exposure: &Exposure) -> Result<(), GateError> {
        let open_qty = [exposure.open_buy_qty.0, exposure.open_sell_qty.0];
        let in_range = exposure.position.0.unsigned_abs() <= LOTS_CEILING.unsigned_abs()
            && open_qty.iter().all(|qty| (0..=LOTS_CEILING).contains(qty));
        if !in_range {
            return Err(GateError::QtyOutOfRange);
        }
        self.position = exposure.position.0;
        self.open_qty = open_qty;
        self.open_orders = exposure.open_orders;
        self.has_exposure = true;
        self.unbar();
        Ok(())
    }

    pub(crate) const fn exposure(&self) -> Exposure {
        Exposure {
            position: Qty(self.position),
            open_buy_qty: Qty(self.open_qty[0]),
            open_sell_qty: Qty(self.open_qty[1]),
            open_orders: self.open_orders,
        }
    }

    /// Adds `intent` as an open order if `takes` is all ones; does nothing if `takes` is zero.
    #[inline(always)]
    pub(crate) const fn take(&mut self, intent: &OrderIntent, takes: u64) {
        let side = intent.side as usize;
        self.open_qty[side] = self.open_qty[side].wrapping_add(intent.qty.0 & takes.cast_signed());
        self.open_orders = self.open_orders.wrapping_sub(takes as u32);
    }

    /// Changes the reserved lots of `side` from `before` to `after`. Sums beyond the ceiling stay at the ceiling.
    pub(crate) fn reserve(&mut self, side: OrderSide, before: i64, after: i64) {
        let open_qty = &mut self.open_qty[side as usize];
        *open_qty = (*open_qty - before).saturating_add(after).clamp(0, LOTS_CEILING);
    }

    /// Returns the position after a move by `lots` of `side`; `None` beyond the ceiling.
    pub(crate) fn moved(&self, side: OrderSide, lots: i64) -> Option<i64> {
        let signed = match side {
            OrderSide::Buy => lots,
            OrderSide::Sell => -lots,
        };
        let position = self.position.checked_add(signed)?;
        (position.unsigned_abs() <= LOTS_CEILING.unsigned_abs()).then_some(position)
    }
}

crate::fields::visit!(State: position, open_qty, open_orders, has_limits, has_exposure, barred);
