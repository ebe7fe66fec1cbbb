//! The death of the process, the loss of power, and the next start.

use std::collections::{BTreeMap, BTreeSet};

use risk_gate::{Answer, Durability, Input, JournalReader, JournalRecord};
use tt_model::{Breach, ReportKind, SplitMix64, Verdict};
use tt_risk::Mode;

use super::disk::SimDisk;
use super::host::{Broken, Host, Totals, inform, inform_of_intent, new_oracle, switch};
use super::setup::Setup;
use super::snapshots;
use super::world::{Event, MS, Rings, World};
use crate::gate_oracle::Oracle;

/// What a journal holds.
struct Found {
    oracle: Oracle,
    verdicts: BTreeMap<u64, Verdict>,
    /// Numbers of intents that were judged in turn.
    judged: BTreeSet<u64>,
    records: u64,
    reports: usize,
    /// Cancels of scopes.
    scope_cancels: usize,
    /// The version of its limits.
    version: u32,
    /// The time of its last record.
    now_ns: u64,
}

/// Reads the journal, and informs a new oracle of all of it.
fn read(files: &BTreeMap<u32, Setup>, setup: &Setup, disk: &SimDisk) -> Result<Found, Broken> {
    let broken = |error: anyhow::Error| (7, format!("{error:#}"));
    let mut reader = JournalReader::new(disk).map_err(broken)?;
    let (verdicts, judged) = (BTreeMap::new(), BTreeSet::new());
    let (reports, scope_cancels) = (0, 0);
    let oracle = new_oracle(setup);
    let mut found = Found { oracle, verdicts, judged, records: 0, reports, scope_cancels, version: 1, now_ns: 0 };
    while let Some(record) = reader.read().map_err(broken)? {
        found.records += 1;
        let JournalRecord { number, now_ns, ref input, ref answer } = record;
        found.now_ns = now_ns;
        match (input, answer) {
            (Input::Intent { intent, .. }, Answer::Verdict(verdict)) => {
                inform_of_intent(&mut found.oracle, setup, (number, now_ns), intent, verdict)?;
                found.verdicts.insert(verdict.seq, *verdict);
                if !verdict.reasons.contains(Breach::SEQ_REPLAY) {
                    found.judged.insert(intent.seq);
                }
            }
            (Input::Report(_), _) => {
                found.reports += 1;
                inform(&mut found.oracle, &record)?;
            }
            (Input::CancelScope(_), _) => {
                found.scope_cancels += 1;
                inform(&mut found.oracle, &record)?;
            }
            (Input::Load(limits, _), _) => {
                found.version = limits.version().unwrap_or(0);
                let setup = files.get(&found.version).ok_or((7, format!("record {number}: {:?}", found.version)))?;
                found.oracle.pass(record.now_ns);
                found.oracle.load(setup.settings.clone());
            }
            _ => inform(&mut found.oracle, &record)?,
        }
    }
    Ok(found)
}

impl World<'_> {
    /// The process may die here: behind an intent, behind a report, or before verdicts are shown.
    pub(super) fn may_die(&mut self, is_within_record: Option<bool>) -> bool {
        if self.host.is_none() {
            return true;
        }
        let Some((left, power)) = self.dies.take() else { return false };
        if left > 0 && !self.is_calm {
            self.dies = Some((left - 1, power));
            return false;
        }
        if self.is_calm {
            return false;
        }
        self.die(power, is_within_record.is_some());
        true
    }

    /// The process dies; what is in memory is gone.
    pub(super) fn die(&mut self, power: bool, may_tear: bool) {
        let Some(host) = self.host.take() else { return };
        let is_lost = host.gate.is_journal_lost();
        drop(host);
        let mut draw = self.luck();
        if may_tear && !is_lost && draw.chance(1, 2) {
            self.disk.tear(&mut draw);
        }
        if power {
            self.disk.lose_power(&mut draw);
        }
        self.say(|| format!("  the process dies, power is lost: {power}"));
        self.tally.crashes += 1;
        self.tally.power_losses += u64::from(power);
        self.rings = Rings::new(self.setup().ring_slots);
        self.lose_outbox();
        self.strategies.forget();
        // The last verdict may be lost with what it counted; it was not shown.
        self.windows.clear();
        let found = read(&self.files, self.setup(), &self.disk);
        let found = found.and_then(|found| {
            let mut random = SplitMix64::new(found.records);
            snapshots::compare(&self.disk, &mut random).map(|()| found)
        });
        let result = found.and_then(|found| self.compare_with_journal(found, power));
        if let Some(oracle) = self.check(result.map(Some)) {
            self.recovered = Some(oracle);
        }
        self.later(draw.between(1, 12) * MS, Event::Restart);
    }

    /// (7) What was visible or on the wire is in the journal, as far as it promises.
    fn compare_with_journal(&mut self, found: Found, power: bool) -> Result<(Oracle, u32, u64), Broken> {
        let Found { oracle, verdicts, judged, records, reports, scope_cancels, version, now_ns } = found;
        let is_durable = self.setup().durability == Durability::Durable;
        let mut lost = 0;
        for (seq, seen) in &self.seen {
            let is_kept = verdicts.get(seq) == Some(&seen.verdict);
            if is_kept || !seen.is_recorded {
                continue;
            }
            if !power || is_durable || seen.at <= self.last_sync || verdicts.contains_key(seq) {
                let (kept, at) = (verdicts.get(seq), seen.at);
                return Err((
                    7,
                    format!("seen at {at}, synced at {}: {:?}; kept: {kept:?}", self.last_sync, seen.verdict),
                ));
            }
            lost += 1;
        }
        self.tally.lost += lost;
        self.tally.replayed += records;
        self.seen.retain(|seq, _| verdicts.contains_key(seq));
        self.wire.written.retain(|seq| verdicts.contains_key(seq));
        if lost > 0 {
            self.unsure.fill(true);
            self.windows.clear();
        }
        if reports > self.recorded.len() {
            return Err((7, format!("{reports} reports for {}", self.recorded.len())));
        }
        for lost in self.recorded.drain(reports..) {
            // The gate does not reserve for an order of which it knows from a report alone.
            if let Some(account) = lost.unknown_of {
                self.unsure[usize::from(account)] = true;
            }
        }
        self.keep_scope_cancels(scope_cancels, power)?;
        self.judged = judged;
        self.forget_reports();
        Ok((oracle, version, now_ns))
    }

    /// Reports whose records are gone are not applied.
    fn forget_reports(&mut self) {
        self.venue.sent.iter_mut().for_each(|sent| sent.is_applied = false);
        for index in self.recorded.iter().filter_map(|report| report.sent) {
            self.venue.sent[index].is_applied = true;
        }
        self.moved.clear();
        let applied = || self.venue.sent.iter().filter(|sent| sent.is_applied);
        for sent in applied() {
            if matches!(sent.report.kind, ReportKind::FILL | ReportKind::CORRECT) {
                self.moved.insert((sent.order, sent.report.execution_id));
            }
        }
        for sent in applied() {
            if matches!(sent.report.kind, ReportKind::BUST | ReportKind::CORRECT) {
                self.moved.remove(&(sent.order, sent.report.undone_id));
            }
        }
    }

    /// The next process starts.
    pub(super) fn restart(&mut self) {
        if self.failure.is_some() || (self.host.is_some() && !self.wire.is_closed) {
            return;
        }
        if self.host.is_some() {
            // The operator ends it, because its sender is closed.
            return self.die(false, false);
        }
        self.disk.set_sync_fails(false);
        let Some((mut oracle, version, recorded_ns)) = self.recovered.take() else { return };
        // The operator starts it with the newest limits, under the version that follows the one in the journal.
        let newest = self.limits().clone();
        self.files.retain(|of, _| *of <= version);
        if newest.version != version {
            let next = newest.numbered(version + 1);
            // A start is not before the last record.
            oracle.pass(self.clock().max(recorded_ns));
            oracle.load(next.settings.clone());
            self.files.insert(next.version, next);
            self.windows.clear();
        }
        let started = Host::start(self.limits(), &self.disk, oracle, self.clock());
        let Some((mut host, recovered)) = self.check(started.map(Some)) else { return };
        host.oracle.doubt_all();
        let result = host.compare(Totals::Left).map_err(|(_, what)| (7, what));
        self.note(7, &[recovered.records, recovered.cut_bytes as u64, recovered.last_seq]);
        self.say(|| format!("  started again: {recovered:?}"));
        self.strategies.seq = recovered.last_seq;
        for at in &self.wire.killed {
            let mode = host.gate.switches().mode(switch(*at));
            if mode != Mode::Kill {
                self.failure.get_or_insert(super::Failure {
                    invariant: 5,
                    at: tt_model::Nanos(self.now),
                    what: format!("{:?} was killed and acknowledged, and has {mode:?} after a restart", switch(*at)),
                });
            }
        }
        self.host = Some(host);
        self.check(result);
        // The operator does not know what the process had cancelled before, nor what its journal has lost.
        let mut draw = self.luck();
        for after in [0, draw.between(1, 8) * MS] {
            if draw.chance(1, 2) {
                self.later(after, Event::Cancel);
            }
        }
        for index in 0..self.venue.sent.len() {
            if !self.venue.sent[index].is_applied {
                let after = self.luck().between(1, 4) * MS;
                self.later(after, Event::Deliver(index));
            }
        }
    }
}
