//! Who publishes a feed's events: the feed itself while there are few readers in all, else the publisher's thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::Instant;

use super::distributor::{Books, Distributor};

/// Readers that feeds serve themselves, at most: no other thread has to wake, so that a message leaves sooner. A write takes
/// the feed some microseconds, which 100 readers would make too many.
pub(super) const READERS_HERE_MAX: u64 = 4;

/// The distributor, which whoever publishes locks.
#[derive(Clone, Debug)]
pub(super) struct SharedDistributor(Arc<Mutex<Distributor>>);

impl SharedDistributor {
    pub(super) fn new(distributor: Distributor) -> Self {
        Self(Arc::new(Mutex::new(distributor)))
    }

    /// Waits for it. The turns of a thread that panicked go on.
    pub(super) fn lock(&self) -> MutexGuard<'_, Distributor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Distributor>> {
        match self.0.try_lock() {
            Ok(distributor) => Some(distributor),
            Err(TryLockError::Poisoned(distributor)) => Some(distributor.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A feed's way to have the events of its ring published.
#[derive(Debug)]
pub(super) struct Handover {
    pub(super) books: Arc<Books>,
    pub(super) distributor: SharedDistributor,
    /// The number of the feed's ring.
    pub(super) ring: usize,
    /// The publisher's.
    pub(super) thread: Thread,
}

impl Handover {
    /// Publishes them here if there are few readers and no other thread is at it, else by the publisher's thread.
    pub(super) fn publish(&self) {
        let is_for_few = (1..=READERS_HERE_MAX).contains(&self.books.counts.readers());
        let distributor = if is_for_few { self.distributor.try_lock() } else { None };
        if !distributor.is_some_and(|mut distributor| distributor.advance_one(self.ring, Instant::now())) {
            self.thread.unpark();
        }
    }
}
