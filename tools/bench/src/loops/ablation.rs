//! Ablation: ten steps from a naive ring to the shipped one, each real code behind one switch.
//!
//! With all switches on, the build is the shipped ring and the shipped gate. A switch that is off puts older code in the
//! place of one part: another clock, a ring with a simpler layout or stronger orderings (`slot_ring`), a gate that
//! branches or computes in floats (`early_gate`).

mod clocks;
mod early_gate;
mod gate_setup;
mod slot_ring;
mod step;

use crate::loops::hand_over::{Clocks, HandOver, Idle, Pace, Plan, Receives, Sends, Stamps, hand_over};
use crate::machine::Threads;
use clocks::{Naive, Unordered};
use early_gate::EarlyGate;
pub use gate_setup::GateSetup;
use nix::errno::Errno;
pub use step::{Step, Switches};
use tt_meter::{Calibration, Off, Scale};
use tt_model::{OrderIntent, OrderTerms, Price, Qty};
use tt_risk::Limits;

/// Nanoseconds from one order to the next on the gate's clock.
const STEP_NS: u64 = 100;

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
    if !switches.has(Step::Rdtsc) {
        let run = build.on_ring(Clocks { probe: clock, scale, stamps: Naive::new() })?;
        return Ok(BuildRun { run, scale: Scale::NANOSECONDS });
    }
    let run = if switches.has(Step::Rdtscp) {
        build.on_ring(Clocks::of(clock, scale))?
    } else {
        build.on_ring(Clocks { probe: clock, scale, stamps: Unordered(clock) })?
    };
    Ok(BuildRun { run, scale })
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
    /// The shipped ring where nothing about the ring is switched off.
    fn on_ring(&self, clocks: Clocks<impl Stamps>) -> Result<HandOver, Errno> {
        let has = |step| self.switches.has(step);
        let capacity = self.plan.capacity;
        let is_touched = has(Step::LockedMemory);
        if is_touched && has(Step::Alignment) && has(Step::RelaxedAtomics) && !self.switches.is_control() {
            return self.judged(clocks, tt_sync::spsc::ring(capacity));
        }
        match (has(Step::Alignment), has(Step::RelaxedAtomics)) {
            (true, true) => self.judged(clocks, slot_ring::ends::<true, false>(capacity, is_touched)),
            (true, false) => self.judged(clocks, slot_ring::ends::<true, true>(capacity, is_touched)),
            (false, true) => self.judged(clocks, slot_ring::ends::<false, false>(capacity, is_touched)),
            (false, false) => self.judged(clocks, slot_ring::ends::<false, true>(capacity, is_touched)),
        }
    }

    /// The shipped gate where nothing about the gate is switched off.
    fn judged(&self, clocks: Clocks<impl Stamps>, ends: (impl Sends, impl Receives)) -> Result<HandOver, Errno> {
        let Orders { fixed, float } = self.orders;
        match (self.switches.has(Step::BranchFree), self.switches.has(Step::FixedPoint)) {
            (true, true) => {
                let mut gate = self.setup.gate();
                let judge = move |now_ns: u64, intent: &OrderIntent| {
                    gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, intent, &mut Off).accept != 0
                };
                self.run(fixed, clocks, ends, judge)
            }
            (false, true) => {
                let mut gate = EarlyGate::<i64>::new(self.setup);
                self.run(fixed, clocks, ends, move |now_ns, intent| gate.evaluate_until_refused(now_ns, intent))
            }
            (true, false) => {
                let mut gate = EarlyGate::<f64>::new(self.setup);
                self.run(float, clocks, ends, move |now_ns, intent| gate.evaluate_wholly(now_ns, intent))
            }
            (false, false) => {
                let mut gate = EarlyGate::<f64>::new(self.setup);
                self.run(float, clocks, ends, move |now_ns, intent| gate.evaluate_until_refused(now_ns, intent))
            }
        }
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
        let (pace, idle) = (Pace::OneInFlight, Idle::HoldsNext);
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
