//! Parked ends as litmus programs for Miri, which reports threads that all sleep. They are ordinary tests, too.
//!
//! In each, one change alone wakes the sleeper: the end that changed the ring stays open until the sleeper is back.

use super::super::{WaitError, blocking_ring};
use super::park;
use crate::sync::tests::race;

#[test]
fn a_push_wakes_the_consumer() {
    let (mut producer, mut consumer) = blocking_ring::<u64, _>(1, park(0));
    assert!(!producer.end().is_abandoned());
    assert_eq!(race(|| producer.push(1), || consumer.pop()), (Ok(()), Ok(1)));
}

#[test]
fn a_pop_wakes_the_producer() {
    let (mut producer, mut consumer) = blocking_ring::<u64, _>(1, park(0));
    assert_eq!(producer.push(1), Ok(()));
    assert_eq!(race(|| consumer.pop(), || producer.push(2)), (Ok(1), Ok(())));
    assert_eq!(consumer.pop(), Ok(2));
}

/// Both ends sleep in turn: the batch is longer than the ring.
#[test]
fn a_batch_wakes_both_ends() {
    let (mut producer, mut consumer) = blocking_ring::<u64, _>(1, park(0));
    assert!(!producer.end().is_abandoned());
    let consume = || [(); 3].map(|()| consumer.pop());
    assert_eq!(race(consume, || producer.push_slice(&[1, 2, 3])), ([Ok(1), Ok(2), Ok(3)], Ok(())));
}

#[test]
fn a_closed_producer_wakes_the_consumer() {
    let (producer, mut consumer) = blocking_ring::<u64, _>(1, park(0));
    assert!(!producer.end().is_abandoned());
    assert_eq!(race(|| drop(producer), || consumer.pop()).1, Err(WaitError::Closed));
}

#[test]
fn a_closed_consumer_wakes_the_producer() {
    let (mut producer, consumer) = blocking_ring::<u64, _>(1, park(0));
    assert_eq!(producer.push(1), Ok(()));
    assert_eq!(race(|| drop(consumer), || producer.push(2)).1, Err(WaitError::Closed));
}
