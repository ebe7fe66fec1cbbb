//! Intervals by resampling whole blocks, because neighbouring samples are not independent.

use serde::Serialize;
use tt_model::SplitMix64;
use tt_status::distribution::rank;

use crate::report::Samples;

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value over all samples.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// Percentile bootstrap over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Number of resamples; at least 10,000 in a full run.
    pub resamples: u32,
    /// Seed of the draws.
    pub seed: u64,
}

impl Bootstrap {
    /// The mean over all values; `None` where there are none.
    #[must_use]
    pub fn mean(&self, samples: &Samples) -> Option<Estimate> {
        let sums: Vec<(f64, f64)> =
            samples.blocks().iter().map(|block| (block.iter().sum(), block.len() as f64)).collect();
        self.estimate(sums.len(), |draw| {
            let (sum, count) = draw.iter().map(|block| sums[*block]).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            sum / count
        })
    }

    /// The ratio of the sums of two series whose blocks were measured in pairs; `None` where there are none.
    #[must_use]
    pub fn ratio(&self, pairs: &[(f64, f64)]) -> Option<Estimate> {
        self.estimate(pairs.len(), |draw| {
            let (over, under) = draw.iter().map(|block| pairs[*block]).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            over / under
        })
    }

    /// The `q` quantile (0 to 1) over all values; `None` where there are none.
    #[must_use]
    pub fn quantile(&self, samples: &Samples, q: f64) -> Option<Estimate> {
        let sorted = samples.sorted();
        let exact = *sorted.get(rank(sorted.len(), q))?;
        let grid = grid(&sorted, q);
        let cumulative: Vec<Vec<u32>> = samples.blocks().iter().map(|block| cumulative(block, &grid)).collect();
        let estimate = self.estimate(cumulative.len(), |draw| {
            let count: usize = draw.iter().map(|block| samples.blocks()[*block].len()).sum();
            let wanted = rank(count, q) as u64 + 1;
            let below = |at: usize| draw.iter().map(|block| u64::from(cumulative[*block][at])).sum::<u64>();
            let (mut low, mut high) = (0, grid.len() - 1);
            while low < high {
                let middle = usize::midpoint(low, high);
                if below(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            grid[low]
        })?;
        Some(Estimate { value: exact, low: estimate.low.min(exact), high: estimate.high.max(exact) })
    }

    fn estimate(&self, blocks: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<Estimate> {
        if blocks == 0 {
            return None;
        }
        let value = statistic(&(0..blocks).collect::<Vec<_>>());
        let mut random = SplitMix64::new(self.seed);
        let mut draw = vec![0; blocks];
        let mut values: Vec<f64> = (0..self.resamples.max(1))
            .map(|_| {
                draw.iter_mut().for_each(|block| *block = random.index(blocks));
                statistic(&draw)
            })
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        Some(Estimate { value, low: values[rank(values.len(), 0.025)], high: values[rank(values.len(), 0.975)] })
    }
}

/// Values at which counts are kept: close together around `q`, and the greatest.
fn grid(sorted: &[f64], q: f64) -> Vec<f64> {
    const POINTS: usize = 1024;
    let coarse = (0..=POINTS).map(|point| point as f64 / POINTS as f64);
    let fine = (0..=POINTS).map(|point| q + (1.0 - q) * (point as f64 / POINTS as f64 - 0.5));
    let mut grid: Vec<f64> =
        coarse.chain(fine).filter(|q| (0.0..=1.0).contains(q)).map(|q| sorted[rank(sorted.len(), q)]).collect();
    grid.sort_unstable_by(f64::total_cmp);
    grid.dedup();
    grid
}

fn cumulative(block: &[f64], grid: &[f64]) -> Vec<u32> {
    let mut counts = vec![0u32; grid.len()];
    for value in block {
        let at = grid.partition_point(|edge| edge < value).min(grid.len() - 1);
        counts[at] += 1;
    }
    let mut sum = 0;
    for count in &mut counts {
        sum += *count;
        *count = sum;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::Bootstrap;
    use crate::report::Samples;
    use tt_model::SplitMix64;

    const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 1_000, seed: 7 };

    fn draw(random: &mut SplitMix64, mean: f64, block_shift: f64) -> Vec<f64> {
        let shift = block_shift * (random.index(2001) as f64 / 1000.0 - 1.0);
        (0..200).map(|_| mean + shift + random.index(2001) as f64 / 1000.0 - 1.0).collect()
    }

    /// The truth lies in a 95 % interval in about 95 of 100 experiments, also where blocks differ.
    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let mut random = SplitMix64::new(99);
        let (mut mean_hits, mut median_hits) = (0, 0);
        for _ in 0..100 {
            let mut samples = Samples::new();
            (0..40).for_each(|_| samples.push_block(draw(&mut random, 50.0, 3.0)));
            let mean = BOOTSTRAP.mean(&samples).expect("there are blocks");
            let median = BOOTSTRAP.quantile(&samples, 0.5).expect("there are blocks");
            mean_hits += u32::from(mean.low <= 50.0 && 50.0 <= mean.high);
            median_hits += u32::from(median.low <= 50.0 && 50.0 <= median.high);
        }
        assert!((88..=99).contains(&mean_hits), "{mean_hits} of 100");
        assert!((88..=100).contains(&median_hits), "{median_hits} of 100");
    }

    #[test]
    fn quantile_is_the_exact_order_statistic() {
        let mut samples = Samples::new();
        samples.push_block((1..=60).map(f64::from).collect());
        samples.push_block((61..=100).map(f64::from).collect());
        for (q, value) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.0, 1.0)] {
            let estimate = BOOTSTRAP.quantile(&samples, q).expect("there are blocks");
            assert_eq!(estimate.value, value);
            assert!(estimate.low <= value && value <= estimate.high);
        }
    }

    #[test]
    fn ratio_of_equal_series_is_one() {
        let estimate = BOOTSTRAP.ratio(&[(2.0, 2.0), (5.0, 5.0)]).expect("there are pairs");
        assert_eq!((estimate.value, estimate.low, estimate.high), (1.0, 1.0, 1.0));
        assert_eq!(BOOTSTRAP.ratio(&[]), None);
    }
}
