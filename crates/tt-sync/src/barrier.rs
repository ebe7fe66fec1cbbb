//! A barrier that a thread raises against others that keep passing: it learns when none of them acts on what was true
//! before.
//!
//! A passer enters, reads whatever the caller guards, acts, and leaves. The caller changes what it guards, raises the
//! barrier and waits until each passer is [past](Barrier::is_past) it: outside, or inside since after the change. Then no
//! action that is based on the old state is under way, and none will begin.
//!
//! Entering is one read-modify-write of a word that all passers share. Such operations on one word have one order: a
//! passer that enters before the barrier is raised is seen inside, and one that enters after it sees the change.

use crate::sync::{Arc, AtomicU64, Box, Ordering, boxed_slice};
#[cfg(not(loom))]
use alloc::vec::Vec;
#[cfg(loom)]
use std::vec::Vec;

/// The passer is outside.
const OUTSIDE: u64 = 0;
/// The passer enters.
const ENTERS: u64 = 1;
/// Added to the height of the barrier at which a passer has entered.
const INSIDE: u64 = 2;
/// The passer may not enter any more.
const CLOSED: u64 = 1;

/// The words of a passer, on a cache line that no other one writes.
#[derive(Debug)]
#[repr(align(128))]
struct Passage {
    state: AtomicU64,
    closed: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    /// How often the barrier was raised.
    height: AtomicU64,
    passages: Box<[Passage]>,
}

/// The side that raises the barrier, for any number of threads.
#[derive(Clone, Debug)]
pub struct Barrier {
    shared: Arc<Shared>,
}

/// One of those that pass. Each belongs to one thread at a time.
#[derive(Debug)]
pub struct Passer {
    shared: Arc<Shared>,
    index: usize,
}

/// A passer inside. It leaves when this is dropped.
#[derive(Debug)]
pub struct Entry<'a> {
    passage: &'a Passage,
}

/// Creates a barrier with `passers` passers, numbered from 0.
///
/// ```
/// use tt_sync::barrier::barrier;
///
/// let (barrier, mut passers) = barrier(1);
/// let height = barrier.raise();
/// assert!(barrier.is_past(0, height));
/// let entry = passers[0].enter().expect("it is not closed");
/// // It entered after the first height, and acts on what was true at the second.
/// assert!(barrier.is_past(0, height) && !barrier.is_past(0, barrier.raise()));
/// drop(entry);
/// barrier.close(0);
/// assert!(passers[0].enter().is_none());
/// ```
///
/// # Panics
/// The passers do not fit into memory.
#[must_use]
pub fn barrier(passers: usize) -> (Barrier, Vec<Passer>) {
    let passage = |_| Passage { state: AtomicU64::new(OUTSIDE), closed: AtomicU64::new(0) };
    let shared = Arc::new(Shared { height: AtomicU64::new(0), passages: boxed_slice(passers, passage) });
    let passers = (0..passers).map(|index| Passer { shared: Arc::clone(&shared), index }).collect();
    (Barrier { shared }, passers)
}

impl Barrier {
    /// Raises the barrier; returns its height. What the caller changed before is seen by each passer that enters later.
    pub fn raise(&self) -> u64 {
        self.shared.height.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Returns whether the passer is outside, or has entered at this height or above: what it did before has happened.
    ///
    /// # Panics
    /// There is no such passer.
    #[must_use]
    pub fn is_past(&self, passer: usize, height: u64) -> bool {
        let state = self.shared.passages[passer].state.load(Ordering::Acquire);
        state == OUTSIDE || state >= height + INSIDE
    }

    /// Keeps the passer from entering from now on. If it is inside, it stays there until it leaves.
    ///
    /// # Panics
    /// There is no such passer.
    pub fn close(&self, passer: usize) {
        self.shared.passages[passer].closed.store(CLOSED, Ordering::Relaxed);
        self.raise();
    }
}

impl Passer {
    /// Enters; `None` if the passer was closed.
    pub fn enter(&mut self) -> Option<Entry<'_>> {
        let Shared { height, passages } = &*self.shared;
        let passage = &passages[self.index];
        passage.state.store(ENTERS, Ordering::Relaxed);
        // Not a load: it has a place in the order of all that raise.
        let height = height.fetch_add(0, Ordering::AcqRel);
        passage.state.store(height + INSIDE, Ordering::Release);
        let entry = Entry { passage };
        if passage.closed.load(Ordering::Relaxed) == CLOSED { None } else { Some(entry) }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.passage.state.store(OUTSIDE, Ordering::Release);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
