//! Limits of the pre-trade gate in TOML, and the gate that they make.
//!
//! [`LimitsFile::read`] reads a file of either format, [`LimitsFile::gate`] creates a gate with its limits, and
//! [`LimitsFile::changes_to`] says what another file would change. `risk_gate` runs the gate; this crate is separate so
//! that only code that runs for each order is optimised for speed.

#![forbid(unsafe_code)]

mod comparison;
mod format_1;
mod format_2;
mod settings;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};
use tt_model::{Decimal, InstrumentId, Notional, OrderSide, Price, Qty};
use tt_risk::money::Conversion;
use tt_risk::tree::{Node, Route, RowLimits};
use tt_risk::{Gate, GateError, InstrumentLimits, InstrumentRules, Limits, Mark, Rate};

pub use comparison::{Change, Excess, Sense, utc_text};
use settings::{Market, Settings};

/// The one producer of a file's intents.
const PRODUCER: u16 = 0;

/// A file of limits. Prices and quantities are exact decimal text.
///
/// Its limits follow from the time: temporary ones revert by themselves.
#[derive(Clone, Debug)]
pub struct LimitsFile {
    /// The file with its defaults.
    text: String,
    hash: [u8; 32],
    version: Option<u32>,
    /// By id.
    instruments: Vec<Instrument>,
    names: Names,
    /// Each until a time, in nanoseconds since the Unix epoch; the last for ever.
    stages: Vec<(u64, Settings)>,
    /// By instrument: the currency, with its decimals, whose rate the instrument's marks set.
    rated: Vec<Option<(u16, u8)>>,
    warnings: Vec<String>,
}

/// Two files are the same if their texts are.
impl PartialEq for LimitsFile {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

const fn route_node(route: &Route) -> Node {
    Node::Strategy { account: route.account, strategy: route.strategy }
}

/// The names of numbers. A file of format 1 has numbers only.
#[derive(Clone, Debug, Default)]
struct Names {
    accounts: BTreeMap<u16, String>,
    strategies: BTreeMap<(u16, u16), String>,
    /// By number: its name and decimals.
    currencies: Vec<(String, u8)>,
}

impl Names {
    fn account(&self, account: u16) -> String {
        self.accounts.get(&account).cloned().unwrap_or_else(|| account.to_string())
    }

    /// Returns the number and the decimals of the currency with `name`.
    fn currency(&self, name: &str) -> Option<(u16, u8)> {
        let mut numbered = (0..).zip(&self.currencies);
        numbered.find(|(_, (of, _))| of == name).map(|(number, (_, decimals))| (number, *decimals))
    }

    /// Returns the currency of the base of `symbol`, where limits count its quote.
    fn base(&self, symbol: &str) -> Option<(u16, u8)> {
        let (base, quote) = symbol.split_once('/')?;
        let base = base.rsplit_once(':').map_or(base, |(_, base)| base);
        self.currency(base).filter(|(number, _)| *number > 0 && quote == self.currencies[0].0)
    }

    fn strategy(&self, account: u16, strategy: u16) -> String {
        self.strategies.get(&(account, strategy)).cloned().unwrap_or_else(|| strategy.to_string())
    }
}

/// Returns the currency, with its decimals, whose rate each of `instruments` sets: the base of its symbol.
fn rated(instruments: &[Instrument], names: &Names) -> Vec<Option<(u16, u8)>> {
    let mut found: Vec<Option<(u16, u8)>> = Vec::with_capacity(instruments.len());
    for of in instruments {
        let currency = names.base(&of.symbol).filter(|base| !found.contains(&Some(*base)));
        found.push(currency);
    }
    found
}

/// An instrument of a limits file.
#[derive(Clone, Debug)]
pub struct Instrument {
    /// The instrument's symbol in the file and in events.
    pub symbol: String,
    /// What a price, and a quantity, counts.
    px_unit: Decimal,
    qty_unit: Decimal,
    market: Market,
}

impl Instrument {
    /// Returns the price `text` in price steps.
    ///
    /// # Errors
    /// `text` is not a decimal number of at most the instrument's price decimals.
    pub fn px(&self, text: &str) -> Result<Price> {
        Ok(Price(units(text, self.px_unit)?))
    }

    /// Returns the quantity `text` in lots.
    ///
    /// # Errors
    /// `text` is not a decimal number of at most the instrument's quantity decimals.
    pub fn qty(&self, text: &str) -> Result<Qty> {
        Ok(Qty(units(text, self.qty_unit)?))
    }

    fn notional(&self, text: &str) -> Result<Notional> {
        Ok(Notional(i128::from(units(text, Decimal::new(1, self.notional_decimals()))?)))
    }

    const fn notional_decimals(&self) -> u8 {
        self.px_unit.decimals.saturating_add(self.qty_unit.decimals)
    }

    /// Returns how many price steps `tick` is; `None` if it is no multiple of them.
    #[must_use]
    pub fn px_steps_of(&self, tick: Decimal) -> Option<i64> {
        let scaled = |of: Decimal, decimals: u8| {
            10_i128.checked_pow(decimals.into()).and_then(|power| power.checked_mul(of.mantissa.into()))
        };
        let (tick, unit) = (scaled(tick, self.px_unit.decimals)?, scaled(self.px_unit, tick.decimals)?);
        let steps = tick.checked_div(unit).filter(|steps| steps * unit == tick)?;
        i64::try_from(steps).ok().filter(|steps| *steps > 0)
    }

    /// Returns `px`, in price steps, as decimal text.
    #[must_use]
    pub fn px_text(&self, px: i64) -> String {
        Decimal::new(px.saturating_mul(self.px_unit.mantissa), self.px_unit.decimals).to_string()
    }

    /// Returns a notional as decimal text; saturates.
    #[must_use]
    pub fn notional_text(&self, notional: i128) -> String {
        let steps = i64::try_from(notional).unwrap_or(i64::MAX);
        Decimal::new(steps, self.notional_decimals()).to_string()
    }

    /// Returns the notional of `lots` at `px` price steps, rounded up; saturates.
    #[must_use]
    pub fn notional_of(&self, px: i64, lots: i64) -> i128 {
        let notional = self.market.contract.notional_up(px, lots);
        notional.and_then(|notional| i128::try_from(notional).ok()).unwrap_or(i128::MAX)
    }

    /// Returns `lots` as decimal text.
    #[must_use]
    pub fn qty_text(&self, lots: i64) -> String {
        Decimal::new(lots.saturating_mul(self.qty_unit.mantissa), self.qty_unit.decimals).to_string()
    }

    /// Returns what a price of one counts.
    #[must_use]
    pub const fn px_unit(&self) -> Decimal {
        self.px_unit
    }

    /// Returns what a lot counts.
    #[must_use]
    pub const fn qty_unit(&self) -> Decimal {
        self.qty_unit
    }

    /// Returns the limits that apply in all accounts.
    #[must_use]
    pub const fn all_accounts(&self) -> InstrumentLimits {
        self.market.limits
    }

    /// Returns the number of the currency that an order of `side` holds.
    #[must_use]
    pub const fn held_currency(&self, side: OrderSide) -> u16 {
        match (side, self.market.contract.spot) {
            (OrderSide::Sell, Some(spot)) => spot.base,
            _ => self.market.contract.currency,
        }
    }

    /// Returns the rules that apply in all accounts.
    #[must_use]
    pub const fn rules(&self) -> InstrumentRules {
        self.market.rules
    }
}

/// Returns how many of `unit` are in `text`, exactly.
fn units(text: &str, unit: Decimal) -> Result<i64> {
    let steps = Decimal::steps(text, unit.decimals);
    let steps =
        steps.with_context(|| format!("`{text}` is not a decimal number with at most {} decimals", unit.decimals))?;
    ensure!(steps % unit.mantissa == 0, "`{text}` is no multiple of {unit}");
    Ok(steps / unit.mantissa)
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

    /// Reads limits from TOML: format 2 if the file has the key `format`, else format 1.
    ///
    /// # Errors
    /// `text` is not TOML, has an unknown, missing or repeated key, or limits that contradict each other; the error
    /// names the line, and both values.
    pub fn parse(text: &str) -> Result<Self> {
        if format_2::has_format(text) {
            return format_2::parse(text);
        }
        let document = format_1::Document::parse(text)?;
        let instruments = document.instruments()?;
        let settings = document.settings(&instruments)?;
        let text = document.text()?;
        Ok(Self {
            hash: Sha256::digest(text.as_bytes()).into(),
            text,
            version: None,
            rated: vec![None; instruments.len()],
            instruments,
            names: Names { currencies: vec![(String::new(), settings::MONEY_DECIMALS)], ..Names::default() },
            stages: vec![(u64::MAX, settings)],
            warnings: vec!["format 1: it has no version; format 2 has one".to_owned()],
        })
    }

    /// Returns the instrument with `symbol`, and its id.
    ///
    /// # Errors
    /// No instrument has that symbol.
    pub fn find(&self, symbol: &str) -> Result<(InstrumentId, &Instrument)> {
        let mut numbered = (0..).zip(&self.instruments);
        let found = numbered.find(|(_, instrument)| instrument.symbol == symbol);
        let (number, instrument) = found.with_context(|| format!("no instrument `{symbol}`"))?;
        Ok((InstrumentId(number), instrument))
    }

    /// Returns the instrument with `id`.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(id.0 as usize)
    }

    /// Returns the symbol of each instrument, by id.
    #[must_use]
    pub fn symbols(&self) -> Vec<String> {
        self.instruments.iter().map(|instrument| instrument.symbol.clone()).collect()
    }

    /// Returns the number of the account with a name, or with that number.
    #[must_use]
    pub fn account(&self, name: &str) -> Option<u16> {
        let named = self.names.accounts.iter().find(|(_, of)| *of == name).map(|(number, _)| *number);
        named.or_else(|| name.parse().ok())
    }

    /// Returns the number of the strategy with a name, or with that number. A strategy's switch is its number, whatever
    /// its account.
    #[must_use]
    pub fn strategy(&self, name: &str) -> Option<u16> {
        let named = self.names.strategies.iter().find(|(_, of)| *of == name).map(|((_, number), _)| *number);
        named.or_else(|| name.parse().ok())
    }

    /// Returns the number and the decimals of the currency with `name`.
    ///
    /// # Errors
    /// The file has no such currency.
    pub fn currency(&self, name: &str) -> Result<(u16, u8)> {
        self.names.currency(name).with_context(|| format!("no currency `{name}`"))
    }

    /// Returns an amount of a currency as decimal text.
    #[must_use]
    pub fn amount_text(&self, currency: u16, amount: i128) -> String {
        let decimals = self.names.currencies.get(usize::from(currency)).map_or(settings::MONEY_DECIMALS, |of| of.1);
        comparison::decimal(amount, decimals)
    }

    /// Returns the number of the currency with `name`, and its rate: `text` is the price of one in the currency of limits.
    ///
    /// # Errors
    /// The file has no such currency, it is the currency of limits, or `text` is not a positive decimal number.
    pub fn conversion(&self, name: &str, text: &str, now_ns: u64) -> Result<(u16, Conversion)> {
        let (currency, decimals) = self.currency(name)?;
        ensure!(currency > 0, "{name} is the currency of limits");
        let rate = settings::exact_rate(text, decimals).with_context(|| format!("`{text}` is not a rate"))?;
        Ok((currency, Conversion { rate, ts_ns: now_ns }))
    }

    /// Returns the rate that a verified mark of `instrument` sets: that of the base of its symbol, as of BTC in `BTC/USDT`
    /// where limits count USDT. Of several instruments with a base the first one counts; a venue in front of the symbol
    /// (`venue:BTC/USDT`) has no meaning.
    #[must_use]
    pub fn rate_of(&self, instrument: InstrumentId, mark: &Mark) -> Option<(u16, Conversion)> {
        let index = instrument.0 as usize;
        let (of, (currency, decimals)) = (self.instruments.get(index)?, (*self.rated.get(index)?)?);
        if !mark.is_verified || mark.ref_px.0 <= 0 {
            return None;
        }
        let price = u128::from(mark.ref_px.0.unsigned_abs()) * u128::from(of.px_unit.mantissa.unsigned_abs());
        let rate = settings::rate_of(price, of.px_unit.decimals, decimals)?;
        Some((currency, Conversion { rate, ts_ns: mark.ts_ns }))
    }

    /// Returns the number of the currency with `name`, and the amount `text` in its smallest steps.
    ///
    /// # Errors
    /// The file has no such currency, or `text` has more decimals than it.
    pub fn amount(&self, name: &str, text: &str) -> Result<(u16, i64)> {
        let (currency, decimals) = self.currency(name)?;
        Ok((currency, units(text, Decimal::new(1, decimals))?))
    }

    /// Returns the amount `text` in steps of the currency of limits.
    ///
    /// # Errors
    /// `text` has more decimals than money.
    pub fn money(&self, text: &str) -> Result<i64> {
        units(text, Decimal::new(1, settings::MONEY_DECIMALS))
    }

    /// Returns the version: `None` for a file of format 1.
    #[must_use]
    pub const fn version(&self) -> Option<u32> {
        self.version
    }

    /// Returns the SHA-256 of the text.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Returns the SHA-256 of the text in hexadecimal.
    #[must_use]
    pub fn hash_text(&self) -> String {
        self.hash.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Returns what deserves a second look.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the limits in force at `now_ns`, nanoseconds since the Unix epoch.
    fn settings_at(&self, now_ns: u64) -> &Settings {
        let stage = self.stages.iter().find(|(until_ns, _)| now_ns < *until_ns);
        // The last one has no end.
        &stage.unwrap_or(&self.stages[self.stages.len() - 1]).1
    }

    /// Returns the time after `now_ns` at which temporary limits revert; `u64::MAX` if none does.
    #[must_use]
    pub fn next_revert_ns(&self, now_ns: u64) -> u64 {
        self.stages.iter().map(|(until_ns, _)| *until_ns).find(|until_ns| now_ns < *until_ns).unwrap_or(u64::MAX)
    }

    /// Creates a gate with these limits at time 0, whose instruments are open.
    ///
    /// # Errors
    /// The gate rejects a limit.
    pub fn gate(&self) -> Result<Gate> {
        let mut gate = Gate::new(self.stages[0].1.capacity);
        self.apply(&mut gate, 0)?;
        Ok(gate)
    }

    /// Checks that these limits can replace those of `gate`, which `before` has made.
    ///
    /// # Errors
    /// The version is not the one after that of the gate, an instrument has another number or other units, or the gate
    /// has no room: the error names both values. Nothing changes.
    pub fn check_successor(&self, before: &Self, gate: &Gate, now_ns: u64) -> Result<()> {
        let running = gate.controls().limits_version();
        if let Some(version) = self.version {
            let next = running.wrapping_add(1);
            ensure!(version == next, "version = {version}: the running one is {running}, the next one is {next}");
        }
        for (number, (old, new)) in before.instruments.iter().zip(&self.instruments).enumerate() {
            ensure!(
                old.symbol == new.symbol,
                "instrument {number} is {} and would be {}: begin another gate",
                old.symbol,
                new.symbol
            );
            for (what, old, new) in [("price", old.px_unit, new.px_unit), ("quantity", old.qty_unit, new.qty_unit)] {
                ensure!(
                    old == new,
                    "{}: the unit of a {what} is {old} and would be {new}",
                    self.instruments[number].symbol
                );
            }
        }
        let (had, has) = (before.instruments.len(), self.instruments.len());
        ensure!(
            had <= has,
            "{has} instruments, the running limits have {had}: an instrument may lose its limits, not its number"
        );
        for (old, new) in before.names.currencies.iter().zip(&self.names.currencies) {
            ensure!(old == new || old.0.is_empty(), "currency {} would be {}: begin another gate", old.0, new.0);
        }
        self.settings_at(now_ns)
            .check_fit(gate, |id| self.instrument(id).map_or_else(String::new, |of| of.symbol.clone()))
    }

    /// Replaces all limits of `gate` by those in force at `now_ns`; returns their version.
    ///
    /// # Errors
    /// Those of the gate, which [`check_successor`](Self::check_successor) excludes.
    pub fn apply(&self, gate: &mut Gate, now_ns: u64) -> Result<u32, GateError> {
        let running = gate.controls().limits_version();
        self.settings_at(now_ns).apply(gate)?;
        match self.version {
            // After changes of single limits, a revert does not go back.
            Some(version) => gate.set_limits_version(version.max(running)),
            // A new gate of format 1 counts its settings.
            None if running > 0 => gate.set_limits_version(running.wrapping_add(1)),
            None => {}
        }
        Ok(gate.controls().limits_version())
    }

    /// Returns the limits of `account` in `instrument` at `now_ns`.
    #[must_use]
    pub fn limits_of(&self, account: u16, instrument: InstrumentId, now_ns: u64) -> Option<Limits> {
        let rows = &self.settings_at(now_ns).rows;
        rows.iter().find(|row| (row.account, row.instrument) == (account, instrument)).map(|row| row.limits)
    }

    /// Returns the nodes above and below accounts that have limits in `instrument` while no temporary limit has reverted.
    #[must_use]
    pub fn levels_in(&self, instrument: InstrumentId) -> Vec<Node> {
        let Settings { firm, routes, .. } = self.settings_at(0);
        let firm = firm.iter().filter(|(id, _)| *id == instrument).map(|_| Node::Firm);
        let strategies =
            routes.iter().filter(|(route, _)| route.instrument == instrument).map(|(route, _)| route_node(route));
        firm.chain(strategies).collect()
    }

    /// Returns the limits of the firm, or of a strategy, in `instrument` at `now_ns`.
    #[must_use]
    pub fn level_limits(&self, node: Node, instrument: InstrumentId, now_ns: u64) -> Option<RowLimits> {
        let Settings { firm, routes, .. } = self.settings_at(now_ns);
        let firm = firm.iter().map(|(id, limits)| (Node::Firm, *id, *limits));
        let strategies = routes.iter().map(|(route, limits)| (route_node(route), route.instrument, *limits));
        let mut all = firm.chain(strategies);
        all.find(|(of, id, _)| (*of, *id) == (node, instrument)).map(|(_, _, limits)| limits)
    }

    /// Returns the message rate of `account` while no temporary limit has reverted.
    #[must_use]
    pub fn account_rate(&self, account: u16) -> Option<Rate> {
        let rates = &self.settings_at(0).account_rates;
        rates.iter().find(|(number, _)| *number == account).map(|(_, rate)| *rate)
    }

    /// Returns the limits, with the defaults of format 1, as TOML that [`LimitsFile::read`] reads.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
