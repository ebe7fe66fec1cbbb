//! The writing end.

use super::{End, Full, Owned, Place, Slot};
use crate::sync::{AtomicU64, Ordering};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use zerocopy::FromZeros;

/// The writing end of a ring.
pub struct Producer<T: Copy + Send, P: Place<T> = Owned<T>> {
    place: P,
    /// The next position to write.
    tail: u64,
    /// The first position that is not known to be free: between `tail` and `capacity` positions after it.
    limit: u64,
    events: PhantomData<T>,
}

impl<T: Copy + Send, P: Place<T>> Producer<T, P> {
    /// The only producer there is in `place`.
    pub(crate) fn new(place: P, start: u64) -> Self {
        let limit = start.wrapping_add(place.capacity() as u64);
        Self { place, tail: start, limit, events: PhantomData }
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
        let slot = self.place.slot(self.tail);
        // SAFETY: the slot of `tail` is free, so the consumer does not read it, and there is no other producer.
        unsafe { slot.write(event) };
        publish(&mut self.tail, slot.sequence(), 1);
        Ok(())
    }

    /// Appends as many of `events` as there is room for, and shows them to the consumer all at once. Returns how many.
    #[inline]
    pub fn push_slice(&mut self, events: &[T]) -> usize {
        if self.room_seen() < events.len() {
            self.look_for_room();
        }
        let count = events.len().min(self.room_seen());
        let Some((first, rest)) = events[..count].split_first() else { return 0 };
        let mut position = self.tail;
        for event in rest {
            position = position.wrapping_add(1);
            let slot = self.place.slot(position);
            // SAFETY: the slot is one of the free ones after `tail`, so the consumer does not read it, and there is no
            // other producer.
            unsafe { slot.write(*event) };
            // The consumer looks here only after it has seen the first sequence of the batch.
            slot.sequence().store(position, Ordering::Relaxed);
        }
        let slot = self.place.slot(self.tail);
        // SAFETY: as above, for the slot of `tail`.
        unsafe { slot.write(*first) };
        publish(&mut self.tail, slot.sequence(), count);
        count
    }

    /// Takes the next slot's cache line back from a consumer that polls it, so that the next [`push`](Self::push) finds
    /// it here. For a producer that has nothing else to do; does nothing to the ring's content.
    #[inline]
    pub fn hold_next(&mut self) {
        if self.room_seen() != 0 {
            // The sequence that is there already: only the producer stores it.
            let sequence = self.tail.wrapping_sub(self.place.capacity() as u64);
            self.place.slot(self.tail).sequence().store(sequence, Ordering::Relaxed);
        }
    }

    /// How many slots the ring has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.place.capacity()
    }

    /// How many events were pushed and not yet popped, as of now.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        // A number alone: no slot is touched on the strength of it.
        let used = self.tail.wrapping_sub(self.place.head().load(Ordering::Relaxed));
        usize::try_from(used).unwrap_or(usize::MAX).min(self.capacity())
    }

    /// Whether the consumer is gone, so that nobody will pop what is pushed. After this returned `true`,
    /// [`occupancy`](Self::occupancy) counts the events that nobody popped.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.place.gone(End::Consumer).load(Ordering::Acquire) != 0
    }

    /// Whether the consumer's `head` cannot be right, so that no slot will ever be free again. Never so in a ring of one
    /// process.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.tail.wrapping_sub(self.place.head().load(Ordering::Relaxed)) > self.capacity() as u64
    }

    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    pub(crate) fn leave(&self) {
        self.place.gone(End::Producer).store(1, Ordering::Release);
    }

    #[inline(always)]
    fn has_room(&mut self) -> bool {
        if self.tail == self.limit {
            self.look_for_room();
            return self.tail != self.limit;
        }
        true
    }

    #[inline(always)]
    fn room_seen(&self) -> usize {
        self.limit.wrapping_sub(self.tail) as usize
    }

    #[inline(always)]
    fn look_for_room(&mut self) {
        let head = self.place.head().load(Ordering::Acquire);
        let capacity = self.place.capacity() as u64;
        // A `head` that this end never let pass, or that went back by more than a lap, frees nothing.
        if self.tail.wrapping_sub(head) <= capacity {
            self.limit = head.wrapping_add(capacity);
        }
    }
}

/// Shows the consumer the `count` events that stand from `tail` on, of which all but the first, whose `sequence` this is,
/// carry theirs already.
#[inline(always)]
fn publish(tail: &mut u64, sequence: &AtomicU64, count: usize) {
    sequence.store(*tail, Ordering::Release);
    *tail = tail.wrapping_add(count as u64);
}

impl<T: Copy + Send + FromZeros> Producer<T, Owned<T>> {
    /// The next free slot, to be filled in place; `None` if there is none. It holds an earlier event, or zeros.
    ///
    /// There is no such way in memory that another process may write: a reference would trust it.
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

impl<T: Copy + Send, P: Place<T>> Drop for Producer<T, P> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T: Copy + Send, P: Place<T>> fmt::Debug for Producer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("tail", &self.tail).finish_non_exhaustive()
    }
}

/// A slot that the producer fills in place. Dropped without [`publish`](Self::publish), it stays free.
#[derive(Debug)]
pub struct Claim<'a, T: Copy + Send> {
    producer: &'a mut Producer<T>,
}

impl<T: Copy + Send> Claim<'_, T> {
    /// Appends the slot's event to the ring.
    #[inline]
    pub fn publish(self) {
        let Producer { place, tail, .. } = self.producer;
        let slot = place.slot(*tail);
        publish(tail, slot.sequence(), 1);
    }
}

impl<T: Copy + Send> Deref for Claim<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let event = self.producer.place.slot(self.producer.tail).event_to_read();
        // SAFETY: it points to an earlier event or to zeros, which are a `T` (a claim is made for `FromZeros` only). The
        // slot of `tail` is free, so the consumer does not use it, and the only producer is borrowed by this claim.
        unsafe { &*event }
    }
}

impl<T: Copy + Send> DerefMut for Claim<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let event = self.producer.place.slot(self.producer.tail).event_to_write();
        // SAFETY: as for `deref`, and this claim is borrowed mutably, so that there is no other reference.
        unsafe { &mut *event }
    }
}
