//! The sender, and what reaches the wire.

use std::collections::{BTreeSet, VecDeque};

use risk_gate::NotSent;
use tt_model::{IntentKind, OrderIntent, Verdict};
use tt_risk::Mode;

use super::host::{GATE, SENDER, switch};
use super::world::{Event, MS, World};
use crate::draw::Draw;

/// What is between the gate and the venue.
#[derive(Default)]
pub(super) struct Wire {
    /// Accepted intents that wait for the sender.
    pub(super) outbox: VecDeque<(OrderIntent, Verdict)>,
    /// Cancels of operators that wait for the sender.
    pub(super) cancels: VecDeque<OrderIntent>,
    /// Messages between sender and venue.
    pub(super) under_way: BTreeSet<(u16, u64, u64)>,
    /// Switches with an acknowledged kill.
    pub(super) killed: BTreeSet<(usize, usize)>,
    /// Kills that were not acknowledged, with the height of the barrier.
    waiting: Vec<((usize, usize), u64)>,
    /// Numbers of verdicts whose intents were written.
    pub(super) written: BTreeSet<u64>,
    /// The sender was closed.
    pub(super) is_closed: bool,
}

const fn is_in_scope((level, index): (usize, usize), intent: &OrderIntent) -> bool {
    match level {
        0 => true,
        1 => intent.account as usize == index,
        2 => intent.strategy as usize == index,
        _ => intent.instrument.0 as usize == index,
    }
}

impl World<'_> {
    /// The sender's thread writes what it has.
    pub(super) fn write_turn(&mut self) {
        let sleeps = self.sleeps_of_sender();
        if sleeps > 0 {
            return self.later(sleeps, Event::Write);
        }
        self.write_cancels();
        while let Some((intent, verdict)) = self.wire.outbox.pop_front() {
            let Some(mut sender) = self.host.as_mut().and_then(|host| host.sender.take()) else { return };
            let sent = sender.send_at(self.clock(), &intent, &verdict, |intent| self.write(intent, &verdict));
            if let Some(host) = &mut self.host {
                host.sender = Some(sender);
            }
            self.acknowledge();
            self.note(5, &[verdict.seq, u64::from(sent.is_ok())]);
            if let Err(not_sent) = sent {
                self.tally.unsent += 1;
                let is_expected = match not_sent {
                    NotSent::Rejected => false,
                    NotSent::Killed => intent.kind != IntentKind::CANCEL,
                    NotSent::Expired => intent.kind != IntentKind::CANCEL && self.has_expired(&intent),
                    NotSent::Closed => self.wire.is_closed,
                };
                let result =
                    if is_expected { Ok(()) } else { Err((5, format!("{not_sent:?}: {intent:?} {verdict:?}"))) };
                self.check(result);
                if let Some(report) = not_sent.report(&intent) {
                    self.rings.reports.push_back((None, report));
                    self.later(20_000, Event::Gate);
                }
            }
        }
    }

    /// Whether an intent is too old for the wire, by the oracle.
    fn has_expired(&self, intent: &OrderIntent) -> bool {
        let now = i128::from(self.clock());
        self.host.as_ref().is_some_and(|host| host.oracle.has_expired(now, intent))
    }

    /// Writes an intent to the wire.
    fn write(&mut self, intent: &OrderIntent, verdict: &Verdict) {
        let killed = self.wire.killed.iter().find(|at| is_in_scope(**at, intent));
        let generation = self.host.as_ref().map_or(0, |host| host.gate.switches().generation());
        // A replace that only reduces is judged as a cancel: it has passed after the kill.
        let reduces = intent.kind == IntentKind::REPLACE && verdict.generation == generation;
        if let Some(at) = killed.filter(|_| intent.kind != IntentKind::CANCEL && !reduces) {
            let what = format!("{:?} was killed and acknowledged, and {intent:?} is on the wire", switch(*at));
            return self.check(Err((5, what)));
        }
        if intent.kind != IntentKind::CANCEL && self.has_expired(intent) {
            return self.check(Err((5, format!("{intent:?} has expired and is on the wire at {}", self.clock()))));
        }
        // A cancel may pass without a record, and has no number then.
        let is_unrecorded = verdict.seq == 0 && intent.kind == IntentKind::CANCEL;
        if verdict.accept != 1 || !(is_unrecorded || self.wire.written.insert(verdict.seq)) {
            return self.check(Err((7, format!("{intent:?} is written again, or without a verdict: {verdict:?}"))));
        }
        self.kill_within_write();
        self.leave(intent);
    }

    /// A message leaves for the venue.
    pub(super) fn leave(&mut self, intent: &OrderIntent) {
        self.tally.written += 1;
        self.say(|| format!("  on the wire: {:?} {} of {}", intent.kind, intent.client_id, intent.account));
        self.wire.under_way.insert((intent.account, intent.client_id, intent.seq));
        let latency = self.luck().between(100_000, 2 * MS);
        self.later(latency, Event::Arrive(*intent));
    }

    /// A kill comes while the sender is writing: it is not acknowledged before the write has ended. A sender that takes
    /// longer than 10 ms is closed.
    fn kill_within_write(&mut self) {
        let Some((at, draw)) = self.kill_within.take_if(|(_, draw)| *draw % 2 == 0) else { return };
        self.kill(at, SENDER);
        if Draw::new(draw).chance(1, 3)
            && let Some(host) = &self.host
        {
            host.barrier.close(SENDER);
            self.wire.is_closed = true;
            self.wire.waiting.retain(|(of, _)| *of != at);
            self.wire.killed.insert(at);
            self.later(5 * MS, Event::Restart);
        }
    }

    /// A kill comes between a verdict and its publication.
    pub(super) fn kill_within_gate(&mut self) {
        if let Some((at, _)) = self.kill_within.take_if(|(_, draw)| *draw % 2 == 1) {
            self.kill(at, GATE);
        }
    }

    /// Kills while `passer` is inside.
    fn kill(&mut self, at: (usize, usize), passer: usize) {
        self.set_mode(at, Mode::Kill);
        if self.wire.killed.contains(&at) {
            self.check::<()>(Err((5, format!("{:?} is acknowledged while passer {passer} is inside", switch(at)))));
        }
    }

    /// Sets a mode; a kill counts as acknowledged once gate and sender are past it.
    pub(super) fn set_mode(&mut self, at: (usize, usize), mode: Mode) {
        let Some(host) = &self.host else { return };
        self.wire.killed.remove(&at);
        self.wire.waiting.retain(|(of, _)| *of != at);
        let set = host.modes.set(switch(at), mode);
        let height = host.barrier.raise();
        self.note(6, &[at.0 as u64, at.1 as u64, mode as u64]);
        self.say(|| format!("  {:?}: {mode:?}", switch(at)));
        match set {
            Ok(_) if mode == Mode::Kill => self.wire.waiting.push((at, height)),
            Ok(_) => {}
            Err(error) => self.check(Err((5, format!("{error:#}")))),
        }
        self.acknowledge();
    }

    /// Looks whether gate and sender are past the kills that wait.
    pub(super) fn acknowledge(&mut self) {
        let Some(host) = &self.host else { return };
        let (past, waiting) = self.wire.waiting.drain(..).partition(|(_, height): &((usize, usize), u64)| {
            [GATE, SENDER].iter().all(|passer| host.barrier.is_past(*passer, *height))
        });
        self.wire.waiting = waiting;
        let past: Vec<((usize, usize), u64)> = past;
        self.tally.kills += past.len() as u64;
        self.wire.killed.extend(past.into_iter().map(|(at, _)| at));
    }

    /// Whether an order is between the gate and the venue.
    pub(super) fn is_under_way(&self, account: u16, client_id: u64) -> bool {
        let is_it = |intent: &OrderIntent| (intent.account, intent.client_id) == (account, client_id);
        self.wire.under_way.iter().any(|(of, id, _)| (*of, *id) == (account, client_id))
            || self.wire.outbox.iter().any(|(intent, _)| is_it(intent))
            || self.strategies.waiting.values().any(is_it)
    }

    /// The process dies: what was between its threads is gone.
    pub(super) fn lose_outbox(&mut self) {
        self.wire.outbox.clear();
        self.wire.cancels.clear();
        self.wire.waiting.clear();
        self.wire.is_closed = false;
    }
}
