//! How far a node is from its limits in money: most orders are so far from all of them that no sum need be compared.

use super::{NodeState, Path, Row, Tree};
use crate::fields::{Fields, Visit};
use core::fmt;

/// By how much the sums of a node can change, each in any direction, before one of them is above half of its limit.
///
/// Up to half of a limit there is neither a reason nor a note, so that an order with a smaller [`Reach`] needs no
/// comparison in money. Each change of a sum takes its size off; what is left is never more than the truth. It is found
/// again when it is not enough for an order. It is no part of the gate's state: without it every sum is compared.
#[derive(Clone, Copy)]
pub(crate) struct Room(i64);

/// The most room: sums and changes of this size have no sum beyond a word.
const ROOM_MAX: i64 = 1 << 61;

impl Room {
    /// Every sum has to be compared.
    pub(crate) const NONE: Self = Self(-1);

    /// Returns whether no sum of the node is above half of its limit, and every value is known.
    #[inline(always)]
    pub(super) const fn is_there(self) -> bool {
        self.0 >= 0
    }

    /// A sum has changed by at most `size`.
    #[inline(always)]
    pub(super) const fn shrink(&mut self, size: u128) {
        *self =
            if size > ROOM_MAX.cast_unsigned() as u128 { Self::NONE } else { Self(self.0.saturating_sub(size as i64)) };
    }

    /// The room of a node with these sums. Every value of its rows is known, and `sum` is their sum.
    fn of(node: &NodeState) -> Self {
        let (sum, limits) = (&node.sum, &node.limits);
        let mut room = i128::from(ROOM_MAX) - sum.gross;
        let mut keep = |value: i128, max: Option<i64>| {
            if let Some(max) = max {
                // A negative limit has no room at all.
                room = room.min(i128::from(max >> 1) - value).min(max.into());
            }
        };
        keep(sum.gross, limits.gross_max);
        keep(sum.net[0].abs().max(sum.net[1].abs()), limits.net_max);
        keep(sum.reserved, limits.open_value_max);
        keep(node.day_start - sum.profit, limits.daily_loss_max);
        // A peak that is about to follow the profit has followed it.
        keep((node.peak - sum.profit).max(0), limits.drawdown_max);
        if node.needs_equity() {
            let equity = node.equity.map_or(0, |(equity, _)| equity);
            keep(sum.margin, limits.checks_margin.then_some(equity));
            let gross_max = |pct: u32| ((i128::from(pct) * i128::from(equity.max(0))) >> 1) / 100 - sum.gross;
            room = room.min(limits.leverage_max_pct.map_or(i128::MAX, gross_max));
        }
        i64::try_from(room).map_or(Self::NONE, |room| Self(room.max(-1)))
    }
}

/// The most by which an order changes any sum of a node: gross, net, reserved or margin.
///
/// Only of an order in an instrument whose rows all have their present value, at a value of a lot that nothing rounds or
/// converts: then the gross value grows by at most its lots at the larger of that value and the least one, the signed
/// value by its lots at that value, and the margin by no more than the gross value and one if no bracket takes more than
/// all of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    size: i64,
    /// Up to this gross value of a row its margin is known, and grows no faster than the gross value.
    margin_max: i64,
}

impl Reach {
    /// Returns whether no limit in money of the node has anything to say of the order: each value is known, and at most
    /// half of its limit.
    #[inline(always)]
    pub(super) fn is_within(&self, row: &Row, node: &NodeState, is_usable: impl Fn(u64) -> bool) -> bool {
        self.size <= node.room.0 && (!node.needs_equity() || self.has_margin(row, node, is_usable))
    }

    #[inline(always)]
    fn has_margin(&self, row: &Row, node: &NodeState, is_usable: impl Fn(u64) -> bool) -> bool {
        // The gross value of a row is part of the node's, which the room keeps small.
        node.equity.is_some_and(|(equity, ts_ns)| equity > 0 && is_usable(ts_ns))
            && row.worth.gross as i64 <= self.margin_max.saturating_sub(self.size)
    }
}

impl NodeState {
    /// Returns whether orders are compared with the node's equity.
    #[inline(always)]
    const fn needs_equity(&self) -> bool {
        self.limits.checks_margin || self.limits.leverage_max_pct.is_some()
    }
}

impl Tree {
    /// Returns the reach of an order that adds `adds` lots, and `value` of reserved lots; `None` if it has to be found by
    /// valuing the rows.
    #[inline(always)]
    pub(crate) fn reach(&self, instrument: u32, adds: i64, value: Option<i128>) -> Option<Reach> {
        let price = &self.prices[instrument as usize];
        // No row waits for a value, by its mark or by a pass over all rows.
        let is_present = price.is_fresh && !price.is_queued && self.pass_left == 0;
        if !is_present || price.lot <= 0 || adds < 0 {
            return None;
        }
        let contract = &self.contracts[instrument as usize];
        let gross = price.lot.max(contract.lot_value_min).checked_mul(adds)?;
        let value = i64::try_from(value?).ok().filter(|value| *value >= 0)?;
        let size = gross.max(value).checked_add(1)?;
        let [.., last] = &contract.brackets;
        let grows_slowly = contract.brackets.iter().all(|bracket| bracket.bps <= 10_000);
        Some(Reach { size, margin_max: if grows_slowly { last.value_max } else { i64::MIN } })
    }

    /// Finds the room of the node of each row of a path.
    pub(crate) fn find_rooms(&mut self, path: Path) {
        for row in path {
            let Some(row) = self.rows.get(row as usize) else { continue };
            let node = &mut self.nodes[row.node as usize];
            node.room = if node.unknown == 0 { Room::of(node) } else { Room::NONE };
        }
    }
}

impl Visit for Room {
    fn visit(&mut self, _: &mut Fields<'_>) {
        *self = Self::NONE;
    }
}

/// As in snapshots, what is no part of the state does not show.
impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Room")
    }
}
