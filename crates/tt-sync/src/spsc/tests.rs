//! The ring against a `VecDeque`, against loom's schedules, and between two real threads.

use super::{Full, ring, ring_from};

#[cfg(not(loom))]
mod model {
    use super::{Full, ring, ring_from};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Any sequence of pushes (`Some`) and pops (`None`), any small capacity, starting around the wrap.
        #[test]
        fn behaves_as_a_bounded_queue(
            capacity in 1_usize..9,
            before_wrap in 0_usize..20,
            steps in prop::collection::vec(prop::option::weighted(0.55, any::<[u64; 7]>()), 0..200),
        ) {
            let (mut producer, mut consumer) = ring_from(capacity, 0_usize.wrapping_sub(before_wrap));
            let capacity = capacity.next_power_of_two();
            prop_assert_eq!(producer.capacity(), capacity);
            let mut queue = VecDeque::new();
            for step in steps {
                if let Some(event) = step {
                    let expected = if queue.len() == capacity { Err(Full(event)) } else { Ok(()) };
                    prop_assert_eq!(producer.push(event), expected);
                    if expected.is_ok() {
                        queue.push_back(event);
                    }
                } else {
                    prop_assert_eq!(consumer.pop(), queue.pop_front());
                }
                prop_assert_eq!(producer.occupancy(), queue.len());
            }
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
    }

    #[test]
    fn each_end_notices_that_the_other_is_gone() {
        let (mut producer, mut consumer) = ring(4);
        assert!(!producer.is_abandoned() && !consumer.is_abandoned());
        producer.push(1).unwrap();
        drop(producer);
        assert!(consumer.is_abandoned());
        assert_eq!((consumer.pop(), consumer.pop()), (Some(1), None));

        let (mut producer, consumer) = ring(1);
        drop(consumer);
        assert!(producer.is_abandoned());
        assert_eq!((producer.push(1), producer.push(2)), (Ok(()), Err(Full(2))));
    }

    /// Every word of every event depends on its number: a lost, doubled, swapped or torn event is seen.
    #[test]
    fn two_threads_pass_every_event_whole_and_in_order() {
        const EVENTS: u64 = if cfg!(miri) { 300 } else { 300_000 };
        let event = |n: u64| core::array::from_fn::<u64, 8, _>(|i| (n + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for capacity in [1, 2, 64] {
            let (mut producer, mut consumer) = ring_from(capacity, usize::MAX - 100);
            let consuming = std::thread::spawn(move || {
                for n in 0..EVENTS {
                    let popped = loop {
                        match consumer.pop() {
                            Some(popped) => break popped,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!(popped, event(n));
                }
                assert_eq!(consumer.pop(), None);
            });
            for n in 0..EVENTS {
                while producer.push(event(n)).is_err() {
                    std::thread::yield_now();
                }
            }
            consuming.join().expect("the consumer failed");
        }
    }
}

#[cfg(loom)]
mod schedules {
    use super::{Full, ring, ring_from};

    fn check(scenario: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(scenario);
    }

    /// Three pushes through two slots while three are popped: publish, consume, reuse of a slot, wrap of the position.
    #[test]
    fn loom_events_arrive_whole_and_in_order() {
        check(|| {
            let (mut producer, mut consumer) = ring_from::<[u64; 2]>(2, usize::MAX);
            let producing = loom::thread::spawn(move || {
                let mut pushed = 0;
                for _ in 0..3 {
                    pushed += u64::from(producer.push([pushed + 1; 2]) == Ok(()));
                }
                pushed
            });
            let mut popped = 0;
            for _ in 0..3 {
                if let Some(event) = consumer.pop() {
                    popped += 1;
                    assert_eq!(event, [popped; 2]);
                }
            }
            let pushed = producing.join().expect("the producer failed");
            while let Some(event) = consumer.pop() {
                popped += 1;
                assert_eq!(event, [popped; 2]);
            }
            assert_eq!(popped, pushed);
        });
    }

    #[test]
    fn loom_one_slot_is_reused_only_when_free() {
        check(|| {
            let (mut producer, mut consumer) = ring::<u64>(1);
            let consuming = loom::thread::spawn(move || [consumer.pop(), consumer.pop()]);
            let first = producer.push(1);
            let second = producer.push(2);
            let popped = consuming.join().expect("the consumer failed");
            assert_eq!(first, Ok(()));
            match second {
                Ok(()) => assert_eq!(popped[0].or(popped[1]), Some(1)),
                Err(Full(back)) => assert_eq!(back, 2),
            }
        });
    }

    /// Taking the next slot's line back neither shows an event that is not there nor hides how one was published.
    #[test]
    fn loom_holding_the_next_slot_changes_nothing() {
        for capacity in [1, 2] {
            check(move || {
                let (mut producer, mut consumer) = ring::<u64>(capacity);
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
                let seen: std::vec::Vec<_> = popped.into_iter().chain(rest).flatten().collect();
                let pushed = if second { &[(0, 1), (1, 2)][..] } else { &[(0, 1)] };
                assert_eq!(seen, pushed);
            });
        }
    }

    /// A consumer that sees its producer gone sees all that it pushed.
    #[test]
    fn loom_nothing_is_lost_when_the_producer_leaves() {
        check(|| {
            let (mut producer, mut consumer) = ring::<u64>(2);
            let producing = loom::thread::spawn(move || {
                producer.push(1).unwrap();
            });
            if consumer.is_abandoned() {
                assert_eq!(consumer.pop(), Some(1));
            }
            producing.join().expect("the producer failed");
        });
    }

    /// A producer that sees its consumer gone knows for good how many events nobody popped.
    #[test]
    fn loom_occupancy_is_final_when_the_consumer_leaves() {
        check(|| {
            let (mut producer, mut consumer) = ring::<u64>(2);
            producer.push(1).unwrap();
            producer.push(2).unwrap();
            let consuming = loom::thread::spawn(move || consumer.pop());
            if producer.is_abandoned() {
                assert_eq!(producer.occupancy(), 1);
            }
            consuming.join().expect("the consumer failed");
        });
    }
}
