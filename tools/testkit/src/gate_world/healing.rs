//! The end: the faults are over, and everything must come right.

use risk_gate::{Difference, Input};
use tt_model::{Breach, InstrumentId, IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind};
use tt_risk::tree::Node;
use tt_risk::{InstrumentState, Mark, Mode};

use super::host::{Host, switches};
use super::setup::{CENTER, STRATEGIES};
use super::world::{Event, MS, World};

/// Rounds of reconciliation.
const ROUNDS: usize = 6;
/// Time within which an order that reduces passes.
const REDUCES_WITHIN_NS: u64 = 1_000 * MS;
/// Interval between two attempts.
const ATTEMPT_NS: u64 = 60 * MS;

/// Reasons by which a limit of sizes, counts or rates may refuse an order that reduces.
const EXCUSES: u64 = Breach::QTY_STEP.0
    | Breach::QTY_MIN.0
    | Breach::QTY_MAX.0
    | Breach::NOTIONAL_MAX.0
    | Breach::OPEN_QTY.0
    | Breach::CANCEL_RATIO.0
    | Breach::REPEAT_EXEC.0
    | Breach::RATE_ACCOUNT.0
    | Breach::RATE_INSTRUMENT.0
    | Breach::RATE_GLOBAL.0;

/// Reasons from which an order is exempt only at nodes whose position it reduces.
const OF_NODES: u64 = Breach::POS_LONG.0
    | Breach::POS_SHORT.0
    | Breach::GROSS_EXPOSURE.0
    | Breach::NET_EXPOSURE.0
    | Breach::OPEN_NOTIONAL.0
    | Breach::DAILY_LOSS.0
    | Breach::DRAWDOWN.0;

impl World<'_> {
    fn wait(&mut self, ns: u64) {
        self.later(0, Event::Gate);
        self.run_until(self.now + ns);
    }

    pub(super) fn heal(&mut self) {
        self.is_calm = true;
        self.fates.clear();
        (self.dies, self.kill_within) = (None, None);
        self.disk.set_full(false);
        self.disk.set_sync_fails(false);
        self.wait(100 * MS);
        // A journal that was lost is written again by the next process.
        let is_lost = |host: &Host| host.gate.is_journal_lost() && !host.gate.holds_marks();
        if self.host.as_ref().is_some_and(|host| is_lost(host) || self.wire.is_closed) {
            self.die(false, false);
            self.wait(100 * MS);
        }
        if self.failure.is_some() {
            return;
        }
        for at in switches(self.setup().accounts, self.setup().instruments) {
            self.set_mode(at, Mode::Active);
        }
        for instrument in (0..self.setup().instruments).map(InstrumentId) {
            self.perform(&Input::State(instrument, InstrumentState::Open));
        }
        let last = self.strategies.seq;
        self.perform(&Input::Resume(0, last));
        for account in 0..self.setup().accounts {
            for strategy in 0..STRATEGIES {
                self.perform(&Input::Enable(account, strategy));
            }
        }
        for account in 0..self.setup().accounts {
            self.settle(account);
            self.is_equal_at_rest(account);
        }
        self.cancel_all();
        for account in 0..self.setup().accounts {
            self.settle(account);
            self.is_equal_at_rest(account);
        }
        self.has_ended();
        for account in 0..self.setup().accounts {
            for instrument in 0..self.setup().instruments {
                self.reduce(account, instrument);
            }
        }
        self.counts_agree();
    }

    /// Brings an account and the venue to one truth.
    fn settle(&mut self, account: u16) {
        let mut found = Vec::new();
        for _ in 0..ROUNDS {
            if self.failure.is_some() {
                return;
            }
            for index in 0..self.venue.sent.len() {
                let sent = &self.venue.sent[index];
                if !sent.is_applied && sent.report.account == account {
                    self.later(0, Event::Deliver(index));
                }
            }
            self.wait(50 * MS);
            found = self.reconcile(account);
            if found.is_empty() {
                return;
            }
            self.correct(account, &found);
        }
        // Executions that a bust took back before they came are awaited for ever.
        if found.iter().all(|of| matches!(of, Difference::Awaited(_))) {
            self.tally.adopted += 1;
            self.perform(&Input::Adopt(account));
            return;
        }
        self.check::<()>(Err((11, format!("account {account} does not reconcile: {found:?}"))));
    }

    /// The operator gives the gate what the venue says.
    fn correct(&mut self, account: u16, found: &[Difference]) {
        for difference in found {
            match *difference {
                Difference::Unknown(id) | Difference::Terms(id) => {
                    let kind =
                        if matches!(difference, Difference::Terms(_)) { ReportKind::RESTATED } else { ReportKind::ACK };
                    if let Some(order) = self.venue.find(account, id) {
                        let report = self.venue.restate(order, kind);
                        self.apply(None, &report);
                    }
                }
                Difference::Awaited(instrument) => self.drop_replaces(account, instrument),
                Difference::Missing(_) | Difference::Position { .. } => {}
            }
        }
    }

    /// Replaces that died with a process are answered.
    fn drop_replaces(&mut self, account: u16, instrument: InstrumentId) {
        let Some(host) = &self.host else { return };
        let mut open = Vec::new();
        host.gate.gate().open_orders(account, instrument, |client_id| open.push(client_id));
        for client_id in open {
            let kind = ReportKind::REPLACE_REJECTED;
            let executed = Report::NOT_STATED;
            self.apply(None, &Report { kind, account, instrument, client_id, executed, ..Report::default() });
        }
    }

    /// (2) At rest the gate has what the venue has.
    fn is_equal_at_rest(&mut self, account: u16) {
        let Some(host) = &self.host else { return };
        for instrument in 0..self.setup().instruments {
            let held = host.gate.gate().exposure(account, InstrumentId(instrument)).unwrap_or_default();
            let position = held.position.0;
            let ours = [position, position + held.open_buy_qty.0, held.open_sell_qty.0 - position];
            let worst = self.venue.worst(account, instrument);
            let venue = [self.venue.position(account, instrument), worst[0], worst[1]];
            if ours != venue && self.failure.is_none() {
                let what = format!("at rest, account {account}, instrument {instrument}: {ours:?} for {venue:?}");
                return self.check(Err((2, what)));
            }
        }
    }

    fn fresh_marks(&mut self) {
        let mark = Mark {
            ref_px: Price(CENTER),
            bid_px: Price(CENTER - 1),
            ask_px: Price(CENTER + 1),
            ts_ns: self.clock(),
            is_verified: true,
            proof_ns: self.clock(),
        };
        self.marks.fill(mark);
        self.fresh_money();
        for instrument in (0..self.setup().instruments).map(InstrumentId) {
            self.perform(&Input::Mark(instrument, mark));
        }
    }

    /// An operator, or the strategies, cancel what is open.
    fn cancel_all(&mut self) {
        let is_operator = self.luck().chance(1, 2);
        for _ in 0..4 {
            if is_operator {
                let all: Vec<_> = switches(self.setup().accounts, self.setup().instruments).collect();
                all.into_iter().rev().for_each(|at| self.cancel_scope(at));
                self.wait(60 * MS);
                continue;
            }
            for account in 0..self.setup().accounts {
                for instrument in (0..self.setup().instruments).map(InstrumentId) {
                    self.cancel_row(account, instrument);
                }
            }
            self.wait(60 * MS);
        }
    }

    fn cancel_row(&mut self, account: u16, instrument: InstrumentId) {
        let mut open = Vec::new();
        if let Some(host) = &self.host {
            host.gate.gate().open_orders(account, instrument, |client_id| open.push(client_id));
        }
        for client_id in open {
            if self.failure.is_some() {
                return;
            }
            let order = self.host.as_ref().and_then(|host| host.gate.gate().open_order(account, client_id));
            let Some((_, order)) = order else { continue };
            let (seq, strategy, side) = (self.strategies.seq + 1, order.strategy, order.side);
            let kind = IntentKind::CANCEL;
            let ts_ns = self.clock();
            let cancel = OrderIntent {
                seq,
                ts_ns,
                client_id,
                account,
                strategy,
                instrument,
                kind,
                side,
                ..OrderIntent::default()
            };
            self.push(cancel, true);
            self.wait(2 * MS);
        }
    }

    /// (3) All has ended: nothing is reserved anywhere.
    fn has_ended(&mut self) {
        self.fresh_marks();
        self.perform(&Input::Time);
        let Some(host) = &self.host else { return };
        let mut left = Vec::new();
        for account in 0..self.setup().accounts {
            for instrument in 0..self.setup().instruments {
                let held = host.gate.gate().exposure(account, InstrumentId(instrument)).unwrap_or_default();
                if (held.open_buy_qty.0, held.open_sell_qty.0, held.open_orders) != (0, 0, 0) {
                    left.push(format!("account {account}, instrument {instrument}: {held:?}"));
                }
            }
            for node in [Node::Firm, Node::Account(account), Node::Strategy { account, strategy: 0 }] {
                if host.gate.gate().totals(node).is_none_or(|of| of.open_value != 0) {
                    left.push(format!("{node:?}: {:?}", host.gate.gate().totals(node)));
                }
            }
        }
        if !left.is_empty() && self.failure.is_none() {
            self.check::<()>(Err((3, format!("all has ended, and is reserved: {left:?}"))));
        }
    }

    /// Returns the strategy that holds most of a position, and the lots that it can reduce; without one, all of them.
    fn holder(&self, account: u16, instrument: u32, position: i64) -> (u16, i64) {
        let Some(host) = &self.host else { return (0, position.abs()) };
        let own = |strategy: u16| {
            let held = host.gate.gate().held(Node::Strategy { account, strategy }, InstrumentId(instrument));
            held.map_or(0, |held| held.position.0 * position.signum())
        };
        let strategy = (0..STRATEGIES).max_by_key(|strategy| own(*strategy)).unwrap_or(0);
        let lots = own(strategy).min(position.abs());
        (strategy, if lots > 0 { lots } else { position.abs() })
    }

    /// (11) An order that reduces a position passes within a second.
    fn reduce(&mut self, account: u16, instrument: u32) {
        let end = self.now + REDUCES_WITHIN_NS;
        let mut said = 0;
        while self.now < end && self.failure.is_none() {
            let position = self.venue.position(account, instrument);
            if position == 0 {
                return;
            }
            self.fresh_marks();
            let seq = self.strategies.seq + 1;
            let (strategy, lots) = self.holder(account, instrument, position);
            let intent = OrderIntent {
                seq,
                ts_ns: self.clock(),
                client_id: 1 << 50 | seq,
                limit_px: Price(CENTER),
                qty: Qty(lots),
                account,
                strategy,
                instrument: InstrumentId(instrument),
                side: if position > 0 { OrderSide::Sell } else { OrderSide::Buy },
                flags: IntentFlags::CLOSE_POSITION,
                ..OrderIntent::default()
            };
            let Some(verdict) = self.judge_now(&intent) else { return };
            if verdict.accept == 1 {
                self.tally.reduced += 1;
                let OrderIntent { side, client_id, instrument, .. } = intent;
                let kind = ReportKind::UNSENT;
                let unsent = Report { kind, side, account, instrument, client_id, ..Report::default() };
                return self.apply(None, &unsent);
            }
            said |= verdict.reasons.0;
            // Firm and strategy may hold another position: there the order does not reduce.
            let is_others = matches!(verdict.first_level, 1 | 3) && verdict.reasons.0 & OF_NODES != 0;
            said |= u64::from(is_others) * EXCUSES;
            if verdict.reasons.0 & EXCUSES == 0 && !is_others {
                let names: Vec<_> = verdict.reasons.names().collect();
                return self.check(Err((11, format!("{intent:?} reduces {position} and is refused: {names:?}"))));
            }
            self.wait(ATTEMPT_NS);
        }
        self.tally.excused += u64::from(said & EXCUSES != 0);
    }

    /// (8) Intents in are verdicts out, and those that wait or died with a process.
    fn counts_agree(&mut self) {
        let Some(host) = &self.host else { return };
        let counters = *host.gate.gate().counters();
        if counters.accepted() + counters.rejected() != counters.intents() {
            self.check::<()>(Err((8, format!("{counters:?}"))));
        }
        let waits = self.rings.intents.occupancy();
        if waits != 0 && self.failure.is_none() {
            self.check::<()>(Err((8, format!("{waits} intents are not judged"))));
        }
    }
}
