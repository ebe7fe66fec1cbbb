//! The check that the ring is no quicker than the physical floor: at p1, p10, p50 and p90 not below it by more than two
//! equal builds differ.

use tt_meter::Scale;

use super::model::{mean_of_rounds, size};
use crate::machine::within_step;
use crate::report::Bootstrap;
use crate::report::ring::{FloorComparison, FloorQuantile};

/// The compared quantiles.
const QUANTILES: [(&str, f64); 4] = [("p1", 0.01), ("p10", 0.1), ("p50", 0.5), ("p90", 0.9)];

/// Times of each round's run in cycles; `None` where the round has none that counts.
pub(super) struct FloorRuns<'a> {
    pub(super) ring: Vec<Option<&'a [u64]>>,
    pub(super) floor: Vec<Option<&'a [u64]>>,
    /// Two equal builds: the A/A control.
    pub(super) equal: [Vec<Option<&'a [u64]>>; 2],
}

/// Compares every quantile; `None` where too few rounds have all that it needs.
pub(super) fn compare(
    name: &'static str,
    runs: &FloorRuns<'_>,
    scale: Scale,
    bootstrap: &Bootstrap,
) -> Option<FloorComparison> {
    let quantiles = QUANTILES.iter().map(|(quantile, q)| {
        let of = |runs: &[Option<&[u64]>]| {
            let cycles = runs.iter().map(|cycles| within_step(&mut cycles.as_ref()?.to_vec(), *q));
            cycles.map(|cycles| cycles.map(|cycles| scale.ns_f64(cycles))).collect::<Vec<_>>()
        };
        let (ring, floor) = (of(&runs.ring), of(&runs.floor));
        let equal = [of(&runs.equal[0]), of(&runs.equal[1])];
        let noise_ns = size(mean_of_rounds(&equal, bootstrap, |[one, other]| other - one)?);
        let above_ns = mean_of_rounds(&[ring, floor.clone()], bootstrap, |[ring, floor]| ring - floor)?;
        let floor_ns = mean_of_rounds(&[floor], bootstrap, |[floor]| floor)?;
        Some(FloorQuantile::new(quantile, floor_ns, above_ns, noise_ns))
    });
    Some(FloorComparison::new(name, quantiles.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ring::FloorVerdict;

    const ROUNDS: u64 = 20;
    const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 5 };

    /// Ranks from which the times lie around the next plateau: p1, p10, p50 and p90 have one each.
    const PLATEAUS: [(u64, u64); 4] = [(0, 1_000), (50, 2_000), (300, 3_000), (700, 4_000)];

    /// 1,000 times of each round, `moved` added to those of each plateau. Rounds differ by up to 3, as equal builds do.
    fn made_up(moved: [i64; 4], stride: u64) -> Vec<Vec<u64>> {
        let time = |round: u64, rank: u64| {
            let plateau = PLATEAUS.iter().rposition(|(from, _)| rank >= *from).unwrap();
            let spread = rank % 7 + round * stride % 4;
            (PLATEAUS[plateau].1 + spread).checked_add_signed(moved[plateau]).unwrap()
        };
        (0..ROUNDS).map(|round| (0..1_000).map(|rank| time(round, rank)).collect()).collect()
    }

    fn judged(ring: [i64; 4]) -> FloorComparison {
        let [ring, floor, one, other] = [made_up(ring, 3), made_up([0; 4], 1), made_up([0; 4], 3), made_up([0; 4], 5)];
        fn by_round(runs: &[Vec<u64>]) -> Vec<Option<&[u64]>> {
            runs.iter().map(|run| Some(run.as_slice())).collect()
        }
        let runs =
            FloorRuns { ring: by_round(&ring), floor: by_round(&floor), equal: [by_round(&one), by_round(&other)] };
        compare("made up", &runs, Scale::NANOSECONDS, &BOOTSTRAP).unwrap()
    }

    #[test]
    fn each_quantile_alone_below_the_floor_fails() {
        for (failing, (quantile, _)) in QUANTILES.iter().enumerate() {
            let mut moved = [5; 4];
            moved[failing] = -30;
            let comparison = judged(moved);
            assert_eq!(comparison.verdict, FloorVerdict::Fails);
            let failed: Vec<_> = comparison.quantiles.iter().filter(|of| !of.is_held).map(|of| of.quantile).collect();
            assert_eq!(failed, [*quantile]);
            let failure = comparison.failure().unwrap();
            assert!(failure.starts_with(&format!("{quantile} by ")) && !failure.contains(", p"), "{failure}");
        }
    }

    #[test]
    fn a_ring_at_or_above_its_floor_holds() {
        for moved in [[0; 4], [40, 0, 0, 300]] {
            let comparison = judged(moved);
            assert_eq!((comparison.verdict, comparison.failure()), (FloorVerdict::Holds, None), "{comparison:?}");
        }
    }

    #[test]
    fn what_two_equal_builds_differ_by_is_no_failure() {
        let noise_ns = judged([0; 4]).quantiles[2].noise_ns;
        assert!(noise_ns > 0.0 && noise_ns < 3.0, "{noise_ns}");
        let below = |ns: f64| FloorQuantile::new("p50", exactly(3_000.0), exactly(-ns), noise_ns);
        assert!(below(noise_ns).is_held && !below(noise_ns + 0.1).is_held);
    }

    fn exactly(value: f64) -> crate::report::Estimate {
        crate::report::Estimate { value, low: value - 50.0, high: value + 50.0 }
    }

    #[test]
    fn too_few_rounds_are_not_compared() {
        let run: &[u64] = &[1, 2, 3];
        let few = || vec![Some(run), Some(run), None];
        let runs = FloorRuns { ring: few(), floor: few(), equal: [few(), few()] };
        assert!(compare("made up", &runs, Scale::NANOSECONDS, &BOOTSTRAP).is_none());
    }
}
