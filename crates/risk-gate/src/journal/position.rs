//! How far a journal is written, for readers in other threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tt_status::risk::JournalRow;

/// The number of the newest record, and whether the journal is lost.
#[derive(Debug, Default)]
pub struct JournalPosition {
    /// 0 without a journal: the first record of every journal is 1.
    record: AtomicU64,
    is_lost: AtomicBool,
}

impl JournalPosition {
    #[inline]
    pub(crate) fn publish(&self, record: u64) {
        self.record.store(record, Ordering::Relaxed);
    }

    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Returns both; `None` if the gate keeps no journal.
    #[must_use]
    pub fn row(&self) -> Option<JournalRow> {
        let record = self.record.load(Ordering::Relaxed);
        (record > 0).then(|| JournalRow { record, is_lost: self.is_lost.load(Ordering::Relaxed) })
    }
}
