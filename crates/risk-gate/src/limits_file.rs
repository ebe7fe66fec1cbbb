//! Limits in TOML, and the gate that they make.

mod contradictions;

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use tt_model::{Decimal, InstrumentId, Notional, Price, Qty};
use tt_risk::{Capacity, Gate, InstrumentLimits, InstrumentRules, InstrumentState, Limits, Rate, Rules};

/// Maximum number of accounts; a mistyped number must not allocate tables for 65,536 accounts.
const ACCOUNTS_MAX: u16 = 1024;

/// Maximum number of orders that are stored, half a gigabyte.
const ORDERS_MAX: u32 = 1 << 21;

/// Executions that are stored for each order.
const EXECUTIONS_PER_ORDER: u32 = 2;

/// Least number of executions that are stored.
const EXECUTIONS_MIN: u32 = 4096;

/// A file of limits. Prices and quantities are exact decimal text.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsFile {
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
    #[serde(rename = "instrument")]
    instruments: Vec<Spanned<Instrument>>,
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
pub struct Instrument {
    /// The instrument's symbol in the file and in events.
    pub symbol: String,
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

const fn ten_minutes_ms() -> u64 {
    600_000
}

const fn five_seconds_ms() -> u64 {
    5_000
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

/// Everything that a file sets in a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    capacity: Capacity,
    global_rate: Rate,
    rules: Rules,
    /// By id.
    instruments: Vec<(InstrumentLimits, InstrumentRules)>,
    account_rates: Vec<(u16, Rate)>,
    limits: Vec<(u16, InstrumentId, Limits, Qty)>,
}

impl From<RateEntry> for Rate {
    fn from(entry: RateEntry) -> Self {
        Self { per_second: entry.per_second, burst: entry.burst }
    }
}

impl Instrument {
    /// Returns the price `text` in price steps.
    ///
    /// # Errors
    /// `text` is not a decimal number of at most the instrument's price decimals.
    pub fn px(&self, text: &str) -> Result<Price> {
        Ok(Price(steps(text, self.px_decimals)?))
    }

    /// Returns the quantity `text` in lots.
    ///
    /// # Errors
    /// `text` is not a decimal number of at most the instrument's quantity decimals.
    pub fn qty(&self, text: &str) -> Result<Qty> {
        Ok(Qty(steps(text, self.qty_decimals)?))
    }

    fn notional(&self, text: &str) -> Result<Notional> {
        Ok(Notional(i128::from(steps(text, self.px_decimals.saturating_add(self.qty_decimals))?)))
    }

    /// Returns `lots` as decimal text.
    #[must_use]
    pub fn qty_text(&self, lots: i64) -> String {
        Decimal::new(lots, self.qty_decimals).to_string()
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
        InstrumentRules { slip_bps, touch_bps, trigger_bps, may_be_negative, enforces_reduce_only, replaces_atomically }
    }

    fn limits(&self, entry: &LimitsEntry) -> Result<Limits> {
        Ok(Limits {
            px_step: self.px(&entry.px_step)?,
            qty_step: self.qty(&entry.qty_step)?,
            qty_min: self.qty(&entry.qty_min)?,
            qty_max: self.qty(&entry.qty_max)?,
            notional_min: self.notional(&entry.notional_min)?,
            notional_max: self.notional(&entry.notional_max)?,
            position_long_max: self.qty(&entry.position_long_max)?,
            position_short_max: self.qty(&entry.position_short_max)?,
            open_qty_max: self.qty(&entry.open_qty_max)?,
            open_orders_max: entry.open_orders_max,
            enabled: Limits::CHECKED,
        })
    }
}

fn steps(text: &str, decimals: u8) -> Result<i64> {
    Decimal::steps(text, decimals)
        .with_context(|| format!("`{text}` is not a decimal number with at most {decimals} decimals"))
}

impl LimitsFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or [`LimitsFile::parse`] rejects it; the error names the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads limits from TOML.
    ///
    /// # Errors
    /// `text` is not TOML, has an unknown key, a repeated block, or limits that contradict each other; the error
    /// names the line, and both values.
    pub fn parse(text: &str) -> Result<Self> {
        let file: Self = toml::from_str(text).map_err(|error| anyhow!("{error}"))?;
        file.check(text)?;
        Ok(file)
    }

    fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments.iter().map(Spanned::get_ref)
    }

    fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().map(Spanned::get_ref)
    }

    /// Returns the instrument with `symbol`, and its id.
    ///
    /// # Errors
    /// No instrument has that symbol.
    pub fn find(&self, symbol: &str) -> Result<(InstrumentId, &Instrument)> {
        let mut numbered = (0..).zip(self.instruments());
        let found = numbered.find(|(_, instrument)| instrument.symbol == symbol);
        let (number, instrument) = found.with_context(|| format!("no instrument `{symbol}`"))?;
        Ok((InstrumentId(number), instrument))
    }

    /// Returns the symbol of each instrument, by id.
    #[must_use]
    pub fn symbols(&self) -> Vec<String> {
        self.instruments().map(|instrument| instrument.symbol.clone()).collect()
    }

    /// Creates a gate with these limits, whose instruments are open.
    ///
    /// # Errors
    /// A limit is not a number, or the gate rejects it; the error names account and symbol.
    pub fn gate(&self) -> Result<Gate> {
        let settings = self.settings()?;
        let mut gate = Gate::new(settings.capacity);
        gate.set_global_rate(settings.global_rate);
        gate.set_rules(&settings.rules);
        for (number, (limits, rules)) in (0..).zip(&settings.instruments) {
            gate.set_instrument_limits(InstrumentId(number), limits)?;
            gate.set_instrument_rules(InstrumentId(number), rules)?;
            gate.set_state(InstrumentId(number), InstrumentState::Open)?;
        }
        for (account, rate) in &settings.account_rates {
            gate.set_account_rate(*account, *rate)?;
        }
        for (account, instrument, limits, position) in &settings.limits {
            let set = gate.set_limits(*account, *instrument, limits).map(drop);
            set.and_then(|()| gate.restore(*account, *instrument, *position, 0)).with_context(|| {
                format!("account {account}, {}", self.instruments[instrument.0 as usize].get_ref().symbol)
            })?;
        }
        Ok(gate)
    }

    fn settings(&self) -> Result<Settings> {
        let instruments = u32::try_from(self.instruments.len()).context("too many instruments")?;
        let accounts = self.accounts().map(|account| account.account).max().map_or(0, |last| last.saturating_add(1));
        ensure!(accounts <= ACCOUNTS_MAX, "account numbers are 0 to {}", ACCOUNTS_MAX - 1);
        let orders = self.orders(accounts)?;
        let mut limits = Vec::new();
        for account in self.accounts() {
            for entry in account.limits.iter().map(Spanned::get_ref) {
                let place = || format!("account {}, {}", account.account, entry.symbol);
                let (instrument, known) = self.find(&entry.symbol).with_context(place)?;
                let position = entry.position.as_deref().map_or(Ok(Qty(0)), |text| known.qty(text));
                let (of, position) = (known.limits(entry).with_context(place)?, position.with_context(place)?);
                limits.push((account.account, instrument, of, position));
            }
        }
        Ok(Settings {
            capacity: Capacity {
                accounts,
                instruments,
                producers: 1,
                orders,
                executions: (orders * u32::from(accounts)).saturating_mul(EXECUTIONS_PER_ORDER).max(EXECUTIONS_MIN),
            },
            global_rate: self.global_rate.into(),
            rules: Rules {
                id_window_ns: self.id_window_ms.saturating_mul(1_000_000),
                intent_age_max_ns: self.intent_age_max_ms.saturating_mul(1_000_000),
                cancel_repeat_ns: self.cancel_repeat_ms.saturating_mul(1_000_000),
                gap_max_ns: self.gap_max_ms.saturating_mul(1_000_000),
                same_orders_max: self.same_orders_max,
                same_window_ns: self.same_window_ms.saturating_mul(1_000_000),
            },
            instruments: self.instruments().map(|of| (of.all_accounts(), of.rules())).collect(),
            account_rates: self.accounts().map(|account| (account.account, account.rate.into())).collect(),
            limits,
        })
    }

    /// Returns the number of orders that an account can have open, or have ended within the window, at its rate.
    fn orders(&self, accounts: u16) -> Result<u32> {
        let stored = |account: &Account| {
            let per_window = u128::from(account.rate.per_second) * u128::from(self.id_window_ms) / 1000;
            let open: u128 = account.limits.iter().map(|entry| u128::from(entry.get_ref().open_orders_max)).sum();
            per_window + u128::from(account.rate.burst) + open
        };
        let most = self.accounts().map(stored).max().unwrap_or(0);
        let total = most.saturating_mul(accounts.into());
        ensure!(
            total <= ORDERS_MAX.into(),
            "id_window_ms = {}: the accounts' rates and open_orders_max need {total} stored orders, more than {ORDERS_MAX}; \
             shorten the window, lower a rate, or lower open_orders_max",
            self.id_window_ms
        );
        Ok(most as u32)
    }

    /// Returns the limits in force, with defaults, as TOML that [`LimitsFile::read`] reads.
    ///
    /// # Errors
    /// A value cannot be written as TOML.
    pub fn text(&self) -> Result<String> {
        toml::to_string(self).context("limits as TOML")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two values are equal, except for defaults.
    const TEXT: &str = r#"
id_window_ms = 2500
intent_age_max_ms = 2600
cancel_repeat_ms = 2700
gap_max_ms = 2800
same_orders_max = 28
same_window_ms = 2400
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

    #[test]
    fn every_key_of_the_file_sets_its_own_field() {
        let rate = |per_second, burst| Rate { per_second, burst };
        let instrument = |collar_bps, mark_age_max_ns, rate| InstrumentLimits { collar_bps, mark_age_max_ns, rate };
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
        let rules = InstrumentRules {
            slip_bps: Some(90),
            touch_bps: Some(91),
            trigger_bps: 92,
            may_be_negative: true,
            enforces_reduce_only: false,
            replaces_atomically: true,
        };
        let other_rules = InstrumentRules { enforces_reduce_only: true, ..InstrumentRules::default() };
        let expected = Settings {
            // 71 per second for 2.5 s, the burst of 72, and 40 open orders.
            capacity: Capacity { accounts: 4, instruments: 2, producers: 1, orders: 289, executions: 4_096 },
            global_rate: rate(61, 62),
            rules: Rules {
                id_window_ns: 2_500_000_000,
                intent_age_max_ns: 2_600_000_000,
                cancel_repeat_ns: 2_700_000_000,
                gap_max_ns: 2_800_000_000,
                same_orders_max: 28,
                same_window_ns: 2_400_000_000,
            },
            instruments: vec![
                (instrument(63, 64_000_000, rate(65, 66)), rules),
                (instrument(67, 68_000_000, rate(69, 70)), other_rules),
            ],
            account_rates: vec![(1, rate(71, 72)), (3, rate(73, 74))],
            limits: vec![(1, InstrumentId(1), eth, Qty(-11)), (1, InstrumentId(0), btc, Qty(0))],
        };
        let file = LimitsFile::parse(TEXT).unwrap();
        assert_eq!(file.settings().unwrap(), expected);
        assert_eq!(LimitsFile::parse(&file.text().unwrap()).unwrap().settings().unwrap(), expected, "as printed");
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
            ("account = 3", "account = 1", "line 59: account 1: listed twice, first in line 29"),
            (
                "symbol = \"BTC/USDT\"\npx_step",
                "symbol = \"ETH/USDT\"\npx_step",
                "line 46: account 1: limits of ETH/USDT: listed twice, first in line 32",
            ),
            (
                "symbol = \"ETH/USDT\"\npx_decimals",
                "symbol = \"BTC/USDT\"\npx_decimals",
                "line 21: instrument BTC/USDT: listed twice, first in line 9",
            ),
            ("collar_bps = 67", "collar_bps = 10000", "line 21: instrument ETH/USDT: collar_bps = 10000 is above 9999"),
            (
                "qty_min = \"0.0003\"",
                "qty_min = \"0.00041\"",
                "line 32: account 1: limits of ETH/USDT: `0.00041` is not a decimal number with at most 4 decimals",
            ),
            (
                "qty_min = \"0.0003\"",
                "qty_min = \"0.0005\"",
                "line 32: account 1: limits of ETH/USDT: qty_min = 0.0005 is above qty_max = 0.0004",
            ),
            (
                "notional_min = \"0.0000025\"",
                "notional_min = \"0.0000027\"",
                "line 46: account 1: limits of BTC/USDT: notional_min = 0.0000027 is above notional_max = 0.0000026",
            ),
            (
                "reject_self_match = true",
                "reject_self_match = false",
                "line 46: account 1: limits of BTC/USDT: reject_self_match = false: the check cannot be switched off",
            ),
            (
                "reject_duplicate_ids = true",
                "reject_duplicate_ids = false",
                "line 32: account 1: limits of ETH/USDT: reject_duplicate_ids = false: the check cannot be switched off",
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
