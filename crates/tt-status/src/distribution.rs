//! A distribution in few numbers: buckets whose width grows with the value, quantiles, and the stalls by cause.

use serde::Serialize;
use tt_model::{sort_short_by, sort_short_by_key};

/// Ratio of one bucket's end to its beginning where the clock's step allows it.
const GROWTH: f64 = 1.08;
/// A percentile is reported only if at least this many samples lie above it.
pub const SAMPLES_ABOVE_MIN: usize = 100;
/// Stalls that are kept one by one: the longest.
const STALLS_MAX: usize = 200;

/// Latencies of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// `end_to_end`, `one_way`, `jitter_floor`.
    pub name: String,
    /// From which stamp to which.
    pub what: String,
    /// Samples.
    pub n: u64,
    /// Least value, nanoseconds.
    pub min_ns: f64,
    /// Arithmetic mean, nanoseconds.
    pub mean_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: Option<f64>,
    /// 95th percentile, nanoseconds; like all of them absent where fewer than 100 samples lie above.
    pub p95_ns: Option<f64>,
    /// 99th percentile, nanoseconds.
    pub p99_ns: Option<f64>,
    /// 99.9th percentile, nanoseconds.
    pub p999_ns: Option<f64>,
    /// Greatest value, nanoseconds.
    pub max_ns: f64,
    /// Samples in each bucket that is not empty, rising.
    pub buckets: Vec<Bucket>,
    /// From here on a sample is a stall, nanoseconds.
    pub stall_from_ns: f64,
    /// Stalls by cause; their sum is the number of samples of at least `stall_from_ns`.
    pub causes: Vec<Cause>,
    /// The longest stalls, longest first.
    pub stalls: Vec<StallMark>,
}

/// Samples from `low_ns` to below `high_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    /// Lower bound, nanoseconds.
    pub low_ns: f64,
    /// Upper bound, nanoseconds.
    pub high_ns: f64,
    /// Samples.
    pub count: u64,
}

/// The stalls of one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// `interrupt`, `preemption`, `steal`, `page_fault`, `frequency`, `unknown`.
    pub cause: String,
    /// Their number.
    pub count: u64,
    /// All of them together, nanoseconds.
    pub total_ns: f64,
}

/// One stall.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StallMark {
    /// Duration, nanoseconds.
    pub ns: f64,
    /// Its cause, by the name that [`Cause`] has.
    pub cause: String,
}

/// A distribution whose samples were not kept.
#[derive(Clone, Copy, Debug)]
pub struct Binned<'a> {
    /// Rising, of any width.
    pub buckets: &'a [Bucket],
    /// The clock's step, nanoseconds.
    pub step_ns: f64,
    /// From here on a sample is a stall, nanoseconds; infinite where none is.
    pub stall_from_ns: f64,
    /// The stalls with a known cause.
    pub stalls: &'a [StallMark],
}

impl Distribution {
    /// Buckets on the common grid, and stalls by cause; a stall without a mark is `unknown`. Name, quantiles and
    /// extremes are the caller's to fill in: buckets know them less exactly.
    #[must_use]
    pub fn of_binned(known: &Binned<'_>) -> Self {
        let middles: Vec<(f64, u64)> =
            known.buckets.iter().map(|bucket| (f64::midpoint(bucket.low_ns, bucket.high_ns), bucket.count)).collect();
        let mut stalls: Vec<(f64, &str)> = known.stalls.iter().map(|stall| (stall.ns, stall.cause.as_str())).collect();
        sort_short_by(&mut stalls, |a, b| b.0.total_cmp(&a.0));
        let beyond = middles.iter().filter(|(ns, _)| *ns >= known.stall_from_ns);
        let (count, total_ns) = beyond.fold((0, 0.0), |sum, (ns, count)| (sum.0 + count, sum.1 + ns * *count as f64));
        let mut causes = causes(&stalls);
        let marked = stalls.len() as u64;
        if count > marked {
            let marked_ns: f64 = stalls.iter().map(|(ns, _)| ns).sum();
            let total_ns = (total_ns - marked_ns).max(0.0);
            causes.push(Cause { cause: "unknown".to_owned(), count: count - marked, total_ns });
        }
        Self {
            name: String::new(),
            what: String::new(),
            n: middles.iter().map(|(_, count)| count).sum(),
            min_ns: 0.0,
            mean_ns: 0.0,
            p50_ns: None,
            p95_ns: None,
            p99_ns: None,
            p999_ns: None,
            max_ns: 0.0,
            buckets: buckets(&middles, known.step_ns),
            stall_from_ns: known.stall_from_ns,
            causes,
            stalls: marks(&stalls),
        }
    }

    /// The distribution of `samples`, in nanoseconds and any order; `None` without any. A bucket is never narrower than
    /// `step_ns`, the clock's step. `cause_of` is asked for the cause of each sample of `stall_from_ns` or more, by its
    /// index.
    #[must_use]
    pub fn of(
        name: &str,
        what: &str,
        samples: &[f64],
        step_ns: f64,
        stall_from_ns: f64,
        mut cause_of: impl FnMut(usize) -> &'static str,
    ) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min_ns, max_ns) = (*sorted.first()?, *sorted.last()?);
        let mut stalls: Vec<(f64, &'static str)> = samples
            .iter()
            .enumerate()
            .filter(|(_, ns)| **ns >= stall_from_ns)
            .map(|(index, ns)| (*ns, cause_of(index)))
            .collect();
        sort_short_by(&mut stalls, |a, b| b.0.total_cmp(&a.0));
        let quantile = |q: f64| {
            let at = rank(sorted.len(), q);
            (sorted.len() - 1 - at >= SAMPLES_ABOVE_MIN).then(|| sorted[at])
        };
        Some(Self {
            name: name.to_owned(),
            what: what.to_owned(),
            n: sorted.len() as u64,
            min_ns,
            mean_ns: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50_ns: quantile(0.5),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns,
            buckets: buckets(&sorted.iter().map(|ns| (*ns, 1)).collect::<Vec<_>>(), step_ns),
            stall_from_ns,
            causes: causes(&stalls),
            stalls: marks(&stalls),
        })
    }
}

/// Returns the index of the `q` quantile among `count` sorted values.
#[must_use]
pub fn rank(count: usize, q: f64) -> usize {
    ((count as f64 * q).ceil() as usize).clamp(1, count.max(1)) - 1
}

/// On one grid for every distribution of a clock, so that they can be drawn over each other.
fn buckets(sorted: &[(f64, u64)], step_ns: f64) -> Vec<Bucket> {
    let step_ns = step_ns.max(0.1);
    // Half a step off the clock's readings, so that none lies on an edge.
    let mut low_ns = -0.5 * step_ns;
    let mut filled = Vec::new();
    let mut rest = sorted;
    while !rest.is_empty() {
        let steps = (low_ns * (GROWTH - 1.0) / step_ns).floor().max(1.0);
        let high_ns = low_ns + steps * step_ns;
        let (inside, beyond) = rest.split_at(rest.partition_point(|(ns, _)| *ns < high_ns));
        if !inside.is_empty() {
            let count = inside.iter().map(|(_, count)| count).sum();
            filled.push(Bucket { low_ns: low_ns.max(0.0), high_ns, count });
        }
        (rest, low_ns) = (beyond, high_ns);
    }
    filled
}

/// The longest of stalls that are sorted, longest first.
fn marks(stalls: &[(f64, &str)]) -> Vec<StallMark> {
    stalls.iter().take(STALLS_MAX).map(|(ns, cause)| StallMark { ns: *ns, cause: (*cause).to_owned() }).collect()
}

/// By count, most frequent first.
fn causes(stalls: &[(f64, &str)]) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for (ns, name) in stalls {
        match causes.iter_mut().find(|cause| cause.cause == *name) {
            Some(cause) => {
                cause.count += 1;
                cause.total_ns += ns;
            }
            None => causes.push(Cause { cause: (*name).to_owned(), count: 1, total_ns: *ns }),
        }
    }
    sort_short_by_key(&mut causes, |cause| std::cmp::Reverse(cause.count));
    causes
}

#[cfg(test)]
mod tests {
    use super::{Binned, Bucket, Distribution, StallMark};

    /// Every sample is in exactly one bucket, and none is narrower than the clock's step.
    #[test]
    fn buckets_hold_every_sample_once() {
        let samples: Vec<f64> = (0..10_000_u32).map(|n| f64::from(n % 97 * (n % 89 + 1)) * 10.0).collect();
        let distribution = Distribution::of("a", "", &samples, 10.0, 50_000.0, |_| "unknown").expect("samples");
        let inside = |low: f64, high: f64| samples.iter().filter(|ns| (low..high).contains(*ns)).count() as u64;
        for bucket in &distribution.buckets {
            assert_eq!(bucket.count, inside(bucket.low_ns, bucket.high_ns), "{bucket:?}");
            assert!(bucket.high_ns - bucket.low_ns >= 5.0, "{bucket:?}");
        }
        assert_eq!(distribution.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), distribution.n);
        assert!(distribution.buckets.len() < 130, "{} buckets", distribution.buckets.len());
    }

    /// Fine and coarse bins use the same grid, and every stall has a cause.
    #[test]
    fn binned_samples_lie_on_the_same_grid() {
        let samples: Vec<f64> = (0..5_000_u32).map(|n| f64::from(5 + n % 300) * 10.0).collect();
        let exact = Distribution::of("a", "", &samples, 10.0, 2_000.0, |_| "steal").expect("samples");
        let fine = |n: u32| {
            let ns = f64::from(n) * 10.0;
            let count = samples.iter().filter(|sample| **sample == ns).count() as u64;
            Bucket { low_ns: ns - 1.0, high_ns: ns + 1.5, count }
        };
        let fine: Vec<Bucket> = (0..310).map(fine).filter(|bucket| bucket.count > 0).collect();
        let stalls = [StallMark { ns: 3_000.0, cause: "steal".to_owned() }];
        let known = Binned { buckets: &fine, step_ns: 10.0, stall_from_ns: 2_000.0, stalls: &stalls };
        let binned = Distribution::of_binned(&known);
        assert_eq!((binned.n, &binned.buckets), (exact.n, &exact.buckets));
        assert_eq!(binned.causes.iter().map(|cause| cause.count).sum::<u64>(), exact.causes[0].count);
    }

    #[test]
    fn stalls_are_counted_by_cause_and_quantiles_need_samples_above() {
        let samples: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let by_index = |index: usize| if index.is_multiple_of(4) { "interrupt" } else { "steal" };
        let distribution = Distribution::of("a", "", &samples, 1.0, 901.0, by_index).expect("samples");
        let causes: Vec<_> = distribution.causes.iter().map(|cause| (cause.cause.as_str(), cause.count)).collect();
        assert_eq!(causes, [("steal", 75), ("interrupt", 25)]);
        assert_eq!((distribution.stalls.len(), distribution.stalls[0].ns), (100, 1_000.0));
        assert_eq!((distribution.p50_ns, distribution.p95_ns), (Some(500.0), None));
        assert_eq!((distribution.min_ns, distribution.max_ns), (1.0, 1_000.0));
        assert!(Distribution::of("a", "", &[], 1.0, 1.0, by_index).is_none());
    }
}
