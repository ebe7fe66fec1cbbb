//! What a row is worth in the currency of limits.

use super::{Currency, Held, Room, Tree};
use crate::{
    instrument::Mark,
    money::{Contract, Rated, Round},
};

/// What a row adds to the sums of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worth {
    /// Value of the larger of the worst long and the worst short position.
    pub(super) gross: i128,
    /// Signed value with all open buys filled, and with all open sells.
    pub(super) net: [i128; 2],
    /// Value of the open orders.
    pub(super) reserved: i128,
    pub(super) margin: i128,
    pub(super) profit: i128,
    pub(super) is_known: bool,
}

impl Worth {
    pub(crate) const ZERO: Self = Self { gross: 0, net: [0; 2], reserved: 0, margin: 0, profit: 0, is_known: true };

    const UNKNOWN: Self = Self { is_known: false, ..Self::ZERO };

    /// Becomes `new`, and changes `sum`, of which it is a part, by the difference. Returns at least the size of the largest
    /// change of a sum.
    #[inline(always)]
    fn become_part(&mut self, sum: &mut Self, new: &Self) -> u128 {
        let mut changes = Changes(0);
        changes.lane(&mut self.gross, &mut sum.gross, new.gross);
        changes.lane(&mut self.net[0], &mut sum.net[0], new.net[0]);
        changes.lane(&mut self.net[1], &mut sum.net[1], new.net[1]);
        changes.lane(&mut self.reserved, &mut sum.reserved, new.reserved);
        changes.lane(&mut self.margin, &mut sum.margin, new.margin);
        changes.lane(&mut self.profit, &mut sum.profit, new.profit);
        self.is_known = new.is_known;
        changes.largest()
    }
}

/// Bits of changes: of negative ones inverted, which is one less than their size.
struct Changes(i128);

impl Changes {
    /// `part` of `sum` becomes `new`.
    #[inline(always)]
    const fn lane(&mut self, part: &mut i128, sum: &mut i128, new: i128) {
        let change = new - *part;
        *sum += change;
        *part = new;
        self.0 |= change ^ change >> 127;
    }

    /// Returns a size that no change exceeds.
    #[inline(always)]
    const fn largest(self) -> u128 {
        self.0.cast_unsigned() + 1
    }
}

impl Currency {
    /// Returns whether the rate has a value, is not too old and is not from the future.
    pub(super) fn is_usable(&self, now_ns: u64) -> bool {
        self.conversion.is_some_and(|of| {
            let is_old = now_ns.saturating_sub(of.ts_ns) > self.limits.age_max_ns;
            of.rate.num > 0 && of.rate.den > 0 && !is_old && of.ts_ns <= now_ns.saturating_add(Mark::AHEAD_MAX_NS)
        })
    }
}

/// What a row holds, with the order that is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next<'a> {
    pub(super) held: &'a Held,
    pub(super) open_qty: [i64; 2],
    pub(super) reserved: i128,
}

impl Next<'_> {
    #[cold]
    fn held(&self) -> Held {
        Held { open_qty: self.open_qty, reserved: self.reserved, ..*self.held }
    }
}

/// Returns positions with all open buys filled, and with all open sells.
#[inline(always)]
pub(super) fn ends(position: i64, [buys, sells]: [i64; 2]) -> Option<[i64; 2]> {
    Some([position.checked_add(buys)?, position.checked_sub(sells)?])
}

/// Returns the lots of the larger of the worst long and the worst short position.
#[inline(always)]
pub(super) fn worst_of([long, short]: [i64; 2]) -> Option<i64> {
    Some(long.max(0).max(short.checked_neg()?))
}

/// What the checks of an order need of a [`Worth`]: the net value of its side only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exposed {
    pub(super) gross: i128,
    pub(super) net: i128,
    pub(super) reserved: i128,
    pub(super) margin: i128,
}

/// Returns the gross value and the margin of a row that ends between `ends` at a value of `lot` for each lot; `None` if a
/// value is beyond 63 bits, or above the last bracket of margin.
#[inline(always)]
fn gross_by_lot(ends: [i64; 2], contract: &Contract, lot: i64, checks_margin: bool) -> Option<(i64, i128)> {
    let worst = worst_of(ends)?;
    let gross = lot.checked_mul(worst)?.max(contract.lot_value_min.checked_mul(worst)?);
    Some((gross, if checks_margin { contract.margin(gross)? } else { 0 }))
}

/// Returns the worth of `held` at a value of `lot` for each lot, a positive multiple of the smallest step of the currency
/// of limits; `None` if a value is beyond 63 bits, or above the last bracket of margin.
///
/// It is what [`Tree::worth_of`] finds: nothing is rounded or converted.
#[inline(always)]
fn worth_by_lot(held: &Held, contract: &Contract, lot: i64, checks_margin: bool) -> Option<Worth> {
    let ends = ends(held.position, held.open_qty)?;
    let (gross, margin) = gross_by_lot(ends, contract, lot, checks_margin)?;
    let profit =
        if held.is_based { i64::try_from(held.cash).ok()?.checked_add(lot.checked_mul(held.position)?)? } else { 0 };
    Some(Worth {
        gross: gross.into(),
        net: [lot.checked_mul(ends[0])?.into(), lot.checked_mul(ends[1])?.into()],
        reserved: i64::try_from(held.reserved).ok()?.into(),
        margin,
        profit: profit.into(),
        is_known: true,
    })
}

/// Returns what [`worth_by_lot`] finds for the checks of an order of `side`.
#[inline(always)]
fn exposed_by_lot(
    next: &Next<'_>,
    contract: &Contract,
    lot: i64,
    (checks_margin, side): (bool, usize),
) -> Option<Exposed> {
    let ends = ends(next.held.position, next.open_qty)?;
    let (gross, margin) = gross_by_lot(ends, contract, lot, checks_margin)?;
    let net = lot.checked_mul(ends[side])?.into();
    let reserved = i64::try_from(next.reserved).ok()?.into();
    Some(Exposed { gross: gross.into(), net, reserved, margin })
}

impl Tree {
    fn rated(&self, currency: u16) -> Option<Rated> {
        let Some(index) = usize::from(currency).checked_sub(1) else { return Some(Rated::ITSELF) };
        let currency = self.currencies.get(index).filter(|currency| currency.is_fresh)?;
        Some(Rated { rate: currency.conversion?.rate, haircut_bps: currency.limits.haircut_bps })
    }

    /// Returns the contract and the value of a lot, where a fresh mark gives one that nothing rounds or converts, and a
    /// position or an open order has a value.
    #[inline(always)]
    fn lot(&self, instrument: u32, position: i64, open_qty: [i64; 2]) -> Option<(&Contract, i64)> {
        let price = &self.prices[instrument as usize];
        let is_flat = position == 0 && open_qty == [0; 2];
        (!is_flat && price.is_fresh && price.lot > 0).then(|| (&self.contracts[instrument as usize], price.lot))
    }

    /// Returns the worth of `held` in the instrument, as a row of a node that checks margin or does not.
    #[inline(always)]
    fn worth(&self, held: &Held, instrument: u32, checks_margin: bool) -> Worth {
        if let Some((contract, lot)) = self.lot(instrument, held.position, held.open_qty)
            && let Some(worth) = worth_by_lot(held, contract, lot, checks_margin)
        {
            return worth;
        }
        self.worth_or_unknown(held, instrument, checks_margin)
    }

    /// Returns what an order of `side` is compared with its limits by; `None` if a value is not known. The order's lots are
    /// more than zero at least at one end.
    #[inline(always)]
    pub(super) fn exposed(
        &self,
        next: &Next<'_>,
        instrument: u32,
        checks_margin: bool,
        side: usize,
    ) -> Option<Exposed> {
        if let Some((contract, lot)) = self.lot(instrument, next.held.position, next.open_qty)
            && let Some(exposed) = exposed_by_lot(next, contract, lot, (checks_margin, side))
        {
            return Some(exposed);
        }
        let Worth { gross, net, reserved, margin, .. } = self.worth_of(&next.held(), instrument, checks_margin)?;
        Some(Exposed { gross, net: net[side], reserved, margin })
    }

    #[inline(never)]
    fn worth_or_unknown(&self, held: &Held, instrument: u32, checks_margin: bool) -> Worth {
        self.worth_of(held, instrument, checks_margin).unwrap_or(Worth::UNKNOWN)
    }

    fn worth_of(&self, held: &Held, instrument: u32, checks_margin: bool) -> Option<Worth> {
        let Held { position, open_qty: [buys, sells], reserved, cash, .. } = *held;
        let is_flat = position == 0 && buys == 0 && sells == 0;
        if is_flat && reserved == 0 && cash == 0 {
            return Some(Worth::ZERO);
        }
        let contract = &self.contracts[instrument as usize];
        let rated = self.rated(contract.currency)?;
        if is_flat {
            let (reserved, profit) = (rated.exposure(reserved, Round::Up)?, rated.profit(cash)?);
            return Some(Worth { reserved, profit, ..Worth::ZERO });
        }
        let price = &self.prices[instrument as usize];
        let px = price.is_fresh.then_some(price.px)?;
        let (long, short) = (position.saturating_add(buys), position.saturating_sub(sells));
        let worst = contract.cost(px, long.max(0).max(short.saturating_neg()))?;
        let margin = if checks_margin { contract.margin(i64::try_from(worst).ok()?)? } else { 0 };
        let profit = if held.is_based { cash.checked_add(contract.profit(px, position)?)? } else { 0 };
        Some(Worth {
            gross: rated.exposure(worst, Round::Up)?,
            net: [
                rated.exposure(contract.signed(px, long, Round::Up)?, Round::Up)?,
                rated.exposure(contract.signed(px, short, Round::Down)?, Round::Down)?,
            ],
            reserved: rated.exposure(reserved, Round::Up)?,
            margin: rated.exposure(margin, Round::Up)?,
            profit: rated.profit(profit)?,
            is_known: true,
        })
    }

    /// Values the row at `index` at the present mark, and brings the sums of its node up to date.
    #[inline(never)]
    pub(super) fn value(&mut self, index: u32) {
        if !self.rows[index as usize].held.is_based {
            self.base(index);
        }
        let row = &self.rows[index as usize];
        let Some(node) = self.nodes.get(row.node as usize) else { return };
        let new = self.worth(&row.held, row.instrument, node.limits.checks_margin);
        let row = &mut self.rows[index as usize];
        let node = &mut self.nodes[row.node as usize];
        let (profit, was_known) = (row.worth.profit, row.worth.is_known);
        let largest = row.worth.become_part(&mut node.sum, &new);
        node.room.shrink(largest);
        if new.is_known != was_known {
            node.unknown = node.unknown + u32::from(!new.is_known) - u32::from(!was_known);
            node.room = Room::NONE;
        }
        let is_changed = new.profit != profit || new.is_known != was_known;
        if is_changed && !node.is_touched {
            node.is_touched = true;
            self.touched.push(row.node);
        }
    }

    /// Returns whether the worth of the row at `index` is that of what it holds.
    pub(super) fn has_worth(&self, index: u32) -> bool {
        let row = &self.rows[index as usize];
        let checks_margin = self.nodes[row.node as usize].limits.checks_margin;
        row.worth == self.worth(&row.held, row.instrument, checks_margin)
    }

    /// Starts to count the profit of a restored position, once it has a mark.
    fn base(&mut self, index: u32) {
        let position = self.rows[index as usize].held.position;
        let instrument = self.rows[index as usize].instrument as usize;
        let price = &self.prices[instrument];
        let value = match position {
            0 => Some(0),
            _ => price.is_fresh.then_some(price.px).and_then(|px| self.contracts[instrument].profit(px, position)),
        };
        if let Some(value) = value {
            let held = &mut self.rows[index as usize].held;
            (held.cash, held.is_based) = (-value, true);
        }
    }
}

crate::fields::visit!(Worth: gross, net, reserved, margin, profit, is_known);
