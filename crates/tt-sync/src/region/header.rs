//! The header before the slots.

use super::slots::{PlainEvent, layout_hash};
use super::{LINE_WORDS, words_needed};
use crate::spsc::{End, initial_sequence};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::fmt;

/// `truetick` in ASCII, read as a number: memory of the other byte order has another.
const MAGIC: u64 = u64::from_be_bytes(*b"truetick");
const VERSION: u64 = 2;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 1;
const CAPACITY_AT: usize = 2;
/// Size in the lower half, alignment in the upper one, both in bytes.
const EVENT_AT: usize = 3;
const LAYOUT_AT: usize = 4;
const START_AT: usize = 5;
pub(super) const HEAD_AT: usize = LINE_WORDS;
/// Offset of the first slot.
pub(super) const SLOTS_AT: usize = 4 * LINE_WORDS;

/// Offset of the closed flag of `end`: 0 while it is open.
pub(super) const fn closed_at(end: End) -> usize {
    match end {
        End::Producer => 2 * LINE_WORDS,
        End::Consumer => 3 * LINE_WORDS,
    }
}

/// Offset of the owner of `end`: 0 until it is attached.
pub(super) const fn owner_at(end: End) -> usize {
    closed_at(end) + 1
}

/// Reason why memory cannot be formatted or attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// The memory is smaller than the header, or than the ring that the header describes.
    TooShort,
    /// The memory contains no ring, one of the other byte order, or one that is not formatted yet.
    Magic,
    /// The ring has another version of this layout.
    Version,
    /// The capacity is not a power of two, or too large.
    Capacity,
    /// The events have another size or alignment.
    EventSize,
    /// The events have other fields.
    EventLayout,
    /// The end is already attached.
    AlreadyAttached,
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooShort => "the memory is smaller than the ring",
            Self::Magic => "the memory contains no ring",
            Self::Version => "the ring has another version",
            Self::Capacity => "the ring has an invalid capacity",
            Self::EventSize => "the ring's events have another size or alignment",
            Self::EventLayout => "the ring's events have other fields",
            Self::AlreadyAttached => "this end of the ring is already attached",
        })
    }
}

impl core::error::Error for RegionError {}

/// The values that two processes must agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Slots, a power of two.
    pub(super) capacity: usize,
    /// The first position.
    pub(super) start: u64,
}

impl Header {
    /// Writes the header and empty slots; the magic last.
    pub(super) fn write<T: PlainEvent>(self, memory: &[AtomicU64], wake_words: &[AtomicU32], stride: usize) {
        let set = |at: usize, value: u64| memory[at].store(value, Ordering::Relaxed);
        set(VERSION_AT, VERSION);
        set(CAPACITY_AT, self.capacity as u64);
        set(EVENT_AT, event_size::<T>());
        set(LAYOUT_AT, layout_hash(T::LAYOUT));
        set(START_AT, self.start);
        set(HEAD_AT, self.start);
        for end in [End::Producer, End::Consumer] {
            set(closed_at(end), 0);
            set(owner_at(end), 0);
        }
        for index in 0..self.capacity {
            let sequence = initial_sequence(index as u64, self.capacity as u64, self.start);
            set(SLOTS_AT + index * stride, sequence);
        }
        for wake_word in wake_words {
            wake_word.store(0, Ordering::Relaxed);
        }
        memory[MAGIC_AT].store(MAGIC, Ordering::Release);
    }

    /// Reads each word once and checks it.
    pub(super) fn read<T: PlainEvent>(memory: &[AtomicU64]) -> Result<Self, RegionError> {
        if memory.len() < SLOTS_AT {
            return Err(RegionError::TooShort);
        }
        if memory[MAGIC_AT].load(Ordering::Acquire) != MAGIC {
            return Err(RegionError::Magic);
        }
        let get = |at: usize| memory[at].load(Ordering::Relaxed);
        if get(VERSION_AT) != VERSION {
            return Err(RegionError::Version);
        }
        let capacity = usize::try_from(get(CAPACITY_AT)).map_err(|_| RegionError::Capacity)?;
        let start = get(START_AT);
        if !capacity.is_power_of_two() {
            return Err(RegionError::Capacity);
        }
        if get(EVENT_AT) != event_size::<T>() {
            return Err(RegionError::EventSize);
        }
        if get(LAYOUT_AT) != layout_hash(T::LAYOUT) {
            return Err(RegionError::EventLayout);
        }
        let needed = words_needed::<T>(capacity).ok_or(RegionError::Capacity)?;
        if memory.len() < needed {
            return Err(RegionError::TooShort);
        }
        Ok(Self { capacity, start })
    }
}

fn event_size<T>() -> u64 {
    (align_of::<T>() as u64) << 32 | size_of::<T>() as u64
}
