//! The reading end.

use super::{End, Owned, Place, Slot};
use crate::sync::Ordering;
use core::fmt;
use core::marker::PhantomData;

/// The reading end of a ring.
pub struct Consumer<T: Copy + Send, P: Place<T> = Owned<T>> {
    place: P,
    /// The next position to read.
    head: u64,
    events: PhantomData<T>,
}

impl<T: Copy + Send, P: Place<T>> Consumer<T, P> {
    /// The only consumer there is in `place`.
    pub(crate) fn new(place: P, start: u64) -> Self {
        Self { place, head: start, events: PhantomData }
    }

    /// Takes the oldest event, `None` if there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.pop_numbered().map(|(_, event)| event)
    }

    /// Takes the oldest event and its number: how many were pushed before it.
    #[inline]
    pub fn pop_numbered(&mut self) -> Option<(u64, T)> {
        let number = self.head;
        let slot = self.published(number)?;
        // SAFETY: the event was seen to be published, and the producer does not write its slot before `head` passes it.
        let event = unsafe { slot.read(|event| *event) };
        self.release(1);
        Some((number, event))
    }

    /// Takes the oldest events, as many as there are and `into` has room for, and frees their slots all at once. Returns
    /// how many.
    #[inline]
    pub fn pop_slice(&mut self, into: &mut [T]) -> usize {
        let length = into.len();
        let mut free = into.iter_mut();
        self.drain(length, |event| {
            if let Some(place) = free.next() {
                *place = *event;
            }
        })
    }

    /// Shows the oldest events to `visit`, in place and in order, at most `count_max`, and frees their slots all at once.
    /// Returns how many. An event on which `visit` panics is taken; those after it are not.
    #[inline]
    pub fn drain(&mut self, count_max: usize, mut visit: impl FnMut(&T)) -> usize {
        let mut visited = Visited { consumer: self, count: 0 };
        while visited.count < count_max {
            let position = visited.consumer.head.wrapping_add(visited.count as u64);
            let Some(slot) = visited.consumer.published(position) else { break };
            visited.count += 1;
            // SAFETY: the event was seen to be published, and the producer does not write its slot before `head` passes
            // it.
            unsafe { slot.read(&mut visit) };
        }
        visited.count
    }

    /// How many slots the ring has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.place.capacity()
    }

    /// Whether the producer is gone. Events that it pushed before can still be popped; pop once more after this
    /// returned `true` before giving up.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.place.gone(End::Producer).load(Ordering::Acquire) != 0
    }

    /// Whether the next slot's sequence cannot be right, so that no event will ever come. Never so in a ring of one
    /// process.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        let sequence = self.place.slot(self.head).sequence().load(Ordering::Relaxed);
        sequence != self.head && sequence != self.head.wrapping_sub(self.capacity() as u64)
    }

    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    pub(crate) fn leave(&self) {
        self.place.gone(End::Consumer).store(1, Ordering::Release);
    }

    #[inline(always)]
    fn published(&self, position: u64) -> Option<P::Slot<'_>> {
        let slot = self.place.slot(position);
        (slot.sequence().load(Ordering::Acquire) == position).then_some(slot)
    }

    /// Frees the slots of the `count` oldest events.
    #[inline(always)]
    fn release(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count as u64);
        self.place.head().store(self.head, Ordering::Release);
    }
}

impl<T: Copy + Send> Consumer<T, Owned<T>> {
    /// The oldest event, in place, `None` if there is none. It stays in the ring.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<&T> {
        let event = self.published(self.head)?.event_to_read();
        // SAFETY: the event was seen to be published, and the producer does not write its slot before `head` passes it,
        // for which this consumer must be borrowed mutably.
        Some(unsafe { &*event })
    }
}

impl<T: Copy + Send, P: Place<T>> Drop for Consumer<T, P> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T: Copy + Send, P: Place<T>> fmt::Debug for Consumer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("head", &self.head).finish_non_exhaustive()
    }
}

/// Events that were shown and not yet freed: freed at the end, even of a panic.
struct Visited<'a, T: Copy + Send, P: Place<T>> {
    consumer: &'a mut Consumer<T, P>,
    count: usize,
}

impl<T: Copy + Send, P: Place<T>> Drop for Visited<'_, T, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.count != 0 {
            self.consumer.release(self.count);
        }
    }
}
