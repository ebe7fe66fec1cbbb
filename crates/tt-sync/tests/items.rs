//! Many events between two real threads, each checked, and their checksum at the end.
//!
//! `TT_RING_ITEMS=1000000000 cargo test --release -p tt-sync --test items -- --nocapture` for the long run.

#![cfg(not(any(loom, shuttle)))]

use std::hint::spin_loop;
use std::thread;
use tt_sync::spsc::{Consumer, Producer, ring};

const ITEMS: u64 = if cfg!(miri) { 100 } else { 2_000_000 };
const CAPACITY: usize = 1024;
const BATCH: usize = 16;

type Event = [u64; 7];

/// Every word depends on the number.
fn event(number: u64) -> Event {
    std::array::from_fn(|word| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(9 * word as u32))
}

/// Depends on every word, and on the order of the events.
fn fold(checksum: u64, event: &Event) -> u64 {
    event.iter().fold(checksum, |folded, word| (folded ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23))
}

fn items() -> u64 {
    let asked = std::env::var("TT_RING_ITEMS").ok().map(|asked| asked.parse().expect("TT_RING_ITEMS is a number"));
    asked.unwrap_or(ITEMS)
}

/// Each side folds what it passed on or took, and both come to the same.
fn pass(
    name: &str,
    mut push: impl FnMut(&mut Producer<Event>, u64, u64) -> u64 + Send,
    mut pop: impl FnMut(&mut Consumer<Event>, &mut dyn FnMut(&Event)) -> usize,
) {
    let items = items();
    let (mut producer, mut consumer) = ring::<Event>(CAPACITY);
    let (mut popped, mut faults, mut checksum) = (0_u64, 0_u64, 0_u64);
    let sent = thread::scope(|scope| {
        let producing = scope.spawn(move || {
            let (mut pushed, mut checksum) = (0, 0);
            while pushed < items {
                let count = push(&mut producer, pushed, items);
                if count == 0 {
                    rest();
                }
                checksum = (pushed..pushed + count).fold(checksum, |checksum, number| fold(checksum, &event(number)));
                pushed += count;
            }
            checksum
        });
        while popped < items {
            let count = pop(&mut consumer, &mut |taken: &Event| {
                faults += u64::from(*taken != event(popped));
                checksum = fold(checksum, taken);
                popped += 1;
            });
            if count == 0 {
                rest();
            }
        }
        producing.join().expect("the producer failed")
    });
    println!("{name}: {popped} events, checksum {checksum:016x}, {faults} faults");
    assert_eq!((popped, faults, checksum), (items, 0, sent));
    assert!(consumer.pop().is_none() && consumer.is_abandoned());
}

/// Spins a little and gives the core away, for where there is only one.
fn rest() {
    (0..64).for_each(|_| spin_loop());
    thread::yield_now();
}

#[test]
fn one_at_a_time_every_item_arrives() {
    pass(
        "one at a time",
        |producer, next, _| u64::from(producer.push(event(next)).is_ok()),
        |consumer, take| usize::from(consumer.pop().inspect(take).is_some()),
    );
}

#[test]
fn in_batches_every_item_arrives() {
    let mut batch = Vec::with_capacity(BATCH);
    pass(
        "in batches",
        move |producer, next, items| {
            batch.clear();
            batch.extend((next..items.min(next + BATCH as u64)).map(event));
            producer.push_slice(&batch) as u64
        },
        |consumer, take| consumer.drain(BATCH, take),
    );
}
