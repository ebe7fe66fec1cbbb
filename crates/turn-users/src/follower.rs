//! A thread that reads a database again and again.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tt_status::accounting::Count;
use tt_status::turn::DatabaseStatus;

use crate::read_error::{ErrorKind, ReadError};
use crate::reader::Reader;
use crate::realm_rows::RealmRows;
use crate::rows::{Rows, SkipReason, Skipped};
use crate::source::Source;

/// Shortest time between two reads.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause is at least this many times as long as the read before it, if that succeeded: a large table does not keep its server busy.
const PAUSES_PER_READ: u32 = 20;
/// Longest time between two reads.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A thread that reads a database until this is dropped.
#[derive(Debug)]
pub struct Follower {
    wake: SyncSender<()>,
    realms: Arc<Mutex<Vec<String>>>,
    status: Arc<Mutex<Status>>,
}

#[derive(Debug)]
struct Status {
    kind: &'static str,
    is_up: bool,
    /// The last read that succeeded.
    good: Option<Instant>,
    users: u64,
    secrets: u64,
    peers: u64,
    changed: u64,
    unchanged: u64,
    failed: [u64; ErrorKind::ALL.len()],
    skipped: Skipped,
}

impl Follower {
    /// Makes the next read begin now.
    pub fn read_now(&self) {
        // A full queue has a request for a read that has not begun.
        let _ = self.wake.try_send(());
    }

    /// Makes the next read, which begins now, one of these realms.
    pub fn read_realms(&self, realms: Vec<String>) {
        *self.realms.lock().unwrap_or_else(PoisonError::into_inner) = realms;
        self.read_now();
    }

    /// Returns a reading of the status.
    pub fn reading(&self) -> impl Fn() -> DatabaseStatus + Send + Sync + use<> {
        let status = Arc::clone(&self.status);
        move || status.lock().unwrap_or_else(PoisonError::into_inner).read()
    }
}

/// A database after its first read.
pub struct Database {
    reader: Box<dyn Reader>,
    realms: Vec<String>,
    first: Result<Option<RealmRows>, ReadError>,
    took: Duration,
    kind: &'static str,
}

impl Database {
    /// Reads `realms` of `source` for the first time. It may be away: [`Database::rows`] has the error.
    ///
    /// # Errors
    /// `NotBuilt`: the feature of this kind is off.
    pub fn open(source: &Source, realms: Vec<String>) -> Result<Self, ReadError> {
        let mut reader = source.open()?;
        let began = Instant::now();
        let first = reader.read(&realms);
        Ok(Self { reader, realms, first, took: began.elapsed(), kind: source.kind() })
    }

    /// Returns the rows of the first read.
    ///
    /// # Errors
    /// Why it failed.
    pub fn rows(&self) -> Result<Option<&RealmRows>, &ReadError> {
        self.first.as_ref().map(Option::as_ref)
    }

    /// Passes the realms and rows of the first read to `apply`, and starts a thread that passes those of every later one,
    /// unless they are known to be the same. `apply` returns whether they differ from the ones before.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn follow(self, mut apply: impl FnMut(&[String], RealmRows) -> bool + Send + 'static) -> io::Result<Follower> {
        let Self { mut reader, realms, first, took, kind } = self;
        let status = Arc::new(Mutex::new(Status::new(kind)));
        let mut pause = pause_after(&first, took);
        pass((&realms, first), &status, &mut apply);
        let realms = Arc::new(Mutex::new(realms));
        let (written, asked, (wake, woken)) = (Arc::clone(&status), Arc::clone(&realms), sync_channel(1));
        let run = move || {
            while wait(&woken, pause) {
                let began = Instant::now();
                let realms = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let read = reader.read(&realms);
                pause = pause_after(&read, began.elapsed());
                pass((&realms, read), &written, &mut apply);
            }
        };
        thread::Builder::new().name("turn-users".to_owned()).spawn(run)?;
        Ok(Follower { wake, realms, status })
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Returns the time until the next read. One that failed may have waited all the time: its server is no busier.
fn pause_after(read: &Result<Option<RealmRows>, ReadError>, took: Duration) -> Duration {
    let pause = if read.is_ok() { took * PAUSES_PER_READ } else { took };
    pause.clamp(PAUSE, PAUSE_MAX)
}

/// Waits for the next read; false if there is none.
fn wait(woken: &Receiver<()>, pause: Duration) -> bool {
    !matches!(woken.recv_timeout(pause), Err(RecvTimeoutError::Disconnected))
}

/// Counts a read, logs what is not used, and passes on what has changed.
fn pass(
    (realms, read): (&[String], Result<Option<RealmRows>, ReadError>),
    status: &Mutex<Status>,
    apply: &mut impl FnMut(&[String], RealmRows) -> bool,
) {
    let skipped = status.lock().unwrap_or_else(PoisonError::into_inner).count(&read);
    for reason in SkipReason::ALL {
        let rows = skipped.map_or(0, |skipped| skipped.count(reason));
        if rows > 0 {
            tracing::warn!(reason = reason.name(), rows, "rows of the database are not used");
        }
    }
    if let Ok(Some(rows)) = read {
        let is_changed = apply(realms, rows);
        status.lock().unwrap_or_else(PoisonError::into_inner).count_applied(is_changed);
    }
}

impl Status {
    fn new(kind: &'static str) -> Self {
        Self {
            kind,
            is_up: true,
            good: None,
            users: 0,
            secrets: 0,
            peers: 0,
            changed: 0,
            unchanged: 0,
            failed: [0; ErrorKind::ALL.len()],
            skipped: Skipped::default(),
        }
    }

    /// Counts a read, and returns the numbers of rows that are not used if they have changed.
    fn count(&mut self, read: &Result<Option<RealmRows>, ReadError>) -> Option<Skipped> {
        let before = self.skipped;
        match read {
            Ok(Some(rows)) => {
                let sum = |len: fn(&Rows) -> usize| rows.all().map(|rows| len(rows) as u64).sum();
                (self.users, self.secrets) = (sum(|rows| rows.users.len()), sum(|rows| rows.secrets.len()));
                self.peers = sum(|rows| rows.allowed_peers.len() + rows.denied_peers.len());
                self.skipped = Skipped::default();
                rows.all().for_each(|rows| self.skipped.add_all(&rows.skipped));
            }
            Ok(None) => self.unchanged += 1,
            Err(error) => self.failed[error.kind as usize] += 1,
        }
        match (read, self.is_up) {
            (Ok(_), false) => tracing::info!(database = self.kind, "the database is back"),
            (Err(error), true) => {
                let (kind, cause) = (error.kind.name(), error.cause.as_str());
                tracing::error!(
                    database = self.kind,
                    kind,
                    cause,
                    "the database cannot be read; the last users and secrets stay in force"
                );
            }
            (Ok(_), true) | (Err(_), false) => {}
        }
        self.is_up = read.is_ok();
        if self.is_up {
            self.good = Some(Instant::now());
        }
        (self.skipped != before).then_some(self.skipped)
    }

    /// Counts a read with rows by whether they differ from the ones before.
    fn count_applied(&mut self, is_changed: bool) {
        let count = if is_changed { &mut self.changed } else { &mut self.unchanged };
        *count += 1;
    }

    fn read(&self) -> DatabaseStatus {
        let failed = ErrorKind::ALL.iter().map(|kind| Count { name: kind.name(), count: self.failed[*kind as usize] });
        let of_reads = [("changed", self.changed), ("unchanged", self.unchanged)];
        let reads = of_reads.into_iter().map(|(name, count)| Count { name, count });
        let skipped = SkipReason::ALL.iter();
        DatabaseStatus {
            kind: self.kind,
            is_up: self.is_up,
            age_ms: self.good.map(|good| u64::try_from(good.elapsed().as_millis()).unwrap_or(u64::MAX)),
            users: self.users,
            secrets: self.secrets,
            peers: self.peers,
            reads: reads.chain(failed).collect(),
            skipped: skipped.map(|reason| Count { name: reason.name(), count: self.skipped.count(*reason) }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_table_is_read_less_often_and_a_failure_soon_again() {
        let good = |ms| pause_after(&Ok(None), Duration::from_millis(ms)).as_millis();
        assert_eq!([good(0), good(50), good(200), good(9_000)], [1_000, 1_000, 4_000, 60_000]);
        let failed = Err(ReadError::new(ErrorKind::Timeout, "no answer"));
        assert_eq!(pause_after(&failed, Duration::from_secs(5)), Duration::from_secs(5));
        assert_eq!(pause_after(&failed, Duration::ZERO), PAUSE);
    }
}
