//! The result of `truetick bench ring`, the source of text, JSON, CSV and pages.

mod ablation_plot;
mod ablation_text;
mod floor;
mod portrait;
mod simulated;
mod text;

use std::io;

use serde::Serialize;

pub use floor::{FloorComparison, FloorQuantile, FloorVerdict};
pub use simulated::Simulated;

use crate::report::{Environment, Estimate, Source};

/// The whole result of one `truetick bench ring`.
#[derive(Clone, Debug, Serialize)]
pub struct RingResult {
    /// Always `ring`: distinguishes this file from other results.
    pub truetick_bench: &'static str,
    /// Fewer events than NullRing's, wider intervals.
    pub quick: bool,
    /// Resamples per interval.
    pub resamples: u32,
    /// The machine, the build and what disturbed the run.
    pub environment: Environment,
    /// Warnings to read before the figures.
    pub warnings: Vec<String>,
    /// Requested and effective settings.
    pub settings: Settings,
    /// Latencies: one event in flight, then each open loop.
    pub loops: Vec<Loop>,
    /// Every short run of every loop and control in the order in which they were made; none is left out.
    pub runs: Vec<Run>,
    /// Times measured alone and controls, one entry for each placement with enough runs.
    pub references: Vec<References>,
    /// Stalls by cause, and those of the consumer's core alone.
    pub tail: Option<Tail>,
    /// Layouts of the ring, if they were measured.
    pub layouts: Vec<LayoutFigures>,
    /// The steps, where they were asked for.
    pub ablation: Option<Ablation>,
}

impl RingResult {
    /// Returns the quantiles at which the ring lies below its floor, each with its placement; empty if the check holds.
    #[must_use]
    pub fn below_floor(&self) -> Vec<String> {
        let failed = |of: &References| {
            let names = of.floors.iter().filter_map(FloorComparison::failure);
            names.map(|failure| format!("{failure} ({})", of.class)).collect::<Vec<_>>()
        };
        self.references.iter().flat_map(failed).collect()
    }

    /// Writes all of it as JSON.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *to, self)?;
        writeln!(to)
    }
}

/// Settings of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Recorded events of the one-in-flight loop, all runs together.
    pub events: u64,
    /// Slots of the ring.
    pub capacity: u64,
    /// Events before the recorded ones, in each run.
    pub warmup_events: u64,
    /// The producer's CPU and the consumer's.
    pub cpus: [usize; 2],
    /// The scheduling policy in force, or why the wanted one is not.
    pub priority: String,
    /// Whether the process's memory is locked, or why it is not.
    pub locked_memory: String,
    /// How many bytes of the process lie on huge pages, and the kernel's setting.
    pub huge_pages: String,
    /// The producer's action while it has no event.
    pub idle: String,
    /// How much the consumer's counter is ahead of the producer's, nanoseconds, mean over the runs. It is part of every
    /// latency between the two.
    pub skew_ns: f64,
    /// One cycle of the counter, nanoseconds.
    pub cycle_ns: f64,
    /// The smallest step of the counter, nanoseconds; medians are interpolated within it.
    pub step_ns: f64,
}

/// How events were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// One in flight, the next when the last is done: the time of the work alone.
    ServiceTime,
    /// At a fixed rate whatever becomes of the last: the time from the intended start.
    ResponseTime,
}

/// Latencies of one way of sending.
#[derive(Clone, Debug, Serialize)]
pub struct Loop {
    /// `one_in_flight`, `watched` (the same with both threads watched for stalls), `open_1000000` (events a second).
    pub name: String,
    /// The unit of the times.
    pub kind: LoopKind,
    /// Events a second that were asked for, open loop only.
    pub offered_per_s: Option<f64>,
    /// Events a second that came through.
    pub achieved_per_s: f64,
    /// Runs that reached less than 99 % of the offered rate; they are listed, and no figure is made of them.
    pub void_runs: usize,
    /// NullRing's figures for the same.
    pub published: Option<Figures>,
    /// All runs together (`all`), then each placement; empty where every run is void.
    pub classes: Vec<ClassFigures>,
}

/// Latencies of the runs of one placement.
#[derive(Clone, Debug, Serialize)]
pub struct ClassFigures {
    /// `all`, `siblings`, `same_cache`, `across_caches`, or `moved` where a run's two probes disagree.
    pub class: String,
    /// Runs in it.
    pub runs: usize,
    /// Recorded events in it.
    pub events: u64,
    /// Half a round trip of a cache line, nanoseconds, mean of the runs' probes.
    pub ping_pong_ns: Estimate,
    /// In cycles of the counter.
    pub cycles: Figures,
    /// In nanoseconds.
    pub ns: Figures,
    /// The average, nanoseconds, with the interval over runs.
    pub average_ns: Estimate,
    /// The median, nanoseconds, with the interval over runs.
    pub p50_ns: Estimate,
    /// Counts by latency.
    pub histogram: Vec<Bucket>,
}

/// NullRing's figures of a distribution; a quantile with fewer than 100 samples above it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Arithmetic mean.
    pub average: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Least.
    pub min: f64,
    /// Greatest; `None` where it was not published.
    pub max: Option<f64>,
}

/// Samples from `low_ns` to `high_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    /// Least latency, nanoseconds.
    pub low_ns: f64,
    /// Greatest latency, nanoseconds.
    pub high_ns: f64,
    /// Samples.
    pub count: u64,
}

/// One short run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The loop's name, or the control's.
    pub of: String,
    /// The round that it was made in, with a run of every other variant.
    pub round: usize,
    /// The placement.
    pub class: String,
    /// Half a round trip of a cache line before and after, nanoseconds.
    pub ping_pong_ns: [f64; 2],
    /// Recorded events.
    pub events: u64,
    /// Of the offered rate, per cent; `None` with one in flight. Below 99 the run is void.
    pub achieved_pct: Option<f64>,
    /// The run's median, nanoseconds.
    pub p50_ns: f64,
    /// Time between two consecutive timestamps, nanoseconds.
    pub clock_ns: f64,
    /// The consumer's work alone on the same core, nanoseconds.
    pub work_ns: f64,
    /// How much the consumer's counter was ahead, nanoseconds.
    pub skew_ns: f64,
}

/// Times that were measured alone in the same runs, and controls. They are no parts of the median: an event and a
/// bounced cache line overlap differently, so the differences to the median have no meaning.
#[derive(Clone, Debug, Serialize)]
pub struct References {
    /// The placement.
    pub class: String,
    /// Runs of each variant.
    pub runs: usize,
    /// The median of a run, mean over the runs.
    pub p50_ns: Estimate,
    /// `line_round_trip_half`, `clock`, `evaluator`.
    pub alone: Vec<Alone>,
    /// Variants of the loop with one change.
    pub controls: Vec<Control>,
    /// Difference of the medians of two equal builds: no effect below its interval is one.
    pub again_ns: Option<Estimate>,
    /// The ring next to one cache line.
    pub floors: Vec<FloorComparison>,
    /// What the median is made of.
    pub parts: Option<Parts>,
    /// Whether delays add.
    pub slopes: Vec<Slope>,
}

/// Two changes, each made with and without the other. If they overlap, the two figures of each are bounds and no sum.
///
/// Line, first ring and second evaluator sum to the whole, and so do line, first ring, first evaluator and overlap.
#[derive(Clone, Debug, Serialize)]
pub struct Parts {
    /// One cache line, nothing judged: the machine's share, with both stamps.
    pub floor_ns: Estimate,
    /// The ring in place of the line, without the evaluator and with it.
    pub ring_ns: [Estimate; 2],
    /// The evaluator, on the line and on the ring.
    pub evaluator_ns: [Estimate; 2],
    /// By how much both together differ from the sum of each alone: the residual.
    pub overlap_ns: Estimate,
    /// The ring with the evaluator, in the same rounds.
    pub whole_ns: Estimate,
    /// What two equal builds differ by.
    pub noise_ns: f64,
    /// Whether the residual is none.
    pub adds_up: bool,
}

/// How the median answers to delays of several lengths.
#[derive(Clone, Debug, Serialize)]
pub struct Slope {
    /// Where the delay is.
    pub name: &'static str,
    /// The delays, nanoseconds; the first is none.
    pub delays_ns: Vec<f64>,
    /// Nanoseconds of the median for each nanosecond of delay.
    pub slope: Estimate,
    /// Whether the interval contains 1.
    pub is_linear: bool,
}

/// A time that was measured alone.
#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    /// Its name.
    pub name: &'static str,
    /// How it was measured.
    pub what: &'static str,
    /// Nanoseconds.
    pub ns: Estimate,
}

/// Change of the median when one thing in the loop is changed: differences of runs of the same round.
#[derive(Clone, Debug, Serialize)]
pub struct Control {
    /// `evaluator_removed`, `delay_added`, `delay_before_push`.
    pub name: &'static str,
    /// The change.
    pub what: String,
    /// Change of the median.
    pub p50_moved_ns: Estimate,
    /// The change that was made, where it is known.
    pub expected_ns: Option<f64>,
    /// Whether the interval contains the expected change; `None` where none is known.
    pub is_met: Option<bool>,
    /// Whether the change is no larger than that between two equal builds.
    pub is_none: bool,
}

/// Events that took longer than `threshold_ns`, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Tail {
    /// Above this an event is a stall, nanoseconds.
    pub threshold_ns: f64,
    /// Seconds in which events were in flight and recorded.
    pub seconds: f64,
    /// Stalls by cause; `none_seen` where neither core had one meanwhile.
    pub causes: Vec<CauseCount>,
    /// Events that came while a watch asked the kernel: they say nothing, and count nowhere else here.
    pub asked: u64,
    /// Seconds for which the consumer's core span alone.
    pub floor_seconds: f64,
    /// Gaps of that spinning beyond the same threshold, by cause: the machine's own share.
    pub floor_causes: Vec<CauseCount>,
    /// Every stall of the ring, the longest first.
    pub stalls: Vec<Stall>,
    /// Stalls beyond those listed: only so many are kept.
    pub stalls_not_listed: u64,
}

/// Stalls of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct CauseCount {
    /// The cause.
    pub cause: String,
    /// How many.
    pub count: u64,
    /// How many in a second.
    pub per_s: f64,
    /// All of them together, nanoseconds.
    pub total_ns: f64,
    /// The longest, nanoseconds.
    pub max_ns: f64,
}

/// One event that took longer.
#[derive(Clone, Debug, Serialize)]
pub struct Stall {
    /// Index into the result's runs.
    pub run: usize,
    /// The event's number among the run's recorded ones.
    pub iteration: u64,
    /// Its latency, nanoseconds.
    pub ns: f64,
    /// The cause.
    pub cause: String,
}

/// A layout of the ring in one placement, one event in flight and as fast as it goes.
#[derive(Clone, Debug, Serialize)]
pub struct LayoutFigures {
    /// `sequence_in_slot` is the shipped one.
    pub name: &'static str,
    /// Which cache lines an event moves.
    pub what: &'static str,
    /// Bytes that an event carries.
    pub event_bytes: usize,
    /// The placement.
    pub class: String,
    /// Runs in it.
    pub runs: usize,
    /// From the stamp before the push to the stamp after all of it was read; the median of a run, mean over the runs.
    pub p50_ns: Estimate,
    /// That as a multiple of the run's own ping-pong.
    pub p50_per_ping_pong: Estimate,
    /// As fast as they go, million events a second.
    pub stream_million_per_s: Estimate,
}

/// Ablation of the shipped ring: steps from a naive ring, cumulative, and each left out of the final build.
#[derive(Clone, Debug, Serialize)]
pub struct Ablation {
    /// Runs of each build.
    pub runs: usize,
    /// Recorded events of each run at most.
    pub events: u64,
    /// The placement that medians are compared in; runs of threads that are not pinned count in any.
    pub class: String,
    /// The final build's median: the shipped ring and gate.
    pub final_p50_ns: Estimate,
    /// The steps in order.
    pub steps: Vec<AblationStep>,
    /// The ablation's own ring with every switch on. It should equal the shipped one.
    pub control: StepFigures,
    /// The control's median minus the final build's: what the comparison may be off by.
    pub control_ns: Option<Estimate>,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct AblationStep {
    /// 1 to 11.
    pub number: u8,
    /// `naive_clock`, `rdtsc`, ...
    pub name: &'static str,
    /// The effect of the switch.
    pub what: &'static str,
    /// NullRing's chart; `None` for the steps that only its text has.
    pub published_p50_ns: Option<f64>,
    /// Where the published figure comes from.
    pub published_source: &'static str,
    /// The code of a build with the step.
    pub sources: &'static [Source],
    /// The code in its place without the step; empty where it is only left out.
    pub sources_without: &'static [Source],
    /// This and every earlier step on.
    pub cumulative: StepFigures,
    /// Against the step before: negative is quicker; `None` for the first.
    pub change_ns: Option<Estimate>,
    /// The final build without this step; `None` where that is the final build.
    pub without: Option<StepFigures>,
    /// Time added by the final build without the step; positive if the step helps.
    pub alone_ns: Option<Estimate>,
    /// Whether the step helps on this machine.
    pub verdict: Verdict,
    /// The verdict and what was not in force, in words.
    pub note: String,
}

/// Whether a step helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The starting point.
    Start,
    /// The interval of the change lies below zero by more than the control is off.
    Helps,
    /// The interval contains zero, or the change is within what the control is off.
    Undecided,
    /// The interval of the change lies above zero by more than the control is off.
    Hurts,
    /// The OS refused what the step needs.
    NotAvailable,
}

/// Latencies of one build.
#[derive(Clone, Debug, Serialize)]
pub struct StepFigures {
    /// Runs that count.
    pub runs: usize,
    /// The median of a run, nanoseconds, mean over the runs.
    pub p50_ns: Estimate,
    /// All events of those runs together, nanoseconds.
    pub ns: Figures,
}
