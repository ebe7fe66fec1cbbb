//! Status of a feed for other threads, in addition to the engine's own board.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::arrivals::SilentTopic;
use super::frame_timings::Times;
use super::topics::Refusal;
use tt_status::market::{Difference, Incident};
use tt_venue::event::UnderlyingHours;

/// Waiters check again after this long, even without a notification.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Refusals that are kept for show.
const REFUSALS_MAX: usize = 64;

/// Silent topics that are kept for show.
pub(super) const SILENT_MAX: usize = 64;

/// Differences that are kept for show.
const DIFFERENCES_MAX: usize = 16;

/// How a feed fares.
#[derive(Clone, Debug, Default)]
pub struct FeedStatus {
    /// Connected, and every request answered.
    pub connected: bool,
    /// Connections opened since the start.
    pub connections: u64,
    /// Connections that took over from one whose end was announced or due, without a gap.
    pub planned_reconnects: u64,
    /// WebSocket frames that carried text.
    pub frames: u64,
    /// Snapshots fetched over REST.
    pub snapshots: u64,
    /// REST requests that failed.
    pub snapshots_failed: u64,
    /// What the venue refused.
    pub refusals: Vec<Refusal>,
    /// Topics that the venue accepted and does not send, at most 64.
    pub silent_topics: Vec<SilentTopic>,
    /// The sessions of markets that contracts of the venue follow, as it has last sent them.
    pub sessions: Vec<UnderlyingHours>,
    /// The last levels of which a book and a REST snapshot differed, at most 16.
    pub differences: Vec<Difference>,
    /// The last incidents of its books, at most 32.
    pub incidents: Arc<Vec<Incident>>,
    /// Why the last connection ended, or could not be opened.
    pub last_error: Option<String>,
}

impl FeedStatus {
    /// Connections made again after the first.
    #[must_use]
    pub const fn reconnects(&self) -> u64 {
        self.connections.saturating_sub(1)
    }

    /// Takes the session of a market; returns whether it is another one than before.
    pub(super) fn take_session(&mut self, session: UnderlyingHours) -> bool {
        match self.sessions.iter_mut().find(|known| known.market == session.market) {
            Some(known) if *known == session => return false,
            Some(known) => *known = session,
            None => self.sessions.push(session),
        }
        true
    }

    pub(super) fn differ(&mut self, difference: Difference) {
        if self.differences.len() == DIFFERENCES_MAX {
            self.differences.remove(0);
        }
        self.differences.push(difference);
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if self.refusals.len() < REFUSALS_MAX && !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}

/// What a feed publishes. Its thread never waits for a reader: a value that is locked is published next time.
#[derive(Debug, Default)]
pub(super) struct SharedStatus {
    status: Mutex<FeedStatus>,
    times: Mutex<Times>,
}

impl SharedStatus {
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

/// Wakes waiting threads after a change; without waiters it costs one load.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeSignal(Arc<Waiters>);

#[derive(Debug, Default)]
struct Waiters {
    count: AtomicUsize,
    lock: Mutex<()>,
    condition: Condvar,
}

impl ChangeSignal {
    /// Something signal.
    pub(super) fn notify(&self) {
        if self.0.count.load(SeqCst) > 0 {
            let _held = lock(&self.0.lock);
            self.0.condition.notify_all();
        }
    }

    /// Waits until `is_so`, at most until `deadline`; returns whether it is so.
    pub(super) fn wait(&self, deadline: Instant, mut is_so: impl FnMut() -> bool) -> bool {
        let _waiting = Waiting::new(&self.0);
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
        so
    }
}

/// A waiter is counted for as long as it waits, also where what it looks for panics.
struct Waiting<'a>(&'a Waiters);

impl<'a> Waiting<'a> {
    fn new(waiters: &'a Waiters) -> Self {
        waiters.count.fetch_add(1, SeqCst);
        Self(waiters)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_m42_a_waiter_that_panics_is_gone_and_the_others_are_woken() {
        let signal = ChangeSignal::default();
        let waiter = signal.clone();
        let panicked = std::thread::spawn(move || {
            waiter.wait(Instant::now() + Duration::from_secs(60), || panic!("as this test wants it"))
        });
        assert!(panicked.join().is_err());
        assert_eq!(signal.0.count.load(SeqCst), 0, "no waiter is counted");
        let is_so = Arc::new(AtomicUsize::new(0));
        let (waiter, seen) = (signal.clone(), Arc::clone(&is_so));
        let other = std::thread::spawn(move || {
            waiter.wait(Instant::now() + Duration::from_secs(60), || seen.fetch_add(1, SeqCst) > 2)
        });
        while is_so.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        while !other.is_finished() {
            signal.notify();
        }
        assert!(other.join().unwrap());
        assert_eq!(signal.0.count.load(SeqCst), 0);
    }
}
