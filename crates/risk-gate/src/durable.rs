//! A gate whose inputs are in a journal before their effect is seen.

mod limits;
mod unrecorded;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use gate_limits::LimitsFile;
use tt_journal::SegmentFolder;
use tt_journal::segments::Disk;
use tt_meter::Probe;
use tt_model::{Breach, InstrumentId, IntentKind, OrderIntent, Report, Verdict};
use tt_risk::{Controls, Gate, GateError, KillSwitch, Mark, Mode, Outcome};

use crate::input::{Answer, Input, judge, perform};
use crate::journal::recovery::{recover, write_or_log};
use crate::journal::replay::Replayed;
use crate::journal::{
    Durability, Journal, JournalConfig, JournalPosition, Keeper, KeeperThread, Lost, Room, SEGMENT_BYTES, Storage,
    has_short_record,
};
use crate::modes::Modes;
use crate::sender::unsent;
use unrecorded::Unrecorded;

/// A gate with its journal, and the switches that other threads set.
///
/// The gate reads a second set of switches, which follows that of other threads between two inputs: so a journal has each
/// change where it took effect.
#[derive(Debug)]
pub struct DurableGate<K: Keeper = KeeperThread> {
    gate: Gate,
    /// The switches that the gate reads.
    own: Arc<Controls>,
    /// The switches that other threads set.
    switches: Arc<Controls>,
    /// The generation that the gate's own switches have followed.
    generation: u32,
    /// The limits of the gate, if a file has made it.
    limits: Option<Box<LimitsFile>>,
    /// When temporary limits revert, on the system's clock.
    revert_ns: u64,
    /// By how much the system's clock is ahead of the gate's.
    wall_ahead_ns: i64,
    modes: Option<Arc<Modes>>,
    journal: Option<Journal<K>>,
    journal_end: Arc<JournalPosition>,
    /// The folder of the journal.
    folder: Option<PathBuf>,
    /// Whether there is to be a journal, and it cannot be written any more.
    is_lost: bool,
    /// Whether the gate was informed that orders cannot be recorded.
    is_tight: bool,
    unrecorded: Unrecorded,
    /// By instrument: the latest mark that came while orders could not be recorded.
    held_marks: BTreeMap<u32, Mark>,
}

/// What a journal held at the start of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records of the journal.
    pub records: u64,
    /// The first of them, which a snapshot has replaced: they were not performed again.
    pub snapshot_records: u64,
    /// Bytes of a record that was not whole, which were cut off.
    pub cut_bytes: usize,
    /// The time of the last record.
    pub now_ns: u64,
    /// The number of the last intent of producer 0.
    pub last_seq: u64,
}

impl From<Gate> for DurableGate {
    fn from(gate: Gate) -> Self {
        Self::new(gate)
    }
}

impl DurableGate {
    /// Wraps a gate without a journal.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        Self::wrap(gate)
    }

    /// Creates the gate of `limits`, without a journal.
    ///
    /// # Errors
    /// The gate rejects a limit.
    pub fn of(limits: &LimitsFile) -> Result<Self> {
        Ok(Self::with_limits(limits.gate()?, limits, 0))
    }

    /// Creates the gate of `limits`, and restores it from the journal at `config` if there is one. Then every account
    /// is in doubt until it is reconciled.
    ///
    /// # Errors
    /// The journal is broken, or written by another process; or its replay gives another answer than the recorded one: the
    /// error names the record. Or `limits` cannot follow those of the journal: see [`load`](Self::load).
    pub fn open(limits: &LimitsFile, config: &JournalConfig, now_ns: u64) -> Result<(Self, Recovered)> {
        let place = || config.folder.display().to_string();
        let folder = SegmentFolder::lock(&config.folder).with_context(place)?;
        let kept = (config.durability, config.segment_bytes.unwrap_or(SEGMENT_BYTES));
        let (mut this, recovered) = Self::open_on(limits, folder, kept, now_ns).with_context(place)?;
        this.folder = Some(config.folder.clone());
        Ok((this, recovered))
    }
}

impl<K: Keeper> DurableGate<K> {
    fn wrap(gate: Gate) -> Self {
        let own = gate.controls();
        let switches = Arc::new(Controls::new(own.instruments()));
        switches.follow(&own, |_, _| {});
        let generation = switches.generation();
        let (limits, modes, journal, folder) = (None, None, None, None);
        let revert_ns = u64::MAX;
        let this = Self {
            gate,
            own,
            switches,
            generation,
            limits,
            revert_ns,
            wall_ahead_ns: 0,
            modes,
            journal,
            journal_end: Arc::default(),
            folder,
            is_lost: false,
            is_tight: false,
            unrecorded: Unrecorded::default(),
            held_marks: BTreeMap::new(),
        };
        this.publish_limits();
        this
    }

    /// Shows senders and readers what is in force.
    fn publish_limits(&self) {
        self.switches.publish_intent_age_max(self.gate.rules().intent_age_max_ns);
        self.switches.publish_limits_version(self.own.limits_version());
    }

    /// Wraps the gate that `limits` have made, as they were at `now_ns`.
    fn with_limits(gate: Gate, limits: &LimitsFile, now_ns: u64) -> Self {
        let (limits, revert_ns) = (Some(Box::new(limits.clone())), limits.next_revert_ns(now_ns));
        Self { limits, revert_ns, ..Self::wrap(gate) }
    }

    /// As [`open`](DurableGate::open), on any storage, with segments of a number of bytes.
    ///
    /// # Errors
    /// Those of [`open`](DurableGate::open).
    pub fn open_on<S>(
        limits: &LimitsFile,
        storage: S,
        (durability, bytes): (Durability, usize),
        now_ns: u64,
    ) -> Result<(Self, Recovered)>
    where
        S: Storage<Keeper = K> + Disk<Segment = K::Segment>,
    {
        let Replayed { replay: found, divergence, end, snapshot_records } = recover(&storage)?;
        if let Some(divergence) = divergence {
            bail!("{divergence}");
        }
        let text = limits.text().to_owned();
        let Some(found) = found else {
            let mut this = Self::with_limits(limits.gate()?, limits, 0);
            this.journal = Some(Journal::resume(storage, &end, durability, bytes)?);
            let begun = this.record(now_ns, &Input::Begin { limits: text }, &Answer::Applied(Ok(())));
            ensure!(begun.is_ok(), "the limits are longer than a segment of the journal");
            // A loss of power leaves at least the beginning: the next start then doubts every account.
            this.journal.as_ref().map_or(Ok(()), Journal::sync)?;
            return Ok((this, Recovered { cut_bytes: end.cut_bytes, ..Recovered::default() }));
        };
        let recovered = Recovered {
            records: found.records,
            snapshot_records,
            cut_bytes: end.cut_bytes,
            now_ns: found.now_ns,
            last_seq: found.last_seqs.get(&0).copied().unwrap_or(0),
        };
        let mut gate = found.gate;
        // Modes that the gate has set in the journal's time; an operator may have lifted them since.
        while gate.poll_mode_change().is_some() {}
        let mut this = Self::with_limits(gate, &found.limits, found.limits_ns);
        // The gate rejects orders until it is informed that there is room again.
        this.is_tight = found.is_journal_lost;
        this.journal = Some(Journal::resume(storage, &end, durability, bytes)?);
        // The time of a restart is not before that of the last record.
        let now_ns = now_ns.max(recovered.now_ns);
        this.perform(now_ns, &Input::Restart);
        if found.limits.text() != text {
            this.load(now_ns, limits.clone())?;
        }
        Ok((this, recovered))
    }

    /// Writes a snapshot of the journal, for a clean stop: the next start performs no record. Without a journal, and if it is
    /// lost, nothing happens; a failure is logged.
    pub fn write_snapshot(&self) {
        if let (Some(folder), true) = (&self.folder, self.journal.is_some()) {
            write_or_log(folder);
        }
    }

    /// Keeps modes that the gate sets itself in `modes`, whose switches are [`switches`](Self::switches).
    pub fn keep_modes(&mut self, modes: Arc<Modes>) {
        self.modes = Some(modes);
    }

    /// Returns the switches, for other threads.
    #[must_use]
    pub fn switches(&self) -> Arc<Controls> {
        Arc::clone(&self.switches)
    }

    /// Returns how far the journal is written, for other threads.
    #[must_use]
    pub fn journal_position(&self) -> Arc<JournalPosition> {
        Arc::clone(&self.journal_end)
    }

    /// Returns the file that keeps modes.
    pub(crate) fn modes(&self) -> Option<Arc<Modes>> {
        self.modes.clone()
    }

    /// Returns whether a verdict waits for the disk.
    pub(crate) const fn waits_for_disk(&self) -> bool {
        matches!(&self.journal, Some(journal) if journal.waits_for_disk())
    }

    /// Returns the gate, to read it.
    #[must_use]
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns whether there is to be a journal, and it cannot be written.
    #[must_use]
    pub const fn is_journal_lost(&self) -> bool {
        self.is_lost || self.is_tight
    }

    /// Returns whether marks wait until orders can be recorded again. The latest of each instrument is applied then.
    #[must_use]
    pub const fn holds_marks(&self) -> bool {
        self.is_tight && self.journal.is_some()
    }

    /// Asks the processor for the memory that the evaluation of `intents` will read: [`Gate::prefetch`].
    #[inline]
    pub fn prefetch(&self, intents: &[OrderIntent]) {
        self.gate.prefetch(intents);
    }

    /// Evaluates an intent. The verdict may be seen after [`commit`](Self::commit).
    ///
    /// Without room for its record, an intent is not judged: an order is rejected with `JOURNAL`, and a cancel is checked
    /// and passes. The verdict's number is 0.
    pub fn evaluate(&mut self, now_ns: u64, producer: u16, intent: &OrderIntent, probe: &mut impl Probe) -> Verdict {
        self.follow(now_ns);
        let room = self.look_for_room(now_ns);
        if room == Room::Reports || (room == Room::Cancels && !self.gate.is_relief(intent)) {
            return self.answer_unrecorded(now_ns, producer, intent);
        }
        self.catch_up(now_ns, producer);
        if self.is_lost {
            // Lost with a record before the intent's: the gate knows it before it judges.
            self.look_for_room(now_ns);
        }
        let verdict = judge(&mut self.gate, now_ns, (producer, self.generation), intent, probe);
        self.keep_own_modes();
        let of = (producer, self.generation);
        match self.append(|journal| journal.append_judged(now_ns, of, intent, &verdict)) {
            Ok(()) => verdict,
            Err(Lost) => self.withdraw(now_ns, intent, verdict),
        }
    }

    /// Applies a report.
    pub fn apply(&mut self, now_ns: u64, report: &Report) -> Outcome {
        self.follow(now_ns);
        let outcome = self.gate.apply(now_ns, report);
        self.keep_own_modes();
        // A journal that is lost says so with the next order.
        let _ = self.append(|journal| match has_short_record(report) {
            true => journal.append_reported(now_ns, report, outcome),
            false => journal.append(now_ns, &Input::Report(*report), &Answer::Outcome(outcome)),
        });
        outcome
    }

    /// Sets a reference price.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_reference(&mut self, now_ns: u64, instrument: InstrumentId, mark: &Mark) -> Result<(), GateError> {
        if self.holds_marks() {
            return self.applied(now_ns, &Input::Mark(instrument, *mark));
        }
        self.follow(now_ns);
        let applied = self.gate.set_reference(now_ns, instrument, mark);
        self.keep_own_modes();
        // A journal that is lost says so with the next order.
        let _ = self.append(|journal| match mark.proof_ns {
            0 => journal.append(now_ns, &Input::Mark(instrument, *mark), &Answer::Applied(applied)),
            _ => journal.append_marked(now_ns, instrument, mark, &applied),
        });
        applied
    }

    /// Performs another input; returns what it led to. A mark may wait: [`holds_marks`](Self::holds_marks).
    pub fn perform(&mut self, now_ns: u64, input: &Input) -> Answer {
        self.follow(now_ns);
        if let Input::Mark(instrument, mark) = input
            && self.holds_marks()
            && self.gate.contract(*instrument).is_some()
        {
            self.look_for_room(now_ns);
            if self.holds_marks() {
                self.held_marks.insert(instrument.0, *mark);
                return Answer::Applied(Ok(()));
            }
        }
        if let Input::Resume(producer, _) = input {
            self.unrecorded.last_seqs.remove(producer);
        }
        if let Input::Wall(wall) = input
            && !self.keep_wall_time(now_ns, wall)
        {
            return Answer::Applied(Ok(()));
        }
        let answer = perform(&mut self.gate, now_ns, input);
        self.keep_own_modes();
        // A journal that is lost says so with the next order.
        let _ = self.record(now_ns, input, &answer);
        answer
    }

    /// Requests the end of every open order in `scope`, whoever has sent it; returns the cancels for the sender.
    pub fn cancel_scope(&mut self, now_ns: u64, scope: KillSwitch) -> Vec<OrderIntent> {
        self.follow(now_ns);
        let mut cancels = Vec::new();
        self.gate.cancel_scope(now_ns, scope, |cancel| cancels.push(cancel));
        self.keep_own_modes();
        // A journal that is lost says so with the next order. Cancels pass.
        let _ = self.record(now_ns, &Input::CancelScope(scope), &Answer::Applied(Ok(())));
        cancels
    }

    fn applied(&mut self, now_ns: u64, input: &Input) -> Result<(), GateError> {
        match self.perform(now_ns, input) {
            Answer::Applied(applied) => applied,
            Answer::Verdict(_) | Answer::Outcome(_) | Answer::Differences(_) => Ok(()),
        }
    }

    /// Waits until the records of `judged`, intents with their verdicts, are as safe as the journal promises. If the disk
    /// fails, the accepted ones become rejected.
    pub fn commit(&mut self, now_ns: u64, judged: &mut [(OrderIntent, Verdict)]) {
        let Some(journal) = &mut self.journal else { return };
        if journal.commit().is_ok() {
            return;
        }
        self.lose();
        for (intent, verdict) in judged {
            *verdict = self.withdraw(now_ns, intent, *verdict);
        }
    }

    /// Lets the gate's own switches follow those of other threads, and temporary limits the time.
    #[inline(always)]
    fn follow(&mut self, now_ns: u64) {
        if self.calendar_ns(now_ns) >= self.revert_ns || self.switches.generation() != self.generation {
            self.follow_changes(now_ns);
        }
    }

    #[cold]
    fn follow_changes(&mut self, now_ns: u64) {
        if self.calendar_ns(now_ns) >= self.revert_ns {
            self.revert(now_ns);
        }
        while self.switches.generation() != self.generation {
            // Before the switches are read: a later change has another generation.
            self.generation = self.switches.generation();
            let mut changes = Vec::new();
            self.own.follow(&self.switches, |switch, mode| changes.push((switch, mode)));
            for (switch, mode) in changes {
                let _ = self.record(now_ns, &Input::Mode(switch, mode), &Answer::Applied(Ok(())));
            }
        }
    }

    /// Switches that the gate itself has set: so do the switches of other threads, and the file.
    #[inline]
    fn keep_own_modes(&mut self) {
        while let Some((switch, mode)) = self.gate.poll_mode_change() {
            self.restrict(switch, mode);
        }
    }

    /// Puts `switch` into `mode` for every thread, and in the file, unless it is in a stricter one.
    pub(crate) fn restrict(&self, switch: KillSwitch, mode: Mode) {
        if self.switches.mode(switch) >= mode {
            return;
        }
        match &self.modes {
            // A file that cannot be written leaves the stricter mode in force.
            Some(modes) => drop(modes.set(switch, mode).inspect_err(|error| {
                tracing::error!(error = format!("{error:#}"), "risk: a mode is not on the disk");
            })),
            None => drop(self.switches.set_mode(switch, mode)),
        }
    }

    /// Informs the gate when orders cannot be recorded any more, or again; returns what can.
    fn look_for_room(&mut self, now_ns: u64) -> Room {
        let room = self.journal.as_mut().map_or(Room::Orders, Journal::room);
        let is_tight = self.is_lost || room != Room::Orders;
        if is_tight != self.is_tight {
            self.become_tight(now_ns, is_tight);
        }
        room
    }

    /// Orders cannot be recorded any more, or again.
    #[cold]
    fn become_tight(&mut self, now_ns: u64, is_tight: bool) {
        self.is_tight = is_tight;
        self.write_modes();
        self.perform(now_ns, &Input::JournalLost(is_tight));
        for (instrument, mark) in std::mem::take(&mut self.held_marks) {
            self.perform(now_ns, &Input::Mark(InstrumentId(instrument), mark));
        }
    }

    #[inline(always)]
    fn record(&mut self, now_ns: u64, input: &Input, answer: &Answer) -> Result<(), Lost> {
        self.append(|journal| journal.append(now_ns, input, answer))
    }

    /// Writes a record as `append` does, if there is a journal.
    #[inline(always)]
    fn append(&mut self, append: impl FnOnce(&mut Journal<K>) -> Result<u64, Lost>) -> Result<(), Lost> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        match append(journal) {
            Ok(number) => {
                self.journal_end.publish(number);
                Ok(())
            }
            Err(Lost) => {
                self.lose();
                Err(Lost)
            }
        }
    }

    #[cold]
    fn lose(&mut self) {
        self.journal = None;
        self.is_lost = true;
        self.journal_end.lose();
        self.held_marks.clear();
    }

    /// Takes an accepted intent back whose record is lost. Cancels pass.
    fn withdraw(&mut self, now_ns: u64, intent: &OrderIntent, verdict: Verdict) -> Verdict {
        if verdict.accept == 0 || intent.kind == IntentKind::CANCEL {
            return verdict;
        }
        self.gate.apply(now_ns, &unsent(intent));
        let first_bit = Breach::JOURNAL.0.trailing_zeros() as u8;
        Verdict { reasons: verdict.reasons.union(Breach::JOURNAL), accept: 0, first_bit, ..verdict }
    }
}

#[cfg(test)]
mod tests;
