//! Two threads that count, on one cache line or on a line each.

use crate::machine::{PingPong, Placement, on_two_cores};
use nix::errno::Errno;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tt_meter::{Clock, Scale};

/// Increments of the other thread between two looks at whether it is to stop.
const STRIDE: u64 = 64;
/// Counters in [`Counters`]: two pairs of lines, since some prefetchers fetch lines in pairs.
const WORDS: usize = 32;

/// Where the two counters lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Side by side, on one line.
    OneLine,
    /// [`Spacing::APART_BYTES`] apart.
    OwnLines,
}

impl Spacing {
    /// Bytes from one counter to the other where each has a separate line.
    pub const APART_BYTES: usize = 128;

    const fn other_word(self) -> usize {
        match self {
            Self::OneLine => 1,
            Self::OwnLines => Self::APART_BYTES / size_of::<AtomicU64>(),
        }
    }
}

/// Result of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingRun {
    /// Half a round trip of a cache line between the same two threads before the run, in cycles.
    pub ping_pong_before: f64,
    /// The same after the run.
    pub ping_pong_after: f64,
    /// How far the cores were apart.
    pub placement: Placement,
    /// Cycles an increment of the first thread, while the other one counted all the time.
    pub cycles_per_increment: f64,
    /// Increments of the other thread.
    pub others: u64,
    /// Increments that the counters lack at the end; anything but 0 voids the run.
    pub faults: u64,
}

#[repr(align(128))]
struct Counters([AtomicU64; WORDS]);

#[derive(Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

/// Lets the thread on the first CPU add 1 to its counter `increments` times, by an atomic addition each, while the thread
/// on the other CPU does the same with its own counter, from before the first to after the last.
///
/// # Errors
/// As [`on_two_cores`]; `EINVAL` without increments.
pub fn run_sharing(
    cpus: [usize; 2],
    spacing: Spacing,
    increments: u64,
    clock: Clock,
    scale: Scale,
) -> Result<SharingRun, Errno> {
    if increments == 0 {
        return Err(Errno::EINVAL);
    }
    let counters = Counters([const { AtomicU64::new(0) }; WORDS]);
    let (mine, other) = (&counters.0[0], &counters.0[spacing.other_word()]);
    let (running, stop) = (Flag::default(), Flag::default());
    let probe = PingPong::new();
    let ((ping_pong_before, cycles, ping_pong_after), others) = on_two_cores(
        cpus,
        || {
            let before = probe.ask(clock);
            while !running.0.load(Ordering::Acquire) {
                spin_loop();
            }
            let begin = clock.start();
            count(mine, increments);
            let cycles = clock.end().since(begin);
            stop.0.store(true, Ordering::Release);
            (before, cycles, probe.ask(clock))
        },
        || {
            probe.answer();
            let mut counted = 0;
            while !stop.0.load(Ordering::Acquire) {
                count(other, STRIDE);
                counted += STRIDE;
                running.0.store(true, Ordering::Release);
            }
            probe.answer();
            counted
        },
    )?;
    let kept = mine.load(Ordering::Relaxed) + other.load(Ordering::Relaxed);
    Ok(SharingRun {
        ping_pong_before,
        ping_pong_after,
        placement: Placement::of(scale.ns_f64(ping_pong_before), scale.ns_f64(ping_pong_after)),
        cycles_per_increment: cycles as f64 / increments as f64,
        others,
        faults: (increments + others).abs_diff(kept),
    })
}

fn count(counter: &AtomicU64, increments: u64) {
    for _ in 0..increments {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Spacing, run_sharing};
    use testkit::{Requirement, require, two_cpus};
    use tt_meter::{Clock, Scale};

    #[test]
    fn both_count_all_the_time_and_nothing_is_lost() {
        let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
        let cpus = tt_os::cpu::available().unwrap();
        let [first, second] = [cpus[0], cpus[1]];
        for spacing in [Spacing::OneLine, Spacing::OwnLines] {
            let run = run_sharing([first, second], spacing, 10_000, Clock::Counter, Scale::NANOSECONDS).unwrap();
            assert_eq!(run.faults, 0);
            assert!(run.others >= 64 && run.cycles_per_increment > 1.0, "{run:?}");
        }
    }

    #[test]
    fn nothing_to_count_is_refused() {
        let run = run_sharing([0, 1], Spacing::OneLine, 0, Clock::Counter, Scale::NANOSECONDS);
        assert_eq!(run.unwrap_err(), nix::errno::Errno::EINVAL);
    }
}
