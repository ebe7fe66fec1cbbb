//! What stands before the slots.

use super::given::{PlainEvent, layout_hash};
use super::{LINE, words};
use crate::spsc::{End, sequence_before};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::fmt;

/// `truetick` in ASCII, read as a number: memory of the other byte order has another.
const MAGIC: u64 = u64::from_be_bytes(*b"truetick");
const VERSION: u64 = 1;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 1;
const CAPACITY_AT: usize = 2;
/// Size in the lower half, alignment in the upper one, both in bytes.
const EVENT_AT: usize = 3;
const LAYOUT_AT: usize = 4;
const START_AT: usize = 5;
pub(super) const HEAD_AT: usize = LINE;
/// Where the slots begin.
pub(super) const SLOTS_AT: usize = 4 * LINE;

/// Whether the end is gone: 0 while it is not.
pub(super) const fn gone_at(end: End) -> usize {
    match end {
        End::Producer => 2 * LINE,
        End::Consumer => 3 * LINE,
    }
}

/// Who the end is: 0 until it is attached.
pub(super) const fn mark_at(end: End) -> usize {
    gone_at(end) + 1
}

/// Why an end cannot be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The memory is smaller than the header, or than what the header says.
    Short,
    /// This is no ring of ours, or not of this byte order, or not prepared yet.
    Magic,
    /// The ring is of another version of this layout.
    Version,
    /// The capacity is no power of two, or more than there can be.
    Capacity,
    /// The events are of another size or alignment.
    Event,
    /// The events have other fields.
    Layout,
    /// The end was attached before.
    Taken,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "the memory is smaller than the ring in it",
            Self::Magic => "the memory holds no ring",
            Self::Version => "the ring is of another version",
            Self::Capacity => "the ring's capacity cannot be",
            Self::Event => "the ring's events are of another size",
            Self::Layout => "the ring's events have other fields",
            Self::Taken => "this end of the ring was attached before",
        })
    }
}

impl core::error::Error for Refused {}

/// What two processes have to agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Slots, a power of two.
    pub(super) capacity: usize,
    /// The first position.
    pub(super) start: u64,
}

impl Header {
    /// Writes the header, and slots without an event. The magic comes last.
    pub(super) fn write<T: PlainEvent>(self, memory: &[AtomicU64], bells: &[AtomicU32], stride: usize) {
        let set = |at: usize, value: u64| memory[at].store(value, Ordering::Relaxed);
        set(VERSION_AT, VERSION);
        set(CAPACITY_AT, self.capacity as u64);
        set(EVENT_AT, event::<T>());
        set(LAYOUT_AT, layout_hash(T::LAYOUT));
        set(START_AT, self.start);
        set(HEAD_AT, self.start);
        for end in [End::Producer, End::Consumer] {
            set(gone_at(end), 0);
            set(mark_at(end), 0);
        }
        for index in 0..self.capacity {
            let sequence = sequence_before(index as u64, self.capacity as u64, self.start);
            set(SLOTS_AT + index * stride, sequence);
        }
        for bell in bells {
            bell.store(0, Ordering::Relaxed);
        }
        memory[MAGIC_AT].store(MAGIC, Ordering::Release);
    }

    /// Reads each word once and takes none on trust.
    pub(super) fn read<T: PlainEvent>(memory: &[AtomicU64]) -> Result<Self, Refused> {
        if memory.len() < SLOTS_AT {
            return Err(Refused::Short);
        }
        if memory[MAGIC_AT].load(Ordering::Acquire) != MAGIC {
            return Err(Refused::Magic);
        }
        let get = |at: usize| memory[at].load(Ordering::Relaxed);
        if get(VERSION_AT) != VERSION {
            return Err(Refused::Version);
        }
        let capacity = usize::try_from(get(CAPACITY_AT)).map_err(|_| Refused::Capacity)?;
        let start = get(START_AT);
        if !capacity.is_power_of_two() {
            return Err(Refused::Capacity);
        }
        if get(EVENT_AT) != event::<T>() {
            return Err(Refused::Event);
        }
        if get(LAYOUT_AT) != layout_hash(T::LAYOUT) {
            return Err(Refused::Layout);
        }
        let needed = words::<T>(capacity).ok_or(Refused::Capacity)?;
        if memory.len() < needed {
            return Err(Refused::Short);
        }
        Ok(Self { capacity, start })
    }
}

fn event<T>() -> u64 {
    (align_of::<T>() as u64) << 32 | size_of::<T>() as u64
}
