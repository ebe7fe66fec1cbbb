//! The producer end.

use super::sequence::{self, publishing};
use super::{End, Full, Owned, Slot, Storage};
use crate::sync::{AtomicU64, Ordering};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use zerocopy::FromZeros;

/// Events that one sequence publishes: as many as it can, because each look of the consumer takes the line of the next
/// sequence away from the producer. Two in tests, which shall see the boundary.
const GROUP: usize = if cfg!(test) { 2 } else { sequence::BATCH_MAX };

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
        let mut groups = events[..count].chunks(GROUP);
        let Some(first) = groups.next() else { return 0 };
        let mut position = self.tail.wrapping_add(first.len() as u64);
        for group in groups {
            // SAFETY: there is room for all groups.
            unsafe { self.write(position, group) };
            // The consumer looks here only after it has seen the first sequence of the batch.
            let sequence = publishing(position, group.len());
            self.storage.slot(position).sequence().store(sequence, Ordering::Relaxed);
            position = position.wrapping_add(group.len() as u64);
        }
        // SAFETY: as above.
        unsafe { self.write(self.tail, first) };
        let slot = self.storage.slot(self.tail);
        publish(&mut self.tail, slot.sequence(), first.len());
        self.tail = position;
        count
    }

    /// Appends as many events that `make` returns as fit, at most `count_max`, and returns their number.
    ///
    /// Each event is written once, into its slot, and published in a group of at most 64, so that the consumer begins
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
            let (first, mut group) = (self.tail, Group { producer: self, count: 0 });
            let slots = group.producer.storage.slots();
            while group.count < size {
                let slot = slots(first.wrapping_add(group.count as u64));
                // SAFETY: there is room for the whole group; the consumer does not read a free slot, and there is no
                // other producer.
                unsafe { slot.write(make()) };
                group.count += 1;
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
            // One that publishes nothing, as the one that is there already.
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

    /// Writes `events` from `position` on.
    ///
    /// # Safety
    /// Their slots are among the free ones from `tail` on.
    #[inline(always)]
    unsafe fn write(&mut self, position: u64, events: &[T]) {
        let slots = self.storage.slots();
        for (offset, event) in (0..).zip(events) {
            // SAFETY: the consumer does not read a free slot, and there is no other producer.
            unsafe { slots(position.wrapping_add(offset)).write(*event) };
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
    /// At most the room after `tail`, and at most [`GROUP`].
    count: usize,
}

impl<T: Copy + Send, P: Storage<T>> Drop for Group<'_, T, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.count != 0 {
            let Producer { storage, tail, .. } = &mut *self.producer;
            publish(tail, storage.slot(*tail).sequence(), self.count);
        }
    }
}

/// Publishes the `count` events from `tail` on, at most [`GROUP`]. `sequence` is that of the first.
#[inline(always)]
fn publish(tail: &mut u64, sequence: &AtomicU64, count: usize) {
    sequence.store(publishing(*tail, count), Ordering::Release);
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
        publish(tail, storage.slot(*tail).sequence(), 1);
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
