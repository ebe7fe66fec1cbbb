//! Answers to intents that cannot be recorded.

use super::{From, Judgement, bit, is_reduction};
use crate::{error::GateError, gate::Gate};
use tt_model::{Breach, IntentKind, Notes, OrderIntent, Verdict};

impl Gate {
    /// Returns whether `intent` is a cancel, or a replace that is judged as one.
    #[must_use]
    pub fn is_relief(&self, intent: &OrderIntent) -> bool {
        let find = || self.orders.find(self.horizon_ns, intent.account, intent.client_id);
        let reduces = |slot: u32| {
            let record = &self.orders.records[slot as usize];
            record.is_open() && is_reduction(record, intent)
        };
        intent.kind == IntentKind::CANCEL || (intent.kind == IntentKind::REPLACE && find().is_some_and(reduces))
    }

    /// Returns the number that the next intent of `producer` must have; `None` for an unknown producer.
    #[must_use]
    pub fn next_seq(&self, producer: u16) -> Option<u64> {
        self.next_seqs.get(usize::from(producer)).copied()
    }

    /// Returns when the bucket of refusals of `producer` is full again; `None` for an unknown producer.
    #[must_use]
    pub fn refusals_due_ns(&self, producer: u16) -> Option<u64> {
        self.refusals.get(usize::from(producer)).map(|refusals| refusals.rate.due_ns())
    }

    /// Counts a refusal of `producer` at `now_ns` in a copy of its bucket that is full again at `due_ns`; returns when it is
    /// full then. `None` if it is empty: the caller kills the [strategies](Self::strategies_of) of the producer. The gate
    /// does not change.
    #[must_use]
    pub fn refuse_unrecorded(&self, now_ns: u64, producer: u16, due_ns: u64) -> Option<u64> {
        let mut bucket = self.refusals.get(usize::from(producer))?.rate.due_at(due_ns);
        (!bucket.is_early(now_ns)).then(|| {
            bucket.count(now_ns, u64::MAX);
            bucket.due_ns()
        })
    }

    /// Sets when the bucket of refusals of `producer` is full again.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_refusals_due(&mut self, producer: u16, due_ns: u64) -> Result<(), GateError> {
        let refusals = self.refusals.get_mut(usize::from(producer)).ok_or(GateError::Unknown)?;
        refusals.rate = refusals.rate.due_at(due_ns);
        Ok(())
    }

    /// Returns the strategy of each route of `producer`.
    pub fn strategies_of(&self, producer: u16) -> impl Iterator<Item = u16> {
        self.tree.routes().filter(move |(of, _)| *of == producer).map(|(_, strategy)| strategy)
    }

    /// Answers an intent that cannot be recorded, without judging it: an order is rejected with `JOURNAL`, a cancel has the
    /// reasons of a cancel. The gate does not change, and the verdict's number is 0. `is_in_turn`: the intent's number is
    /// the next one of its producer.
    #[must_use]
    pub fn answer_unrecorded(&self, now_ns: u64, producer: u16, intent: &OrderIntent, is_in_turn: bool) -> Verdict {
        let (row, _) = self.core.row_index(intent.account, intent.instrument);
        let from = From { now_ns, row, producer, route: self.permitted_route(producer, intent) };
        let (reasons, notes) = if intent.kind == IntentKind::CANCEL {
            let target = self.orders.find(self.horizon_ns, intent.account, intent.client_id);
            let Judgement { reasons, notes, .. } = self.judge_cancel(from, intent, target);
            (reasons, notes)
        } else {
            (Breach::JOURNAL.0, 0)
        };
        let reasons = reasons | bit(!is_in_turn, Breach::SEQ_REPLAY);
        Verdict {
            intent_seq: intent.seq,
            client_id: intent.client_id,
            reasons: Breach(reasons),
            now_ns,
            generation: self.core.controls.generation(),
            limits_version: self.core.limits_version(),
            first_bit: reasons.trailing_zeros() as u8,
            accept: u8::from(reasons == 0),
            notes: Notes(notes),
            producer,
            ..Verdict::default()
        }
    }
}
