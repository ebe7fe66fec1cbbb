//! How far a journal is written, for readers in other threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of the newest record, and whether the journal is lost.
#[derive(Debug, Default)]
pub struct JournalPosition {
    /// 0 without a journal: the first record of every journal is 1.
    record: AtomicU64,
    is_lost: AtomicBool,
}

impl JournalPosition {
    pub(crate) fn publish(&self, record: u64) {
        self.record.store(record, Ordering::Relaxed);
    }

    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Returns the number of the newest record; `None` if the gate keeps no journal.
    #[must_use]
    pub fn record(&self) -> Option<u64> {
        Some(self.record.load(Ordering::Relaxed)).filter(|record| *record > 0)
    }

    /// Returns whether the journal cannot be written any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}
