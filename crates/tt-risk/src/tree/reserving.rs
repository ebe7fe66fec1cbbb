//! What open orders reserve.

use super::{Path, Tree};
use crate::{index::NIL, limits::LOTS_CEILING};
use tt_model::OrderSide;

/// A change of what an order reserves: lots before and now, and the change of their value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserving {
    pub(crate) before: i64,
    pub(crate) lots: i64,
    pub(crate) value: i128,
}

impl Tree {
    /// Changes the lots of `side` that every row of `path` reserves, and their value, and values the rows. Whether anything
    /// else that they hold has changed since they were valued: `is_traded`.
    pub(crate) fn reserve(&mut self, path: Path, side: OrderSide, change: &Reserving, is_traded: bool) {
        let Reserving { before, lots, value } = *change;
        for index in path.into_iter().filter(|index| *index != NIL) {
            let held = &mut self.rows[index as usize].held;
            let open_qty = &mut held.open_qty[side as usize];
            *open_qty = (*open_qty - before).saturating_add(lots).clamp(0, LOTS_CEILING);
            held.reserved += value;
            if is_traded {
                self.value(index);
            } else {
                self.value_side(index, side as usize);
            }
        }
    }
}
