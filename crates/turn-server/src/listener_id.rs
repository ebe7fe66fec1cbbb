//! Numbers of listeners, and who uses those that are gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of a listener, which no other one gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenerId(u32);

impl ListenerId {
    /// Returns this number; from now on it is the next one.
    pub(crate) const fn take(&mut self) -> Self {
        let id = *self;
        self.0 += 1;
        id
    }
}

/// That a worker may have allocations at a former listener, until it is dropped.
#[derive(Debug)]
pub(crate) struct ListenerUse {
    workers: Arc<AtomicUsize>,
}

impl ListenerUse {
    /// Counts one more of the workers.
    pub(crate) fn new(workers: &Arc<AtomicUsize>) -> Self {
        workers.fetch_add(1, Ordering::AcqRel);
        Self { workers: Arc::clone(workers) }
    }

    /// Returns the number of workers that may have allocations there.
    pub(crate) fn workers(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.workers)
    }
}

impl Drop for ListenerUse {
    fn drop(&mut self) {
        self.workers.fetch_sub(1, Ordering::AcqRel);
    }
}
