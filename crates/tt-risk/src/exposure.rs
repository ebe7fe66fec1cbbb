//! Exposure of an account in an instrument, and the events that change it.

use crate::{error::GateError, limits::LOTS_CEILING, own_orders::Own};
use tt_model::{Breach, InstrumentId, OrderSide, Qty};

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

/// A complete or partial fill of an open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The client id of the order's intent.
    pub client_id: u64,
    /// The side of the order.
    pub side: OrderSide,
    /// Lots filled by this event.
    pub qty: Qty,
    /// Whether the order is complete.
    pub is_last: bool,
}

/// The end of an open order without a fill: cancelled, expired or rejected by the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The client id of the order's intent.
    pub client_id: u64,
    /// The side of the order.
    pub side: OrderSide,
    /// Lots that were open at the end.
    pub qty: Qty,
}

/// [`Exposure`] in the form that the evaluation uses: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct State {
    pub(crate) position: i64,
    /// Buys, sells: indexed by the side of the order.
    pub(crate) open_qty: [i64; 2],
    pub(crate) own: Own,
    pub(crate) open_orders: u32,
    has_limits: bool,
    has_exposure: bool,
    /// Reasons that apply to every intent: no limits or exposure set yet, or an unknown account or instrument.
    pub(crate) barred: u64,
}

const _: () = assert!(size_of::<State>() == 64);

impl State {
    /// No exposure, and `reasons` reject every order.
    pub(crate) const fn barred(reasons: Breach) -> Self {
        let barred = reasons.0;
        Self {
            position: 0,
            open_qty: [0; 2],
            own: Own::NONE,
            open_orders: 0,
            has_limits: false,
            has_exposure: false,
            barred,
        }
    }

    /// Notes that limits were set.
    pub(crate) const fn set_limited(&mut self) {
        self.has_limits = true;
        self.unbar();
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

    /// Applies a fill to the position, even if less was open.
    pub(crate) fn fill(&mut self, fill: &Fill) -> Result<(), GateError> {
        let signed = match fill.side {
            OrderSide::Buy => fill.qty.0,
            OrderSide::Sell => -fill.qty.0,
        };
        let position = self.position + signed;
        if position.unsigned_abs() > LOTS_CEILING.unsigned_abs() {
            return Err(GateError::QtyOutOfRange);
        }
        self.position = position;
        self.close(fill.side, fill.qty.0, u32::from(fill.is_last))
    }

    /// Subtracts `qty` lots and `orders` orders from open, down to zero.
    pub(crate) fn close(&mut self, side: OrderSide, qty: i64, orders: u32) -> Result<(), GateError> {
        let open_qty = &mut self.open_qty[side as usize];
        let is_open = *open_qty >= qty && self.open_orders >= orders;
        *open_qty = (*open_qty - qty).max(0);
        self.open_orders = self.open_orders.saturating_sub(orders);
        if is_open { Ok(()) } else { Err(GateError::MoreThanOpen) }
    }
}
