//! Two real threads, for ThreadSanitizer, Miri and the machine itself.

use super::super::Storage;
use super::{Ends, owned, shared};

/// tests/items.rs passes millions. Here each event may cost a change of threads, on a busy CPU a slice of its time.
const EVENTS: u64 = if cfg!(miri) { 20 } else { 20_000 };
/// Seven words share a cache line with their sequence; the sequences of eight are apart.
type Event<const N: usize> = [u64; N];

/// Every word of an event depends on its number: a lost, doubled, swapped or torn event is seen.
fn event<const N: usize>(number: u64) -> Event<N> {
    core::array::from_fn(|i| (number + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn pass<const N: usize, P: Storage<Event<N>> + Send + 'static>(
    (mut producer, mut consumer): Ends<Event<N>, P>,
    mut push: impl FnMut(&mut super::Producer<Event<N>, P>, u64) -> u64,
    mut pop: impl FnMut(&mut super::Consumer<Event<N>, P>, u64) -> u64 + Send + 'static,
) {
    let consuming = std::thread::spawn(move || {
        let mut popped = 0;
        while popped < EVENTS {
            let count = pop(&mut consumer, popped);
            if count == 0 {
                std::thread::yield_now();
            }
            popped += count;
        }
        assert_eq!(consumer.pop(), None);
    });
    let mut pushed = 0;
    while pushed < EVENTS {
        let count = push(&mut producer, pushed);
        if count == 0 {
            std::thread::yield_now();
        }
        pushed += count;
    }
    consuming.join().expect("the consumer failed");
}

fn one_at_a_time<const N: usize, P: Storage<Event<N>> + Send + 'static>(ends: Ends<Event<N>, P>) {
    pass(
        ends,
        |producer, next| u64::from(producer.push(event(next)).is_ok()),
        |consumer, next| {
            let popped = consumer.pop();
            assert!(popped.is_none_or(|popped| popped == event(next)));
            u64::from(popped.is_some())
        },
    );
}

/// Batches of changing length, the last one cut to what is left.
fn in_batches<const N: usize, P: Storage<Event<N>> + Send + 'static>(ends: Ends<Event<N>, P>) {
    let mut batch = std::vec::Vec::new();
    pass(
        ends,
        move |producer, next| {
            batch.clear();
            batch.extend((next..EVENTS.min(next + 1 + next % 7)).map(event));
            producer.push_slice(&batch) as u64
        },
        |consumer, next| {
            let mut expected = next;
            let count = consumer.drain(1 + next as usize % 5, |popped| {
                assert_eq!(*popped, event(expected));
                expected += 1;
            });
            assert_eq!(count as u64, expected - next);
            count as u64
        },
    );
}

#[test]
fn two_threads_pass_every_event_whole_and_in_order() {
    for capacity in [1, 2, 64] {
        one_at_a_time::<7, _>(owned(capacity, u64::MAX - 100));
        one_at_a_time::<8, _>(owned(capacity, u64::MAX - 100));
        one_at_a_time::<8, _>(shared(capacity, u64::MAX - 100));
    }
}

#[test]
fn two_threads_pass_batches_whole_and_in_order() {
    for capacity in [1, 8] {
        in_batches::<7, _>(owned(capacity, u64::MAX - 100));
        in_batches::<8, _>(owned(capacity, u64::MAX - 100));
        in_batches::<8, _>(shared(capacity, u64::MAX - 100));
    }
}

/// Groups of events that are made while the consumer reads.
fn in_groups<const N: usize, P: Storage<Event<N>> + Send + 'static>(ends: Ends<Event<N>, P>) {
    pass(
        ends,
        |producer, next| {
            let mut numbers = next..;
            let count_max = (EVENTS - next).min(1 + next % 7) as usize;
            producer.push_with(count_max, || event(numbers.next().unwrap_or(0))) as u64
        },
        |consumer, next| {
            let mut expected = next;
            consumer.drain(1 + next as usize % 5, |popped| {
                assert_eq!(*popped, event(expected));
                expected += 1;
            }) as u64
        },
    );
}

#[test]
fn two_threads_pass_groups_whole_and_in_order() {
    for capacity in [1, 8] {
        in_groups::<7, _>(owned(capacity, u64::MAX - 100));
        in_groups::<8, _>(owned(capacity, u64::MAX - 100));
        in_groups::<8, _>(shared(capacity, u64::MAX - 100));
    }
}

fn in_place<const N: usize>() {
    pass::<N, _>(
        owned(4, u64::MAX - 100),
        |producer, next| {
            let Some(mut claim) = producer.claim() else { return 0 };
            *claim = event(next);
            claim.publish();
            1
        },
        |consumer, next| {
            let Some(popped) = consumer.peek() else { return 0 };
            assert_eq!(*popped, event(next));
            consumer.drain(1, |_| ()) as u64
        },
    );
}

#[test]
fn two_threads_fill_and_read_in_place() {
    in_place::<7>();
    in_place::<8>();
}
