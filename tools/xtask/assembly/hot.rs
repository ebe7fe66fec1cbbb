//! The hot functions of tt-sync, each one as a function of machine code: `cargo xtask assembly` builds this for 64-bit
//! Arm.

#![no_std]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU32, AtomicU64};
use tt_sync::region::Region;
use tt_sync::seqlock::{Reader, Writer};
use tt_sync::spsc::{Consumer, Producer};
use tt_sync::wait::{Park, WaitStrategy};

/// The largest event that fits into a cache line with its sequence.
pub type Event = [u64; 7];

/// Memory that two processes share.
pub struct Memory {
    words: &'static [AtomicU64],
    wake_words: &'static [AtomicU32],
}

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        self.words
    }
}

impl AsRef<[AtomicU32]> for Memory {
    fn as_ref(&self) -> &[AtomicU32] {
        self.wake_words
    }
}

/// Functions that sleep and wake, as `futex(2)` does.
pub type Futex = Park<fn(&AtomicU32, u32), fn(&AtomicU32)>;

#[inline(never)]
pub fn push(producer: &mut Producer<Event>, event: &Event) -> bool {
    producer.push(*event).is_ok()
}

#[inline(never)]
pub fn push_slice(producer: &mut Producer<Event>, events: &[Event]) -> usize {
    producer.push_slice(events)
}

#[inline(never)]
pub fn pop(consumer: &mut Consumer<Event>, into: &mut Event) -> bool {
    consumer.pop().map(|event| *into = event).is_some()
}

#[inline(never)]
pub fn drain(consumer: &mut Consumer<Event>, sum: &mut u64) -> usize {
    consumer.drain(usize::MAX, |event| *sum = sum.wrapping_add(event[0]))
}

#[inline(never)]
pub fn region_push(producer: &mut Producer<Event, Region<Event, Memory>>, event: &Event) -> bool {
    producer.push(*event).is_ok()
}

#[inline(never)]
pub fn region_pop(consumer: &mut Consumer<Event, Region<Event, Memory>>, into: &mut Event) -> bool {
    consumer.pop().map(|event| *into = event).is_some()
}

#[inline(never)]
pub fn cell_store(writer: &mut Writer<7>, value: &Event) {
    writer.store(value);
}

#[inline(never)]
pub fn cell_load(reader: &Reader<7>, into: &mut Event) -> bool {
    reader.try_load().map(|value| *into = value).is_some()
}

#[inline(never)]
pub fn park_wake(park: &Futex, wake_word: &AtomicU32) {
    park.wake(wake_word);
}

#[inline(never)]
pub fn park_wait(park: &Futex, consumer: &mut Consumer<Event>) -> u64 {
    park.wait(consumer, |consumer| consumer.pop().map(|event| event[0]))
}
