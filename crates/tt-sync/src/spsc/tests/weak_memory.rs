//! The ring as litmus programs for Miri, whose loads may return older values: two threads and few operations, so that
//! a thousand seeds are cheap. They are ordinary tests, too.
//!
//! Each calls something that has an ordering before it starts a thread: tools/xtask/src/test/weaken.rs says why.

use super::super::Storage;
use super::{Consumer, Ends, Producer, owned, shared};
use crate::sync::tests::race;
use std::vec::Vec;

/// Both words are the number, so that a torn event or an earlier one in the same slot is seen.
type Event = [u64; 2];
/// Attempts of an end, of which those that find the ring full or empty do nothing.
const ATTEMPTS: usize = 4;

/// Pops an event, which must be the one after `popped`.
fn take<P: Storage<Event>>(consumer: &mut Consumer<Event, P>, popped: &mut u64) -> bool {
    let event = consumer.pop();
    *popped += u64::from(event.is_some());
    assert!(event.is_none_or(|event| event == [*popped; 2]), "{event:?} as number {popped}");
    event.is_some()
}

/// Single events through one slot, which each event but the first overwrites.
fn one_at_a_time<P: Storage<Event> + Send>((mut producer, mut consumer): Ends<Event, P>) {
    assert!(!consumer.is_abandoned());
    let (mut popped, mut pushed) = (0, 0);
    let consume = || {
        for _ in 0..ATTEMPTS {
            take(&mut consumer, &mut popped);
        }
    };
    race(consume, || {
        for _ in 0..ATTEMPTS {
            producer.hold_next();
            pushed += u64::from(producer.push([pushed + 1; 2]).is_ok());
        }
    });
    while take(&mut consumer, &mut popped) {}
    assert_eq!(popped, pushed);
}

#[test]
fn events_arrive_whole_and_in_order() {
    one_at_a_time(owned(1, u64::MAX));
}

#[test]
fn events_arrive_whole_and_in_order_in_given_memory() {
    one_at_a_time(shared(1, u64::MAX));
}

/// Batches of two through two slots, so that the second lap overwrites the first: none or both are there.
fn in_batches<P: Storage<Event> + Send>((mut producer, mut consumer): Ends<Event, P>) {
    assert!(!consumer.is_abandoned());
    let (mut seen, mut pushed) = (Vec::new(), 0);
    let consume = || {
        for _ in 0..ATTEMPTS {
            assert_ne!(consumer.drain(2, |event| seen.push(*event)), 1, "a batch in parts");
        }
    };
    race(consume, || {
        for _ in 0..ATTEMPTS {
            pushed += producer.push_slice(&[[pushed + 1; 2], [pushed + 2; 2]]) as u64;
        }
    });
    consumer.drain(usize::MAX, |event| seen.push(*event));
    assert_eq!(seen, (1..=pushed).map(|number| [number; 2]).collect::<Vec<_>>());
}

#[test]
fn batches_arrive_whole_and_in_order() {
    in_batches(owned(2, u64::MAX));
}

#[test]
fn batches_arrive_whole_and_in_order_in_given_memory() {
    in_batches(shared(2, u64::MAX));
}

/// A batch of three, which takes two sequences: none or all are there.
fn in_a_long_batch<P: Storage<Event> + Send>((mut producer, mut consumer): Ends<Event, P>) {
    assert!(!consumer.is_abandoned());
    let mut seen = Vec::new();
    let consume = || {
        for _ in 0..ATTEMPTS {
            let count = consumer.drain(3, |event| seen.push(*event));
            assert!(count == 0 || count == 3, "{count} of a batch of three");
        }
    };
    let ((), pushed) = race(consume, || producer.push_slice(&[[1; 2], [2; 2], [3; 2]]));
    consumer.drain(usize::MAX, |event| seen.push(*event));
    assert_eq!((pushed, seen), (3, [[1; 2], [2; 2], [3; 2]].to_vec()));
}

#[test]
fn long_batches_arrive_whole_and_in_order() {
    in_a_long_batch(owned(4, u64::MAX));
}

#[test]
fn long_batches_arrive_whole_and_in_order_in_given_memory() {
    in_a_long_batch(shared(4, u64::MAX));
}

/// Of three events in groups of two, none, two or three are there.
fn in_groups<P: Storage<Event> + Send>((mut producer, mut consumer): Ends<Event, P>) {
    assert!(!consumer.is_abandoned());
    let (mut seen, mut numbers) = (Vec::new(), 1..);
    let consume = || {
        for _ in 0..ATTEMPTS {
            if seen.is_empty() {
                assert_ne!(consumer.drain(3, |event| seen.push(*event)), 1, "a group in parts");
            }
        }
    };
    let produce = || producer.push_with(3, || [numbers.next().expect("numbers do not end"); 2]);
    let ((), pushed) = race(consume, produce);
    consumer.drain(usize::MAX, |event| seen.push(*event));
    assert_eq!((pushed, seen), (3, [[1; 2], [2; 2], [3; 2]].to_vec()));
}

#[test]
fn groups_arrive_whole_and_in_order() {
    in_groups(owned(4, u64::MAX));
}

#[test]
fn groups_arrive_whole_and_in_order_in_given_memory() {
    in_groups(shared(4, u64::MAX));
}

/// A claim is filled in the slot, and read there.
#[test]
fn claims_arrive_whole_and_in_order() {
    let (mut producer, mut consumer) = owned::<Event>(1, u64::MAX);
    assert!(!consumer.is_abandoned());
    let (mut published, mut seen) = (0, 0);
    let consume = || {
        for _ in 0..ATTEMPTS {
            if let Some(event) = consumer.peek() {
                seen += 1;
                assert_eq!(*event, [seen; 2]);
                consumer.drain(1, |_| ());
            }
        }
    };
    race(consume, || {
        for _ in 0..ATTEMPTS {
            if let Some(mut claim) = producer.claim() {
                published += 1;
                *claim = [published; 2];
                claim.publish();
            }
        }
    });
    assert!(seen <= published);
}

/// A consumer that sees its producer gone sees all that it pushed.
fn producer_leaves<P: Storage<Event> + Send>((mut producer, mut consumer): Ends<Event, P>) {
    assert!(!consumer.is_abandoned());
    let look = |consumer: &mut Consumer<Event, P>| consumer.is_abandoned().then(|| consumer.pop());
    let consume = || (0..ATTEMPTS).find_map(|_| look(&mut consumer));
    let (popped, ()) = race(consume, move || producer.push([1; 2]).expect("there is room"));
    assert!(popped.is_none_or(|popped| popped == Some([1; 2])), "the producer left, and its event is not there");
    assert_eq!(popped.flatten().or_else(|| consumer.pop()), Some([1; 2]));
}

#[test]
fn nothing_is_lost_when_the_producer_leaves() {
    producer_leaves(owned(1, 0));
}

#[test]
fn nothing_is_lost_when_the_producer_leaves_in_given_memory() {
    producer_leaves(shared(1, 0));
}

/// The number of events that are not popped is final once the producer sees its consumer gone.
fn consumer_leaves<P: Storage<Event> + Send>((mut producer, mut consumer): Ends<Event, P>) {
    assert_eq!(producer.push_slice(&[[1; 2], [2; 2]]), 2);
    let look = |producer: &Producer<Event, P>| producer.is_abandoned().then(|| producer.occupancy());
    let (final_count, popped) = race(|| (0..ATTEMPTS).find_map(|_| look(&producer)), move || consumer.pop());
    assert!(final_count.is_none_or(|count| count == 1), "{final_count:?}");
    assert_eq!((popped, producer.occupancy()), (Some([1; 2]), 1));
}

#[test]
fn occupancy_is_final_when_the_consumer_leaves() {
    consumer_leaves(owned(2, 0));
}

#[test]
fn occupancy_is_final_when_the_consumer_leaves_in_given_memory() {
    consumer_leaves(shared(2, 0));
}
