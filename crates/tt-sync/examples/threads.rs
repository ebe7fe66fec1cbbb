//! A ring between two threads that sleep when there is nothing to do.
//!
//! ```text
//! cargo run --release -p tt-sync --example threads
//! ```

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use tt_sync::wait::{Park, WaitError, WaitStrategy, blocking_ring};

const EVENTS: u64 = 1_000_000;

/// An event of 56 bytes: with its sequence it fills one cache line.
type Event = [u64; 7];

/// Polls 1,000 times, then sleeps on a condition variable. On Linux, `futex(2)` does the same with fewer calls.
fn park() -> impl WaitStrategy + Clone + Send + 'static {
    let sleepers = Arc::new((Mutex::new(()), Condvar::new()));
    let wakers = Arc::clone(&sleepers);
    let sleep = move |word: &AtomicU32, value: u32| {
        let guard = sleepers.0.lock().expect("no thread panics with the lock");
        if word.load(Ordering::Relaxed) == value {
            drop(sleepers.1.wait(guard));
        }
    };
    let wake = move |_: &AtomicU32| {
        let _guard = wakers.0.lock().expect("no thread panics with the lock");
        wakers.1.notify_all();
    };
    Park { polls: 1_000, sleep, wake }
}

fn main() {
    let (mut producer, mut consumer) = blocking_ring::<Event, _>(1_024, park());
    let started = Instant::now();
    let pushing = thread::spawn(move || -> Result<(), WaitError> {
        (0..EVENTS).try_for_each(|number| producer.push([number, 0, 0, 0, 0, 0, 0]))
    });
    let (mut popped, mut sum) = (0_u64, 0_u64);
    // Ends with `WaitError::Closed` once the producer is dropped and the ring is empty.
    while consumer.drain(64, |event| sum += event[0]).map(|count| popped += count as u64).is_ok() {}
    let passed = pushing.join().expect("the producer did not panic");
    assert_eq!((popped, sum, passed), (EVENTS, EVENTS * (EVENTS - 1) / 2, Ok(())));
    println!("{popped} events in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
}
