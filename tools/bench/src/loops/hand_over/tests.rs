//! Short runs on whatever CPUs there are.

use super::{Clocks, HandOver, Idle, Pace, Plan, Slow, Watched, hand_over};
use crate::loops::read_whole;
use crate::machine::{Jitter, Stall, StallCause, Threads, Witness};
use nix::errno::Errno;
use testkit::{Requirement, require};
use tt_meter::{Clock, Scale, Stamp};
use tt_model::{OrderTerms, Qty};
use tt_sync::spsc::ring;

const SECOND_NS: u64 = 1_000_000_000;

fn orders() -> Vec<OrderTerms> {
    (1..8).map(|n| OrderTerms { client_id: n, qty: Qty(3), ..OrderTerms::default() }).collect()
}

fn run(plan: &Plan, capacity: usize) -> Result<HandOver, Errno> {
    let clocks = Clocks::of(Clock::new(|| 0), Scale::from_span(3, 1).unwrap_or(Scale::NANOSECONDS));
    hand_over(plan, &orders(), clocks, ring(capacity), |intent| {
        std::hint::black_box(read_whole(intent));
        intent.client_id
    })
}

fn plan(threads: Threads) -> Plan {
    let (pace, idle) = (Pace::OneInFlight, Idle::HoldsNext);
    Plan { threads, warmup: 10, events: 200, alone: 100, watch_ns: None, pace, idle, time_max_ns: 60 * SECOND_NS }
}

fn two_cpus() -> Option<Threads> {
    let cpus = tt_os::cpu::available().unwrap();
    let (first, last) = (*cpus.first()?, *cpus.last()?);
    (first != last).then_some(Threads { cpus: Some([first, last]), fifo: None })
}

fn expected(events: u64) -> u64 {
    (10..10 + events).map(|n| 1 + n % 7).sum()
}

#[test]
fn an_open_loop_counts_from_the_intended_start() {
    let Some(threads) = require(Requirement::TwoCpus, two_cpus().ok_or("there is one CPU")) else { return };
    // A ring of two slots at a rate that no consumer reaches: waiting for room counts.
    let plan = Plan { pace: Pace::PerSecond(3e9), events: 5_000, ..plan(threads) };
    let run = run(&plan, 2).unwrap();
    assert_eq!((run.faults, run.checksum, run.cycles.len()), (0, expected(5_000), 5_000));
    assert!(run.full > 0);
    // The last event should have started 5,009 intervals of one cycle after the first, and did when the ring let it.
    let (first, last) = (run.cycles[0], run.cycles[4_999]);
    assert_eq!(last, run.span_cycles - 4_999, "first {first}");
    assert!(last > 10 * first.max(1) || last > 50_000, "first {first}, last {last}");
}

#[test]
fn a_rate_that_is_offered_is_kept() {
    let Some(threads) = require(Requirement::TwoCpus, two_cpus().ok_or("there is one CPU")) else { return };
    // One event in 300,000 cycles: 100 us, if the counter runs at 3 GHz.
    let plan = Plan { pace: Pace::PerSecond(10_000.0), events: 20, warmup: 0, ..plan(threads) };
    let run = run(&plan, 64).unwrap();
    assert_eq!((run.faults, run.full, run.is_complete), (0, 0, true));
    assert!(run.span_cycles >= 19 * 300_000, "{}", run.span_cycles);
}

#[test]
fn threads_without_a_core_of_their_own_come_to_an_end() {
    let threads = Threads { cpus: None, fifo: None };
    let run = run(&Plan { events: 2_000, ..plan(threads) }, 64).unwrap();
    assert_eq!(run.faults, 0);
    if run.is_complete {
        assert_eq!(run.checksum, expected(2_000));
    }
    assert_eq!(run.skew_cycles, 0);
}

#[test]
fn what_takes_too_long_is_cut_short_and_said_to_be() {
    let Some(threads) = require(Requirement::TwoCpus, two_cpus().ok_or("there is one CPU")) else { return };
    let plan = Plan { events: 10_000_000, time_max_ns: 3_000_000, ..plan(threads) };
    let run = run(&plan, 64).unwrap();
    assert!(!run.is_complete && run.cycles.len() < 10_000_000);
    assert_eq!((run.faults, run.checksum), (0, expected(run.cycles.len() as u64)));
}

/// Every long event has its cause from a stall that covers it, whichever core it was on.
#[test]
fn a_slow_event_has_the_cause_that_covers_it() {
    let stall = |at_ns, length_ns, cause| Stall { at_ns, length_ns, cpu: 0, cause };
    let jitter = |start, stalls| Jitter {
        cpu: 0,
        threshold_ns: 1_000,
        start: Stamp(start),
        span_ns: 1_000_000,
        asking_ns: 0,
        stalls,
        unkept: 0,
        totals: [(0, 0); 6],
        interrupts: Vec::new(),
        cpu_times: None,
        witness: Witness { interrupts: true, steal: true, interrupt_time: false, frequency: false },
    };
    let watched = Watched {
        sender: jitter(10_000, vec![stall(50_000, 4_000, StallCause::PageFault)]),
        receiver: jitter(
            21_000,
            vec![stall(30_000, 2_000, StallCause::Interrupt), stall(40_000, 9_000, StallCause::Preemption)],
        ),
        slow: Vec::new(),
        asked: 0,
    };
    let cause = |from, to| watched.cause_of(&Slow { index: 0, from: Stamp(from), to: Stamp(to) }, Scale::NANOSECONDS);
    assert_eq!(cause(50_900, 53_100), Some(StallCause::Interrupt));
    assert_eq!(cause(67_000, 68_000), Some(StallCause::Preemption));
    // The receiver's stall lasts from 61,000 to 70,000, the sender's from 60,000 to 64,000.
    assert_eq!(cause(59_000, 61_500), Some(StallCause::PageFault));
    assert_eq!(cause(70_000, 75_000), None);
    assert_eq!(cause(54_000, 59_000), None);
}

#[test]
fn a_watched_run_loses_nothing() {
    let Some(threads) = require(Requirement::TwoCpus, two_cpus().ok_or("there is one CPU")) else { return };
    let plan = Plan { watch_ns: Some(1_000), events: 2_000, ..plan(threads) };
    let run = run(&plan, 64).unwrap();
    assert_eq!((run.faults, run.checksum, run.cycles.len()), (0, expected(2_000), 2_000));
    let watched = run.watched.unwrap();
    let slow = run.cycles.iter().filter(|cycles| **cycles > 3_000).count();
    assert!(watched.slow.len() <= slow && slow <= watched.slow.len() + watched.asked as usize, "{slow} slow");
}
