//! Allocation records: one JSON line at the beginning and one at the end of every allocation, written by a thread of
//! their own; and the traffic of ended allocations by user.
//!
//! A worker never waits for the disk. While the thread is behind, events wait in the queue of the engine, which has
//! room for the end of every allocation. Events that find that queue full, and lines that cannot be written, are
//! counted.

mod line;
mod sink;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_turn::WorkerId;
use tt_turn::event::AllocationEvent;
use turn_config::RecordOutput;

use crate::ended_allocations::EndedAllocations;
use crate::privileges;
use crate::realm_names::RealmNames;
use line::LineWriter;
pub(crate) use sink::Sink;

/// Events that may wait for the thread.
const ENTRIES_MAX: usize = 256;
/// Bytes of lines that are written at once.
const BATCH_LEN: usize = 64 << 10;
/// How long the thread lets events gather: to wake it for each one would cost a worker more than the event.
const GATHERED: Duration = Duration::from_millis(2);
/// Interval of log events while the output fails.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// One event on its way to the thread.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) worker: WorkerId,
    /// Number of the allocation in this worker, also after a restart of the worker.
    pub(crate) number: u64,
    pub(crate) event: AllocationEvent,
}

/// Handle for workers. Clones share one queue.
#[derive(Clone, Debug)]
pub(crate) struct RecordSender {
    to: SyncSender<Entry>,
    counts: Arc<RecordCounts>,
    wants: Wanted,
}

/// Events that the thread has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    Ends,
}

/// Numbers of lines.
#[derive(Debug, Default)]
pub(crate) struct RecordCounts {
    written: AtomicU64,
    write_failed: AtomicU64,
    /// Those that a worker gave up at its end.
    given_up: AtomicU64,
}

impl RecordCounts {
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn write_failed(&self) -> u64 {
        self.write_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }
}

impl RecordSender {
    /// Queues an event, or returns it if the queue is full. Never waits.
    #[must_use]
    pub(crate) fn push(&self, entry: Entry) -> Option<Entry> {
        if self.wants == Wanted::Ends && entry.event.end.is_none() {
            return None;
        }
        match self.to.try_send(entry) {
            Ok(()) => None,
            Err(TrySendError::Full(entry)) => Some(entry),
            Err(TrySendError::Disconnected(_)) => {
                self.give_up(1);
                None
            }
        }
    }

    /// Counts events that no record is written for.
    pub(crate) fn give_up(&self, events: u64) {
        self.counts.given_up.fetch_add(events, Ordering::Relaxed);
    }
}

/// The started thread.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) sender: RecordSender,
    /// `None` without an output.
    pub(crate) counts: Option<Arc<RecordCounts>>,
    pub(crate) ended: EndedAllocations,
    pub(crate) thread: JoinHandle<()>,
}

/// Opens the output, if there is one, and starts the thread that writes to it and counts the traffic of ended allocations.
/// It ends when all clones of the handle are dropped.
///
/// # Errors
/// The output cannot be opened.
pub(crate) fn start(output: Option<&RecordOutput>, realms: RealmNames) -> anyhow::Result<Records> {
    let counts = Arc::new(RecordCounts::default());
    let ended = EndedAllocations::new(realms.clone());
    let open = |output| Sink::open(output).with_context(|| format!("turn: --cdr: cannot open {output}"));
    let writer = output.map(open).transpose()?;
    let mut writer = writer.map(|sink| Writer { sink, counts: Arc::clone(&counts), failing: None });
    let run = getrandom::u64().context("turn: no random bytes from the system")?;
    let (to, from) = sync_channel::<Entry>(ENTRIES_MAX);
    let (lines, table) = (LineWriter { run, realms }, ended.clone());
    let write = move || {
        privileges::drop_all();
        let mut batch = String::with_capacity(if writer.is_some() { BATCH_LEN } else { 0 });
        while let Ok(first) = from.recv() {
            batch.clear();
            let rest = std::iter::from_fn(|| from.try_recv().ok());
            for entry in std::iter::once(first).chain(rest.take(ENTRIES_MAX)) {
                if let Some(end) = &entry.event.end {
                    table.count(&entry.event.start, end);
                }
                if let Some(writer) = &mut writer {
                    lines.write(&mut batch, &entry);
                    writer.write_if_full(&mut batch);
                }
            }
            if let Some(writer) = &mut writer {
                writer.write(&batch);
            }
            thread::sleep(GATHERED);
        }
    };
    let thread = thread::Builder::new().name("turn-records".into()).spawn(write);
    let thread = thread.context("turn: cannot start a thread")?;
    let wants = if output.is_some() { Wanted::All } else { Wanted::Ends };
    let sender = RecordSender { to, counts: Arc::clone(&counts), wants };
    Ok(Records { sender, counts: output.map(|_| counts), ended, thread })
}

/// The thread that writes.
struct Writer {
    sink: Sink,
    counts: Arc<RecordCounts>,
    failing: Option<Failure>,
}

/// An output that fails.
struct Failure {
    logged_at: Instant,
    lost: u64,
}

impl Writer {
    /// Writes and empties a batch that is long enough.
    fn write_if_full(&mut self, batch: &mut String) {
        if batch.len() >= BATCH_LEN {
            self.write(batch);
            batch.clear();
        }
    }

    fn write(&mut self, batch: &str) {
        if batch.is_empty() {
            return;
        }
        let all = batch.lines().count() as u64;
        let (lost, error) = match self.sink.write(batch) {
            Ok(()) => (0, None),
            Err(failed) => (failed.lost, Some(failed.error)),
        };
        self.counts.written.fetch_add(all - lost, Ordering::Relaxed);
        self.counts.write_failed.fetch_add(lost, Ordering::Relaxed);
        match (error, &mut self.failing) {
            (Some(error), None) => {
                tracing::error!(%error, lost, "allocation records cannot be written");
                self.failing = Some(Failure { logged_at: Instant::now(), lost });
            }
            (Some(error), Some(failing)) => {
                failing.lost += lost;
                if failing.logged_at.elapsed() >= LOG_EVERY {
                    failing.logged_at = Instant::now();
                    tracing::error!(%error, lost = failing.lost, "allocation records cannot be written");
                }
            }
            (None, Some(failing)) => {
                tracing::warn!(lost = failing.lost, "allocation records are written again");
                self.failing = None;
            }
            (None, None) => {}
        }
    }
}
