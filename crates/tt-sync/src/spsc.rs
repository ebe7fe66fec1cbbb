//! A bounded ring from one producer to one consumer, first in first out.
//!
//! Each slot carries the sequence of the event that it holds, so that the producer's store of an event and the
//! consumer's load meet on one cache line: an event of up to 56 bytes moves one line, a pair of indices moves two. Where
//! the sequence would take a line more, as with 64 bytes, the sequences are apart, eight to a line. The consumer's `head`
//! has a separate cache line, which the producer reads only if its last known `head` says that the ring is full.
//!
//! Positions count events and wrap at `u64::MAX`. The slot at which a batch begins carries the position of its first
//! event and the number of its events, at most 64, in one word; the sequences of its other slots stay as they are, and
//! the consumer looks at none of them. A longer batch, which is to be seen whole, stores the first of its sequences last:
//! the consumer cannot see the others before that one.
//!
//! Events are `Copy`, so that a ring that is dropped half full has nothing to drop. Zero-sized events are counted like
//! others.

mod consumer;
mod producer;
mod sequence;
mod storage;

pub use consumer::Consumer;
pub use producer::{Claim, Producer};
pub(crate) use storage::initial_sequence;
pub(crate) use storage::sealed::Sealed;
pub use storage::{End, Owned, OwnedSlot, Slot, Storage};

use core::fmt;

#[cfg(not(shuttle))]
#[cfg(test)]
mod tests;

/// Error of a push into a full ring; contains the event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ring is full")
    }
}

impl<T> core::error::Error for Full<T> {}

/// Creates a ring of `capacity` slots, rounded up to a power of two, at least one. Allocates once.
///
/// ```
/// let (mut producer, mut consumer) = tt_sync::spsc::ring::<u64>(2);
/// producer.push(7)?;
/// assert_eq!(consumer.pop(), Some(7));
/// assert_eq!(consumer.pop(), None);
/// # Ok::<(), tt_sync::spsc::Full<u64>>(())
/// ```
///
/// # Panics
/// If the slots take more than `isize::MAX` bytes, or the allocator has no memory for them.
#[must_use]
pub fn ring<T: Copy + Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring_from(capacity, 0)
}

/// Like [`ring`], with `start` as the first position, so that a test can start just before the wrap.
fn ring_from<T: Copy + Send>(capacity: usize, start: u64) -> (Producer<T>, Consumer<T>) {
    let [written, read] = Owned::pair(capacity, start);
    (Producer::new(written, start), Consumer::new(read, start))
}
