//! The cache lines of a flow without a queue: one core fills them in order, the other reads them.
//!
//! A line has 64 bytes, of which the first word says that the others are there. Nothing else passes, but for one word
//! back for every [`HALF`] lines, which lets the writer use them again. No queue that gives each event a line of its own
//! can pass more.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use bench::machine::{PingPong, on_two_cores};

use crate::flow::Alone;
use crate::pace::{Plan, Probes};

/// Lines that are given back together.
const HALF: usize = 512;
/// As many as the queues have slots.
const LINES: usize = 2 * HALF;
/// Events that are read before the time begins.
const WARM_UP: u64 = 20 * LINES as u64;
/// In a line's first word: nothing follows.
const END: u64 = u64::MAX;

#[repr(align(64))]
struct Line([AtomicU64; 8]);

/// A word on a line of its own, as far as the processor fetches lines in pairs.
#[repr(align(128))]
struct Apart(AtomicU64);

/// As many events as the two cores pass in the plan's time.
pub(crate) fn measure(plan: &Plan<'_>) -> anyhow::Result<Alone> {
    let clock = plan.calibration.clock;
    let probe = PingPong::new();
    let lines: Vec<Line> = (0..LINES).map(|_| Line(std::array::from_fn(|_| AtomicU64::new(0)))).collect();
    let read_halves = Apart(AtomicU64::new(0));
    let write = || {
        let end = clock.start().0 + plan.cycles;
        let mut number = 0_u64;
        for half in 0_u64.. {
            // The lines of this half were last filled two halves ago.
            while half >= 2 && read_halves.0.load(Ordering::Acquire) < half - 1 {
                spin_loop();
            }
            if number >= 2 * WARM_UP && clock.start().0 >= end {
                lines[number as usize % LINES].0[0].store(END, Ordering::Release);
                return;
            }
            for line in &lines[number as usize % LINES..][..HALF] {
                let [first, rest @ ..] = &line.0;
                rest.iter().zip(words(number)).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
                number += 1;
                first.store(number, Ordering::Release);
            }
        }
    };
    let read = || {
        let (mut number, mut faults, mut began) = (0_u64, 0_u64, None);
        loop {
            let line = &lines[number as usize % LINES].0;
            let seen = line[0].load(Ordering::Acquire);
            if seen == END {
                let end = clock.end();
                let (first, begin) = began.unwrap_or((number, end));
                return (number - first, end.since(begin), faults);
            }
            if seen != number + 1 {
                spin_loop();
                continue;
            }
            let is_whole =
                line[1..].iter().zip(words(number)).all(|(place, word)| place.load(Ordering::Relaxed) == word);
            faults += u64::from(!is_whole);
            number += 1;
            if number.is_multiple_of(HALF as u64) {
                read_halves.0.store(number / HALF as u64, Ordering::Release);
                if began.is_none() && number >= WARM_UP {
                    began = Some((number, clock.start()));
                }
            }
        }
    };
    let ran = on_two_cores(
        plan.cpus,
        || {
            let before = probe.ask(clock);
            write();
            (before, probe.ask(clock))
        },
        || {
            probe.answer();
            let seen = read();
            probe.answer();
            seen
        },
    );
    let ((before, after), (events, elapsed, faults)) = ran.context("cannot run on two cores")?;
    let ns_per_event = plan.calibration.scale.ns_f64(elapsed as f64) / events as f64;
    Ok(Alone { probes: Probes::of(plan.calibration, before, after), events, ns_per_event, faults })
}

/// The words of event `number` behind its first: no two events of a run have the same.
#[inline(always)]
fn words(number: u64) -> [u64; 7] {
    std::array::from_fn(|at| number ^ (at as u64) << 56)
}
