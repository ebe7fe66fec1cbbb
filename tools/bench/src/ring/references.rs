//! Times measured alone in the runs of the ring, and controls of the loop.

use crate::loops::hand_over::HandOver;
use crate::machine::Placement;
use crate::report::ring::{Alone, Control, References};
use crate::report::{Bootstrap, Estimate};
use tt_meter::Scale;

use super::latencies::{PLACEMENTS, mean};
use super::model::{Model, is_none, size};
use super::rounds::{Rounds, Variant};

/// Runs in a placement below which it has no entry.
pub(crate) const RUNS_MIN: usize = 5;

/// Names and meanings of the times, in the order of [`Times::alone`].
const ALONE: [(&str, &str); 3] = [
    (
        "line_round_trip_half",
        "half a round trip of a cache line between the same two threads, before and after the run",
    ),
    ("clock", "two stamps with nothing between them, on the consumer's core in the same run"),
    ("evaluator", "the consumer's work on an event that is in its cache, on the same core in the same run"),
];

/// A run's median and the times measured alone, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    p50: f64,
    alone: [f64; 3],
}

impl Times {
    /// `None` where the run has no events or no probe.
    fn of(run: &HandOver, scale: Scale) -> Option<Self> {
        let alone = [run.ping_pong_cycles()?, run.clock_cycles, run.work_cycles].map(|cycles| scale.ns_f64(cycles));
        Some(Self { p50: scale.ns_f64(run.p50_cycles()?), alone })
    }
}

/// Returns an entry for each placement with enough runs.
pub(super) fn of_each_placement(rounds: &Rounds, bootstrap: &Bootstrap) -> Vec<References> {
    PLACEMENTS
        .into_iter()
        .filter(|placement| *placement != Placement::Moved)
        .filter_map(|placement| of(rounds, placement, bootstrap))
        .collect()
}

fn of(rounds: &Rounds, placement: Placement, bootstrap: &Bootstrap) -> Option<References> {
    let by_round = |variant| times_by_round(rounds, variant, placement);
    let shipped = by_round(Variant::Gate);
    let present: Vec<Times> = shipped.iter().copied().flatten().collect();
    if present.len() < RUNS_MIN {
        return None;
    }
    let estimate = |of: &dyn Fn(&Times) -> f64| mean(&present.iter().map(of).collect::<Vec<_>>(), bootstrap);
    let alone = ALONE.iter().enumerate().map(|(index, (name, what))| {
        let ns = estimate(&|times| times.alone[index])?;
        Some(Alone { name, what, ns })
    });
    let model = Model { rounds, placement, bootstrap };
    let noise_ns = model.noise(0.5).map(size);
    let p50s = |variant| by_round(variant).iter().map(|times| times.map(|times| times.p50)).collect::<Vec<_>>();
    let shipped_p50s = p50s(Variant::Gate);
    let change = |name, what: String, variant, expected_ns| {
        let change = Change { name, what, expected_ns, noise_ns };
        change.judge(&shipped_p50s, &p50s(variant), rounds.step_ns(), bootstrap)
    };
    let removed = "the evaluator left out, the whole event still read".to_owned();
    let held = "the idle producer keeps the next slot's line".to_owned();
    let unknown = [
        change("evaluator_removed", removed, Variant::Reader, None),
        change("hold_next", held, Variant::HoldsNext, None),
    ];
    let known = rounds.delays.iter().enumerate().flat_map(|(which, delay)| {
        let ns = delay.ns();
        let after = format!("a delay of {ns:.1} ns after the evaluator");
        let before = format!("a delay of {ns:.1} ns between the stamp and the push");
        [
            change("delay_added", after, Variant::Delayed(which), Some(ns)),
            change("delay_before_push", before, Variant::PushedLate(which), Some(ns)),
        ]
    });
    let controls = unknown.into_iter().chain(known);
    Some(References {
        class: placement.name().to_owned(),
        runs: present.len(),
        p50_ns: estimate(&|times| times.p50)?,
        alone: alone.collect::<Option<_>>()?,
        controls: controls.flatten().collect(),
        again_ns: model.noise(0.5),
        floors: model.floors(),
        parts: model.parts(),
        slopes: model.slopes(),
    })
}

/// A run of each round, `None` where the cores were elsewhere.
fn times_by_round(rounds: &Rounds, variant: Variant, placement: Placement) -> Vec<Option<Times>> {
    let made = rounds.made.iter().filter(|made| made.variant == variant);
    made.map(|made| {
        let is_there = made.run.placement == placement;
        is_there.then(|| Times::of(&made.run, rounds.calibration.scale)).flatten()
    })
    .collect()
}

/// One change of the loop.
struct Change {
    name: &'static str,
    what: String,
    /// Its size, where it is known.
    expected_ns: Option<f64>,
    /// The effect of no change, if it was measured.
    noise_ns: Option<f64>,
}

impl Change {
    /// Compares medians of runs of the same round in the same placement.
    fn judge(self, from: &[Option<f64>], to: &[Option<f64>], step_ns: f64, bootstrap: &Bootstrap) -> Option<Control> {
        let pairs = from.iter().zip(to).filter_map(|(from, to)| from.zip(*to));
        let moved: Vec<f64> = pairs.map(|(from, to)| to - from).collect();
        if moved.len() < RUNS_MIN {
            return None;
        }
        let p50_moved_ns = mean(&moved, bootstrap)?;
        let Self { name, what, expected_ns, noise_ns } = self;
        let is_met = expected_ns.map(|expected_ns| contains(&p50_moved_ns, expected_ns, step_ns));
        let is_none = noise_ns.is_some_and(|noise_ns| is_none(&p50_moved_ns, noise_ns));
        Some(Control { name, what, p50_moved_ns, expected_ns, is_met, is_none })
    }
}

/// Whether the interval contains `expected_ns`, with a tolerance of a tenth of the clock's step, within which medians are
/// interpolated, and of 2 % for the calibration of the delay.
fn contains(estimate: &Estimate, expected_ns: f64, step_ns: f64) -> bool {
    let tolerance_ns = step_ns / 10.0 + 0.02 * expected_ns.abs();
    estimate.low - tolerance_ns <= expected_ns && expected_ns <= estimate.high + tolerance_ns
}

#[cfg(test)]
mod tests {
    use super::Change;
    use crate::report::Bootstrap;
    use crate::report::ring::Control;

    /// Medians of 22 runs that spread by 2 ns around `p50_ns`.
    fn runs(p50_ns: f64, stride: usize) -> Vec<Option<f64>> {
        (0..22).map(|round| Some(p50_ns + 2.0 * ((round * stride % 11) as f64 / 5.0 - 1.0))).collect()
    }

    fn judge(to: &[Option<f64>], expected_ns: Option<f64>) -> Option<Control> {
        let change = Change { name: "", what: String::new(), expected_ns, noise_ns: Some(3.0) };
        change.judge(&runs(80.0, 3), to, 10.0, &Bootstrap { resamples: 500, seed: 5 })
    }

    #[test]
    fn a_known_delay_moves_the_median_by_its_length() {
        assert_eq!(judge(&runs(130.0, 5), Some(50.0)).unwrap().is_met, Some(true));
        for moved_ns in [23.0, 44.0, 56.0, 73.0] {
            assert_eq!(judge(&runs(80.0 + moved_ns, 5), Some(50.0)).unwrap().is_met, Some(false), "{moved_ns}");
        }
    }

    #[test]
    fn a_change_of_unknown_size_is_not_judged() {
        let control = judge(&runs(70.0, 5), None).unwrap();
        assert_eq!((control.expected_ns, control.is_met), (None, None));
        assert!((control.p50_moved_ns.value + 10.0).abs() < 1.0 && !control.is_none);
        assert!(judge(&runs(82.0, 5), None).unwrap().is_none, "two equal builds differ by 3 ns");
    }

    #[test]
    fn fewer_than_five_pairs_have_no_control() {
        let to: Vec<_> = runs(130.0, 5).into_iter().take(4).collect();
        assert!(judge(&to, Some(50.0)).is_none());
    }
}
