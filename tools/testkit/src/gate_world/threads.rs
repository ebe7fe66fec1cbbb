//! The gate's thread: reports first, then intents for whose verdicts there is room.

use risk_gate::{Durability, Input};
use tt_model::{Breach, IntentKind, OrderIntent, Verdict};

use super::world::{Event, Seen, World};

/// Verdicts that share a wait for the disk.
const GROUP: usize = 8;

impl World<'_> {
    fn is_asleep(&mut self, who: usize, event: Event) -> bool {
        let until = self.sleeps[who];
        if self.is_calm || until <= self.now {
            return false;
        }
        self.later(until - self.now, event);
        true
    }

    /// How long the sender still sleeps.
    pub(super) fn sleeps_of_sender(&self) -> u64 {
        if self.is_calm { 0 } else { self.sleeps[0].saturating_sub(self.now) }
    }

    /// Judges an intent past the rings.
    pub(super) fn judge_now(&mut self, intent: &OrderIntent) -> Option<Verdict> {
        self.strategies.seq = intent.seq;
        let verdict = self.judge(intent)?;
        let mut judged = vec![(*intent, verdict)];
        let now = self.clock();
        let result = self.host.as_mut()?.commit(now, &mut judged);
        self.check(result);
        judged.first().map(|(_, verdict)| *verdict)
    }

    /// The gate's thread: reports first, then intents for whose verdicts there is room.
    pub(super) fn gate_turn(&mut self) {
        if self.host.is_none() || self.is_asleep(2, Event::Gate) {
            return;
        }
        let Some(mut passer) = self.host.as_mut().and_then(|host| host.passer.take()) else { return };
        {
            // Until it leaves, a kill waits.
            let entry = passer.enter();
            self.apply_reports();
            self.judge_intents();
            drop(entry);
        }
        if let Some(host) = &mut self.host
            && host.passer.is_none()
        {
            host.passer = Some(passer);
        }
        self.acknowledge();
        if self.host.is_some() && !self.is_asleep(1, Event::Gate) {
            self.take_verdicts();
        }
    }

    fn apply_reports(&mut self) {
        while self.failure.is_none()
            && let Some((index, report)) = self.rings.reports.pop_front()
        {
            self.apply(index, &report);
            if self.may_die(Some(false)) {
                return;
            }
        }
    }

    fn judge_intents(&mut self) {
        let mut judged = Vec::new();
        while self.failure.is_none() && self.host.is_some() {
            let has_room = self.rings.verdicts.occupancy() + judged.len() < self.rings.verdicts.capacity();
            let next = if has_room { self.rings.intents_out.pop() } else { None };
            let Some(intent) = next else { break };
            let Some(verdict) = self.judge(&intent) else { break };
            judged.push((intent, verdict));
            if self.may_die(Some(true)) {
                return;
            }
            let groups = self.setup().durability == Durability::Durable;
            if !groups || judged.len() >= GROUP {
                self.publish(&mut judged);
            }
        }
        self.publish(&mut judged);
    }

    fn judge(&mut self, intent: &OrderIntent) -> Option<Verdict> {
        let now = self.clock();
        if let Some(mark) = self.marks.get(intent.instrument.0 as usize).copied() {
            self.perform(&Input::Mark(intent.instrument, mark));
        }
        let result = self.host.as_mut()?.judge(now, intent).map(Some);
        let verdict = self.check(result)?;
        self.tally.intents += 1;
        self.tally.accepted += u64::from(verdict.accept);
        self.tally.unrecorded += u64::from(verdict.seq == 0);
        self.tally.without_journal += u64::from(verdict.reasons.contains(Breach::JOURNAL));
        self.note(1, &[verdict.seq, verdict.intent_seq, verdict.reasons.0, verdict.worst_pos.cast_unsigned()]);
        self.note(2, &[u64::from(verdict.generation), u64::from(verdict.limits_version), u64::from(verdict.notes.0)]);
        self.say(|| {
            let reasons: Vec<_> = verdict.reasons.names().collect();
            format!("  {intent:?}: {} {reasons:?}", verdict.accept)
        });
        let was_cancelled = self.strategies.cancelled.contains(&(intent.account, intent.client_id));
        // A new order has the id from here on, whenever its strategy reads the verdict.
        let id = (intent.account, intent.client_id);
        if intent.kind == IntentKind::CANCEL && verdict.accept == 1 {
            self.strategies.cancelled.insert(id);
        } else if Self::is_order(intent) && verdict.accept == 1 {
            self.strategies.cancelled.remove(&id);
        }
        let result = self.judged_once(intent, &verdict).and_then(|()| self.in_window(intent, &verdict));
        self.check(result);
        let result = self.cancel_passed(intent, &verdict, was_cancelled);
        self.check(result);
        self.after_input();
        Some(verdict)
    }

    /// Waits for the disk, and shows the verdicts.
    fn publish(&mut self, judged: &mut Vec<(OrderIntent, Verdict)>) {
        if judged.is_empty() || self.host.is_none() {
            return;
        }
        self.kill_within_gate();
        let now = self.clock();
        let Some(host) = &mut self.host else { return };
        let result = host.commit(now, judged);
        let is_lost = host.gate.is_journal_lost() && !host.gate.holds_marks();
        let is_recorded = !is_lost && matches!(result, Ok(true));
        self.check(result);
        self.after_input();
        if self.may_die(None) {
            return;
        }
        for (_, verdict) in judged.drain(..) {
            if verdict.seq != 0 {
                self.seen.insert(verdict.seq, Seen { verdict, at: self.now, is_recorded });
            }
            let pushed = self.rings.verdicts.push(verdict).map_err(|_| (8, "no room for a verdict".to_owned()));
            self.check(pushed);
        }
    }
}
