//! A bounded ring from one producer to one consumer, first in first out.
//!
//! Each slot carries the sequence of the event that it holds, so that the producer's store of an event and the
//! consumer's look for it meet on one cache line: an event of up to 56 bytes moves one line, where a pair of indices
//! moves two. The consumer's `head` lies on a line of its own, to which the producer looks only when its last known
//! `head` says that the ring is full.
//!
//! Positions count events and wrap at `usize::MAX`; a slot that holds the event of position `p` carries the sequence
//! `p`, and before that the sequence of one lap earlier.

use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell};
#[cfg(not(loom))]
use alloc::boxed::Box;
use core::{fmt, mem::MaybeUninit};
#[cfg(loom)]
use std::boxed::Box;

#[cfg(test)]
mod tests;

/// The ring is full: the value comes back.
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

/// One event and its sequence: one cache line for events of up to 56 bytes.
#[repr(C, align(64))]
struct Slot<T> {
    sequence: AtomicUsize,
    event: UnsafeCell<MaybeUninit<T>>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot<[u64; 7]>>() == 64);

/// Keeps what it holds on a cache line of its own, adjacent-line prefetch included.
#[repr(align(128))]
struct OwnLine<T>(T);

struct Ring<T> {
    slots: Box<[Slot<T>]>,
    producer_gone: AtomicBool,
    consumer_gone: AtomicBool,
    /// The next position that the consumer will read; all earlier slots are free.
    head: OwnLine<AtomicUsize>,
}

// SAFETY: an event is written by the one producer and read by the one consumer, and never at once: the producer writes
// a slot only after it saw, with Acquire, a `head` past the slot's earlier event, which the consumer stored with
// Release after its read; the consumer reads only after it saw the slot's sequence, which the producer stored with
// Release after its write. The event itself crosses threads, hence `T: Send`.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: nothing in the ring belongs to the thread that made it.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    #[inline(always)]
    fn slot(&self, position: usize) -> &Slot<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }
}

/// Makes a ring of `capacity` slots, rounded up to a power of two, at least one. This is its only allocation.
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
/// If `capacity` rounds up beyond `isize::MAX`, or the memory for it cannot be had.
#[must_use]
pub fn ring<T: Copy + Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring_from(capacity, 0)
}

/// As [`ring`], with `start` as the first position, so that a test can begin just before the wrap.
fn ring_from<T: Copy + Send>(capacity: usize, start: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(1).next_power_of_two();
    assert!(capacity <= isize::MAX as usize, "a ring of at most isize::MAX slots");
    let mask = capacity - 1;
    let slots = (0..capacity)
        .map(|index| {
            let first = start.wrapping_add(index.wrapping_sub(start) & mask);
            Slot {
                sequence: AtomicUsize::new(first.wrapping_sub(capacity)),
                event: UnsafeCell::new(MaybeUninit::uninit()),
            }
        })
        .collect();
    let ring = Arc::new(Ring {
        slots,
        producer_gone: AtomicBool::new(false),
        consumer_gone: AtomicBool::new(false),
        head: OwnLine(AtomicUsize::new(start)),
    });
    (Producer { ring: Arc::clone(&ring), tail: start, head_seen: start }, Consumer { ring, head: start })
}

/// The writing end of a ring.
pub struct Producer<T: Copy + Send> {
    ring: Arc<Ring<T>>,
    /// The next position to write.
    tail: usize,
    /// The `head` that the consumer had when the producer last looked.
    head_seen: usize,
}

impl<T: Copy + Send> Producer<T> {
    /// Appends `event`.
    ///
    /// # Errors
    /// [`Full`] with the event if no slot is free; nothing changes.
    #[inline]
    pub fn push(&mut self, event: T) -> Result<(), Full<T>> {
        if self.free_seen() == 0 {
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
            if self.free_seen() == 0 {
                return Err(Full(event));
            }
        }
        let slot = self.ring.slot(self.tail);
        slot.event.with_mut(|place| {
            // SAFETY: `place` points into the slot, which lives as long as the ring. The slot is free (`free_seen` is
            // not 0), so the consumer does not read it, and there is no other producer.
            unsafe { place.write(MaybeUninit::new(event)) }
        });
        slot.sequence.store(self.tail, Ordering::Release);
        self.tail = self.tail.wrapping_add(1);
        Ok(())
    }

    /// Takes the next slot's cache line back from a consumer that polls it, so that the next [`push`](Self::push) finds
    /// it here. For a producer that has nothing else to do; does nothing to the ring's content.
    #[inline]
    pub fn hold_next(&mut self) {
        if self.free_seen() != 0 {
            // The sequence that is there already: only the producer stores it.
            let sequence = self.tail.wrapping_sub(self.ring.slots.len());
            self.ring.slot(self.tail).sequence.store(sequence, Ordering::Relaxed);
        }
    }

    /// How many slots the ring has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// How many events were pushed and not yet popped, as of now.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        // A number alone: no slot is touched on the strength of it.
        self.tail.wrapping_sub(self.ring.head.0.load(Ordering::Relaxed))
    }

    /// Whether the consumer is gone, so that nobody will pop what is pushed. After this returned `true`,
    /// [`occupancy`](Self::occupancy) counts the events that nobody popped.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.ring.consumer_gone.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn free_seen(&self) -> usize {
        self.ring.slots.len() - self.tail.wrapping_sub(self.head_seen)
    }
}

impl<T: Copy + Send> Drop for Producer<T> {
    fn drop(&mut self) {
        self.ring.producer_gone.store(true, Ordering::Release);
    }
}

impl<T: Copy + Send> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("tail", &self.tail).finish_non_exhaustive()
    }
}

/// The reading end of a ring.
pub struct Consumer<T: Copy + Send> {
    ring: Arc<Ring<T>>,
    /// The next position to read.
    head: usize,
}

impl<T: Copy + Send> Consumer<T> {
    /// Takes the oldest event, `None` if there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.pop_numbered().map(|(_, event)| event)
    }

    /// Takes the oldest event and its number: how many were pushed before it.
    #[inline]
    pub fn pop_numbered(&mut self) -> Option<(u64, T)> {
        let slot = self.ring.slot(self.head);
        if slot.sequence.load(Ordering::Acquire) != self.head {
            return None;
        }
        let event = slot.event.with(|place| {
            // SAFETY: `place` points into the slot, which lives as long as the ring. Its sequence says that the
            // producer has written this position, and the producer does not write it again before `head` passes it.
            unsafe { place.read() }
        });
        // SAFETY: the producer wrote the event before it stored the sequence that was read above.
        let event = unsafe { event.assume_init() };
        let number = self.head as u64;
        self.head = self.head.wrapping_add(1);
        self.ring.head.0.store(self.head, Ordering::Release);
        Some((number, event))
    }

    /// How many slots the ring has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Whether the producer is gone. Events that it pushed before can still be popped; pop once more after this
    /// returned `true` before giving up.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.ring.producer_gone.load(Ordering::Acquire)
    }
}

impl<T: Copy + Send> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.ring.consumer_gone.store(true, Ordering::Release);
    }
}

impl<T: Copy + Send> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("head", &self.head).finish_non_exhaustive()
    }
}
