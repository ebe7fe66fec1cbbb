//! The ring of [`spsc`](crate::spsc) in memory that is given: by the OS, to two processes.
//!
//! The memory is seen as atomic words and nothing else, and events are plain bytes that are a value whatever they say
//! ([`PlainEvent`]). So nothing that the other side writes, by mistake or while it dies, is undefined behaviour here: an
//! index of its making is masked before it selects a slot, and what the header said when an end was attached is not
//! read again. What cannot be right is named: [`Refused`] for a header, [`Producer::is_corrupt`] and
//! [`Consumer::is_corrupt`] for the rest.
//!
//! The words, in lines of 128 bytes: magic, version, capacity, event size and alignment, layout hash and first position;
//! the consumer's `head`; whether the producer is gone, and its mark; the same for the consumer; then the slots, each a
//! sequence and the event's words, rounded up to 64 bytes. The bells lie apart, since they are words of 32 bits.
//!
//! Each end is attached once in the life of the memory. After a crash the survivor makes a new region.
//!
//! ```
//! use std::num::NonZeroU64;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, AtomicU64};
//! use tt_sync::region::{self, BELLS};
//!
//! // What the OS maps into both processes; here two threads could share it.
//! #[derive(Clone)]
//! struct Shared(Arc<(Vec<AtomicU64>, [AtomicU32; BELLS])>);
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
//! let words = region::words::<[u64; 7]>(64).expect("a small ring");
//! let words = (0..words).map(|_| AtomicU64::new(0)).collect();
//! let memory = Shared(Arc::new((words, [const { AtomicU32::new(0) }; BELLS])));
//! region::format::<[u64; 7]>(&memory, 64)?;
//!
//! let [writer, reader] = [NonZeroU64::MIN, NonZeroU64::MAX]; // each process says who it is
//! let mut producer = region::producer::<[u64; 7], _>(memory.clone(), writer)?;
//! let mut consumer = region::consumer::<[u64; 7], _>(memory, reader)?;
//! assert_eq!(producer.push_slice(&[[1; 7], [2; 7]]), 2);
//! assert_eq!(consumer.pop(), Some([1; 7]));
//! # Ok::<(), region::Refused>(())
//! ```

mod given;
mod header;

pub use given::{Given, GivenSlot, PlainEvent};
pub use header::Refused;

use crate::spsc::{Consumer, End, Producer};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::num::NonZeroU64;
use header::Header;

#[cfg(not(shuttle))]
#[cfg(test)]
pub(crate) mod tests;

/// Words of a line of its own, adjacent-line prefetch included.
pub(crate) const LINE: usize = if cfg!(loom) { 8 } else { 16 };
/// Bells that the memory holds.
pub const BELLS: usize = 2 * LINE;

/// Memory that two ends see: its words, and [`BELLS`] bells beside them.
pub trait Memory: AsRef<[AtomicU64]> + AsRef<[AtomicU32]> {}

impl<M: AsRef<[AtomicU64]> + AsRef<[AtomicU32]>> Memory for M {}

/// How many words of memory a ring of `capacity` events takes; `None` if there are not so many.
#[must_use]
pub fn words<T: PlainEvent>(capacity: usize) -> Option<usize> {
    let capacity = capacity.max(1).checked_next_power_of_two()?;
    let words = capacity.checked_mul(Given::<T, ()>::STRIDE)?.checked_add(header::SLOTS_AT)?;
    (words <= isize::MAX as usize / size_of::<u64>()).then_some(words)
}

/// Prepares `memory` for a ring of `capacity` events, rounded up to a power of two, at least one. Whatever was in it is
/// gone; nobody may be attached to it.
///
/// # Errors
/// `Short` if the memory is smaller than that needs.
pub fn format<T: PlainEvent>(memory: &impl Memory, capacity: usize) -> Result<(), Refused> {
    format_from::<T>(memory, capacity, 0)
}

/// As [`format`], with `start` as the first position, so that a test can begin just before the wrap.
fn format_from<T: PlainEvent>(memory: &impl Memory, capacity: usize, start: u64) -> Result<(), Refused> {
    let needed = words::<T>(capacity).ok_or(Refused::Short)?;
    let words: &[AtomicU64] = memory.as_ref();
    let bells: &[AtomicU32] = memory.as_ref();
    if words.len() < needed || bells.len() < BELLS {
        return Err(Refused::Short);
    }
    let capacity = capacity.max(1).next_power_of_two();
    Header { capacity, start }.write::<T>(words, bells, Given::<T, ()>::STRIDE);
    Ok(())
}

/// Attaches the writing end. `mark` says who has it, to whoever asks the other end.
///
/// # Errors
/// [`Refused`] with what the header lacks, or `Taken` if a producer was attached before.
pub fn producer<T: PlainEvent, M: Memory>(memory: M, mark: NonZeroU64) -> Result<Producer<T, Given<T, M>>, Refused> {
    let (place, start) = Given::attach(memory, End::Producer, mark)?;
    Ok(Producer::new(place, start))
}

/// Attaches the reading end. `mark` says who has it, to whoever asks the other end.
///
/// # Errors
/// [`Refused`] with what the header lacks, or `Taken` if a consumer was attached before.
pub fn consumer<T: PlainEvent, M: Memory>(memory: M, mark: NonZeroU64) -> Result<Consumer<T, Given<T, M>>, Refused> {
    let (place, start) = Given::attach(memory, End::Consumer, mark)?;
    Ok(Consumer::new(place, start))
}

/// Who has `end`, once somebody had: the mark it was attached with.
#[must_use]
pub fn mark(memory: &impl Memory, end: End) -> Option<NonZeroU64> {
    let words: &[AtomicU64] = memory.as_ref();
    NonZeroU64::new(words.get(header::mark_at(end))?.load(Ordering::Relaxed))
}

/// Says in its stead that `end` is gone, after its process was found dead. The other end then hears of it as if it had
/// left; an event that it was writing is not seen.
pub fn declare_gone(memory: &impl Memory, end: End) {
    let words: &[AtomicU64] = memory.as_ref();
    if let Some(gone) = words.get(header::gone_at(end)) {
        gone.store(1, Ordering::Relaxed);
    }
}
