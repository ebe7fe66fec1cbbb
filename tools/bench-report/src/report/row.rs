//! One line of a result.

use tt_status::distribution::{SAMPLES_ABOVE_MIN, rank};

use crate::report::{Aim, Bootstrap, Estimate, Samples, Sizes};

/// The unit of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds; less is better.
    Ns,
    /// Million operations a second; more is better.
    MillionPerS,
    /// A multiple of something measured in the same run; less is better.
    Times,
}

impl Unit {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::MillionPerS => "M/s",
            Self::Times => "x",
        }
    }

    const fn less_is_better(self) -> bool {
        match self {
            Self::Ns | Self::Times => true,
            Self::MillionPerS => false,
        }
    }
}

/// Which figure of a distribution is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Least value.
    Min,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

impl Statistic {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

/// A figure that somebody else published for the same operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Which figure of their distribution it is.
    pub statistic: Statistic,
    /// Whose it is and what it covers.
    pub what: String,
}

/// Comparison of a row with a published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// The whole interval is better, by this factor.
    Better(f64),
    /// The whole interval is worse, by this factor.
    Worse(f64),
    /// The published figure lies in the interval.
    Alike,
}

impl Mark {
    /// `ours` against `theirs`, both in `unit`.
    #[must_use]
    pub fn of(ours: &Estimate, theirs: f64, unit: Unit) -> Self {
        let (better, factor) = if unit.less_is_better() {
            (ours.high < theirs, theirs / ours.value)
        } else {
            (ours.low > theirs, ours.value / theirs)
        };
        let worse = if unit.less_is_better() { ours.low > theirs } else { ours.high < theirs };
        match (better, worse) {
            (true, _) => Self::Better(factor),
            (false, true) => Self::Worse(1.0 / factor),
            (false, false) => Self::Alike,
        }
    }
}

/// The figures of a distribution; `None` where fewer than 100 samples lie above, which prints as "n/a".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// Least value.
    pub min: Option<f64>,
    /// Median with its interval.
    pub p50: Option<Estimate>,
    /// 95th percentile with its interval.
    pub p95: Option<Estimate>,
    /// 99th percentile with its interval.
    pub p99: Option<Estimate>,
    /// 99.9th percentile with its interval.
    pub p999: Option<Estimate>,
    /// Greatest value.
    pub max: Option<f64>,
}

impl Quantiles {
    /// How many samples must lie above a percentile.
    pub const ABOVE_MIN: usize = SAMPLES_ABOVE_MIN;

    /// Those of `samples`.
    #[must_use]
    pub fn of(samples: &Samples, bootstrap: &Bootstrap) -> Self {
        let sorted = samples.sorted();
        let allowed = |q: f64| {
            let above = sorted.len().saturating_sub(rank(sorted.len(), q) + 1);
            if above < Self::ABOVE_MIN { None } else { bootstrap.quantile(samples, q) }
        };
        Self {
            min: sorted.first().copied(),
            p50: allowed(0.5),
            p95: allowed(0.95),
            p99: allowed(0.99),
            p999: allowed(0.999),
            max: sorted.last().copied(),
        }
    }

    fn get(&self, statistic: Statistic) -> Option<Estimate> {
        match statistic {
            Statistic::Min => self.min.map(|value| Estimate { value, low: value, high: value }),
            Statistic::P50 => self.p50,
            Statistic::P95 => self.p95,
            Statistic::P99 => self.p99,
            Statistic::P999 => self.p999,
            Statistic::Mean => None,
        }
    }
}

/// One line of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The operation.
    pub name: String,
    /// The engine: `turn`, `ring`, `market`.
    pub engine: String,
    /// The unit of the figures.
    pub unit: Unit,
    /// One sentence about the timed operation.
    pub what: String,
    /// Operations timed.
    pub n: u64,
    /// Blocks of samples, the unit of resampling.
    pub blocks: usize,
    /// Operations between two stamps; above 1 there are no quantiles.
    pub batch: u32,
    /// Mean over everything that was timed.
    pub mean: f64,
    /// 95 % interval of the mean.
    pub ci95: [f64; 2],
    /// The distribution, where each operation was timed by itself.
    pub quantiles: Option<Quantiles>,
    /// Published figures of others; the row is judged by the first.
    pub published: Vec<Published>,
    /// Its aim.
    pub aims: Vec<Aim>,
    /// How many parts an operation has, where that decides its time.
    pub sizes: Option<Sizes>,
    /// User instructions of one operation, where counted.
    pub instructions: Option<f64>,
    /// A note.
    pub notes: Vec<String>,
}

/// A row without its figures.
#[derive(Clone, Copy, Debug)]
pub struct RowText<'a> {
    /// The operation.
    pub name: &'a str,
    /// The engine.
    pub engine: &'a str,
    /// The timed operation.
    pub what: &'a str,
    /// The unit of the figures.
    pub unit: Unit,
}

impl Row {
    /// The row that `samples` give, `None` where there are none. With a `batch` above 1 a sample is the mean of that many
    /// operations, and there are no quantiles.
    #[must_use]
    pub fn of(text: RowText<'_>, samples: &Samples, batch: u32, bootstrap: &Bootstrap) -> Option<Self> {
        let mean = bootstrap.mean(samples)?;
        Some(Self {
            name: text.name.to_owned(),
            engine: text.engine.to_owned(),
            unit: text.unit,
            what: text.what.to_owned(),
            n: samples.len() as u64 * u64::from(batch),
            blocks: samples.blocks().len(),
            batch,
            mean: mean.value,
            ci95: [mean.low, mean.high],
            quantiles: (batch == 1).then(|| Quantiles::of(samples, bootstrap)),
            published: Vec::new(),
            aims: Vec::new(),
            sizes: None,
            instructions: None,
            notes: Vec::new(),
        })
    }

    /// Returns the row's figure of `statistic`; `None` without enough samples.
    #[must_use]
    pub fn figure(&self, statistic: Statistic) -> Option<Estimate> {
        match statistic {
            Statistic::Mean => Some(Estimate { value: self.mean, low: self.ci95[0], high: self.ci95[1] }),
            Statistic::Min | Statistic::P50 | Statistic::P95 | Statistic::P99 | Statistic::P999 => {
                self.quantiles.as_ref()?.get(statistic)
            }
        }
    }

    /// Compares the row with `published`. A row with only a mean compares the mean with a published median.
    #[must_use]
    pub fn mark(&self, published: &Published) -> Option<Mark> {
        let ours = match (self.figure(published.statistic), published.statistic) {
            (Some(ours), _) => Some(ours),
            (None, Statistic::P50) => self.figure(Statistic::Mean),
            (None, Statistic::Mean | Statistic::Min | Statistic::P95 | Statistic::P99 | Statistic::P999) => None,
        }?;
        (published.unit == self.unit).then(|| Mark::of(&ours, published.value, self.unit))
    }
}

#[cfg(test)]
mod tests;
