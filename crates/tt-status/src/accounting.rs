//! Counts and times that every engine reports.

use serde::Serialize;

use crate::distribution::Bucket;

/// A count under a name. Names come from closed lists in the code, so that they may label metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The name.
    pub name: &'static str,
    /// Their number.
    pub count: u64,
}

/// Inputs and their outcomes: `in = out + drops`, exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accounting {
    /// The counted unit, a plural noun.
    pub unit: &'static str,
    /// Inputs.
    #[serde(rename = "in")]
    pub input: u64,
    /// Inputs that were answered, forwarded, applied or decided.
    pub out: u64,
    /// Dropped inputs.
    pub dropped: u64,
    /// Whether `in = out + dropped`.
    pub closes: bool,
    /// `out` by what became of them.
    pub outcomes: Vec<Count>,
    /// `dropped` by reason.
    pub drops: Vec<Count>,
}

impl Accounting {
    /// Sums up `outcomes` and `drops` against `input`.
    #[must_use]
    pub fn new(unit: &'static str, input: u64, outcomes: Vec<Count>, drops: Vec<Count>) -> Self {
        let out = outcomes.iter().map(|count| count.count).sum();
        let dropped = drops.iter().map(|count| count.count).sum();
        Self { unit, input, out, dropped, closes: input == out + dropped, outcomes, drops }
    }
}

/// The distribution of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Samples.
    pub n: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// 95 of 100 are not longer; absent before one is.
    pub p95_ns: Option<u64>,
    /// 99 of 100 are not longer; absent before one is.
    pub p99_ns: Option<u64>,
    /// 999 of 1,000 are not longer; absent before one is.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

/// One stage of the pass. A stage is shorter than a clock's resolution allows quantiles for: it has a mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StageMean {
    /// The stage's name.
    pub stage: &'static str,
    /// Samples.
    pub n: u64,
    /// The mean of a sample, nanoseconds.
    pub mean_ns: f64,
    /// The mean over all passes whose stages were stamped, nanoseconds: a part of [`StampedPass::mean_ns`].
    pub per_pass_ns: f64,
}

/// The passes whose stages were stamped.
///
/// `mean_ns` is the sum of `per_pass_ns` of every stage, `rest_ns` and `probe_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StampedPass {
    /// Samples.
    pub n: u64,
    /// The mean of such a pass with its stamps, nanoseconds.
    pub mean_ns: f64,
    /// Its part after the last stage, nanoseconds.
    pub rest_ns: f64,
    /// The part that the stamps take themselves, nanoseconds.
    pub probe_ns: f64,
}

/// The latency ledger of an engine, from live traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stages {
    /// One pass of so many is sampled.
    pub one_in: u32,
    /// The five stages in order.
    pub stages: Vec<StageMean>,
    /// What the stages are parts of; absent until one was sampled.
    pub stamped: Option<StampedPass>,
    /// The whole pass without stamps, from other samples; absent until one was sampled.
    pub pass: Option<Quantiles>,
    /// The same, bucket by bucket; in `/api/v1/machine/passes` only.
    #[serde(skip)]
    pub buckets: Vec<Bucket>,
}
