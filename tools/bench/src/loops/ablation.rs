//! Ablation: eleven steps from NullRing's naive ring to the shipped one, each real code behind one switch.
//!
//! With all switches on, the build is the shipped ring and the shipped evaluator. A switch that is off puts older code in
//! the place of one part: another clock, a ring of two indices (`index_ring`), a ring with a simpler layout or stronger
//! orderings (`slot_ring`), a gate that branches or computes in floats (`early_gate`). In none of the builds does the idle
//! producer keep the next slot's line: NullRing has nothing like it.

mod clocks;
mod early_gate;
mod gate_setup;
mod index_ring;
mod ring_memory;
mod slot_ring;
mod step;

use crate::loops::hand_over::{Clocks, HandOver, Idle, Pace, Plan, Receives, Sends, Stamps, hand_over};
use crate::machine::Threads;
use clocks::{Naive, Unordered};
use early_gate::EarlyGate;
pub use gate_setup::GateSetup;
use index_ring::{IndexReceiver, IndexSender};
use nix::errno::Errno;
use slot_ring::{SlotReceiver, SlotSender};
use step::{Gate, Ring, Stamping};
pub use step::{Step, Switches};
use tt_meter::{Calibration, Off, Scale};
use tt_model::{OrderIntent, OrderTerms, Price, Qty};
use tt_risk::Limits;

/// Nanoseconds from one order to the next on the gate's clock.
const STEP_NS: u64 = 100;
/// The producer's wait between events, in every build.
const IDLE: Idle = Idle::Rests;

/// Input of every build.
#[derive(Clone, Copy, Debug)]
pub struct BuildPlan {
    /// The producer's CPU and the consumer's, where the build pins.
    pub cpus: [usize; 2],
    /// The `SCHED_FIFO` level, where the build asks for it; `None` where the OS refuses.
    pub fifo: Option<u8>,
    /// Whether the OS lets this process lock its memory, where the build does.
    pub may_lock: bool,
    /// Slots of the ring.
    pub capacity: usize,
    /// Events that are sent and not recorded, first.
    pub warmup: usize,
    /// Events that are recorded.
    pub events: usize,
    /// When a run ends with fewer events, in nanoseconds.
    pub time_max_ns: u64,
}

/// A gate with the shipped evaluator's checks that stops at the first reason.
#[derive(Debug)]
pub(crate) struct EarlyOutGate(EarlyGate<i64>);

impl EarlyOutGate {
    pub(crate) fn new(setup: &GateSetup) -> Self {
        Self(EarlyGate::new(setup))
    }

    /// Returns whether `intent` is accepted.
    #[inline(always)]
    pub(crate) fn accepts(&mut self, now_ns: u64, intent: &OrderIntent) -> bool {
        self.0.evaluate_until_refused(now_ns, intent)
    }
}

/// Result of a build's run. The work's result is 1 for an order that it accepts, so that all builds have one checksum.
#[derive(Clone, Debug)]
pub struct BuildRun {
    /// The run; its samples are in cycles of `scale`.
    pub run: HandOver,
    /// The scale of the stamps.
    pub scale: Scale,
}

/// Orders as the builds with floats and those with integers read them.
#[derive(Clone, Debug)]
pub struct Orders {
    fixed: Vec<OrderTerms>,
    /// Price and quantity hold the bits of a float.
    float: Vec<OrderTerms>,
}

impl Orders {
    /// Of `orders` with whole prices and quantities.
    #[must_use]
    pub fn of(orders: Vec<OrderTerms>) -> Self {
        let bits = |whole: i64| (whole as f64).to_bits().cast_signed();
        let to_float = |terms: &OrderTerms| OrderTerms {
            limit_px: Price(bits(terms.limit_px.0)),
            qty: Qty(bits(terms.qty.0)),
            ..*terms
        };
        Self { float: orders.iter().map(to_float).collect(), fixed: orders }
    }
}

/// Runs the build of `switches` once, one event in flight.
///
/// # Errors
/// As [`hand_over`]; what locking the memory says.
pub fn run_build(
    switches: Switches,
    plan: &BuildPlan,
    setup: &GateSetup,
    orders: &Orders,
    calibration: &Calibration,
) -> Result<BuildRun, Errno> {
    let _locked = if switches.has(Step::LockedMemory) && plan.may_lock { Some(Locked::lock()?) } else { None };
    let build = Build { switches, plan, setup, orders };
    let Calibration { clock, scale, .. } = *calibration;
    let (instant, unordered) = (
        Clocks { probe: clock, scale, stamps: Naive::new() },
        Clocks { probe: clock, scale, stamps: Unordered(clock) },
    );
    let ordered = Clocks::of(clock, scale);
    let (stamping, ring, gate) = switches.parts();
    // Each combination is compiled separately, so only those are here that `Switches` can name: the first build with
    // each clock, the shipped one with each clock, and those between them.
    let run = match (stamping, ring, gate) {
        (Stamping::Instant, Ring::Naive, Gate::EarlyFloats) => build.first(instant)?,
        (Stamping::Unordered, Ring::Naive, Gate::EarlyFloats) => build.first(unordered)?,
        (Stamping::Ordered, Ring::Naive, Gate::EarlyFloats) => build.first(ordered)?,
        (Stamping::Instant, Ring::Shipped, Gate::Shipped) => build.last(instant)?,
        (Stamping::Unordered, Ring::Shipped, Gate::Shipped) => build.last(unordered)?,
        (Stamping::Ordered, Ring::Shipped, Gate::Shipped) => build.last(ordered)?,
        (Stamping::Ordered, Ring::IndexPairSeqCst, Gate::EarlyFloats) => {
            build.early_floats(ordered, build.indices::<true, true>())?
        }
        (Stamping::Ordered, Ring::IndexPair, Gate::EarlyFloats) => {
            build.early_floats(ordered, build.indices::<true, false>())?
        }
        (Stamping::Ordered, Ring::IndexPair, Gate::Floats) => build.floats(ordered, build.indices::<true, false>())?,
        (Stamping::Ordered, Ring::IndexPair, Gate::Shipped) => {
            build.shipped(ordered, build.indices::<true, false>())?
        }
        (Stamping::Ordered, Ring::Shipped, Gate::Floats) => build.floats(ordered, build.shipped_ring())?,
        (Stamping::Ordered, Ring::Shipped, Gate::Early) => build.early(ordered, build.shipped_ring())?,
        (Stamping::Ordered, Ring::Aligned, Gate::Shipped) => build.shipped(ordered, build.slots::<true, false>())?,
        (Stamping::Ordered, Ring::AlignedSeqCst, Gate::Shipped) => {
            build.shipped(ordered, build.slots::<true, true>())?
        }
        (Stamping::Ordered, Ring::Packed, Gate::Shipped) => build.shipped(ordered, build.slots::<false, false>())?,
        parts => unreachable!("no switches have the parts {parts:?}"),
    };
    Ok(BuildRun { run, scale: if stamping == Stamping::Instant { Scale::NANOSECONDS } else { scale } })
}

/// Every page of the process locked until this is dropped.
struct Locked;

impl Locked {
    fn lock() -> Result<Self, Errno> {
        tt_os::memory::lock_all().map(|()| Self)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // What stays locked is harmless.
        let _ = tt_os::memory::unlock_all();
    }
}

struct Build<'a> {
    switches: Switches,
    plan: &'a BuildPlan,
    setup: &'a GateSetup,
    orders: &'a Orders,
}

impl Build<'_> {
    /// The first build: the naive ring and gate.
    fn first(&self, clocks: Clocks<impl Stamps>) -> Result<HandOver, Errno> {
        self.early_floats(clocks, self.indices::<false, true>())
    }

    /// The last build: the shipped ring and gate.
    fn last(&self, clocks: Clocks<impl Stamps>) -> Result<HandOver, Errno> {
        self.shipped(clocks, self.shipped_ring())
    }

    fn shipped_ring(&self) -> (impl Sends + use<>, impl Receives + use<>) {
        tt_sync::spsc::ring(self.plan.capacity)
    }

    fn slots<const ALIGNED: bool, const SEQ_CST: bool>(
        &self,
    ) -> (SlotSender<ALIGNED, SEQ_CST>, SlotReceiver<ALIGNED, SEQ_CST>) {
        slot_ring::ends(self.plan.capacity, self.switches.has(Step::LockedMemory))
    }

    fn indices<const ALIGNED: bool, const SEQ_CST: bool>(
        &self,
    ) -> (IndexSender<ALIGNED, SEQ_CST>, IndexReceiver<ALIGNED, SEQ_CST>) {
        index_ring::ends(self.plan.capacity, self.switches.has(Step::LockedMemory))
    }

    fn shipped(&self, clocks: Clocks<impl Stamps>, ends: (impl Sends, impl Receives)) -> Result<HandOver, Errno> {
        let mut gate = self.setup.gate();
        self.run(&self.orders.fixed, clocks, ends, move |now_ns, intent| {
            gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, intent, &mut Off).accept != 0
        })
    }

    fn early(&self, clocks: Clocks<impl Stamps>, ends: (impl Sends, impl Receives)) -> Result<HandOver, Errno> {
        let mut gate = EarlyGate::<i64>::new(self.setup);
        self.run(&self.orders.fixed, clocks, ends, move |now_ns, intent| gate.evaluate_until_refused(now_ns, intent))
    }

    fn floats(&self, clocks: Clocks<impl Stamps>, ends: (impl Sends, impl Receives)) -> Result<HandOver, Errno> {
        let mut gate = EarlyGate::<f64>::new(self.setup);
        self.run(&self.orders.float, clocks, ends, move |now_ns, intent| gate.evaluate_wholly(now_ns, intent))
    }

    fn early_floats(&self, clocks: Clocks<impl Stamps>, ends: (impl Sends, impl Receives)) -> Result<HandOver, Errno> {
        let mut gate = EarlyGate::<f64>::new(self.setup);
        self.run(&self.orders.float, clocks, ends, move |now_ns, intent| gate.evaluate_until_refused(now_ns, intent))
    }

    fn run(
        &self,
        orders: &[OrderTerms],
        clocks: Clocks<impl Stamps>,
        ends: (impl Sends, impl Receives),
        mut judge: impl FnMut(u64, &OrderIntent) -> bool + Send,
    ) -> Result<HandOver, Errno> {
        let BuildPlan { cpus, fifo, warmup, events, time_max_ns, .. } = *self.plan;
        let threads = Threads {
            cpus: self.switches.has(Step::Affinity).then_some(cpus),
            fifo: fifo.filter(|_| self.switches.has(Step::Priority)),
        };
        let (pace, idle) = (Pace::OneInFlight, IDLE);
        let plan = Plan { threads, warmup, events, pace, idle, alone: 0, watch_ns: None, time_max_ns };
        let mut now_ns = 1_000_000;
        hand_over(&plan, orders, clocks, ends, move |intent| {
            now_ns += STEP_NS;
            u64::from(judge(now_ns, intent))
        })
    }
}

#[cfg(test)]
mod tests;
