//! Where a ring lies: slots, and what the two ends tell each other.

use crate::sync::{Arc, AtomicU32, AtomicU64, UnsafeCell};
#[cfg(not(loom))]
use alloc::boxed::Box;
use core::mem::MaybeUninit;
#[cfg(loom)]
use std::boxed::Box;

/// One of a ring's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The writing end.
    Producer,
    /// The reading end.
    Consumer,
}

/// Keeps other crates from placing rings: the proofs in this one rely on what the two places do.
pub(crate) mod sealed {
    /// Has no other purpose than its privacy.
    pub trait Sealed {}
}

/// Where a ring lies: [`Owned`], or [`Given`](crate::region::Given). The ends' own methods are what to use.
pub trait Place<T>: sealed::Sealed {
    /// One event and its sequence.
    type Slot<'a>: Slot<T>
    where
        Self: 'a;

    /// How many slots there are: a power of two.
    fn capacity(&self) -> usize;
    /// The slot of `position`.
    fn slot(&self, position: u64) -> Self::Slot<'_>;
    /// The next position that the consumer will read; all earlier slots are free.
    fn head(&self) -> &AtomicU64;
    /// Whether `end` is gone: 0 while it is not.
    fn gone(&self, end: End) -> &AtomicU64;
    /// The word on which `end` sleeps.
    fn bell(&self, end: End) -> &AtomicU32;
}

/// A slot of a [`Place`].
pub trait Slot<T>: Copy {
    /// The position of the event that it holds, or held a lap ago.
    fn sequence(&self) -> &AtomicU64;
    /// Puts `event` in.
    ///
    /// # Safety
    /// Nobody else reads or writes the slot's event meanwhile.
    unsafe fn write(&self, event: T);
    /// Shows the event.
    ///
    /// # Safety
    /// An event was written, which the caller has synchronised with, and nobody writes one meanwhile.
    unsafe fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R;
}

/// One event and its sequence: one cache line for events of up to 56 bytes.
#[repr(C, align(64))]
struct Line<T> {
    sequence: AtomicU64,
    event: UnsafeCell<MaybeUninit<T>>,
}

/// A slot of an [`Owned`] place.
pub struct OwnedSlot<'a, T>(&'a Line<T>);

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Line<[u64; 7]>>() == 64);

/// Keeps what it holds on a cache line of its own, adjacent-line prefetch included.
#[repr(align(128))]
struct OwnLine<T>(T);

/// What one end tells the other, and where it sleeps.
struct Side {
    gone: AtomicU64,
    bell: AtomicU32,
}

impl Side {
    fn new() -> OwnLine<Self> {
        OwnLine(Self { gone: AtomicU64::new(0), bell: AtomicU32::new(0) })
    }
}

struct Ring<T> {
    slots: Box<[Line<T>]>,
    head: OwnLine<AtomicU64>,
    producer: OwnLine<Side>,
    consumer: OwnLine<Side>,
}

// SAFETY: an event is written by the one producer and read by the one consumer, and never at once: the producer writes
// a slot only after it saw, with Acquire, a `head` past the slot's earlier event, which the consumer stored with
// Release after its read; the consumer reads only after it saw, with Acquire, the slot's sequence, or one of the same
// batch before it, which the producer stored with Release after its write. The event itself crosses threads, hence
// `T: Send`.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: nothing in the ring belongs to the thread that made it.
unsafe impl<T: Send> Send for Ring<T> {}

/// Memory of the process, allocated once.
pub struct Owned<T> {
    ring: Arc<Ring<T>>,
    /// One less than the ring's slots are, which are a power of two: beside the end's own position, not behind a pointer.
    mask: usize,
}

impl<T> Owned<T> {
    /// The two ends' shares in one ring.
    pub(super) fn pair(capacity: usize, start: u64) -> [Self; 2] {
        let capacity = capacity.max(1).next_power_of_two();
        assert!(capacity <= isize::MAX as usize, "a ring of at most isize::MAX slots");
        let slots = (0..capacity as u64)
            .map(|index| Line {
                sequence: AtomicU64::new(sequence_before(index, capacity as u64, start)),
                // All bytes zero, so that `Producer::claim` has something to show.
                event: UnsafeCell::new(MaybeUninit::zeroed()),
            })
            .collect();
        let head = OwnLine(AtomicU64::new(start));
        let ring = Arc::new(Ring { slots, head, producer: Side::new(), consumer: Side::new() });
        let mask = capacity - 1;
        [Self { ring: Arc::clone(&ring), mask }, Self { ring, mask }]
    }

    fn side(&self, end: End) -> &Side {
        match end {
            End::Producer => &self.ring.producer.0,
            End::Consumer => &self.ring.consumer.0,
        }
    }
}

/// What slot `index` carries before its first event, in a ring of `capacity` whose first position is `start`.
pub(crate) fn sequence_before(index: u64, capacity: u64, start: u64) -> u64 {
    let first = start.wrapping_add(index.wrapping_sub(start) & (capacity - 1));
    first.wrapping_sub(capacity)
}

impl<T> sealed::Sealed for Owned<T> {}

impl<T> Place<T> for Owned<T> {
    type Slot<'a>
        = OwnedSlot<'a, T>
    where
        Self: 'a;

    #[inline(always)]
    fn capacity(&self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> OwnedSlot<'_, T> {
        let index = position as usize & self.mask;
        // SAFETY: `pair` makes `mask + 1` slots, and no more than `mask` is left of a number under the mask.
        OwnedSlot(unsafe { self.ring.slots.get_unchecked(index) })
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.ring.head.0
    }

    fn gone(&self, end: End) -> &AtomicU64 {
        &self.side(end).gone
    }

    fn bell(&self, end: End) -> &AtomicU32 {
        &self.side(end).bell
    }
}

impl<T> Clone for OwnedSlot<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OwnedSlot<'_, T> {}

impl<T> OwnedSlot<'_, T> {
    /// Where the event lies, for one who writes. All of its bytes are initialised or padding.
    #[inline(always)]
    pub(super) fn event_to_write(&self) -> *mut T {
        self.0.event.with_mut(<*mut MaybeUninit<T>>::cast)
    }

    /// Where the event lies, for one who only reads.
    #[inline(always)]
    pub(super) fn event_to_read(&self) -> *const T {
        self.0.event.with(<*const MaybeUninit<T>>::cast)
    }
}

impl<T> Slot<T> for OwnedSlot<'_, T> {
    #[inline(always)]
    fn sequence(&self) -> &AtomicU64 {
        &self.0.sequence
    }

    #[inline(always)]
    unsafe fn write(&self, event: T) {
        self.0.event.with_mut(|place| {
            // SAFETY: `place` points into the slot, which lives as long as the ring. Nobody else uses its event
            // meanwhile: the caller's promise.
            unsafe { place.write(MaybeUninit::new(event)) }
        });
    }

    #[inline(always)]
    unsafe fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.0.event.with(|place| {
            // SAFETY: `place` points into the slot, which lives as long as the ring. An event was written there and
            // nobody writes meanwhile: the caller's promise.
            look(unsafe { &*place.cast::<T>() })
        })
    }
}
