//! The producer end.

use super::{End, Full, Owned, Slot, Storage};
use crate::sync::{AtomicU64, Ordering};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use zerocopy::FromZeros;

/// Events that [`Producer::push_with`] publishes together: enough that the two cores do not pass each cache line to and
/// fro between its events, and few enough that the consumer begins early. Two in tests, which shall see the boundary.
const GROUP: usize = if cfg!(test) { 2 } else { 16 };

/// The producer end of a ring.
pub struct Producer<T: Copy + Send, P: Storage<T> = Owned<T>> {
    storage: P,
    /// The next position to write.
    tail: u64,
    /// The first position that is not known to be free: between `tail` and `capacity` positions after it.
    limit: u64,
    events: PhantomData<T>,
}

impl<T: Copy + Send, P: Storage<T>> Producer<T, P> {
    /// Creates the only producer of `storage`.
    pub(crate) fn new(storage: P, start: u64) -> Self {
        let limit = start.wrapping_add(storage.capacity() as u64);
        Self { storage, tail: start, limit, events: PhantomData }
    }

    /// Appends `event`.
    ///
    /// # Errors
    /// [`Full`] with the event if no slot is free; nothing changes.
    #[inline]
    pub fn push(&mut self, event: T) -> Result<(), Full<T>> {
        if !self.has_room() {
            return Err(Full(event));
        }
        let slot = self.storage.slot(self.tail);
        // SAFETY: the slot of `tail` is free, so the consumer does not read it, and there is no other producer.
        unsafe { slot.write(event) };
        publish(&mut self.tail, slot.sequence(), 1);
        Ok(())
    }

    /// Appends as many of `events` as fit, publishes them together, and returns their number.
    #[inline]
    pub fn push_slice(&mut self, events: &[T]) -> usize {
        if self.known_room() < events.len() {
            self.refresh_limit();
        }
        let count = events.len().min(self.known_room());
        let Some((first, rest)) = events[..count].split_first() else { return 0 };
        let mut position = self.tail;
        for event in rest {
            position = position.wrapping_add(1);
            let slot = self.storage.slot(position);
            // SAFETY: the slot is one of the free ones after `tail`, so the consumer does not read it, and there is no
            // other producer.
            unsafe { slot.write(*event) };
            // The consumer looks here only after it has seen the first sequence of the batch.
            if !P::IS_APART {
                slot.sequence().store(position, Ordering::Relaxed);
            }
        }
        self.number_the_rest(count);
        let slot = self.storage.slot(self.tail);
        // SAFETY: as above, for the slot of `tail`.
        unsafe { slot.write(*first) };
        publish(&mut self.tail, slot.sequence(), count);
        count
    }

    /// Appends as many events that `make` returns as fit, at most `count_max`, and returns their number.
    ///
    /// Each event is written once, into its slot, and published in a group of at most 16, so that the consumer begins
    /// before the last one is made. For events that must be seen together, see [`push_slice`](Self::push_slice). If
    /// `make` panics, the events that it returned before are appended.
    ///
    /// ```
    /// let (mut producer, mut consumer) = tt_sync::spsc::ring::<u64>(4);
    /// let mut numbers = 7..;
    /// assert_eq!(producer.push_with(9, || numbers.next().unwrap_or(0)), 4);
    /// assert_eq!((consumer.pop(), numbers.start), (Some(7), 11));
    /// ```
    #[inline]
    pub fn push_with(&mut self, count_max: usize, mut make: impl FnMut() -> T) -> usize {
        if self.known_room() < count_max {
            self.refresh_limit();
        }
        let count = count_max.min(self.known_room());
        let mut left = count;
        while left != 0 {
            let size = left.min(GROUP);
            let mut group = Group { first: make(), count: 1, producer: self };
            while group.count < size {
                group.add(make());
            }
            left -= size;
        }
        count
    }

    /// Moves the next slot's cache line back to this core, so that the next [`push`](Self::push) does not wait for it.
    ///
    /// For a producer that is idle while the consumer polls. The content of the ring does not change.
    #[inline]
    pub fn hold_next(&mut self) {
        if self.known_room() != 0 {
            // The sequence that is there already: only the producer stores it.
            let sequence = self.tail.wrapping_sub(self.storage.capacity() as u64);
            self.storage.slot(self.tail).sequence().store(sequence, Ordering::Relaxed);
        }
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Returns the number of events that were pushed and not yet popped.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        // No slot is accessed because of this number, so Relaxed is enough.
        let used = self.tail.wrapping_sub(self.storage.head().load(Ordering::Relaxed));
        usize::try_from(used).unwrap_or(usize::MAX).min(self.capacity())
    }

    /// Returns whether the consumer is closed. Then no pushed event will be popped, and
    /// [`occupancy`](Self::occupancy) is the number of lost events.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.storage.closed_flag(End::Consumer).load(Ordering::Acquire) != 0
    }

    /// Returns whether the consumer's `head` is invalid, so that no slot becomes free again. Always `false` in a ring
    /// of one process.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.tail.wrapping_sub(self.storage.head().load(Ordering::Relaxed)) > self.capacity() as u64
    }

    pub(crate) fn storage(&self) -> &P {
        &self.storage
    }

    pub(crate) fn close(&self) {
        self.storage.closed_flag(End::Producer).store(1, Ordering::Release);
    }

    #[inline(always)]
    fn has_room(&mut self) -> bool {
        if self.tail == self.limit {
            self.refresh_limit();
            return self.tail != self.limit;
        }
        true
    }

    /// Stores the sequences of a batch of `count` events but the first, if they are apart from the events.
    #[inline(always)]
    fn number_the_rest(&self, count: usize) {
        if P::IS_APART {
            for offset in 1..count as u64 {
                let position = self.tail.wrapping_add(offset);
                self.storage.slot(position).sequence().store(position, Ordering::Relaxed);
            }
        }
    }

    #[inline(always)]
    fn known_room(&self) -> usize {
        self.limit.wrapping_sub(self.tail) as usize
    }

    #[inline(always)]
    fn refresh_limit(&mut self) {
        let head = self.storage.head().load(Ordering::Acquire);
        let capacity = self.storage.capacity() as u64;
        // An invalid `head`, beyond `tail` or more than a lap behind it, frees nothing.
        if self.tail.wrapping_sub(head) <= capacity {
            self.limit = head.wrapping_add(capacity);
        }
    }
}

/// Events that are written but not yet published; published on drop, also after a panic.
struct Group<'a, T: Copy + Send, P: Storage<T>> {
    producer: &'a mut Producer<T, P>,
    /// The event of `tail`, which is written last.
    first: T,
    /// Events, the first included; at most the room after `tail`.
    count: usize,
}

impl<T: Copy + Send, P: Storage<T>> Group<'_, T, P> {
    #[inline(always)]
    fn add(&mut self, event: T) {
        let position = self.producer.tail.wrapping_add(self.count as u64);
        let slot = self.producer.storage.slot(position);
        // SAFETY: the slot is one of the free ones after `tail`, so the consumer does not read it, and there is no other
        // producer.
        unsafe { slot.write(event) };
        // The consumer looks here only after it has seen the first sequence of the group.
        if !P::IS_APART {
            slot.sequence().store(position, Ordering::Relaxed);
        }
        self.count += 1;
    }
}

impl<T: Copy + Send, P: Storage<T>> Drop for Group<'_, T, P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.producer.number_the_rest(self.count);
        let Producer { storage, tail, .. } = &mut *self.producer;
        let slot = storage.slot(*tail);
        // SAFETY: the slot of `tail` is free, so the consumer does not read it, and there is no other producer.
        unsafe { slot.write(self.first) };
        publish(tail, slot.sequence(), self.count);
    }
}

/// Publishes the `count` events from `tail` on. `sequence` is that of the first; the others are already stored.
#[inline(always)]
fn publish(tail: &mut u64, sequence: &AtomicU64, count: usize) {
    sequence.store(*tail, Ordering::Release);
    *tail = tail.wrapping_add(count as u64);
}

impl<T: Copy + Send + FromZeros> Producer<T, Owned<T>> {
    /// Returns the next free slot, to be filled in place, or `None` if the ring is full.
    ///
    /// It contains an earlier event, or zeros. A ring in shared memory has no such method, because a reference would
    /// trust the other process.
    ///
    /// ```
    /// let (mut producer, mut consumer) = tt_sync::spsc::ring::<[u64; 7]>(2);
    /// let mut claim = producer.claim().expect("the ring is empty");
    /// claim[3] = 7;
    /// claim.publish();
    /// assert_eq!(consumer.pop(), Some([0, 0, 0, 7, 0, 0, 0]));
    /// ```
    #[inline]
    pub fn claim(&mut self) -> Option<Claim<'_, T>> {
        self.has_room().then_some(Claim { producer: self })
    }
}

impl<T: Copy + Send, P: Storage<T>> Drop for Producer<T, P> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T: Copy + Send, P: Storage<T>> fmt::Debug for Producer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("tail", &self.tail).finish_non_exhaustive()
    }
}

/// A free slot that the producer fills in place. If it is dropped without [`publish`](Self::publish), it stays free.
#[derive(Debug)]
pub struct Claim<'a, T: Copy + Send> {
    producer: &'a mut Producer<T>,
}

impl<T: Copy + Send> Claim<'_, T> {
    /// Appends the slot's event to the ring.
    #[inline]
    pub fn publish(self) {
        let Producer { storage, tail, .. } = self.producer;
        let slot = storage.slot(*tail);
        publish(tail, slot.sequence(), 1);
    }
}

impl<T: Copy + Send> Deref for Claim<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let event = self.producer.storage.slot(self.producer.tail).event_to_read();
        // SAFETY: it points to an earlier event or to zeros, which are a `T` (a claim is made for `FromZeros` only).
        // The slot of `tail` is free, so the consumer does not use it, and the only producer is borrowed by this
        // claim.
        unsafe { &*event }
    }
}

impl<T: Copy + Send> DerefMut for Claim<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let event = self.producer.storage.slot(self.producer.tail).event_to_write();
        // SAFETY: as for `deref`, and this claim is borrowed mutably, so that there is no other reference.
        unsafe { &mut *event }
    }
}
