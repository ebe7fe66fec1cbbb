//! One event in flight from a pinned producer through the ring to a pinned consumer.

use crate::loops::{Idle, RingPlan, RingRun, read_whole, run_ring};
use crate::machine::Placement;
use crate::report::{Bootstrap, Published, Row, RowText, Samples, Statistic, Unit};
use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Off};
use tt_model::OrderTerms;
use tt_risk::Limits;
use tt_status::distribution::Distribution;

use super::ENGINE;
use super::evaluator::{digest, gate, orders};
use super::reference::Reference;
use crate::harness::cpus;
use crate::harness::figures::{PLACEMENTS, STALL_FROM_NS, Sketch};
use crate::harness::operation::{Bench, Finished};
use crate::harness::plan::Plan;

/// As NullRing's: slots, events before the recorded ones, recorded events of all runs together.
const SLOTS: usize = 65_536;
const WARMUP: usize = 10_000;
const EVENTS: usize = 1_000_000;
/// Different orders; a run sends them over and over.
const ORDERS: usize = 1 << 16;

/// What the published figures are of, and how that differs from the row.
const NULLRING: &str = "NullRing in C++ on Windows, two pinned cores whose distance is not published, real-time priority: \
                        producer, ring of two indices, evaluator of eight checks";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consumer {
    /// The gate judges every event.
    Gate,
    /// Every word of the event is read.
    Reader,
}

/// Rows of one consumer: latencies, and the median as a multiple of the ping-pong by placement.
pub(super) struct HandOver {
    consumer: Consumer,
    orders: Vec<OrderTerms>,
    runs: Vec<(RingRun, f64)>,
    samples: Samples,
}

impl HandOver {
    /// Producer, ring, evaluator.
    ///
    /// # Errors
    /// There are no two CPUs.
    pub(super) fn end_to_end() -> anyhow::Result<Self> {
        Self::new(Consumer::Gate)
    }

    /// Producer, ring, a consumer that reads the whole event.
    ///
    /// # Errors
    /// There are no two CPUs.
    pub(super) fn one_way() -> anyhow::Result<Self> {
        Self::new(Consumer::Reader)
    }

    fn new(consumer: Consumer) -> anyhow::Result<Self> {
        ensure!(cpus::available().len() >= 2, "two CPUs are needed");
        Ok(Self { consumer, orders: orders(142, ORDERS), runs: Vec::new(), samples: Samples::new() })
    }

    fn run(&self, calibration: &Calibration, events: usize) -> anyhow::Result<RingRun> {
        let cpus = cpus::available();
        let (first, last) = (cpus.first().context("no CPU")?, cpus.last().context("no CPU")?);
        let plan = RingPlan { cpus: [*first, *last], capacity: SLOTS, warmup: WARMUP, events, idle: Idle::Rests };
        let (clock, scale) = (calibration.clock, calibration.scale);
        let run = match self.consumer {
            Consumer::Reader => run_ring(&plan, &self.orders, clock, scale, |intent| {
                std::hint::black_box(read_whole(intent));
                intent.client_id
            }),
            Consumer::Gate => {
                let mut gate = gate();
                let mut now_ns = 1_000_000;
                run_ring(&plan, &self.orders, clock, scale, move |intent| {
                    now_ns += 100;
                    let verdict = gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, intent, &mut Off);
                    digest(verdict.reasons.0, verdict.accept, verdict.worst_pos)
                })
            }
        };
        let run = run.context("cannot run on two cores")?;
        ensure!(run.faults == 0, "void: {} events came out of order or torn", run.faults);
        ensure!(run.checksum == self.expected(events), "void: the consumer's answers are not the expected ones");
        Ok(run)
    }

    /// The checksum of the recorded events.
    fn expected(&self, events: usize) -> u64 {
        let mut reference = Reference::default();
        let answers =
            self.orders.iter().cycle().take(WARMUP + events).zip(0..).map(|(terms, seq)| match self.consumer {
                Consumer::Reader => terms.client_id,
                Consumer::Gate => {
                    let (reasons, worst_pos) = reference.evaluate(&terms.numbered(seq));
                    digest(reasons.0, u8::from(reasons.0 == 0), worst_pos)
                }
            });
        answers.skip(WARMUP).fold(0, u64::wrapping_add)
    }

    fn published() -> Vec<Published> {
        let published = |statistic, value| Published { value, unit: Unit::Ns, statistic, what: NULLRING.to_owned() };
        vec![
            published(Statistic::P50, 142.0),
            published(Statistic::Mean, 150.0),
            published(Statistic::P95, 162.0),
            published(Statistic::P99, 172.0),
            published(Statistic::P999, 2_346.0),
            published(Statistic::Min, 92.0),
        ]
    }

    const fn what(&self) -> &'static str {
        match self.consumer {
            Consumer::Gate => {
                "from the stamp before push to the stamp after the gate's verdict, one event in flight, ring of 65,536, \
                 the idle producer does nothing"
            }
            Consumer::Reader => "the same with a consumer that only reads the whole event",
        }
    }

    /// The runs of one placement, in a sentence.
    fn note(&self, placement: Placement) -> Option<String> {
        let of_class = || self.runs.iter().filter(|(run, _)| run.placement == placement);
        let count = of_class().count();
        let ping_pong = of_class().map(|(_, ping_pong_ns)| ping_pong_ns).sum::<f64>() / count as f64;
        (count > 0).then(|| format!("{}: {count} runs, ping-pong {ping_pong:.1} ns on average", placement.name()))
    }

    /// Median of each run over the run's own ping-pong; moved runs have none to be compared with.
    fn multiple(&self, placement: Placement, bootstrap: &Bootstrap) -> Option<Finished> {
        let mut samples = Samples::new();
        for (run, _) in self.runs.iter().filter(|(run, _)| run.placement == placement) {
            samples.push_block(vec![run.p50_per_ping_pong()?]);
        }
        let name = format!("{}_per_ping_pong_{}", self.name(), placement.name());
        let what = "a run's median as a multiple of a cache line's half round trip between the same threads";
        let text = RowText { name: &name, engine: ENGINE, what, unit: Unit::Times };
        let row = Row::of(text, &samples, 1, bootstrap)?;
        Some(Finished { row: Row { quantiles: None, ..row }, samples })
    }
}

impl Bench for HandOver {
    fn name(&self) -> &'static str {
        match self.consumer {
            Consumer::Gate => "ring_end_to_end",
            Consumer::Reader => "ring_one_way",
        }
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.run(tt_os::clock::calibration(), 1_000).map(drop)
    }

    fn warm_up(&mut self, calibration: &Calibration, _plan: &Plan) -> anyhow::Result<()> {
        self.run(calibration, WARMUP).map(drop)
    }

    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        let run = self.run(calibration, EVENTS / plan.blocks as usize)?;
        let ping_pong = f64::midpoint(run.ping_pong_before, run.ping_pong_after);
        self.samples.push_block(run.cycles.iter().map(|cycles| calibration.scale.ns_f64(*cycles as f64)).collect());
        self.runs.push((run, calibration.scale.ns_f64(ping_pong)));
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let text = RowText { name: self.name(), engine: ENGINE, what: self.what(), unit: Unit::Ns };
        let row = Row::of(text, &self.samples, 1, bootstrap).map(|mut row| {
            row.published = Self::published();
            row.notes = PLACEMENTS.into_iter().filter_map(|placement| self.note(placement)).collect();
            Finished { row, samples: self.samples.clone() }
        });
        let multiples = PLACEMENTS[..3].iter().filter_map(|placement| self.multiple(*placement, bootstrap));
        row.into_iter().chain(multiples).collect()
    }

    fn portray(&self, sketch: &mut Sketch<'_>) {
        for placement in PLACEMENTS {
            let of_class =
                || self.runs.iter().zip(self.samples.blocks()).filter(|((run, _), _)| run.placement == placement);
            let samples: Vec<f64> = of_class().flat_map(|(_, block)| block.iter().copied()).collect();
            let unknown = |_: usize| "unknown";
            let distribution =
                Distribution::of(self.name(), self.what(), &samples, sketch.step_ns, STALL_FROM_NS, unknown);
            if let Some(distribution) = distribution {
                let probes = of_class().map(|((run, _), _)| f64::midpoint(run.ping_pong_before, run.ping_pong_after));
                sketch.class(placement, &probes.collect::<Vec<_>>()).distributions.push(distribution);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in every placement, with no event to speak of.
    #[test]
    fn the_rows_next_to_nullring_say_placement_and_differences() {
        assert!(
            HandOver::published().iter().all(|published| published.what.contains("whose distance is not published"))
        );
        let run = |placement| RingRun {
            ping_pong_before: 30.0,
            ping_pong_after: 34.0,
            placement,
            skew_cycles: 0,
            cycles: vec![100; 200],
            checksum: 0,
            faults: 0,
        };
        let mut samples = Samples::new();
        PLACEMENTS.iter().for_each(|_| samples.push_block(vec![100.0; 200]));
        let runs = PLACEMENTS.into_iter().map(|placement| (run(placement), 32.0)).collect();
        let rows = HandOver { consumer: Consumer::Gate, orders: Vec::new(), runs, samples };
        let finished = rows.finish(&Bootstrap { resamples: 10, seed: 1 });
        let row = &finished[0].row;
        assert!(!row.published.is_empty() && row.notes.len() == PLACEMENTS.len(), "{:?}", row.notes);
        assert!(row.notes[0].starts_with("siblings: 1 runs, ping-pong 32.0 ns"), "{:?}", row.notes);
        assert!(finished[0].row.what.contains("the idle producer does nothing"), "{}", finished[0].row.what);
    }
}
