//! One process of the decomposition: some rounds, in each a run of every build.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use tt_meter::Calibration;
use tt_model::{OrderIntent, OrderTerms, SplitMix64};
use tt_os::clock;
use tt_sync::spsc::ring;

use super::build::{Build, Term};
use super::ends::{SecondLine, TermReceiver, TermSender, TermStamps};
use crate::loops::hand_over::{Clocks, Pace, Plan, Receives, Sends, hand_over, on_one_thread};
use crate::loops::{Delay, Idle, one_line};
use crate::machine::{Threads, middle};
use crate::ring::rounds::{DELAYS_NS, ORDERS, SLOTS, checksum_of, judge, read};
use crate::rows::ring::evaluator::orders;

/// A run that is not done after this long is given up, nanoseconds.
const TIME_MAX_NS: u64 = 20_000_000_000;
/// Most bytes that a process leaves unused before its first run, so that no two have the same addresses.
const GAP_BYTES_MAX: usize = 1 << 20;

/// The placement of a run without a second core.
pub(super) const ONE_CORE: &str = "one_core";

/// The runs of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number, from which the order of its builds and its addresses follow.
    pub number: u64,
    /// The length of each delay as this process calibrated it, nanoseconds.
    pub delays_ns: Vec<f64>,
    /// One entry for each round: by build the placement and the median, nanoseconds.
    pub rounds: Vec<BTreeMap<String, (String, f64)>>,
}

/// What every process does alike.
#[derive(Clone, Copy, Debug)]
pub struct ProcessPlan {
    /// The sender's CPU and the receiver's.
    pub cpus: [usize; 2],
    /// Rounds.
    pub rounds: usize,
    /// Events of a run before the recorded ones, and recorded ones.
    pub events: (usize, usize),
}

/// Makes the rounds of process `number` and prints them as a line of JSON.
///
/// # Errors
/// The threads cannot be placed, an answer differs from the reference, or nothing can be printed.
pub fn run(number: u64, plan: &ProcessPlan) -> anyhow::Result<()> {
    let process = make(number, plan)?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(&process)?).context("cannot print")
}

fn make(number: u64, plan: &ProcessPlan) -> anyhow::Result<Process> {
    let mut random = SplitMix64::new(number);
    let gap = vec![1_u8; 1 + random.index(GAP_BYTES_MAX)];
    let calibration = clock::calibration();
    let runs = Runs::new(*plan, calibration)?;
    let delays_ns = runs.delays.iter().map(|delay| rounded(delay.ns())).collect();
    let mut process = Process { number, delays_ns, rounds: Vec::new() };
    for round in 0..plan.rounds {
        let mut builds = Build::all();
        random.shuffle(&mut builds);
        let at = random.index(SLOTS);
        let mut made = BTreeMap::new();
        for build in builds {
            let run = runs.one(build, at).with_context(|| format!("{} in round {round}", build.name()))?;
            made.insert(build.name(), run);
        }
        process.rounds.push(made);
    }
    drop(std::hint::black_box(gap));
    Ok(process)
}

/// To a thousandth of a nanosecond.
fn rounded(ns: f64) -> f64 {
    (ns * 1_000.0).round() / 1_000.0
}

struct Runs {
    plan: ProcessPlan,
    calibration: &'static Calibration,
    delays: Vec<Delay>,
    orders: Vec<OrderTerms>,
    /// Without the evaluator, and with it.
    expected: [u64; 2],
}

impl Runs {
    fn new(plan: ProcessPlan, calibration: &'static Calibration) -> anyhow::Result<Self> {
        // Where most of them are spent.
        let calibrate = || {
            tt_os::cpu::pin(plan.cpus[1])?;
            Ok(DELAYS_NS.map(|ns| Delay::calibrate(calibration.clock, calibration.scale, ns)).to_vec())
        };
        let delays = thread::scope(|scope| scope.spawn(calibrate).join());
        let delays: Result<_, nix::errno::Errno> = delays.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let orders = orders(142, ORDERS);
        let expected = [false, true].map(|is_judged| checksum_of(&orders, is_judged, plan.events));
        Ok(Self { plan, calibration, delays: delays.context("cannot calibrate the delays")?, orders, expected })
    }

    /// The placement and the median of one run.
    fn one(&self, build: Build, at: usize) -> anyhow::Result<(String, f64)> {
        if build.has_line() { self.pass(build, one_line(SLOTS, at)) } else { self.pass(build, ring(SLOTS)) }
    }

    fn pass(&self, build: Build, (sender, receiver): (impl Sends, impl Receives)) -> anyhow::Result<(String, f64)> {
        let delay = |term| build.delay_at(term).map_or(Delay::NONE, |at| self.delays[at]);
        let second = (build == Build::TwoLines).then(|| Arc::new(SecondLine::default()));
        // The ring's and the line's delays are at one place: before what the sender does for the message.
        let before = if build.has_line() { delay(Term::Line) } else { delay(Term::Push) };
        let sender = TermSender::new(sender, before, build == Build::LinePush, second.clone());
        let receiver = TermReceiver::new(receiver, delay(Term::Look), build == Build::LineLook, second);
        let Calibration { clock, scale, .. } = *self.calibration;
        let stamps = TermStamps { clock, extra: build.extra_stamps(), delay: delay(Term::Clock) };
        let (is_judged, after) = (build.is_judged(), delay(Term::Evaluator));
        let mut judge = judge();
        let work = move |intent: &OrderIntent| {
            let answer = if is_judged { judge(intent) } else { read(intent) };
            std::hint::black_box(after.spend(answer));
            answer
        };
        let (placement, mut cycles, checksum, faults) = if build == Build::OneThread {
            let run =
                on_one_thread(self.plan.cpus[1], self.plan.events, &self.orders, stamps, (sender, receiver), work)?;
            (ONE_CORE, run.cycles, run.checksum, run.faults)
        } else {
            let plan = Plan {
                threads: Threads { cpus: Some(self.plan.cpus), fifo: None },
                warmup: self.plan.events.0,
                events: self.plan.events.1,
                pace: Pace::OneInFlight,
                idle: Idle::Rests,
                alone: 0,
                watch_ns: None,
                time_max_ns: TIME_MAX_NS,
            };
            let run = hand_over(&plan, &self.orders, Clocks { probe: clock, scale, stamps }, (sender, receiver), work)?;
            ensure!(run.is_complete, "void: not done within 20 s");
            (run.placement.name(), run.cycles, run.checksum, run.faults)
        };
        ensure!(faults == 0, "void: {faults} events came out of order or torn");
        let is_right = checksum == self.expected[usize::from(is_judged)];
        ensure!(is_right, "void: the receiver's answers are not the expected ones");
        let p50_ns = scale.ns_f64(middle(&mut cycles).context("no event was recorded")?);
        Ok((placement.to_owned(), rounded(p50_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{Requirement, require, two_cpus};

    #[test]
    fn every_build_passes_every_event_and_answers_like_the_reference() {
        let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
        let cpus = tt_os::cpu::available().unwrap();
        let process = make(3, &ProcessPlan { cpus: [cpus[0], cpus[1]], rounds: 1, events: (20, 200) }).unwrap();
        assert_eq!((process.rounds.len(), process.rounds[0].len()), (1, 31));
        assert!(process.rounds[0].values().all(|(_, p50_ns)| *p50_ns > 0.0), "{process:?}");
        assert_eq!(process.rounds[0]["one_thread"].0, ONE_CORE);
        let text = serde_json::to_string(&process).unwrap();
        assert_eq!(serde_json::from_str::<Process>(&text).unwrap(), process);
    }

    #[test]
    fn a_wrong_second_line_or_an_empty_look_is_a_fault() {
        let orders = vec![OrderTerms { client_id: 5, ..OrderTerms::default() }];
        let stamps = TermStamps { clock: clock::calibration().clock, extra: 0, delay: Delay::NONE };
        let cpu = tt_os::cpu::available().unwrap()[0];
        let faults = |sender_line: bool, has_look: bool, settles: bool| {
            let second = Some(Arc::new(SecondLine::default()));
            let (sender, receiver) = ring(8);
            let sender = TermSender::new(sender, Delay::NONE, false, second.clone().filter(|_| sender_line));
            let receiver = TermReceiver::new(receiver, Delay::NONE, has_look, second);
            let receiver = Unsettled(receiver, settles);
            on_one_thread(cpu, (0, 10), &orders, stamps, (sender, receiver), |intent| intent.client_id).unwrap().faults
        };
        assert_eq!(faults(true, true, true), 0);
        assert_eq!(faults(false, true, true), 10);
        assert_eq!(faults(true, true, false), 9, "the first look finds an event");
    }

    /// A receiver whose events may have no end.
    struct Unsettled<R>(R, bool);

    impl<R: Receives> Receives for Unsettled<R> {
        fn receive(&mut self) -> Option<(u64, OrderTerms)> {
            self.0.receive()
        }

        fn settle(&mut self) {
            if self.1 {
                self.0.settle();
            }
        }
    }
}
