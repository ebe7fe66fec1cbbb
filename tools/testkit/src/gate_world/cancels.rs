//! Operators cancel every open order of a scope.

use risk_gate::Durability;
use tt_model::{IntentKind, OrderIntent};
use tt_risk::KillSwitch;

use super::host::{Broken, Host, Totals, switch};
use super::setup::STRATEGIES;
use super::world::{Event, World};
use crate::draw::Draw;

/// A cancel of a scope that was performed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeCancel {
    at: u64,
    /// The journal was not lost.
    is_recorded: bool,
}

impl Host {
    /// (6) Cancels every open order of a scope, and asks the oracle which these are.
    fn cancel_scope(&mut self, now: u64, at: (usize, usize)) -> Result<Vec<OrderIntent>, Broken> {
        self.follow();
        let cancels = self.gate.cancel_scope(now, switch(at));
        self.gate.commit(now, &mut []);
        let expected = self.oracle.cancel_scope(now, at.0, at.1);
        let named = |cancel: &OrderIntent| (cancel.account, cancel.instrument.0, cancel.client_id);
        let mut cancelled: Vec<_> = cancels.iter().map(named).collect();
        cancelled.sort_unstable();
        let mut open = Vec::new();
        self.gate.gate().open_in(switch(at), |account, client_id| open.push((account, client_id)));
        open.sort_unstable();
        let mut expected_open: Vec<_> = expected[1].iter().map(|(account, _, id)| (*account, *id)).collect();
        expected_open.sort_unstable();
        if (&cancelled, &open) != (&expected[0], &expected_open) {
            let what = format!("{:?}: {cancelled:?} of {open:?} for {expected:?}", switch(at));
            return Err((6, what));
        }
        let is_sound = |cancel: &&OrderIntent| (cancel.kind, cancel.seq, cancel.ts_ns) == (IntentKind::CANCEL, 0, now);
        if let Some(cancel) = cancels.iter().find(|cancel| !is_sound(cancel)) {
            return Err((6, format!("{cancel:?} at {now}")));
        }
        self.compare_switches()?;
        self.compare(Totals::Compared)?;
        Ok(cancels)
    }
}

impl World<'_> {
    /// An operator cancels a scope, mostly one with an open order.
    pub(super) fn cancel_any(&mut self, draw: &mut Draw) {
        let any = self.any_switch(draw);
        let Some(host) = &self.host else { return };
        let (gate, mut around) = (host.gate.gate(), vec![any]);
        gate.open_in(KillSwitch::Global, |account, client_id| {
            let Some((instrument, _)) = gate.open_order(account, client_id) else { return };
            let strategy = draw.below(STRATEGIES.into()) as usize;
            around.extend([(0, 0), (1, account.into()), (2, strategy), (3, instrument.0 as usize)]);
        });
        let at = draw.pick(&around);
        self.cancel_scope(at);
    }

    pub(super) fn cancel_scope(&mut self, at: (usize, usize)) {
        let now = self.clock();
        let Some(host) = &mut self.host else { return };
        let result = host.cancel_scope(now, at);
        let is_recorded = !host.gate.is_journal_lost() || host.gate.holds_marks();
        let cancels = self.check(result);
        self.scope_cancels.push(ScopeCancel { at: self.now, is_recorded });
        self.note(8, &[at.0 as u64, at.1 as u64, cancels.len() as u64]);
        self.say(|| format!("  {:?}: {} cancels", switch(at), cancels.len()));
        self.tally.scope_cancelled += cancels.len() as u64;
        self.strategies.cancelled.extend(cancels.iter().map(|cancel| (cancel.account, cancel.client_id)));
        self.wire.cancels.extend(cancels);
        self.later(50_000, Event::Write);
        self.after_input();
    }

    /// The sender writes the cancels of operators, in every mode.
    pub(super) fn write_cancels(&mut self) {
        while let Some(cancel) = self.wire.cancels.pop_front() {
            let Some(mut sender) = self.host.as_mut().and_then(|host| host.sender.take()) else { return };
            let sent = sender.cancel(&cancel, |cancel| self.leave(cancel));
            if let Some(host) = &mut self.host {
                host.sender = Some(sender);
            }
            self.acknowledge();
            self.note(9, &[cancel.client_id, u64::from(sent.is_ok())]);
            if let Err(not_sent) = sent
                && !self.wire.is_closed
            {
                self.check::<()>(Err((6, format!("{not_sent:?}: {cancel:?}"))));
            }
        }
    }

    /// (7) Cancels that were on the wire are in the journal, of which `kept` are read, as far as it promises.
    pub(super) fn keep_scope_cancels(&mut self, kept: usize, power: bool) -> Result<(), Broken> {
        let is_durable = self.setup().durability == Durability::Durable;
        let is_safe = |of: &&ScopeCancel| of.is_recorded && (!power || is_durable || of.at <= self.last_sync);
        let (safe, performed) = (self.scope_cancels.iter().filter(is_safe).count(), self.scope_cancels.len());
        if kept < safe || kept > performed {
            return Err((7, format!("{performed} cancels of scopes, {safe} of them safe, {kept} in the journal")));
        }
        // A journal that is lost stays so until the next start: the others are behind those that are recorded.
        self.scope_cancels.truncate(kept);
        Ok(())
    }
}
