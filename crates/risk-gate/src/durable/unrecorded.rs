//! Intents for whose records there is no room: they change nothing but the numbers and the refusals of their producer.

use std::collections::BTreeMap;

use tt_model::{OrderIntent, Verdict};
use tt_risk::{KillSwitch, Mode};

use super::DurableGate;
use crate::input::Input;
use crate::journal::Keeper;

/// What the gate has to be informed of before it judges the next intent of a producer.
#[derive(Debug, Default)]
pub(super) struct Unrecorded {
    /// By producer: the last number in turn that was answered without a record.
    pub(super) last_seqs: BTreeMap<u16, u64>,
    /// By producer: when its bucket of refusals is full again.
    refusals_due_ns: BTreeMap<u16, u64>,
}

impl<K: Keeper> DurableGate<K> {
    /// Answers an intent for whose record there is no room. The gate does not change, except that too many refusals kill the
    /// producer's strategies, as a person may.
    #[cold]
    pub(super) fn answer_unrecorded(&mut self, now_ns: u64, producer: u16, intent: &OrderIntent) -> Verdict {
        let last = self.unrecorded.last_seqs.get(&producer).copied();
        let next = last.map(|last| last.wrapping_add(1)).or_else(|| self.gate.next_seq(producer));
        let is_in_turn = next == Some(intent.seq);
        if is_in_turn {
            self.unrecorded.last_seqs.insert(producer, intent.seq);
        }
        let verdict = self.gate.answer_unrecorded(now_ns, producer, intent, is_in_turn);
        let verdict = Verdict { generation: self.generation, ..verdict };
        if verdict.accept == 0 {
            self.count_refusal(now_ns, producer);
        }
        verdict
    }

    fn count_refusal(&mut self, now_ns: u64, producer: u16) {
        let known = self.unrecorded.refusals_due_ns.get(&producer).copied();
        let Some(due_ns) = known.or_else(|| self.gate.refusals_due_ns(producer)) else { return };
        if let Some(due_ns) = self.gate.refuse_unrecorded(now_ns, producer, due_ns) {
            self.unrecorded.refusals_due_ns.insert(producer, due_ns);
            return;
        }
        for strategy in self.gate.strategies_of(producer).collect::<Vec<_>>() {
            self.restrict(KillSwitch::Strategy(strategy), Mode::Kill);
        }
        // A change of modes is recorded from the reserve.
        self.follow(now_ns);
    }

    /// Lets a producer's numbers continue behind those that were answered without a record, and its refusals count.
    pub(super) fn catch_up(&mut self, now_ns: u64, producer: u16) {
        let Unrecorded { last_seqs, refusals_due_ns } = &mut self.unrecorded;
        if last_seqs.is_empty() && refusals_due_ns.is_empty() {
            return;
        }
        let (last_seq, due_ns) = (last_seqs.remove(&producer), refusals_due_ns.remove(&producer));
        if let Some(last_seq) = last_seq {
            self.perform(now_ns, &Input::Resume(producer, last_seq));
        }
        if let Some(due_ns) = due_ns {
            self.perform(now_ns, &Input::Refusals(producer, due_ns));
        }
    }

    /// Writes modes to their file that had no room there.
    pub(super) fn write_modes(&self) {
        if let Some(modes) = &self.modes
            && let Err(error) = modes.write_again()
        {
            tracing::error!(error = format!("{error:#}"), "risk: a mode is not on the disk");
        }
    }
}
