//! Slots that are words.

use super::header::{HEAD_AT, Header, SLOTS_AT, gone_at, mark_at};
use super::{BELLS, Memory, Refused};
use crate::spsc::{End, Place, Sealed, Slot};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::marker::PhantomData;
use core::num::NonZeroU64;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Words of a cache line, which a slot begins on.
const LINE_WORDS: usize = if cfg!(loom) { 1 } else { 8 };
const WORD_BYTES: usize = size_of::<u64>();

/// An event that is a value whatever its bytes say, and has no byte that belongs to no field.
pub trait PlainEvent: Copy + Send + FromBytes + IntoBytes + Immutable + 'static {
    /// Its fields, in order, with their types. Two programs that share a ring have to agree on this text.
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

/// Memory of a [`Memory`], with a ring in it.
#[derive(Debug)]
pub struct Given<T, M> {
    memory: M,
    capacity: usize,
    events: PhantomData<fn() -> T>,
}

impl<T, M> Given<T, M> {
    const EVENT_WORDS: usize = size_of::<T>().div_ceil(WORD_BYTES);
    /// Words from one slot to the next: the sequence, the event, and what is missing to whole lines.
    pub(super) const STRIDE: usize = (1 + Self::EVENT_WORDS).next_multiple_of(LINE_WORDS);
}

impl<T: PlainEvent, M: Memory> Given<T, M> {
    /// The ring in `memory` and its first position, with `end` taken by who has `mark`.
    pub(super) fn attach(memory: M, end: End, mark: NonZeroU64) -> Result<(Self, u64), Refused> {
        let words: &[AtomicU64] = memory.as_ref();
        let bells: &[AtomicU32] = memory.as_ref();
        let Header { capacity, start } = Header::read::<T>(words)?;
        if bells.len() < BELLS {
            return Err(Refused::Short);
        }
        // Each end is taken once, so that nothing is handed over here that an ordering would have to show.
        let taken = words[mark_at(end)].compare_exchange(0, mark.get(), Ordering::Relaxed, Ordering::Relaxed);
        taken.map_err(|_| Refused::Taken)?;
        Ok((Self { memory, capacity, events: PhantomData }, start))
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        let words: &[AtomicU64] = self.memory.as_ref();
        &words[at]
    }
}

impl<T, M> Sealed for Given<T, M> {}

impl<T: PlainEvent, M: Memory> Place<T> for Given<T, M> {
    type Slot<'a>
        = GivenSlot<'a, T>
    where
        Self: 'a;

    #[inline(always)]
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> GivenSlot<'_, T> {
        let words: &[AtomicU64] = self.memory.as_ref();
        let index = position as usize & (self.capacity - 1);
        let words = &words[SLOTS_AT + index * Self::STRIDE..][..1 + Self::EVENT_WORDS];
        GivenSlot { sequence: &words[0], event: &words[1..], events: PhantomData }
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.word(HEAD_AT)
    }

    fn gone(&self, end: End) -> &AtomicU64 {
        self.word(gone_at(end))
    }

    fn bell(&self, end: End) -> &AtomicU32 {
        let bells: &[AtomicU32] = self.memory.as_ref();
        match end {
            End::Producer => &bells[0],
            End::Consumer => &bells[BELLS / 2],
        }
    }
}

/// A slot of a [`Given`] place.
#[derive(Debug)]
pub struct GivenSlot<'a, T> {
    sequence: &'a AtomicU64,
    event: &'a [AtomicU64],
    events: PhantomData<fn() -> T>,
}

impl<T> Clone for GivenSlot<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GivenSlot<'_, T> {}

// Nothing here needs the caller's promises: the words are atomic, and whatever they say is an event.
impl<T: PlainEvent> Slot<T> for GivenSlot<'_, T> {
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
