//! The gate as it is shipped: made from a limits file, with a journal on the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, ensure};
use risk_gate::{Answer, Durability, DurableGate, Input, JournalConfig, LimitsFile};
use tt_meter::Off;
use tt_model::{InstrumentId, OrderIntent, Price, Report, Verdict};
use tt_risk::{InstrumentState, Mark};

use super::limits::{self, EQUITY, ID_WINDOW_MS, MIDDLE_PX, STEP_NS};

/// Records of a journal before another gate is made, so that a row does not fill the disk.
const RECORDS_MAX: u64 = 1 << 20;

/// Bytes of a segment: the limits of 10,000 instruments are one record.
const SEGMENT_BYTES: usize = 64 << 20;

/// All marks are set again after this time, before one is too old.
const MARKS_EVERY_NS: u64 = 1_000_000_000;

/// The producer of all intents.
const PRODUCER: u16 = 0;

pub(super) struct Rig {
    gate: Option<DurableGate>,
    limits: LimitsFile,
    folder: PathBuf,
    durability: Durability,
    instruments: u32,
    now_ns: u64,
    seq: u64,
    records: u64,
    marked_ns: u64,
}

/// The journals of a process's rigs.
fn folder_of(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("truetick-bench-gate-{process}"))
}

/// Removes the journals of a process that was killed.
pub(crate) fn remove_journals_of(process: u32) {
    // Few rows have any.
    let _ = fs::remove_dir_all(folder_of(process));
}

/// Makes a folder that no other rig has.
///
/// # Errors
/// It cannot be made.
pub(super) fn new_folder() -> anyhow::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = folder_of(std::process::id()).join(number.to_string());
    fs::create_dir_all(&folder).context("a folder of the bench")?;
    Ok(folder)
}

/// Removes a folder of [`new_folder`]; if that is impossible it stays in the folder of temporary files.
pub(super) fn remove_folder(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    // The last rig of the process removes it; to others it is not empty.
    let _ = fs::remove_dir(folder_of(std::process::id()));
}

impl Rig {
    /// A gate with all checks but `without`, whose journal is written as `durability` says.
    ///
    /// # Errors
    /// The gate rejects the limits, or the journal cannot be made.
    pub(super) fn new(instruments: u32, without: Option<&str>, durability: Durability) -> anyhow::Result<Self> {
        let limits = LimitsFile::parse(&limits::text(instruments, without)).context("the limits of the bench")?;
        let mut rig = Self {
            gate: None,
            limits,
            folder: new_folder()?,
            durability,
            instruments,
            now_ns: 1_000_000_000,
            seq: 0,
            records: 0,
            marked_ns: 0,
        };
        rig.begin()?;
        Ok(rig)
    }

    /// A gate without orders, with a new journal.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.gate = None;
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).context("the journal of the bench")?;
        }
        fs::create_dir_all(&self.folder).context("the journal of the bench")?;
        let durability = self.durability;
        let config = JournalConfig { folder: self.folder.clone(), durability, segment_bytes: Some(SEGMENT_BYTES) };
        let (gate, _) = DurableGate::open(&self.limits, &config, self.now_ns)?;
        self.gate = Some(gate);
        (self.seq, self.records) = (0, 0);
        for instrument in (0..self.instruments).map(InstrumentId) {
            self.apply(&Input::State(instrument, InstrumentState::Open))?;
        }
        self.apply(&Input::Equity(0, EQUITY))?;
        self.mark_all()
    }

    fn gate(&mut self) -> &mut DurableGate {
        self.records += 1;
        self.now_ns += STEP_NS;
        self.gate.as_mut().expect("a rig has a gate")
    }

    fn apply(&mut self, input: &Input) -> anyhow::Result<()> {
        let now_ns = self.now_ns;
        let answer = self.gate().perform(now_ns, input);
        ensure!(answer == Answer::Applied(Ok(())), "{input:?}: {answer:?}");
        Ok(())
    }

    fn mark_all(&mut self) -> anyhow::Result<()> {
        self.marked_ns = self.now_ns;
        for instrument in (0..self.instruments).map(InstrumentId) {
            ensure!(self.mark(instrument, MIDDLE_PX) == 1, "a mark was rejected");
        }
        // Later events value the rows of firm, account and strategy again, 32 each.
        for _ in 0..self.instruments / 4 + 8 {
            self.apply(&Input::Time)?;
        }
        Ok(())
    }

    /// Lets every id be forgotten and every mark be new, and begins another journal after many records.
    pub(super) fn rest(&mut self) -> anyhow::Result<()> {
        self.now_ns += 2 * ID_WINDOW_MS * 1_000_000;
        if self.records > RECORDS_MAX {
            return self.begin();
        }
        if self.now_ns - self.marked_ns > MARKS_EVERY_NS { self.mark_all() } else { Ok(()) }
    }

    /// Evaluates an intent and commits it.
    #[inline]
    pub(super) fn judge(&mut self, intent: &OrderIntent) -> Verdict {
        self.seq += 1;
        self.now_ns += STEP_NS;
        self.records += 1;
        let (now_ns, seq) = (self.now_ns, self.seq);
        let intent = OrderIntent { seq, ts_ns: now_ns, ..*intent };
        let gate = self.gate.as_mut().expect("a rig has a gate");
        let mut judged = [(intent, gate.evaluate(now_ns, PRODUCER, &intent, &mut Off))];
        gate.commit(now_ns, &mut judged);
        judged[0].1
    }

    /// Asks for the memory that the evaluation of `intents` will read.
    #[inline]
    pub(super) fn prefetch(&self, intents: &[OrderIntent]) {
        self.gate.as_ref().expect("a rig has a gate").prefetch(intents);
    }

    /// Applies a report; returns the outcome's number.
    #[inline]
    pub(super) fn report(&mut self, report: &Report) -> u64 {
        let now_ns = self.now_ns;
        self.gate().apply(now_ns, report) as u64
    }

    /// Sets a mark; returns 1.
    #[inline]
    pub(super) fn mark(&mut self, instrument: InstrumentId, px: i64) -> u64 {
        let ts_ns = self.now_ns;
        let (bid_px, ask_px) = (Price(px - 5), Price(px + 5));
        let mark = Mark { ref_px: Price(px), bid_px, ask_px, ts_ns, is_verified: true, proof_ns: ts_ns };
        u64::from(self.gate().set_reference(ts_ns, instrument, &mark).is_ok())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.gate = None;
        remove_folder(&self.folder);
    }
}
