//! The life of an order: what a report changes.

use super::{Gate, Rules, Since, terms::are_lots};
use crate::{
    orders::{Bits, Cause, Includes, Phase, Record},
    outcome::Outcome,
    tree::Node,
    window::part_of,
};
use tt_model::{Price, Qty, Report, ReportKind};

/// Where a report's order is.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    slot: u32,
}

impl Gate {
    /// Applies a report of a venue at `now_ns`.
    ///
    /// Only a report frees what an accepted intent has reserved. An execution moves the position once, however often it is
    /// reported.
    pub fn apply(&mut self, now_ns: u64, report: &Report) -> Outcome {
        self.pass_time(now_ns);
        let outcome = self.apply_kind(report);
        self.watch_losses();
        let is_doubtful = match outcome {
            Outcome::Adopted | Outcome::UnknownFill | Outcome::Conflict | Outcome::Full | Outcome::Malformed => true,
            Outcome::Unknown => needs_execution(report.kind) || report.executed.0 > 0,
            Outcome::Applied | Outcome::Duplicate | Outcome::Late | Outcome::Overtaken => false,
            Outcome::Overfill | Outcome::Enlarged => false,
        };
        if is_doubtful {
            self.doubt(report.account);
        }
        if outcome == Outcome::Overfill {
            self.reduce(Node::Account(report.account));
        }
        self.core.count_report(outcome);
        outcome
    }

    fn apply_kind(&mut self, report: &Report) -> Outcome {
        let Ok(row) = self.core.known_row(report.account, report.instrument) else { return Outcome::Malformed };
        if !is_sound(report) || !self.is_price_possible(report) {
            return Outcome::Malformed;
        }
        let Some(slot) = self.orders.find_in(self.horizon_ns, report.account, report.instrument, report.client_id)
        else {
            return self.apply_unknown(row, report);
        };
        let place = Place { row, slot };
        if needs_side(report.kind) && self.record(place).side != report.side {
            return Outcome::Conflict;
        }
        match report.kind {
            ReportKind::ACK => self.acknowledge(place, report),
            ReportKind::FILL => self.fill(place, report),
            ReportKind::CANCELLED | ReportKind::REJECTED | ReportKind::EXPIRED | ReportKind::UNSENT => {
                self.finish(place, report)
            }
            ReportKind::BUST => self.bust(place, report),
            ReportKind::CORRECT => self.correct(place, report),
            ReportKind::CANCEL_REJECTED => self.reject_cancel(place),
            ReportKind::REPLACE_REJECTED => self.reject_replace(place),
            _ => self.restate(place, report),
        }
    }

    fn record(&mut self, place: Place) -> &mut Record {
        &mut self.orders.records[place.slot as usize]
    }

    /// Applies a report of an order that the gate does not know.
    fn apply_unknown(&mut self, row: usize, report: &Report) -> Outcome {
        let record = Record {
            client_id: report.client_id,
            limit_px: report.limit_px.0,
            trigger_px: report.trigger_px.0,
            account: report.account,
            instrument: report.instrument,
            side: report.side,
            ..Record::FREE
        };
        match report.kind {
            ReportKind::ACK | ReportKind::REPLACED | ReportKind::RESTATED if are_lots(report.order_qty) => {
                let record = Record { qty: report.order_qty.0, phase: Phase::Live, ..record };
                let Some(slot) = self.add_record(row, &record) else { return Outcome::Full };
                self.take_terms(Place { row, slot }, report, Cause::Venue);
                Outcome::Adopted
            }
            ReportKind::FILL => {
                let mut record = Record { phase: Phase::Ended, ..record };
                record.bits.set(Bits::UNKNOWN_TERMS);
                if self.orders.executions.free_len() == 0 {
                    return Outcome::Full;
                }
                if self.core.rows[row].state.moved(report.side, report.qty.0).is_none() {
                    return Outcome::Malformed;
                }
                let Some(slot) = self.add_record(row, &record) else { return Outcome::Full };
                self.fill(Place { row, slot }, report)
            }
            _ => Outcome::Unknown,
        }
    }

    fn acknowledge(&mut self, place: Place, report: &Report) -> Outcome {
        let record = self.record(place);
        match record.phase {
            Phase::Free | Phase::Filled | Phase::Ended => self.reopen(place, report),
            Phase::Live if report.executed.0 <= record.venue_executed => Outcome::Duplicate,
            Phase::Live => self.state_executed(place, report),
            Phase::Reserved => {
                record.phase = Phase::Live;
                let differs = report.order_qty.0 > 0 && report.order_qty.0 != record.qty;
                if differs { self.restate(place, report) } else { self.state_executed(place, report) }
            }
        }
    }

    /// Opens an ended order if the venue has more of it: one of which only fills were known, or one that its fills have
    /// ended before the report came that the venue has enlarged it.
    fn reopen(&mut self, place: Place, report: &Report) -> Outcome {
        let most = self.orders.versions(place.slot).most(report.version, report.order_qty.0, Cause::Venue);
        let record = self.record(place);
        let is_unknown = record.bits.has(Bits::UNKNOWN_TERMS);
        let is_enlarged = record.phase == Phase::Filled && report.kind == ReportKind::RESTATED;
        if !(is_unknown || is_enlarged) || report.order_qty.0 <= 0 || most <= record.executed {
            return Outcome::Late;
        }
        let stated = |px: Price, kept: i64| if px.0 == 0 && is_enlarged { kept } else { px.0 };
        if !self.take_terms(place, report, Cause::Venue) {
            return Outcome::Overtaken;
        }
        let record = self.record(place);
        record.limit_px = stated(report.limit_px, record.limit_px);
        record.trigger_px = stated(report.trigger_px, record.trigger_px);
        record.bits.clear(Bits::UNKNOWN_TERMS);
        record.phase = Phase::Live;
        if is_enlarged {
            record.venue_executed = record.venue_executed.max(report.executed.0);
        }
        self.orders.keep_open(place.slot);
        self.orders.open(place.row, place.slot);
        self.settle_all(place.row, place.slot, Since { traded: None, opened: 1 });
        if is_enlarged { Outcome::Enlarged } else { Outcome::Adopted }
    }

    /// Takes note of the executions that the venue states.
    fn state_executed(&mut self, place: Place, report: &Report) -> Outcome {
        let record = self.record(place);
        record.venue_executed = record.venue_executed.max(report.executed.0);
        self.settle(place.row, place.slot);
        Outcome::Applied
    }

    fn fill(&mut self, place: Place, report: &Report) -> Outcome {
        if let Some(applied) = self.orders.executions.find(place.slot, report.execution_id) {
            let applied = self.orders.executions.get(applied);
            let is_same = (applied.qty, applied.px) == (report.qty.0, report.px.0);
            return if is_same { Outcome::Duplicate } else { Outcome::Conflict };
        }
        let (qty, px) = (report.qty.0, report.px.0);
        if self.core.rows[place.row].state.moved(report.side, qty).is_none() {
            return Outcome::Malformed;
        }
        let record = &mut self.orders.records[place.slot as usize];
        let first = &mut record.executions;
        if self.orders.executions.add(place.slot, first, report.execution_id, [qty, px]).is_none() {
            return Outcome::Full;
        }
        let was_open = record.is_open();
        record.executed = record.executed.saturating_add(qty);
        if was_open {
            record.phase = Phase::Live;
            record.venue_executed = record.venue_executed.max(report.executed.0);
        }
        let is_unknown = record.bits.has(Bits::UNKNOWN_TERMS);
        if is_unknown {
            record.qty = record.executed;
        }
        let is_over = record.executed > record.qty;
        let leaves = record.leaves();
        let is_replaced = record.bits.has(Bits::REPLACE_PENDING);
        let traded = Some(self.trade(place.row, place.slot, report.side, [qty, px, report.fee]));
        self.count_execution(place);
        let is_done = was_open && leaves == 0 && !is_replaced;
        if is_done {
            self.orders.close(place.row, place.slot, Phase::Filled);
        }
        self.settle_all(place.row, place.slot, Since { traded, opened: -i32::from(is_done) });
        match (is_unknown, is_over, was_open) {
            (true, ..) => Outcome::UnknownFill,
            (_, true, _) => Outcome::Overfill,
            (.., false) => Outcome::Late,
            _ => Outcome::Applied,
        }
    }

    /// Ends an order; what the venue has executed beyond our fills stays reserved.
    fn finish(&mut self, place: Place, report: &Report) -> Outcome {
        let record = self.record(place);
        let states_less = report.executed != Report::NOT_STATED && report.executed.0 < record.executed;
        let states_more = report.executed.0 > record.executed.max(record.venue_executed);
        if !record.is_open() {
            record.phase = Phase::Ended;
            let is_settled = record.bits.has(Bits::END_QUEUED);
            let was_unknown = record.bits.has(Bits::UNKNOWN_TERMS);
            if states_less || (states_more && is_settled) {
                return Outcome::Conflict;
            }
            record.bits.clear(Bits::UNKNOWN_TERMS);
            record.venue_executed = record.venue_executed.max(report.executed.0);
            record.qty = record.qty.max(if was_unknown { record.venue_executed } else { 0 });
            self.settle(place.row, place.slot);
            return if states_more || was_unknown { Outcome::Applied } else { Outcome::Duplicate };
        }
        record.venue_executed = record.venue_executed.max(report.executed.0);
        // The venue may have worked the terms of a replace whose answer comes after the end.
        if record.bits.has(Bits::REPLACE_PENDING) {
            record.qty = record.qty.max(record.replace_qty);
        }
        self.orders.close(place.row, place.slot, Phase::Ended);
        self.settle_all(place.row, place.slot, Since { traded: None, opened: -1 });
        if states_less { Outcome::Conflict } else { Outcome::Applied }
    }

    /// Takes an execution of an order back, at `slot` of the executions, as a report of `version` says.
    fn undo(&mut self, place: Place, slot: u32, version: u64) -> Includes {
        let mut versions = self.orders.versions(place.slot);
        let includes = versions.take_execution(version);
        self.orders.keep_versions(place.slot, versions);
        let execution = self.orders.executions.get_mut(slot);
        execution.is_undone = true;
        let (qty, px) = (execution.qty, execution.px);
        let record = self.record(place);
        let side = record.side;
        // What was executed leaves the order for good: its quantity shrinks with it.
        record.executed -= qty;
        if includes == Includes::No {
            record.qty = (record.qty - qty).max(record.executed);
        }
        record.venue_executed = (record.venue_executed - qty).max(0);
        let traded = Some(self.trade(place.row, place.slot, side, [-qty, px, 0]));
        self.settle_all(place.row, place.slot, Since { traded, opened: 0 });
        includes
    }

    /// Counts an execution for the ratio of cancels to fills, and for the stop of a strategy.
    fn count_execution(&mut self, place: Place) {
        let Rules { cancel_window_ns, exec_window_ns, .. } = self.rules;
        let part = part_of(self.horizon_ns, cancel_window_ns);
        let record = &self.orders.records[place.slot as usize];
        self.messages[record.instrument.0 as usize].fills.count(part);
        let account = 1 + usize::from(record.account);
        self.tree.nodes[account].messages.fills.count(part);
        let Some(row) = self.tree.rows.get(record.route as usize) else { return };
        let strategy = &mut self.tree.nodes[row.node as usize];
        let part = part_of(self.horizon_ns, exec_window_ns);
        strategy.executions.count(part);
        let count = strategy.executions.sum_in(part);
        strategy.is_stopped |= strategy.limits.executions_stop.is_some_and(|stop| count >= stop.into());
    }

    /// Returns whether a fill can have its price.
    fn is_price_possible(&self, report: &Report) -> bool {
        let may_be_negative = self.instruments[report.instrument.0 as usize].may_be_negative;
        let contract = &self.tree.contracts[report.instrument.0 as usize];
        let (px, qty) = (report.px.0, report.qty.0);
        let has_value = || contract.cost(px, qty).is_some() && contract.profit(px, qty).is_some();
        !needs_side(report.kind) || ((report.px.0 > 0 || may_be_negative) && has_value())
    }

    fn bust(&mut self, place: Place, report: &Report) -> Outcome {
        let Some(slot) = self.orders.executions.find(place.slot, report.undone_id) else { return Outcome::Unknown };
        if self.orders.executions.get(slot).is_undone {
            return Outcome::Duplicate;
        }
        self.undo(place, slot, report.version);
        Outcome::Applied
    }

    fn correct(&mut self, place: Place, report: &Report) -> Outcome {
        let executions = &self.orders.executions;
        let Some(slot) = executions.find(place.slot, report.undone_id) else { return Outcome::Unknown };
        if let Some(new) = executions.find(place.slot, report.execution_id) {
            let new = executions.get(new);
            let is_same = (new.qty, new.px) == (report.qty.0, report.px.0);
            let was_applied = is_same && executions.get(slot).is_undone;
            return if was_applied { Outcome::Duplicate } else { Outcome::Conflict };
        }
        if executions.get(slot).is_undone {
            return Outcome::Conflict;
        }
        let record = &mut self.orders.records[place.slot as usize];
        let (qty, px) = (report.qty.0, report.px.0);
        if self.core.rows[place.row].state.moved(report.side, qty).is_none() {
            return Outcome::Malformed;
        }
        if self.orders.executions.add(place.slot, &mut record.executions, report.execution_id, [qty, px]).is_none() {
            return Outcome::Full;
        }
        let more = qty.saturating_sub(self.orders.executions.get(slot).qty).max(0);
        let includes = self.undo(place, slot, report.version);
        if includes != Includes::Yes {
            let mut versions = self.orders.versions(place.slot);
            versions.add(report.version, more);
            self.orders.keep_versions(place.slot, versions);
        }
        let record = self.record(place);
        let side = record.side;
        record.executed = record.executed.saturating_add(qty);
        let enlarged = match includes {
            Includes::No => qty,
            Includes::Maybe => more,
            Includes::Yes => 0,
        };
        record.qty = record.qty.saturating_add(enlarged);
        record.venue_executed = record.venue_executed.saturating_add(qty);
        record.replace_qty = record.replace_qty.saturating_add(more);
        let traded = Some(self.trade(place.row, place.slot, side, [qty, px, report.fee]));
        self.settle_all(place.row, place.slot, Since { traded, opened: 0 });
        Outcome::Applied
    }

    fn reject_cancel(&mut self, place: Place) -> Outcome {
        let record = self.record(place);
        if !record.is_open() {
            return Outcome::Late;
        }
        let was_pending = record.bits.has(Bits::CANCEL_PENDING);
        record.bits.clear(Bits::CANCEL_PENDING);
        if was_pending { Outcome::Applied } else { Outcome::Duplicate }
    }

    fn reject_replace(&mut self, place: Place) -> Outcome {
        let record = self.record(place);
        if !record.is_open() {
            return Outcome::Late;
        }
        if !record.bits.has(Bits::REPLACE_PENDING) {
            return Outcome::Duplicate;
        }
        self.orders.drop_replace(place.row, place.slot);
        let since = self.end_if_done(place);
        self.settle_all(place.row, place.slot, since);
        Outcome::Applied
    }

    /// Takes over the terms that the venue has: of a replace that was asked for, or on the venue's own account.
    fn restate(&mut self, place: Place, report: &Report) -> Outcome {
        if !self.record(place).is_open() {
            return self.reopen(place, report);
        }
        let is_answer = self.is_answer(place, report);
        let cause = if is_answer { Cause::Replace } else { Cause::Venue };
        let record = self.record(place);
        record.phase = Phase::Live;
        let asked = if is_answer { record.replace_qty } else { record.qty };
        let stated = |px: Price, asked: i64, kept: i64| match (px.0, is_answer) {
            (0, true) => asked,
            (0, false) => kept,
            (px, _) => px,
        };
        let limit_px = stated(report.limit_px, record.replace_px, record.limit_px);
        let trigger_px = stated(report.trigger_px, record.replace_trigger_px, record.trigger_px);
        let qty = if are_lots(report.order_qty) { report.order_qty.0 } else { asked };
        record.venue_executed = record.venue_executed.max(report.executed.0);
        if !self.take_terms(place, &Report { order_qty: Qty(qty), ..*report }, cause) {
            self.settle(place.row, place.slot);
            return Outcome::Overtaken;
        }
        let record = self.record(place);
        record.trigger_px = trigger_px;
        let is_enlarged = record.qty > asked;
        if is_answer {
            self.orders.drop_replace(place.row, place.slot);
        }
        self.orders.move_level(place.row, place.slot, limit_px);
        let since = self.end_if_done(place);
        self.settle_all(place.row, place.slot, since);
        if is_enlarged { Outcome::Enlarged } else { Outcome::Applied }
    }

    /// Takes over the quantity that `report` states; returns false if its terms may be older than those of the order.
    fn take_terms(&mut self, place: Place, report: &Report, cause: Cause) -> bool {
        let mut versions = self.orders.versions(place.slot);
        let qty = [self.record(place).qty, report.order_qty.0];
        let Some(qty) = versions.take(report.version, qty, cause) else { return false };
        self.record(place).qty = qty;
        self.orders.keep_versions(place.slot, versions);
        true
    }

    /// Returns whether `report` answers the pending replace. The answer to an earlier one may come again: it is older, or
    /// states less than was asked for.
    fn is_answer(&mut self, place: Place, report: &Report) -> bool {
        let versions = self.orders.versions(place.slot);
        let record = self.record(place);
        let is_asked = report.order_qty.0 == 0 || report.order_qty.0 >= record.replace_qty - versions.added;
        report.kind == ReportKind::REPLACED
            && record.bits.has(Bits::REPLACE_PENDING)
            && (versions.is_later(report.version) || (is_asked && !versions.is_old(report.version)))
    }

    /// Ends an open order of which nothing is left; the caller settles what this returns.
    fn end_if_done(&mut self, place: Place) -> Since {
        let record = self.record(place);
        let is_done = record.leaves() == 0 && !record.bits.has(Bits::REPLACE_PENDING);
        if is_done {
            self.orders.close(place.row, place.slot, Phase::Filled);
        }
        Since { traded: None, opened: -i32::from(is_done) }
    }
}

/// Returns whether a report is about an execution.
const fn needs_execution(kind: ReportKind) -> bool {
    matches!(kind, ReportKind::FILL | ReportKind::BUST | ReportKind::CORRECT)
}

/// Returns whether a report states the side of its order.
const fn needs_side(kind: ReportKind) -> bool {
    matches!(kind, ReportKind::FILL | ReportKind::CORRECT)
}

/// Returns whether every field that the kind needs has a meaning.
fn is_sound(report: &Report) -> bool {
    let has_executed = report.executed == Report::NOT_STATED || (0..=i64::MAX / 2).contains(&report.executed.0);
    let has_qty = are_lots(report.qty) || !needs_side(report.kind);
    let has_order_qty = report.order_qty.0 == 0 || are_lots(report.order_qty);
    report.kind.0 <= ReportKind::RESTATED.0 && has_executed && has_qty && has_order_qty
}
