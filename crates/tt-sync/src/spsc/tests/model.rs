//! One thread: any sequence of operations does what a bounded queue does.

use super::super::{Full, Owned, Producer, Storage, ring};
use super::{Ends, owned, shared};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::vec::Vec;

/// The longest event. Its sequences are apart; those of its first seven words are not.
type Event = [u64; 8];

/// The first words of an event.
fn cut<const N: usize>(event: &Event) -> [u64; N] {
    core::array::from_fn(|word| event[word])
}

const STEPS_MAX: usize = if cfg!(miri) { 24 } else { 200 };

#[derive(Clone, Debug)]
enum Step {
    Push(Event),
    PushSlice(Vec<Event>),
    PushWith(Vec<Event>),
    /// Filled in place, and published or not.
    Claim(Event, bool),
    HoldNext,
    Pop,
    PopSlice(usize),
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<Event>().prop_map(Step::Push),
        2 => prop::collection::vec(any::<Event>(), 0..12).prop_map(Step::PushSlice),
        2 => prop::collection::vec(any::<Event>(), 0..12).prop_map(Step::PushWith),
        2 => (any::<Event>(), any::<bool>()).prop_map(|(event, publish)| Step::Claim(event, publish)),
        1 => Just(Step::HoldNext),
        4 => Just(Step::Pop),
        1 => (0_usize..12).prop_map(Step::PopSlice),
        1 => (0_usize..12).prop_map(Step::Drain),
    ]
}

/// Returns whether there was room.
type Claim<const N: usize, P> = fn(&mut Producer<[u64; N], P>, [u64; N], bool) -> bool;

fn claim_in_place<const N: usize>(
    producer: &mut Producer<[u64; N], Owned<[u64; N]>>,
    event: [u64; N],
    publish: bool,
) -> bool {
    let Some(mut claim) = producer.claim() else { return false };
    *claim = event;
    if publish {
        claim.publish();
    }
    true
}

/// For the storage that has no claim.
fn claim_nothing<const N: usize, P: Storage<[u64; N]>>(
    producer: &mut Producer<[u64; N], P>,
    event: [u64; N],
    publish: bool,
) -> bool {
    if publish { producer.push(event).is_ok() } else { producer.occupancy() < producer.capacity() }
}

fn behaves<const N: usize, P: Storage<[u64; N]>>(
    (mut producer, mut consumer): Ends<[u64; N], P>,
    steps: &[Step],
    claim: Claim<N, P>,
) {
    let capacity = producer.capacity();
    let (mut queue, mut popped) = (VecDeque::new(), 0);
    for step in steps {
        let room = capacity - queue.len();
        match step {
            Step::Push(event) => {
                let event = &cut(event);
                let expected = if room == 0 { Err(Full(*event)) } else { Ok(()) };
                assert_eq!(producer.push(*event), expected);
                queue.extend(Some(*event).filter(|_| room != 0));
            }
            Step::PushSlice(events) => {
                let events: Vec<_> = events.iter().map(cut).collect();
                let count = events.len().min(room);
                assert_eq!(producer.push_slice(&events), count);
                queue.extend(&events[..count]);
            }
            Step::PushWith(events) => {
                let events: Vec<_> = events.iter().map(cut).collect();
                let (count, mut made) = (events.len().min(room), events.iter());
                let pushed = producer.push_with(events.len(), || *made.next().expect("no event too many is made"));
                assert_eq!((pushed, made.len()), (count, events.len() - count));
                queue.extend(&events[..count]);
            }
            Step::Claim(event, publish) => {
                let event = &cut(event);
                assert_eq!(claim(&mut producer, *event, *publish), room != 0);
                queue.extend(Some(*event).filter(|_| *publish && room != 0));
            }
            Step::HoldNext => producer.hold_next(),
            Step::Pop => {
                let expected = queue.pop_front().map(|event| (popped, event));
                popped += u64::from(expected.is_some());
                assert_eq!(consumer.pop_numbered().map(|(_, event)| event), expected.map(|(_, event)| event));
            }
            Step::PopSlice(length) => {
                let mut into = std::vec![[0; N]; *length];
                let count = consumer.pop_slice(&mut into);
                assert_eq!(into[..count], queue.drain(..(*length).min(queue.len())).collect::<Vec<_>>());
            }
            Step::Drain(count_max) => {
                let mut seen = Vec::new();
                let count = consumer.drain(*count_max, |event| seen.push(*event));
                assert_eq!(seen, queue.drain(..(*count_max).min(queue.len())).collect::<Vec<_>>());
                assert_eq!(count, seen.len());
            }
        }
        assert_eq!(producer.occupancy(), queue.len());
        assert!(!producer.is_corrupt() && !consumer.is_corrupt());
    }
}

proptest! {
    /// Any small capacity, starting around the wrap.
    #[test]
    fn behaves_as_a_bounded_queue(
        capacity in 0_usize..9,
        before_wrap in 0_u64..20,
        steps in prop::collection::vec(step(), 0..STEPS_MAX),
    ) {
        let start = 0_u64.wrapping_sub(before_wrap);
        let ends = owned(capacity, start);
        prop_assert_eq!(ends.0.capacity(), capacity.max(1).next_power_of_two());
        behaves::<7, _>(ends, &steps, claim_in_place);
        behaves::<8, _>(owned(capacity, start), &steps, claim_in_place);
        behaves::<8, _>(shared(capacity, start), &steps, claim_nothing);
    }
}

#[test]
fn events_are_numbered_from_nought_and_holding_a_slot_pushes_none() {
    let (mut producer, mut consumer) = ring::<[u64; 7]>(2);
    for number in 0..9 {
        producer.hold_next();
        assert_eq!(consumer.pop_numbered(), None);
        producer.push([number; 7]).unwrap();
        producer.hold_next();
        assert_eq!(consumer.pop_numbered(), Some((number, [number; 7])));
    }
}

#[test]
fn events_without_size_are_counted() {
    let (mut producer, mut consumer) = ring::<()>(2);
    assert_eq!([(); 3].map(|()| producer.push(()).is_ok()), [true, true, false]);
    assert_eq!([(); 3].map(|()| consumer.pop().is_some()), [true, true, false]);
    assert_eq!(producer.push_slice(&[(); 3]), 2);
    assert_eq!((consumer.peek().copied(), consumer.drain(9, |()| ())), (Some(()), 2));
}

#[test]
fn no_capacity_is_a_capacity_of_one() {
    let (mut producer, mut consumer) = ring(0);
    assert_eq!((producer.capacity(), consumer.capacity()), (1, 1));
    assert_eq!((producer.push(1), producer.push(2)), (Ok(()), Err(Full(2))));
    assert_eq!((consumer.pop(), consumer.pop()), (Some(1), None));
}

/// A slot is at least 64 bytes, so that each of these overflows `usize` or `isize::MAX` bytes.
#[test]
fn ring_panics_if_the_capacity_overflows() {
    let highest_bit = 1 << (usize::BITS - 1);
    for capacity in [usize::MAX, usize::MAX - 1, highest_bit + 1, highest_bit, highest_bit - 1, highest_bit >> 6] {
        let made = std::panic::catch_unwind(|| drop(ring::<u64>(capacity)));
        let text = made.expect_err("no ring is that large");
        let text = text.downcast_ref::<std::string::String>().expect("a text");
        assert!(text.starts_with("capacity overflow") || text.starts_with("cannot allocate"), "{text}");
    }
    let too_large = std::panic::catch_unwind(|| drop(ring::<[u64; 1 << 12]>(1 << 50)));
    assert!(too_large.is_err());
}

fn takes_at_most_a_lap<P: Storage<u64>>((mut producer, mut consumer): Ends<u64, P>) {
    assert_eq!(producer.push_slice(&[7; 9]), 4);
    assert_eq!(consumer.drain(0, |_| ()), 0);
    assert_eq!(consumer.drain(usize::MAX, |event| assert_eq!(*event, 7)), 4);
    assert_eq!(consumer.drain(usize::MAX, |_| ()), 0);
    assert_eq!((producer.push_slice(&[]), consumer.pop_slice(&mut [])), (0, 0));
}

#[test]
fn extreme_counts_take_what_is_there() {
    takes_at_most_a_lap(owned(4, u64::MAX));
    takes_at_most_a_lap(shared(4, u64::MAX));
}

#[test]
fn a_claim_shows_zeros_then_what_was_there_a_lap_ago() {
    let (mut producer, mut consumer) = ring::<[u64; 2]>(1);
    assert_eq!(*producer.claim().unwrap(), [0, 0]);
    producer.push([5, 6]).unwrap();
    assert!(producer.claim().is_none());
    assert_eq!((consumer.peek().copied(), consumer.pop()), (Some([5, 6]), Some([5, 6])));
    let mut claim = producer.claim().unwrap();
    assert_eq!(*claim, [5, 6]);
    claim[1] = 7;
    claim.publish();
    assert_eq!((consumer.peek().copied(), consumer.pop()), (Some([5, 7]), Some([5, 7])));
    assert_eq!(consumer.peek(), None);
}

fn notices<P: Storage<u64>>(ends: impl Fn() -> Ends<u64, P>) {
    let (mut producer, mut consumer) = ends();
    assert!(!producer.is_abandoned() && !consumer.is_abandoned());
    producer.push(1).unwrap();
    drop(producer);
    assert!(consumer.is_abandoned());
    assert_eq!((consumer.pop(), consumer.pop()), (Some(1), None));

    let (mut producer, consumer) = ends();
    drop(consumer);
    assert!(producer.is_abandoned());
    assert_eq!((producer.push(1), producer.push(2)), (Ok(()), Err(Full(2))));
    assert_eq!(producer.occupancy(), 1);
}

#[test]
fn each_end_notices_that_the_other_is_gone() {
    notices(|| owned(1, 0));
    notices(|| shared(1, 0));
}

fn appends_what_was_made<P: Storage<u64>>((mut producer, mut consumer): Ends<u64, P>, made: u64) {
    let mut numbers = 0..made;
    let push = || producer.push_with(8, || numbers.next().expect("this many are made"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(push)).is_err());
    let mut seen = Vec::new();
    consumer.drain(usize::MAX, |event| seen.push(*event));
    assert!(seen.iter().copied().eq(0..made), "{seen:?}");
    // The slots after them are free: only this event is seen.
    producer.push(9).unwrap();
    assert_eq!((consumer.pop(), consumer.pop()), (Some(9), None));
}

#[test]
fn events_made_before_a_panic_are_appended() {
    for made in 0..5 {
        appends_what_was_made(owned(8, u64::MAX - 1), made);
        appends_what_was_made(shared(8, u64::MAX - 1), made);
    }
}

#[test]
fn what_panicked_on_an_event_has_taken_it() {
    let (mut producer, mut consumer) = ring(4);
    assert_eq!(producer.push_slice(&[1, 2, 3, 4]), 4);
    let visiting = std::panic::AssertUnwindSafe(|| consumer.drain(4, |event| assert_ne!(*event, 2)));
    assert!(std::panic::catch_unwind(visiting).is_err());
    assert_eq!(producer.occupancy(), 2);
    assert_eq!((consumer.pop(), consumer.pop(), consumer.pop()), (Some(3), Some(4), None));
}
