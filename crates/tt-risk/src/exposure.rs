//! What an account has in an instrument, and the events that change it.

use crate::{gate::Fault, limits::LOTS_CEILING, own_orders::Own};
use tt_model::{Breach, InstrumentId, OrderSide, Qty};

/// What an account has in an instrument: the position and what is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// The position in lots: long above zero, short below.
    pub position: Qty,
    /// Lots of open buys, accepted and neither filled nor cancelled.
    pub open_buy_qty: Qty,
    /// Lots of open sells.
    pub open_sell_qty: Qty,
    /// Open orders of both sides.
    pub open_orders: u32,
}

/// An open order was filled, wholly or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The intent's own identifier of the order.
    pub client_id: u64,
    /// The side of the order.
    pub side: OrderSide,
    /// Lots filled now.
    pub qty: Qty,
    /// Nothing of the order stays open.
    pub is_last: bool,
}

/// An open order has left without a fill: cancelled, expired or refused by the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The intent's own identifier of the order.
    pub client_id: u64,
    /// The side of the order.
    pub side: OrderSide,
    /// Lots that were still open.
    pub qty: Qty,
}

/// [`Exposure`] as the evaluation reads and writes it: one cache line.
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
    /// Reasons against every intent: no limits yet or no exposure restored yet, no such account or instrument.
    pub(crate) barred: u64,
}

const _: () = assert!(size_of::<State>() == 64);

impl State {
    /// Nothing held, and not allowed to hold anything.
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

    /// Limits were set.
    pub(crate) const fn limited(&mut self) {
        self.has_limits = true;
        self.unbar();
    }

    const fn unbar(&mut self) {
        if self.has_limits && self.has_exposure {
            self.barred = 0;
        }
    }

    /// Takes `exposure` over.
    pub(crate) fn restore(&mut self, exposure: &Exposure) -> Result<(), Fault> {
        let open_qty = [exposure.open_buy_qty.0, exposure.open_sell_qty.0];
        let in_range = exposure.position.0.unsigned_abs() <= LOTS_CEILING.unsigned_abs()
            && open_qty.iter().all(|qty| (0..=LOTS_CEILING).contains(qty));
        if !in_range {
            return Err(Fault::QtyOutOfRange);
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

    /// A fill is a fact: the position takes it even where less was open.
    pub(crate) fn fill(&mut self, fill: &Fill) -> Result<(), Fault> {
        let signed = match fill.side {
            OrderSide::Buy => fill.qty.0,
            OrderSide::Sell => -fill.qty.0,
        };
        let position = self.position + signed;
        if position.unsigned_abs() > LOTS_CEILING.unsigned_abs() {
            return Err(Fault::QtyOutOfRange);
        }
        self.position = position;
        self.close(fill.side, fill.qty.0, u32::from(fill.is_last))
    }

    /// Takes `qty` lots and `orders` orders off what is open, down to zero.
    pub(crate) fn close(&mut self, side: OrderSide, qty: i64, orders: u32) -> Result<(), Fault> {
        let open_qty = &mut self.open_qty[side as usize];
        let is_open = *open_qty >= qty && self.open_orders >= orders;
        *open_qty = (*open_qty - qty).max(0);
        self.open_orders = self.open_orders.saturating_sub(orders);
        if is_open { Ok(()) } else { Err(Fault::MoreThanOpen) }
    }
}
