//! Firm, accounts and strategies.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use tt_model::{Breach, InstrumentId, Notional, Price, Qty, sort_short_by_key};
use tt_risk::tree::{Node, NodeLimits, Route, RowLimits};
use tt_risk::{Limits, Rate};

use super::super::settings::AccountRow;
use super::super::{Instrument, Names, PRODUCER};
use super::Steps;
use super::block::{Block, Moment};
use super::limits::{Money, Row, hundredths_or_off};

/// Rows of a node, by instrument.
type Rows = BTreeMap<u32, Row>;

/// The nodes of a file.
pub(super) struct Tree {
    pub(super) names: Names,
    pub(super) firm: Vec<(InstrumentId, RowLimits)>,
    pub(super) account_rates: Vec<(u16, Rate)>,
    pub(super) rows: Vec<AccountRow>,
    pub(super) routes: Vec<(Route, RowLimits)>,
    pub(super) strategy_rates: Vec<(u16, u16, Rate)>,
    pub(super) nodes: Vec<(Node, NodeLimits)>,
    pub(super) warnings: Vec<String>,
}

/// The instruments of a file, by number.
type Market<'a> = (&'a [Instrument], &'a [Steps]);

/// A node that contains others.
struct Parent {
    money: Money,
    rows: Rows,
}

impl Tree {
    pub(super) fn read(root: &mut Block<'_>, of: Market<'_>, names: Names, moment: &mut Moment) -> Result<Self> {
        let mut tree = Self {
            names,
            firm: Vec::new(),
            account_rates: Vec::new(),
            rows: Vec::new(),
            routes: Vec::new(),
            strategy_rates: Vec::new(),
            nodes: Vec::new(),
            warnings: Vec::new(),
        };
        let Some(mut block) = root.table("firm", "firm")? else {
            return Err(root.error(root.line, "`firm` is missing"));
        };
        block.take_temporary(moment)?;
        let money = Money::read(&mut block)?;
        let rows = rows(&mut block, of, moment, |_, _| Ok(()))?;
        block.finish()?;
        for (number, (instrument, steps)) in (0..).zip(of.0.iter().zip(of.1)) {
            ensure!(
                rows.contains_key(&number),
                "line {}: instrument {}: the firm has no limits in it",
                steps.line,
                instrument.symbol
            );
        }
        tree.nodes.push((Node::Firm, money.limits()));
        tree.firm = rows.iter().map(|(number, row)| (InstrumentId(*number), row.limits())).collect();
        if money.has_no_net() {
            tree.warnings.push("firm: net-max is off".to_owned());
        }
        let firm = Parent { money, rows };
        let mut lines = BTreeMap::new();
        for (name, block) in root.tables("account", |name| format!("account {name}"))? {
            tree.account((name, block), of, &firm, (&mut lines, moment))?;
        }
        ensure!(!tree.account_rates.is_empty(), "line 1: no account");
        sort_short_by_key(&mut tree.account_rates, |(account, _)| *account);
        Ok(tree)
    }

    fn account(
        &mut self,
        (name, mut block): (&str, Block<'_>),
        of: Market<'_>,
        firm: &Parent,
        (lines, moment): (&mut BTreeMap<u16, usize>, &mut Moment),
    ) -> Result<()> {
        let account: u16 = block.narrow("number")?;
        ensure!(account < super::ACCOUNTS_MAX, block.error(block.line, format!("number = {account} is above 1023")));
        if let Some(before) = lines.insert(account, block.line) {
            return Err(block.error(block.line, format!("number = {account} is that of line {before} too")));
        }
        self.names.accounts.insert(account, name.to_owned());
        block.take_temporary(moment)?;
        let money = Money::read(&mut block)?;
        money.check_within(&firm.money)?;
        self.account_rates.push((account, block.rate("rate")?));
        let limits = NodeLimits {
            checks_balance: block.word("balance", &["off", "checked"])? == 1,
            checks_margin: block.word("margin", &["off", "checked"])? == 1,
            leverage_max_pct: hundredths_or_off(&mut block, "leverage-max")?,
            cancels_per_fill_max_pct: hundredths_or_off(&mut block, "cancels-per-fill-max")?,
            ..money.limits()
        };
        self.warn_of_account(name, &money, &limits);
        self.nodes.push((Node::Account(account), limits));
        let mut positions = BTreeMap::new();
        let rows = rows(&mut block, of, moment, |number, block| {
            let position = block.optional_text("position")?;
            let lots = position.map_or(Ok(0), |text| {
                let lots = of.0[number as usize].qty(&text.text);
                lots.map(|lots| lots.0).map_err(|error| block.error(text.line, format!("position: {error}")))
            });
            positions.insert(number, lots?);
            Ok(())
        })?;
        for (number, row) in &rows {
            if let Some(parent) = firm.rows.get(number) {
                row.check_within(parent)?;
            }
            let position = positions.get(number).copied().unwrap_or(0);
            self.rows.push(account_row(
                account,
                *number,
                (row, &of.1[*number as usize], &of.0[*number as usize]),
                position,
            )?);
        }
        let parent = Parent { money, rows };
        let strategies = block.tables("strategy", |strategy| format!("account {name}: strategy {strategy}"))?;
        let mut numbers = BTreeMap::new();
        for (strategy, block) in strategies {
            self.strategy(account, (strategy, block), of, &parent, (&mut numbers, moment))?;
        }
        for (number, row) in &parent.rows {
            let has_route =
                self.routes.iter().any(|(route, _)| (route.account, route.instrument.0) == (account, *number));
            if !has_route {
                self.warnings.push(format!("{}: no strategy may trade it", row.place));
            }
        }
        block.finish()
    }

    fn warn_of_account(&mut self, name: &str, money: &Money, limits: &NodeLimits) {
        for (is_off, key) in [
            (money.has_no_net(), "net-max"),
            (!limits.checks_balance, "balance"),
            (!limits.checks_margin, "margin"),
            (limits.leverage_max_pct.is_none(), "leverage-max"),
            (limits.cancels_per_fill_max_pct.is_none(), "cancels-per-fill-max"),
        ] {
            if is_off {
                self.warnings.push(format!("account {name}: {key} is off"));
            }
        }
    }

    fn strategy(
        &mut self,
        account: u16,
        (name, mut block): (&str, Block<'_>),
        of: Market<'_>,
        parent: &Parent,
        (numbers, moment): (&mut BTreeMap<u16, usize>, &mut Moment),
    ) -> Result<()> {
        let strategy: u16 = block.narrow("number")?;
        if let Some(before) = numbers.insert(strategy, block.line) {
            return Err(block.error(block.line, format!("number = {strategy} is that of line {before} too")));
        }
        let mut others =
            self.names.strategies.iter().filter(|((_, number), other)| *number == strategy && *other != name);
        if let Some(((_, _), other)) = others.next() {
            self.warnings
                .push(format!("{}: a kill of strategy {other} kills it too: number = {strategy}", block.place));
        }
        self.names.strategies.insert((account, strategy), name.to_owned());
        block.take_temporary(moment)?;
        let money = Money::read(&mut block)?;
        money.check_within(&parent.money)?;
        let executions_stop = Some(block.narrow("executions-stop")?);
        let node = Node::Strategy { account, strategy };
        self.nodes.push((node, NodeLimits { executions_stop, ..money.limits() }));
        self.strategy_rates.push((account, strategy, block.rate("rate")?));
        let rows = rows(&mut block, of, moment, |_, _| Ok(()))?;
        ensure!(!rows.is_empty(), block.error(block.line, "no limits in any instrument"));
        for (number, row) in rows {
            let Some(above) = parent.rows.get(&number) else {
                anyhow::bail!("line {}: {}: the account has no limits in it", row.line, row.place);
            };
            row.check_within(above)?;
            let route = Route { producer: PRODUCER, account, strategy, instrument: InstrumentId(number) };
            self.routes.push((route, row.limits()));
        }
        block.finish()
    }
}

/// Reads `limits` of a node: a table for each instrument.
fn rows(
    block: &mut Block<'_>,
    (instruments, steps): Market<'_>,
    moment: &mut Moment,
    mut more: impl FnMut(u32, &mut Block<'_>) -> Result<()>,
) -> Result<Rows> {
    let place = block.place.clone();
    let mut rows = Rows::new();
    for (symbol, mut block) in block.tables("limits", |symbol| format!("{place}, {symbol}"))? {
        let found = (0..).zip(instruments).find(|(_, of)| of.symbol == symbol);
        let Some((number, of)) = found else {
            return Err(block.error(block.line, format!("no instrument `{symbol}`")));
        };
        block.take_temporary(moment)?;
        let row = Row::read(&mut block, of, steps[number as usize].qty_step)?;
        more(number, &mut block)?;
        block.finish()?;
        rows.insert(number, row);
    }
    Ok(rows)
}

fn account_row(account: u16, number: u32, of: (&Row, &Steps, &Instrument), position: i64) -> Result<AccountRow> {
    let (row, steps, instrument) = of;
    let RowLimits { qty_max, market_qty_max, notional_max, position_long_max, .. } = row.limits();
    let RowLimits { position_short_max, open_qty_max, open_orders_max, .. } = row.limits();
    let error = |line: usize, text: String| anyhow::anyhow!("line {line}: {}: {text}", row.place);
    let least = instrument.qty_text(steps.qty_min);
    ensure!(
        steps.qty_min <= qty_max.0,
        error(row.qty_max().line, format!("qty-min = {least} is above qty-max = {}", instrument.qty_text(qty_max.0)))
    );
    let [least, most] = [steps.notional_min, notional_max.0].map(|value| instrument.notional_text(value));
    ensure!(
        steps.notional_min <= notional_max.0,
        error(row.notional_max().line, format!("notional-min = {least} is above notional-max = {most}"))
    );
    let unproved = if steps.needs_proof { Breach::NONE } else { Breach::BOOK_UNVERIFIED };
    let limits = Limits {
        px_step: Price(steps.px_step),
        qty_step: Qty(steps.qty_step),
        qty_min: Qty(steps.qty_min),
        qty_max,
        notional_min: Notional(steps.notional_min),
        notional_max,
        position_long_max,
        position_short_max,
        open_qty_max,
        open_orders_max,
        enabled: Breach(Limits::CHECKED.0 & !unproved.0),
    };
    limits.check().map_err(|refused| error(row.line, refused.to_string()))?;
    let instrument = InstrumentId(number);
    Ok(AccountRow { account, instrument, limits, market_qty_max: Some(market_qty_max), position: Qty(position) })
}
