//! Intent to verdict through the running gate, open loop, and the same through a thread that only answers.

mod echo;
mod over_tcp;
mod running;

use std::thread;

use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Clock, Scale};
use tt_model::{Breach, IntentKind, OrderIntent, SplitMix64, Verdict};
use tt_os::clock::unix_now;

use super::stream::Order;
use crate::harness::cpus;
use crate::harness::operation::{Bench, Finished};
use crate::harness::plan::Plan;
use crate::report::{Bootstrap, Row, RowText, Samples, Unit};
use over_tcp::TcpLine;

/// Slots of each ring: a run that the gate cannot follow has room for all of it.
const SLOTS: usize = 1 << 13;

/// A run that takes longer is void.
const RUN_MAX_NS: u64 = 10_000_000_000;

/// Orders in 100 that are refused.
const REFUSED: u32 = 5;

/// A producer's ends of two rings.
trait Line: Send {
    /// Sends an intent; `false` without room.
    fn send(&mut self, intent: OrderIntent) -> bool;
    /// The next verdict, if there is one.
    fn poll(&mut self) -> Option<Verdict>;
}

/// How often an intent is sent, and how the other thread waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// The rows of the gate and of the echo.
    pub(super) names: [&'static str; 2],
    pub(super) per_second: f64,
    /// The gate's thread polls; otherwise it sleeps, as by default.
    pub(super) spins: bool,
    /// Each intent comes over a TCP connection.
    pub(super) over_tcp: bool,
    /// Recorded intents of a block; as many before them are not recorded.
    pub(super) intents: usize,
}

/// The rows of one mode.
pub(super) struct OpenLoop {
    mode: Mode,
    orders: Vec<Order>,
    intents: Vec<OrderIntent>,
    samples: [Samples; 2],
    /// What a block's intents found: the most that waited for a verdict.
    waiting_max: [usize; 2],
}

/// The time of each intent of a run, in cycles, and the most that were under way.
struct Times {
    cycles: Vec<u64>,
    waiting_max: usize,
}

impl OpenLoop {
    /// # Errors
    /// There are no two CPUs.
    pub(super) fn new(mode: Mode) -> anyhow::Result<Self> {
        ensure!(cpus::available().len() >= 2, "two CPUs are needed");
        let mut random = SplitMix64::new(0x6f70_656e);
        let orders: Vec<Order> = (0..2 * mode.intents).map(|at| Order::draw(&mut random, at, 1, REFUSED)).collect();
        let intents = (1..).zip(&orders).map(|(id, order)| order.intent(id, IntentKind::LIMIT)).collect();
        Ok(Self { mode, orders, intents, samples: [Samples::new(), Samples::new()], waiting_max: [0; 2] })
    }

    /// Runs all intents through the gate, then through the echo.
    fn run(&self, calibration: &Calibration) -> anyhow::Result<[Times; 2]> {
        let (clock, scale) = (calibration.clock, calibration.scale);
        let (first, last) = ends()?;
        let gate = running::with_gate(self.mode.spins, last, |line| {
            self.pinned(first, |intents, orders, recorded| {
                let times = self.run_way(line, intents, (clock, scale))?;
                for (verdict, order) in line.verdicts().iter().zip(orders) {
                    ensure!(is_expected(verdict, order), "void: {verdict:?}, {:?}", names(verdict.reasons));
                }
                if !recorded {
                    line.end_all(intents, orders)?;
                }
                Ok(times)
            })
        })?;
        let echo = echo::with_echo(self.mode.spins, last, |line| {
            self.pinned(first, |intents, _, _| self.run_way(line, intents, (clock, scale)))
        })?;
        Ok([gate, echo])
    }

    /// Runs `intents` straight into `line`, or over a connection.
    fn run_way(&self, line: &mut impl Line, intents: &[OrderIntent], time: (Clock, Scale)) -> anyhow::Result<Times> {
        let pace = (self.mode.per_second, time.0, time.1);
        if !self.mode.over_tcp {
            return run(line, intents, pace);
        }
        let mut line = TcpLine::connect(line)?;
        let times = run(&mut line, intents, pace)?;
        line.end()?;
        Ok(times)
    }

    /// Calls `run` on a pinned thread for the unrecorded intents, then for the recorded ones, and returns the times of those.
    fn pinned(
        &self,
        cpu: usize,
        mut run: impl FnMut(&[OrderIntent], &[Order], bool) -> anyhow::Result<Times> + Send,
    ) -> anyhow::Result<Times> {
        thread::scope(|scope| {
            let producer = scope.spawn(|| {
                tt_os::cpu::pin(cpu).context("cannot pin the producer")?;
                let half = self.mode.intents;
                run(&self.intents[..half], &self.orders[..half], false)?;
                run(&self.intents[half..], &self.orders[half..], true)
            });
            producer.join().ok().context("the producer panicked")?
        })
    }
}

/// The CPUs of the producer and of the other thread.
fn ends() -> anyhow::Result<(usize, usize)> {
    let cpus = cpus::available();
    Ok((*cpus.first().context("no CPU")?, *cpus.last().context("no CPU")?))
}

fn is_expected(verdict: &Verdict, order: &Order) -> bool {
    let reasons = if order.is_refused { Breach::COLLAR_REF } else { Breach::NONE };
    verdict.reasons == reasons && (verdict.accept == 1) != order.is_refused
}

fn names(reasons: Breach) -> Vec<&'static str> {
    reasons.names().collect()
}

/// Sends each intent at its time, whatever became of the last, and takes the time from then to its verdict.
fn run(line: &mut impl Line, intents: &[OrderIntent], pace: (f64, Clock, Scale)) -> anyhow::Result<Times> {
    let (per_second, clock, scale) = pace;
    let step = scale.cycles_per_s() / per_second;
    let mut cycles = Vec::with_capacity(intents.len());
    let (mut sent, mut waiting_max) = (0, 0);
    let begin = clock.end().0 + (2.0 * step) as u64;
    let due = |at: usize| begin + (at as f64 * step) as u64;
    while cycles.len() < intents.len() {
        let now = clock.unordered().0;
        if sent < intents.len() && now >= due(sent) {
            sent += usize::from(line.send(OrderIntent { ts_ns: unix_now().0, ..intents[sent] }));
            waiting_max = waiting_max.max(sent - cycles.len());
        }
        let Some(verdict) = line.poll() else {
            ensure!(scale.ns(now.saturating_sub(begin)) < RUN_MAX_NS, "void: a verdict has not come within 10 s");
            continue;
        };
        let seen = cycles.len();
        cycles.push(clock.end().0.saturating_sub(due(seen)));
        ensure!(verdict.client_id == intents[seen].client_id, "void: a verdict on another intent");
    }
    Ok(Times { cycles, waiting_max })
}

impl Bench for OpenLoop {
    fn name(&self) -> &'static str {
        self.mode.names[0]
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.run(tt_os::clock::calibration()).map(drop)
    }

    fn warm_up(&mut self, _calibration: &Calibration, _plan: &Plan) -> anyhow::Result<()> {
        Ok(())
    }

    fn block(&mut self, calibration: &Calibration, _plan: &Plan) -> anyhow::Result<()> {
        for (at, times) in self.run(calibration)?.into_iter().enumerate() {
            let ns = times.cycles.iter().map(|cycles| calibration.scale.ns_f64(*cycles as f64));
            self.samples[at].push_block(ns.collect());
            self.waiting_max[at] = self.waiting_max[at].max(times.waiting_max);
        }
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let Mode { names, per_second, spins, over_tcp, .. } = self.mode;
        let how = if spins { "both threads poll" } else { "the producer polls, the other thread sleeps" };
        let whats = [
            "from when an intent is to be sent to its verdict, open loop: IntentSender, the thread of the gate with its \
             journal (process) and every check on, VerdictReceiver",
            "the same with a thread that answers and does nothing else: two rings",
        ];
        let row = |at: usize| {
            let text = RowText { name: names[at], engine: super::ENGINE, what: whats[at], unit: Unit::Ns };
            let mut row = Row::of(text, &self.samples[at], 1, bootstrap)?;
            let waiting = self.waiting_max[at];
            row.notes.push(format!("{per_second} intents/s; {how}; at most {waiting} were under way"));
            if over_tcp {
                row.notes
                    .push("the producer writes each intent to a TCP connection over lo and reads it there".to_owned());
            }
            Some(Finished { row, samples: self.samples[at].clone() })
        };
        (0..names.len()).filter_map(row).collect()
    }
}
