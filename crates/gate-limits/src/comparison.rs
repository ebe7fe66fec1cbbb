//! What a limits file means, what another one loosens or tightens, and who is beyond it.

use std::collections::{BTreeMap, BTreeSet};

use tt_model::{Breach, Decimal, InstrumentId, sort_short_by};
use tt_risk::money::{Contract, Payoff};
use tt_risk::tree::{Node, NodeLimits, RowLimits};
use tt_risk::{Exposure, Gate, Limits, Rate, Rules};

use super::settings::{AccountRow, MONEY_DECIMALS, Settings};
use super::{Instrument, LimitsFile};

/// Whether a change of a limit lets more orders pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sense {
    /// More orders pass.
    Loosens,
    /// Fewer orders pass.
    Tightens,
    /// Neither follows from the values.
    Changes,
}

/// A value that differs between two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whether more orders pass.
    pub sense: Sense,
    /// When it begins, nanoseconds since the Unix epoch: `None` for at once, else when a temporary limit reverts.
    pub from_ns: Option<u64>,
    /// The node or the instrument.
    pub place: String,
    /// The key of format 2.
    pub key: &'static str,
    /// The value in the old file; `none` without one.
    pub old: String,
    /// The value in the new file.
    pub new: String,
}

/// A node beyond a limit: only orders that reduce pass there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The node and the instrument.
    pub place: String,
    /// The key of the limit.
    pub key: &'static str,
    /// What the node holds.
    pub held: String,
    /// The limit.
    pub limit: String,
}

/// Returns a time, nanoseconds since the Unix epoch, as RFC 3339.
#[must_use]
pub fn utc_text(unix_ns: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(unix_ns);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// In which direction a value lets fewer orders pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tighter {
    Lower,
    Higher,
    Neither,
}

/// A value of a file: `None` is off.
#[derive(Clone, Debug)]
struct Entry {
    key: &'static str,
    value: Option<i128>,
    text: String,
    tighter: Tighter,
}

impl Entry {
    fn new(key: &'static str, tighter: Tighter, value: Option<i128>, text: impl FnOnce(i128) -> String) -> Self {
        Self { key, value, text: value.map_or_else(|| "off".to_owned(), text), tighter }
    }

    fn number(key: &'static str, tighter: Tighter, value: u64) -> Self {
        Self::new(key, tighter, Some(value.into()), |value| value.to_string())
    }

    fn number_or_off(key: &'static str, value: Option<u32>) -> Self {
        Self::new(key, Tighter::Lower, value.map(i128::from), |value| value.to_string())
    }

    fn hundredths_or_off(key: &'static str, value: Option<u32>) -> Self {
        Self::new(key, Tighter::Lower, value.map(i128::from), |value| decimal(value, 2))
    }

    fn money(key: &'static str, value: Option<i64>) -> Self {
        Self::new(key, Tighter::Lower, value.map(i128::from), |value| decimal(value, MONEY_DECIMALS))
    }

    /// A check that may be off.
    fn check(key: &'static str, is_on: bool, word: &str) -> Self {
        Self::new(key, Tighter::Lower, is_on.then_some(0), |_| word.to_owned())
    }

    fn word(key: &'static str, text: String) -> Self {
        Self { key, value: None, text, tighter: Tighter::Neither }
    }

    /// Lots in units of 10^-18, so that files with other units compare.
    fn lots(key: &'static str, tighter: Tighter, lots: i64, of: &Instrument) -> Self {
        Self::units(key, tighter, lots.into(), of.qty_unit, i64::MAX.into())
    }

    fn units(key: &'static str, tighter: Tighter, steps: i128, unit: Decimal, none: i128) -> Self {
        let scale = 10_i128.pow(u32::from(18_u8.saturating_sub(unit.decimals)));
        let value = steps.saturating_mul(unit.mantissa.into()).saturating_mul(scale);
        let text = |_| match steps == none {
            true => "unlimited".to_owned(),
            false => decimal(steps.saturating_mul(unit.mantissa.into()), unit.decimals),
        };
        Self::new(key, tighter, Some(value), text)
    }
}

pub(super) fn decimal(steps: i128, decimals: u8) -> String {
    Decimal::new(i64::try_from(steps).unwrap_or(i64::MAX), decimals).to_string()
}

/// The entries of each place, in the order of their keys.
type Places = BTreeMap<String, Vec<Entry>>;

impl LimitsFile {
    /// Returns every value in force at `now_ns`, by place: keys of format 2 with their text.
    #[must_use]
    pub fn meaning(&self, now_ns: u64) -> BTreeMap<String, Vec<(&'static str, String)>> {
        let row = |entry: Entry| (entry.key, entry.text);
        let mut meaning = BTreeMap::new();
        for (place, entries) in self.places(self.settings_at(now_ns)) {
            meaning.insert(place, entries.into_iter().map(row).collect());
        }
        meaning
    }

    /// Returns every value that `new` changes from `now_ns` on, and those that reverting temporary limits change later.
    #[must_use]
    pub fn changes_to(&self, new: &Self, now_ns: u64) -> Vec<Change> {
        let untils = self.stages.iter().chain(&new.stages).map(|(until_ns, _)| *until_ns);
        let mut later = BTreeSet::new();
        later.extend(untils.filter(|until_ns| (now_ns + 1..u64::MAX).contains(until_ns)));
        let mut found: Vec<Change> = Vec::new();
        for (at_ns, from_ns) in [(now_ns, None)].into_iter().chain(later.into_iter().map(|ns| (ns, Some(ns)))) {
            let (before, after) = (self.places(self.settings_at(at_ns)), new.places(new.settings_at(at_ns)));
            for change in compare(&before, &after) {
                let is_known = |known: &Change| *known == Change { from_ns: known.from_ns, ..change.clone() };
                if !found.iter().any(is_known) {
                    found.push(Change { from_ns, ..change });
                }
            }
        }
        sort_short_by(&mut found, |a, b| (a.from_ns, a.sense, &a.place).cmp(&(b.from_ns, b.sense, &b.place)));
        found
    }

    /// Returns the nodes of `gate` that are beyond these limits at `now_ns`.
    #[must_use]
    pub fn excesses(&self, gate: &Gate, now_ns: u64) -> Vec<Excess> {
        let settings = self.settings_at(now_ns);
        let firm = settings.firm.iter().map(|(instrument, limits)| (Node::Firm, *instrument, *limits));
        let accounts = settings.rows.iter().map(|row| (Node::Account(row.account), row.instrument, row_limits(row)));
        let strategies = settings.routes.iter().map(|(route, limits)| {
            let node = Node::Strategy { account: route.account, strategy: route.strategy };
            (node, route.instrument, *limits)
        });
        let mut found = Vec::new();
        for (node, instrument, limits) in firm.chain(accounts).chain(strategies) {
            let (Some(held), Some(of)) = (gate.held(node, instrument), self.instrument(instrument)) else { continue };
            found.extend(excess_of(&self.row_place(node, of), &held, &limits, of));
        }
        for (node, limits) in &settings.nodes {
            let Some(totals) = gate.totals(*node) else { continue };
            let net = totals.net.iter().map(|net| net.abs()).max().unwrap_or(0);
            for (key, held, most) in [
                ("gross-max", totals.gross, limits.gross_max),
                ("net-max", net, limits.net_max),
                ("open-value-max", totals.open_value, limits.open_value_max),
            ] {
                if let Some(most) = most.filter(|most| held > (*most).into()) {
                    let [held, limit] = [held, most.into()].map(|value| decimal(value, MONEY_DECIMALS));
                    found.push(Excess { place: self.node_place(*node), key, held, limit });
                }
            }
        }
        found
    }

    /// Returns what the file calls `node`.
    #[must_use]
    pub fn node_place(&self, node: Node) -> String {
        match node {
            Node::Firm => "firm".to_owned(),
            Node::Account(account) => format!("account {}", self.names.account(account)),
            Node::Strategy { account, strategy } => {
                format!("account {}: strategy {}", self.names.account(account), self.names.strategy(account, strategy))
            }
        }
    }

    fn row_place(&self, node: Node, of: &Instrument) -> String {
        format!("{}, {}", self.node_place(node), of.symbol)
    }

    fn places(&self, settings: &Settings) -> Places {
        let mut places = Places::new();
        let mut all = rules_entries(&settings.rules);
        all.extend(rate_entries(settings.global_rate));
        places.insert("all accounts".to_owned(), all);
        for ((name, _), limits) in self.names.currencies.iter().skip(1).zip(&settings.currencies) {
            let haircut = Entry::number("haircut-bps", Tighter::Higher, limits.haircut_bps.into());
            let age = Entry::number("age-max-ms", Tighter::Lower, limits.age_max_ns / 1_000_000);
            places.insert(format!("currency {name}"), vec![haircut, age]);
        }
        for (number, of) in (0..).map(InstrumentId).zip(&self.instruments) {
            let row = settings.rows.iter().find(|row| row.instrument == number);
            places.insert(format!("instrument {}", of.symbol), market_entries(of, row.map(|row| &row.limits)));
        }
        self.put_nodes(settings, &mut places);
        for (instrument, limits) in &settings.firm {
            self.put_row(Node::Firm, *instrument, limits, &mut places);
        }
        for row in &settings.rows {
            self.put_row(Node::Account(row.account), row.instrument, &row_limits(row), &mut places);
        }
        for (route, limits) in &settings.routes {
            let node = Node::Strategy { account: route.account, strategy: route.strategy };
            self.put_row(node, route.instrument, limits, &mut places);
        }
        places
    }

    fn put_row(&self, node: Node, instrument: InstrumentId, limits: &RowLimits, places: &mut Places) {
        if let Some(of) = self.instrument(instrument) {
            places.insert(self.row_place(node, of), row_entries(limits, of));
        }
    }

    fn put_nodes(&self, settings: &Settings, places: &mut Places) {
        let accounts = settings.account_rates.iter().map(|(account, rate)| (Node::Account(*account), Some(*rate)));
        let strategies = settings
            .strategy_rates
            .iter()
            .map(|(account, strategy, rate)| (Node::Strategy { account: *account, strategy: *strategy }, Some(*rate)));
        for (node, rate) in [(Node::Firm, None)].into_iter().chain(accounts).chain(strategies) {
            let set = settings.nodes.iter().find(|(of, _)| *of == node).map_or(NodeLimits::OFF, |(_, limits)| *limits);
            let mut entries = node_entries(node, &set);
            entries.extend(rate.into_iter().flat_map(rate_entries));
            places.insert(self.node_place(node), entries);
        }
    }
}

fn row_limits(row: &AccountRow) -> RowLimits {
    let Limits { qty_max, notional_max, position_long_max, position_short_max, .. } = row.limits;
    let Limits { open_qty_max, open_orders_max, .. } = row.limits;
    RowLimits {
        qty_max,
        market_qty_max: row.market_qty_max.unwrap_or(qty_max),
        notional_max,
        position_long_max,
        position_short_max,
        open_qty_max,
        open_orders_max,
    }
}

fn row_entries(limits: &RowLimits, of: &Instrument) -> Vec<Entry> {
    let lots = |key, qty: tt_model::Qty| Entry::lots(key, Tighter::Lower, qty.0, of);
    let unit = Decimal::new(1, of.notional_decimals());
    vec![
        lots("qty-max", limits.qty_max),
        lots("market-qty-max", limits.market_qty_max),
        Entry::units("notional-max", Tighter::Lower, limits.notional_max.0, unit, i128::MAX),
        lots("position-long-max", limits.position_long_max),
        lots("position-short-max", limits.position_short_max),
        lots("open-qty-max", limits.open_qty_max),
        Entry::number("open-orders-max", Tighter::Lower, limits.open_orders_max.into()),
    ]
}

fn node_entries(node: Node, limits: &NodeLimits) -> Vec<Entry> {
    let mut entries = vec![
        Entry::money("gross-max", limits.gross_max),
        Entry::money("net-max", limits.net_max),
        Entry::money("open-value-max", limits.open_value_max),
        Entry::money("daily-loss-max", limits.daily_loss_max),
        Entry::money("drawdown-max", limits.drawdown_max),
    ];
    match node {
        Node::Firm => {}
        Node::Account(_) => entries.extend([
            Entry::check("balance", limits.checks_balance, "checked"),
            Entry::check("margin", limits.checks_margin, "checked"),
            Entry::hundredths_or_off("leverage-max", limits.leverage_max_pct),
            Entry::hundredths_or_off("cancels-per-fill-max", limits.cancels_per_fill_max_pct),
        ]),
        Node::Strategy { .. } => entries.push(Entry::number_or_off("executions-stop", limits.executions_stop)),
    }
    entries
}

fn rate_entries(rate: Rate) -> [Entry; 2] {
    let Rate { per_second, burst } = rate;
    [("rate.per-second", per_second), ("rate.burst", burst)]
        .map(|(key, value)| Entry::number(key, Tighter::Lower, value.into()))
}

fn rules_entries(rules: &Rules) -> Vec<Entry> {
    let ms = |key, tighter, ns: u64| Entry::number(key, tighter, ns / 1_000_000);
    vec![
        ms("id-window-ms", Tighter::Higher, rules.id_window_ns),
        ms("intent-age-max-ms", Tighter::Lower, rules.intent_age_max_ns),
        ms("cancel-repeat-ms", Tighter::Higher, rules.cancel_repeat_ns),
        ms("gap-max-ms", Tighter::Lower, rules.gap_max_ns),
        Entry::number("same-orders-max", Tighter::Lower, rules.same_orders_max.into()),
        ms("same-window-ms", Tighter::Higher, rules.same_window_ns),
        Entry::number("refusal-rate.per-second", Tighter::Lower, rules.refusal_rate.per_second.into()),
        Entry::number("refusal-rate.burst", Tighter::Lower, rules.refusal_rate.burst.into()),
        ms("cancel-window-ms", Tighter::Neither, rules.cancel_window_ns),
        ms("exec-window-ms", Tighter::Higher, rules.exec_window_ns),
        ms("revalue-max-ms", Tighter::Lower, rules.revalue_max_ns),
        ms("equity-age-max-ms", Tighter::Lower, rules.equity_age_max_ns),
    ]
}

fn market_entries(of: &Instrument, limits: Option<&Limits>) -> Vec<Entry> {
    let (market, rules) = (of.all_accounts(), of.rules());
    let mut entries = vec![
        Entry::word("px-unit", of.px_unit.to_string()),
        Entry::word("qty-unit", of.qty_unit.to_string()),
        Entry::number("collar-bps", Tighter::Lower, market.collar_bps.into()),
        Entry::number_or_off("touch-bps", rules.touch_bps),
        Entry::number("trigger-bps", Tighter::Lower, rules.trigger_bps.into()),
        Entry::word("slip-bps", rules.slip_bps.map_or_else(|| "off".to_owned(), |bps| bps.to_string())),
        Entry::number("mark-age-max-ms", Tighter::Lower, market.mark_age_max_ns / 1_000_000),
        Entry::number_or_off("proof-age-max-ms", rules.proof_age_max_ns.map(|ns| (ns / 1_000_000) as u32)),
        Entry::hundredths_or_off("cancels-per-fill-max", rules.cancels_per_fill_max_pct),
        Entry::word("may-be-negative", rules.may_be_negative.to_string()),
        Entry::word("enforces-reduce-only", rules.enforces_reduce_only.to_string()),
        Entry::word("replaces-atomically", rules.replaces_atomically.to_string()),
        Entry::word("contract", contract_text(&of.market.contract)),
    ];
    entries.extend(rate_entries(market.rate));
    if let Some(limits) = limits {
        let unit = Decimal::new(1, of.notional_decimals());
        entries.extend([
            Entry::word("px-step", of.px_text(limits.px_step.0)),
            Entry::word("qty-step", of.qty_text(limits.qty_step.0)),
            Entry::lots("qty-min", Tighter::Higher, limits.qty_min.0, of),
            Entry::units("notional-min", Tighter::Higher, limits.notional_min.0, unit, i128::MAX),
            Entry::check("book-proof", limits.enabled.contains(Breach::BOOK_UNVERIFIED), "required"),
        ]);
    }
    entries
}

fn contract_text(contract: &Contract) -> String {
    let Contract { payoff, value, fee_bps, currency, .. } = contract;
    let kind = match (payoff, contract.spot) {
        (_, Some(_)) => "spot",
        (Payoff::Linear, None) => "linear",
        (Payoff::Inverse, None) => "inverse",
    };
    let margin: Vec<_> =
        contract.brackets.iter().map(|bracket| format!("{}@{}", bracket.bps, bracket.value_max)).collect();
    format!("{kind} {}/{} of currency {currency}, fee {fee_bps} bps, margin {}", value.num, value.den, margin.join(" "))
}

/// Returns what differs; a limit that is missing lets no order pass.
fn compare(before: &Places, after: &Places) -> Vec<Change> {
    let none = Vec::new();
    let mut found = Vec::new();
    for place in before.keys().chain(after.keys().filter(|place| !before.contains_key(*place))) {
        let [old, new] = [before, after].map(|places| places.get(place).unwrap_or(&none));
        let keys = old.iter().chain(new.iter().filter(|entry| old.iter().all(|of| of.key != entry.key)));
        for key in keys.map(|entry| entry.key) {
            let [old, new] = [old, new].map(|entries| entries.iter().find(|entry| entry.key == key));
            found.extend(change_of(place, key, old, new));
        }
    }
    found
}

fn change_of(place: &str, key: &'static str, old: Option<&Entry>, new: Option<&Entry>) -> Option<Change> {
    let text = |entry: Option<&Entry>| entry.map_or_else(|| "none".to_owned(), |entry| entry.text.clone());
    let (sense, tighter) = match (old, new) {
        (Some(old), Some(new)) if old.tighter == Tighter::Neither => {
            if old.text == new.text {
                return None;
            }
            (Sense::Changes, Tighter::Neither)
        }
        (Some(old), Some(new)) => {
            // Off is the widest value.
            let rank = |entry: &Entry| match entry.tighter {
                Tighter::Higher => entry.value.map_or(i128::MAX, i128::saturating_neg),
                Tighter::Lower | Tighter::Neither => entry.value.unwrap_or(i128::MAX),
            };
            match rank(old).cmp(&rank(new)) {
                std::cmp::Ordering::Less => (Sense::Loosens, old.tighter),
                std::cmp::Ordering::Equal => return None,
                std::cmp::Ordering::Greater => (Sense::Tightens, old.tighter),
            }
        }
        (None, Some(new)) => (Sense::Loosens, new.tighter),
        (Some(old), None) => (Sense::Tightens, old.tighter),
        (None, None) => return None,
    };
    let sense = if tighter == Tighter::Neither { Sense::Changes } else { sense };
    Some(Change { sense, from_ns: None, place: place.to_owned(), key, old: text(old), new: text(new) })
}

fn excess_of(place: &str, held: &Exposure, limits: &RowLimits, of: &Instrument) -> Vec<Excess> {
    let [position, buys, sells] = [held.position.0, held.open_buy_qty.0, held.open_sell_qty.0];
    let text = |lots: i64| of.qty_text(lots);
    let lots = [
        ("position-long-max", position.saturating_add(buys), limits.position_long_max.0),
        ("position-short-max", sells.saturating_sub(position), limits.position_short_max.0),
        ("open-qty-max", buys.max(sells), limits.open_qty_max.0),
    ];
    let lots = lots.into_iter().filter(|(_, held, most)| held > most);
    let mut found: Vec<_> = lots
        .map(|(key, held, most)| Excess { place: place.to_owned(), key, held: text(held), limit: text(most) })
        .collect();
    if held.open_orders > limits.open_orders_max {
        let (held, limit) = (held.open_orders.to_string(), limits.open_orders_max.to_string());
        found.push(Excess { place: place.to_owned(), key: "open-orders-max", held, limit });
    }
    found
}
