//! What a row is worth in the currency of limits.

use super::{Currency, Held, Tree};
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

    /// Replaces the part `old` of a sum by `new`.
    pub(super) fn replace(&mut self, old: &Self, new: &Self) {
        self.gross += new.gross - old.gross;
        self.net[0] += new.net[0] - old.net[0];
        self.net[1] += new.net[1] - old.net[1];
        self.reserved += new.reserved - old.reserved;
        self.margin += new.margin - old.margin;
        self.profit += new.profit - old.profit;
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

/// Returns the worth of `held` at a value of `lot` for each lot, a positive multiple of the smallest step of the currency
/// of limits; `None` if a value is beyond 63 bits, or above the last bracket of margin.
///
/// It is what [`Tree::worth_of`] finds: nothing is rounded or converted.
fn worth_by_lot(held: &Held, contract: &Contract, lot: i64, checks_margin: bool) -> Option<Worth> {
    let Held { position, open_qty: [buys, sells], reserved, cash, is_based, .. } = *held;
    let (long, short) = (position.saturating_add(buys), position.saturating_sub(sells));
    let worst = long.max(0).max(short.saturating_neg());
    let gross = lot.checked_mul(worst)?.max(contract.lot_value_min.checked_mul(worst)?);
    let profit = if is_based { i64::try_from(cash).ok()?.checked_add(lot.checked_mul(position)?)? } else { 0 };
    Some(Worth {
        gross: gross.into(),
        net: [lot.checked_mul(long)?.into(), lot.checked_mul(short)?.into()],
        reserved: i64::try_from(reserved).ok()?.into(),
        margin: if checks_margin { contract.margin(gross)? } else { 0 },
        profit: profit.into(),
        is_known: true,
    })
}

impl Tree {
    fn rated(&self, currency: u16) -> Option<Rated> {
        let Some(index) = usize::from(currency).checked_sub(1) else { return Some(Rated::ITSELF) };
        let currency = self.currencies.get(index).filter(|currency| currency.is_fresh)?;
        Some(Rated { rate: currency.conversion?.rate, haircut_bps: currency.limits.haircut_bps })
    }

    /// Returns the worth of `held` in the instrument, as a row of a node that checks margin or does not.
    pub(super) fn worth(&self, held: &Held, instrument: u32, checks_margin: bool) -> Worth {
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
        if price.lot > 0
            && let Some(worth) = worth_by_lot(held, contract, price.lot, checks_margin)
        {
            return Some(worth);
        }
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
    pub(super) fn value(&mut self, index: u32) {
        self.base(index);
        let row = &self.rows[index as usize];
        let Some(node) = self.nodes.get(row.node as usize) else { return };
        let new = self.worth(&row.held, row.instrument, node.limits.checks_margin);
        let row = &mut self.rows[index as usize];
        let old = core::mem::replace(&mut row.worth, new);
        if new == old {
            return;
        }
        let node = &mut self.nodes[row.node as usize];
        node.sum.replace(&old, &new);
        node.unknown = node.unknown + u32::from(!new.is_known) - u32::from(!old.is_known);
        if !node.is_touched {
            node.is_touched = true;
            self.touched.push(row.node);
        }
    }

    /// Starts to count the profit of a restored position, once it has a mark.
    fn base(&mut self, index: u32) {
        let Held { position, is_based, .. } = self.rows[index as usize].held;
        if is_based {
            return;
        }
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
