//! Limits in TOML, and the gate that they make.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;
use tt_model::{InstrumentId, Notional, Price, Qty};
use tt_risk::{Capacity, Exposure, Fault, Gate, InstrumentLimits, Limits, Rate};

use crate::decimal::Decimal;

/// Accounts are numbered below this, so that a slip of the pen does not ask for the memory of 65,536.
const ACCOUNTS_MAX: u16 = 1024;

/// A file of limits. Prices and quantities are decimal text, exact.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LimitsFile {
    global_rate: RateEntry,
    #[serde(rename = "instrument")]
    instruments: Vec<Instrument>,
    #[serde(rename = "account")]
    accounts: Vec<Account>,
}

/// `{ per-second = 50, burst = 10 }`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RateEntry {
    per_second: u32,
    burst: u32,
}

/// `[[instrument]]`: numbered in the order of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Instrument {
    pub(super) symbol: String,
    px_decimals: u8,
    qty_decimals: u8,
    collar_bps: u32,
    mark_age_max_ms: u64,
    rate: RateEntry,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Account {
    account: u16,
    rate: RateEntry,
    limits: Vec<LimitsEntry>,
}

/// `[[account.limits]]`; the names are those of [`Limits`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
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
    position: Option<String>,
}

impl From<RateEntry> for Rate {
    fn from(entry: RateEntry) -> Self {
        Self { per_second: entry.per_second, burst: entry.burst }
    }
}

impl Instrument {
    /// `text` in price steps.
    pub(super) fn px(&self, text: &str) -> Result<Price> {
        Ok(Price(steps(text, self.px_decimals)?))
    }

    /// `text` in lots.
    pub(super) fn qty(&self, text: &str) -> Result<Qty> {
        Ok(Qty(steps(text, self.qty_decimals)?))
    }

    fn notional(&self, text: &str) -> Result<Notional> {
        Ok(Notional(i128::from(steps(text, self.px_decimals.saturating_add(self.qty_decimals))?)))
    }

    /// `lots` as decimal text.
    pub(super) fn qty_text(&self, lots: i64) -> String {
        Decimal::new(lots, self.qty_decimals).to_string()
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
    Decimal::steps(text, decimals).with_context(|| format!("`{text}` is no number of at most {decimals} decimals"))
}

impl LimitsFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has an unknown key; the error names the file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
    }

    /// The instrument with the venue's or normalised `symbol`, and its number.
    pub(super) fn find(&self, symbol: &str) -> Result<(InstrumentId, &Instrument)> {
        let mut numbered = (0..).zip(&self.instruments);
        let found = numbered.find(|(_, instrument)| instrument.symbol == symbol);
        let (number, instrument) = found.with_context(|| format!("no instrument `{symbol}`"))?;
        Ok((InstrumentId(number), instrument))
    }

    /// A gate with these limits.
    ///
    /// # Errors
    /// A limit that is no number, or that the gate does not take; the error names account and symbol.
    pub(super) fn gate(&self) -> Result<Gate> {
        let instruments = u32::try_from(self.instruments.len()).context("too many instruments")?;
        let accounts =
            self.accounts.iter().map(|account| account.account).max().map_or(0, |last| last.saturating_add(1));
        ensure!(accounts <= ACCOUNTS_MAX, "accounts are numbered from 0 to {}", ACCOUNTS_MAX - 1);
        let mut gate = Gate::new(Capacity { accounts, instruments });
        gate.set_global_rate(self.global_rate.into());
        for (number, entry) in (0..).zip(&self.instruments) {
            let age_ns = entry.mark_age_max_ms.saturating_mul(1_000_000);
            let limits =
                InstrumentLimits { collar_bps: entry.collar_bps, mark_age_max_ns: age_ns, rate: entry.rate.into() };
            gate.set_instrument_limits(InstrumentId(number), &limits).map_err(refused)?;
        }
        for account in &self.accounts {
            gate.set_account_rate(account.account, account.rate.into()).map_err(refused)?;
            for entry in &account.limits {
                self.set_limits(&mut gate, account.account, entry)
                    .with_context(|| format!("account {}, {}", account.account, entry.symbol))?;
            }
        }
        Ok(gate)
    }

    fn set_limits(&self, gate: &mut Gate, account: u16, entry: &LimitsEntry) -> Result<()> {
        let (instrument, known) = self.find(&entry.symbol)?;
        gate.set_limits(account, instrument, &known.limits(entry)?).map_err(refused)?;
        let position = entry.position.as_deref().map_or(Ok(Qty(0)), |text| known.qty(text))?;
        gate.restore(account, instrument, &Exposure { position, ..Exposure::default() }).map_err(refused)
    }
}

/// What the gate has against something, as a sentence.
pub(super) fn refused(fault: Fault) -> anyhow::Error {
    anyhow!(match fault {
        Fault::Unknown => "no such account or instrument",
        Fault::LimitOutOfRange => "a limit is negative, too large, or a step or least quantity is zero",
        Fault::QtyOutOfRange => "a quantity is not positive, or too large",
        Fault::MoreThanOpen => "less was open than that",
    })
}
