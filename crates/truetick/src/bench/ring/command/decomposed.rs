//! The median as a sum, and what moves which part of it.

use tt_floor::Placement;
use tt_floor::hand_over::HandOver;
use tt_meter::Scale;
use tt_report::ring::{Control, Decomposition, Term};
use tt_report::{Bootstrap, Estimate};

use super::latencies::{PLACEMENTS, mean};
use super::rounds::{Rounds, Variant};

/// Runs of a placement below which nothing is said of it.
const RUNS_MIN: usize = 5;

/// Names and meanings of the terms, in the order of [`Parts`].
const TERMS: [(&str, &str); 4] = [
    ("line_transfer", "half a round trip of a cache line between the same two threads, before and after the run"),
    ("clock", "the two stamps with nothing between them, on the consumer's core in the same run"),
    ("evaluator", "the consumer's work on an event at hand, on the same core in the same run, without the stamps"),
    ("rest", "what is left: the push, the look that finds the event, what a line with an event in it takes longer"),
];
/// Which of them is the consumer's work, and which is what is left.
const WORK: usize = 2;
const REST: usize = 3;

/// A run's median and its parts, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) p50: f64,
    pub(super) terms: [f64; 4],
    /// How much less the work takes where the processor overlaps it with what stands around it.
    pub(super) overlap: f64,
}

impl Parts {
    /// `None` where the run has no events or no probe.
    pub(super) fn of(run: &HandOver, scale: Scale) -> Option<Self> {
        let p50 = scale.ns_f64(run.p50_cycles()?);
        let line = scale.ns_f64(run.ping_pong_cycles()?);
        let (clock, work) = (scale.ns_f64(run.clock_cycles), scale.ns_f64(run.work_cycles));
        let overlap = (work - scale.ns_f64(run.stream_cycles)).max(0.0);
        Some(Self { p50, terms: [line, clock, work, p50 - line - clock - work], overlap })
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
    let step_ns = rounds.step_ns();
    let delay_ns = rounds.delay.ns();
    let change = |name, what: &str, variant, term, known_ns| {
        let change = Change { name, what: what.to_owned(), to: by_round(variant), term, known_ns };
        change.judge(&shipped, step_ns, bootstrap)
    };
    let added = format!("a delay of {delay_ns:.1} ns after the evaluator");
    // Some of it passes while the slot's line is fetched already, so that it adds less than its length.
    let pushed_late = format!("a delay of {delay_ns:.1} ns between the stamp and the push");
    let removed = "the evaluator left out, the whole event still read";
    let controls = [
        change("evaluator_removed", removed, Variant::Reader, WORK, None),
        change("delay_added", &added, Variant::Delayed, WORK, Some(delay_ns)),
        change("delay_before_push", &pushed_late, Variant::PushedLate, REST, None),
    ];
    Some(Decomposition {
        class: placement.name().to_owned(),
        runs: present.len(),
        p50_ns: estimate(&|parts| parts.p50)?,
        terms,
        controls: controls.into_iter().flatten().collect(),
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
    /// Which term should have changed.
    term: usize,
    /// By how much, where that is known beforehand.
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
        // All but the term that should move: where nothing is known beforehand, this must not.
        let others = moved(&|parts| parts.p50 - parts.terms[self.term])?;
        // What is left out takes its overlap with it: the median falls by less than the work alone takes.
        let overlap_ns = if self.known_ns.is_some() { 0.0 } else { -moved(&|parts| parts.overlap)?.value };
        let moved = terms(|index| moved(&|parts| parts.terms[index]))?;
        let expected_ns = self.known_ns.unwrap_or(p50.value);
        let tolerance_ns = tolerance_ns(expected_ns, step_ns);
        let overlapped = (0.0, overlap_ns.max(0.0));
        let holds = moved.iter().enumerate().all(|(index, term)| match (index == self.term, self.known_ns) {
            (true, Some(known_ns)) => meets(&term.ns, (known_ns, known_ns), tolerance_ns),
            (true, None) => meets(&others, overlapped, tolerance_ns),
            (false, None) if index == REST => meets(&term.ns, overlapped, tolerance_ns),
            (false, _) => meets(&term.ns, (0.0, 0.0), tolerance_ns),
        });
        let term = TERMS[self.term].0;
        Some(Control { name: self.name, what: self.what, term, p50_moved_ns: p50, moved, expected_ns, holds })
    }
}

/// A tenth of the clock's step, within which the median is interpolated, and a fiftieth of what should move, for the
/// delay's calibration.
fn tolerance_ns(expected_ns: f64, step_ns: f64) -> f64 {
    step_ns / 10.0 + 0.02 * expected_ns.abs()
}

/// Whether the interval meets what is expected, between two ends. It is widened by half, because many are judged at once
/// and one in twenty would fail without a reason, and by `tolerance`.
fn meets(estimate: &Estimate, (from, to): (f64, f64), tolerance: f64) -> bool {
    let low = estimate.value - 1.5 * (estimate.value - estimate.low) - tolerance;
    let high = estimate.value + 1.5 * (estimate.high - estimate.value) + tolerance;
    low <= to && from <= high
}

#[cfg(test)]
mod tests {
    use super::{Change, Parts, REST, WORK};
    use tt_report::Bootstrap;

    const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 5 };

    /// Runs of which the line, the evaluator and the median spread by some nanoseconds, from `base` on.
    fn runs(terms: [f64; 4], spread: f64) -> Vec<Option<Parts>> {
        let one = |round: usize| {
            let noise = |step: usize| spread * ((round * step % 11) as f64 / 5.0 - 1.0);
            let terms = [terms[0] + noise(3), terms[1] + noise(5) / 20.0, terms[2] + noise(7) / 20.0, terms[3]];
            let overlap = (terms[WORK] - 10.0).max(0.0);
            Some(Parts { p50: terms.iter().sum(), terms, overlap })
        };
        (0..22).map(one).collect()
    }

    fn holds(to: [f64; 4], term: usize, known_ns: Option<f64>) -> bool {
        let shipped = runs([30.0, 16.0, 15.0, 20.0], 2.0);
        let change = Change { name: "", what: String::new(), to: runs(to, 2.0), term, known_ns };
        change.judge(&shipped, 10.0, &BOOTSTRAP).unwrap().holds
    }

    #[test]
    fn the_sum_holds_where_one_term_moves_by_what_the_median_moves() {
        assert!(holds([30.0, 16.0, 65.0, 20.0], WORK, Some(50.0)));
        assert!(holds([30.0, 16.0, 15.0, 70.0], REST, Some(50.0)));
        assert!(holds([30.0, 16.0, 2.0, 20.0], WORK, None));
    }

    /// What moved the median is not found in its term: the work was timed without it, or something else moved as well.
    #[test]
    fn a_wrong_sum_does_not_hold() {
        assert!(!holds([30.0, 16.0, 15.0, 70.0], WORK, Some(50.0)));
        assert!(!holds([30.0, 16.0, 65.0, 20.0], REST, Some(50.0)));
        assert!(!holds([30.0, 16.0, 53.0, 32.0], WORK, Some(50.0)));
        assert!(!holds([30.0, 16.0, 15.0, 7.0], WORK, None));
        assert!(!holds([42.0, 16.0, 65.0, 20.0], WORK, Some(50.0)));
        assert!(!holds([30.0, 16.0, 15.0, 20.0], WORK, Some(50.0)));
    }

    #[test]
    fn too_few_pairs_say_nothing() {
        let to: Vec<_> = runs([30.0, 16.0, 65.0, 20.0], 2.0).into_iter().take(4).collect();
        let change = Change { name: "", what: String::new(), to, term: WORK, known_ns: Some(50.0) };
        assert!(change.judge(&runs([30.0, 16.0, 15.0, 20.0], 2.0), 10.0, &BOOTSTRAP).is_none());
    }
}
