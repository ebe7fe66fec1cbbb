//! Events through the ring from one pinned thread to another, one in flight.

use crate::{PingPong, Placement, on_two_cores};
use nix::errno::Errno;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use tt_meter::{Clock, Scale};
use tt_model::{OrderIntent, OrderTerms};
use tt_sync::spsc::{Consumer, Producer, ring};

/// Rests between an event's end and the next event, so that the consumer is waiting again when it comes.
const RESTS: u32 = 16;
/// Pauses in one rest.
const PAUSES: u32 = 3;

/// What the producer does while it has no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Nothing.
    Rests,
    /// Takes the next slot's cache line back time and again ([`Producer::hold_next`]).
    HoldsNext,
}

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
    /// What the producer does in between.
    pub idle: Idle,
}

/// What one run gave.
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
    let way = (intent.kind as u64) << 24 | (intent.side as u64) << 16 | (intent.tif as u64) << 8;
    let rest = u64::from(intent.ttl_ms) << 32 | way | u64::from(intent.flags.0);
    [ts_ns, client_id, limit_px.0 as u64, qty.0 as u64, trigger_px.0 as u64, parties, rest]
        .into_iter()
        .fold(seq, |folded, word| folded.rotate_left(7) ^ word)
}

/// Sends `orders`, over and over, through a ring to `consume` on the other CPU: each event is stamped right before
/// `push`, and right after `consume` has returned; the next one is sent when that is done.
///
/// `consume` gets the intent numbered by the ring, with the stamp in `ts_ns`.
///
/// # Errors
/// As [`on_two_cores`]; `EINVAL` without orders.
pub fn run_ring(
    plan: &RingPlan,
    orders: &[OrderTerms],
    clock: Clock,
    scale: Scale,
    consume: impl FnMut(&OrderIntent) -> u64 + Send,
) -> Result<RingRun, Errno> {
    if orders.is_empty() {
        return Err(Errno::EINVAL);
    }
    let (producer, consumer) = ring(plan.capacity);
    let probe = PingPong::new();
    let done = Done(AtomicU64::new(0));
    let (asked, received) = on_two_cores(
        plan.cpus,
        || {
            let before = probe.ask(clock);
            let ahead = probe.ask_skew(clock);
            probe.answer_skew(clock);
            produce(plan, orders, clock, producer, &done);
            (before, ahead, probe.ask(clock))
        },
        || {
            probe.answer();
            probe.answer_skew(clock);
            let behind = probe.ask_skew(clock);
            let received = receive(plan, orders, clock, consumer, &done, consume);
            probe.answer();
            (received, behind)
        },
    )?;
    let (ping_pong_before, ahead, ping_pong_after) = asked;
    let placement = Placement::of(scale.ns_f64(ping_pong_before), scale.ns_f64(ping_pong_after));
    let ((cycles, checksum, faults), behind) = received;
    // Asked both ways, so that the time the answering side takes for its stamp cancels out.
    let skew_cycles = (ahead - behind) / 2;
    Ok(RingRun { ping_pong_before, ping_pong_after, placement, skew_cycles, cycles, checksum, faults })
}

/// How many events the consumer has finished with.
#[repr(align(128))]
struct Done(AtomicU64);

fn produce(plan: &RingPlan, orders: &[OrderTerms], clock: Clock, mut producer: Producer<OrderTerms>, done: &Done) {
    let rest = |producer: &mut Producer<OrderTerms>| {
        match plan.idle {
            Idle::Rests => {}
            Idle::HoldsNext => producer.hold_next(),
        }
        for _ in 0..PAUSES {
            spin_loop();
        }
    };
    let mut sent = 0;
    for terms in orders.iter().cycle().take(plan.warmup + plan.events) {
        let mut terms = black_box(*terms);
        terms.ts_ns = clock.start().0;
        // One event is in flight at a time, so there is room.
        let _ = producer.push(terms);
        sent += 1;
        while done.0.load(Ordering::Acquire) != sent {
            rest(&mut producer);
        }
        for _ in 0..RESTS {
            rest(&mut producer);
        }
    }
}

fn receive(
    plan: &RingPlan,
    orders: &[OrderTerms],
    clock: Clock,
    mut consumer: Consumer<OrderTerms>,
    done: &Done,
    mut consume: impl FnMut(&OrderIntent) -> u64,
) -> (Vec<u64>, u64, u64) {
    let mut cycles = vec![0; plan.events];
    let (mut checksum, mut faults) = (0_u64, 0);
    for (number, expected) in orders.iter().cycle().take(plan.warmup + plan.events).enumerate() {
        let intent = loop {
            if let Some((number, terms)) = consumer.pop_numbered() {
                break terms.numbered(number);
            }
        };
        let result = black_box(consume(&intent));
        let end = clock.end();
        let whole = OrderTerms { ts_ns: expected.ts_ns, ..intent.terms() } == *expected && intent.seq == number as u64;
        faults += u64::from(!whole);
        if let Some(index) = number.checked_sub(plan.warmup) {
            cycles[index] = end.0.saturating_sub(intent.ts_ns);
            checksum = checksum.wrapping_add(result);
        }
        done.0.store(number as u64 + 1, Ordering::Release);
    }
    (cycles, checksum, faults)
}

#[cfg(test)]
mod tests;
