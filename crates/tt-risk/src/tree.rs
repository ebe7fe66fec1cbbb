//! The tree of firm, accounts and strategies: what each node holds in each instrument, and its limits.

mod judge;
mod node;
mod reserving;
mod room;
mod worth;

pub(crate) use judge::{Ask, Said, Unseen, Witness};
pub use node::{Finding, Node, NodeLimits, Route, RowLimits, Totals};
pub(crate) use node::{NodeState, Windows};
pub(crate) use reserving::{Reserving, Traded};
pub(crate) use room::{Reach, Room};

use crate::{
    evaluator::Evaluator,
    index::{Index, NIL, Queue, hash},
    limits::Limits,
    money::{Contract, Conversion, CurrencyLimits},
};
use alloc::{boxed::Box, vec, vec::Vec};
use tt_model::{InstrumentId, OrderSide};
use tt_simd::{prefetch, prefetch_lines};
use worth::Worth;

/// What a node holds in an instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) position: i64,
    /// Reserved lots of buys and sells.
    pub(crate) open_qty: [i64; 2],
    pub(crate) open_orders: u32,
    /// Value of the reserved lots, at their own prices.
    pub(crate) reserved: i128,
    /// Money from trades, less fees.
    pub(crate) cash: i128,
    /// Whether profit is counted: from the first mark after a restored position on.
    pub(crate) is_based: bool,
}

/// A node in an instrument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) limits: RowLimits,
    pub(crate) held: Held,
    worth: Worth,
    pub(crate) node: u32,
    pub(crate) instrument: u32,
    /// The next row of the instrument.
    next: u32,
    /// Of a route: its producer, and whether the row has limits.
    pub(crate) producer: u16,
    pub(crate) strategy: u16,
    pub(crate) is_set: bool,
}

/// The rows of an order, or of a position: firm, account, and strategy or [`NIL`].
pub(crate) type Path = [u32; 3];

/// The mark at which rows are valued.
#[derive(Clone, Copy, Debug)]
struct Price {
    px: i64,
    /// The value of a lot at `px` where [`Contract::lot_value`] knows it, else zero.
    lot: i64,
    is_fresh: bool,
    is_queued: bool,
}

#[derive(Clone, Copy, Debug)]
struct Currency {
    conversion: Option<Conversion>,
    limits: CurrencyLimits,
    is_fresh: bool,
}

/// A venue's total of a currency, and what open orders hold of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balance {
    pub(crate) total: i128,
    pub(crate) holds: i128,
}

/// Every node with its rows.
#[derive(Debug)]
pub(crate) struct Tree {
    accounts: u16,
    instruments: u32,
    /// Of the firm by instrument, of accounts by account and instrument, of strategies by route.
    pub(crate) rows: Box<[Row]>,
    rows_len: u32,
    /// The firm, accounts, strategies.
    pub(crate) nodes: Box<[NodeState]>,
    nodes_len: u32,
    routes: Index,
    pub(crate) contracts: Box<[Contract]>,
    prices: Box<[Price]>,
    currencies: Box<[Currency]>,
    /// By account and currency.
    pub(crate) balances: Box<[Balance]>,
    /// Instruments whose rows are to be valued again, and the next row of the first. The firm's row is the first one.
    queue: Queue,
    cursor: u32,
    /// Rows that are left of a pass over all rows, and the next instrument or currency whose age is looked at.
    pass_left: u32,
    age_cursor: u32,
    behind_since: Option<u64>,
    /// Nodes whose profit may have changed.
    touched: Vec<u32>,
}

impl Tree {
    pub(crate) fn new(accounts: u16, instruments: u32, routes: u32, currencies: u16) -> Self {
        let own = instruments as usize * (1 + usize::from(accounts));
        let rows = own + routes as usize;
        let nodes = 1 + usize::from(accounts) + routes as usize;
        let row = |index: usize| {
            let instrument = (index % (instruments as usize).max(1)) as u32;
            let node = if index < own { (index / (instruments as usize).max(1)) as u32 } else { NIL };
            let next = index + instruments as usize;
            Row {
                limits: RowLimits::NONE,
                held: Held { is_based: true, ..Held::default() },
                worth: Worth::ZERO,
                node,
                instrument,
                next: if next < own { next as u32 } else { NIL },
                producer: 0,
                strategy: 0,
                is_set: false,
            }
        };
        let price = Price { px: 0, lot: 0, is_fresh: false, is_queued: false };
        let limits = CurrencyLimits { haircut_bps: 0, age_max_ns: 0 };
        Self {
            accounts,
            instruments,
            rows: (0..rows).map(row).collect(),
            rows_len: own as u32,
            nodes: vec![NodeState::NEW; nodes].into_boxed_slice(),
            nodes_len: 1 + u32::from(accounts),
            routes: Index::new(rows),
            contracts: vec![Contract::default(); instruments as usize].into_boxed_slice(),
            prices: vec![price; instruments as usize].into_boxed_slice(),
            currencies: vec![Currency { conversion: None, limits, is_fresh: false }; usize::from(currencies)]
                .into_boxed_slice(),
            balances: vec![Balance::default(); usize::from(accounts) * (1 + usize::from(currencies))]
                .into_boxed_slice(),
            queue: Queue::new(instruments as usize),
            cursor: NIL,
            pass_left: 0,
            age_cursor: 0,
            behind_since: None,
            touched: Vec::with_capacity(nodes),
        }
    }

    /// Returns the rows of the firm and of `account` in `instrument`, both known, and the strategy's row.
    pub(crate) fn path(&self, account: u16, instrument: InstrumentId, strategy_row: u32) -> Path {
        [instrument.0, self.instruments * (1 + u32::from(account)) + instrument.0, strategy_row]
    }

    /// Returns the row of the strategy, [`NIL`] without a route.
    pub(crate) fn route(&self, account: u16, strategy: u16, instrument: InstrumentId) -> u32 {
        let is_it = |row: &u32| {
            let of = &self.rows[*row as usize];
            of.instrument == instrument.0 && of.strategy == strategy && self.account_of(of.node) == Some(account)
        };
        self.routes.chain(route_hash(account, strategy, instrument)).find(is_it).unwrap_or(NIL)
    }

    /// Asks for what is known of the instrument, for the rows of firm and account, and for the way to the strategy's row.
    pub(crate) fn prefetch(&self, account: u16, strategy: u16, instrument: InstrumentId) {
        let [firm, account_row, _] = self.path(account, instrument, NIL);
        self.prefetch_row(firm);
        self.prefetch_row(account_row);
        prefetch_lines(&self.contracts[instrument.0 as usize]);
        prefetch(&self.prices[instrument.0 as usize]);
        self.routes.prefetch(route_hash(account, strategy, instrument));
    }

    /// Asks for a row, if there is one.
    pub(crate) fn prefetch_row(&self, row: u32) {
        if let Some(row) = self.rows.get(row as usize) {
            prefetch_lines(row);
        }
    }

    fn account_of(&self, node: u32) -> Option<u16> {
        self.nodes.get(node as usize).map(|node| node.account)
    }

    /// Returns the index of `node`.
    pub(crate) fn node(&self, node: Node) -> Option<usize> {
        match node {
            Node::Firm => Some(0),
            Node::Account(account) => (account < self.accounts).then(|| 1 + usize::from(account)),
            Node::Strategy { account, strategy } => {
                let first = 1 + usize::from(self.accounts);
                let mut strategies = (first..self.nodes_len as usize).filter(|index| {
                    let of = &self.nodes[*index];
                    (of.account, of.strategy) == (account, strategy)
                });
                strategies.next()
            }
        }
    }

    /// Returns the node at `index`.
    pub(crate) fn node_at(&self, index: u32) -> Node {
        let of = &self.nodes[index as usize];
        match index {
            0 => Node::Firm,
            _ if index <= u32::from(self.accounts) => Node::Account(index as u16 - 1),
            _ => Node::Strategy { account: of.account, strategy: of.strategy },
        }
    }

    /// Adds a route, or replaces its limits and producer; `None` without room.
    pub(crate) fn set_route(&mut self, route: &Route, limits: &RowLimits) -> Option<()> {
        let Route { producer, account, strategy, instrument } = *route;
        let known = self.route(account, strategy, instrument);
        let index = if known == NIL { self.add_route(route)? } else { known };
        let row = &mut self.rows[index as usize];
        (row.limits, row.producer, row.is_set) = (*limits, producer, true);
        Some(())
    }

    fn add_route(&mut self, route: &Route) -> Option<u32> {
        let Route { account, strategy, instrument, .. } = *route;
        let index = self.rows_len;
        if index as usize >= self.rows.len() {
            return None;
        }
        let node = match self.node(Node::Strategy { account, strategy }) {
            Some(node) => node as u32,
            None => {
                let node = self.nodes_len;
                self.nodes_len += 1;
                self.nodes[node as usize] = NodeState { account, strategy, ..NodeState::NEW };
                node
            }
        };
        self.rows_len += 1;
        // Behind the firm's row, which is the first.
        let first = instrument.0 as usize;
        let next = core::mem::replace(&mut self.rows[first].next, index);
        let row = &mut self.rows[index as usize];
        (row.node, row.instrument, row.strategy, row.next) = (node, instrument.0, strategy, next);
        self.routes.insert(route_hash(account, strategy, instrument), index);
        Some(index)
    }

    /// Returns the number of routes that can still be added.
    pub(crate) const fn routes_left(&self) -> u32 {
        self.rows.len() as u32 - self.rows_len
    }

    /// Returns the routes: producer and strategy.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (u16, u16)> {
        let own = self.instruments as usize * (1 + usize::from(self.accounts));
        self.rows[own..self.rows_len as usize].iter().map(|row| (row.producer, row.strategy))
    }

    pub(crate) fn set_firm_limits(&mut self, instrument: InstrumentId, limits: &RowLimits) {
        let row = &mut self.rows[instrument.0 as usize];
        (row.limits, row.is_set) = (*limits, true);
    }

    pub(crate) fn set_account_limits(&mut self, account: u16, instrument: InstrumentId, limits: &Limits) {
        let [_, row, _] = self.path(account, instrument, NIL);
        let row = &mut self.rows[row as usize];
        row.is_set = true;
        row.limits = RowLimits {
            qty_max: limits.qty_max,
            market_qty_max: limits.qty_max,
            notional_max: limits.notional_max,
            position_long_max: limits.position_long_max,
            position_short_max: limits.position_short_max,
            open_qty_max: limits.open_qty_max,
            open_orders_max: limits.open_orders_max,
        };
    }

    /// Returns whether nothing was ever held in `instrument`.
    pub(crate) fn is_unused(&self, instrument: InstrumentId) -> bool {
        let held = &self.rows[instrument.0 as usize].held;
        (held.position, held.open_orders, held.cash, held.open_qty) == (0, 0, 0, [0; 2])
    }

    /// Returns the balance of `account` in `currency`.
    pub(crate) fn balance(&mut self, account: u16, currency: u16) -> Option<&mut Balance> {
        let index = self.balance_index(account, currency)?;
        self.balances.get_mut(index)
    }

    fn balance_index(&self, account: u16, currency: u16) -> Option<usize> {
        let currencies = self.currencies.len() + 1;
        let is_known = usize::from(currency) < currencies;
        is_known.then(|| usize::from(account) * currencies + usize::from(currency))
    }

    /// Changes what every row of `path` holds, and values it.
    pub(crate) fn change(&mut self, path: Path, mut change: impl FnMut(&mut Held)) {
        for index in path.into_iter().filter(|index| *index != NIL) {
            change(&mut self.rows[index as usize].held);
            self.value(index);
        }
    }

    /// A new mark of `instrument`: zero for none.
    pub(crate) fn set_price(&mut self, instrument: InstrumentId, px: i64, now_ns: u64) {
        let price = &mut self.prices[instrument.0 as usize];
        price.px = px;
        price.lot = self.contracts[instrument.0 as usize].lot_value(px).unwrap_or(0);
        self.enqueue(instrument.0, now_ns);
    }

    fn enqueue(&mut self, instrument: u32, now_ns: u64) {
        let price = &mut self.prices[instrument as usize];
        if !price.is_queued {
            price.is_queued = true;
            if self.queue.front().is_none() {
                self.cursor = instrument;
            }
            self.queue.push(instrument);
            self.behind_since.get_or_insert(now_ns);
        }
    }

    /// Values rows again whose mark, rate or age has changed: at most a fixed number of them.
    pub(crate) fn sweep(&mut self, now_ns: u64, core: &Evaluator) {
        self.look_at_ages(now_ns, core);
        if self.behind_since.is_some() {
            self.catch_up(now_ns, core);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, now_ns: u64, core: &Evaluator) {
        let mut left = ROWS_PER_EVENT;
        while let Some(instrument) = self.queue.front() {
            let price = &mut self.prices[instrument as usize];
            price.is_fresh = price.px > 0 && !core.markets[instrument as usize].is_stale(now_ns);
            while self.cursor != NIL {
                if left == 0 {
                    return;
                }
                left -= 1;
                let row = self.cursor;
                self.cursor = self.rows[row as usize].next;
                self.value(row);
            }
            self.prices[instrument as usize].is_queued = false;
            self.queue.pop();
            self.cursor = self.queue.front().unwrap_or(NIL);
        }
        while self.pass_left > 0 {
            if left == 0 {
                return;
            }
            left -= 1;
            self.pass_left -= 1;
            if self.pass_left < self.rows_len {
                self.value(self.pass_left);
            }
        }
        self.behind_since = None;
    }

    fn look_at_ages(&mut self, now_ns: u64, core: &Evaluator) {
        let aged = self.instruments + self.currencies.len() as u32;
        for _ in 0..AGES_PER_EVENT.min(aged) {
            let at = self.age_cursor;
            self.age_cursor = if at + 1 < aged { at + 1 } else { 0 };
            if at < self.instruments {
                let price = &self.prices[at as usize];
                let is_fresh = price.px > 0 && !core.markets[at as usize].is_stale(now_ns);
                if is_fresh != price.is_fresh {
                    self.enqueue(at, now_ns);
                }
                continue;
            }
            let currency = &mut self.currencies[(at - self.instruments) as usize];
            let is_fresh = currency.is_usable(now_ns);
            if is_fresh != currency.is_fresh {
                currency.is_fresh = is_fresh;
                self.pass_again(now_ns);
            }
        }
    }

    pub(crate) fn pass_again(&mut self, now_ns: u64) {
        self.pass_left = self.rows_len;
        self.behind_since.get_or_insert(now_ns);
    }

    /// Returns whether rows wait to be valued again.
    pub(crate) const fn has_old_values(&self) -> bool {
        self.behind_since.is_some()
    }

    /// Returns whether the values of rows are older than `max_ns`.
    pub(crate) fn is_behind(&self, now_ns: u64, max_ns: u64) -> bool {
        self.behind_since.is_some_and(|since| now_ns.saturating_sub(since) > max_ns)
    }

    /// Begins a day.
    pub(crate) fn start_day(&mut self) {
        for index in 0..self.nodes_len {
            self.nodes[index as usize].start_day();
            self.nodes[index as usize].room = Room::NONE;
            self.touch(index);
        }
    }

    /// Has the losses of the node at `index` compared with their limits.
    pub(crate) fn touch(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        if !node.is_touched {
            node.is_touched = true;
            self.touched.push(index);
        }
    }

    /// Returns the next node whose profit may have changed, while every row has its present value.
    pub(crate) fn poll_touched(&mut self) -> Option<u32> {
        if self.behind_since.is_some() {
            return None;
        }
        let index = self.touched.pop()?;
        self.nodes[index as usize].is_touched = false;
        Some(index)
    }

    /// Sets what a currency is worth, and for how long.
    pub(crate) fn set_conversion(&mut self, currency: u16, conversion: &Conversion, now_ns: u64) -> Option<()> {
        let currency = self.currencies.get_mut(usize::from(currency).checked_sub(1)?)?;
        currency.conversion = Some(*conversion);
        self.pass_again(now_ns);
        Some(())
    }

    pub(crate) fn set_currency_limits(&mut self, currency: u16, limits: &CurrencyLimits, now_ns: u64) -> Option<()> {
        let currency = self.currencies.get_mut(usize::from(currency).checked_sub(1)?)?;
        currency.limits = *limits;
        self.pass_again(now_ns);
        Some(())
    }

    /// Sets the contract of `instrument`, while nothing is held in it.
    pub(crate) fn set_contract(&mut self, instrument: InstrumentId, contract: &Contract, now_ns: u64) {
        self.contracts[instrument.0 as usize] = *contract;
        let price = &mut self.prices[instrument.0 as usize];
        price.lot = contract.lot_value(price.px).unwrap_or(0);
        self.enqueue(instrument.0, now_ns);
    }
}

/// Rows that an event values again at most.
const ROWS_PER_EVENT: u32 = 32;

/// Marks and rates whose age an event looks at.
const AGES_PER_EVENT: u32 = 8;

fn route_hash(account: u16, strategy: u16, instrument: InstrumentId) -> u64 {
    hash(u64::from(account) << 16 | u64::from(strategy), instrument.0.into())
}

/// Returns the sign of an order's side.
pub(crate) const fn sign(side: OrderSide) -> i64 {
    match side {
        OrderSide::Buy => 1,
        OrderSide::Sell => -1,
    }
}

crate::fields::visit!(Held: position, open_qty, open_orders, reserved, cash, is_based);
crate::fields::visit!(Row: limits, held, worth, node, instrument, next, producer, strategy, is_set);
crate::fields::visit!(Price: px, lot, is_fresh, is_queued);
crate::fields::visit!(Currency: conversion, limits, is_fresh);
crate::fields::visit!(Balance: total, holds);
crate::fields::visit!(
    Tree: accounts, instruments, rows, rows_len, nodes, nodes_len, routes, contracts, prices, currencies, balances, queue,
    cursor, pass_left, age_cursor, behind_since, touched
);
