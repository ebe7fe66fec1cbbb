//! The median as a sum, and what moves which part of it.

use tt_floor::Placement;
use tt_floor::hand_over::HandOver;
use tt_meter::Scale;
use tt_report::ring::{Control, Decomposition, Term};
use tt_report::{Bootstrap, Estimate};

use super::latencies::{PLACEMENTS, mean};
use super::rounds::{Rounds, Variant};

/// Runs of a placement below which nothing is said of it.
const RUNS_MIN: usize = 3;

/// Names and meanings of the terms, in the order of [`Parts`].
const TERMS: [(&str, &str); 4] = [
    ("line_transfer", "half a round trip of a cache line between the same two threads, before and after the run"),
    ("clock", "the two stamps with nothing between them, on the consumer's core in the same run"),
    ("evaluator", "the consumer's work on an event at hand, on the same core in the same run, without the stamps"),
    ("rest", "what is left: the push, the look that finds the event, what a line with an event in it takes longer"),
];
/// Which of them is the consumer's work.
const WORK: usize = 2;

/// A run's median and its parts, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) p50: f64,
    pub(super) terms: [f64; 4],
}

impl Parts {
    /// `None` where the run has no events or no probe.
    pub(super) fn of(run: &HandOver, scale: Scale) -> Option<Self> {
        let p50 = scale.ns_f64(run.p50_cycles()?);
        let line = scale.ns_f64(run.ping_pong_cycles()?);
        let (clock, work) = (scale.ns_f64(run.clock_cycles), scale.ns_f64(run.work_cycles));
        Some(Self { p50, terms: [line, clock, work, p50 - line - clock - work] })
    }
}

/// The decomposition in each placement that enough runs were made in.
pub(super) fn of_each_placement(rounds: &Rounds, bootstrap: &Bootstrap) -> Vec<Decomposition> {
    PLACEMENTS
        .into_iter()
        .filter(|placement| *placement != Placement::Moved)
        .filter_map(|placement| of(rounds, placement, bootstrap))
        .collect()
}

fn of(rounds: &Rounds, placement: Placement, bootstrap: &Bootstrap) -> Option<Decomposition> {
    let by_round = |variant| parts_by_round(rounds, variant, placement);
    let shipped = by_round(Variant::Gate);
    let present: Vec<Parts> = shipped.iter().copied().flatten().collect();
    if present.len() < RUNS_MIN {
        return None;
    }
    let estimate = |of: &dyn Fn(&Parts) -> f64| mean(&present.iter().map(of).collect::<Vec<_>>(), bootstrap);
    let terms = terms(|index| estimate(&|parts| parts.terms[index]))?;
    let removed = "the evaluator left out, the whole event still read".to_owned();
    let added = format!("a delay of {:.1} ns added to the evaluator", rounds.delay.ns());
    let step_ns = rounds.step_ns();
    let controls = [
        Change { name: "evaluator_removed", what: removed, to: by_round(Variant::Reader), known_ns: None },
        Change { name: "delay_added", what: added, to: by_round(Variant::Delayed), known_ns: Some(rounds.delay.ns()) },
    ];
    Some(Decomposition {
        class: placement.name().to_owned(),
        runs: present.len(),
        p50_ns: estimate(&|parts| parts.p50)?,
        terms,
        controls: controls.into_iter().filter_map(|change| change.judge(&shipped, step_ns, bootstrap)).collect(),
    })
}

/// A run of each round, `None` where the cores were elsewhere.
fn parts_by_round(rounds: &Rounds, variant: Variant, placement: Placement) -> Vec<Option<Parts>> {
    let made = rounds.made.iter().filter(|made| made.variant == variant);
    made.map(|made| {
        let is_there = made.run.placement == placement;
        is_there.then(|| Parts::of(&made.run, rounds.calibration.scale)).flatten()
    })
    .collect()
}

fn terms(of: impl Fn(usize) -> Option<Estimate>) -> Option<Vec<Term>> {
    TERMS.iter().enumerate().map(|(index, (name, what))| Some(Term { name, what, ns: of(index)? })).collect()
}

/// One thing that is different.
struct Change {
    name: &'static str,
    what: String,
    to: Vec<Option<Parts>>,
    /// By how much the work should have changed, where that is known beforehand.
    known_ns: Option<f64>,
}

impl Change {
    /// Differences between neighbours: runs of one round in the same placement.
    fn judge(self, from: &[Option<Parts>], step_ns: f64, bootstrap: &Bootstrap) -> Option<Control> {
        let pairs: Vec<(Parts, Parts)> = from.iter().zip(&self.to).filter_map(|(from, to)| from.zip(*to)).collect();
        if pairs.len() < RUNS_MIN {
            return None;
        }
        let moved = |of: &dyn Fn(&Parts) -> f64| {
            mean(&pairs.iter().map(|(from, to)| of(to) - of(from)).collect::<Vec<_>>(), bootstrap)
        };
        let p50 = moved(&|parts| parts.p50)?;
        let moved = terms(|index| moved(&|parts| parts.terms[index]))?;
        let expected_ns = self.known_ns.unwrap_or(p50.value);
        let holds = moved.iter().enumerate().all(|(index, term)| {
            let expected = if index == WORK { expected_ns } else { 0.0 };
            is_within(&term.ns, expected, tolerance_ns(expected_ns, step_ns))
        });
        Some(Control { name: self.name, what: self.what, p50_moved_ns: p50, moved, expected_ns, holds })
    }
}

fn tolerance_ns(expected_ns: f64, step_ns: f64) -> f64 {
    1.0 + step_ns / 4.0 + 0.03 * expected_ns.abs()
}

/// Whether `expected` lies in the interval, widened by what the clock cannot tell.
fn is_within(estimate: &Estimate, expected: f64, tolerance: f64) -> bool {
    (estimate.low - tolerance..=estimate.high + tolerance).contains(&expected)
}
