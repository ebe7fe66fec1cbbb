//! What open orders reserve.

use super::{
    Path, Tree, sign,
    worth::{ends, worst_of},
};
use crate::{index::NIL, limits::LOTS_CEILING};
use tt_model::OrderSide;

/// Lots that have moved a position, negative if sold, and the money from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traded {
    pub(crate) lots: i64,
    pub(crate) cash: i128,
}

/// A change of what an order reserves: lots before and now, the change of their value, and that of the number of open
/// orders. And what it has traded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserving {
    pub(crate) before: i64,
    pub(crate) lots: i64,
    pub(crate) value: i128,
    pub(crate) orders: i32,
    pub(crate) traded: Option<Traded>,
}

/// A [`Reserving`] in words, in an instrument whose rows all have their present value: what it adds to each row's sums.
#[derive(Clone, Copy, Debug)]
struct Step {
    side: usize,
    lots: i64,
    value: i64,
    /// The signed value of the lots.
    net: i64,
    /// The gross value of a lot.
    lot: i64,
    /// No sum but the margin changes by more.
    size: i64,
    orders: i32,
}

impl Tree {
    /// Changes the lots of `side` that every row of `path` reserves, and their value, and what they hold by trades; values
    /// the rows.
    pub(crate) fn reserve(&mut self, path: Path, side: OrderSide, change: &Reserving) {
        let [firm, ..] = path;
        let step = if change.traded.is_some() { None } else { self.step(firm, side, change) };
        for index in path {
            if index == NIL || step.is_some_and(|step| self.take_step(index, &step)) {
                continue;
            }
            let held = &mut self.rows[index as usize].held;
            if let Some(Traded { lots, cash }) = change.traded {
                held.position = held.position.saturating_add(lots);
                held.cash += cash;
            }
            let open_qty = &mut held.open_qty[side as usize];
            *open_qty = (*open_qty - change.before).saturating_add(change.lots).clamp(0, LOTS_CEILING);
            held.reserved += change.value;
            held.open_orders = held.open_orders.saturating_add_signed(change.orders);
            self.value(index);
        }
    }

    /// Returns `change` in words, if a fresh mark gives a lot a value that nothing rounds or converts.
    #[inline(always)]
    fn step(&self, instrument: u32, side: OrderSide, change: &Reserving) -> Option<Step> {
        let price = self.prices.get(instrument as usize)?;
        // The rows have their value at this mark. That of what they hold of the position stays.
        if self.pass_left != 0 || price.is_queued || !price.is_fresh || price.lot <= 0 {
            return None;
        }
        let lots = change.lots.checked_sub(change.before)?;
        let lot = price.lot.max(self.contracts.get(instrument as usize)?.lot_value_min);
        let value = i64::try_from(change.value).ok()?;
        let size = lot.checked_mul(lots)?.checked_abs()?.max(value.checked_abs()?).checked_add(1)?;
        // No larger than the gross value of the lots, which has a word.
        let net = price.lot * lots * sign(side);
        Some(Step { side: side as usize, lots, value, net, lot, size, orders: change.orders })
    }

    /// Adds `step` to the row at `index` and to its node; returns whether its sums are words, and nothing changes if not.
    #[inline(always)]
    fn take_step(&mut self, index: u32, step: &Step) -> bool {
        let Some(row) = self.rows.get_mut(index as usize) else { return false };
        let Some(node) = self.nodes.get_mut(row.node as usize) else { return false };
        let (held, worth, side) = (&mut row.held, &mut row.worth, step.side);
        let mut open_qty = held.open_qty;
        open_qty[side] = open_qty[side].wrapping_add(step.lots);
        // A sum beyond the ceiling, which wraps at most once, is none of these.
        if !(0..=LOTS_CEILING).contains(&open_qty[side]) || !held.is_based || !worth.is_known {
            return false;
        }
        let worst = ends(held.position, open_qty).and_then(worst_of);
        let Some(gross) = worst.and_then(|worst| worst.checked_mul(step.lot)) else { return false };
        let mut size = step.size;
        if node.limits.checks_margin {
            let contract = &self.contracts[row.instrument as usize];
            let Some(margin) = contract.margin(gross) else { return false };
            let change = margin - worth.margin;
            worth.margin = margin;
            node.sum.margin += change;
            size = size.max(i64::try_from(change.abs()).unwrap_or(i64::MAX));
        }
        // Both are words of at least zero.
        let change = i128::from(gross - worth.gross as i64);
        worth.gross = gross.into();
        node.sum.gross += change;
        let (net, value) = (i128::from(step.net), i128::from(step.value));
        worth.net[side] += net;
        node.sum.net[side] += net;
        worth.reserved += value;
        node.sum.reserved += value;
        node.room.shrink(size.cast_unsigned().into());
        held.reserved += value;
        held.open_qty = open_qty;
        held.open_orders = held.open_orders.saturating_add_signed(step.orders);
        debug_assert!(self.has_worth(index), "a row's worth follows from what it holds");
        true
    }
}
