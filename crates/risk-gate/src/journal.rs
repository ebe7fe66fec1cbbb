//! The journal of a gate: every input with its answer, kept before the answer is seen.

mod codec;
mod position;
pub(crate) mod recovery;
pub(crate) mod replay;
mod snapshot;
mod storage;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tt_journal::segments::Disk;
use tt_journal::{AppendError, JournalEnd, SegmentFolder, SegmentWriter};
use tt_model::{InstrumentId, OrderIntent, Report, Verdict};
use tt_os::clock::unix_now;
use tt_os::mapped_file::MappedFile;
use tt_risk::{GateError, Mark, Outcome};

use crate::input::{Answer, Input};
use codec::fixed::{self, Fixed};
pub use position::JournalPosition;
pub use storage::{Keeper, Storage};

/// Bytes of a segment.
pub(crate) const SEGMENT_BYTES: usize = 16 << 20;

/// Bytes of the journal that are kept for cancels and reports when there is no room for another segment.
const RESERVE_BYTES: usize = 1 << 20;

/// Interval between two syncs in [`Durability::Process`].
const SYNC_EVERY: Duration = Duration::from_millis(10);

/// Segments after which a snapshot is written: a start performs the records of about as many.
const SNAPSHOT_SEGMENTS: u64 = 16;

/// When a verdict may be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Its record is in memory that survives the death of the process. The loss of power takes at most the last 10 ms.
    #[default]
    Process,
    /// Its record is on the disk.
    Durable,
}

/// Where a journal is, and when a verdict may be seen.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    /// The folder, created if there is none.
    pub folder: PathBuf,
    /// When a verdict may be seen.
    pub durability: Durability,
    /// Bytes of a segment; `None`: 16 MiB.
    pub segment_bytes: Option<usize>,
}

/// The journal of a running gate.
#[derive(Debug)]
pub(crate) struct Journal<K: Keeper> {
    writer: SegmentWriter<K::Segment>,
    durability: Durability,
    reserve_bytes: usize,
    segment_bytes: usize,
    keeper: K,
    /// Records that were not synced.
    unsynced: u64,
}

/// What a journal has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Everything.
    Orders,
    /// Cancels, reports and operators: the reserve.
    Cancels,
    /// Reports and operators: the second half of the reserve.
    Reports,
}

/// A record was not written, and nothing after it will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// Returns whether the record of `report` has neither a fee nor a version.
#[inline(always)]
pub(crate) const fn has_short_record(report: &Report) -> bool {
    report.fee == 0 && report.version == 0
}

impl<K: Keeper> Journal<K> {
    /// Continues the journal behind `end`, with segments of `bytes`.
    pub(crate) fn resume<S>(storage: S, end: &JournalEnd, durability: Durability, bytes: usize) -> Result<Self>
    where
        S: Storage<Keeper = K> + Disk<Segment = K::Segment>,
    {
        let writer = SegmentWriter::resume(&storage, end, bytes, unix_now().0).context("the journal")?;
        let keeper = storage.keeper(writer.current(), bytes, durability)?;
        let reserve_bytes = RESERVE_BYTES.min(bytes / 4);
        let segment_bytes = bytes;
        let mut journal = Self { writer, durability, reserve_bytes, segment_bytes, keeper, unsynced: 0 };
        journal.ask();
        Ok(journal)
    }

    /// Asks for the segment that is missing.
    fn ask(&mut self) {
        if let Some(missing) = self.writer.needs_spare() {
            self.keeper.ask(missing);
        }
    }

    pub(crate) const fn waits_for_disk(&self) -> bool {
        matches!(self.durability, Durability::Durable)
    }

    /// Returns whether a segment takes a record of `text_len` bytes of text, next to the reserve.
    pub(crate) const fn takes(&self, text_len: usize) -> bool {
        text_len + self.reserve_bytes + 256 <= self.segment_bytes
    }

    /// Returns what there is room for, and takes the next segment if it is needed.
    #[inline(always)]
    pub(crate) fn room(&mut self) -> Room {
        // The segment alone has room, nearly always.
        if self.writer.room_in_segment() >= self.reserve_bytes && !self.keeper.has_failed() {
            return Room::Orders;
        }
        self.room_in_all()
    }

    #[inline(never)]
    fn room_in_all(&mut self) -> Room {
        if self.writer.room() < self.reserve_bytes {
            self.take_spare();
        }
        let room = self.writer.room();
        if room < self.reserve_bytes / 2 {
            Room::Reports
        } else if room < self.reserve_bytes || self.keeper.has_failed() {
            Room::Cancels
        } else {
            Room::Orders
        }
    }

    /// Writes a record; returns its number.
    #[inline(always)]
    pub(crate) fn append(&mut self, now_ns: u64, input: &Input, answer: &Answer) -> Result<u64, Lost> {
        match (input, answer) {
            (Input::Intent { producer, generation, intent }, Answer::Verdict(verdict)) => {
                self.append_judged(now_ns, (*producer, *generation), intent, verdict)
            }
            (Input::Mark(instrument, mark), Answer::Applied(applied)) if mark.proof_ns != 0 => {
                self.append_marked(now_ns, *instrument, mark, applied)
            }
            (Input::Report(report), Answer::Outcome(outcome)) if has_short_record(report) => {
                self.append_reported(now_ns, report, *outcome)
            }
            _ => self.append_any(now_ns, input, answer),
        }
    }

    /// Writes the record of an intent, as [`append`](Self::append) does.
    #[inline(always)]
    pub(crate) fn append_judged(
        &mut self,
        now_ns: u64,
        of: (u16, u32),
        intent: &OrderIntent,
        verdict: &Verdict,
    ) -> Result<u64, Lost> {
        self.append_fixed(now_ns, fixed::judged(of, intent, verdict))
    }

    /// Writes the record of a mark whose proof has a time.
    #[inline(always)]
    pub(crate) fn append_marked(
        &mut self,
        now_ns: u64,
        instrument: InstrumentId,
        mark: &Mark,
        applied: &Result<(), GateError>,
    ) -> Result<u64, Lost> {
        self.append_fixed(now_ns, fixed::marked(instrument, mark, applied))
    }

    /// Writes the record of a report that [has a short one](has_short_record).
    #[inline(always)]
    pub(crate) fn append_reported(&mut self, now_ns: u64, report: &Report, outcome: Outcome) -> Result<u64, Lost> {
        self.append_fixed(now_ns, fixed::reported(report, outcome))
    }

    #[inline(never)]
    fn append_any(&mut self, now_ns: u64, input: &Input, answer: &Answer) -> Result<u64, Lost> {
        let kind = codec::encode(self.writer.begin_record(), input, answer);
        self.write(self.writer.begun_bytes(), |writer| writer.append_begun(now_ns, kind))
    }

    #[inline(always)]
    fn append_fixed<const BODY: usize, const BYTES: usize>(
        &mut self,
        now_ns: u64,
        mut record: Fixed<BODY, BYTES>,
    ) -> Result<u64, Lost> {
        self.write(BODY, |writer| writer.append_fixed::<BODY, BYTES>(now_ns, record.kind, &mut record.bytes))
    }

    /// Writes a record with a body of `body_len` bytes as `append` does.
    #[inline(always)]
    fn write(
        &mut self,
        body_len: usize,
        append: impl FnOnce(&mut SegmentWriter<K::Segment>) -> Result<u64, AppendError>,
    ) -> Result<u64, Lost> {
        let needed = body_len + self.reserve_bytes;
        if self.writer.room_in_segment() < needed && self.writer.room() < needed {
            self.take_spare();
        }
        let segment = self.writer.needs_spare();
        let number = append(&mut self.writer).map_err(|error| self.lose(&error))?;
        if self.writer.needs_spare() != segment {
            self.follow_writer();
        }
        self.unsynced += 1;
        self.keeper.wrote();
        Ok(number)
    }

    #[cold]
    fn lose(&self, error: &AppendError) -> Lost {
        tracing::error!(%error, "risk: the journal is lost: orders are rejected until the next start");
        Lost
    }

    /// The writer is in another segment.
    #[cold]
    fn follow_writer(&mut self) {
        self.keeper.follow(self.writer.current());
        self.ask();
    }

    /// Waits until all records are as safe as verdicts must be.
    pub(crate) fn commit(&mut self) -> Result<(), Lost> {
        if self.durability == Durability::Process || std::mem::take(&mut self.unsynced) == 0 {
            return Ok(());
        }
        self.writer.sync().map_err(|error| {
            tracing::error!(%error, "risk: the journal is lost: orders are rejected until the next start");
            Lost
        })
    }

    /// Waits until all records are on the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.writer.sync().context("the journal")
    }

    /// Takes the next segment, once it is there; asks again if the disk had no room for it.
    #[inline(never)]
    fn take_spare(&mut self) {
        let Some(missing) = self.writer.needs_spare() else { return };
        match self.keeper.take() {
            Some(Ok(spare)) => self.writer.put_spare(spare),
            Some(Err(_)) => self.keeper.ask(missing),
            None => {}
        }
    }
}

/// A thread that makes segments ahead, and syncs.
#[derive(Debug)]
pub struct KeeperThread {
    jobs: Option<Sender<Job>>,
    spares: Receiver<std::io::Result<MappedFile>>,
    thread: Option<JoinHandle<()>>,
    /// Records written, and whether a sync has failed.
    written: Arc<AtomicU64>,
    failed: Arc<AtomicBool>,
    /// Segments in a row that could not be made.
    failures: u64,
    is_asked: bool,
}

#[derive(Debug)]
enum Job {
    /// Make the segment with this number.
    Make(u64),
    /// Sync this file from now on.
    Follow(Arc<File>),
}

impl Storage for SegmentFolder {
    type Keeper = KeeperThread;

    fn keeper(self, current: &MappedFile, bytes: usize, durability: Durability) -> Result<KeeperThread> {
        KeeperThread::start(self, bytes, durability == Durability::Process, current.file())
    }

    fn snapshots(&self) -> std::io::Result<Vec<u64>> {
        recovery::numbers(self.path())
    }

    fn read_snapshot(&self, number: u64) -> std::io::Result<Vec<u8>> {
        recovery::read(self, number)
    }
}

impl KeeperThread {
    fn start(folder: SegmentFolder, bytes: usize, syncs: bool, file: Arc<File>) -> Result<Self> {
        let (jobs, received) = channel();
        let (made, spares) = channel();
        let (written, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, fails) = (Arc::clone(&written), Arc::clone(&failed));
        let thread = thread::Builder::new().name("journal".into()).spawn(move || {
            let (mut file, mut synced, mut segments) = (file, 0, 0_u64);
            let mut snapshots = Snapshots { folder: folder.path().to_owned(), thread: None };
            loop {
                match received.recv_timeout(SYNC_EVERY) {
                    // The gate is gone if it takes nothing.
                    Ok(Job::Make(number)) => drop(made.send(make(&folder, number, bytes))),
                    Ok(Job::Follow(other)) => {
                        (file, segments) = (other, segments + 1);
                        if segments.is_multiple_of(SNAPSHOT_SEGMENTS) {
                            snapshots.begin();
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                let written = seen.load(Ordering::Acquire);
                if syncs && written != std::mem::replace(&mut synced, written) && sync(&file).is_err() {
                    fails.store(true, Ordering::Release);
                }
            }
            let _ = sync(&file);
        });
        let thread = Some(thread.context("risk: cannot start the journal's thread")?);
        Ok(Self { jobs: Some(jobs), spares, thread, written, failed, failures: 0, is_asked: false })
    }
}

/// Writes snapshots on a thread that nothing waits for, one at a time.
struct Snapshots {
    folder: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Snapshots {
    fn begin(&mut self) {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let folder = self.folder.clone();
        let thread = thread::Builder::new().name("snapshot".into()).spawn(move || recovery::write_or_log(&folder));
        // Without a thread there is no snapshot: a start takes longer.
        self.thread = thread.ok();
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Keeper for KeeperThread {
    type Segment = MappedFile;

    fn ask(&mut self, number: u64) {
        if let Some(jobs) = &self.jobs {
            self.is_asked = jobs.send(Job::Make(number)).is_ok();
        }
    }

    fn follow(&mut self, current: &MappedFile) {
        if let Some(jobs) = &self.jobs {
            // A thread that has ended syncs nothing more; `failed` says so.
            let _ = jobs.send(Job::Follow(current.file()));
        }
    }

    /// Waits for the first attempt.
    fn take(&mut self) -> Option<std::io::Result<MappedFile>> {
        if !self.is_asked {
            return None;
        }
        let made = if self.failures == 0 { self.spares.recv().ok() } else { self.spares.try_recv().ok() }?;
        self.is_asked = false;
        self.failures = if made.is_ok() { 0 } else { self.failures + 1 };
        if let (Err(error), 1) = (&made, self.failures) {
            tracing::error!(%error, "risk: no room for the journal: orders are rejected");
        }
        Some(made)
    }

    #[inline]
    fn wrote(&mut self) {
        self.written.store(self.written.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    #[inline]
    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

/// Makes a segment; one that an earlier attempt left behind is replaced.
fn make(folder: &SegmentFolder, number: u64, bytes: usize) -> std::io::Result<MappedFile> {
    if folder.numbers()?.contains(&number) {
        folder.remove(number)?;
    }
    folder.create(number, bytes)
}

fn sync(file: &File) -> std::io::Result<()> {
    file.sync_data().inspect_err(|error| tracing::error!(%error, "risk: the journal cannot be synced"))
}

impl Drop for KeeperThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
