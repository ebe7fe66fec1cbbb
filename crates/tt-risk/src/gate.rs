//! The gate: the evaluator, the records of single orders, and what is known of accounts and producers.

mod cancels;
mod judgement;
mod life;
mod prefetch;
mod replacement;
mod restore;
mod settings;
mod terms;

use crate::{
    controls::{Controls, KillSwitch, Mode},
    counters::Counters,
    evaluator::Evaluator,
    exposure::Exposure,
    fields::{Fields, Visit},
    instrument::{InstrumentRules, InstrumentState},
    money::Round,
    orders::{Bits, Orders, Record, Reserved},
    rate::{Bucket, Rate},
    tree::{Node, Path, Reserving, Totals, Traded, Tree, Windows, sign},
};
use alloc::{boxed::Box, sync::Arc, vec, vec::Vec};
use tt_model::{InstrumentId, IntentKind, OrderSide, Price, Qty};

/// Sizes of the gate's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Accounts, numbered from 0.
    pub accounts: u16,
    /// Instruments, numbered from 0.
    pub instruments: u32,
    /// Producers of intents, numbered from 0.
    pub producers: u16,
    /// Orders of an account that are open, or whose id is not forgotten yet; each takes about 300 bytes. An order beyond
    /// it is rejected with `CAPACITY`. One more in eight is kept for orders that the gate learns of from reports.
    pub orders: u32,
    /// Executions of all orders that are not forgotten; each takes 64 bytes. When fewer than one in eight is free, orders
    /// are rejected with `CAPACITY`.
    pub executions: u32,
    /// Routes: permissions of a producer, account, strategy and instrument.
    pub routes: u32,
    /// Currencies, numbered from 1, next to the currency of limits, which is 0.
    pub currencies: u16,
}

/// Times that apply to every account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// For how long after the end of an order its client id counts as used, and its executions are remembered.
    pub id_window_ns: u64,
    /// Maximum age of an intent, whatever its time to live.
    pub intent_age_max_ns: u64,
    /// For how long after a cancel the next one of the same order is rejected.
    pub cancel_repeat_ns: u64,
    /// For how long the venue may have executed more than its fills show.
    pub gap_max_ns: u64,
    /// Maximum number of accepted orders of the same route, side, price, quantity and kind within `same_window_ns`.
    pub same_orders_max: u32,
    /// The window of `same_orders_max`, at most `id_window_ns`.
    pub same_window_ns: u64,
    /// Refused intents of a producer; more kill its strategies.
    pub refusal_rate: Rate,
    /// The window of [`NodeLimits::cancels_per_fill_max_pct`](crate::tree::NodeLimits::cancels_per_fill_max_pct) and
    /// [`InstrumentRules::cancels_per_fill_max_pct`].
    pub cancel_window_ns: u64,
    /// The window of [`NodeLimits::executions_stop`](crate::tree::NodeLimits::executions_stop).
    pub exec_window_ns: u64,
    /// Maximum age of the values of positions after a change of their mark.
    pub revalue_max_ns: u64,
    /// Maximum age of an account's equity.
    pub equity_age_max_ns: u64,
}

impl Rules {
    /// Rejects every intent that is not of this nanosecond, and forgets no id.
    const CLOSED: Self = Self {
        id_window_ns: u64::MAX,
        intent_age_max_ns: 0,
        cancel_repeat_ns: 0,
        gap_max_ns: 0,
        same_orders_max: 0,
        same_window_ns: u64::MAX,
        refusal_rate: Rate::UNLIMITED,
        cancel_window_ns: 0,
        exec_window_ns: 0,
        revalue_max_ns: 0,
        equity_age_max_ns: 0,
    };
}

/// An open order of before a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// The strategy.
    pub strategy: u16,
    /// The client id of the order's intent.
    pub client_id: u64,
    /// Limit, market or stop.
    pub kind: IntentKind,
    /// The side.
    pub side: OrderSide,
    /// The limit price; of a market order any.
    pub limit_px: Price,
    /// The order's quantity.
    pub qty: Qty,
    /// The part that was executed.
    pub executed: Qty,
}

/// State of an account.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Orders with a record.
    records: u32,
    /// Whether its orders, executions or positions are in doubt.
    is_doubtful: bool,
}

/// What only the gate knows of an account in an instrument.
#[derive(Clone, Copy, Debug, Default)]
struct RowState {
    /// Open orders that were counted and not named yet.
    unnamed: u32,
}

/// What has changed of an order since its last [`settle_all`](Gate::settle_all), beyond what it reserves.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    traded: Option<Traded>,
    /// The change of the number of open orders.
    opened: i32,
}

/// Refused intents of a producer.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    rate: Bucket,
    /// The generation of the modes after the last kill.
    killed_in: Option<u32>,
}

/// A pre-trade gate: limits, exposures and orders of every account in every instrument.
#[derive(Debug)]
pub struct Gate {
    capacity: Capacity,
    core: Evaluator,
    orders: Orders,
    rows: Box<[RowState]>,
    tree: Tree,
    /// By account; the last is for unknown accounts.
    accounts: Box<[Account]>,
    /// By producer: the next sequence number.
    next_seqs: Box<[u64]>,
    /// By producer.
    refusals: Box<[Refusals]>,
    /// By instrument: its cancels and fills.
    messages: Box<[Windows]>,
    /// Modes that the gate has set and that were not polled yet.
    mode_changes: Vec<(KillSwitch, Mode)>,
    /// By instrument; the last is for unknown instruments.
    instruments: Box<[InstrumentRules]>,
    /// By instrument; the last is for unknown instruments.
    states: Box<[InstrumentState]>,
    /// By instrument: the epoch of its mark.
    mark_epochs: Box<[u32]>,
    /// Number of faults of the clock, and the time after the last one: earlier marks are not new.
    epoch: u32,
    fault_ns: u64,
    last_ns: u64,
    /// The latest time that was seen. Ids, executions and gaps have their times on it, so that none returns when the clock
    /// goes back.
    horizon_ns: u64,
    rules: Rules,
    /// Whether the caller cannot record what the gate does.
    is_journal_lost: bool,
}

impl Gate {
    /// Creates a gate that rejects every order. Only this function allocates.
    ///
    /// # Panics
    /// The tables do not fit into the address space.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let core = Evaluator::new(capacity.accounts, capacity.instruments);
        let rows = core.rows.len();
        let ordered = u64::from(capacity.orders) * u64::from(capacity.accounts);
        let records = ordered + ordered / 8 + 1;
        let records = u32::try_from(records).ok().filter(|records| *records < 1 << 30);
        let instruments = capacity.instruments as usize + 1;
        Self {
            capacity,
            orders: Orders::new(rows, records.expect("fewer than 2^30 orders"), capacity.executions),
            core,
            rows: vec![RowState::default(); rows].into_boxed_slice(),
            tree: Tree::new(capacity.accounts, capacity.instruments, capacity.routes, capacity.currencies),
            accounts: vec![Account::default(); usize::from(capacity.accounts) + 1].into_boxed_slice(),
            next_seqs: vec![1; usize::from(capacity.producers)].into_boxed_slice(),
            refusals: vec![Refusals { rate: Bucket::CLOSED, killed_in: None }; usize::from(capacity.producers)]
                .into_boxed_slice(),
            messages: vec![Windows::default(); capacity.instruments as usize].into_boxed_slice(),
            // In one event losses may reduce every node, and refusals kill every strategy.
            mode_changes: Vec::with_capacity(usize::from(capacity.accounts) + 2 * capacity.routes as usize + 1),
            instruments: vec![InstrumentRules::default(); instruments].into_boxed_slice(),
            states: vec![InstrumentState::Unknown; instruments].into_boxed_slice(),
            mark_epochs: vec![0; instruments].into_boxed_slice(),
            epoch: 0,
            fault_ns: 0,
            last_ns: 0,
            horizon_ns: 0,
            rules: Rules::CLOSED,
            is_journal_lost: false,
        }
    }

    /// Returns the kill switches and the version of the limits, for other threads.
    #[must_use]
    pub fn controls(&self) -> Arc<Controls> {
        self.core.controls()
    }

    /// Returns the counts of verdicts and reports since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        self.core.counters()
    }

    /// Calls `see` with every word of the gate's state in a fixed order, which depends on the capacity alone: a gate of the
    /// same capacity whose words are replaced by them is the same gate. The other argument is the word's column in a row
    /// of a table, from 1, or 0. Returns whether every word is a value that its field can have; else the gate is of no use.
    pub fn visit(&mut self, see: &mut dyn FnMut(usize, &mut u64)) -> bool {
        let mut fields = Fields::new(see);
        Visit::visit(self, &mut fields);
        fields.is_sound
    }

    /// Returns whether the orders, executions or positions of `account` are in doubt.
    #[must_use]
    pub fn is_doubtful(&self, account: u16) -> bool {
        self.accounts.get(usize::from(account)).is_some_and(|account| account.is_doubtful)
    }

    /// Returns the exposure of `account` in `instrument`; `None` outside the capacity.
    #[must_use]
    pub fn exposure(&self, account: u16, instrument: InstrumentId) -> Option<Exposure> {
        self.core.exposure(account, instrument)
    }

    /// Returns what a node holds in money; `None` for an unknown node, and while the value of a position is not known.
    #[must_use]
    pub fn totals(&self, node: Node) -> Option<Totals> {
        self.tree.nodes[self.tree.node(node)?].totals()
    }

    /// Calls `see` with the client id of each open order of `account` in `instrument`.
    pub fn open_orders(&self, account: u16, instrument: InstrumentId, mut see: impl FnMut(u64)) {
        let (row, _) = self.core.row_index(account, instrument);
        let mut next = self.orders.first_open(row);
        while let Some(slot) = next {
            see(self.orders.records[slot as usize].client_id);
            next = self.orders.next_open(slot);
        }
    }

    /// Returns the open order of `account` under `client_id`, with its instrument.
    #[must_use]
    pub fn open_order(&self, account: u16, client_id: u64) -> Option<(InstrumentId, OpenOrder)> {
        let slot = self.orders.find(self.horizon_ns, account, client_id)?;
        let record = &self.orders.records[slot as usize];
        let order = OpenOrder {
            strategy: record.strategy,
            client_id,
            kind: record.kind,
            side: record.side,
            limit_px: Price(record.limit_px),
            qty: Qty(record.qty),
            executed: Qty(record.executed),
        };
        record.is_open().then_some((record.instrument, order))
    }

    /// Advances the gate's clock to `now_ns`: forgets old ids, and doubts accounts that lack executions. Every evaluation
    /// and every report does so too; an idle gate needs it from time to time.
    pub fn pass_time(&mut self, now_ns: u64) {
        if now_ns < self.last_ns {
            (self.epoch, self.fault_ns) = (self.epoch.wrapping_add(1), now_ns);
        }
        self.last_ns = now_ns;
        self.horizon_ns = self.horizon_ns.max(now_ns);
        let horizon_ns = self.horizon_ns;
        while let Some(slot) = self.orders.poll_gap(horizon_ns) {
            let account = self.orders.records[slot as usize].account;
            self.doubt(account);
        }
        let accounts = &mut self.accounts;
        self.orders.clean(horizon_ns, |account| accounts[usize::from(account)].records -= 1);
        self.tree.sweep(now_ns, &self.core);
        self.watch_losses();
    }

    /// The clock has stood still for a time that is not known, as in a suspend of the machine: marks of before may be older
    /// than they look. Orders have the reason `CLOCK_FAULT` until the instrument has a mark of `now_ns` or later.
    pub fn suspect_clock(&mut self, now_ns: u64) {
        self.pass_time(now_ns);
        (self.epoch, self.fault_ns) = (self.epoch.wrapping_add(1), now_ns);
    }

    /// Returns whether positions have other values than marks and rates say. Each event values some of them; where no order
    /// comes, [`pass_time`](Self::pass_time) does until this is false.
    #[must_use]
    pub const fn has_old_values(&self) -> bool {
        self.tree.has_old_values()
    }

    /// Puts nodes whose losses exceed a limit into reduce mode.
    fn watch_losses(&mut self) {
        while let Some(index) = self.tree.poll_touched() {
            if self.tree.nodes[index as usize].watch_losses() {
                self.reduce(self.tree.node_at(index));
            }
        }
    }

    /// Marks the account as in doubt.
    fn doubt(&mut self, account: u16) {
        let account = self.core.account_index(account);
        self.accounts[account].is_doubtful = true;
    }

    /// Returns the rows of the record at `slot` in the tree.
    fn path(&self, slot: u32) -> Path {
        let record = &self.orders.records[slot as usize];
        self.tree.path(record.account, record.instrument, record.route)
    }

    /// Adds `record` of `row` and what it reserves; `None` without room.
    fn add_record(&mut self, row: usize, record: &Record) -> Option<u32> {
        let slot = self.orders.add(row, record)?;
        let account = self.core.account_index(record.account);
        self.accounts[account].records += 1;
        self.settle_all(row, slot, Since { traded: None, opened: i32::from(record.is_open()) });
        Some(slot)
    }

    /// Brings sums and queues up to date after a change of the record at `slot`.
    fn settle(&mut self, row: usize, slot: u32) {
        self.settle_all(row, slot, Since::default());
    }

    /// As [`settle`](Self::settle), also after a [`trade`](Self::trade) and after a change of the number of open orders.
    fn settle_all(&mut self, row: usize, slot: u32, since: Since) {
        self.reserve(row, slot, since);
        self.orders.update_gap(slot, self.horizon_ns.saturating_add(self.rules.gap_max_ns));
        let record = &self.orders.records[slot as usize];
        let is_settled = record.gap() == 0 && !record.bits.has(Bits::UNKNOWN_TERMS);
        if !record.is_open() && is_settled && !record.bits.has(Bits::END_QUEUED) {
            self.orders.keep_until(slot, self.horizon_ns.saturating_add(self.rules.id_window_ns));
        }
    }

    /// Counts what the record at `slot` reserves at each node.
    fn reserve(&mut self, row: usize, slot: u32, Since { traded, opened }: Since) {
        let record = &self.orders.records[slot as usize];
        let contract = &self.tree.contracts[record.instrument.0 as usize];
        let (side, lots, value) = (record.side, record.reserved(), record.reserved_value(contract));
        let hold = contract.hold(side, lots, value);
        let (account, currency) = (record.account, contract.held_currency(side));
        let before = core::mem::replace(&mut self.orders.counted[slot as usize], Reserved { lots, value, hold });
        let state = &mut self.core.rows[row].state;
        state.reserve(side, before.lots, lots);
        state.open_orders = state.open_orders.saturating_add_signed(opened);
        if hold != before.hold
            && let Some(balance) = self.tree.balance(account, currency)
        {
            balance.holds += hold - before.hold;
        }
        let path = self.path(slot);
        let change = Reserving { before: before.lots, lots, value: value - before.value, orders: opened, traded };
        self.tree.reserve(path, side, &change);
    }

    /// Moves the position by `lots` of `side`, negative to undo them, at `px`; the caller settles what this returns.
    fn trade(&mut self, row: usize, slot: u32, side: OrderSide, [lots, px, fee]: [i64; 3]) -> Traded {
        let state = &mut self.core.rows[row].state;
        // A position that leaves the range is not in question: fills are checked before.
        state.position = state.moved(side, lots).unwrap_or(state.position);
        let record = &self.orders.records[slot as usize];
        let (account, contract) = (record.account, &self.tree.contracts[record.instrument.0 as usize]);
        let lots = sign(side) * lots;
        // Without a value the trade counts as the largest loss.
        let cash = contract.profit(px, -lots).unwrap_or((-i64::MAX).into()) - i128::from(fee);
        if let Some(spot) = contract.spot {
            let base = spot.per_lot.times(lots.into(), Round::Down).unwrap_or((-i64::MAX).into());
            for (currency, change) in [(contract.currency, cash), (spot.base, base)] {
                if let Some(balance) = self.tree.balance(account, currency) {
                    balance.total = balance.total.saturating_add(change);
                }
            }
        }
        Traded { lots, cash }
    }
}

crate::fields::visit!(Capacity: accounts, instruments, producers, orders, executions, routes, currencies);
crate::fields::visit!(
    Rules: id_window_ns, intent_age_max_ns, cancel_repeat_ns, gap_max_ns, same_orders_max, same_window_ns, refusal_rate,
    cancel_window_ns, exec_window_ns, revalue_max_ns, equity_age_max_ns
);
crate::fields::visit!(Account: records, is_doubtful);
crate::fields::visit!(RowState: unnamed);
crate::fields::visit!(Refusals: rate, killed_in);
crate::fields::visit!(
    Gate: capacity, core, orders, rows, tree, accounts, next_seqs, refusals, messages, mode_changes, instruments, states,
    mark_epochs, epoch, fault_ns, last_ns, horizon_ns, rules, is_journal_lost
);
