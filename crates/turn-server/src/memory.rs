//! The bound of resident memory: above it the workers make no allocations.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use anyhow::Context as _;
use tt_os::usage::resident_bytes;
use tt_turn::shared::Shared;

use crate::privileges;

/// Shortest and longest interval between two readings.
const READ_EVERY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// More than workers can fill: the bound is read before memory that grows this fast reaches it.
const GROWTH_BYTES_PER_S: u64 = 2 << 30;

/// The bound of resident memory, which a reload changes.
#[derive(Debug)]
pub(crate) struct MemoryBound {
    max_bytes: AtomicU64,
    watcher: OnceLock<Thread>,
}

impl MemoryBound {
    /// Creates a bound in bytes. With `u64::MAX` there is none.
    pub(crate) const fn new(max_bytes: u64) -> Self {
        Self { max_bytes: AtomicU64::new(max_bytes), watcher: OnceLock::new() }
    }

    /// Changes the bound, and has the memory read at once.
    pub(crate) fn set(&self, max_bytes: u64) {
        if self.max_bytes.swap(max_bytes, Ordering::Relaxed) != max_bytes
            && let Some(watcher) = self.watcher.get()
        {
            watcher.unpark();
        }
    }

    /// Returns the bound, if there is one.
    fn get(&self) -> Option<u64> {
        Some(self.max_bytes.load(Ordering::Relaxed)).filter(|max| *max < u64::MAX)
    }
}

/// Reads the watched memory from any thread.
#[derive(Clone, Debug)]
pub(crate) struct MemoryReader {
    bound: Arc<MemoryBound>,
    resident_bytes: Arc<AtomicU64>,
}

impl MemoryReader {
    /// Returns the bound, if there is one.
    pub(crate) fn max_bytes(&self) -> Option<u64> {
        self.bound.get()
    }

    /// Returns the resident memory at the last reading.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes.load(Ordering::Relaxed)
    }
}

/// Starts the thread that compares the resident memory with `bound` until the stop flag is set.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn watch(
    bound: &Arc<MemoryBound>,
    shared: &Arc<Shared>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(MemoryReader, JoinHandle<()>)> {
    let reader = MemoryReader { bound: Arc::clone(bound), resident_bytes: Arc::default() };
    let bound = Arc::clone(bound);
    let (shared, stop, written) = (Arc::clone(shared), Arc::clone(stop), Arc::clone(&reader.resident_bytes));
    let run = move || {
        privileges::drop_all();
        while !stop.load(Ordering::Relaxed) {
            let max = bound.get();
            let resident = if max.is_some() { resident_bytes() } else { 0 };
            let max = max.unwrap_or(u64::MAX);
            written.store(resident, Ordering::Relaxed);
            let is_full = is_full(resident, max, shared.is_memory_full());
            if is_full != shared.is_memory_full() {
                shared.set_memory_full(is_full);
                log(is_full, resident, max);
            }
            thread::park_timeout(next_reading(resident, max));
        }
    };
    let thread = thread::Builder::new().name("turn-memory".to_owned()).spawn(run);
    let thread = thread.context("turn: cannot start a thread")?;
    // A bound has one thread.
    let _ = reader.bound.watcher.set(thread.thread().clone());
    Ok((reader, thread))
}

/// Returns how long memory of `resident` bytes cannot reach `max`, within [`READ_EVERY`].
fn next_reading(resident: u64, max: u64) -> Duration {
    let free_ms = max.saturating_sub(resident) / (GROWTH_BYTES_PER_S / 1_000);
    Duration::from_millis(free_ms).clamp(READ_EVERY.0, READ_EVERY.1)
}

/// Returns whether allocations are rejected: from `max` on, and until a 32nd of it is free again.
const fn is_full(resident: u64, max: u64, was_full: bool) -> bool {
    resident >= if was_full { max - max / 32 } else { max }
}

fn log(is_full: bool, resident: u64, max: u64) {
    if is_full {
        tracing::warn!(resident, max, "memory is full: new allocations are rejected");
    } else {
        tracing::info!(resident, max, "memory is free again: new allocations are made");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{is_full, next_reading};

    #[test]
    fn memory_is_read_more_often_the_nearer_the_bound() {
        let ms = |resident, max| next_reading(resident, max).as_millis();
        assert_eq!([ms(0, 64 << 30), ms(0, 2 << 30), ms(0, 200 << 20)], [1_000, 1_000, 97]);
        assert_eq!([ms(190 << 20, 200 << 20), ms(200 << 20, 200 << 20), ms(300 << 20, 200 << 20)], [20; 3]);
        assert_eq!(next_reading(u64::MAX, u64::MAX), Duration::from_millis(20));
    }

    #[test]
    fn memory_is_full_from_the_bound_on_until_some_of_it_is_free() {
        let max = 3_200;
        assert_eq!([3_199, 3_200, 9_000].map(|resident| is_full(resident, max, false)), [false, true, true]);
        assert_eq!([3_099, 3_100, 3_200].map(|resident| is_full(resident, max, true)), [false, true, true]);
    }
}
