//! No wake-up is lost: by loom's schedules, and between two real threads.

#[cfg(not(any(loom, shuttle)))]
mod weak_memory;

use super::{Park, WaitError, WaitStrategy, blocking_ring};
use crate::sync::AtomicU32;

/// `futex(2)` made of a lock and a condition.
#[cfg(not(loom))]
mod primitives {
    #[cfg(shuttle)]
    pub(super) use shuttle::{
        sync::{Arc, Condvar, Mutex},
        thread,
    };
    #[cfg(not(shuttle))]
    pub(super) use std::{
        sync::{Arc, Condvar, Mutex},
        thread,
    };
}
#[cfg(loom)]
mod primitives {
    pub(super) use loom::{
        sync::{Arc, Condvar, Mutex},
        thread,
    };
}
use crate::sync::Ordering;
use primitives::{Arc, Condvar, Mutex, thread};

fn park(polls: u32) -> impl WaitStrategy + Clone + Send + 'static {
    let bed = Arc::new((Mutex::new(()), Condvar::new()));
    let door = Arc::clone(&bed);
    let sleep = move |word: &AtomicU32, value| {
        let (lock, condition) = &*bed;
        let guard = lock.lock().unwrap();
        // The lock orders this look as the kernel's own lock orders its.
        if word.load(Ordering::Relaxed) == value {
            drop(condition.wait(guard).unwrap());
        }
    };
    let wake = move |_: &AtomicU32| {
        let (lock, condition) = &*door;
        let guard = lock.lock().unwrap();
        condition.notify_all();
        drop(guard);
    };
    Park { polls, sleep, wake }
}

/// `events` numbers through `capacity` slots, in batches of `batch`; then the producer leaves.
fn pass(capacity: usize, events: u64, batch: usize, strategy: impl WaitStrategy + Clone + Send + 'static) {
    let (mut producer, mut consumer) = blocking_ring::<u64, _>(capacity, strategy);
    let producing = thread::spawn(move || {
        let numbers: std::vec::Vec<_> = (0..events).collect();
        for batch in numbers.chunks(batch) {
            assert_eq!(producer.push_slice(batch), Ok(()));
        }
    });
    let mut next = 0;
    while next < events {
        if batch == 1 {
            assert_eq!(consumer.pop(), Ok(next));
            next += 1;
        } else {
            let drained = consumer.drain(batch, |event| {
                assert_eq!(*event, next);
                next += 1;
            });
            assert!(drained.is_ok_and(|count| count != 0));
        }
    }
    assert_eq!(consumer.pop(), Err(WaitError::Closed));
    producing.join().expect("the producer failed");
}

/// A consumer that leaves after one event is noticed by a producer that waits for room.
fn close(strategy: impl WaitStrategy + Clone + Send + 'static) {
    let (mut producer, mut consumer) = blocking_ring::<u64, _>(1, strategy);
    let consuming = thread::spawn(move || consumer.pop());
    let pushed = (0..).find(|number| producer.push(*number) == Err(WaitError::Closed));
    assert!(pushed == Some(1) || pushed == Some(2), "{pushed:?}");
    assert_eq!(consuming.join().expect("the consumer failed"), Ok(0));
}

#[cfg(not(any(loom, shuttle)))]
mod threads {
    use super::super::{Blocking, Spin, Yield};
    use super::*;
    use crate::region::tests::{OWNER, Words};
    use crate::region::{consumer, producer};

    const EVENTS: u64 = if cfg!(miri) { 24 } else { 4_000 };

    #[test]
    fn every_strategy_passes_every_event_and_notices_the_end() {
        for (capacity, batch) in [(1, 1), (2, 3), (64, 10)] {
            pass(capacity, EVENTS, batch, Yield(thread::yield_now));
            pass(capacity, EVENTS, batch, park(0));
            pass(capacity, EVENTS, batch, park(20));
        }
        pass(64, EVENTS.min(2_000), 10, Spin);
        close(Yield(thread::yield_now));
        close(park(0));
        close(park(20));
    }

    #[test]
    fn extreme_counts_of_a_waiting_end() {
        let sleep = |_: &AtomicU32, _| panic!("there is always something to find");
        let park = Park { polls: u32::MAX, sleep, wake: |_: &AtomicU32| () };
        let (mut producer, mut consumer) = blocking_ring::<u64, _>(0, park);
        assert_eq!((producer.push_slice(&[]), producer.push(7)), (Ok(()), Ok(())));
        assert_eq!(consumer.drain(0, |event| assert_eq!(*event, 7)), Ok(1));
        assert_eq!(producer.push(8), Ok(()));
        assert_eq!(consumer.drain(usize::MAX, |event| assert_eq!(*event, 8)), Ok(1));
        drop(producer);
        assert_eq!(consumer.drain(usize::MAX, |_| ()), Err(WaitError::Closed));
        let made = std::panic::catch_unwind(|| drop(blocking_ring::<u64, _>(usize::MAX, Spin)));
        assert!(made.is_err());
    }

    /// A wait ends with an error if another process overwrote the memory.
    #[test]
    fn an_invalid_position_ends_the_wait() {
        let memory = Words::formatted::<u64>(2, 0);
        let mut writing = Blocking::new(producer::<u64, _>(memory.clone(), OWNER).unwrap(), park(0));
        let mut reading = Blocking::new(consumer::<u64, _>(memory.clone(), OWNER).unwrap(), park(0));
        let words: &[crate::sync::AtomicU64] = memory.as_ref();
        words.iter().skip(crate::region::LINE_WORDS).for_each(|word| word.store(3 << 40, Ordering::Relaxed));
        words[2 * crate::region::LINE_WORDS].store(0, Ordering::Relaxed);
        words[3 * crate::region::LINE_WORDS].store(0, Ordering::Relaxed);
        assert_eq!(reading.pop(), Err(WaitError::Corrupt));
        assert_eq!(writing.push_slice(&[1, 2, 3]), Err(WaitError::Corrupt));
    }
}

#[cfg(loom)]
mod schedules {
    use super::*;

    fn check(scenario: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(scenario);
    }

    /// Loom calls it a deadlock when all that are left sleep: a lost wake-up.
    #[test]
    fn loom_a_parked_consumer_is_woken() {
        check(|| pass(2, 2, 1, park(0)));
    }

    #[test]
    fn loom_a_parked_producer_is_woken() {
        check(|| pass(1, 2, 1, park(0)));
    }

    #[test]
    fn loom_a_parked_end_is_woken_by_a_batch() {
        check(|| pass(2, 3, 3, park(0)));
    }

    #[test]
    fn loom_a_parked_producer_hears_that_the_consumer_left() {
        check(|| close(park(0)));
    }
}

/// Longer than loom could finish: schedules drawn at random.
#[cfg(shuttle)]
mod schedules {
    use super::*;

    const SCHEDULES: usize = 20_000;

    #[test]
    fn shuttle_parked_ends_are_woken() {
        for (capacity, events, batch) in [(1, 12, 1), (2, 15, 3), (4, 30, 7)] {
            shuttle::check_random(move || pass(capacity, events, batch, park(1)), SCHEDULES);
            shuttle::check_pct(move || pass(capacity, events, batch, park(0)), SCHEDULES, 3);
        }
    }

    #[test]
    fn shuttle_a_parked_producer_hears_that_the_consumer_left() {
        shuttle::check_random(|| close(park(0)), SCHEDULES);
    }
}
