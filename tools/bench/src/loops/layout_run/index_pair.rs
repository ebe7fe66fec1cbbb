//! Publishes through its `tail` and frees through its `head`: three lines an event, as most rings have it.

use super::whole;
use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words from one index to the other when each has a line, and the adjacent one, to itself.
pub(super) const APART: usize = 16;

const HEAD: usize = 0;

#[derive(Default)]
#[repr(align(64))]
struct Line([AtomicU64; 8]);

#[repr(align(128))]
struct Indices([AtomicU64; 2 * APART]);

struct IndexPair {
    slots: Box<[Line]>,
    indices: Indices,
}

/// The two ends. The tail is `TAIL` words after the head; an end that is `CACHED` keeps the other's index until it
/// says that there is nothing to do.
pub(super) fn ends<const CACHED: bool, const TAIL: usize>(
    capacity: usize,
) -> (impl FnMut(u64) -> bool, impl FnMut() -> Option<u64>) {
    let slots: Box<[Line]> = (0..capacity.max(1).next_power_of_two()).map(|_| Line::default()).collect();
    let indices = Indices(array::from_fn(|_| AtomicU64::new(0)));
    let (capacity, mask) = (slots.len() as u64, slots.len() - 1);
    let sent = Arc::new(IndexPair { slots, indices });
    let taken = Arc::clone(&sent);
    let (mut tail, mut head_seen, mut head, mut tail_seen) = (0, 0, 0, 0);
    let push = move |stamp| {
        if !CACHED || tail - head_seen == capacity {
            head_seen = sent.indices.0[HEAD].load(Ordering::Acquire);
        }
        let is_free = tail - head_seen != capacity;
        if is_free {
            for word in &sent.slots[tail as usize & mask].0 {
                word.store(stamp, Ordering::Relaxed);
            }
            tail += 1;
            sent.indices.0[TAIL].store(tail, Ordering::Release);
        }
        is_free
    };
    let pop = move || {
        if !CACHED || head == tail_seen {
            tail_seen = taken.indices.0[TAIL].load(Ordering::Acquire);
        }
        (head != tail_seen).then(|| {
            let slot = &taken.slots[head as usize & mask].0;
            let event = array::from_fn::<_, 8, _>(|word| slot[word].load(Ordering::Relaxed));
            head += 1;
            taken.indices.0[HEAD].store(head, Ordering::Release);
            whole(event)
        })
    };
    (push, pop)
}
