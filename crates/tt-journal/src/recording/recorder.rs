//! Writes a recording on a separate thread, so that the sender never waits for the disk.
//!
//! Each [`RecordSender`] fills blocks from a fixed pool and sends them to the thread through a bounded queue. If no block is
//! free, records are dropped and counted, and a `Lost` record takes their place. If the disk fails, recording stops,
//! `on_failure` is called once, and later records are dropped and counted. Records offered = written + dropped, by
//! name, always.

use super::{BODY_BYTES_MAX, HEAD_BYTES, RecordHead, RecordKind, encode, pack, seal};
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The destination of a recording.
pub trait Store: Write + Send + 'static {
    /// Syncs the written bytes to the medium.
    ///
    /// # Errors
    /// The sync failed, so the bytes may be missing.
    fn sync(&mut self) -> io::Result<()>;
}

impl Store for File {
    fn sync(&mut self) -> io::Result<()> {
        match self.sync_data() {
            // Pipes and devices have no medium behind them.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            done => done,
        }
    }
}

/// Configuration of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Longest time between a write and its sync: the data that a power failure may cost.
    pub sync_every: Duration,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Blocks of each sender.
    pub blocks: usize,
    /// Whether blocks are compressed with LZ4.
    pub packed: bool,
}

impl Default for RecorderConfig {
    fn default() -> Self {
        Self { sync_every: Duration::from_millis(10), block_bytes: 256 << 10, blocks: 64, packed: false }
    }
}

/// Why recording stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The system's kind of error.
    pub kind: io::ErrorKind,
    /// The system's message.
    pub reason: String,
}

/// Progress of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records offered.
    pub offered: u64,
    /// Records written.
    pub written: u64,
    /// Records dropped because no block was free.
    pub dropped_full: u64,
    /// Records dropped because recording has stopped, or that were on their way then.
    pub dropped_stopped: u64,
    /// Records dropped because they are longer than a record may be.
    pub dropped_long: u64,
    /// Bytes written, the header not included.
    pub bytes: u64,
    /// Why recording stopped, if it did.
    pub failure: Option<Failure>,
}

impl Progress {
    /// All dropped records.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_stopped + self.dropped_long
    }

    /// Whether every record is accounted for; between two blocks, some are on their way.
    #[must_use]
    pub const fn closes(&self) -> bool {
        self.offered == self.written + self.dropped()
    }
}

#[derive(Debug, Default)]
struct Shared {
    offered: AtomicU64,
    written: AtomicU64,
    dropped_full: AtomicU64,
    dropped_stopped: AtomicU64,
    dropped_long: AtomicU64,
    bytes: AtomicU64,
    has_stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// A block on its way to the thread.
#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    /// Records that were offered; `Lost` records are our own.
    offered: u64,
    back: Sender<Vec<u8>>,
}

/// A running recorder. Dropping it without [`finish`](Self::finish) leaves the thread to end when the last sender is gone.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    sender: SyncSender<Block>,
    config: RecorderConfig,
    thread: JoinHandle<()>,
}

/// One feed's way into a recording.
#[derive(Debug)]
pub struct RecordSender {
    feed: u16,
    shared: Arc<Shared>,
    sender: SyncSender<Block>,
    back: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    /// Empty blocks. Half of all blocks are for full ones alone: a slow disk gets fewer and fuller blocks.
    free: Vec<Vec<u8>>,
    block: Vec<u8>,
    offered: u64,
    config: RecorderConfig,
    /// Records and bytes that are missing since the last one that found room.
    lost: (u64, u64),
    ts_last_ns: u64,
}

impl Recorder {
    /// Starts the thread that writes to `store`, which holds its header already. `on_failure` is called once, on that
    /// thread, where writing or syncing fails.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        store: impl Store,
        config: RecorderConfig,
        on_failure: impl FnOnce(&Failure) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = mpsc::sync_channel(config.blocks.max(1) * 8);
        let mut writer =
            Writer { store, shared: Arc::clone(&shared), packed: Vec::new(), unsynced_since: None, config };
        let thread = thread::Builder::new().name("recorder".into()).spawn(move || {
            if let Err(error) = writer.run(&receiver) {
                let failure = Failure { kind: error.kind(), reason: error.to_string() };
                on_failure(&failure);
                writer.stop(failure, &receiver);
            }
        })?;
        Ok(Self { shared, sender, config, thread })
    }

    /// A way in for `feed`.
    #[must_use]
    pub fn sender(&self, feed: u16) -> RecordSender {
        let block = || Vec::with_capacity(self.config.block_bytes);
        RecordSender {
            feed,
            shared: Arc::clone(&self.shared),
            sender: self.sender.clone(),
            back: mpsc::channel(),
            free: (1..self.config.blocks).map(|_| block()).collect(),
            block: block(),
            offered: 0,
            config: self.config,
            lost: (0, 0),
            ts_last_ns: 0,
        }
    }

    /// Returns the progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.shared.progress()
    }

    /// Waits until everything of the senders, which must be gone, is written and synced.
    #[must_use]
    pub fn finish(self) -> Progress {
        drop(self.sender);
        if self.thread.join().is_err() {
            self.shared.fail(Failure { kind: io::ErrorKind::Other, reason: "the recorder's thread panicked".into() });
        }
        self.shared.progress()
    }
}

impl Shared {
    fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        Progress {
            offered: load(&self.offered),
            written: load(&self.written),
            dropped_full: load(&self.dropped_full),
            dropped_stopped: load(&self.dropped_stopped),
            dropped_long: load(&self.dropped_long),
            bytes: load(&self.bytes),
            failure: self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn fail(&self, failure: Failure) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        self.has_stopped.store(true, Relaxed);
    }
}

impl RecordSender {
    /// Writes down one record. It never waits: a record that finds no room is dropped and counted.
    pub fn record(&mut self, ts_ns: u64, kind: RecordKind, subject: u32, body: &[u8]) {
        self.shared.offered.fetch_add(1, Relaxed);
        if self.shared.has_stopped.load(Relaxed) {
            self.shared.dropped_stopped.fetch_add(1, Relaxed);
            return;
        }
        if body.len() > BODY_BYTES_MAX {
            self.shared.dropped_long.fetch_add(1, Relaxed);
            self.lost = (self.lost.0 + 1, self.lost.1 + body.len() as u64);
            return;
        }
        // Room for what was lost, too.
        let len = 2 * HEAD_BYTES + 16 + body.len();
        if self.block.len() + len > self.config.block_bytes && !self.block.is_empty() && !self.send() {
            self.shared.dropped_full.fetch_add(1, Relaxed);
            self.lost = (self.lost.0 + 1, self.lost.1 + body.len() as u64);
            return;
        }
        self.write_lost(ts_ns);
        encode(&mut self.block, RecordHead { ts_ns, feed: self.feed, kind, subject }, body);
        self.offered += 1;
    }

    /// Writes a `Lost` record if records are missing at this point.
    fn write_lost(&mut self, ts_ns: u64) {
        let (records, bytes) = std::mem::take(&mut self.lost);
        if records > 0 {
            let mut body = [0; 16];
            body[..8].copy_from_slice(&records.to_le_bytes());
            body[8..].copy_from_slice(&bytes.to_le_bytes());
            encode(&mut self.block, RecordHead { ts_ns, feed: self.feed, kind: RecordKind::Lost, subject: 0 }, &body);
        }
        self.ts_last_ns = ts_ns;
    }

    /// Sends the current block, unless that would block.
    pub fn flush(&mut self) {
        self.free.extend(self.back.1.try_iter());
        if !self.block.is_empty() && self.free.len() > self.config.blocks / 2 {
            self.send();
        }
    }

    /// Returns whether recording has stopped permanently.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.shared.has_stopped.load(Relaxed)
    }

    /// Sends the block and takes an empty one; returns `false` if there is none.
    fn send(&mut self) -> bool {
        self.free.extend(self.back.1.try_iter());
        let Some(empty) = self.free.pop() else { return false };
        let bytes = std::mem::replace(&mut self.block, empty);
        let block = Block { bytes, offered: std::mem::take(&mut self.offered), back: self.back.0.clone() };
        match self.sender.try_send(block) {
            Ok(()) => true,
            Err(TrySendError::Full(block)) => {
                self.offered = block.offered;
                self.free.push(std::mem::replace(&mut self.block, block.bytes));
                false
            }
            Err(TrySendError::Disconnected(block)) => {
                self.shared.dropped_stopped.fetch_add(block.offered, Relaxed);
                true
            }
        }
    }
}

impl Drop for RecordSender {
    /// The last block may wait for the thread: nothing is served any more.
    fn drop(&mut self) {
        self.write_lost(self.ts_last_ns);
        let block = Block { bytes: std::mem::take(&mut self.block), offered: self.offered, back: self.back.0.clone() };
        if let Err(mpsc::SendError(block)) = self.sender.send(block) {
            self.shared.dropped_stopped.fetch_add(block.offered, Relaxed);
        }
    }
}

/// The thread's half.
struct Writer<S> {
    store: S,
    shared: Arc<Shared>,
    packed: Vec<u8>,
    unsynced_since: Option<Instant>,
    config: RecorderConfig,
}

impl<S: Store> Writer<S> {
    fn run(&mut self, receiver: &Receiver<Block>) -> io::Result<()> {
        loop {
            let received = match self.unsynced_since {
                Some(since) => {
                    let left = self.config.sync_every.saturating_sub(since.elapsed());
                    if left.is_zero() {
                        self.sync()?;
                        continue;
                    }
                    receiver.recv_timeout(left)
                }
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(block) => self.write(block)?,
                Err(RecvTimeoutError::Timeout) => self.sync()?,
                Err(RecvTimeoutError::Disconnected) => return self.sync(),
            }
        }
    }

    fn write(&mut self, mut block: Block) -> io::Result<()> {
        seal(&mut block.bytes);
        let is_packed = self.config.packed && pack(&block.bytes, &mut self.packed);
        let bytes = if is_packed { &self.packed } else { &block.bytes };
        let written = self.store.write_all(bytes).and_then(|()| self.store.flush());
        if let Err(error) = written {
            self.shared.dropped_stopped.fetch_add(block.offered, Relaxed);
            return Err(error);
        }
        self.unsynced_since = self.unsynced_since.or_else(|| Some(Instant::now()));
        self.shared.written.fetch_add(block.offered, Relaxed);
        self.shared.bytes.fetch_add(bytes.len() as u64, Relaxed);
        block.bytes.clear();
        // A sender that is gone wants nothing back.
        let _ = block.back.send(block.bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unsynced_since = None;
        self.store.sync()
    }

    /// Takes what is still on its way, so that it is counted, until the last sender is gone.
    fn stop(&self, failure: Failure, receiver: &Receiver<Block>) {
        self.shared.fail(failure);
        while let Ok(mut block) = receiver.recv() {
            self.shared.dropped_stopped.fetch_add(block.offered, Relaxed);
            block.bytes.clear();
            let _ = block.back.send(block.bytes);
        }
    }
}
