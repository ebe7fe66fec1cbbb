//! Open orders of an account in an instrument, and the best price of each side.

use crate::{counters::Counters, error::GateError};
use alloc::{boxed::Box, vec};
use core::hint::select_unpredictable;
use tt_model::{Breach, IntentKind, OrderIntent, OrderSide, Price};

/// An open order that is restored after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnOrder {
    /// The strategy's own identifier of the order.
    pub client_id: u64,
    /// The order's side.
    pub side: OrderSide,
    /// The order's limit price.
    pub limit_px: Price,
}

/// Summary of an account's open orders in an instrument, as the evaluation reads it.
///
/// A key orders the prices that an intent of one side matches, nearest first: a buy matches sells, lowest first, so the
/// key is the price; a sell matches buys, highest first, so the key is the price with all bits inverted.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Own {
    /// Minimum key of the orders that an intent of a side would match.
    nearest: [i64; 2],
    /// Number of those orders.
    len: [u16; 2],
    /// The first free slot.
    free: u16,
    /// Number of open orders without a slot.
    unknown: u16,
}

impl Own {
    pub(crate) const NONE: Self = Self { nearest: [i64::MAX; 2], len: [0; 2], free: 0, unknown: 0 };
}

const fn flip(side: usize) -> i64 {
    -(side as i64)
}

/// The `side` of a free slot.
const FREE: u8 = 2;

/// An open order: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Slot {
    client_id: u64,
    key: i64,
    /// The next free slot while this one is free.
    next: u16,
    /// The side of the order, or `FREE`.
    side: u8,
    /// Whether the order has a price; a market order cannot be matched.
    is_priced: bool,
}

const _: () = assert!(size_of::<Slot>() == 32);

/// Open orders of every account in every instrument.
#[derive(Debug)]
pub(crate) struct OwnOrders {
    /// `orders_max` slots per row, and one that ends the list of free slots.
    slots: Box<[Slot]>,
    orders_max: u16,
}

impl OwnOrders {
    /// A table of `orders_max` orders for each of `rows`.
    pub(crate) fn new(rows: usize, orders_max: u16) -> Self {
        let orders_max = orders_max.min(u16::MAX - 1);
        let count = rows.checked_mul(usize::from(orders_max) + 1).expect("own orders fit into memory");
        let mut slots = vec![Slot { client_id: 0, key: 0, next: 0, side: FREE, is_priced: false }; count];
        for row in slots.chunks_mut(usize::from(orders_max) + 1) {
            chain(row);
        }
        Self { slots: slots.into_boxed_slice(), orders_max }
    }

    fn row(&mut self, row: usize) -> &mut [Slot] {
        let stride = usize::from(self.orders_max) + 1;
        &mut self.slots[row * stride..][..stride]
    }

    /// Returns the place of a new order of `row`.
    #[inline(always)]
    pub(crate) fn place(&mut self, row: usize, own: &Own) -> OwnPlace<'_> {
        let index = row.wrapping_mul(usize::from(self.orders_max) + 1).wrapping_add(usize::from(own.free));
        OwnPlace { is_full: own.free == self.orders_max, slot: &mut self.slots[index] }
    }

    /// Removes the orders of `row`; `unknown` orders are open.
    pub(crate) fn clear(&mut self, row: usize, own: &mut Own, unknown: u32) {
        chain(self.row(row));
        *own = Own { unknown: u16::try_from(unknown).unwrap_or(u16::MAX), ..Own::NONE };
    }

    /// Adds an order that was open before the start.
    pub(crate) fn restore(&mut self, row: usize, own: &mut Own, order: &OwnOrder) -> Result<(), GateError> {
        let Some(unknown) = own.unknown.checked_sub(1) else { return Err(GateError::UnknownOrder) };
        let OwnOrder { client_id, side, limit_px } = *order;
        let place = self.place(row, own);
        if place.is_full {
            return Err(GateError::Full);
        }
        place.keep(own, &OrderIntent { client_id, side, limit_px, ..OrderIntent::default() }, u64::MAX);
        own.unknown = unknown;
        Ok(())
    }

    /// Removes an order that ended. Of several with the same id, removes the one furthest from a match.
    pub(crate) fn remove(
        &mut self,
        row: usize,
        own: &mut Own,
        client_id: u64,
        side: OrderSide,
    ) -> Result<(), GateError> {
        if self.orders_max == 0 {
            return Ok(());
        }
        let slots = self.row(row);
        let is_of_side = |slot: &Slot| slot.side == side as u8;
        let named = slots.iter().enumerate().filter(|(_, slot)| is_of_side(slot) && slot.client_id == client_id);
        let Some((index, _)) = named.max_by_key(|(_, slot)| (!slot.is_priced, slot.key)) else {
            return Err(GateError::UnknownOrder);
        };
        let Slot { is_priced, .. } = slots[index];
        slots[index].side = FREE;
        slots[index].next = own.free;
        own.free = index as u16;
        if is_priced {
            let met_by = 1 - side as usize;
            own.len[met_by] -= 1;
            let keys = slots.iter().filter(|slot| is_of_side(slot) && slot.is_priced).map(|slot| slot.key);
            own.nearest[met_by] = keys.min().unwrap_or(i64::MAX);
        }
        Ok(())
    }
}

/// Links all slots of `row` as free; the last one is the end.
fn chain(row: &mut [Slot]) {
    for (slot, next) in row.iter_mut().zip(1..) {
        (slot.side, slot.next) = (FREE, next);
    }
}

/// The place of a new order in a row.
#[derive(Debug)]
pub(crate) struct OwnPlace<'a> {
    slot: &'a mut Slot,
    is_full: bool,
}

impl OwnPlace<'_> {
    /// Returns `SELF_MATCH` if `intent` would match an own order, or if the full table cannot rule it out.
    #[inline(always)]
    pub(crate) fn found(&self, own: &Own, intent: &OrderIntent) -> u64 {
        let side = intent.side as usize;
        // A market order matches at every price.
        let key = select_unpredictable(intent.kind == IntentKind::Market, i64::MAX, intent.limit_px.0 ^ flip(side));
        let matches = (own.len[side] != 0) & (key >= own.nearest[side]);
        u64::from(matches | self.is_full | (own.unknown != 0)) * Breach::SELF_MATCH.0
    }

    /// Counts an order that does not fit; `is_order` is 1 for an order, 0 for a cancel.
    #[inline(always)]
    pub(crate) fn count(&self, is_order: u64, counters: &mut Counters) {
        counters.own_orders_full += u64::from(self.is_full) & is_order;
    }

    /// Stores `intent` as an open order if `takes` is all ones; does nothing if `takes` is zero. If the table is full, the
    /// order counts as unknown.
    #[inline(always)]
    pub(crate) fn keep(self, own: &mut Own, intent: &OrderIntent, takes: u64) {
        let keeps = takes & u64::from(self.is_full).wrapping_sub(1);
        let choose = |old: u64, new: u64| old ^ ((old ^ new) & keeps);
        let met_by = 1 - intent.side as usize;
        let key = intent.limit_px.0 ^ flip(met_by);
        let is_priced = u64::from(intent.kind != IntentKind::Market);
        let next = self.slot.next;
        let Slot { client_id, key: slot_key, side, is_priced: slot_priced, .. } = self.slot;
        *client_id = choose(*client_id, intent.client_id);
        *slot_key = choose(slot_key.cast_unsigned(), key.cast_unsigned()).cast_signed();
        *side = choose(u64::from(*side), intent.side as u64) as u8;
        *slot_priced = choose(u64::from(*slot_priced), is_priced) & 1 != 0;
        own.free = choose(u64::from(own.free), u64::from(next)) as u16;
        own.unknown = own.unknown.saturating_add((takes & !keeps & 1) as u16);
        let counts = keeps & is_priced;
        own.len[met_by] += counts as u16;
        let nearest = own.nearest[met_by];
        own.nearest[met_by] = nearest ^ ((nearest ^ nearest.min(key)) & counts.wrapping_neg().cast_signed());
    }
}
