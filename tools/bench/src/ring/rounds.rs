//! The runs: in every round one of each variant, so that what moves the cores moves all of them alike.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::loops::hand_over::{Clocks, HandOver, Pace, Plan, Receives, Sends, Stamps, hand_over};
use crate::loops::{Delay, Idle, one_line, read_whole};
use crate::machine::{Jitter, JitterPlan, Threads, spin};
use crate::report::ring::Run;
use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Off};
use tt_model::{OrderIntent, OrderTerms, SplitMix64};
use tt_risk::Limits;
use tt_sync::spsc::ring;

use super::Options;
use crate::rows::ring::evaluator::{digest, gate, orders};
use crate::rows::ring::reference::Reference;

/// Different orders; a run sends them over and over.
pub(crate) const ORDERS: usize = 1 << 16;
/// Delays of the controls, nanoseconds. The shipped build has none.
pub(crate) const DELAYS_NS: [f64; 4] = [25.0, 50.0, 100.0, 200.0];
/// Samples of each time measured alone, per run.
const ALONE: usize = 2048;
/// An open loop's run is this long at least, nanoseconds, unless its rate makes it longer.
const OPEN_NS: f64 = 20e6;
/// From here on an event, or a gap of a core that spins, is a stall, nanoseconds.
pub(crate) const STALL_NS: u64 = 1_000;
/// How long the cores spin alone in each round, nanoseconds.
const SPIN_NS: u64 = 10_000_000;
/// A run that is not done after this long is given up, nanoseconds.
const TIME_MAX_NS: u64 = 20_000_000_000;
/// Length of a short run, nanoseconds.
const SHORT_NS: u64 = 50_000_000;
/// Slots of a ring whose caller does not choose them.
pub(crate) const SLOTS: usize = 65_536;
/// Most unrecorded events of its runs.
const WARMUP_MAX: usize = 1_000;
/// Default rates of the open loops, events per second.
const RATES: [u32; 3] = [100_000, 1_000_000, 5_000_000];

/// The subject of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Variant {
    /// One in flight, the evaluator judges every event: the shipped ring.
    Gate,
    /// The same once more: what a comparison of two equal builds finds.
    Again,
    /// The same, and the idle producer keeps the next slot's line.
    HoldsNext,
    /// The same as the first without the evaluator: the event is read, and that is all.
    Reader,
    /// One cache line in place of the ring.
    Floor,
    /// That without the evaluator.
    FloorReader,
    /// One cache line with the evaluator, and the idle producer keeps it.
    FloorHoldsNext,
    /// The same as shipped with a known delay after the evaluator, before the stamp: an index of [`DELAYS_NS`].
    Delayed(usize),
    /// The same as shipped with that delay between the first stamp and the push.
    PushedLate(usize),
    /// The same as shipped, and both threads are watched for stalls.
    Watched,
    /// At this rate, the gate judges every event.
    Open(u32),
}

impl Variant {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Gate => "one_in_flight".to_owned(),
            Self::Again => "again".to_owned(),
            Self::HoldsNext => "hold_next".to_owned(),
            Self::Reader => "evaluator_removed".to_owned(),
            Self::Floor => "floor".to_owned(),
            Self::FloorReader => "floor_evaluator_removed".to_owned(),
            Self::FloorHoldsNext => "floor_hold_next".to_owned(),
            Self::Delayed(which) => format!("delay_added_{}", DELAYS_NS[which]),
            Self::PushedLate(which) => format!("delay_before_push_{}", DELAYS_NS[which]),
            Self::Watched => "watched".to_owned(),
            Self::Open(rate) => format!("open_{rate}"),
        }
    }

    /// Whether the consumer judges events.
    const fn is_judged(self) -> bool {
        !matches!(self, Self::Reader | Self::FloorReader)
    }

    /// Events a second of an open loop.
    pub(super) const fn rate(self) -> Option<u32> {
        if let Self::Open(rate) = self { Some(rate) } else { None }
    }

    const fn is_floor(self) -> bool {
        matches!(self, Self::Floor | Self::FloorReader | Self::FloorHoldsNext)
    }

    const fn idle(self) -> Idle {
        if matches!(self, Self::HoldsNext | Self::FloorHoldsNext) { Idle::HoldsNext } else { Idle::Rests }
    }
}

/// How much of everything there is.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub(super) rounds: usize,
    /// Recorded events with one in flight, all rounds together.
    pub(super) events: usize,
    pub(super) slots: usize,
    pub(super) warmup: usize,
    pub(super) rates: Vec<u32>,
    pub(super) threads: Threads,
    /// What a round is made of.
    pub(super) variants: Vec<Variant>,
    /// When a run ends with the events that it has, nanoseconds; `None` where all must come through.
    pub(super) time_max_ns: Option<u64>,
}

impl Sizes {
    pub(super) fn new(options: &Options, cpus: [usize; 2], fifo: Option<u8>) -> Self {
        let (rounds, events) = if options.quick { (10, 100_000) } else { (50, 1_000_000) };
        let rates = if options.rates.is_empty() { RATES.to_vec() } else { options.rates.clone() };
        Self {
            rounds,
            events: options.events.unwrap_or(events).next_multiple_of(rounds),
            slots: options.slots,
            warmup: options.warmup,
            variants: Self::every_variant(&rates),
            time_max_ns: None,
            rates,
            threads: Threads { cpus: Some(cpus), fifo },
        }
    }

    /// Rounds of `variants` with one event in flight, `per_run` of them recorded in each run. Threads that are not pinned
    /// may share a CPU, where an event takes milliseconds: their runs are [`short`](Self::short), and have no warm-up that
    /// could take all of it.
    pub(crate) fn of_variants(variants: &[Variant], threads: Threads, rounds: usize, per_run: usize) -> Self {
        Self {
            rounds,
            events: per_run * rounds,
            slots: SLOTS,
            warmup: if threads.cpus.is_some() { WARMUP_MAX.min(per_run / 4) } else { 0 },
            rates: Vec::new(),
            threads,
            variants: variants.to_vec(),
            time_max_ns: threads.cpus.is_none().then_some(SHORT_NS),
        }
    }

    /// Ends each run after 50 ms with the events that it has.
    pub(crate) fn short(self) -> Self {
        Self { time_max_ns: Some(SHORT_NS), ..self }
    }

    /// Every variant of a round of `bench ring`.
    fn every_variant(rates: &[u32]) -> Vec<Variant> {
        let open = rates.iter().map(|rate| Variant::Open(*rate));
        let in_flight = [
            Variant::Gate,
            Variant::Again,
            Variant::HoldsNext,
            Variant::Reader,
            Variant::Floor,
            Variant::FloorReader,
            Variant::FloorHoldsNext,
            Variant::Watched,
        ];
        let delays = (0..DELAYS_NS.len()).flat_map(|which| [Variant::Delayed(which), Variant::PushedLate(which)]);
        in_flight.into_iter().chain(delays).chain(open).collect()
    }

    fn plan(&self, variant: Variant) -> Plan {
        let (threads, idle) = (self.threads, variant.idle());
        let (warmup, events, pace) = if let Some(rate) = variant.rate() {
            let events = (f64::from(rate) * OPEN_NS / 1e9).ceil() as usize;
            (self.warmup.min(events / 4), events, Pace::PerSecond(f64::from(rate)))
        } else {
            (self.warmup, self.events / self.rounds, Pace::OneInFlight)
        };
        let watch_ns = (variant == Variant::Watched).then_some(STALL_NS);
        let time_max_ns = self.time_max_ns.unwrap_or(TIME_MAX_NS);
        Plan { threads, warmup, events, pace, idle, alone: ALONE, watch_ns, time_max_ns }
    }
}

/// A run and what it is of.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) variant: Variant,
    pub(crate) round: usize,
    pub(crate) run: HandOver,
    /// Of the offered rate, open loops only.
    pub(super) achieved: Option<f64>,
}

impl Made {
    /// Below 99 % of the offered rate latencies are those of another rate.
    pub(super) fn is_void(&self) -> bool {
        self.achieved.is_some_and(|achieved| achieved < 0.99)
    }
}

/// All runs.
pub(crate) struct Rounds {
    pub(crate) calibration: &'static Calibration,
    pub(super) sizes: Sizes,
    pub(crate) made: Vec<Made>,
    /// The consumer's core spinning alone, once a round.
    pub(crate) floor: Vec<Jitter>,
    /// One for each of [`DELAYS_NS`].
    pub(super) delays: Vec<Delay>,
    orders: Vec<OrderTerms>,
    /// The checksum of each variant's recorded events.
    expected: Vec<(Variant, u64)>,
}

impl Rounds {
    pub(crate) fn new(calibration: &'static Calibration, sizes: Sizes) -> Self {
        let orders = orders(142, ORDERS);
        let expected = sizes.variants.iter().map(|variant| (*variant, checksum(&orders, *variant, &sizes)));
        let expected = expected.collect();
        let delay = |ns: &f64| Delay::calibrate(calibration.clock, calibration.scale, *ns);
        let delays = DELAYS_NS.iter().map(delay).collect();
        Self { calibration, sizes, made: Vec::new(), floor: Vec::new(), delays, orders, expected }
    }

    /// Makes every round.
    ///
    /// # Errors
    /// The threads cannot be placed, or an answer is not the expected one.
    pub(crate) fn make(&mut self, progress: &dyn Fn(usize, usize)) -> anyhow::Result<()> {
        let mut random = SplitMix64::new(self.sizes.rounds as u64);
        for round in 0..self.sizes.rounds {
            progress(round + 1, self.sizes.rounds);
            self.spin()?;
            // In random order: what a run leaves behind must not always meet the same next one.
            let mut order = self.expected.clone();
            random.shuffle(&mut order);
            for (variant, expected) in order {
                let begin = Instant::now();
                let run = self.one(variant, round).context("cannot run on two cores")?;
                let may_end_early = self.sizes.time_max_ns.is_some();
                ensure!(run.is_complete || may_end_early, "void: {} was not done within 20 s", variant.name());
                ensure!(run.faults == 0, "void: {} events came out of order or torn", run.faults);
                let is_right = !run.is_complete || run.checksum == expected;
                ensure!(is_right, "void: the consumer's answers are not the expected ones");
                let achieved = self.achieved(variant, &run);
                self.made.push(Made { variant, round, run, achieved });
                if self.sizes.threads.fifo.is_some() {
                    // The kernel stops real-time threads for 50 ms where they take more than 0.95 s of a second.
                    thread::sleep(begin.elapsed() / 8 + Duration::from_millis(1));
                }
            }
        }
        Ok(())
    }

    /// Idle behavior of both cores; the consumer's is kept.
    fn spin(&mut self) -> anyhow::Result<()> {
        let Some(cpus) = self.sizes.threads.cpus else { return Ok(()) };
        let plan = JitterPlan { span_ns: SPIN_NS, threshold_ns: STALL_NS, stalls_max: 1_024 };
        let jitters = spin(&cpus, plan, self.calibration.clock, self.calibration.scale);
        self.floor.extend(jitters.context("cannot spin on the cores")?.pop());
        Ok(())
    }

    fn one(&self, variant: Variant, round: usize) -> Result<HandOver, nix::errno::Errno> {
        let clocks = Clocks::of(self.calibration.clock, self.calibration.scale);
        if variant.is_floor() {
            // Another line in every round, as the ring's slots are at many addresses.
            let at = SplitMix64::new(round as u64).index(self.sizes.slots.max(1));
            self.pass(variant, clocks, one_line(self.sizes.slots, at))
        } else {
            self.pass(variant, clocks, ring(self.sizes.slots))
        }
    }

    /// One piece of code for all variants, the floor's too: other code would lie elsewhere in memory, and be some
    /// nanoseconds slower or quicker for that.
    fn pass<C: Stamps>(
        &self,
        variant: Variant,
        clocks: Clocks<C>,
        (sender, receiver): (impl Sends, impl Receives),
    ) -> Result<HandOver, nix::errno::Errno> {
        let pushed_late = if let Variant::PushedLate(which) = variant { Some(self.delays[which]) } else { None };
        let delay = if let Variant::Delayed(which) = variant { Some(self.delays[which]) } else { None };
        let is_judged = variant.is_judged();
        let mut judge = judge();
        let consume = move |intent: &OrderIntent| {
            let answer = if is_judged { judge(intent) } else { read(intent) };
            if let Some(delay) = delay {
                std::hint::black_box(delay.spend(answer));
            }
            answer
        };
        let ends = (LateSender { sender, delay: pushed_late }, receiver);
        hand_over(&self.sizes.plan(variant), &self.orders, clocks, ends, consume)
    }

    /// Of the offered rate.
    fn achieved(&self, variant: Variant, run: &HandOver) -> Option<f64> {
        variant.rate().map(|rate| self.rate_of(run) / f64::from(rate))
    }

    /// Events a second that came through. From the first event's intended start to the last one's there is an interval
    /// less than events.
    pub(super) fn rate_of(&self, run: &HandOver) -> f64 {
        let seconds = run.span_cycles as f64 / self.calibration.scale.cycles_per_s();
        run.cycles.len() as f64 / seconds
    }

    /// How much the consumer's counter is ahead, nanoseconds, mean over all runs.
    pub(super) fn skew_ns(&self) -> f64 {
        let sum: i64 = self.made.iter().map(|made| made.run.skew_cycles).sum();
        self.calibration.scale.ns_f64(sum as f64 / self.made.len().max(1) as f64)
    }

    /// The step of the counter, nanoseconds: what divides every difference of two stamps.
    pub(super) fn step_ns(&self) -> f64 {
        let from_stamp = self.made.iter().filter(|made| made.achieved.is_none());
        let cycles = from_stamp.flat_map(|made| &made.run.cycles);
        self.calibration.scale.ns_f64(cycles.copied().fold(0, gcd) as f64)
    }

    /// A run for the result.
    pub(super) fn run_of(&self, made: &Made) -> Run {
        let ns = |cycles: f64| self.calibration.scale.ns_f64(cycles);
        let run = &made.run;
        Run {
            of: made.variant.name(),
            round: made.round,
            class: run.placement.name().to_owned(),
            ping_pong_ns: run.ping_pong.map(|cycles| ns(cycles.unwrap_or(f64::NAN))),
            events: run.cycles.len() as u64,
            achieved_pct: made.achieved.map(|achieved| achieved * 100.0),
            p50_ns: ns(run.p50_cycles().unwrap_or(f64::NAN)),
            clock_ns: ns(run.clock_cycles),
            work_ns: ns(run.work_cycles),
            skew_ns: ns(run.skew_cycles as f64),
        }
    }

    /// Every sample of every loop.
    ///
    /// # Errors
    /// Those of `to`.
    pub(super) fn write_csv(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(to, "loop,run,iteration,cycles,ns,class")?;
        for (index, made) in self.made.iter().enumerate() {
            let (name, class) = (made.variant.name(), made.run.placement.name());
            for (iteration, cycles) in made.run.cycles.iter().enumerate() {
                let ns = self.calibration.scale.ns_f64(*cycles as f64);
                writeln!(to, "{name},{index},{iteration},{cycles},{ns:.1},{class}")?;
            }
        }
        Ok(())
    }
}

/// A sender that may take its time.
struct LateSender<S> {
    sender: S,
    delay: Option<Delay>,
}

impl<S: Sends> Sends for LateSender<S> {
    #[inline(always)]
    fn send(&mut self, terms: OrderTerms) -> bool {
        if let Some(delay) = self.delay {
            // Once the stamp is known, so that the two do not overlap; the push comes after the delay.
            std::hint::black_box(delay.spend(terms.ts_ns));
        }
        self.sender.send(terms)
    }

    #[inline(always)]
    fn hold_next(&mut self) {
        self.sender.hold_next();
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The gate as a consumer.
pub(crate) fn judge() -> impl FnMut(&OrderIntent) -> u64 + Send {
    let mut gate = gate();
    let mut now_ns = 1_000_000;
    move |intent| {
        now_ns += 100;
        let verdict = gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, intent, &mut Off);
        digest(verdict.reasons.0, verdict.accept, verdict.worst_pos)
    }
}

/// A consumer that reads the whole event and decides nothing.
pub(crate) fn read(intent: &OrderIntent) -> u64 {
    std::hint::black_box(read_whole(intent));
    intent.client_id
}

/// Sums over the recorded events of a run.
fn checksum(orders: &[OrderTerms], variant: Variant, sizes: &Sizes) -> u64 {
    let plan = sizes.plan(variant);
    checksum_of(orders, variant.is_judged(), (plan.warmup, plan.events))
}

/// What [`judge`] or [`read`] return for the recorded events, summed; from the reference.
pub(crate) fn checksum_of(orders: &[OrderTerms], is_judged: bool, (warmup, events): (usize, usize)) -> u64 {
    let mut reference = Reference::default();
    let answers = orders.iter().cycle().take(warmup + events).zip(0..).map(|(terms, seq)| {
        if !is_judged {
            return terms.client_id;
        }
        let (reasons, worst_pos) = reference.evaluate(&terms.numbered(seq));
        digest(reasons.0, u8::from(reasons.0 == 0), worst_pos)
    });
    answers.skip(warmup).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests;
