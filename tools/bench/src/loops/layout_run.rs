//! Layouts of a ring: the shipped one and slower ones.
//!
//! A layout is which cache lines an event moves. Every layout passes events of whole words that all carry the event's
//! stamp, and the receiving side reads all of them.

mod index_pair;
mod packed_slots;

use crate::machine::{PingPong, Placement, on_two_cores};
use nix::errno::Errno;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use tt_meter::{Clock, Scale};
use tt_sync::spsc::ring;

#[cfg(test)]
mod tests;

/// Pauses before an event, so that the other side is waiting when it comes.
const PAUSES: u32 = 48;

/// Which cache lines an event moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// The shipped ring: 56 bytes and their sequence, one line.
    SequenceInSlot,
    /// The shipped ring with an event of 64 bytes, which takes a second line.
    SequenceInSlotTwoLines,
    /// A sequence before each event of 64 bytes, packed, so that an event lies on two lines or three.
    SequenceInSlotPacked,
    /// Two indices on lines of their own and 64-byte events; each side keeps the other's index until it must look.
    IndexPairCached,
    /// The same, and each side looks at the other's index for every event, as NullRing does.
    IndexPair,
    /// The same, with both indices on one line.
    IndexPairOneLine,
}

impl Layout {
    /// All of them, the shipped one first.
    pub const ALL: [Self; 6] = [
        Self::SequenceInSlot,
        Self::SequenceInSlotTwoLines,
        Self::SequenceInSlotPacked,
        Self::IndexPairCached,
        Self::IndexPair,
        Self::IndexPairOneLine,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SequenceInSlot => "sequence_in_slot",
            Self::SequenceInSlotTwoLines => "sequence_in_slot_two_lines",
            Self::SequenceInSlotPacked => "sequence_in_slot_packed",
            Self::IndexPairCached => "index_pair_cached",
            Self::IndexPair => "index_pair",
            Self::IndexPairOneLine => "index_pair_one_line",
        }
    }

    /// A short description.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::SequenceInSlot => "56 bytes and their sequence on one line (shipped)",
            Self::SequenceInSlotTwoLines => "64 bytes, the sequence on the first of two lines",
            Self::SequenceInSlotPacked => "64 bytes and their sequence, packed",
            Self::IndexPairCached => "two indices, each side keeps the other's",
            Self::IndexPair => "two indices, looked at for every event",
            Self::IndexPairOneLine => "two indices on one line",
        }
    }

    /// Bytes that an event carries.
    #[must_use]
    pub const fn event_bytes(self) -> usize {
        match self {
            Self::SequenceInSlot => 56,
            Self::SequenceInSlotTwoLines
            | Self::SequenceInSlotPacked
            | Self::IndexPairCached
            | Self::IndexPair
            | Self::IndexPairOneLine => 64,
        }
    }
}

/// One run of a layout: short, so that the cores stay where they are.
#[derive(Clone, Copy, Debug)]
pub struct LayoutPlan {
    /// The sending CPU and the receiving one.
    pub cpus: [usize; 2],
    /// Slots of the ring, rounded up to a power of two.
    pub capacity: usize,
    /// Events that are sent one at a time and not recorded, first.
    pub warmup: usize,
    /// Events that are sent one at a time and recorded.
    pub events: usize,
    /// Events that are sent as fast as they go, after the others.
    pub stream_events: u64,
}

/// Result of one run of a layout.
#[derive(Clone, Debug)]
pub struct LayoutRun {
    /// Half a round trip of a cache line between the same two threads before the run, in cycles.
    pub ping_pong_before: f64,
    /// The same after the run.
    pub ping_pong_after: f64,
    /// How far the cores were apart.
    pub placement: Placement,
    /// One event in flight: from the stamp before the push to the stamp after all of it was read, in cycles, in order.
    pub cycles: Vec<u64>,
    /// As fast as they go: cycles an event.
    pub stream_cycles: f64,
    /// Streamed events that were lost, doubled or not whole; anything but 0 voids the run.
    pub faults: u64,
}

impl LayoutRun {
    /// The median of `cycles` as a multiple of the mean of the two probes; `None` without events.
    #[must_use]
    pub fn p50_per_ping_pong(&self) -> Option<f64> {
        let mut sorted = self.cycles.clone();
        sorted.sort_unstable();
        let p50 = *sorted.get(sorted.len() / 2)?;
        Some(p50 as f64 / f64::midpoint(self.ping_pong_before, self.ping_pong_after))
    }
}

/// Runs `layout` between two pinned threads: one event in flight, then as fast as it goes.
///
/// # Errors
/// As [`on_two_cores`].
pub fn run_layout(layout: Layout, plan: &LayoutPlan, clock: Clock, scale: Scale) -> Result<LayoutRun, Errno> {
    let measured = Measured { plan, clock, scale };
    let capacity = plan.capacity;
    match layout {
        Layout::SequenceInSlot => measured.run(shipped::<7>(capacity)),
        Layout::SequenceInSlotTwoLines => measured.run(shipped::<8>(capacity)),
        Layout::SequenceInSlotPacked => measured.run(packed_slots::ends(capacity)),
        Layout::IndexPairCached => measured.run(index_pair::ends::<true, { index_pair::APART }>(capacity)),
        Layout::IndexPair => measured.run(index_pair::ends::<false, { index_pair::APART }>(capacity)),
        Layout::IndexPairOneLine => measured.run(index_pair::ends::<false, 1>(capacity)),
    }
}

fn shipped<const N: usize>(capacity: usize) -> (impl FnMut(u64) -> bool, impl FnMut() -> Option<u64>) {
    let (mut producer, mut consumer) = ring::<[u64; N]>(capacity);
    (move |stamp| producer.push([stamp; N]).is_ok(), move || consumer.pop().map(whole))
}

/// The event's stamp, once all of its words have been read; no stamp if they differ.
#[inline]
fn whole<const N: usize>(event: [u64; N]) -> u64 {
    let [all, any] = event.into_iter().fold([u64::MAX, 0], |[all, any], word| [all & word, any | word]);
    if all == any { all } else { u64::MAX }
}

/// How many events the receiving side has finished with.
#[repr(align(128))]
struct Done(AtomicU64);

struct Measured<'a> {
    plan: &'a LayoutPlan,
    clock: Clock,
    scale: Scale,
}

impl Measured<'_> {
    fn run(
        &self,
        (mut push, mut pop): (impl FnMut(u64) -> bool + Send, impl FnMut() -> Option<u64> + Send),
    ) -> Result<LayoutRun, Errno> {
        let (plan, clock) = (self.plan, self.clock);
        let probe = PingPong::new();
        let done = Done(AtomicU64::new(0));
        let ((ping_pong_before, ping_pong_after), (cycles, (stream_cycles, faults))) = on_two_cores(
            plan.cpus,
            || {
                let before = probe.ask(clock);
                for event in 1..=(plan.warmup + plan.events) as u64 {
                    (0..PAUSES).for_each(|_| spin_loop());
                    // One event is in flight at a time, so there is room.
                    let _ = push(clock.start().0);
                    while done.0.load(Ordering::Acquire) != event {}
                }
                for event in 1..=plan.stream_events {
                    while !push(event) {
                        spin_loop();
                    }
                }
                (before, probe.ask(clock))
            },
            || {
                probe.answer();
                let cycles = one_at_a_time(plan, clock, &done, &mut pop);
                let streamed = stream(plan.stream_events, clock, &mut pop);
                probe.answer();
                (cycles, streamed)
            },
        )?;
        let [before_ns, after_ns] = [ping_pong_before, ping_pong_after].map(|cycles| self.scale.ns_f64(cycles));
        let placement = Placement::of(before_ns, after_ns);
        Ok(LayoutRun { ping_pong_before, ping_pong_after, placement, cycles, stream_cycles, faults })
    }
}

fn one_at_a_time(plan: &LayoutPlan, clock: Clock, done: &Done, pop: &mut impl FnMut() -> Option<u64>) -> Vec<u64> {
    let mut cycles = vec![0; plan.events];
    for number in 0..plan.warmup + plan.events {
        let stamp = next(pop);
        let elapsed = clock.end().0.saturating_sub(black_box(stamp));
        if let Some(index) = number.checked_sub(plan.warmup) {
            cycles[index] = elapsed;
        }
        done.0.store(number as u64 + 1, Ordering::Release);
    }
    cycles
}

/// Cycles an event from the first one on, and how many were not what was sent.
fn stream(events: u64, clock: Clock, pop: &mut impl FnMut() -> Option<u64>) -> (f64, u64) {
    if events == 0 {
        return (0.0, 0);
    }
    let mut faults = u64::from(next(pop) != 1);
    let start = clock.end();
    for event in 2..=events {
        faults += u64::from(next(pop) != event);
    }
    (clock.end().since(start) as f64 / (events - 1).max(1) as f64, faults)
}

#[inline]
fn next(pop: &mut impl FnMut() -> Option<u64>) -> u64 {
    loop {
        if let Some(stamp) = pop() {
            return stamp;
        }
    }
}
