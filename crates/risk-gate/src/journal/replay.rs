//! Reads a journal, and performs its inputs again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use gate_limits::LimitsFile;
use tt_journal::segments::Disk;
use tt_journal::{JournalEnd, SegmentEntry, SegmentFolder, SegmentReader};
use tt_model::{Breach, InstrumentId, Verdict};
use tt_risk::{Gate, Limits, Mark};

use super::codec;
use crate::input::{Answer, Input, perform};

/// A record of a gate's journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalRecord {
    /// Its number, from 1: the gate's number of the input.
    pub number: u64,
    /// The time of the input on the gate's clock.
    pub now_ns: u64,
    /// The input.
    pub input: Input,
    /// What it led to.
    pub answer: Answer,
}

/// An answer of a replay that is not the recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// The record.
    pub record: JournalRecord,
    /// The answer of the replay.
    pub answer: Answer,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JournalRecord { number, answer, .. } = &self.record;
        write!(f, "record {number}: the journal has {answer:?}, the replay {:?}", self.answer)
    }
}

/// A gate that performs the records of a journal.
#[derive(Debug)]
pub struct Replay {
    /// The gate.
    pub gate: Gate,
    /// Its limits.
    pub limits: LimitsFile,
    /// When they were put in force, on the clock of temporary limits.
    pub limits_ns: u64,
    /// By producer: the number of its last intent that was in turn.
    pub last_seqs: BTreeMap<u16, u64>,
    /// By instrument: the latest mark, and when it came.
    pub marks: BTreeMap<u32, (u64, Mark)>,
    /// By account and instrument: limits that were set after the beginning.
    pub changed_limits: BTreeMap<(u16, u32), Limits>,
    /// Whether the gate was last informed that orders cannot be recorded.
    pub is_journal_lost: bool,
    /// Records that were performed.
    pub records: u64,
    /// The time of the last one.
    pub now_ns: u64,
}

impl Replay {
    /// Begins with the first record of a journal.
    ///
    /// # Errors
    /// It is no beginning, or its limits are not valid in this version.
    pub fn begin(record: &JournalRecord) -> Result<Self> {
        let Input::Begin { limits } = &record.input else { bail!("the journal does not begin with limits") };
        let limits = LimitsFile::parse(limits).context("the limits in the journal")?;
        let gate = limits.gate().context("the limits in the journal")?;
        let (last_seqs, marks, changed_limits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (limits_ns, is_journal_lost, records, now_ns) = (0, false, 1, record.now_ns);
        Ok(Self { gate, limits, limits_ns, last_seqs, marks, changed_limits, is_journal_lost, records, now_ns })
    }

    /// Performs a record; returns the difference if the answer is another one than the recorded.
    pub fn step(&mut self, record: &JournalRecord) -> Option<Divergence> {
        let answer = perform(&mut self.gate, record.now_ns, &record.input);
        self.note(record);
        (answer != record.answer).then(|| Divergence { record: record.clone(), answer })
    }

    fn note(&mut self, record: &JournalRecord) {
        self.records += 1;
        self.now_ns = record.now_ns;
        match (&record.input, &record.answer) {
            (Input::Intent { producer, intent, .. }, Answer::Verdict(Verdict { reasons, .. }))
                if !reasons.contains(Breach::SEQ_REPLAY) =>
            {
                self.last_seqs.insert(*producer, intent.seq);
            }
            (Input::Resume(producer, last_seq), _) => drop(self.last_seqs.insert(*producer, *last_seq)),
            (Input::Mark(InstrumentId(instrument), mark), _) => {
                self.marks.insert(*instrument, (record.now_ns, *mark));
            }
            (Input::Limits(account, InstrumentId(instrument), limits), Answer::Applied(Ok(()))) => {
                self.changed_limits.insert((*account, *instrument), *limits);
            }
            (Input::Load(limits, wall_ns), Answer::Applied(Ok(()))) => {
                (self.limits, self.limits_ns) = ((**limits).clone(), wall_ns.unwrap_or(record.now_ns));
                self.changed_limits.clear();
            }
            (Input::JournalLost(is_lost), _) => self.is_journal_lost = *is_lost,
            _ => {}
        }
    }
}

/// A reader of a gate's journal.
#[derive(Debug)]
pub struct JournalReader<'a, D = SegmentFolder> {
    segments: SegmentReader<'a, D>,
}

impl<'a, D: Disk> JournalReader<'a, D> {
    /// Begins at the first record on `disk`.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn new(disk: &'a D) -> Result<Self> {
        Ok(Self { segments: SegmentReader::new(disk)? })
    }

    /// Begins behind the record at `place`, where an earlier reader was.
    ///
    /// # Errors
    /// The disk cannot be read, or has another journal.
    pub fn resume(disk: &'a D, place: &JournalEnd) -> Result<Self> {
        Ok(Self { segments: SegmentReader::resume(disk, place)? })
    }

    /// Returns the next record.
    ///
    /// # Errors
    /// The journal is broken, or has a record that this version does not know; the error names it.
    pub fn read(&mut self) -> Result<Option<JournalRecord>> {
        match self.segments.read()? {
            Some(entry) => parse(entry).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the place behind the last record that was read: the journal's end, once all of it was read.
    #[must_use]
    pub const fn end(&self) -> JournalEnd {
        self.segments.end()
    }
}

fn parse(entry: SegmentEntry<'_>) -> Result<JournalRecord> {
    let SegmentEntry { number, ts_ns, kind, body } = entry;
    let known = codec::decode(kind, body);
    let (input, answer) =
        known.with_context(|| format!("record {number} of the journal is of kind {kind} in a form that is unknown"))?;
    Ok(JournalRecord { number, now_ns: ts_ns, input, answer })
}

/// The end of a journal's replay.
#[derive(Debug)]
pub struct Replayed {
    /// The gate after the last record; `None` without a record.
    pub replay: Option<Replay>,
    /// The first answer that was another one.
    pub divergence: Option<Divergence>,
    /// Where the journal ends.
    pub end: JournalEnd,
    /// The records that a snapshot has replaced.
    pub snapshot_records: u64,
}

/// Performs all records on `disk`, up to the first answer that is not the recorded one, and calls `see` with the
/// gate before each record.
///
/// # Errors
/// The journal is broken, or begins with limits that are not valid in this version; or the error of `see`.
pub fn replay<D: Disk>(
    disk: &D,
    mut see: impl FnMut(Option<&Replay>, &JournalRecord) -> Result<()>,
) -> Result<Replayed> {
    let mut reader = JournalReader::new(disk)?;
    let (mut replay, mut divergence): (Option<Replay>, _) = (None, None);
    while let Some(record) = reader.read()? {
        see(replay.as_ref(), &record)?;
        match &mut replay {
            None => replay = Some(Replay::begin(&record)?),
            Some(replay) if divergence.is_none() => divergence = replay.step(&record),
            Some(_) => {}
        }
    }
    Ok(Replayed { replay, divergence, end: reader.end(), snapshot_records: 0 })
}

/// Opens the journal in `folder` to read it.
///
/// # Errors
/// The folder is not there, or holds no journal.
pub fn open(folder: &Path) -> Result<SegmentFolder> {
    let segments = SegmentFolder::new(folder);
    let found = segments.numbers().with_context(|| format!("cannot read {}", folder.display()))?;
    if found.is_empty() {
        bail!("{}: no journal", folder.display());
    }
    Ok(segments)
}
