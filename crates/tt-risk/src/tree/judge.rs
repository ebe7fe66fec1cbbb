//! The checks of a node.

use super::{
    NodeLimits, NodeState, Reach, Row, Tree, sign,
    worth::{Exposed, Next},
};
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
    pub(crate) reach: Option<Reach>,
    pub(crate) notional: Option<u128>,
    /// The same, if it is a word.
    pub(crate) notional_word: Option<i64>,
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

/// What a level says of an order.
pub(crate) struct Said {
    pub(crate) reasons: u64,
    pub(crate) notes: u8,
    /// Whether the order's reach is known, and the node had no room for it.
    pub(crate) is_near: bool,
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
    #[inline(always)]
    fn limit(&mut self, value: i128, max: i128, reason: Breach) {
        // Most values are below half of their limit: neither a breach nor a note.
        if max < 0 || value > max >> 1 {
            self.near(value, max, reason);
        }
    }

    /// As [`limit`](Self::limit).
    #[inline(always)]
    fn limit_words(&mut self, value: i64, max: i64, reason: Breach) {
        if max < 0 || value > max >> 1 {
            self.near(value.into(), max.into(), reason);
        }
    }

    /// Compares a value that may be near its limit.
    #[inline(never)]
    fn near(&mut self, value: i128, max: i128, reason: Breach) {
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
    /// Judges an order at the row `index`.
    #[inline(always)]
    pub(crate) fn judge(&self, index: u32, ask: &Ask, witness: &mut impl Witness) -> Said {
        let row = &self.rows[index as usize];
        let node = &self.nodes[row.node as usize];
        if ask.is_far(row, node).is_some_and(|is_far| is_far) {
            return Said { reasons: 0, notes: 0, is_near: false };
        }
        self.judge_near((row, node), ask, witness)
    }

    /// Judges an order that may be near a limit.
    #[inline(never)]
    fn judge_near(&self, (row, node): (&Row, &NodeState), ask: &Ask, witness: &mut impl Witness) -> Said {
        let mut level = Level::new(row.node, witness);
        if !row.is_set {
            level.add(true, Breach::NOT_PERMITTED);
        }
        let held = &row.held;
        let side = ask.side as usize;
        let own = sign(ask.side) * held.position;
        let worst = own.saturating_add(held.open_qty[side]).saturating_add(ask.adds);
        level.lots(row, ask, worst);
        let is_near =
            worst > 0 && !ask.reach.is_some_and(|reach| reach.is_within(row, node, |ts_ns| ask.is_usable(ts_ns)));
        if is_near {
            level.money(self, row, node, ask);
        }
        level.add(node.is_stopped, Breach::REPEAT_EXEC);
        Said { reasons: level.reasons, notes: level.notes, is_near: is_near && ask.reach.is_some() }
    }
}

impl Ask {
    /// Returns whether no limit of the row, or of its node, has anything to say of the order: each value is at most half of
    /// its limit. `None` beyond a word.
    ///
    /// It compares what [`Tree::judge_near`] does, in fewer steps: most orders are far from every limit.
    #[inline(always)]
    fn is_far(&self, row: &Row, node: &NodeState) -> Option<bool> {
        let (limits, held, side) = (&row.limits, &row.held, self.side as usize);
        let (qty_max, own, position_max) = match self.side {
            OrderSide::Buy => (limits.qty_max.0, held.position, limits.position_long_max.0),
            OrderSide::Sell => (limits.qty_max.0, held.position.checked_neg()?, limits.position_short_max.0),
        };
        let open_qty = held.open_qty[side].checked_add(self.adds)?;
        let worst = open_qty.checked_add(own)?;
        let reach = self.reach?;
        // `adds` is not negative where the reach is known.
        let is_far = row.is_set
            & !node.is_stopped
            & !self.is_market
            & (self.qty <= qty_max)
            & (i128::from(self.notional_word?) <= limits.notional_max.0)
            & (worst <= position_max >> 1)
            & (open_qty <= limits.open_qty_max.0 >> 1)
            & (held.open_orders < limits.open_orders_max >> 1);
        Some(is_far && (worst <= 0 || reach.is_within(row, node, |ts_ns| self.is_usable(ts_ns))))
    }

    /// Returns whether an equity of the time `ts_ns` is neither too old nor from the future.
    #[inline(always)]
    const fn is_usable(&self, ts_ns: u64) -> bool {
        self.now_ns.saturating_sub(ts_ns) <= self.equity_age_max_ns
            && ts_ns <= self.now_ns.saturating_add(Mark::AHEAD_MAX_NS)
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
    #[inline(always)]
    fn lots(&mut self, row: &Row, ask: &Ask, worst: i64) {
        let (limits, held, side) = (&row.limits, &row.held, ask.side as usize);
        let qty_max = if ask.is_market { limits.market_qty_max } else { limits.qty_max };
        let is_over = ask.qty > qty_max.0 && !ask.closes;
        self.exceed(is_over, Breach::QTY_MAX, [ask.qty.into(), qty_max.0.into()]);
        let notional_max = limits.notional_max.0.max(0);
        let is_over = ask.notional.is_none_or(|notional| notional > notional_max.cast_unsigned()) && !ask.closes;
        if is_over {
            let notional = ask.notional.and_then(|notional| i128::try_from(notional).ok()).unwrap_or(i128::MAX);
            self.exceed(true, Breach::NOTIONAL_MAX, [notional, notional_max]);
        }
        if worst > 0 {
            let (max, reason) = match ask.side {
                OrderSide::Buy => (limits.position_long_max, Breach::POS_LONG),
                OrderSide::Sell => (limits.position_short_max, Breach::POS_SHORT),
            };
            self.limit_words(worst, max.0, reason);
        }
        match held.open_qty[side].checked_add(ask.adds) {
            Some(open_qty) if open_qty >= 0 => self.limit_words(open_qty, limits.open_qty_max.0, Breach::OPEN_QTY),
            _ => {
                let open_qty = i128::from(held.open_qty[side]) + i128::from(ask.adds);
                self.add(open_qty < 0, Breach::OPEN_QTY);
                self.limit(open_qty, limits.open_qty_max.0.into(), Breach::OPEN_QTY);
            }
        }
        if ask.is_new {
            self.limit_words(i64::from(held.open_orders) + 1, limits.open_orders_max.into(), Breach::OPEN_ORDERS);
        }
    }

    /// The checks in money, of which an order that reduces is exempt.
    #[inline(never)]
    fn money(&mut self, tree: &Tree, row: &Row, node: &NodeState, ask: &Ask) {
        match ask.value.filter(|_| node.unknown == 0) {
            Some(value) => {
                let (held, side) = (&row.held, ask.side as usize);
                let mut open_qty = held.open_qty;
                open_qty[side] = open_qty[side].saturating_add(ask.adds);
                let next = Next { held, open_qty, reserved: held.reserved + value };
                match tree.exposed(&next, row.instrument, node.limits.checks_margin, side) {
                    Some(exposed) => self.sums(row, node, ask, &exposed),
                    None => self.unknown(&node.limits),
                }
            }
            None => self.unknown(&node.limits),
        }
        let limits = &node.limits;
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
            None => {
                self.add(limits.daily_loss_max.is_some(), Breach::DAILY_LOSS);
                self.add(limits.drawdown_max.is_some(), Breach::DRAWDOWN);
            }
        }
    }

    /// No value is known: every enabled check is a breach.
    #[cold]
    fn unknown(&mut self, limits: &NodeLimits) {
        let enabled = [
            (limits.gross_max.is_some(), Breach::GROSS_EXPOSURE),
            (limits.net_max.is_some(), Breach::NET_EXPOSURE),
            (limits.open_value_max.is_some(), Breach::OPEN_NOTIONAL),
            (limits.checks_margin, Breach::MARGIN),
            (limits.leverage_max_pct.is_some(), Breach::LEVERAGE),
        ];
        enabled.into_iter().for_each(|(is_on, reason)| self.add(is_on, reason));
    }

    #[inline(always)]
    fn sums(&mut self, row: &Row, node: &NodeState, ask: &Ask, exposed: &Exposed) {
        let (sum, old, limits) = (&node.sum, &row.worth, &node.limits);
        let gross = sum.gross + (exposed.gross - old.gross);
        if let Some(max) = limits.gross_max {
            self.limit(gross, max.into(), Breach::GROSS_EXPOSURE);
        }
        if let Some(max) = limits.net_max {
            let side = ask.side as usize;
            let net = sum.net[side] + (exposed.net - old.net[side]);
            self.limit(net.abs(), max.into(), Breach::NET_EXPOSURE);
        }
        if let Some(max) = limits.open_value_max {
            let reserved = sum.reserved + (exposed.reserved - old.reserved);
            self.limit(reserved, max.into(), Breach::OPEN_NOTIONAL);
        }
        if !limits.checks_margin && limits.leverage_max_pct.is_none() {
            return;
        }
        let equity = node.equity.filter(|(_, ts_ns)| ask.is_usable(*ts_ns)).map(|(equity, _)| i128::from(equity));
        if limits.checks_margin {
            let margin = sum.margin + (exposed.margin - old.margin);
            match equity {
                Some(equity) => self.limit(margin, equity, Breach::MARGIN),
                None => self.add(true, Breach::MARGIN),
            }
        }
        if let Some(pct) = limits.leverage_max_pct {
            match equity.filter(|equity| *equity > 0) {
                Some(equity) => self.limit(gross * 100, i128::from(pct) * equity, Breach::LEVERAGE),
                None => self.add(true, Breach::LEVERAGE),
            }
        }
    }
}
