//! Sampled times in nanoseconds.

use tt_meter::{Calibration, Histogram, PassParts, Stage, Stages};

use crate::accounting::{self, Quantiles};
use crate::distribution::Bucket;

/// Times of a sampler in nanoseconds, without the clock's cost; one pass in `one_in` was sampled.
#[must_use]
pub fn stages(seen: &Stages, one_in: u32, calibration: &Calibration) -> accounting::Stages {
    let parts = seen.parts(calibration);
    let mean = |stage: Stage| accounting::StageMean {
        stage: stage.name(),
        n: seen.totals[stage as usize].count,
        mean_ns: seen.mean_ns(stage, calibration).unwrap_or(0.0),
        per_pass_ns: parts.map_or(0.0, |parts| parts.stages_ns[stage as usize]),
    };
    let stamped = |parts: PassParts| accounting::StampedPass {
        n: seen.stamped.count,
        mean_ns: parts.whole_ns,
        rest_ns: parts.rest_ns,
        probe_ns: parts.probe_ns,
    };
    let ns = |cycles: u64| calibration.scale.ns_f64(cycles.saturating_sub(calibration.read_cycles) as f64);
    accounting::Stages {
        one_in,
        stages: Stage::ALL.map(mean).to_vec(),
        stamped: parts.map(stamped),
        pass: cycles_quantiles(&seen.pass, calibration),
        buckets: buckets(&seen.pass, ns),
    }
}

/// The buckets that hold something, in nanoseconds.
fn buckets(histogram: &Histogram, ns: impl Fn(u64) -> f64) -> Vec<Bucket> {
    let filled = histogram.filled();
    filled.map(|(low, high, count)| Bucket { low_ns: ns(low), high_ns: ns(high), count }).collect()
}

/// The distribution of passes in cycles, the read of the clock included in each; `None` without a sample.
#[must_use]
pub fn cycles_quantiles(cycles: &Histogram, calibration: &Calibration) -> Option<Quantiles> {
    let ns = |cycles: u64| calibration.scale.ns(cycles.saturating_sub(calibration.read_cycles));
    let mean = |mean: f64| calibration.scale.ns_f64((mean - calibration.read_cycles as f64).max(0.0));
    quantiles(cycles, ns, mean)
}

/// The distribution of times that are nanoseconds already; `None` without a sample.
#[must_use]
pub fn ns_quantiles(times: &Histogram) -> Option<Quantiles> {
    quantiles(times, |ns| ns, |ns| ns)
}

fn quantiles(histogram: &Histogram, ns: impl Fn(u64) -> u64, mean_ns: impl Fn(f64) -> f64) -> Option<Quantiles> {
    // A quantile beyond which no sample lies is the longest sample, and would only seem to say more.
    let at = |per_million| histogram.quantile(per_million, 1).map(&ns);
    Some(Quantiles {
        n: histogram.count(),
        mean_ns: mean_ns(histogram.sum() as f64 / histogram.count().max(1) as f64),
        min_ns: ns(histogram.min()?),
        p50_ns: histogram.quantile(500_000, 0).map(&ns)?,
        p95_ns: at(950_000),
        p99_ns: at(990_000),
        p999_ns: at(999_000),
        max_ns: ns(histogram.max()?),
    })
}
