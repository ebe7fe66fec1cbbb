//! A sequence in each slot, and slots of 72 bytes one after the other without regard to cache lines.

use super::whole;
use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(align(128))]
struct Head(AtomicU64);

struct PackedSlots {
    /// The sequence, then the event.
    slots: Box<[[AtomicU64; 9]]>,
    head: Head,
}

/// The two ends.
pub(super) fn ends(capacity: usize) -> (impl FnMut(u64) -> bool, impl FnMut() -> Option<u64>) {
    let slots: Box<[[AtomicU64; 9]]> =
        (0..capacity.max(1).next_power_of_two()).map(|_| array::from_fn(|_| AtomicU64::new(0))).collect();
    let (capacity, mask) = (slots.len() as u64, slots.len() - 1);
    let sent = Arc::new(PackedSlots { slots, head: Head(AtomicU64::new(0)) });
    let taken = Arc::clone(&sent);
    let (mut tail, mut head_seen, mut head) = (0, 0, 0);
    let push = move |stamp| {
        if tail - head_seen == capacity {
            head_seen = sent.head.0.load(Ordering::Acquire);
        }
        let is_free = tail - head_seen != capacity;
        if is_free {
            let [sequence, event @ ..] = &sent.slots[tail as usize & mask];
            for word in event {
                word.store(stamp, Ordering::Relaxed);
            }
            tail += 1;
            // One more than the position, so that an untouched slot carries none.
            sequence.store(tail, Ordering::Release);
        }
        is_free
    };
    let pop = move || {
        let [sequence, event @ ..] = &taken.slots[head as usize & mask];
        (sequence.load(Ordering::Acquire) == head + 1).then(|| {
            let event = array::from_fn::<_, 8, _>(|word| event[word].load(Ordering::Relaxed));
            head += 1;
            taken.head.0.store(head, Ordering::Release);
            whole(event)
        })
    };
    (push, pop)
}
