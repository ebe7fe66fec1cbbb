//! What firm, account and strategy say of an intent.

use super::{
    history::Oracle,
    life::Sum,
    opinion::{Found, SKEW_NS, Seen, Terms},
    settings::{ContractSettings, RowMax},
    tree::{Held, Level, Worth},
};
use tt_model::{Breach, OrderIntent, OrderSide};

impl Oracle {
    /// Too many cancels and replaces for the fills: of the account, and of the instrument.
    pub(super) fn judge_cancels(&self, intent: &OrderIntent, found: &mut Found) {
        let (now, width) = (self.horizon, self.settings.cancel_window_ns);
        let instrument = intent.instrument.0;
        let count = |of: &[(i128, u16, u32)], level: usize| {
            let is_it = |(_, account, of): &&(i128, u16, u32)| match level {
                1 => *account == intent.account,
                _ => *of == instrument,
            };
            Self::within(of.iter().filter(is_it).map(|(at, ..)| *at), now, width)
        };
        let of_account = self.settings.accounts[usize::from(intent.account)].cancel_pct;
        let of_instrument = self.settings.instruments[instrument as usize].cancel_pct;
        for (level, pct) in [(1, of_account), (3, of_instrument)] {
            if let Some(pct) = pct {
                let is_over = count(&self.cancels, level) * 100 > pct * (count(&self.fills, level) + 1);
                found.at(level, is_over, Breach::CANCEL_RATIO);
            }
        }
    }

    /// The firm, the account and the strategy, in lots and in money.
    pub(super) fn judge_tree(
        &self,
        (now, producer): (i128, u16),
        intent: &OrderIntent,
        (terms, adds, replaced): (Terms, i128, Option<&Sum>),
        seen: &Seen,
        found: &mut Found,
    ) {
        let instrument = intent.instrument.0 as usize;
        let contract = &self.settings.contracts[instrument];
        let sums = self.sums();
        let may_send = self.may_send(producer, intent.strategy);
        found.when(!may_send, Breach::NOT_PERMITTED);
        let px = dearest(terms, seen, contract).unwrap_or(0);
        let value = match replaced {
            None => contract.cost(px, terms.qty.max(0)),
            Some(sum) => {
                let before = self.reserved_value_of(intent, &sums);
                let is_atomic = self.settings.instruments[instrument].replaces_atomically;
                let new = contract.cost(px, (terms.qty - sum.executed()).max(0));
                if is_atomic { new.map(|new| (new - before).max(0)) } else { new }
            }
        };
        let own = self.held(Level::Account(intent.account), instrument, &sums);
        let side = usize::from(terms.side == OrderSide::Sell);
        let own_worst = terms.sign() * own.position + own.open[side] + adds;
        let closes = terms.flags.0 & 4 != 0 && own_worst <= 0 && terms.qty == -terms.sign() * own.position;
        let notional =
            seen.values.map(|values| values.map(|px| contract.notionals(px, terms.qty)[1]).into_iter().max());
        let ask = Asked { terms, adds, value, closes, is_new: replaced.is_none(), notional: notional.flatten() };
        let levels = [Level::Firm, Level::Account(intent.account), Level::Strategy(intent.account, intent.strategy)];
        for (number, level) in levels.into_iter().enumerate() {
            if number < 2 || may_send {
                let held = self.held(level, instrument, &sums);
                judge_lots(&self.row_max(level, instrument), &held, &ask, number, found);
                if terms.sign() * held.position + held.open[side] + adds > 0 {
                    self.judge_money((now, instrument), (level, number), held, &ask, found);
                }
                let is_stopped = self.memory[self.index(level)].is_stopped;
                found.at(number, is_stopped, Breach::REPEAT_EXEC);
            }
        }
        if may_send {
            let rate = &self.strategy_rates[usize::from(intent.account)][usize::from(intent.strategy)];
            found.at(2, rate.is_over(now), Breach::RATE_ACCOUNT);
        }
        if contract.spot.is_some() && self.settings.accounts[usize::from(intent.account)].balance {
            let currency = contract.held_currency(terms.side);
            let total = self.balances[usize::from(intent.account)][currency];
            let mut apart = Found::default();
            match value {
                Some(value) => {
                    let holds = self.holds(intent.account, currency, &sums) + contract.hold(terms.side, adds, value);
                    apart.limit(0, holds, total, Breach::BALANCE);
                }
                None => apart.when(true, Breach::BALANCE),
            }
            found.when(apart.0 != 0, Breach::BALANCE);
            found.2 |= apart.2;
        }
    }

    /// What the order that `intent` names reserves now.
    fn reserved_value_of(&self, intent: &OrderIntent, sums: &[Sum]) -> i128 {
        let contract = &self.settings.contracts[intent.instrument.0 as usize];
        let mut named: Vec<_> = self.named(self.horizon, intent.account, intent.client_id).collect();
        named.sort_by_key(|index| !sums[*index].is_open);
        let here = named.first().filter(|index| self.lives[**index].instrument == intent.instrument.0);
        here.map_or(0, |index| sums[*index].reserved_value(contract))
    }

    fn judge_money(
        &self,
        (now, instrument): (i128, usize),
        (level, number): (Level, usize),
        held: Held,
        ask: &Asked,
        found: &mut Found,
    ) {
        let sums = self.sums();
        let side = usize::from(ask.terms.side == OrderSide::Sell);
        let mut next = held;
        next.open[side] += ask.adds;
        next.reserved += ask.value.unwrap_or(0);
        let settings = self.settings_of(level);
        let memory = &self.memory[self.index(level)];
        let losses = [
            (settings.daily_loss, memory.day_start, Breach::DAILY_LOSS),
            (settings.drawdown, memory.peak, Breach::DRAWDOWN),
        ];
        let before = self.total(level, now, &sums, None);
        for (max, from, reason) in losses {
            match (max, &before) {
                (Some(max), Some(total)) => found.limit(number, from - total.profit, max, reason),
                (Some(_), None) => found.at(number, true, reason),
                (None, _) => {}
            }
        }
        let total = ask.value.and_then(|_| self.total(level, now, &sums, Some((instrument, &next))));
        let Some(total) = total else {
            found.at(number, settings.gross.is_some(), Breach::GROSS_EXPOSURE);
            found.at(number, settings.net.is_some(), Breach::NET_EXPOSURE);
            found.at(number, settings.open_value.is_some(), Breach::OPEN_NOTIONAL);
            found.at(number, settings.margin, Breach::MARGIN);
            found.at(number, settings.leverage_pct.is_some(), Breach::LEVERAGE);
            return;
        };
        let Worth { gross, net, reserved, margin, .. } = total;
        for (value, max, reason) in [
            (gross, settings.gross, Breach::GROSS_EXPOSURE),
            (net[side].abs(), settings.net, Breach::NET_EXPOSURE),
            (reserved, settings.open_value, Breach::OPEN_NOTIONAL),
        ] {
            if let Some(max) = max {
                found.limit(number, value, max, reason);
            }
        }
        let age = self.settings.equity_age_ns;
        let is_usable = |(_, at): &(i128, i128)| now <= at + age && *at <= now + SKEW_NS;
        let equity = memory.equity.filter(is_usable).map(|(equity, _)| equity);
        if settings.margin {
            match equity {
                Some(equity) => found.limit(number, margin, equity, Breach::MARGIN),
                None => found.at(number, true, Breach::MARGIN),
            }
        }
        if let Some(pct) = settings.leverage_pct {
            match equity.filter(|equity| *equity > 0) {
                Some(equity) => found.limit(number, gross * 100, pct * equity, Breach::LEVERAGE),
                None => found.at(number, true, Breach::LEVERAGE),
            }
        }
    }
}

/// What an order asks of a node.
struct Asked {
    terms: Terms,
    adds: i128,
    value: Option<i128>,
    closes: bool,
    is_new: bool,
    notional: Option<i128>,
}

/// The price, of those that are looked at, at which the order costs most.
pub(super) fn dearest(terms: Terms, seen: &Seen, contract: &ContractSettings) -> Option<i128> {
    let [low, high] = seen.values?;
    let qty = terms.qty.max(0);
    let cost = |px| contract.cost(px, qty).unwrap_or(i128::MAX);
    Some(if cost(low) > cost(high) { low } else { high })
}

fn judge_lots(max: &RowMax, held: &Held, ask: &Asked, number: usize, found: &mut Found) {
    let terms = ask.terms;
    let side = usize::from(terms.side == OrderSide::Sell);
    let qty_max = if terms.is_market() { max.market_qty } else { max.qty };
    found.at(number, terms.qty > qty_max && !ask.closes, Breach::QTY_MAX);
    let is_large = ask.notional.is_none_or(|notional| notional > max.notional);
    found.at(number, is_large && !ask.closes, Breach::NOTIONAL_MAX);
    let worst = terms.sign() * held.position + held.open[side] + ask.adds;
    if worst > 0 {
        found.limit(number, worst, max.position[side], [Breach::POS_LONG, Breach::POS_SHORT][side]);
    }
    found.at(number, held.open[side] + ask.adds < 0, Breach::OPEN_QTY);
    found.limit(number, held.open[side] + ask.adds, max.open_qty, Breach::OPEN_QTY);
    if ask.is_new {
        found.limit(number, held.orders + 1, max.open_orders, Breach::OPEN_ORDERS);
    }
}
