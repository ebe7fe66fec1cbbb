//! A core's jitter floor: a thread spins on it and does nothing else, and whatever keeps it from running is seen.

use crate::machine::pair::pinned;
use crate::machine::stall::{Jitter, StallWatch, WatchPlan};
use nix::errno::Errno;
use std::sync::Barrier;
use std::thread;
use tt_meter::{Clock, Scale};

/// Parameters of a spin.
#[derive(Clone, Copy, Debug)]
pub struct JitterPlan {
    /// How long, nanoseconds.
    pub span_ns: u64,
    /// Gaps longer than this are stalls, nanoseconds.
    pub threshold_ns: u64,
    /// Stalls of each core that are kept one by one.
    pub stalls_max: usize,
}

/// Spins on all of `cpus` at once.
///
/// # Errors
/// The error of pinning; `EAGAIN` if a thread was moved, which voids its result.
///
/// # Panics
/// If a thread does.
pub fn spin(cpus: &[usize], plan: JitterPlan, clock: Clock, scale: Scale) -> Result<Vec<Jitter>, Errno> {
    let in_place = Barrier::new(cpus.len());
    thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                scope.spawn({
                    let in_place = &in_place;
                    move || pinned(cpu, in_place, || spin_here(cpu, plan, clock, scale))
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(jitter) => jitter,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

fn spin_here(cpu: usize, plan: JitterPlan, clock: Clock, scale: Scale) -> Result<Jitter, Errno> {
    let JitterPlan { span_ns, threshold_ns, stalls_max } = plan;
    let mut watch = StallWatch::new(WatchPlan { cpu, threshold_ns, stalls_max }, clock, scale)?;
    let start = watch.last();
    let span = (span_ns as f64 * scale.cycles_per_s() / 1e9) as u64;
    while watch.last().since(start) < span {
        watch.observe(clock.end());
    }
    Ok(watch.finish())
}
