//! Limits in TOML, and the gate that they make.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use tt_model::{Breach, InstrumentId, Notional, Price, Qty};
use tt_risk::{Capacity, Exposure, Fault, Gate, InstrumentLimits, Limits, Rate};

use crate::decimal::Decimal;

/// Accounts are numbered below this, so that a slip of the pen does not ask for the memory of 65,536.
const ACCOUNTS_MAX: u16 = 1024;

/// Client ids that are remembered in all: half a gigabyte.
const CLIENT_IDS_MAX: u32 = 1 << 22;

/// Open orders of an account in an instrument that are remembered.
const OWN_ORDERS_MAX: u32 = 4096;

/// A file of limits. Prices and quantities are decimal text, exact.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LimitsFile {
    global_rate: RateEntry,
    /// For how long the client id of an accepted order may not be used again; ten minutes unless told otherwise.
    #[serde(default = "ten_minutes")]
    id_window_ms: u64,
    #[serde(rename = "instrument")]
    instruments: Vec<Instrument>,
    #[serde(rename = "account")]
    accounts: Vec<Account>,
}

/// `{ per-second = 50, burst = 10 }`
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RateEntry {
    per_second: u32,
    burst: u32,
}

/// `[[instrument]]`: numbered in the order of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Instrument {
    pub(super) symbol: String,
    px_decimals: u8,
    qty_decimals: u8,
    collar_bps: u32,
    mark_age_max_ms: u64,
    rate: RateEntry,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Account {
    account: u16,
    rate: RateEntry,
    limits: Vec<LimitsEntry>,
}

/// `[[account.limits]]`; the names are those of [`Limits`].
#[derive(Debug, Deserialize, Serialize)]
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
    /// Whether an order is refused whose client id was used within `id-window-ms`.
    #[serde(default = "on")]
    refuse_duplicate_ids: bool,
    /// Whether an order is refused that would meet an open one of the account.
    #[serde(default = "on")]
    refuse_self_match: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
}

const fn on() -> bool {
    true
}

const fn ten_minutes() -> u64 {
    600_000
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
            enabled: entry.enabled(),
        })
    }
}

impl LimitsEntry {
    /// Every reason but those that are switched off.
    fn enabled(&self) -> Breach {
        let switches = [(self.refuse_duplicate_ids, Breach::DUP_ID), (self.refuse_self_match, Breach::SELF_MATCH)];
        let off = switches.iter().filter(|(is_on, _)| !is_on).map(|(_, reason)| *reason);
        Breach(Limits::CHECKED.0 & !off.fold(Breach::NONE, Breach::union).0)
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
        let (client_ids, own_orders) = (self.client_ids(accounts)?, self.own_orders()?);
        let mut gate = Gate::new(Capacity { accounts, instruments, client_ids, own_orders });
        gate.set_global_rate(self.global_rate.into());
        gate.set_id_window(self.id_window_ms.saturating_mul(1_000_000));
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

    /// As many client ids as the fastest account can use within the window.
    fn client_ids(&self, accounts: u16) -> Result<u32> {
        let within = |rate: RateEntry| {
            let per_window = u128::from(rate.per_second) * u128::from(self.id_window_ms) / 1000;
            per_window + u128::from(rate.burst)
        };
        let ids = self.accounts.iter().map(|account| within(account.rate)).max().unwrap_or(0);
        let total = ids.saturating_mul(accounts.into());
        let mut entries = self.accounts.iter().flat_map(|account| &account.limits);
        ensure!(
            total <= CLIENT_IDS_MAX.into() || !entries.any(|entry| entry.refuse_duplicate_ids),
            "id-window-ms = {}: at the accounts' rates {total} client ids would have to be remembered, more than \
             {CLIENT_IDS_MAX}; shorten the window, lower a rate, or set refuse-duplicate-ids = false",
            self.id_window_ms
        );
        Ok(ids.min(u128::from(CLIENT_IDS_MAX / u32::from(accounts.max(1)))) as u32)
    }

    /// As many as may be open in an instrument by the widest limit.
    fn own_orders(&self) -> Result<u16> {
        let entries = || self.accounts.iter().flat_map(|account| &account.limits);
        let asked = entries().filter(|entry| entry.refuse_self_match).map(|entry| entry.open_orders_max);
        let most = asked.max().unwrap_or(0);
        ensure!(
            most <= OWN_ORDERS_MAX,
            "open-orders-max = {most}: with refuse-self-match at most {OWN_ORDERS_MAX} are remembered"
        );
        let wanted = entries().map(|entry| entry.open_orders_max).max().unwrap_or(0);
        Ok(wanted.min(OWN_ORDERS_MAX) as u16)
    }

    /// The limits in force, as a file of them.
    pub(super) fn text(&self) -> Result<String> {
        toml::to_string(self).context("limits as TOML")
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
        Fault::UnknownOrder => "no order of this client id is open on this side",
        Fault::Full => "there is no room for that",
    })
}
