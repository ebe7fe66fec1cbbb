//! Own orders that are still open.

use crate::drop_reason::DropReason;
use crate::listing::Listings;
use alloc::vec::Vec;
use tt_model::{Decimal, InstrumentId, Nanos, OrderSide};
use tt_venue::Venue;
use tt_venue::event::{Coverage, OrderId, OrderStatus, OrderUpdate};

/// An own order as the venue last reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderState {
    /// The venue.
    pub venue: Venue,
    /// The venue's identifier.
    pub order_id: OrderId,
    /// The instrument; `None` where the venue never named it.
    pub instrument: Option<InstrumentId>,
    /// Buy or sell; `None` if the venue never sent it.
    pub side: Option<OrderSide>,
    /// The state.
    pub status: OrderStatus,
    /// The limit price in quote currency.
    pub limit_px: Decimal,
    /// The whole quantity in base currency.
    pub qty: Decimal,
    /// The executed quantity in base currency.
    pub filled_qty: Decimal,
    /// The venue's time of the last update, Unix epoch.
    pub ts_event: Nanos,
    /// The venue's list of all open orders during which, or since which, the order was last reported.
    pub(crate) listing: u32,
}

/// A table of open orders: open addressing, linear probing, deletion by shifting back. It never grows.
#[derive(Debug)]
pub(crate) struct Orders {
    slots: Vec<Option<OrderState>>,
    mask: usize,
    len: usize,
    len_max: usize,
    listings: Listings,
}

impl Orders {
    pub(crate) fn new(len_max: usize) -> Self {
        let len = (len_max.max(1) * 2).next_power_of_two();
        Self { slots: alloc::vec![None; len], mask: len - 1, len: 0, len_max, listings: Listings::default() }
    }

    fn start(&self, venue: Venue, id: &OrderId) -> usize {
        let words = id.words();
        let mixed = (words[0] ^ words[1].rotate_left(23) ^ words[2].rotate_left(41) ^ venue as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & self.mask
    }

    /// The slot of the order, or the empty one where it belongs.
    fn locate(&self, venue: Venue, id: &OrderId) -> usize {
        let mut at = self.start(venue, id);
        while let Some(order) = &self.slots[at] {
            if order.order_id.is(id) && order.venue == venue {
                break;
            }
            at = (at + 1) & self.mask;
        }
        at
    }

    pub(crate) fn get(&self, venue: Venue, id: &OrderId) -> Option<&OrderState> {
        self.slots[self.locate(venue, id)].as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &OrderState> {
        self.slots.iter().flatten()
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Applies an update; an order that ended is forgotten.
    pub(crate) fn apply(
        &mut self,
        venue: Venue,
        instrument: Option<InstrumentId>,
        update: &OrderUpdate,
    ) -> Result<(), DropReason> {
        let at = self.locate(venue, &update.order_id);
        let listing = self.listings.number(venue);
        if let Some(order) = &mut self.slots[at] {
            // A list of open orders may have no times: it says what is so now.
            if order.ts_event > update.ts_event && update.ts_event.0 != 0 {
                return Err(DropReason::Duplicate);
            }
            if !update.status.is_open() {
                self.remove(at);
                return Ok(());
            }
            order.instrument = instrument.or(order.instrument);
            order.side = update.side.or(order.side);
            order.status = update.status;
            order.limit_px = update.limit_px.unwrap_or(order.limit_px);
            order.qty = update.qty.unwrap_or(order.qty);
            order.filled_qty = update.filled_qty.unwrap_or(order.filled_qty);
            order.ts_event = order.ts_event.max(update.ts_event);
            order.listing = listing;
            return Ok(());
        }
        if !update.status.is_open() {
            return Ok(());
        }
        if self.len == self.len_max {
            return Err(DropReason::OrdersFull);
        }
        self.slots[at] = Some(OrderState {
            venue,
            order_id: update.order_id,
            instrument,
            side: update.side,
            status: update.status,
            limit_px: update.limit_px.unwrap_or_default(),
            qty: update.qty.unwrap_or_default(),
            filled_qty: update.filled_qty.unwrap_or_default(),
            ts_event: update.ts_event,
            listing,
        });
        self.len += 1;
        Ok(())
    }

    /// Before the orders of a message are applied.
    pub(crate) fn begin_listing(&mut self, venue: Venue, coverage: Coverage) {
        self.listings.begin(venue, coverage);
    }

    /// After the orders of a message were applied. Once a list of all open orders is complete, those that it did not
    /// name, and nothing else did since it began, have ended. Returns how many there were.
    pub(crate) fn end_listing(&mut self, venue: Venue, coverage: Coverage) -> u64 {
        if !self.listings.end(venue, coverage) {
            return 0;
        }
        let number = self.listings.number(venue);
        let (mut ended, mut at) = (0, 0);
        while at < self.slots.len() {
            match &self.slots[at] {
                // Another order may move into the slot.
                Some(order) if order.venue == venue && order.listing != number => {
                    self.remove(at);
                    ended += 1;
                }
                Some(_) | None => at += 1,
            }
        }
        ended
    }

    /// Empties a slot and moves back what had been pushed past it.
    fn remove(&mut self, mut hole: usize) {
        self.len -= 1;
        let mut at = hole;
        loop {
            self.slots[hole] = None;
            loop {
                at = (at + 1) & self.mask;
                let Some(order) = &self.slots[at] else { return };
                let start = self.start(order.venue, &order.order_id);
                // It may move if its own start does not lie between the hole and itself.
                if (at.wrapping_sub(start) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                    self.slots[hole] = self.slots[at];
                    hole = at;
                    break;
                }
            }
        }
    }
}
