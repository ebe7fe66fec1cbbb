//! Format 2 of limits files: a version, named nodes, every limit written, `"off"` where a check may be off.

mod block;
mod contract;
mod limits;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, ensure};
use block::{Block, Lines, Moment};
use sha2::{Digest as _, Sha256};
use toml::de::DeTable;
use tt_model::{Decimal, sort_short_by_key};
use tt_risk::money::CurrencyLimits;
use tt_risk::{Capacity, InstrumentLimits, InstrumentRules, Rules};

use super::settings::{ACCOUNTS_MAX, MONEY_DECIMALS, Market, ORDERS_MAX, Settings, executions, stored_orders};
use super::{Instrument, LimitsFile, Names};
use tree::Tree;

/// What an instrument asks of each order, next to the limits of the nodes.
#[derive(Debug)]
struct Steps {
    px_step: i64,
    qty_step: i64,
    qty_min: i64,
    notional_min: i128,
    needs_proof: bool,
    /// Line of the instrument.
    line: usize,
}

/// Returns whether `text` names its format: files of format 1 do not.
pub(super) fn has_format(text: &str) -> bool {
    DeTable::parse_recoverable(text).0.get_ref().contains_key("format")
}

/// Reads a file of format 2.
///
/// # Errors
/// A key is unknown, missing or repeated, or limits contradict each other; the error names the line, and both values.
pub(super) fn parse(text: &str) -> Result<LimitsFile> {
    let lines = Lines::of(text);
    let document = DeTable::parse(text).map_err(|error| {
        let line = lines.at(error.span().map_or(0, |span| span.start));
        anyhow!("line {line}: {}", error.message())
    })?;
    let table = document.get_ref();
    let mut moment = Moment { at_ns: 0, untils: BTreeSet::new() };
    let first = File::read(Block::root(&lines, table), &mut moment)?;
    let untils: Vec<_> = moment.untils.iter().copied().collect();
    let mut file = LimitsFile {
        hash: Sha256::digest(text.as_bytes()).into(),
        text: text.to_owned(),
        version: Some(first.version),
        rated: super::rated(&first.instruments, &first.names),
        instruments: first.instruments,
        names: first.names,
        stages: Vec::with_capacity(untils.len() + 1),
        warnings: first.warnings,
    };
    let mut settings = first.settings;
    for until_ns in untils {
        file.stages.push((until_ns, settings));
        let mut moment = Moment { at_ns: until_ns, untils: BTreeSet::new() };
        settings = File::read(Block::root(&lines, table), &mut moment)?.settings;
    }
    file.stages.push((u64::MAX, settings));
    Ok(file)
}

/// A file as it is at one time.
struct File {
    version: u32,
    instruments: Vec<Instrument>,
    names: Names,
    settings: Settings,
    warnings: Vec<String>,
}

impl File {
    fn read(mut root: Block<'_>, moment: &mut Moment) -> Result<Self> {
        let format: u32 = root.narrow("format")?;
        ensure!(format == 2, root.error(root.line, format!("format = {format} is not 2")));
        let version: u32 = root.narrow("version")?;
        ensure!(version > 0, root.error(root.line, "version = 0 is below 1"));
        let (names, currencies) = currencies(&mut root)?;
        let (instruments, steps) = instruments(&mut root, &names)?;
        let rules = rules(&mut root)?;
        let global_rate = root.rate("rate")?;
        let tree = Tree::read(&mut root, (&instruments, &steps), names, moment)?;
        let capacity = capacity(&mut root, (&tree, &rules), [instruments.len(), currencies.len()])?;
        root.finish()?;
        let Tree { names, firm, account_rates, rows, routes, strategy_rates, nodes, mut warnings } = tree;
        let unproved = instruments.iter().zip(&steps).filter(|(_, steps)| !steps.needs_proof);
        warnings.extend(unproved.map(|(of, _)| format!("{}: book-proof is off: unverified books pass", of.symbol)));
        let settings = Settings {
            capacity,
            global_rate,
            rules,
            markets: instruments.iter().map(|of| of.market).collect(),
            currencies,
            firm,
            account_rates,
            rows,
            routes,
            strategy_rates,
            nodes,
        };
        Ok(Self { version, instruments, names, settings, warnings })
    }
}

/// Reads the currency of limits, which is number 0, and the others.
fn currencies(root: &mut Block<'_>) -> Result<(Names, Vec<CurrencyLimits>)> {
    let of_limits = root.text("currency-of-limits")?;
    let mut found = Vec::new();
    for (name, mut block) in root.tables("currency", |name| format!("currency {name}"))? {
        if name == of_limits.text {
            let error = format!("a conversion into itself: it is currency-of-limits, in line {}", of_limits.line);
            return Err(block.error(block.line, error));
        }
        let number: u16 = block.narrow("number")?;
        let decimals: u8 = block.narrow("decimals")?;
        let most = Decimal::DECIMALS_MAX;
        ensure!(decimals <= most, block.error(block.line, format!("decimals = {decimals} is above {most}")));
        let limits = CurrencyLimits { haircut_bps: block.bps("haircut-bps")?, age_max_ns: block.ms("age-max-ms")? };
        found.push((usize::from(number), block.line, (name.to_owned(), decimals, limits)));
        block.finish()?;
    }
    let found = in_order(found, 1, "currency")?;
    let mut names = Names { currencies: vec![(of_limits.text, MONEY_DECIMALS)], ..Names::default() };
    names.currencies.extend(found.iter().map(|(name, decimals, _)| (name.clone(), *decimals)));
    Ok((names, found.into_iter().map(|(.., limits)| limits).collect()))
}

/// Returns what has the numbers from `first` on, each once.
fn in_order<T>(mut found: Vec<(usize, usize, T)>, first: usize, what: &str) -> Result<Vec<T>> {
    sort_short_by_key(&mut found, |(number, line, _)| (*number, *line));
    for (expected, pair) in (first..).zip(found.windows(2)) {
        let [(before, first_line, _), (number, line, _)] = pair else { continue };
        ensure!(number != before, "line {line}: {what}: number = {number} is that of line {first_line} too");
        ensure!(*before == expected, "line {first_line}: {what}: number = {before}, and none has {expected}");
    }
    if let Some((number, line, _)) = found.last() {
        let expected = first + found.len() - 1;
        ensure!(*number == expected, "line {line}: {what}: number = {number}, and none has {expected}");
    }
    Ok(found.into_iter().map(|(.., value)| value).collect())
}

fn instruments(root: &mut Block<'_>, names: &Names) -> Result<(Vec<Instrument>, Vec<Steps>)> {
    let mut found = Vec::new();
    for (symbol, mut block) in root.tables("instrument", |symbol| format!("instrument {symbol}"))? {
        let number = block.narrow::<u32>("number")? as usize;
        let line = block.line;
        found.push((number, line, instrument(symbol, &mut block, names)?));
        block.finish()?;
    }
    ensure!(!found.is_empty(), "line 1: no instrument");
    Ok(in_order(found, 0, "instrument")?.into_iter().unzip())
}

fn instrument(symbol: &str, block: &mut Block<'_>, names: &Names) -> Result<(Instrument, Steps)> {
    let (px_unit, qty_unit) = (unit(block, "px-unit")?, unit(block, "qty-unit")?);
    let needs_proof = block.word("book-proof", &["off", "required"])? == 1;
    let proof_age_max_ms = block.number_or_off("proof-age-max-ms")?;
    if let Some(ms) = proof_age_max_ms.filter(|_| !needs_proof) {
        return Err(block.error(block.line, format!("proof-age-max-ms = {ms}, and book-proof = \"off\"")));
    }
    let rules = InstrumentRules {
        slip_bps: block.bps_or_off("slip-bps")?,
        touch_bps: block.bps_or_off("touch-bps")?,
        trigger_bps: block.bps("trigger-bps")?,
        may_be_negative: block.flag("may-be-negative")?,
        enforces_reduce_only: block.flag("enforces-reduce-only")?,
        replaces_atomically: block.flag("replaces-atomically")?,
        cancels_per_fill_max_pct: limits::hundredths_or_off(block, "cancels-per-fill-max")?,
        proof_age_max_ns: proof_age_max_ms.map(|ms| u64::from(ms) * 1_000_000),
    };
    let limits = InstrumentLimits {
        collar_bps: block.bps("collar-bps")?,
        mark_age_max_ns: block.ms("mark-age-max-ms")?,
        rate: block.rate("rate")?,
    };
    let contract = contract::read(block, (px_unit, qty_unit), names)?;
    let market = Market { limits, rules, contract };
    let of = Instrument { symbol: symbol.to_owned(), px_unit, qty_unit, market };
    let positive = |block: &mut Block<'_>, key, read: &dyn Fn(&str) -> Result<i64>| {
        let text = block.text(key)?;
        let steps = read(&text.text).map_err(|error| block.error(text.line, format!("{key}: {error}")))?;
        ensure!(steps > 0, block.error(text.line, format!("{key} = {} is not above zero", text.text)));
        Ok(steps)
    };
    let px_step = positive(block, "px-step", &|text| Ok(of.px(text)?.0))?;
    let qty_step = positive(block, "qty-step", &|text| Ok(of.qty(text)?.0))?;
    let qty_min = limits::lots(block, "qty-min", (&of, qty_step))?;
    ensure!(qty_min.value > 0, block.error(qty_min.line, "qty-min = 0 is below one lot"));
    let notional_min = limits::notional(block, "notional-min", &of)?.value;
    let qty_min = qty_min.value as i64;
    let steps = Steps { px_step, qty_step, qty_min, notional_min, needs_proof, line: block.line };
    Ok((of, steps))
}

/// Returns the unit that prices or quantities count.
fn unit(block: &mut Block<'_>, key: &'static str) -> Result<Decimal> {
    let text = block.text(key)?;
    let unit = text.positive().map_err(|error| block.error(text.line, error))?.lowest();
    ensure!(unit.decimals <= 9, block.error(text.line, format!("{key} = {} has more than 9 decimals", text.text)));
    Ok(unit)
}

fn rules(root: &mut Block<'_>) -> Result<Rules> {
    let rules = Rules {
        id_window_ns: root.ms("id-window-ms")?,
        intent_age_max_ns: root.ms("intent-age-max-ms")?,
        cancel_repeat_ns: root.ms("cancel-repeat-ms")?,
        gap_max_ns: root.ms("gap-max-ms")?,
        same_orders_max: root.narrow("same-orders-max")?,
        same_window_ns: root.ms("same-window-ms")?,
        refusal_rate: root.rate("refusal-rate")?,
        cancel_window_ns: root.ms("cancel-window-ms")?,
        exec_window_ns: root.ms("exec-window-ms")?,
        revalue_max_ns: root.ms("revalue-max-ms")?,
        equity_age_max_ns: root.ms("equity-age-max-ms")?,
    };
    let [same, ids] = [rules.same_window_ns, rules.id_window_ns].map(|ns| ns / 1_000_000);
    ensure!(same <= ids, root.error(root.line, format!("same-window-ms = {same} is above id-window-ms = {ids}")));
    Ok(rules)
}

/// Returns the sizes of the tables: what the file needs, or more where `[capacity]` says so.
fn capacity(root: &mut Block<'_>, of: (&Tree, &Rules), [instruments, currencies]: [usize; 2]) -> Result<Capacity> {
    let (tree, rules) = of;
    let orders_of = |(account, rate): &(u16, tt_risk::Rate)| {
        let rows = tree.rows.iter().filter(|row| row.account == *account);
        let open = rows.map(|row| u128::from(row.limits.open_orders_max)).sum();
        stored_orders(*rate, rules.id_window_ns / 1_000_000, open)
    };
    let orders = tree.account_rates.iter().map(orders_of).max().unwrap_or(0);
    let accounts = tree.account_rates.iter().map(|(account, _)| u64::from(*account) + 1).max().unwrap_or(0);
    let mut needed = [
        ("accounts", accounts),
        ("instruments", instruments as u64),
        ("currencies", currencies as u64),
        ("routes", tree.routes.len() as u64),
        ("orders", u64::try_from(orders).unwrap_or(u64::MAX)),
    ];
    if let Some(mut block) = root.table("capacity", "capacity")? {
        for (key, least) in &mut needed {
            let Some(room) = block.optional_number(key)? else { continue };
            ensure!(
                room >= *least,
                block.error(block.line, format!("{key} = {room} is below {least}, which the file needs"))
            );
            *least = room;
        }
        block.finish()?;
    }
    let [accounts, instruments, currencies, routes, orders] = needed.map(|(_, size)| size);
    ensure!(accounts <= ACCOUNTS_MAX.into(), "{accounts} accounts are more than {ACCOUNTS_MAX}");
    let total = orders.saturating_mul(accounts);
    ensure!(
        total <= ORDERS_MAX.into(),
        root.error(
            root.line,
            format!(
                "the accounts' rates, id-window-ms and open-orders-max need {total} stored orders, more than {ORDERS_MAX}"
            )
        )
    );
    let orders = u32::try_from(orders)?;
    Ok(Capacity {
        accounts: u16::try_from(accounts)?,
        instruments: u32::try_from(instruments)?,
        producers: 1,
        orders,
        executions: executions(orders, u16::try_from(accounts)?),
        routes: u32::try_from(routes)?,
        currencies: u16::try_from(currencies)?,
    })
}
