//! The simulated venue: every order with its executions, and what it reports of them.

use std::collections::{BTreeMap, BTreeSet};

use risk_gate::{StatedOrder, Statement};
use tt_model::{InstrumentId, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, TimeInForce};

use super::setup::{CENTER, Setup};
use crate::draw::Draw;

/// An execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    id: u128,
    qty: i64,
    is_undone: bool,
}

/// An order at the venue.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) account: u16,
    pub(super) instrument: u32,
    pub(super) client_id: u64,
    /// The number of its intent.
    pub(super) seq: u64,
    pub(super) side: OrderSide,
    px: i64,
    trigger_px: i64,
    qty: i64,
    executed: i64,
    pub(super) is_open: bool,
    fills: Vec<Fill>,
    /// What a quantity is a multiple of.
    lot: i64,
    /// The number of changes.
    changes: u64,
    versions: Versions,
}

/// What the venue says of the order of its reports.
#[derive(Clone, Copy, Debug)]
enum Versions {
    /// Each change of an order has a number.
    Numbers,
    /// Two changes may have one, as times have.
    Times,
    None,
}

impl Order {
    pub(super) fn leaves(&self) -> i64 {
        if self.is_open { (self.qty - self.executed).max(0) } else { 0 }
    }

    fn sign(&self) -> i64 {
        if self.side == OrderSide::Buy { 1 } else { -1 }
    }

    fn report(&self, kind: ReportKind) -> Report {
        Report {
            kind,
            side: self.side,
            account: self.account,
            instrument: InstrumentId(self.instrument),
            client_id: self.client_id,
            executed: Qty(self.executed),
            order_qty: Qty(self.qty),
            limit_px: Price(self.px),
            trigger_px: Price(self.trigger_px),
            version: match self.versions {
                Versions::Numbers => self.changes,
                Versions::Times => self.changes.div_ceil(2),
                Versions::None => 0,
            },
            ..Report::default()
        }
    }
}

/// A report on its way, with the order's index.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) order: usize,
    pub(super) report: Report,
    /// The gate has applied it.
    pub(super) is_applied: bool,
    /// The venue did it on its own account: until the gate knows it, reservations need not cover it.
    pub(super) is_unasked: bool,
}

/// The venue.
#[derive(Debug)]
pub(super) struct Venue {
    pub(super) orders: Vec<Order>,
    pub(super) sent: Vec<Sent>,
    positions: BTreeMap<(u16, u32), i64>,
    /// By order: the next execution's number.
    lots: BTreeMap<(u16, u32), i64>,
    pub(super) executions: u64,
    versions: Versions,
}

impl Venue {
    pub(super) fn new(setup: &Setup, seed: u64) -> Self {
        let versions = match seed % 4 {
            0 => Versions::None,
            1 => Versions::Times,
            _ => Versions::Numbers,
        };
        let (mut positions, mut lots) = (BTreeMap::new(), BTreeMap::new());
        for account in 0..setup.accounts {
            for instrument in 0..setup.instruments {
                let at = (usize::from(account), instrument as usize);
                positions.insert((account, instrument), setup.settings.positions[at.0][at.1] as i64);
                lots.insert((account, instrument), setup.settings.rows[at.0][at.1].qty_step as i64);
            }
        }
        Self { orders: Vec::new(), sent: Vec::new(), positions, lots, executions: 0, versions }
    }

    pub(super) fn position(&self, account: u16, instrument: u32) -> i64 {
        self.positions.get(&(account, instrument)).copied().unwrap_or(0)
    }

    /// The latest order of the account under the id.
    pub(super) fn find(&self, account: u16, client_id: u64) -> Option<usize> {
        self.orders.iter().rposition(|order| (order.account, order.client_id) == (account, client_id))
    }

    /// Long and short positions if all open orders of a side are filled.
    pub(super) fn worst(&self, account: u16, instrument: u32) -> [i64; 2] {
        let position = self.position(account, instrument);
        let own = self.orders.iter().filter(|order| (order.account, order.instrument) == (account, instrument));
        let open = own.fold([0; 2], |mut open, order| {
            open[order.side as usize] += order.leaves();
            open
        });
        [position + open[0], open[1] - position]
    }

    /// Whether the gate has yet to learn of an order of the row with which the venue did something on its own account.
    pub(super) fn has_unasked(&self, account: u16, instrument: u32) -> bool {
        let is_of = |sent: &&Sent| (sent.report.account, sent.report.instrument.0) == (account, instrument);
        let waits: BTreeSet<usize> =
            self.sent.iter().filter(|sent| !sent.is_applied).filter(is_of).map(|sent| sent.order).collect();
        self.sent.iter().any(|sent| sent.is_unasked && waits.contains(&sent.order))
    }

    /// What the venue says of an account.
    pub(super) fn statement(&self, account: u16) -> Statement {
        let open = self.orders.iter().filter(|order| order.account == account && order.is_open);
        let orders = open.map(|order| StatedOrder {
            client_id: order.client_id,
            instrument: InstrumentId(order.instrument),
            side: order.side,
            qty: Qty(order.qty),
            executed: Qty(order.executed),
        });
        let positions = self.positions.iter().filter(|((of, _), _)| *of == account);
        let positions = positions.map(|((_, instrument), position)| (InstrumentId(*instrument), Qty(*position)));
        Statement { account, orders: orders.collect(), positions: positions.collect() }
    }

    fn send(&mut self, order: usize, report: Report, is_unasked: bool) {
        self.sent.push(Sent { order, report, is_applied: false, is_unasked });
    }

    fn say(&mut self, order: usize, kind: ReportKind) {
        let report = self.orders[order].report(kind);
        self.send(order, report, false);
    }

    /// What a query of an order returns.
    pub(super) fn restate(&mut self, order: usize, kind: ReportKind) -> Report {
        Report { version: Report::CURRENT, ..self.orders[order].report(kind) }
    }

    /// A message arrives.
    pub(super) fn receive(&mut self, intent: &OrderIntent, draw: &mut Draw) {
        let order = self.find(intent.account, intent.client_id);
        match intent.kind {
            IntentKind::CANCEL => self.cancel(intent, order),
            IntentKind::REPLACE => self.replace(intent, order),
            _ => self.enter(intent, draw),
        }
    }

    /// Somebody enters an order at the venue by hand: no intent has asked for it.
    pub(super) fn enter_by_hand(&mut self, (account, instrument): (u16, u32), draw: &mut Draw) {
        let lot = self.lots.get(&(account, instrument)).copied().unwrap_or(1);
        let order = Order {
            account,
            instrument,
            client_id: 1 << 60 | self.orders.len() as u64,
            seq: 0,
            side: if draw.chance(1, 2) { OrderSide::Buy } else { OrderSide::Sell },
            px: CENTER - 20 + draw.below(41) as i64,
            trigger_px: 0,
            qty: lot * draw.between(1, 9) as i64,
            executed: 0,
            is_open: true,
            fills: Vec::new(),
            lot,
            changes: 1,
            versions: self.versions,
        };
        let report = order.report(ReportKind::ACK);
        self.orders.push(order);
        self.send(self.orders.len() - 1, report, true);
    }

    fn enter(&mut self, intent: &OrderIntent, draw: &mut Draw) {
        let lot = self.lots.get(&(intent.account, intent.instrument.0)).copied().unwrap_or(1);
        self.orders.push(Order {
            account: intent.account,
            instrument: intent.instrument.0,
            client_id: intent.client_id,
            seq: intent.seq,
            side: intent.side,
            px: intent.limit_px.0,
            trigger_px: intent.trigger_px.0,
            qty: intent.qty.0,
            executed: 0,
            is_open: true,
            fills: Vec::new(),
            lot,
            changes: 1,
            versions: self.versions,
        });
        let order = self.orders.len() - 1;
        if draw.chance(1, 12) {
            self.orders[order].is_open = false;
            self.orders[order].changes += 1;
            return self.say(order, ReportKind::REJECTED);
        }
        self.say(order, ReportKind::ACK);
        let is_passive = intent.tif == TimeInForce::GOOD_TILL_CANCEL && !intent.kind.is_market();
        if intent.kind.is_stop() || (is_passive && draw.chance(3, 4)) {
            return;
        }
        self.trade(order, draw);
        if !is_passive && self.orders[order].is_open {
            self.orders[order].is_open = false;
            self.orders[order].changes += 1;
            self.say(order, ReportKind::EXPIRED);
        }
    }

    fn cancel(&mut self, intent: &OrderIntent, order: Option<usize>) {
        match order.filter(|order| self.orders[*order].is_open) {
            Some(order) => {
                self.orders[order].is_open = false;
                self.orders[order].changes += 1;
                self.say(order, ReportKind::CANCELLED);
            }
            None => self.answer_unknown(intent, order, ReportKind::CANCEL_REJECTED),
        }
    }

    /// An order that the venue does not have, or that has ended.
    fn answer_unknown(&mut self, intent: &OrderIntent, order: Option<usize>, kind: ReportKind) {
        if let Some(order) = order.filter(|order| self.orders[*order].instrument == intent.instrument.0) {
            let report = Report { kind, executed: Report::NOT_STATED, ..self.orders[order].report(kind) };
            self.send(order, report, false);
        }
    }

    fn replace(&mut self, intent: &OrderIntent, order: Option<usize>) {
        let open = order.filter(|order| {
            let order = &self.orders[*order];
            order.is_open && intent.qty.0 > order.executed && order.instrument == intent.instrument.0
        });
        let Some(index) = open else { return self.answer_unknown(intent, order, ReportKind::REPLACE_REJECTED) };
        let order = &mut self.orders[index];
        (order.px, order.qty, order.trigger_px) = (intent.limit_px.0, intent.qty.0, intent.trigger_px.0);
        order.changes += 1;
        self.say(index, ReportKind::REPLACED);
    }

    /// Executes a part of an open order, or all of it.
    pub(super) fn trade(&mut self, index: usize, draw: &mut Draw) {
        let order = &self.orders[index];
        let parts = order.leaves() / order.lot;
        let qty = if parts < 2 || draw.chance(1, 2) {
            order.leaves()
        } else {
            order.lot * draw.between(1, parts as u64) as i64
        };
        self.execute(index, qty, false, draw);
    }

    fn execute(&mut self, index: usize, qty: i64, is_unasked: bool, draw: &mut Draw) {
        if qty <= 0 {
            return;
        }
        let order = &mut self.orders[index];
        let px = CENTER - 20 + draw.below(41) as i64;
        // Numbers of executions are those of their order, and 128 bits long.
        let id = (order.fills.len() as u128 + 1) << 64 | 7;
        order.fills.push(Fill { id, qty, is_undone: false });
        order.executed += qty;
        order.changes += 1;
        order.is_open = order.executed < order.qty;
        let sign = order.sign();
        let report = Report {
            execution_id: id,
            qty: Qty(qty),
            px: Price(px),
            fee: draw.below(40) as i64 - 10,
            ..order.report(ReportKind::FILL)
        };
        self.move_position(index, sign * qty);
        self.executions += 1;
        self.send(index, report, is_unasked);
    }

    fn move_position(&mut self, index: usize, lots: i64) {
        let order = &self.orders[index];
        *self.positions.entry((order.account, order.instrument)).or_default() += lots;
    }

    /// The venue does something to an open order on its own account.
    pub(super) fn whim(&mut self, index: usize, draw: &mut Draw) {
        match draw.below(5) {
            0 => {
                self.orders[index].is_open = false;
                self.orders[index].changes += 1;
                self.say(index, ReportKind::EXPIRED);
            }
            1 => {
                let order = &mut self.orders[index];
                order.qty += order.lot * draw.between(1, 9) as i64;
                order.changes += 1;
                let report = order.report(ReportKind::RESTATED);
                self.send(index, report, true);
            }
            2 => {
                let order = &self.orders[index];
                let qty = order.leaves() + order.lot * draw.between(1, 5) as i64;
                self.execute(index, qty, true, draw);
            }
            way => self.undo(index, way == 3, draw),
        }
    }

    /// Takes an execution of an open order back, or corrects it.
    fn undo(&mut self, index: usize, is_bust: bool, draw: &mut Draw) {
        let order = &mut self.orders[index];
        let counting: Vec<usize> = (0..order.fills.len()).filter(|at| !order.fills[*at].is_undone).collect();
        if counting.is_empty() {
            return;
        }
        let old = draw.pick(&counting);
        order.fills[old].is_undone = true;
        let Fill { id: undone_id, qty, .. } = order.fills[old];
        order.executed -= qty;
        order.qty -= qty;
        order.changes += 1;
        let mut moved = -order.sign() * qty;
        let mut report = Report { undone_id, ..Report::default() };
        if !is_bust {
            let (id, qty) = ((order.fills.len() as u128 + 1) << 64 | 7, order.lot * draw.between(1, 20) as i64);
            let px = CENTER - 20 + draw.below(41) as i64;
            order.fills.push(Fill { id, qty, is_undone: false });
            order.executed += qty;
            order.qty += qty;
            moved += order.sign() * qty;
            report = Report { execution_id: id, qty: Qty(qty), px: Price(px), ..report };
        }
        let kind = if is_bust { ReportKind::BUST } else { ReportKind::CORRECT };
        let Report { undone_id, execution_id, qty, px, .. } = report;
        let report = Report { undone_id, execution_id, qty, px, ..order.report(kind) };
        self.move_position(index, moved);
        self.send(index, report, true);
    }
}
