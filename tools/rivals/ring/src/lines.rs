//! The cache lines of a flow without a queue: one core fills [`HALF`] lines while the other reads the [`HALF`] before.
//!
//! Nothing else passes, but for one word each way for so many lines. A queue whose events share no line passes the same
//! lines, and more words.

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
/// In place of the number of filled halves: nothing follows.
const END: u64 = u64::MAX;

#[repr(align(64))]
struct Line([AtomicU64; 8]);

/// A word with nothing else on its line, or on the line that is fetched with it.
#[repr(align(128))]
struct Apart(AtomicU64);

/// As many events as the two cores pass in the plan's time.
pub(crate) fn measure(plan: &Plan<'_>) -> anyhow::Result<Alone> {
    let clock = plan.calibration.clock;
    let probe = PingPong::new();
    let lines: Vec<Line> = (0..LINES).map(|_| Line(std::array::from_fn(|_| AtomicU64::new(0)))).collect();
    let (filled, emptied) = (Apart(AtomicU64::new(0)), Apart(AtomicU64::new(0)));
    let fill = || {
        let end = clock.start().0 + plan.cycles;
        for half in 0_u64.. {
            // The lines of this half were last filled two halves ago.
            while half >= 2 && emptied.0.load(Ordering::Acquire) < half - 1 {
                spin_loop();
            }
            let number = half * HALF as u64;
            if number >= 2 * WARM_UP && clock.start().0 >= end {
                filled.0.store(END, Ordering::Release);
                return;
            }
            for (line, number) in lines[number as usize % LINES..][..HALF].iter().zip(number..) {
                line.0.iter().zip(words(number)).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
            }
            filled.0.store(half + 1, Ordering::Release);
        }
    };
    let empty = || {
        let (mut half, mut faults, mut began) = (0_u64, 0_u64, None);
        loop {
            let number = half * HALF as u64;
            let seen = loop {
                let seen = filled.0.load(Ordering::Acquire);
                if seen > half {
                    break seen;
                }
                spin_loop();
            };
            // What was filled last stays unread, and does not count.
            if seen == END {
                let end = clock.end();
                let (first, begin) = began.unwrap_or((number, end));
                return (number - first, end.since(begin), faults);
            }
            for (line, number) in lines[number as usize % LINES..][..HALF].iter().zip(number..) {
                let is_whole =
                    line.0.iter().zip(words(number)).all(|(place, word)| place.load(Ordering::Relaxed) == word);
                faults += u64::from(!is_whole);
            }
            emptied.0.store(half + 1, Ordering::Release);
            if began.is_none() && number >= WARM_UP {
                began = Some((number + HALF as u64, clock.start()));
            }
            half += 1;
        }
    };
    let ran = on_two_cores(
        plan.cpus,
        || {
            let before = probe.ask(clock);
            fill();
            (before, probe.ask(clock))
        },
        || {
            probe.answer();
            let seen = empty();
            probe.answer();
            seen
        },
    );
    let ((before, after), (events, elapsed, faults)) = ran.context("cannot run on two cores")?;
    let ns_per_event = plan.calibration.scale.ns_f64(elapsed as f64) / events as f64;
    Ok(Alone { probes: Probes::of(plan.calibration, before, after), events, ns_per_event, faults })
}

/// The words of event `number`: no two events of a run have the same.
#[inline(always)]
fn words(number: u64) -> [u64; 8] {
    std::array::from_fn(|at| number ^ (at as u64) << 56)
}
