//! What a feed shows to other threads beside the engine's own board.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ledger::Times;
use super::topics::Refusal;

/// Waiters look again after this long even if nobody tells them.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Refusals that are kept for show.
const REFUSALS_MAX: usize = 64;

/// How a feed fares.
#[derive(Clone, Debug, Default)]
pub struct FeedStatus {
    /// Connected, and every request answered.
    pub connected: bool,
    /// Connections opened since the start.
    pub connections: u64,
    /// WebSocket frames that carried text.
    pub frames: u64,
    /// Snapshots fetched over REST.
    pub snapshots: u64,
    /// REST requests that failed.
    pub snapshots_failed: u64,
    /// What the venue refused.
    pub refusals: Vec<Refusal>,
    /// Why the last connection ended, or could not be opened.
    pub last_error: Option<String>,
}

impl FeedStatus {
    /// Connections made again after the first.
    #[must_use]
    pub const fn reconnects(&self) -> u64 {
        self.connections.saturating_sub(1)
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if self.refusals.len() < REFUSALS_MAX && !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}

/// What a feed publishes. The feed's thread never waits for a reader: what is locked at the moment is told next time.
#[derive(Debug, Default)]
pub(super) struct Published {
    status: Mutex<FeedStatus>,
    times: Mutex<Times>,
}

impl Published {
    pub(super) fn status(&self) -> FeedStatus {
        lock(&self.status).clone()
    }

    pub(super) fn times(&self) -> Times {
        lock(&self.times).clone()
    }

    pub(super) fn publish_status(&self, status: &FeedStatus) {
        lock(&self.status).clone_from(status);
    }

    pub(super) fn publish_times(&self, times: Times) {
        if let Ok(mut shown) = self.times.try_lock() {
            *shown = times;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells waiting threads that something changed, and costs nothing while nobody waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed(Arc<Waiters>);

#[derive(Debug, Default)]
struct Waiters {
    count: AtomicUsize,
    lock: Mutex<()>,
    condition: Condvar,
}

impl Changed {
    /// Something changed.
    pub(super) fn tell(&self) {
        if self.0.count.load(SeqCst) > 0 {
            let _held = lock(&self.0.lock);
            self.0.condition.notify_all();
        }
    }

    /// Waits until `is_so`, at most until `deadline`; tells whether it is so.
    pub(super) fn wait(&self, deadline: Instant, mut is_so: impl FnMut() -> bool) -> bool {
        self.0.count.fetch_add(1, SeqCst);
        let mut held = lock(&self.0.lock);
        let so = loop {
            if is_so() {
                break true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break false;
            }
            let waited = self.0.condition.wait_timeout(held, left.min(LOOK_AGAIN));
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(held);
        self.0.count.fetch_sub(1, SeqCst);
        so
    }
}
