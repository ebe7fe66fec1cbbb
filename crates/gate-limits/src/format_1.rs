//! Format 1 of limits files: lists of instruments and accounts.

mod contradictions;
mod money;

use anyhow::{Context as _, Result, anyhow, ensure};
use money::MoneyEntry;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use tt_model::{Decimal, InstrumentId, Qty};
use tt_risk::tree::{Route, RowLimits};
use tt_risk::{Capacity, InstrumentLimits, InstrumentRules, Limits, Rate, Rules};

use super::settings::{ACCOUNTS_MAX, ORDERS_MAX, executions, stored_orders};
use super::settings::{AccountRow, Market, Settings};
use super::{Instrument, PRODUCER};

/// Maximum age of the values of positions after a change of their mark.
const REVALUE_MAX_NS: u64 = 100_000_000;

/// A file of format 1. Prices and quantities are exact decimal text.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    global_rate: RateEntry,
    /// Time after the end of an order during which its client id must not be reused.
    #[serde(default = "ten_minutes_ms")]
    id_window_ms: u64,
    /// Maximum age of an intent.
    #[serde(default = "five_seconds_ms")]
    intent_age_max_ms: u64,
    /// Time after a cancel during which the next one of the same order is rejected.
    #[serde(default = "hundred_ms")]
    cancel_repeat_ms: u64,
    /// Time during which the venue may have executed more than its fills show.
    #[serde(default = "five_seconds_ms")]
    gap_max_ms: u64,
    /// Maximum number of orders of the same strategy, side, price, quantity and kind within `same_window_ms`.
    #[serde(default = "ten")]
    same_orders_max: u32,
    #[serde(default = "one_second_ms")]
    same_window_ms: u64,
    /// Refused intents of a producer; more kill its strategies.
    #[serde(default = "hundred_of_thousand")]
    refusal_rate: RateEntry,
    /// Window of `cancels_per_fill_max_pct`.
    #[serde(default = "one_minute_ms")]
    cancel_window_ms: u64,
    /// Window of `executions_stop`.
    #[serde(default = "one_minute_ms")]
    exec_window_ms: u64,
    /// Limits of all accounts together, in money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    firm: Option<Spanned<MoneyEntry>>,
    #[serde(rename = "instrument")]
    instruments: Vec<Spanned<InstrumentEntry>>,
    #[serde(rename = "account")]
    accounts: Vec<Spanned<Account>>,
}

/// `{ per_second = 50, burst = 10 }`
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RateEntry {
    per_second: u32,
    burst: u32,
}

/// `[[instrument]]`: ids count from 0 in the order of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct InstrumentEntry {
    symbol: String,
    px_decimals: u8,
    qty_decimals: u8,
    collar_bps: u32,
    mark_age_max_ms: u64,
    rate: RateEntry,
    /// Distance of the protection price of market orders; without it they are sent without protection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slip_bps: Option<u32>,
    /// Maximum distance of a limit price beyond the opposite touch; without it, the touch is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    touch_bps: Option<u32>,
    /// Maximum distance of a trigger price from the mark.
    #[serde(default)]
    trigger_bps: u32,
    #[serde(default)]
    may_be_negative: bool,
    #[serde(default)]
    enforces_reduce_only: bool,
    #[serde(default)]
    replaces_atomically: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Account {
    account: u16,
    rate: RateEntry,
    /// Strategies that may trade each instrument of the account.
    #[serde(default = "strategy_0")]
    strategies: Vec<u16>,
    /// Limits of the account, in money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    money: Option<Spanned<MoneyEntry>>,
    /// Limits of each of its strategies, in money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strategy_money: Option<Spanned<MoneyEntry>>,
    limits: Vec<Spanned<LimitsEntry>>,
}

/// `[[account.limits]]`; the keys are those of [`Limits`].
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LimitsEntry {
    symbol: String,
    px_step: String,
    qty_step: String,
    qty_min: String,
    qty_max: String,
    notional_min: String,
    notional_max: String,
    position_long_max: String,
    position_short_max: String,
    open_qty_max: String,
    open_orders_max: u32,
    /// Always true: an order whose client id is in use, or was within `id_window_ms`, is rejected.
    #[serde(default = "yes")]
    reject_duplicate_ids: bool,
    /// Always true: an order that would match an open order of the account is rejected.
    #[serde(default = "yes")]
    reject_self_match: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
}

const fn yes() -> bool {
    true
}

fn strategy_0() -> Vec<u16> {
    vec![0]
}

const fn hundred_of_thousand() -> RateEntry {
    RateEntry { per_second: 100, burst: 1_000 }
}

const fn ten_minutes_ms() -> u64 {
    600_000
}

const fn five_seconds_ms() -> u64 {
    5_000
}

const fn one_minute_ms() -> u64 {
    60_000
}

const fn one_second_ms() -> u64 {
    1_000
}

const fn ten() -> u32 {
    10
}

const fn hundred_ms() -> u64 {
    100
}

impl From<RateEntry> for Rate {
    fn from(entry: RateEntry) -> Self {
        Self { per_second: entry.per_second, burst: entry.burst }
    }
}

impl InstrumentEntry {
    fn instrument(&self) -> Result<Instrument> {
        Ok(Instrument {
            symbol: self.symbol.clone(),
            px_unit: Decimal::new(1, self.px_decimals),
            qty_unit: Decimal::new(1, self.qty_decimals),
            market: Market { limits: self.all_accounts(), rules: self.rules(), contract: self.contract()? },
        })
    }

    fn all_accounts(&self) -> InstrumentLimits {
        InstrumentLimits {
            collar_bps: self.collar_bps,
            mark_age_max_ns: self.mark_age_max_ms.saturating_mul(1_000_000),
            rate: self.rate.into(),
        }
    }

    const fn rules(&self) -> InstrumentRules {
        let Self { slip_bps, touch_bps, trigger_bps, may_be_negative, .. } = *self;
        let Self { enforces_reduce_only, replaces_atomically, .. } = *self;
        InstrumentRules {
            slip_bps,
            touch_bps,
            trigger_bps,
            may_be_negative,
            enforces_reduce_only,
            replaces_atomically,
            cancels_per_fill_max_pct: None,
            proof_age_max_ns: None,
        }
    }
}

impl LimitsEntry {
    fn limits(&self, of: &Instrument) -> Result<Limits> {
        Ok(Limits {
            px_step: of.px(&self.px_step)?,
            qty_step: of.qty(&self.qty_step)?,
            qty_min: of.qty(&self.qty_min)?,
            qty_max: of.qty(&self.qty_max)?,
            notional_min: of.notional(&self.notional_min)?,
            notional_max: of.notional(&self.notional_max)?,
            position_long_max: of.qty(&self.position_long_max)?,
            position_short_max: of.qty(&self.position_short_max)?,
            open_qty_max: of.qty(&self.open_qty_max)?,
            open_orders_max: self.open_orders_max,
            enabled: Limits::CHECKED,
        })
    }
}

impl Document {
    /// Reads a file of format 1.
    ///
    /// # Errors
    /// `text` is not TOML, has an unknown key, a repeated block, or limits that contradict each other; the error
    /// names the line, and both values.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let file: Self = toml::from_str(text).map_err(|error| anyhow!("{error}"))?;
        file.check(text)?;
        Ok(file)
    }

    /// Returns the file with its defaults, as TOML.
    pub(super) fn text(&self) -> Result<String> {
        toml::to_string(self).context("limits as TOML")
    }

    /// Returns the instruments, by id.
    pub(super) fn instruments(&self) -> Result<Vec<Instrument>> {
        self.instruments.iter().map(|entry| entry.get_ref().instrument()).collect()
    }

    fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().map(Spanned::get_ref)
    }

    fn find<'a>(&self, symbol: &str, instruments: &'a [Instrument]) -> Result<(InstrumentId, &'a Instrument)> {
        let found = (0..).zip(instruments).find(|(_, instrument)| instrument.symbol == symbol);
        let (number, instrument) = found.with_context(|| format!("no instrument `{symbol}`"))?;
        Ok((InstrumentId(number), instrument))
    }

    /// Returns everything that the file sets.
    pub(super) fn settings(&self, instruments: &[Instrument]) -> Result<Settings> {
        let accounts = self.accounts().map(|account| account.account).max().map_or(0, |last| last.saturating_add(1));
        ensure!(accounts <= ACCOUNTS_MAX, "account numbers are 0 to {}", ACCOUNTS_MAX - 1);
        let orders = self.orders(accounts)?;
        let (mut rows, mut routes, mut strategy_rates) = (Vec::new(), Vec::new(), Vec::new());
        for account in self.accounts() {
            for entry in account.limits.iter().map(Spanned::get_ref) {
                let place = || format!("account {}, {}", account.account, entry.symbol);
                let (instrument, known) = self.find(&entry.symbol, instruments).with_context(place)?;
                let position = entry.position.as_deref().map_or(Ok(Qty(0)), |text| known.qty(text));
                let (limits, position) = (entry.limits(known).with_context(place)?, position.with_context(place)?);
                rows.push(AccountRow { account: account.account, instrument, limits, market_qty_max: None, position });
                for strategy in account.strategies.iter().copied() {
                    let route = Route { producer: PRODUCER, account: account.account, strategy, instrument };
                    routes.push((route, RowLimits::UNLIMITED));
                    strategy_rates.push((account.account, strategy, Rate::UNLIMITED));
                }
            }
        }
        let ids = (0..).take(instruments.len()).map(InstrumentId);
        Ok(Settings {
            capacity: Capacity {
                accounts,
                instruments: u32::try_from(instruments.len()).context("too many instruments")?,
                producers: 1,
                orders,
                executions: executions(orders, accounts),
                routes: u32::try_from(routes.len()).context("too many routes")?,
                currencies: 0,
            },
            global_rate: self.global_rate.into(),
            rules: self.rules(),
            markets: instruments.iter().map(|of| of.market).collect(),
            currencies: Vec::new(),
            firm: ids.map(|id| (id, RowLimits::UNLIMITED)).collect(),
            account_rates: self.accounts().map(|account| (account.account, account.rate.into())).collect(),
            rows,
            routes,
            strategy_rates,
            nodes: self.nodes()?,
        })
    }

    fn rules(&self) -> Rules {
        Rules {
            id_window_ns: self.id_window_ms.saturating_mul(1_000_000),
            intent_age_max_ns: self.intent_age_max_ms.saturating_mul(1_000_000),
            cancel_repeat_ns: self.cancel_repeat_ms.saturating_mul(1_000_000),
            gap_max_ns: self.gap_max_ms.saturating_mul(1_000_000),
            same_orders_max: self.same_orders_max,
            same_window_ns: self.same_window_ms.saturating_mul(1_000_000),
            refusal_rate: self.refusal_rate.into(),
            cancel_window_ns: self.cancel_window_ms.saturating_mul(1_000_000),
            exec_window_ns: self.exec_window_ms.saturating_mul(1_000_000),
            revalue_max_ns: REVALUE_MAX_NS,
            equity_age_max_ns: 0,
        }
    }

    /// Returns the number of orders that an account can have open, or have ended within the window, at its rate.
    fn orders(&self, accounts: u16) -> Result<u32> {
        let needs = |account: &Account| {
            let open = account.limits.iter().map(|entry| u128::from(entry.get_ref().open_orders_max)).sum();
            stored_orders(account.rate.into(), self.id_window_ms, open)
        };
        let most = self.accounts().map(needs).max().unwrap_or(0);
        let total = most.saturating_mul(accounts.into());
        ensure!(
            total <= ORDERS_MAX.into(),
            "id_window_ms = {}: the accounts' rates and open_orders_max need {total} stored orders, more than {ORDERS_MAX}; \
             shorten the window, lower a rate, or lower open_orders_max",
            self.id_window_ms
        );
        Ok(most as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LimitsFile;
    use tt_model::{Notional, Price};
    use tt_risk::money::{Contract, Ratio};
    use tt_risk::tree::{Node, NodeLimits};

    /// No two values are equal, except for defaults.
    const TEXT: &str = r#"
id_window_ms = 2500
intent_age_max_ms = 2600
cancel_repeat_ms = 2700
gap_max_ms = 2800
same_orders_max = 28
same_window_ms = 2400
refusal_rate = { per_second = 81, burst = 82 }
cancel_window_ms = 83
exec_window_ms = 84
firm = { gross_max = "93.1", cancels_per_fill_max_pct = 94, executions_stop = 95 }
global_rate = { per_second = 61, burst = 62 }
[[instrument]]
symbol = "BTC/USDT"
px_decimals = 2
qty_decimals = 5
collar_bps = 63
mark_age_max_ms = 64
rate = { per_second = 65, burst = 66 }
slip_bps = 90
touch_bps = 91
trigger_bps = 92
may_be_negative = true
replaces_atomically = true
[[instrument]]
symbol = "ETH/USDT"
px_decimals = 3
qty_decimals = 4
collar_bps = 67
mark_age_max_ms = 68
rate = { per_second = 69, burst = 70 }
enforces_reduce_only = true
[[account]]
account = 1
strategies = [4, 6]
money = { gross_max = "93", net_max = "0.00000096" }
strategy_money = { open_value_max = "97", daily_loss_max = "98", drawdown_max = "99" }
rate = { per_second = 71, burst = 72 }
[[account.limits]]
symbol = "ETH/USDT"
px_step = "0.001"
qty_step = "0.0002"
qty_min = "0.0003"
qty_max = "0.0004"
notional_min = "0.0000005"
notional_max = "0.0000006"
position_long_max = "0.0007"
position_short_max = "0.0008"
open_qty_max = "0.0009"
open_orders_max = 10
reject_duplicate_ids = true
position = "-0.0011"
[[account.limits]]
symbol = "BTC/USDT"
px_step = "0.21"
qty_step = "0.00022"
qty_min = "0.00023"
qty_max = "0.00024"
notional_min = "0.0000025"
notional_max = "0.0000026"
position_long_max = "0.00027"
position_short_max = "0.00028"
open_qty_max = "0.00029"
open_orders_max = 30
reject_self_match = true
[[account]]
account = 3
rate = { per_second = 73, burst = 74 }
limits = []
"#;

    fn nodes_of_the_text() -> Vec<(Node, NodeLimits)> {
        let money = |units: i64| Some(units * 100_000_000);
        let firm = NodeLimits {
            gross_max: Some(9_310_000_000),
            cancels_per_fill_max_pct: Some(94),
            executions_stop: Some(95),
            ..NodeLimits::default()
        };
        let account = NodeLimits { gross_max: money(93), net_max: Some(96), ..NodeLimits::default() };
        let strategy = NodeLimits {
            open_value_max: money(97),
            daily_loss_max: money(98),
            drawdown_max: money(99),
            ..NodeLimits::default()
        };
        let of = |strategy| Node::Strategy { account: 1, strategy };
        vec![(Node::Firm, firm), (Node::Account(1), account), (of(4), strategy), (of(6), strategy)]
    }

    /// Limits of the accounts in [`TEXT`].
    fn limits_of_the_text() -> [Limits; 2] {
        let eth = Limits {
            px_step: Price(1),
            qty_step: Qty(2),
            qty_min: Qty(3),
            qty_max: Qty(4),
            notional_min: Notional(5),
            notional_max: Notional(6),
            position_long_max: Qty(7),
            position_short_max: Qty(8),
            open_qty_max: Qty(9),
            open_orders_max: 10,
            enabled: Limits::CHECKED,
        };
        let btc = Limits {
            px_step: Price(21),
            qty_step: Qty(22),
            qty_min: Qty(23),
            qty_max: Qty(24),
            notional_min: Notional(25),
            notional_max: Notional(26),
            position_long_max: Qty(27),
            position_short_max: Qty(28),
            open_qty_max: Qty(29),
            open_orders_max: 30,
            enabled: Limits::CHECKED,
        };
        [eth, btc]
    }

    #[test]
    fn every_key_of_the_file_sets_its_own_field() {
        let rate = |per_second, burst| Rate { per_second, burst };
        let limits = |collar_bps, mark_age_max_ns, rate| InstrumentLimits { collar_bps, mark_age_max_ns, rate };
        // A step of price times a lot is 10^-7 in both.
        let contract = Contract { value: Ratio { num: 100_000_000, den: 10_000_000 }, ..Contract::default() };
        let [eth, btc] = limits_of_the_text();
        let rules = InstrumentRules {
            slip_bps: Some(90),
            touch_bps: Some(91),
            trigger_bps: 92,
            may_be_negative: true,
            enforces_reduce_only: false,
            replaces_atomically: true,
            cancels_per_fill_max_pct: None,
            proof_age_max_ns: None,
        };
        let other_rules = InstrumentRules { enforces_reduce_only: true, ..InstrumentRules::default() };
        let route = |strategy, id| {
            (Route { producer: 0, account: 1, strategy, instrument: InstrumentId(id) }, RowLimits::UNLIMITED)
        };
        let row = |id, limits, lots| AccountRow {
            account: 1,
            instrument: InstrumentId(id),
            limits,
            market_qty_max: None,
            position: Qty(lots),
        };
        let expected = Settings {
            // 71 per second for 2.5 s, the burst of 72, and 40 open orders.
            capacity: Capacity {
                accounts: 4,
                instruments: 2,
                producers: 1,
                orders: 289,
                executions: 4_096,
                routes: 4,
                currencies: 0,
            },
            global_rate: rate(61, 62),
            rules: Rules {
                id_window_ns: 2_500_000_000,
                intent_age_max_ns: 2_600_000_000,
                cancel_repeat_ns: 2_700_000_000,
                gap_max_ns: 2_800_000_000,
                same_orders_max: 28,
                same_window_ns: 2_400_000_000,
                refusal_rate: rate(81, 82),
                cancel_window_ns: 83_000_000,
                exec_window_ns: 84_000_000,
                revalue_max_ns: 100_000_000,
                equity_age_max_ns: 0,
            },
            markets: vec![
                Market { limits: limits(63, 64_000_000, rate(65, 66)), rules, contract },
                Market { limits: limits(67, 68_000_000, rate(69, 70)), rules: other_rules, contract },
            ],
            currencies: vec![],
            firm: vec![(InstrumentId(0), RowLimits::UNLIMITED), (InstrumentId(1), RowLimits::UNLIMITED)],
            account_rates: vec![(1, rate(71, 72)), (3, rate(73, 74))],
            rows: vec![row(1, eth, -11), row(0, btc, 0)],
            routes: vec![route(4, 1), route(6, 1), route(4, 0), route(6, 0)],
            strategy_rates: [4, 6, 4, 6].map(|strategy| (1, strategy, Rate::UNLIMITED)).to_vec(),
            nodes: nodes_of_the_text(),
        };
        let file = LimitsFile::parse(TEXT).unwrap();
        assert_eq!(*file.settings_at(0), expected);
        assert_eq!(*LimitsFile::parse(file.text()).unwrap().settings_at(u64::MAX), expected, "as printed");
        let gate = file.gate().unwrap();
        assert_eq!(gate.exposure(1, InstrumentId(1)).map(|held| held.position), Some(Qty(-11)));
    }

    #[test]
    fn a_key_that_is_unknown_or_missing_is_an_error_that_names_it() {
        let optional = [
            "id_window_ms",
            "intent_age_max_ms",
            "cancel_repeat_ms",
            "gap_max_ms",
            "same_orders_max",
            "same_window_ms",
            "refusal_rate",
            "cancel_window_ms",
            "exec_window_ms",
            "firm",
            "money",
            "strategy_money",
            "strategies",
            "slip_bps",
            "touch_bps",
            "trigger_bps",
            "may_be_negative",
            "enforces_reduce_only",
            "replaces_atomically",
            "reject_duplicate_ids",
            "reject_self_match",
            "position",
        ];
        let keys = TEXT.lines().enumerate().filter_map(|(number, line)| Some((number, line.split_once(" = ")?.0)));
        for (number, key) in keys {
            let with = |other: Option<&str>| {
                let lines = TEXT.lines().enumerate().map(|(index, line)| match other {
                    Some(other) if index == number => line.replacen(key, other, 1),
                    None if index == number => String::new(),
                    _ => line.to_owned(),
                });
                LimitsFile::parse(&lines.collect::<Vec<_>>().join("\n"))
            };
            let unknown = with(Some("unknown_key")).unwrap_err().to_string();
            assert!(unknown.contains("unknown_key"), "{key}: {unknown}");
            assert_eq!(with(None).is_ok(), optional.contains(&key), "{key}");
        }
    }

    #[test]
    fn case_k13_what_contradicts_itself_is_an_error_with_line_and_values() {
        for (from, to, error) in [
            (
                "gross_max = \"93\"",
                "gross_max = \"93.2\"",
                "line 36: account 1: gross_max = 93.2 is above 93.1, the firm's, in line 11",
            ),
            ("gross_max = \"93\"", "gross_max = \"-1\"", "line 36: account 1: gross_max = -1 is below zero"),
            ("account = 3", "account = 1", "line 66: account 1: listed twice, first in line 33"),
            (
                "symbol = \"BTC/USDT\"\npx_step",
                "symbol = \"ETH/USDT\"\npx_step",
                "line 53: account 1: limits of ETH/USDT: listed twice, first in line 39",
            ),
            (
                "symbol = \"ETH/USDT\"\npx_decimals",
                "symbol = \"BTC/USDT\"\npx_decimals",
                "line 25: instrument BTC/USDT: listed twice, first in line 13",
            ),
            ("collar_bps = 67", "collar_bps = 10000", "line 25: instrument ETH/USDT: collar_bps = 10000 is above 9999"),
            (
                "qty_min = \"0.0003\"",
                "qty_min = \"0.00041\"",
                "line 39: account 1: limits of ETH/USDT: `0.00041` is not a decimal number with at most 4 decimals",
            ),
            (
                "qty_min = \"0.0003\"",
                "qty_min = \"0.0005\"",
                "line 39: account 1: limits of ETH/USDT: qty_min = 0.0005 is above qty_max = 0.0004",
            ),
            (
                "notional_min = \"0.0000025\"",
                "notional_min = \"0.0000027\"",
                "line 53: account 1: limits of BTC/USDT: notional_min = 0.0000027 is above notional_max = 0.0000026",
            ),
            (
                "reject_self_match = true",
                "reject_self_match = false",
                "line 53: account 1: limits of BTC/USDT: reject_self_match = false: the check cannot be switched off",
            ),
            (
                "reject_duplicate_ids = true",
                "reject_duplicate_ids = false",
                "line 39: account 1: limits of ETH/USDT: reject_duplicate_ids = false: the check cannot be switched off",
            ),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let found = LimitsFile::parse(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert_eq!(format!("{found:#}"), error);
        }
        let equal = TEXT.replacen("qty_min = \"0.0003\"", "qty_min = \"0.0004\"", 1);
        let equal = equal.replacen("collar_bps = 67", "collar_bps = 9999", 1);
        LimitsFile::parse(&equal).unwrap().gate().unwrap();
    }
}
