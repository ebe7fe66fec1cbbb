//! Storage of a ring: its slots and the state that the two ends share.

use crate::sync::{Arc, AtomicU32, AtomicU64, Box, UnsafeCell, boxed_slice};
use core::array;
use core::mem::MaybeUninit;

/// One of a ring's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The writing end.
    Producer,
    /// The reading end.
    Consumer,
}

/// Seals [`Storage`](super::Storage): the safety proofs rely on the two implementations in this crate.
pub(crate) mod sealed {
    /// Implemented in this crate only.
    pub trait Sealed {}
}

/// Memory of a ring: [`Owned`] or [`Region`](crate::region::Region). Sealed; use the methods of the two ends.
pub trait Storage<T>: sealed::Sealed {
    /// One event and its sequence.
    type Slot<'a>: Slot<T>
    where
        Self: 'a;

    /// Returns the number of slots, a power of two.
    fn capacity(&self) -> usize;
    /// Returns what finds the slot of a position, for a loop: it stays in registers, which a pointer behind `self` does not.
    fn slots<'a>(&'a self) -> impl Fn(u64) -> Self::Slot<'a>;
    /// Returns the slot of `position`.
    #[inline(always)]
    fn slot(&self, position: u64) -> Self::Slot<'_> {
        self.slots()(position)
    }
    /// Returns the next position that the consumer reads; the slots of all earlier positions are free.
    fn head(&self) -> &AtomicU64;
    /// Returns the closed flag of `end`: 0 while it is open.
    fn closed_flag(&self, end: End) -> &AtomicU64;
    /// Returns the word on which `end` sleeps.
    fn wake_word(&self, end: End) -> &AtomicU32;
}

/// One slot of a [`Storage`].
pub trait Slot<T>: Copy {
    /// Returns the sequence: the position of the event in the slot and the length of the batch that begins with it, or
    /// those of an earlier one.
    fn sequence(&self) -> &AtomicU64;
    /// Writes `event`.
    ///
    /// # Safety
    /// No other thread reads or writes the slot's event during the call.
    unsafe fn write(&self, event: T);
    /// Calls `look` with the event.
    ///
    /// # Safety
    /// The caller has synchronised with the write of an event, and no other thread writes one during the call.
    unsafe fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R;
}

/// Bytes of a cache line.
const LINE: usize = 64;
/// Sequences on a line without events.
const SEQUENCES: usize = LINE / size_of::<u64>();

/// Whether an event takes one cache line more with its sequence than without it, such as one of 64 bytes. Then the
/// sequences are apart, so that eight events move nine lines instead of sixteen.
const fn is_apart<T>() -> bool {
    size_of::<T>() != 0 && (size_of::<T>() + size_of::<u64>()).div_ceil(LINE) > size_of::<T>().div_ceil(LINE)
}

/// One event and its sequence: one cache line for events of up to 56 bytes.
#[repr(C, align(64))]
struct SlotMemory<T> {
    sequence: AtomicU64,
    event: EventCell<T>,
}

type EventCell<T> = UnsafeCell<MaybeUninit<T>>;

/// An event whose sequence is elsewhere.
#[repr(C, align(64))]
struct EventMemory<T>(EventCell<T>);

/// Sequences whose events are elsewhere.
#[repr(align(64))]
struct SequenceLine([AtomicU64; SEQUENCES]);

/// One slot of an [`Owned`] storage.
pub struct OwnedSlot<'a, T> {
    sequence: &'a AtomicU64,
    event: &'a EventCell<T>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = {
    assert!(size_of::<SlotMemory<[u64; 7]>>() == LINE && !is_apart::<[u64; 7]>());
    assert!(size_of::<EventMemory<[u64; 8]>>() == LINE && is_apart::<[u64; 8]>());
    assert!(size_of::<SequenceLine>() == LINE);
};

/// Aligns a value so that it shares no cache line with another, adjacent-line prefetch included.
#[repr(align(128))]
struct CacheAligned<T>(T);

/// State of one end that the other reads.
struct EndState {
    closed: AtomicU64,
    wake_word: AtomicU32,
}

impl EndState {
    fn new() -> CacheAligned<Self> {
        CacheAligned(Self { closed: AtomicU64::new(0), wake_word: AtomicU32::new(0) })
    }
}

/// Where slots are. One of the kinds is empty, as [`is_apart`] says.
struct Slots<T> {
    together: Box<[SlotMemory<T>]>,
    events: Box<[EventMemory<T>]>,
    sequences: Box<[SequenceLine]>,
}

impl<T> Slots<T> {
    fn new(capacity: usize, start: u64) -> Self {
        let sequence = |index| AtomicU64::new(initial_sequence(index as u64, capacity as u64, start));
        // Zeroed, so that `Producer::claim` can expose it.
        let event = || UnsafeCell::new(MaybeUninit::zeroed());
        let (together, apart) = if is_apart::<T>() { (0, capacity) } else { (capacity, 0) };
        let line = |line: usize| SequenceLine(array::from_fn(|index| sequence(SEQUENCES * line + index)));
        Self {
            together: boxed_slice(together, |index| SlotMemory { sequence: sequence(index), event: event() }),
            events: boxed_slice(apart, |_| EventMemory(event())),
            sequences: boxed_slice(apart.div_ceil(SEQUENCES), line),
        }
    }

    #[inline(always)]
    fn view(&self) -> SlotsView<'_, T> {
        let Self { together, events, sequences } = self;
        SlotsView { together, events, sequences }
    }
}

/// [`Slots`] without the pointers to its pointers.
struct SlotsView<'a, T> {
    together: &'a [SlotMemory<T>],
    events: &'a [EventMemory<T>],
    sequences: &'a [SequenceLine],
}

impl<'a, T> SlotsView<'a, T> {
    /// # Safety
    /// `index` is less than the capacity.
    #[inline(always)]
    unsafe fn get(&self, index: usize) -> OwnedSlot<'a, T> {
        if is_apart::<T>() {
            // SAFETY: there are as many events as slots, and the caller keeps to them.
            let EventMemory(event) = unsafe { self.events.get_unchecked(index) };
            // SAFETY: the lines have at least as many sequences as there are slots.
            let SequenceLine(line) = unsafe { self.sequences.get_unchecked(index / SEQUENCES) };
            return OwnedSlot { sequence: &line[index % SEQUENCES], event };
        }
        // SAFETY: there are as many as slots, and the caller keeps to them.
        let SlotMemory { sequence, event } = unsafe { self.together.get_unchecked(index) };
        OwnedSlot { sequence, event }
    }
}

struct Ring<T> {
    slots: Slots<T>,
    head: CacheAligned<AtomicU64>,
    producer: CacheAligned<EndState>,
    consumer: CacheAligned<EndState>,
}

// SAFETY: an event is written by the one producer and read by the one consumer, and never at once: the producer writes
// a slot only after it saw, with Acquire, a `head` past the slot's earlier event, which the consumer stored with
// Release after its read; the consumer reads only after it saw, with Acquire, the sequence of the slot's batch, or one of
// a batch before it that was published together with it, which the producer stored with Release after its write. The event itself crosses threads, hence
// `T: Send`.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: nothing in the ring is tied to the thread that created it.
unsafe impl<T: Send> Send for Ring<T> {}

/// Memory of this process, allocated once.
pub struct Owned<T> {
    ring: Arc<Ring<T>>,
    /// The number of slots, a power of two, minus one: a copy for each end, so that no pointer is followed to it.
    mask: usize,
}

impl<T> Owned<T> {
    /// Allocates a ring and returns one handle for each end.
    pub(super) fn pair(capacity: usize, start: u64) -> [Self; 2] {
        let Some(capacity) = capacity.max(1).checked_next_power_of_two() else {
            panic!("capacity overflow: a ring of {capacity} slots")
        };
        let slots = Slots::new(capacity, start);
        let head = CacheAligned(AtomicU64::new(start));
        let ring = Arc::new(Ring { slots, head, producer: EndState::new(), consumer: EndState::new() });
        let mask = capacity - 1;
        [Self { ring: Arc::clone(&ring), mask }, Self { ring, mask }]
    }

    fn side(&self, end: End) -> &EndState {
        match end {
            End::Producer => &self.ring.producer.0,
            End::Consumer => &self.ring.consumer.0,
        }
    }
}

/// Returns the sequence of slot `index` before its first event, in a ring of `capacity` whose first position is
/// `start`.
pub(crate) fn initial_sequence(index: u64, capacity: u64, start: u64) -> u64 {
    let first = start.wrapping_add(index.wrapping_sub(start) & (capacity - 1));
    first.wrapping_sub(capacity)
}

impl<T> sealed::Sealed for Owned<T> {}

impl<T> Storage<T> for Owned<T> {
    type Slot<'a>
        = OwnedSlot<'a, T>
    where
        Self: 'a;

    #[inline(always)]
    fn capacity(&self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    fn slots<'a>(&'a self) -> impl Fn(u64) -> OwnedSlot<'a, T> {
        let (slots, mask) = (self.ring.slots.view(), self.mask);
        // SAFETY: `pair` makes `mask + 1` slots (a power of two, checked for overflow), so a masked index is in bounds.
        move |position| unsafe { slots.get(position as usize & mask) }
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.ring.head.0
    }

    fn closed_flag(&self, end: End) -> &AtomicU64 {
        &self.side(end).closed
    }

    fn wake_word(&self, end: End) -> &AtomicU32 {
        &self.side(end).wake_word
    }
}

impl<T> Clone for OwnedSlot<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OwnedSlot<'_, T> {}

impl<T> OwnedSlot<'_, T> {
    /// Returns a pointer to write the event through. All of its bytes are initialised or padding.
    #[inline(always)]
    pub(super) fn event_to_write(&self) -> *mut T {
        self.event.with_mut(<*mut MaybeUninit<T>>::cast)
    }

    /// Returns a pointer to read the event through.
    #[inline(always)]
    pub(super) fn event_to_read(&self) -> *const T {
        self.event.with(<*const MaybeUninit<T>>::cast)
    }
}

impl<T> Slot<T> for OwnedSlot<'_, T> {
    #[inline(always)]
    fn sequence(&self) -> &AtomicU64 {
        self.sequence
    }

    #[inline(always)]
    unsafe fn write(&self, event: T) {
        self.event.with_mut(|place| {
            // SAFETY: `place` points into the slot, which lives as long as the ring. No other thread uses its event
            // during the call: the caller's promise.
            unsafe { place.write(MaybeUninit::new(event)) }
        });
    }

    #[inline(always)]
    unsafe fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.event.with(|place| {
            // SAFETY: `place` points into the slot, which lives as long as the ring. An event was written there and
            // no other thread writes during the call: the caller's promise.
            look(unsafe { &*place.cast::<T>() })
        })
    }
}
