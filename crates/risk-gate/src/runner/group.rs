//! Intents that are evaluated one after the other, and their verdicts.

use tt_model::OrderIntent;
use tt_os::clock::unix_now;
use tt_sync::wait::{RingEnd as _, WaitStrategy as _};

use super::{PRODUCER, Runner};

/// Verdicts that share a wait for the disk, at most.
pub(super) const GROUP: usize = 64;

/// Waiting intents whose memory is asked for at once, at most.
pub(super) const BATCH: usize = 16;

impl Runner {
    /// Evaluates `intent` and those that wait behind it, as far as there is room for their verdicts, and sends each verdict;
    /// verdicts that wait for the disk do so together. What the first of the waiting intents need is asked for at once.
    pub(super) fn evaluate_group(&mut self, intent: &OrderIntent) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.push(*intent);
        while !waiting.is_empty() {
            while waiting.len() < BATCH && self.has_room_behind(waiting.len()) {
                let Some(next) = self.intents.pop() else { break };
                waiting.push(next);
            }
            if waiting.len() > 1 {
                self.gate.prefetch(&waiting);
            }
            for (index, intent) in waiting.drain(..).enumerate() {
                if index > 0 {
                    self.apply_reports();
                    self.apply_changes();
                }
                self.evaluate(&intent);
                if !self.gate.waits_for_disk() {
                    self.send_judged();
                }
            }
            if self.gate.waits_for_disk() && self.has_room_behind(0) {
                waiting.extend(self.intents.pop());
            }
        }
        self.send_judged();
        self.waiting = waiting;
    }

    /// Returns whether another intent may join the group behind `waiting` ones.
    fn has_room_behind(&self, waiting: usize) -> bool {
        let taken = self.judged.len() + waiting;
        taken < GROUP && self.verdicts.occupancy() + taken < self.verdicts.capacity()
    }

    /// Sends the verdicts of what was evaluated.
    fn send_judged(&mut self) {
        if self.judged.is_empty() {
            return;
        }
        self.gate.commit(unix_now().0, &mut self.judged);
        for ((intent, verdict), quote) in self.judged.drain(..).zip(self.judged_by.drain(..)) {
            let journey_ns = unix_now().0.saturating_sub(intent.ts_ns);
            self.journey.record(journey_ns);
            self.tally.count(&verdict);
            self.writer.store_verdict(&verdict, &intent, &quote, journey_ns);
            // There was room before the evaluation, and only this thread pushes.
            let _ = self.verdicts.push(verdict);
        }
        self.wait.wake(self.verdicts.other_wake_word());
    }

    fn evaluate(&mut self, intent: &OrderIntent) {
        self.unpublished += 1;
        if !self.has_room() {
            self.tally.unjudged += 1;
            return;
        }
        let now_ns = unix_now().0;
        self.sweep(now_ns);
        let quote = self.mark(now_ns, intent.instrument);
        // Behind the mark: one from before a sleep is not new after it.
        let now_ns = self.read_clocks();
        let verdict = self.gate.evaluate(now_ns, PRODUCER, intent, &mut self.probe);
        self.judged.push((*intent, verdict));
        self.judged_by.push(quote);
    }
}
