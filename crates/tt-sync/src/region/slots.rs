//! Slots made of atomic words.

use super::header::{HEAD_AT, Header, SLOTS_AT, closed_at, owner_at};
use super::{Memory, RegionError, WAKE_WORDS};
use crate::spsc::{End, Sealed, Slot, Storage};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::marker::PhantomData;
use core::num::NonZeroU64;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Words of a cache line; a slot begins on one.
const SLOT_ALIGN_WORDS: usize = if cfg!(loom) { 1 } else { 8 };
const WORD_BYTES: usize = size_of::<u64>();

/// An event for which every bit pattern is valid, without padding.
pub trait PlainEvent: Copy + Send + FromBytes + IntoBytes + Immutable + 'static {
    /// The fields in order, with their types. Two programs that share a ring must use the same text.
    const LAYOUT: &'static str;
}

impl PlainEvent for u64 {
    const LAYOUT: &'static str = "u64";
}

impl<const N: usize> PlainEvent for [u64; N] {
    const LAYOUT: &'static str = "[u64]";
}

/// FNV-1a of 64 bits.
pub(super) const fn layout_hash(layout: &str) -> u64 {
    let bytes = layout.as_bytes();
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01B3);
        at += 1;
    }
    hash
}

/// A ring in a [`Memory`].
#[derive(Debug)]
pub struct Region<T, M> {
    memory: M,
    capacity: usize,
    events: PhantomData<fn() -> T>,
}

impl<T, M> Region<T, M> {
    const EVENT_WORDS: usize = {
        assert!(size_of::<T>() as u64 <= u32::MAX as u64, "the header has 32 bits for the size of an event");
        size_of::<T>().div_ceil(WORD_BYTES)
    };
    /// Words from one slot to the next: the sequence, the event, and padding to whole cache lines.
    pub(super) const STRIDE: usize = (1 + Self::EVENT_WORDS).next_multiple_of(SLOT_ALIGN_WORDS);
}

impl<T: PlainEvent, M: Memory> Region<T, M> {
    /// Attaches `end` of the ring in `memory` for `owner`, and returns the ring and its first position.
    pub(super) fn attach(memory: M, end: End, owner: NonZeroU64) -> Result<(Self, u64), RegionError> {
        let words: &[AtomicU64] = memory.as_ref();
        let wake_words: &[AtomicU32] = memory.as_ref();
        let Header { capacity, start } = Header::read::<T>(words)?;
        if wake_words.len() < WAKE_WORDS {
            return Err(RegionError::TooShort);
        }
        // Each end is attached once, and no data is published by this word, so Relaxed is enough.
        let attached = words[owner_at(end)].compare_exchange(0, owner.get(), Ordering::Relaxed, Ordering::Relaxed);
        attached.map_err(|_| RegionError::AlreadyAttached)?;
        Ok((Self { memory, capacity, events: PhantomData }, start))
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        let words: &[AtomicU64] = self.memory.as_ref();
        &words[at]
    }
}

impl<T, M> Sealed for Region<T, M> {}

impl<T: PlainEvent, M: Memory> Storage<T> for Region<T, M> {
    type Slot<'a>
        = RegionSlot<'a, T>
    where
        Self: 'a;

    #[inline(always)]
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    fn slots<'a>(&'a self) -> impl Fn(u64) -> RegionSlot<'a, T> {
        let words: &[AtomicU64] = self.memory.as_ref();
        let mask = self.capacity - 1;
        move |position| {
            let index = position as usize & mask;
            let words = &words[SLOTS_AT + index * Self::STRIDE..][..1 + Self::EVENT_WORDS];
            RegionSlot { sequence: &words[0], event: &words[1..], events: PhantomData }
        }
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.word(HEAD_AT)
    }

    fn closed_flag(&self, end: End) -> &AtomicU64 {
        self.word(closed_at(end))
    }

    fn wake_word(&self, end: End) -> &AtomicU32 {
        let wake_words: &[AtomicU32] = self.memory.as_ref();
        match end {
            End::Producer => &wake_words[0],
            End::Consumer => &wake_words[WAKE_WORDS / 2],
        }
    }
}

/// One slot of a [`Region`].
#[derive(Debug)]
pub struct RegionSlot<'a, T> {
    sequence: &'a AtomicU64,
    event: &'a [AtomicU64],
    events: PhantomData<fn() -> T>,
}

impl<T> Clone for RegionSlot<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RegionSlot<'_, T> {}

// The words are atomic and every bit pattern is a valid event, so nothing here depends on the caller's promises.
impl<T: PlainEvent> Slot<T> for RegionSlot<'_, T> {
    #[inline(always)]
    fn sequence(&self) -> &AtomicU64 {
        self.sequence
    }

    #[inline(always)]
    unsafe fn write(&self, event: T) {
        let (whole, rest) = event.as_bytes().as_chunks::<WORD_BYTES>();
        for (word, bytes) in self.event.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut bytes = [0; WORD_BYTES];
            bytes[..rest.len()].copy_from_slice(rest);
            self.event[whole.len()].store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    unsafe fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let mut event = T::new_zeroed();
        let (whole, rest) = event.as_mut_bytes().as_chunks_mut::<WORD_BYTES>();
        let last = whole.len();
        for (bytes, word) in whole.iter_mut().zip(self.event) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        if !rest.is_empty() {
            let bytes = self.event[last].load(Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
        look(&event)
    }
}
