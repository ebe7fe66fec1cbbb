//! Firm, accounts and strategies: what each holds, in lots and in money, from the whole history.

use super::{
    history::Oracle,
    life::{Life, Sum},
    opinion::SKEW_NS,
    settings::{ContractSettings, NodeSettings, Quote, RowMax},
};
use tt_model::OrderSide;

/// The largest amount of money.
const LARGEST: i128 = i64::MAX as i128;

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Firm,
    Account(u16),
    Strategy(u16, u16),
}

impl Level {
    pub(super) fn has(self, account: u16, strategy: Option<u16>) -> bool {
        match self {
            Self::Firm => true,
            Self::Account(of) => of == account,
            Self::Strategy(of, number) => (of, Some(number)) == (account, strategy),
        }
    }
}

/// An execution, or one that was taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trade {
    pub(super) account: u16,
    pub(super) strategy: Option<u16>,
    pub(super) instrument: u32,
    /// Negative if sold.
    pub(super) lots: i128,
    pub(super) px: i128,
    pub(super) fee: i128,
}

/// What a node holds in an instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) position: i128,
    /// Buys, sells.
    pub(super) open: [i128; 2],
    pub(super) orders: i128,
    pub(super) reserved: i128,
}

/// What it is worth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worth {
    pub(super) gross: i128,
    pub(super) net: [i128; 2],
    pub(super) reserved: i128,
    pub(super) margin: i128,
    pub(super) profit: i128,
}

/// State of a node that does not follow from sums.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeMemory {
    pub(super) day_start: i128,
    pub(super) peak: i128,
    pub(super) is_latched: bool,
    pub(super) equity: Option<(i128, i128)>,
    /// Times of executions since the strategy was enabled.
    pub(super) executions: Vec<i128>,
    pub(super) is_stopped: bool,
    /// By instrument: money at the first mark, and the number of trades before it.
    pub(super) bases: Vec<Option<(i128, usize)>>,
}

fn floor(a: i128, (num, den): (i128, i128)) -> i128 {
    (a * num).div_euclid(den)
}

fn ceil(a: i128, ratio: (i128, i128)) -> i128 {
    -floor(-a, ratio)
}

impl ContractSettings {
    fn signed(&self, px: i128, lots: i128, round: fn(i128, (i128, i128)) -> i128) -> i128 {
        let (num, den) = self.value;
        if self.is_inverse { round(lots, (num, px * den)) } else { round(px * lots, (num, den)) }
    }

    /// `None` without a value, or beyond 63 bits.
    pub(super) fn cost(&self, px: i128, lots: i128) -> Option<i128> {
        match (self.is_inverse, px, lots) {
            (.., 0) => return Some(0),
            (true, 0, _) => return None,
            _ => {}
        }
        let cost = self.signed(px.abs(), lots, ceil).max(self.lot_min * lots);
        (cost <= LARGEST).then_some(cost)
    }

    fn profit(&self, px: i128, lots: i128) -> i128 {
        if self.is_inverse { self.signed(px, -lots, floor) } else { self.signed(px, lots, floor) }
    }

    /// Least and largest notional.
    pub(super) fn notionals(&self, px: i128, qty: i128) -> [i128; 2] {
        let a = if self.is_inverse { qty.abs() } else { (px * qty).abs() };
        [floor(a, self.face), ceil(a, self.face)]
    }

    fn margin(&self, value: i128) -> Option<i128> {
        let mut sum = 0;
        let mut below = 0;
        for (max, bps) in &self.brackets {
            if value > below {
                sum += (value.min(*max) - below) * bps;
            }
            below = below.max(*max);
        }
        (value <= below).then(|| ceil(sum, (1, 10_000)))
    }

    pub(super) fn hold(&self, side: OrderSide, lots: i128, value: i128) -> i128 {
        let Some((_, per_lot)) = self.spot else { return 0 };
        let cost = if side == OrderSide::Buy { value } else { ceil(lots, per_lot) };
        cost + ceil(cost, (self.fee_bps, 10_000))
    }

    pub(super) fn held_currency(&self, side: OrderSide) -> usize {
        self.spot.filter(|_| side == OrderSide::Sell).map_or(self.currency, |(base, _)| base)
    }
}

impl Sum {
    pub(super) fn reserved_value(&self, contract: &ContractSettings) -> i128 {
        let cost = |px, lots| contract.cost(px, lots).unwrap_or(LARGEST);
        let left = cost(self.px, (self.qty - self.executed()).max(0));
        match self.pending.filter(|_| self.is_open) {
            None => cost(self.px, self.reserved()),
            Some((px, qty, _, adds)) => {
                let new = cost(px, (qty - self.executed()).max(0));
                if adds { left + new } else { left.max(new) }
            }
        }
    }
}

impl Oracle {
    pub(super) fn levels(&self) -> Vec<Level> {
        let accounts = 0..self.settings.rows.len() as u16;
        let strategies = 0..self.settings.strategies.len() as u16;
        let mut levels = vec![Level::Firm];
        levels.extend(accounts.clone().map(Level::Account));
        levels.extend(accounts.flat_map(|account| strategies.clone().map(move |of| Level::Strategy(account, of))));
        levels
    }

    pub(super) fn index(&self, level: Level) -> usize {
        self.levels().iter().position(|of| *of == level).expect("a known node")
    }

    pub(super) fn settings_of(&self, level: Level) -> &NodeSettings {
        match level {
            Level::Firm => &self.settings.firm,
            Level::Account(account) => &self.settings.accounts[usize::from(account)],
            Level::Strategy(_, strategy) => &self.settings.strategies[usize::from(strategy)].node,
        }
    }

    pub(super) fn row_max(&self, level: Level, instrument: usize) -> RowMax {
        match level {
            Level::Firm => self.settings.firm_rows[instrument],
            Level::Strategy(_, strategy) => self.settings.strategies[usize::from(strategy)].rows[instrument],
            Level::Account(account) => {
                let row = &self.settings.rows[usize::from(account)][instrument];
                RowMax {
                    qty: row.qty[1],
                    market_qty: row.market_qty,
                    notional: row.notional[1],
                    position: row.position,
                    open_qty: row.open_qty,
                    open_orders: row.open_orders,
                }
            }
        }
    }

    fn start_of(&self, level: Level, instrument: usize) -> i128 {
        let positions = &self.settings.positions;
        match level {
            Level::Firm => positions.iter().map(|of| of[instrument]).sum(),
            Level::Account(account) => positions[usize::from(account)][instrument],
            Level::Strategy(..) => 0,
        }
    }

    fn is_of(level: Level, life: &Life) -> bool {
        level.has(life.account, life.asked.map(|_| life.strategy))
    }

    pub(super) fn held(&self, level: Level, instrument: usize, sums: &[Sum]) -> Held {
        let contract = &self.settings.contracts[instrument];
        let mut held = Held { position: self.start_of(level, instrument), ..Held::default() };
        for (life, sum) in self.lives.iter().zip(sums) {
            if life.instrument as usize == instrument && Self::is_of(level, life) {
                let side = usize::from(life.side == OrderSide::Sell);
                held.position += [1, -1][side] * sum.executed();
                held.open[side] += sum.reserved();
                held.orders += i128::from(sum.is_open);
                held.reserved += sum.reserved_value(contract);
            }
        }
        held
    }

    pub(super) fn sums(&self) -> Vec<Sum> {
        self.lives.iter().map(Life::sum).collect()
    }

    fn mark(&self, instrument: usize, now: i128) -> Option<i128> {
        let age = self.settings.instruments[instrument].mark_age_ns;
        let is_fresh = |quote: &Quote| now <= quote.at_ns + age && quote.at_ns <= now + SKEW_NS && quote.reference > 0;
        self.quotes[instrument].map(|(quote, _)| quote).filter(is_fresh).map(|quote| quote.reference)
    }

    /// Rate and haircut.
    fn rate(&self, currency: usize, now: i128) -> Option<((i128, i128), i128)> {
        let Some(index) = currency.checked_sub(1) else { return Some(((1, 1), 0)) };
        let (haircut, age) = self.settings.currencies[index];
        let (ratio, at) = self.conversions[index]?;
        (ratio.0 > 0 && ratio.1 > 0 && now <= at + age && at <= now + SKEW_NS).then_some((ratio, haircut))
    }

    fn cash(&self, level: Level, instrument: usize) -> Option<i128> {
        let (start, from) = self.memory[self.index(level)].bases[instrument]?;
        let contract = &self.settings.contracts[instrument];
        let trades = self.trades[from..]
            .iter()
            .filter(|trade| trade.instrument as usize == instrument && level.has(trade.account, trade.strategy));
        Some(start + trades.map(|trade| contract.profit(trade.px, -trade.lots) - trade.fee).sum::<i128>())
    }

    /// Returns what `held` is worth at `now`; `None` if that is not known.
    pub(super) fn worth(&self, level: Level, instrument: usize, held: &Held, now: i128) -> Option<Worth> {
        let cash = self.cash(level, instrument);
        let is_flat = held.position == 0 && held.open == [0; 2];
        if is_flat && held.reserved == 0 && cash.unwrap_or(0) == 0 {
            return Some(Worth::default());
        }
        let contract = &self.settings.contracts[instrument];
        let ((num, den), haircut) = self.rate(contract.currency, now)?;
        let (more, less) = ((num * (10_000 + haircut), den * 10_000), (num * (10_000 - haircut), den * 10_000));
        let gain = |profit: i128| floor(profit, if profit < 0 { more } else { less });
        if is_flat {
            let (reserved, profit) = (ceil(held.reserved, more), gain(cash.unwrap_or(0)));
            return Some(Worth { reserved, profit, ..Worth::default() });
        }
        let px = self.mark(instrument, now)?;
        let (long, short) = (held.position + held.open[0], held.position - held.open[1]);
        let worst = contract.cost(px, long.max(0).max(-short))?;
        let margin = if self.settings_of(level).margin { contract.margin(worst)? } else { 0 };
        let profit = cash.map_or(0, |cash| cash + contract.profit(px, held.position));
        Some(Worth {
            gross: ceil(worst, more),
            net: [ceil(contract.signed(px, long, ceil), more), floor(contract.signed(px, short, floor), more)],
            reserved: ceil(held.reserved, more),
            margin: ceil(margin, more),
            profit: gain(profit),
        })
    }

    /// Returns the sum of the node's instruments with `replaced` in one of them; `None` if a part is not known.
    pub(super) fn total(
        &self,
        level: Level,
        now: i128,
        sums: &[Sum],
        replaced: Option<(usize, &Held)>,
    ) -> Option<Worth> {
        let mut total = Worth::default();
        for instrument in 0..self.settings.instruments.len() {
            let before = self.held(level, instrument, sums);
            // What is not known now is not known with an order more either.
            let now_worth = self.worth(level, instrument, &before, now)?;
            let worth = match replaced {
                Some((of, held)) if of == instrument => self.worth(level, instrument, held, now)?,
                _ => now_worth,
            };
            total.gross += worth.gross;
            total.net[0] += worth.net[0];
            total.net[1] += worth.net[1];
            total.reserved += worth.reserved;
            total.margin += worth.margin;
            total.profit += worth.profit;
        }
        Some(total)
    }

    /// Returns gross, net with buys, net with sells, open value, margin and profit of the firm, of an account or of a
    /// strategy; `None` while a part is not known.
    #[must_use]
    pub fn totals(&self, account: Option<u16>, strategy: Option<u16>) -> Option<[i128; 6]> {
        let level = match (account, strategy) {
            (Some(account), Some(strategy)) => Level::Strategy(account, strategy),
            (Some(account), None) => Level::Account(account),
            _ => Level::Firm,
        };
        let Worth { gross, net, reserved, margin, profit } = self.total(level, self.last_ns, &self.sums(), None)?;
        Some([gross, net[0], net[1], reserved, margin, profit])
    }

    /// Starts to count profits at the first mark, follows the highest profit, and latches reduce mode on losses.
    pub(super) fn watch(&mut self, now: i128) {
        let sums = self.sums();
        for level in self.levels() {
            let index = self.index(level);
            for instrument in 0..self.settings.instruments.len() {
                if self.memory[index].bases[instrument].is_some() {
                    continue;
                }
                let position = self.held(level, instrument, &sums).position;
                let contract = &self.settings.contracts[instrument];
                let value = match position {
                    0 => Some(0),
                    _ => self.mark(instrument, now).map(|px| contract.profit(px, position)),
                };
                self.memory[index].bases[instrument] = value.map(|value| (-value, self.trades.len()));
            }
            let Some(total) = self.total(level, now, &sums, None) else { continue };
            let settings = self.settings_of(level);
            let (daily, drawdown) = (settings.daily_loss, settings.drawdown);
            let memory = &mut self.memory[index];
            memory.peak = memory.peak.max(total.profit);
            let over = |from: i128, max: Option<i128>| max.is_some_and(|max| from - total.profit > max);
            let is_over = over(memory.day_start, daily) || over(memory.peak, drawdown);
            let begins = is_over && !memory.is_latched;
            memory.is_latched = is_over;
            if begins {
                let mode = match level {
                    Level::Firm => &mut self.modes[0][0],
                    Level::Account(account) => &mut self.modes[1][usize::from(account)],
                    Level::Strategy(_, strategy) => &mut self.modes[2][usize::from(strategy)],
                };
                *mode = (*mode).max(1);
            }
        }
    }

    /// A trade happens: positive lots are bought.
    pub(super) fn trade(&mut self, index: usize, lots: i128, px: i128, fee: i128) {
        let life = &self.lives[index];
        let sign = if life.side == OrderSide::Buy { 1 } else { -1 };
        let strategy = life.asked.map(|_| life.strategy);
        let trade = Trade { account: life.account, strategy, instrument: life.instrument, lots: sign * lots, px, fee };
        self.trades.push(trade);
        let contract = &self.settings.contracts[trade.instrument as usize];
        if let Some((base, per_lot)) = contract.spot {
            let balances = &mut self.balances[usize::from(trade.account)];
            balances[contract.currency] += contract.profit(px, -trade.lots) - fee;
            balances[base] += floor(trade.lots, per_lot);
        }
    }

    /// Returns what open orders hold of a balance.
    pub(super) fn holds(&self, account: u16, currency: usize, sums: &[Sum]) -> i128 {
        let held = |(life, sum): (&Life, &Sum)| {
            let contract = &self.settings.contracts[life.instrument as usize];
            let is_it = life.account == account && contract.held_currency(life.side) == currency;
            if is_it { contract.hold(life.side, sum.reserved(), sum.reserved_value(contract)) } else { 0 }
        };
        self.lives.iter().zip(sums).map(held).sum()
    }

    /// Counts the times of a window: seven to eight parts of an eighth.
    pub(super) fn within(times: impl Iterator<Item = i128>, now: i128, width: i128) -> i128 {
        let part = ((width + 7) / 8).max(1);
        times.filter(|at| now / part - at / part < 8).count() as i128
    }
}
