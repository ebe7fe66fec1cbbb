//! Events through the shipped ring from one pinned thread to another, one in flight.

use crate::loops::hand_over::{Clocks, Idle, Pace, Plan, hand_over};
use crate::machine::{Placement, Threads};
use nix::errno::Errno;
use tt_meter::{Clock, Scale};
use tt_model::{OrderIntent, OrderTerms};
use tt_sync::spsc::ring;

/// Time limit of a run, a hundred times what two pinned threads need.
const TIME_MAX_NS: u64 = 20_000_000_000;

/// One run: short, so that the cores stay where they are.
#[derive(Clone, Copy, Debug)]
pub struct RingPlan {
    /// The producer's CPU and the consumer's.
    pub cpus: [usize; 2],
    /// Slots of the ring.
    pub capacity: usize,
    /// Events that are sent and not recorded, first.
    pub warmup: usize,
    /// Events that are recorded.
    pub events: usize,
    /// The producer's wait between events.
    pub idle: Idle,
}

/// Result of one run.
#[derive(Clone, Debug)]
pub struct RingRun {
    /// Half a round trip of a cache line between the same two threads before the run, in cycles.
    pub ping_pong_before: f64,
    /// The same after the run.
    pub ping_pong_after: f64,
    /// How far the cores were apart.
    pub placement: Placement,
    /// How much the consumer's counter was ahead of the producer's before the run, in cycles.
    pub skew_cycles: i64,
    /// From the stamp before `push` to the stamp after `consume`, in cycles, one for each recorded event in order.
    pub cycles: Vec<u64>,
    /// The sum of what `consume` returned for the recorded events, wrapping.
    pub checksum: u64,
    /// Events that came out of order or not whole; anything but 0 voids the run.
    pub faults: u64,
}

impl RingRun {
    /// The run's median as a multiple of the mean of its two probes; `None` without events.
    #[must_use]
    pub fn p50_per_ping_pong(&self) -> Option<f64> {
        let mut sorted = self.cycles.clone();
        sorted.sort_unstable();
        let p50 = *sorted.get(sorted.len() / 2)?;
        Some(p50 as f64 / f64::midpoint(self.ping_pong_before, self.ping_pong_after))
    }
}

/// All words of an intent folded into one: what a consumer does that reads everything and decides nothing.
#[must_use]
#[inline]
pub fn read_whole(intent: &OrderIntent) -> u64 {
    let OrderIntent { seq, ts_ns, client_id, limit_px, qty, trigger_px, .. } = *intent;
    let parties = u64::from(intent.account) << 48 | u64::from(intent.strategy) << 32 | u64::from(intent.instrument.0);
    let way = u64::from(intent.kind.0) << 24 | (intent.side as u64) << 16 | u64::from(intent.tif.0) << 8;
    let rest = u64::from(intent.ttl_ms) << 32 | way | u64::from(intent.flags.0);
    [ts_ns, client_id, limit_px.0 as u64, qty.0 as u64, trigger_px.0 as u64, parties, rest]
        .into_iter()
        .fold(seq, |folded, word| folded.rotate_left(7) ^ word)
}

/// [`hand_over`] through the shipped ring, one event in flight, on two CPUs.
///
/// # Errors
/// As [`hand_over`]; `EAGAIN` if the run took so long that it was given up.
pub fn run_ring(
    plan: &RingPlan,
    orders: &[OrderTerms],
    clock: Clock,
    scale: Scale,
    consume: impl FnMut(&OrderIntent) -> u64 + Send,
) -> Result<RingRun, Errno> {
    let RingPlan { cpus, capacity, warmup, events, idle } = *plan;
    let threads = Threads { cpus: Some(cpus), fifo: None };
    let pace = Pace::OneInFlight;
    let plan = Plan { threads, warmup, events, alone: 0, watch_ns: None, pace, idle, time_max_ns: TIME_MAX_NS };
    let run = hand_over(&plan, orders, Clocks::of(clock, scale), ring(capacity), consume)?;
    let [Some(ping_pong_before), Some(ping_pong_after)] = run.ping_pong else {
        return Err(Errno::EAGAIN);
    };
    if !run.is_complete {
        return Err(Errno::EAGAIN);
    }
    Ok(RingRun {
        ping_pong_before,
        ping_pong_after,
        placement: run.placement,
        skew_cycles: run.skew_cycles,
        cycles: run.cycles,
        checksum: run.checksum,
        faults: run.faults,
    })
}

#[cfg(test)]
mod tests;
