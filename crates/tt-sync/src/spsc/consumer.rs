//! The consumer end.

use super::sequence::{is_possible, published};
use super::{End, Owned, Slot, Storage};
use crate::sync::Ordering;
use core::fmt;
use core::marker::PhantomData;

/// The consumer end of a ring.
pub struct Consumer<T: Copy + Send, P: Storage<T> = Owned<T>> {
    storage: P,
    /// The next position to read.
    head: u64,
    /// The first position that is not known to be published.
    end: u64,
    events: PhantomData<T>,
}

impl<T: Copy + Send, P: Storage<T>> Consumer<T, P> {
    /// Creates the only consumer of `storage`.
    pub(crate) fn new(storage: P, start: u64) -> Self {
        Self { storage, head: start, end: start, events: PhantomData }
    }

    /// Removes and returns the oldest event, or `None` if the ring is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.pop_numbered().map(|(_, event)| event)
    }

    /// Like [`pop`](Self::pop), with the event's number: how many events were pushed before it.
    #[inline]
    pub fn pop_numbered(&mut self) -> Option<(u64, T)> {
        let number = self.head;
        let slot = self.storage.slot(number);
        if number == self.end {
            let count = look(slot, number, self.storage.capacity())?;
            self.end = number.wrapping_add(count);
        }
        // SAFETY: the event was seen to be published, and the producer does not write its slot before `head` passes it.
        let event = unsafe { slot.read(|event| *event) };
        self.release(1);
        Some((number, event))
    }

    /// Removes the oldest events, as many as `into` holds, frees their slots together, and returns their number.
    #[inline]
    pub fn pop_slice(&mut self, into: &mut [T]) -> usize {
        let length = into.len();
        let mut free = into.iter_mut();
        self.drain(length, |event| {
            if let Some(slot) = free.next() {
                *slot = *event;
            }
        })
    }

    /// Calls `visit` with the oldest events, at most `count_max`, in place and in order, frees their slots together,
    /// and returns their number.
    ///
    /// An event on which `visit` panics is removed; the events after it are not.
    #[inline]
    pub fn drain(&mut self, count_max: usize, mut visit: impl FnMut(&T)) -> usize {
        // A faulty producer in another process could publish without end; a ring holds at most its capacity.
        let count_max = count_max.min(self.capacity());
        let mut visited = Visited { consumer: self, count: 0 };
        let Self { storage, head, end, .. } = &mut *visited.consumer;
        let slots = storage.slots();
        while visited.count < count_max {
            let position = head.wrapping_add(visited.count as u64);
            let slot = slots(position);
            if position == *end {
                let Some(count) = look(slot, position, storage.capacity()) else { break };
                *end = position.wrapping_add(count);
            }
            visited.count += 1;
            // SAFETY: the event was seen to be published, and the producer does not write its slot before `head` passes
            // it.
            unsafe { slot.read(&mut visit) };
        }
        visited.count
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Returns whether the producer is closed. Its last events can still be popped: pop until the ring is empty after
    /// this returned `true`.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.storage.closed_flag(End::Producer).load(Ordering::Acquire) != 0
    }

    /// Returns whether the next slot's sequence is invalid, so that no event will arrive. Always `false` in a ring of
    /// one process.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        let sequence = self.storage.slot(self.head).sequence().load(Ordering::Relaxed);
        self.head == self.end && !is_possible(sequence, self.head, self.capacity())
    }

    pub(crate) fn storage(&self) -> &P {
        &self.storage
    }

    pub(crate) fn close(&self) {
        self.storage.closed_flag(End::Consumer).store(1, Ordering::Release);
    }

    /// Frees the slots of the `count` oldest events.
    #[inline(always)]
    fn release(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count as u64);
        self.storage.head().store(self.head, Ordering::Release);
    }
}

impl<T: Copy + Send> Consumer<T, Owned<T>> {
    /// Returns the oldest event in place, or `None` if the ring is empty. The event stays in the ring.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<&T> {
        let slot = self.storage.slot(self.head);
        if self.head == self.end {
            look(slot, self.head, self.storage.capacity())?;
        }
        let event = slot.event_to_read();
        // SAFETY: the event was seen to be published, and the producer does not write its slot before `head` passes it,
        // for which this consumer must be borrowed mutably.
        Some(unsafe { &*event })
    }
}

impl<T: Copy + Send, P: Storage<T>> Drop for Consumer<T, P> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T: Copy + Send, P: Storage<T>> fmt::Debug for Consumer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("head", &self.head).finish_non_exhaustive()
    }
}

/// Returns how many events from `position` on, whose slot is `slot`, are published.
#[inline(always)]
fn look<T>(slot: impl Slot<T>, position: u64, capacity: usize) -> Option<u64> {
    published(slot.sequence().load(Ordering::Acquire), position, capacity)
}

/// Visited events whose slots are not yet free; freed on drop, also after a panic.
struct Visited<'a, T: Copy + Send, P: Storage<T>> {
    consumer: &'a mut Consumer<T, P>,
    count: usize,
}

impl<T: Copy + Send, P: Storage<T>> Drop for Visited<'_, T, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.count != 0 {
            self.consumer.release(self.count);
        }
    }
}
