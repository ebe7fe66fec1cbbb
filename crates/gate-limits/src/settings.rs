//! Everything that a limits file sets in a gate, at one time.

use anyhow::{Result, ensure};
use tt_model::{Decimal, InstrumentId, Qty};
use tt_risk::money::{Contract, CurrencyLimits, Ratio};
use tt_risk::tree::{Node, NodeLimits, Route, RowLimits};
use tt_risk::{Capacity, Gate, GateError, InstrumentLimits, InstrumentRules, InstrumentState, Limits, Rate, Rules};

/// Maximum number of accounts; a mistyped number must not allocate tables for 65,536 accounts.
pub(super) const ACCOUNTS_MAX: u16 = 1024;

/// Maximum number of orders that are stored, half a gigabyte.
pub(super) const ORDERS_MAX: u32 = 1 << 21;

/// Decimals of money in the currency of limits.
pub(super) const MONEY_DECIMALS: u8 = 8;

/// Executions that are stored for each order.
const EXECUTIONS_PER_ORDER: u32 = 2;

/// Least number of executions that are stored.
const EXECUTIONS_MIN: u32 = 4096;

/// Returns the number of executions that are stored for `orders` of each account.
pub(super) fn executions(orders: u32, accounts: u16) -> u32 {
    orders.saturating_mul(accounts.into()).saturating_mul(EXECUTIONS_PER_ORDER).max(EXECUTIONS_MIN)
}

/// Returns the number of orders that an account can have open, or have ended within the window, at its rate.
pub(super) fn stored_orders(rate: Rate, id_window_ms: u64, open: u128) -> u128 {
    u128::from(rate.per_second) * u128::from(id_window_ms) / 1000 + u128::from(rate.burst) + open
}

/// Returns a ratio in lowest terms; `None` beyond 64 bits.
pub(super) fn reduce(num: u128, den: u128) -> Option<Ratio> {
    let (mut a, mut b) = (num, den);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let divisor = a.max(1);
    Some(Ratio { num: u64::try_from(num / divisor).ok()?, den: u64::try_from(den / divisor).ok()? })
}

/// Returns steps of the currency of limits per step of a currency with `decimals`, whose unit costs `text`.
pub(super) fn exact_rate(text: &str, decimals: u8) -> Option<Ratio> {
    let rate = Decimal::parse_unsigned(text.as_bytes()).ok().filter(|rate| rate.mantissa > 0)?;
    rate_of(rate.mantissa.unsigned_abs().into(), rate.decimals, decimals)
}

/// The same of a price of `mantissa` with `px_decimals` decimals.
pub(super) fn rate_of(mantissa: u128, px_decimals: u8, decimals: u8) -> Option<Ratio> {
    let num = mantissa.checked_mul(10_u128.pow(MONEY_DECIMALS.into()))?;
    reduce(num, 10_u128.pow(u32::from(px_decimals) + u32::from(decimals)))
}

/// What applies to an instrument in all accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Market {
    pub(super) limits: InstrumentLimits,
    pub(super) rules: InstrumentRules,
    pub(super) contract: Contract,
}

/// An account in an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccountRow {
    pub(super) account: u16,
    pub(super) instrument: InstrumentId,
    pub(super) limits: Limits,
    /// Maximum quantity of a market order; `None`: that of other orders.
    pub(super) market_qty_max: Option<Qty>,
    /// The position at the beginning.
    pub(super) position: Qty,
}

/// Everything that a file sets in a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) capacity: Capacity,
    pub(super) global_rate: Rate,
    pub(super) rules: Rules,
    /// By instrument.
    pub(super) markets: Vec<Market>,
    /// By currency, from 1.
    pub(super) currencies: Vec<CurrencyLimits>,
    pub(super) firm: Vec<(InstrumentId, RowLimits)>,
    pub(super) account_rates: Vec<(u16, Rate)>,
    pub(super) rows: Vec<AccountRow>,
    pub(super) routes: Vec<(Route, RowLimits)>,
    pub(super) strategy_rates: Vec<(u16, u16, Rate)>,
    pub(super) nodes: Vec<(Node, NodeLimits)>,
}

impl Settings {
    /// Checks that `gate` has room for these settings, and that no contract changes in which something is held.
    ///
    /// # Errors
    /// The error names what does not fit, and both values. Nothing changes.
    pub(super) fn check_fit(&self, gate: &Gate, symbol: impl Fn(InstrumentId) -> String) -> Result<()> {
        let Capacity { accounts, instruments, currencies, .. } = *gate.capacity();
        for (what, needed, has) in [
            ("accounts", u32::from(self.capacity.accounts), u32::from(accounts)),
            ("instruments", self.capacity.instruments, instruments),
            ("currencies", self.capacity.currencies.into(), currencies.into()),
        ] {
            ensure!(needed <= has, "{needed} {what} are more than the {has} that the gate has room for");
        }
        let is_new =
            |(route, _): &&(Route, RowLimits)| !gate.has_route(route.account, route.strategy, route.instrument);
        let (new, left) = (self.routes.iter().filter(is_new).count(), gate.routes_left() as usize);
        ensure!(new <= left, "{new} new strategies in instruments are more than the {left} that the gate has room for");
        for (number, market) in (0..).map(InstrumentId).zip(&self.markets) {
            let is_same = gate.contract(number) == Some(&market.contract);
            ensure!(is_same || gate.is_unused(number), "{}: the contract changes while it is held", symbol(number));
        }
        Ok(())
    }

    /// Replaces all limits of `gate`. What the file does not name is withdrawn: its orders are rejected.
    ///
    /// # Errors
    /// Those of the gate. Limits that were not replaced are withdrawn then.
    pub(super) fn apply(&self, gate: &mut Gate) -> Result<(), GateError> {
        let listed: Vec<_> = (0..).take(self.markets.len()).map(|id| gate.has_firm_limits(InstrumentId(id))).collect();
        gate.withdraw_limits();
        gate.set_global_rate(self.global_rate);
        gate.set_rules(&self.rules);
        for (number, limits) in (1..).zip(&self.currencies) {
            gate.set_currency_limits(number, limits)?;
        }
        for ((number, market), is_listed) in (0..).map(InstrumentId).zip(&self.markets).zip(listed) {
            gate.set_instrument_limits(number, &market.limits)?;
            gate.set_instrument_rules(number, &market.rules)?;
            if !is_listed {
                gate.set_state(number, InstrumentState::Open)?;
            }
            if gate.contract(number) != Some(&market.contract) {
                gate.set_contract(number, &market.contract)?;
            }
        }
        for (instrument, limits) in &self.firm {
            gate.set_firm_limits(*instrument, limits)?;
        }
        for (route, limits) in &self.routes {
            gate.set_route(route, limits)?;
        }
        for (account, strategy, rate) in &self.strategy_rates {
            gate.set_strategy_rate(*account, *strategy, *rate)?;
        }
        for (node, limits) in &self.nodes {
            gate.set_node_limits(*node, limits)?;
        }
        for (account, rate) in &self.account_rates {
            gate.set_account_rate(*account, *rate)?;
        }
        for AccountRow { account, instrument, limits, market_qty_max, position } in &self.rows {
            gate.set_limits(*account, *instrument, limits)?;
            if let Some(market_qty_max) = market_qty_max {
                gate.set_market_qty_max(*account, *instrument, *market_qty_max)?;
            }
            if !gate.is_restored(*account, *instrument) {
                gate.restore(*account, *instrument, *position, 0)?;
            }
        }
        Ok(())
    }
}
