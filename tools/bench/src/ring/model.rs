//! What a latency through the ring is made of: its floor, changes that are made on purpose, and whether their effects add
//! up. Every figure is a difference of runs of one round, in one placement.

use crate::machine::{Placement, within_step};
use crate::report::ring::{FloorComparison, Parts, Slope};
use crate::report::{Bootstrap, Estimate};

use super::floor_check::{FloorRuns, compare};
use super::latencies::mean;
use super::references::RUNS_MIN;
use super::rounds::{Rounds, Variant};

/// The runs of one placement.
pub(crate) struct Model<'a> {
    pub(crate) rounds: &'a Rounds,
    pub(crate) placement: Placement,
    pub(crate) bootstrap: &'a Bootstrap,
}

impl Model<'_> {
    /// A quantile of each round's run in nanoseconds, `None` where the cores were elsewhere.
    fn by_round(&self, variant: Variant, q: f64) -> Vec<Option<f64>> {
        let quantile = |cycles: &[u64]| within_step(&mut cycles.to_vec(), q);
        let cycles = self.cycles_by_round(variant).into_iter().map(|cycles| cycles.and_then(quantile));
        cycles.map(|cycles| cycles.map(|cycles| self.rounds.calibration.scale.ns_f64(cycles))).collect()
    }

    /// The mean over rounds of what `of` makes of the quantile of each of `variants`.
    fn over_rounds<const N: usize>(
        &self,
        variants: [Variant; N],
        q: f64,
        of: impl Fn([f64; N]) -> f64,
    ) -> Option<Estimate> {
        mean_of_rounds(&variants.map(|variant| self.by_round(variant, q)), self.bootstrap, of)
    }

    /// The difference of two equal builds: what a comparison of different ones must exceed.
    pub(crate) fn noise(&self, q: f64) -> Option<Estimate> {
        self.over_rounds([Variant::Gate, Variant::Again], q, |[gate, again]| again - gate)
    }

    /// Compares the ring with one cache line at several quantiles.
    pub(crate) fn floors(&self) -> Vec<FloorComparison> {
        let scale = self.rounds.calibration.scale;
        let pair = |name, ring, floor| {
            let runs = FloorRuns {
                ring: self.cycles_by_round(ring),
                floor: self.cycles_by_round(floor),
                equal: [Variant::Gate, Variant::Again].map(|variant| self.cycles_by_round(variant)),
            };
            compare(name, &runs, scale, self.bootstrap)
        };
        let idle = pair("idle producer does nothing", Variant::Gate, Variant::Floor);
        let holding = pair("idle producer keeps the line", Variant::HoldsNext, Variant::FloorHoldsNext);
        idle.into_iter().chain(holding).collect()
    }

    /// The times of each round's run in cycles, `None` where the cores were elsewhere.
    fn cycles_by_round(&self, variant: Variant) -> Vec<Option<&[u64]>> {
        let made = self.rounds.made.iter().filter(|made| made.variant == variant);
        made.map(|made| (made.run.placement == self.placement).then_some(made.run.cycles.as_slice())).collect()
    }

    /// Two changes, each with and without the other: the ring in place of the line, and the evaluator.
    pub(crate) fn parts(&self) -> Option<Parts> {
        let all = [Variant::FloorReader, Variant::Floor, Variant::Reader, Variant::Gate];
        parts_of(&all.map(|variant| self.by_round(variant, 0.5)), size(self.noise(0.5)?), self.bootstrap)
    }

    /// By how much a delay of one nanosecond moves the median, over all delays; 1 if delays add.
    pub(crate) fn slopes(&self) -> Vec<Slope> {
        let delays: Vec<f64> = self.rounds.delays.iter().map(|delay| delay.ns()).collect();
        let slope = |name, place: fn(usize) -> Variant| {
            let variants = [Variant::Gate].into_iter().chain((0..delays.len()).map(place));
            let medians: Vec<_> = variants.map(|variant| self.by_round(variant, 0.5)).collect();
            let points: Vec<f64> = [0.0].into_iter().chain(delays.iter().copied()).collect();
            let slope = slope_of(&points, &medians, self.bootstrap)?;
            let is_linear = slope.low <= 1.0 && 1.0 <= slope.high;
            Some(Slope { name, delays_ns: points, slope, is_linear })
        };
        let after = slope("after the evaluator", Variant::Delayed);
        let before = slope("between the stamp and the push", Variant::PushedLate);
        after.into_iter().chain(before).collect()
    }
}

/// The parts of the medians of four builds, each over the rounds in which all four have a run: line read, line judged,
/// ring read, ring judged.
fn parts_of(medians: &[Vec<Option<f64>>; 4], noise_ns: f64, bootstrap: &Bootstrap) -> Option<Parts> {
    let of = |of: fn([f64; 4]) -> f64| mean_of_rounds(medians, bootstrap, of);
    let overlap_ns = of(|[floor, judged, ring, both]| both - ring - judged + floor)?;
    Some(Parts {
        floor_ns: of(|[floor, ..]| floor)?,
        ring_ns: [of(|[floor, _, ring, _]| ring - floor)?, of(|[_, judged, _, both]| both - judged)?],
        evaluator_ns: [of(|[floor, judged, ..]| judged - floor)?, of(|[_, _, ring, both]| both - ring)?],
        overlap_ns,
        whole_ns: of(|[.., both]| both)?,
        noise_ns,
        adds_up: is_none(&overlap_ns, noise_ns),
    })
}

/// Whether an effect is no larger than that between two equal builds, or may be zero.
pub(crate) fn is_none(effect: &Estimate, noise_ns: f64) -> bool {
    (effect.low <= 0.0 && effect.high >= 0.0) || effect.value.abs() <= noise_ns
}

/// The end of an interval that is further from zero.
pub(crate) fn size(estimate: Estimate) -> f64 {
    estimate.low.abs().max(estimate.high.abs())
}

/// The mean of `of` over the rounds in which every series has a value; `None` where these are too few.
pub(crate) fn mean_of_rounds<const N: usize>(
    series: &[Vec<Option<f64>>; N],
    bootstrap: &Bootstrap,
    of: impl Fn([f64; N]) -> f64,
) -> Option<Estimate> {
    let rounds = series.iter().map(Vec::len).min()?;
    let present = (0..rounds).filter_map(|round| {
        let mut values = [0.0; N];
        for (value, series) in values.iter_mut().zip(series) {
            *value = series[round]?;
        }
        Some(of(values))
    });
    let values: Vec<f64> = present.collect();
    if values.len() < RUNS_MIN { None } else { mean(&values, bootstrap) }
}

/// The slope of a line through each round's medians, mean over the rounds that have all of them.
fn slope_of(points: &[f64], medians: &[Vec<Option<f64>>], bootstrap: &Bootstrap) -> Option<Estimate> {
    let x_mean = points.iter().sum::<f64>() / points.len() as f64;
    let squares: f64 = points.iter().map(|x| (x - x_mean).powi(2)).sum();
    let rounds = medians.iter().map(Vec::len).min()?;
    let slopes = (0..rounds).filter_map(|round| {
        let of_round: Option<Vec<f64>> = medians.iter().map(|of| of[round]).collect();
        let products: f64 = points.iter().zip(of_round?).map(|(x, y)| (x - x_mean) * y).sum();
        Some(products / squares)
    });
    let slopes: Vec<f64> = slopes.collect();
    if slopes.len() < RUNS_MIN { None } else { mean(&slopes, bootstrap) }
}

#[cfg(test)]
mod tests {
    use super::{Bootstrap, Estimate, Parts, is_none, mean_of_rounds, parts_of, size, slope_of};

    const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 5 };

    /// 22 runs that spread by 2 ns around `p50_ns`; each round has its own shift as well, as the placement of a round has.
    fn runs(p50_ns: f64, stride: usize) -> Vec<Option<f64>> {
        let spread = |round: usize| 2.0 * ((round * stride % 11) as f64 / 5.0 - 1.0) + 10.0 * (round % 3) as f64;
        (0..22).map(|round| Some(p50_ns + spread(round))).collect()
    }

    #[test]
    fn delays_that_add_have_the_slope_one_and_hidden_ones_less() {
        let points = [0.0, 25.0, 50.0, 100.0, 200.0];
        let slope = |moved: fn(f64) -> f64| {
            let medians = points.iter().zip([3, 5, 7, 2, 9]).map(|(x, stride)| runs(80.0 + moved(*x), stride));
            slope_of(&points, &medians.collect::<Vec<_>>(), &BOOTSTRAP).unwrap()
        };
        let adding = slope(|x| x);
        assert!(adding.low <= 1.0 && 1.0 <= adding.high && adding.high - adding.low < 0.05, "{adding:?}");
        // The first 40 ns pass while the line is on its way.
        let hidden = slope(|x| (x - 40.0).max(0.0));
        assert!(hidden.high < 0.95, "{hidden:?}");
        // What the finding had: 50 ns that move the median by 73.
        let more = slope(|x| x * 1.46);
        assert!(more.low > 1.4, "{more:?}");
    }

    #[test]
    fn differences_of_a_round_do_not_see_what_moves_the_round() {
        let above = mean_of_rounds(&[runs(80.0, 3), runs(92.0, 3)], &BOOTSTRAP, |[from, to]| to - from).unwrap();
        assert!((above.value - 12.0).abs() < 1e-9 && above.high - above.low < 1e-9, "{above:?}");
    }

    #[test]
    fn a_round_without_every_run_does_not_count() {
        let mut some = runs(80.0, 3);
        some[4..].fill(None);
        assert!(mean_of_rounds(&[some.clone(), runs(80.0, 3)], &BOOTSTRAP, |[a, b]| a - b).is_none());
        some[4] = Some(80.0);
        assert!(mean_of_rounds(&[some, runs(80.0, 3)], &BOOTSTRAP, |[a, b]| a - b).is_some());
    }

    #[test]
    fn parts_sum_to_the_whole_of_the_same_rounds() {
        let mut whole = runs(200.0, 9);
        // Rounds without one of the builds move the mean of the whole alone.
        let mut line = runs(120.0, 3);
        (line[0], line[5], whole[0], whole[5]) = (None, None, Some(900.0), Some(700.0));
        let parts = parts_of(&[line, runs(131.0, 5), runs(150.0, 7), whole], 1.0, &BOOTSTRAP).unwrap();
        let Parts { floor_ns, ring_ns, evaluator_ns, overlap_ns, whole_ns, adds_up, .. } = parts;
        let sum = |estimates: &[Estimate]| estimates.iter().map(|estimate| estimate.value).sum::<f64>();
        assert!((whole_ns.value - 209.0).abs() < 5.0, "{whole_ns:?}");
        assert!((sum(&[floor_ns, ring_ns[0], evaluator_ns[1]]) - whole_ns.value).abs() < 1e-9);
        assert!((sum(&[floor_ns, ring_ns[0], evaluator_ns[0], overlap_ns]) - whole_ns.value).abs() < 1e-9);
        assert!(!adds_up && overlap_ns.value > 30.0, "{overlap_ns:?}");
    }

    #[test]
    fn an_effect_within_the_noise_of_equal_builds_is_none() {
        let estimate = |value| Estimate { value, low: value - 1.0, high: value + 1.0 };
        assert_eq!(size(estimate(-3.0)), 4.0);
        assert!(is_none(&estimate(0.5), 0.0) && is_none(&estimate(3.0), 3.0));
        assert!(!is_none(&estimate(3.0), 2.9) && !is_none(&estimate(-3.0), 2.9));
    }
}
