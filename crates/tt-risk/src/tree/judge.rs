//! The checks of a node.

use super::{Held, NodeState, Row, Tree, sign, worth::Worth};
use crate::instrument::Mark;
use tt_model::{Breach, InstrumentId, Notes, OrderSide};

/// What an order asks of each node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) side: OrderSide,
    /// The order's quantity.
    pub(crate) qty: i64,
    /// The lots, and the value, by which it raises the reservation of its side.
    pub(crate) adds: i64,
    pub(crate) value: Option<i128>,
    pub(crate) notional: Option<u128>,
    pub(crate) is_market: bool,
    /// Whether it closes the whole position, and is exempt from limits of size.
    pub(crate) closes: bool,
    /// Whether it is a new order: replaces are counted already.
    pub(crate) is_new: bool,
    pub(crate) now_ns: u64,
    pub(crate) equity_age_max_ns: u64,
}

/// A reader of each breach, for explanations.
pub(crate) trait Witness {
    /// Sees a breach at the node with an index, [`NIL`](crate::index::NIL) for none; and value and limit if both are known.
    fn see(&mut self, node: u32, reason: Breach, values: Option<[i128; 2]>);
}

/// Sees nothing: an evaluation only counts reasons.
pub(crate) struct Unseen;

impl Witness for Unseen {
    #[inline(always)]
    fn see(&mut self, _: u32, _: Breach, _: Option<[i128; 2]>) {}
}

/// What a node says.
pub(crate) struct Level<'a, W> {
    node: u32,
    reasons: u64,
    notes: u8,
    witness: &'a mut W,
}

impl<'a, W: Witness> Level<'a, W> {
    const fn new(node: u32, witness: &'a mut W) -> Self {
        Self { node, reasons: 0, notes: 0, witness }
    }

    fn add(&mut self, is_found: bool, reason: Breach) {
        if is_found {
            self.reasons |= reason.0;
            self.witness.see(self.node, reason, None);
        }
    }

    /// Adds a reason with its value and its limit.
    fn exceed(&mut self, is_found: bool, reason: Breach, values: [i128; 2]) {
        if is_found {
            self.reasons |= reason.0;
            self.witness.see(self.node, reason, Some(values));
        }
    }

    /// Compares `value` with `max`: above is a breach, 70 and 90 % are notes.
    fn limit(&mut self, value: i128, max: i128, reason: Breach) {
        self.exceed(value > max, reason, [value, max]);
        if value <= 0 {
            return;
        }
        let is_used = match (i64::try_from(value), i64::try_from(max)) {
            // Two words are multiplied in one instruction.
            (Ok(value), Ok(max)) => {
                [70, 90].map(|pct: i64| i128::from(value) * 100 >= i128::from(max) * i128::from(pct))
            }
            _ => [70, 90].map(|pct| value.saturating_mul(100) >= max.saturating_mul(pct)),
        };
        for (is_used, note) in is_used.into_iter().zip([Notes::NEAR_LIMIT, Notes::AT_LIMIT]) {
            if is_used {
                self.notes |= note.0;
            }
        }
    }
}

impl Tree {
    /// Judges an order at the row `index`; returns reasons and notes.
    pub(crate) fn judge(&self, index: u32, ask: &Ask, witness: &mut impl Witness) -> (u64, u8) {
        let row = &self.rows[index as usize];
        let mut level = Level::new(row.node, witness);
        if !row.is_set {
            level.add(true, Breach::NOT_PERMITTED);
        }
        let held = &row.held;
        let side = ask.side as usize;
        let own = sign(ask.side) * held.position;
        let worst = own.saturating_add(held.open_qty[side]).saturating_add(ask.adds);
        level.lots(row, ask, worst);
        let node = &self.nodes[row.node as usize];
        if worst > 0 {
            let mut next = *held;
            next.open_qty[side] = next.open_qty[side].saturating_add(ask.adds);
            level.money(self, row, node, ask, next);
        }
        level.add(node.is_stopped, Breach::REPEAT_EXEC);
        (level.reasons, level.notes)
    }
}

impl Tree {
    /// Judges an order in a spot instrument against the account's balance; returns reasons and notes.
    pub(crate) fn judge_balance(
        &self,
        account: u16,
        instrument: InstrumentId,
        ask: &Ask,
        witness: &mut impl Witness,
    ) -> (u64, u8) {
        let index = 1 + u32::from(account);
        let mut level = Level::new(index, witness);
        let contract = &self.contracts[instrument.0 as usize];
        let node = &self.nodes[index as usize];
        if contract.spot.is_some() && node.limits.checks_balance {
            let index = self.balance_index(account, contract.held_currency(ask.side));
            let balance = index.and_then(|index| self.balances.get(index)).copied().unwrap_or_default();
            match ask.value {
                Some(value) => {
                    let hold = contract.hold(ask.side, ask.adds, value);
                    level.limit(balance.holds + hold, balance.total, Breach::BALANCE);
                }
                None => level.add(true, Breach::BALANCE),
            }
        }
        (level.reasons, level.notes)
    }
}

impl<W: Witness> Level<'_, W> {
    fn lots(&mut self, row: &Row, ask: &Ask, worst: i64) {
        let (limits, held, side) = (&row.limits, &row.held, ask.side as usize);
        let qty_max = if ask.is_market { limits.market_qty_max } else { limits.qty_max };
        let is_over = ask.qty > qty_max.0 && !ask.closes;
        self.exceed(is_over, Breach::QTY_MAX, [ask.qty.into(), qty_max.0.into()]);
        let notional_max = limits.notional_max.0.max(0);
        let is_over = ask.notional.is_none_or(|notional| notional > notional_max.cast_unsigned()) && !ask.closes;
        let notional = ask.notional.and_then(|notional| i128::try_from(notional).ok()).unwrap_or(i128::MAX);
        self.exceed(is_over, Breach::NOTIONAL_MAX, [notional, notional_max]);
        if worst > 0 {
            let (max, reason) = match ask.side {
                OrderSide::Buy => (limits.position_long_max, Breach::POS_LONG),
                OrderSide::Sell => (limits.position_short_max, Breach::POS_SHORT),
            };
            self.limit(worst.into(), max.0.into(), reason);
        }
        let open_qty = i128::from(held.open_qty[side]) + i128::from(ask.adds);
        self.add(open_qty < 0, Breach::OPEN_QTY);
        self.limit(open_qty, limits.open_qty_max.0.into(), Breach::OPEN_QTY);
        if ask.is_new {
            self.limit(i128::from(held.open_orders) + 1, limits.open_orders_max.into(), Breach::OPEN_ORDERS);
        }
    }

    /// The checks in money, of which an order that reduces is exempt.
    fn money(&mut self, tree: &Tree, row: &Row, node: &NodeState, ask: &Ask, next: Held) {
        let limits = &node.limits;
        let enabled = [
            (limits.gross_max.is_some(), Breach::GROSS_EXPOSURE),
            (limits.net_max.is_some(), Breach::NET_EXPOSURE),
            (limits.open_value_max.is_some(), Breach::OPEN_NOTIONAL),
            (limits.checks_margin, Breach::MARGIN),
            (limits.leverage_max_pct.is_some(), Breach::LEVERAGE),
        ];
        let of_losses =
            [(limits.daily_loss_max.is_some(), Breach::DAILY_LOSS), (limits.drawdown_max.is_some(), Breach::DRAWDOWN)];
        let reserved = ask.value.map(|value| next.reserved + value);
        let worth = reserved.map(|reserved| {
            let next = Held { reserved, ..next };
            tree.worth(&next, row.instrument, limits.checks_margin)
        });
        match worth.filter(|worth| worth.is_known && node.unknown == 0) {
            Some(worth) => self.sums(row, node, ask, &worth),
            None => enabled.into_iter().for_each(|(is_on, reason)| self.add(is_on, reason)),
        }
        match node.profit() {
            Some(profit) => {
                for (from, max, reason) in [
                    (node.day_start, limits.daily_loss_max, Breach::DAILY_LOSS),
                    (node.peak, limits.drawdown_max, Breach::DRAWDOWN),
                ] {
                    if let Some(max) = max {
                        self.limit(from - profit, max.into(), reason);
                    }
                }
            }
            None => of_losses.into_iter().for_each(|(is_on, reason)| self.add(is_on, reason)),
        }
    }

    fn sums(&mut self, row: &Row, node: &NodeState, ask: &Ask, worth: &Worth) {
        let mut sum = node.sum;
        sum.replace(&row.worth, worth);
        let limits = &node.limits;
        if let Some(max) = limits.gross_max {
            self.limit(sum.gross, max.into(), Breach::GROSS_EXPOSURE);
        }
        if let Some(max) = limits.net_max {
            self.limit(sum.net[ask.side as usize].abs(), max.into(), Breach::NET_EXPOSURE);
        }
        if let Some(max) = limits.open_value_max {
            self.limit(sum.reserved, max.into(), Breach::OPEN_NOTIONAL);
        }
        let is_usable = |ts_ns: u64| {
            ask.now_ns.saturating_sub(ts_ns) <= ask.equity_age_max_ns
                && ts_ns <= ask.now_ns.saturating_add(Mark::AHEAD_MAX_NS)
        };
        let equity = node.equity.filter(|(_, ts_ns)| is_usable(*ts_ns)).map(|(equity, _)| i128::from(equity));
        if limits.checks_margin {
            match equity {
                Some(equity) => self.limit(sum.margin, equity, Breach::MARGIN),
                None => self.add(true, Breach::MARGIN),
            }
        }
        if let Some(pct) = limits.leverage_max_pct {
            match equity.filter(|equity| *equity > 0) {
                Some(equity) => self.limit(sum.gross * 100, i128::from(pct) * equity, Breach::LEVERAGE),
                None => self.add(true, Breach::LEVERAGE),
            }
        }
    }
}
