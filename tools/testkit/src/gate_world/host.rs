//! The gate with its journal, and the oracle that is given the same.

mod comparison;

use std::collections::BTreeMap;
use std::sync::Arc;

use risk_gate::{Answer, DurableGate, Input, JournalRecord, LimitsFile, Modes, NotSent, Recovered, Sender};
use tt_meter::Off;
use tt_model::{Breach, InstrumentId, IntentKind, OrderIntent, Report, Verdict};
use tt_risk::{InstrumentState, KillSwitch, Mark, Outcome};
use tt_sync::barrier::{Barrier, Passer, barrier};

pub(super) use comparison::Totals;

use super::disk::{SimDisk, SimKeeper};
use super::setup::{STRATEGIES, Setup};
use crate::gate_oracle::{Opinion, Oracle, Quote};

/// The number of a broken invariant, and what happened.
pub(super) type Broken = (u8, String);

/// Passers of the barrier.
pub(super) const GATE: usize = 0;
pub(super) const SENDER: usize = 1;

/// A process with a gate and a sender, and the oracle.
pub(super) struct Host {
    pub(super) gate: DurableGate<SimKeeper>,
    pub(super) oracle: Oracle,
    pub(super) modes: Arc<Modes>,
    pub(super) barrier: Barrier,
    pub(super) passer: Option<Passer>,
    pub(super) sender: Option<Sender>,
    /// The version of the limits.
    version: u32,
    /// Outcomes and reasons that came up.
    pub(super) seen: u64,
    orders_max: usize,
    accounts: u16,
    instruments: u32,
    /// Marks that wait until orders can be recorded again.
    held: BTreeMap<u32, Quote>,
}

/// The switches of a world: level and index, as the oracle numbers them.
pub(super) fn switches(accounts: u16, instruments: u32) -> impl Iterator<Item = (usize, usize)> {
    let of = move |level: usize| [1, usize::from(accounts), usize::from(STRATEGIES), instruments as usize][level];
    (0..4).flat_map(move |level| (0..of(level)).map(move |index| (level, index)))
}

pub(super) const fn switch((level, index): (usize, usize)) -> KillSwitch {
    match level {
        0 => KillSwitch::Global,
        1 => KillSwitch::Account(index as u16),
        2 => KillSwitch::Strategy(index as u16),
        _ => KillSwitch::Instrument(InstrumentId(index as u32)),
    }
}

/// The level and index of a switch.
const fn place(of: KillSwitch) -> (usize, usize) {
    match of {
        KillSwitch::Global => (0, 0),
        KillSwitch::Account(index) => (1, index as usize),
        KillSwitch::Strategy(index) => (2, index as usize),
        KillSwitch::Instrument(InstrumentId(index)) => (3, index as usize),
    }
}

/// An oracle at the beginning of a journal.
pub(super) fn new_oracle(setup: &Setup) -> Oracle {
    let mut oracle = Oracle::new(setup.settings.clone(), 1, STRATEGIES.into());
    for instrument in 0..setup.instruments {
        oracle.set_state(instrument, 2);
    }
    oracle
}

impl Host {
    /// Starts a process with limits on the disk, with an oracle that knows what the journal holds.
    pub(super) fn start(setup: &Setup, disk: &SimDisk, oracle: Oracle, now: u64) -> Result<(Self, Recovered), Broken> {
        let broken = |error: anyhow::Error| (7, format!("{error:#}"));
        let limits = LimitsFile::parse(&setup.text()).map_err(broken)?;
        let kept = (setup.durability, setup.segment_bytes);
        let (mut gate, recovered) = DurableGate::open_on(&limits, disk.clone(), kept, now).map_err(broken)?;
        let symbols = (0..setup.instruments).map(Setup::symbol).collect();
        let modes = Modes::open_on(Box::new(disk.clone()), gate.switches(), symbols).map_err(broken)?;
        let modes = Arc::new(modes);
        gate.keep_modes(Arc::clone(&modes));
        let (barrier, mut passers) = barrier(2);
        let sender = passers.pop().map(|passer| Sender::new(passer, gate.switches()));
        let version = gate.switches().limits_version();
        let Setup { accounts, instruments, orders_max, .. } = *setup;
        let passer = passers.pop();
        let (seen, held) = (0, BTreeMap::new());
        let host = Self {
            gate,
            oracle,
            modes,
            barrier,
            passer,
            sender,
            version,
            seen,
            orders_max,
            accounts,
            instruments,
            held,
        };
        Ok((host, recovered))
    }

    /// The gate's switches follow those of others before each input: so do the oracle's.
    pub(super) fn follow(&mut self) {
        let controls = self.gate.switches();
        for at in switches(self.accounts, self.instruments) {
            self.oracle.set_mode(at.0, at.1, controls.mode(switch(at)) as u8);
        }
    }

    fn is_known(&self, intent: &OrderIntent) -> bool {
        intent.account < self.accounts && intent.instrument.0 < self.instruments
    }

    /// Evaluates an intent of the producer, and asks the oracle.
    pub(super) fn judge(&mut self, now: u64, intent: &OrderIntent) -> Result<Verdict, Broken> {
        self.follow();
        let generation = self.gate.switches().generation();
        let verdict = self.gate.evaluate(now, 0, intent, &mut Off);
        let is_lost = self.gate.is_journal_lost();
        self.seen |= verdict.reasons.0;
        let named = (verdict.intent_seq, verdict.client_id, verdict.now_ns, verdict.producer, verdict.zero);
        if named != (intent.seq, intent.client_id, now, 0, 0) || verdict.generation != generation {
            return Err((8, format!("{verdict:?} on {intent:?} at {now}, generation {generation}")));
        }
        if verdict.limits_version != self.version {
            return Err((9, format!("{verdict:?}: the limits are of version {}", self.version)));
        }
        self.settle_marks();
        if verdict.seq == 0 {
            self.agree_on_unrecorded(now, intent, &verdict)?;
            return Ok(verdict);
        }
        if !self.is_known(intent) {
            self.oracle.set_journal_lost(is_lost);
            self.oracle.refuse_unknown(now, 0, intent);
            let is_refused = verdict.accept == 0 && verdict.reasons.contains(Breach::INSTRUMENT_UNKNOWN);
            return if is_refused { Ok(verdict) } else { Err((1, format!("{verdict:?} on {intent:?}"))) };
        }
        self.oracle.set_full(is_full(&self.oracle, self.orders_max, intent, &verdict)?);
        if is_lost && !self.gate.gate().is_journal_lost() {
            return self.agree_on_lost(now, intent, verdict);
        }
        self.oracle.set_journal_lost(is_lost);
        let opinion = self.oracle.evaluate(now, 0, intent);
        agree(&verdict, &opinion).map_err(|why| self.explain(now, intent, &why))?;
        self.compare_switches()?;
        self.compare(Totals::Compared)?;
        Ok(verdict)
    }

    /// Marks that waited are applied when there is room again.
    fn settle_marks(&mut self) {
        if self.gate.holds_marks() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        if !self.gate.is_journal_lost() {
            held.into_iter().for_each(|(instrument, quote)| self.oracle.quote(instrument, quote));
        }
    }

    /// There was no room for a record: an order is rejected without a judgement, a cancel is checked and passes, and the
    /// number counts as used. Nothing else changes.
    fn agree_on_unrecorded(&mut self, now: u64, intent: &OrderIntent, verdict: &Verdict) -> Result<(), Broken> {
        self.oracle.set_journal_lost(true);
        let is_in_turn = self.oracle.skip(0, intent.seq);
        let turn = if is_in_turn { Breach::NONE } else { Breach::SEQ_REPLAY };
        let expected = if intent.kind != IntentKind::CANCEL {
            Breach::JOURNAL.union(turn)
        } else if self.is_known(intent) {
            let mut oracle = self.oracle.clone();
            oracle.resume(0, intent.seq.wrapping_sub(1));
            oracle.evaluate(now, 0, intent).reasons.union(turn)
        } else {
            verdict.reasons.union(Breach::INSTRUMENT_UNKNOWN)
        };
        let is_right = verdict.reasons == expected && (verdict.accept == 1) == (expected == Breach::NONE);
        if !is_right || !self.gate.is_journal_lost() {
            return Err((1, format!("{verdict:?} without a record of {intent:?}, expected {expected:?}")));
        }
        if verdict.accept == 0 {
            self.oracle.refuse_unjudged(now, 0);
        }
        self.compare(Totals::Left)
    }

    /// The record of the verdict was lost, behind the judgement: an accepted order is taken back.
    fn agree_on_lost(&mut self, now: u64, intent: &OrderIntent, verdict: Verdict) -> Result<Verdict, Broken> {
        let opinion = self.oracle.evaluate(now, 0, intent);
        if opinion.accept && intent.kind != IntentKind::CANCEL {
            let taken_back = opinion.reasons.union(Breach::JOURNAL);
            if (verdict.accept, verdict.reasons) != (0, taken_back) {
                return Err((7, format!("{verdict:?} without a record of {intent:?}")));
            }
            self.take_back(now, intent);
        } else {
            agree(&verdict, &opinion).map_err(|why| self.explain(now, intent, &why))?;
        }
        self.compare(Totals::Compared)?;
        Ok(verdict)
    }

    fn take_back(&mut self, now: u64, intent: &OrderIntent) {
        if let Some(report) = NotSent::Killed.report(intent) {
            self.oracle.report(now, &report);
        }
    }

    fn explain(&self, now: u64, intent: &OrderIntent, why: &str) -> Broken {
        let known = self.oracle.explain(intent.account, intent.client_id);
        (1, format!("{why}; {intent:?} at {now}\n{known}"))
    }

    /// Waits for the records of verdicts. Returns whether they are as safe as they must be.
    pub(super) fn commit(&mut self, now: u64, judged: &mut [(OrderIntent, Verdict)]) -> Result<bool, Broken> {
        let before: Vec<Verdict> = judged.iter().map(|(_, verdict)| *verdict).collect();
        self.gate.commit(now, judged);
        let mut is_safe = true;
        for (before, (intent, verdict)) in before.iter().zip(judged.iter_mut()) {
            if before == verdict {
                continue;
            }
            is_safe = false;
            let is_withdrawn = verdict.accept == 0 && verdict.reasons.contains(Breach::JOURNAL) && before.accept == 1;
            if !is_withdrawn || intent.kind == IntentKind::CANCEL {
                return Err((7, format!("{before:?} became {verdict:?}")));
            }
            self.take_back(now, intent);
        }
        // An intent that was not judged values no position.
        let is_judged = judged.last().is_none_or(|(_, verdict)| verdict.seq != 0);
        self.compare(if is_judged { Totals::Compared } else { Totals::Left })?;
        Ok(is_safe)
    }

    /// Applies a report, and asks the oracle.
    pub(super) fn report(&mut self, now: u64, report: &Report) -> Result<Outcome, Broken> {
        self.follow();
        let outcome = self.gate.apply(now, report);
        let expected = self.oracle.report(now, report);
        if outcome.name() != expected {
            let known = self.oracle.explain(report.account, report.client_id);
            return Err((1, format!("{} for {expected}: {report:?} at {now}\n{known}", outcome.name())));
        }
        self.compare_switches()?;
        self.compare(Totals::Compared)?;
        Ok(outcome)
    }

    /// Performs another input; returns the number of differences of a reconciliation.
    pub(super) fn perform(&mut self, now: u64, input: &Input) -> Result<Answer, Broken> {
        self.follow();
        let was_lost = self.gate.is_journal_lost();
        let answer = self.gate.perform(now, input);
        let record = JournalRecord { number: 0, now_ns: now, input: input.clone(), answer };
        self.settle_marks();
        if let Input::Mark(instrument, mark) = input
            && self.gate.holds_marks()
        {
            self.held.insert(instrument.0, quote_of(mark));
            if !was_lost {
                // The gate has seen that a disk is full, which is an event: time passes by it.
                self.oracle.pass(now);
            }
        } else {
            inform(&mut self.oracle, &record)?;
        }
        let totals = if matches!(input, Input::Time | Input::Adopt(_)) { Totals::Compared } else { Totals::Left };
        self.compare_switches()?;
        self.compare(totals)?;
        Ok(record.answer)
    }

    /// Replaces all limits, of the gate and of the oracle.
    pub(super) fn load(&mut self, now: u64, setup: &Setup) -> Result<(), Broken> {
        let broken = |error: anyhow::Error| (9, format!("{error:#}"));
        self.follow();
        let limits = LimitsFile::parse(&setup.text()).map_err(broken)?;
        let version = self.gate.load(now, limits).map_err(broken)?;
        self.version = setup.version;
        self.oracle.pass(now);
        self.oracle.load(setup.settings.clone());
        let others = self.gate.switches().limits_version();
        if (version, others) != (setup.version, setup.version) {
            return Err((9, format!("versions {version} and {others} for {}", setup.version)));
        }
        self.compare_switches()?;
        self.compare(Totals::Left)
    }
}

/// Whether the account's table of orders is full. Ids are forgotten a few at an event: with as many orders as there is
/// room for, it must be full if none is forgotten, and may be if some are.
fn is_full(oracle: &Oracle, orders_max: usize, intent: &OrderIntent, verdict: &Verdict) -> Result<bool, Broken> {
    let [used, all] = oracle.orders(intent.account);
    let is_said = verdict.reasons.contains(Breach::CAPACITY);
    let is_order = intent.kind != IntentKind::CANCEL && intent.kind != IntentKind::REPLACE;
    if is_order && ((is_said && all < orders_max) || (!is_said && used >= orders_max)) {
        return Err((1, format!("{used} of {all} orders are remembered, room for {orders_max}: {verdict:?}")));
    }
    Ok(is_said)
}

fn agree(verdict: &Verdict, opinion: &Opinion) -> Result<(), String> {
    let names = |reasons: Breach| reasons.names().collect::<Vec<_>>().join(" ");
    let got = (verdict.reasons, verdict.accept == 1, i128::from(verdict.worst_pos), verdict.notes.0);
    let expected = (opinion.reasons, opinion.accept, opinion.worst, opinion.notes);
    let is_first = verdict.first_level == opinion.level
        && (verdict.accept == 1) == (verdict.first_bit == 64)
        && (verdict.accept == 1 || opinion.reasons.0 >> verdict.first_bit & 1 == 1);
    if got == expected && is_first {
        return Ok(());
    }
    let (said, meant) = (names(verdict.reasons), names(opinion.reasons));
    Err(format!("the gate says {said}, the oracle {meant}; {verdict:?} {opinion:?}"))
}

/// Informs the oracle of a record, and compares the answers.
pub(super) fn inform(oracle: &mut Oracle, record: &JournalRecord) -> Result<(), Broken> {
    let now = record.now_ns;
    match (&record.input, &record.answer) {
        (Input::Report(report), Answer::Outcome(outcome)) => {
            let expected = oracle.report(now, report);
            if outcome.name() != expected {
                return Err((7, format!("record {}: {} for {expected}", record.number, outcome.name())));
            }
        }
        (Input::Mark(instrument, mark), _) => oracle.quote(instrument.0, quote_of(mark)),
        (Input::Mode(of, mode), _) => {
            let (level, index) = place(*of);
            oracle.set_mode(level, index, *mode as u8);
        }
        (Input::CancelScope(of), _) => {
            let (level, index) = place(*of);
            oracle.cancel_scope(now, level, index);
        }
        (Input::State(instrument, state), _) => oracle.set_state(instrument.0, number_of(*state)),
        (Input::Resume(producer, last_seq), _) => oracle.resume(*producer, *last_seq),
        (Input::Adopt(account), Answer::Applied(Ok(()))) => oracle.adopt(now, *account),
        (Input::Reconcile(statement), Answer::Differences(found)) if found.is_empty() => {
            oracle.adopt(now, statement.account);
        }
        (Input::Time, _) => oracle.pass(now),
        (Input::Refusals(producer, due_ns), _) => oracle.set_refusals(*producer, *due_ns),
        (Input::Suspended, _) => oracle.suspect_clock(now),
        (Input::JournalLost(is_lost), _) => oracle.set_journal_lost(*is_lost),
        (Input::Conversion(currency, of), Answer::Applied(Ok(()))) => {
            oracle.pass(now);
            oracle.convert((*currency).into(), (of.rate.num.into(), of.rate.den.into()), of.ts_ns.into());
        }
        (Input::Balance(account, currency, total), Answer::Applied(Ok(()))) => {
            oracle.balance(*account, (*currency).into(), (*total).into());
        }
        (Input::Equity(account, equity), Answer::Applied(Ok(()))) => {
            oracle.equity(*account, (*equity).into(), now.into());
        }
        (Input::Day, _) => oracle.start_day(now),
        (Input::Enable(account, strategy), Answer::Applied(Ok(()))) => oracle.enable(*account, *strategy),
        (Input::Restart, _) => oracle.doubt_all(),
        _ => {}
    }
    Ok(())
}

/// Informs the oracle of an intent of a journal, and compares the verdicts.
pub(super) fn inform_of_intent(
    oracle: &mut Oracle,
    setup: &Setup,
    record: (u64, u64),
    intent: &OrderIntent,
    verdict: &Verdict,
) -> Result<(), Broken> {
    let (number, now) = record;
    if intent.account >= setup.accounts || intent.instrument.0 >= setup.instruments {
        oracle.refuse_unknown(now, 0, intent);
        return Ok(());
    }
    oracle.set_full(verdict.reasons.contains(Breach::CAPACITY));
    let opinion = oracle.evaluate(now, 0, intent);
    agree(verdict, &opinion).map_err(|why| (7, format!("record {number}: {why}")))
}

fn number_of(state: InstrumentState) -> u8 {
    InstrumentState::ALL.iter().position(|of| *of == state).unwrap_or(0) as u8
}

fn quote_of(mark: &Mark) -> Quote {
    Quote {
        reference: mark.ref_px.0.into(),
        bid: mark.bid_px.0.into(),
        ask: mark.ask_px.0.into(),
        at_ns: mark.ts_ns.into(),
        is_verified: mark.is_verified,
        proved_ns: mark.proof_ns.into(),
    }
}
