//! The ring of [`spsc`](crate::spsc) in memory that two processes share.
//!
//! The caller maps the memory and passes it as atomic words. Events are plain bytes for which every bit pattern is
//! valid ([`PlainEvent`]). Therefore nothing that the other process writes, by mistake or while it dies, causes
//! undefined behaviour here: an index is masked before it selects a slot, and the header is read once, when an end is
//! attached. Invalid values are reported: as [`RegionError`] in the header, by [`Producer::is_corrupt`] and
//! [`Consumer::is_corrupt`] in the rest.
//!
//! The words, in groups of 128 bytes: magic, version, capacity, event size and alignment, layout hash and first
//! position; the consumer's `head`; the producer's closed flag and owner; the consumer's closed flag and owner; then
//! the slots, each a sequence and the event's words, rounded up to 64 bytes. The words to sleep on are separate,
//! because they have 32 bits.
//!
//! Each end is attached once in the lifetime of the memory. After a crash the surviving process creates a new region.
//!
//! ```
//! use std::num::NonZeroU64;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, AtomicU64};
//! use tt_sync::region::{self, WAKE_WORDS};
//!
//! // A stand-in for memory that the OS maps into both processes.
//! #[derive(Clone)]
//! struct Shared(Arc<(Vec<AtomicU64>, [AtomicU32; WAKE_WORDS])>);
//! impl AsRef<[AtomicU64]> for Shared {
//!     fn as_ref(&self) -> &[AtomicU64] {
//!         &self.0.0
//!     }
//! }
//! impl AsRef<[AtomicU32]> for Shared {
//!     fn as_ref(&self) -> &[AtomicU32] {
//!         &self.0.1
//!     }
//! }
//!
//! let words = region::words_needed::<[u64; 7]>(64).expect("a small ring");
//! let words = (0..words).map(|_| AtomicU64::new(0)).collect();
//! let memory = Shared(Arc::new((words, [const { AtomicU32::new(0) }; WAKE_WORDS])));
//! region::format::<[u64; 7]>(&memory, 64)?;
//!
//! let [writer, reader] = [NonZeroU64::MIN, NonZeroU64::MAX]; // identifies each process
//! let mut producer = region::producer::<[u64; 7], _>(memory.clone(), writer)?;
//! let mut consumer = region::consumer::<[u64; 7], _>(memory, reader)?;
//! assert_eq!(producer.push_slice(&[[1; 7], [2; 7]]), 2);
//! assert_eq!(consumer.pop(), Some([1; 7]));
//! # Ok::<(), region::RegionError>(())
//! ```

mod header;
mod slots;

pub use header::RegionError;
pub use slots::{PlainEvent, Region, RegionSlot};

use crate::spsc::{Consumer, End, Producer};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::num::NonZeroU64;
use header::Header;

#[cfg(not(shuttle))]
#[cfg(test)]
pub(crate) mod tests;

/// Words of two cache lines: keeps a word apart from others, adjacent-line prefetch included.
pub(crate) const LINE_WORDS: usize = if cfg!(loom) { 8 } else { 16 };
/// Number of 32-bit words to sleep on that the memory must contain.
pub const WAKE_WORDS: usize = 2 * LINE_WORDS;

/// Memory of a ring: its words, and [`WAKE_WORDS`] words of 32 bits to sleep on.
///
/// An end panics if a later call of `as_ref` returns a shorter slice than the one that it was attached to.
pub trait Memory: AsRef<[AtomicU64]> + AsRef<[AtomicU32]> {}

impl<M: AsRef<[AtomicU64]> + AsRef<[AtomicU32]>> Memory for M {}

/// Returns the number of words that a ring of `capacity` events takes, or `None` if the number overflows.
#[must_use]
pub fn words_needed<T: PlainEvent>(capacity: usize) -> Option<usize> {
    let capacity = capacity.max(1).checked_next_power_of_two()?;
    let words = capacity.checked_mul(Region::<T, ()>::STRIDE)?.checked_add(header::SLOTS_AT)?;
    (words <= isize::MAX as usize / size_of::<u64>()).then_some(words)
}

/// Writes an empty ring of `capacity` events, rounded up to a power of two, at least one, into `memory`.
///
/// The previous content is lost. No end may be attached to it.
///
/// # Errors
/// `TooShort` if the memory is smaller than [`words_needed`], or that overflows.
pub fn format<T: PlainEvent>(memory: &impl Memory, capacity: usize) -> Result<(), RegionError> {
    format_from::<T>(memory, capacity, 0)
}

/// Like [`format`], with `start` as the first position, so that a test can start just before the wrap.
fn format_from<T: PlainEvent>(memory: &impl Memory, capacity: usize, start: u64) -> Result<(), RegionError> {
    let needed = words_needed::<T>(capacity).ok_or(RegionError::TooShort)?;
    let words: &[AtomicU64] = memory.as_ref();
    let wake_words: &[AtomicU32] = memory.as_ref();
    if words.len() < needed || wake_words.len() < WAKE_WORDS {
        return Err(RegionError::TooShort);
    }
    let capacity = capacity.max(1).next_power_of_two();
    Header { capacity, start }.write::<T>(words, wake_words, Region::<T, ()>::STRIDE);
    Ok(())
}

/// Attaches the producer end for the process `owner`, which [`owner`] returns to the other process.
///
/// # Errors
/// `AlreadyAttached` if a producer was attached before; another [`RegionError`] if the header is invalid.
pub fn producer<T: PlainEvent, M: Memory>(
    memory: M,
    owner: NonZeroU64,
) -> Result<Producer<T, Region<T, M>>, RegionError> {
    let (region, start) = Region::attach(memory, End::Producer, owner)?;
    Ok(Producer::new(region, start))
}

/// Attaches the consumer end for the process `owner`, which [`owner`] returns to the other process.
///
/// # Errors
/// `AlreadyAttached` if a consumer was attached before; another [`RegionError`] if the header is invalid.
pub fn consumer<T: PlainEvent, M: Memory>(
    memory: M,
    owner: NonZeroU64,
) -> Result<Consumer<T, Region<T, M>>, RegionError> {
    let (region, start) = Region::attach(memory, End::Consumer, owner)?;
    Ok(Consumer::new(region, start))
}

/// Returns the owner with which `end` was attached, or `None` if it was not.
#[must_use]
pub fn owner(memory: &impl Memory, end: End) -> Option<NonZeroU64> {
    let words: &[AtomicU64] = memory.as_ref();
    NonZeroU64::new(words.get(header::owner_at(end))?.load(Ordering::Relaxed))
}

/// Closes `end` on behalf of a process that was found dead, as if it had been dropped.
///
/// An event that the process was writing is lost.
pub fn declare_closed(memory: &impl Memory, end: End) {
    let words: &[AtomicU64] = memory.as_ref();
    if let Some(closed) = words.get(header::closed_at(end)) {
        closed.store(1, Ordering::Relaxed);
    }
}
