//! Every interleaving of a few operations, however often the threads take turns, with every value that the memory model
//! lets a load see.

use super::super::{Full, Storage};
use super::{Ends, owned, shared};
use loom::model as check;
use std::vec::Vec;

/// Makes two ends inside of the model.
type Make<T, P> = fn() -> Ends<T, P>;

/// Three pushes through two slots while three are popped: publish, consume, reuse of a slot, wrap of the position.
fn events_arrive<P: Storage<u64> + Send + 'static>(make: Make<u64, P>) {
    check(move || {
        let (mut producer, mut consumer) = make();
        let producing = loom::thread::spawn(move || {
            let mut pushed = 0;
            for _ in 0..3 {
                pushed += u64::from(producer.push(pushed + 1) == Ok(()));
            }
            pushed
        });
        let mut popped = 0;
        let mut take = |consumer: &mut super::Consumer<u64, P>| {
            let event = consumer.pop();
            popped += u64::from(event.is_some());
            assert!(event.is_none_or(|event| event == popped));
            event.map(|_| popped)
        };
        for _ in 0..3 {
            take(&mut consumer);
        }
        let pushed = producing.join().expect("the producer failed");
        while take(&mut consumer).is_some() {}
        assert_eq!(popped, pushed);
    });
}

#[test]
fn loom_events_arrive_whole_and_in_order() {
    events_arrive(|| owned(2, u64::MAX));
}

#[test]
fn loom_events_arrive_whole_and_in_order_in_given_memory() {
    events_arrive(|| shared(2, u64::MAX));
}

fn one_slot_is_reused<P: Storage<u64> + Send + 'static>(make: Make<u64, P>) {
    check(move || {
        let (mut producer, mut consumer) = make();
        let consuming = loom::thread::spawn(move || [consumer.pop(), consumer.pop()]);
        let first = producer.push(1);
        let second = producer.push(2);
        let popped: Vec<_> = consuming.join().expect("the consumer failed").into_iter().flatten().collect();
        assert_eq!(first, Ok(()));
        match second {
            Ok(()) => assert!(popped == [1] || popped == [1, 2], "{popped:?}"),
            Err(Full(back)) => assert!(back == 2 && (popped.is_empty() || popped == [1]), "{popped:?}"),
        }
    });
}

#[test]
fn loom_one_slot_is_reused_only_when_free() {
    one_slot_is_reused(|| owned(1, 0));
}

#[test]
fn loom_one_slot_is_reused_only_when_free_in_given_memory() {
    one_slot_is_reused(|| shared(1, u64::MAX));
}

/// Taking the next slot's line back neither shows an event that is not there nor hides how one was published.
#[test]
fn loom_holding_the_next_slot_changes_nothing() {
    for capacity in [1, 2] {
        check(move || {
            let (mut producer, mut consumer) = owned::<u64>(capacity, 0);
            let producing = loom::thread::spawn(move || {
                producer.hold_next();
                producer.push(1).unwrap();
                producer.hold_next();
                let second = producer.push(2).is_ok();
                producer.hold_next();
                second
            });
            let popped = [consumer.pop_numbered(), consumer.pop_numbered()];
            let second = producing.join().expect("the producer failed");
            let rest = [consumer.pop_numbered(), consumer.pop_numbered()];
            let seen: Vec<_> = popped.into_iter().chain(rest).flatten().collect();
            let pushed = if second { &[(0, 1), (1, 2)][..] } else { &[(0, 1)] };
            assert_eq!(seen, pushed);
        });
    }
}

/// An event of so many words. The sequences of eight are apart from the events.
const fn words<const N: usize>(number: u64) -> [u64; N] {
    [number; N]
}

/// A batch of two arrives as two or not at all, and what follows it comes after it.
fn a_batch_is_published_once<const N: usize, P: Storage<[u64; N]> + Send + 'static>(make: Make<[u64; N], P>) {
    check(move || {
        let (mut producer, mut consumer) = make();
        let producing = loom::thread::spawn(move || {
            assert_eq!(producer.push_slice(&[1, 2, 3].map(words)), 2);
            producer.push_slice(&[3, 4].map(words))
        });
        let mut seen = Vec::new();
        let first = consumer.drain(2, |event| seen.push(*event));
        assert!(first != 1);
        let mut into = [[0; N]; 2];
        let second = consumer.pop_slice(&mut into);
        seen.extend(&into[..second]);
        let pushed = 2 + producing.join().expect("the producer failed");
        consumer.drain(usize::MAX, |event| seen.push(*event));
        assert_eq!(seen, [1, 2, 3, 4].map(words)[..pushed]);
    });
}

#[test]
fn loom_a_batch_is_published_once() {
    a_batch_is_published_once::<1, _>(|| owned(2, u64::MAX));
}

#[test]
fn loom_a_batch_is_published_once_with_sequences_apart() {
    a_batch_is_published_once::<8, _>(|| owned(2, u64::MAX));
}

#[test]
fn loom_a_batch_is_published_once_in_given_memory() {
    a_batch_is_published_once::<1, _>(|| shared(2, u64::MAX));
}

/// A batch of three, which takes two sequences, arrives as three or not at all.
fn a_long_batch_is_published_once<const N: usize, P: Storage<[u64; N]> + Send + 'static>(make: Make<[u64; N], P>) {
    check(move || {
        let (mut producer, mut consumer) = make();
        let producing = loom::thread::spawn(move || producer.push_slice(&[1, 2, 3].map(words)));
        let mut seen = Vec::new();
        let first = consumer.drain(3, |event| seen.push(*event));
        assert!(first == 0 || first == 3);
        assert_eq!(producing.join().expect("the producer failed"), 3);
        consumer.drain(usize::MAX, |event| seen.push(*event));
        assert_eq!(seen, [1, 2, 3].map(words));
    });
}

#[test]
fn loom_a_long_batch_is_published_once() {
    a_long_batch_is_published_once::<1, _>(|| owned(4, u64::MAX - 1));
}

#[test]
fn loom_a_long_batch_is_published_once_in_given_memory() {
    a_long_batch_is_published_once::<1, _>(|| shared(4, u64::MAX - 1));
}

/// Of three events in groups of two, none, two or three arrive.
fn a_group_is_published_once<const N: usize, P: Storage<[u64; N]> + Send + 'static>(make: Make<[u64; N], P>) {
    check(move || {
        let (mut producer, mut consumer) = make();
        let producing = loom::thread::spawn(move || {
            let mut numbers = 1..;
            producer.push_with(3, || words(numbers.next().expect("numbers do not end")))
        });
        let mut seen = Vec::new();
        let first = consumer.drain(3, |event| seen.push(*event));
        assert!(first != 1);
        assert_eq!(producing.join().expect("the producer failed"), 3);
        consumer.drain(usize::MAX, |event| seen.push(*event));
        assert_eq!(seen, [1, 2, 3].map(words));
    });
}

#[test]
fn loom_a_group_is_published_once() {
    a_group_is_published_once::<1, _>(|| owned(4, u64::MAX));
}

#[test]
fn loom_a_group_is_published_once_with_sequences_apart() {
    a_group_is_published_once::<8, _>(|| owned(4, u64::MAX));
}

#[test]
fn loom_a_group_is_published_once_in_given_memory() {
    a_group_is_published_once::<1, _>(|| shared(4, u64::MAX));
}

/// A claim that was dropped shows nothing; one that was published shows what was filled in.
#[test]
fn loom_a_claim_is_filled_in_place() {
    for capacity in [1, 2] {
        check(move || {
            let (mut producer, mut consumer) = owned::<[u64; 2]>(capacity, u64::MAX);
            let producing = loom::thread::spawn(move || {
                if let Some(mut claim) = producer.claim() {
                    claim[0] = 9;
                }
                let mut published = 0;
                for number in 1..=2 {
                    if let Some(mut claim) = producer.claim() {
                        *claim = [number, number];
                        claim.publish();
                        published += 1;
                    }
                }
                published
            });
            let mut seen = Vec::new();
            for _ in 0..2 {
                seen.extend(consumer.peek().copied());
                consumer.drain(1, |_| ());
            }
            let published = producing.join().expect("the producer failed");
            assert!(seen.iter().all(|event| event[0] == event[1] && event[0] <= published));
            assert!(seen.is_sorted());
        });
    }
}

/// A consumer that sees its producer gone sees all that it pushed.
#[test]
fn loom_nothing_is_lost_when_the_producer_leaves() {
    check(|| {
        let (mut producer, mut consumer) = owned::<u64>(2, 0);
        let producing = loom::thread::spawn(move || {
            producer.push(1).unwrap();
        });
        if consumer.is_abandoned() {
            assert_eq!(consumer.pop(), Some(1));
        }
        producing.join().expect("the producer failed");
    });
}

/// The number of unpopped events is final once the producer sees that its consumer was dropped.
#[test]
fn loom_occupancy_is_final_when_the_consumer_leaves() {
    check(|| {
        let (mut producer, mut consumer) = owned::<u64>(2, 0);
        producer.push(1).unwrap();
        producer.push(2).unwrap();
        let consuming = loom::thread::spawn(move || consumer.pop());
        if producer.is_abandoned() {
            assert_eq!(producer.occupancy(), 1);
        }
        consuming.join().expect("the consumer failed");
    });
}
