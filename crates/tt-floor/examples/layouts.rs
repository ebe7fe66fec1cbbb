//! Which memory layout of a ring hands an event over soonest: `cargo run --release -p tt-floor --example layouts`.
//!
//! Three layouts take turns on the same two cores, one event in flight: the shipped ring with an event of 56 bytes, which
//! shares one cache line with its sequence; the same with 64 bytes, which takes a second line; and a pair of indices on
//! lines of their own with the event on a third, as most rings have it. Each run carries its own ping-pong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use tt_floor::{PingPong, Placement, on_two_cores};
use tt_meter::{Calibration, Clock};
use tt_sync::spsc::ring;

const ROUNDS: usize = 8;
const EVENTS: u64 = 60_000;
const CAPACITY: usize = 1024;
/// Pauses before an event, so that the consumer is waiting when it comes.
const PAUSES: u32 = 48;

#[derive(Default)]
#[repr(align(128))]
struct OwnLines<T>(T);

/// A ring that publishes through its `tail` and frees through its `head`.
struct IndexPair {
    slots: Box<[OwnLines<[AtomicU64; 8]>]>,
    head: OwnLines<AtomicUsize>,
    tail: OwnLines<AtomicUsize>,
}

fn main() {
    let origin = Instant::now();
    let mut os_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let calibration = Calibration::measure(Clock::new(|| 0), &mut os_ns, 50_000_000);
    let cpus = tt_os::cpu::available().unwrap_or_default();
    let &[first, second, ..] = cpus.as_slice() else {
        println!("two CPUs are needed");
        return;
    };
    println!("layout                         placement      ping-pong ns   p50 ns   p50 / ping-pong");
    for _ in 0..ROUNDS {
        let (mut producer, mut consumer) = ring::<[u64; 7]>(CAPACITY);
        let push = move |stamp| producer.push([stamp; 7]).is_ok();
        run("sequence in slot, 56 bytes", [first, second], &calibration, push, || consumer.pop().map(whole));

        let (mut producer, mut consumer) = ring::<[u64; 8]>(CAPACITY);
        let push = move |stamp| producer.push([stamp; 8]).is_ok();
        run("sequence in slot, 64 bytes", [first, second], &calibration, push, || consumer.pop().map(whole));

        let (push, pop) = index_pair();
        run("pair of indices, 64 bytes", [first, second], &calibration, push, pop);
    }
}

/// The event's stamp, once all of its words have been read.
fn whole<const N: usize>(event: [u64; N]) -> u64 {
    event.into_iter().fold(event[0], |stamp, word| stamp & word)
}

fn index_pair() -> (impl FnMut(u64) -> bool, impl FnMut() -> Option<u64>) {
    let slots = (0..CAPACITY).map(|_| OwnLines::default()).collect();
    let shared = Arc::new(IndexPair { slots, head: OwnLines::default(), tail: OwnLines::default() });
    let taken = Arc::clone(&shared);
    let (mut tail, mut head_seen, mut head, mut tail_seen) = (0, 0, 0, 0);
    let push = move |stamp| {
        if tail - head_seen == CAPACITY {
            head_seen = shared.head.0.load(Ordering::Acquire);
        }
        for word in &shared.slots[tail % CAPACITY].0 {
            word.store(stamp, Ordering::Relaxed);
        }
        tail += 1;
        shared.tail.0.store(tail, Ordering::Release);
        true
    };
    let pop = move || {
        if head == tail_seen {
            tail_seen = taken.tail.0.load(Ordering::Acquire);
        }
        (head != tail_seen).then(|| {
            let event = std::array::from_fn::<_, 8, _>(|i| taken.slots[head % CAPACITY].0[i].load(Ordering::Relaxed));
            head += 1;
            taken.head.0.store(head, Ordering::Release);
            whole(event)
        })
    };
    (push, pop)
}

fn run(
    name: &str,
    cpus: [usize; 2],
    calibration: &Calibration,
    mut push: impl FnMut(u64) -> bool + Send,
    mut pop: impl FnMut() -> Option<u64> + Send,
) {
    let (clock, scale) = (calibration.clock, calibration.scale);
    let probe = PingPong::new();
    let done = OwnLines(AtomicU64::new(0));
    let ran = on_two_cores(
        cpus,
        || {
            let before = probe.ask(clock);
            for event in 1..=EVENTS {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
                assert!(push(clock.start().0), "one event in flight leaves room");
                while done.0.load(Ordering::Acquire) != event {}
            }
            (before, probe.ask(clock))
        },
        || {
            probe.answer();
            let mut cycles = Vec::with_capacity(EVENTS as usize);
            for event in 1..=EVENTS {
                let stamp = loop {
                    if let Some(stamp) = pop() {
                        break stamp;
                    }
                };
                cycles.push(clock.end().0.saturating_sub(std::hint::black_box(stamp)));
                done.0.store(event, Ordering::Release);
            }
            probe.answer();
            cycles.sort_unstable();
            cycles[cycles.len() / 2]
        },
    );
    match ran {
        Ok(((before, after), p50)) => {
            let [before, after, p50] = [before, after, p50 as f64].map(|cycles| scale.ns_f64(cycles));
            let ping_pong = f64::midpoint(before, after);
            let placement = Placement::of(before, after).name();
            println!("{name:30} {placement:14} {ping_pong:12.1} {p50:8.0} {:12.2}", p50 / ping_pong);
        }
        Err(reason) => println!("{name:30} void: {reason}"),
    }
}
