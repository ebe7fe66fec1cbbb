//! The ring between two processes, over memory that tt-os maps: real children, some of them killed in the act.
//!
//! A child is this program again, with its role in the environment; the memory is its standard input.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::env;
use std::io::{BufRead, BufReader};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tt_os::futex;
use tt_os::process::{Identity, Watch};
use tt_os::shared::Mapping;
use tt_sync::region::{self, RegionError};
use tt_sync::spsc::End;
use tt_sync::wait::{Blocking, Park, WaitError, WaitStrategy};

const ROLE: &str = "TT_RING_CHILD";
const CAPACITY: usize = 64;
const EVENTS: u64 = 20_000;
/// How long a sleeper waits before it looks whether the other process still runs.
const PATIENCE: Duration = Duration::from_millis(5);

type Event = [u64; 7];

/// Every word depends on the number: a lost, doubled, swapped or torn event is seen.
fn event(number: u64) -> Event {
    std::array::from_fn(|i| (number + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn own_mark() -> NonZeroU64 {
    Identity::own().expect("/proc is there").mark()
}

fn memory() -> Mapping {
    let words = region::words_needed::<Event>(CAPACITY).expect("a small ring");
    let memory = Mapping::create(words).expect("memory can be shared");
    region::format::<Event>(&memory, CAPACITY).expect("the memory is large enough");
    memory
}

/// Parks, and looks now and then whether the process at `other` still runs.
fn parking(memory: &Mapping, other: End) -> impl WaitStrategy + use<> {
    let memory = memory.clone();
    let sleep = move |word: &AtomicU32, value| {
        let Err(_timeout) = futex::sleep_at_most(word, value, PATIENCE) else { return };
        let Some(mark) = region::owner(&memory, other) else { return };
        let watch = Watch::new(Identity::of_mark(mark)).expect("a process can be watched");
        if watch.is_none_or(|watch| watch.is_gone()) {
            region::declare_closed(&memory, other);
        }
    };
    Park { polls: 100, sleep, wake: futex::wake }
}

/// Starts this program again as `role`. It has said that it is attached when this returns.
fn child(role: &str, memory: &Mapping) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(env::current_exe().expect("this program has a path"))
        .args(["--exact", "child_of_the_other_tests", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::from(memory.file().try_clone_to_owned().expect("the file can be handed on")))
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut output = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut line = String::new();
    while !line.contains("attached") {
        line.clear();
        assert_ne!(
            output.read_line(&mut line).expect("the child writes text"),
            0,
            "the child ended before it was attached"
        );
    }
    (child, output)
}

/// Plays the child if the environment names a role; otherwise it checks nothing.
#[test]
fn child_of_the_other_tests() {
    if let Ok(role) = env::var(ROLE) {
        play(&role);
    }
}

fn play(role: &str) {
    let memory = Mapping::attach(std::io::stdin().as_fd().try_clone_to_owned().unwrap()).unwrap();
    match role {
        "producer" | "endless producer" => {
            let producer = region::producer::<Event, _>(memory.clone(), own_mark()).unwrap();
            println!("attached");
            let mut producer = Blocking::new(producer, parking(&memory, End::Consumer));
            let events_max = if role == "producer" { EVENTS } else { u64::MAX };
            let mut number = 0;
            while number < events_max {
                let batch: Vec<_> = (number..events_max.min(number + 1 + number % 9)).map(event).collect();
                producer.push_slice(&batch).unwrap();
                number += batch.len() as u64;
            }
        }
        "idle consumer" => {
            let _consumer = region::consumer::<Event, _>(memory, own_mark()).unwrap();
            println!("attached");
            loop {
                std::thread::park();
            }
        }
        "scribbler" => {
            println!("attached");
            let (words, bells): (&[AtomicU64], &[AtomicU32]) = (memory.as_ref(), memory.as_ref());
            let mut noise = 1_u64;
            loop {
                for word in words {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    word.store(if noise >> 62 == 0 { noise >> 32 & 0xFF } else { noise }, Ordering::Relaxed);
                }
                for bell in bells {
                    bell.store(noise as u32 & 3, Ordering::Relaxed);
                }
            }
        }
        other => panic!("no such role: {other}"),
    }
}

#[test]
fn every_event_crosses_whole_and_in_order_and_the_end_is_noticed() {
    let memory = memory();
    let (mut producing, _output) = child("producer", &memory);
    let consumer = region::consumer::<Event, _>(memory.clone(), own_mark()).unwrap();
    let mut consumer = Blocking::new(consumer, parking(&memory, End::Producer));
    let mut next = 0;
    let ended = loop {
        if let Err(ended) = consumer.drain(7, |popped| {
            assert_eq!(*popped, event(next));
            next += 1;
        }) {
            break ended;
        }
    };
    assert_eq!((next, ended), (EVENTS, WaitError::Closed));
    assert!(producing.wait().unwrap().success());
}

#[test]
fn a_producer_killed_in_the_act_leaves_whole_events_and_is_noticed() {
    for after in [1, 500, 5_000] {
        let memory = memory();
        let (mut producing, _output) = child("endless producer", &memory);
        let consumer = region::consumer::<Event, _>(memory.clone(), own_mark()).unwrap();
        assert_eq!(region::owner(&memory, End::Producer), Identity::of(producing.id()).map(Identity::mark));
        let mut consumer = Blocking::new(consumer, parking(&memory, End::Producer));
        let mut next = 0;
        let ended = loop {
            match consumer.pop() {
                Ok(popped) => assert_eq!(popped, event(next)),
                Err(ended) => break ended,
            }
            next += 1;
            if next == after {
                producing.kill().unwrap();
            }
        };
        assert!(next >= after && ended == WaitError::Closed);
        assert!(!producing.wait().unwrap().success());
    }
}

#[test]
fn a_consumer_killed_while_the_producer_sleeps_is_noticed() {
    let memory = memory();
    let (mut consuming, _output) = child("idle consumer", &memory);
    let producer = region::producer::<Event, _>(memory.clone(), own_mark()).unwrap();
    let mut producer = Blocking::new(producer, parking(&memory, End::Consumer));
    for number in 0..CAPACITY as u64 {
        assert_eq!(producer.push(event(number)), Ok(()));
    }
    std::thread::scope(|scope| {
        let pushing = scope.spawn(|| producer.push(event(0)));
        let bells: &[AtomicU32] = memory.as_ref();
        // The producer's bell is the first: killed once it sleeps, or is about to.
        while bells[0].load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        consuming.kill().unwrap();
        assert_eq!(pushing.join().unwrap(), Err(WaitError::Closed));
    });
    assert_eq!(producer.end().occupancy(), CAPACITY);
    consuming.wait().unwrap();
}

/// Another process writes all over the memory all the time: garbage comes out, or an error, and nothing worse.
#[test]
fn a_process_that_scribbles_does_no_harm() {
    let memory = memory();
    let mut producer = region::producer::<Event, _>(memory.clone(), own_mark()).unwrap();
    let mut consumer = region::consumer::<Event, _>(memory.clone(), own_mark()).unwrap();
    let (mut scribbling, _output) = child("scribbler", &memory);
    let (mut corrupt, mut number) = ([0_u32; 2], 0);
    while number < 100_000 || corrupt.contains(&0) {
        number += 1;
        let _ = (producer.push(event(number)), producer.push_slice(&[event(number); 5]), consumer.pop());
        let drained = consumer.drain(CAPACITY, |popped| {
            std::hint::black_box(*popped);
        });
        assert!(drained <= CAPACITY && producer.occupancy() <= CAPACITY);
        corrupt = [corrupt[0] + u32::from(producer.is_corrupt()), corrupt[1] + u32::from(consumer.is_corrupt())];
    }
    scribbling.kill().unwrap();
    scribbling.wait().unwrap();
    assert_eq!(region::consumer::<Event, _>(memory, own_mark()).err(), Some(RegionError::Magic));
}
