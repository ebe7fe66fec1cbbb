//! Aims of rows, and the unit of their operations.

use serde_json::{Value, json};

use crate::report::{Mark, Row, Statistic};

/// A figure that a row should not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// Which of the row's figures.
    pub statistic: Statistic,
    /// The most that it should be, in the row's unit.
    pub at_most: f64,
}

/// Result of a row against an aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies below it.
    Reached,
    /// The whole interval lies above it.
    Behind,
    /// The interval contains it, or the row has no such figure.
    Undecided,
}

impl Verdict {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Behind => "behind",
            Self::Undecided => "undecided",
        }
    }
}

impl Row {
    /// Judges the row against `aim`.
    #[must_use]
    pub fn verdict(&self, aim: &Aim) -> Verdict {
        match self.figure(aim.statistic).map(|ours| Mark::of(&ours, aim.at_most, self.unit)) {
            Some(Mark::Better(_)) => Verdict::Reached,
            Some(Mark::Worse(_)) => Verdict::Behind,
            Some(Mark::Alike) | None => Verdict::Undecided,
        }
    }

    pub(crate) fn aims_json(&self) -> Value {
        let one = |aim: &Aim| {
            json!({
                "statistic": aim.statistic.name(), "at_most": aim.at_most, "verdict": self.verdict(aim).name(),
            })
        };
        self.aims.iter().map(one).collect()
    }
}

/// How many parts the operations of a row have: levels of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// The unit.
    pub what: String,
    /// Operations.
    pub n: usize,
    /// Parts of one on average.
    pub mean: f64,
    /// Median.
    pub p50: usize,
    /// 90th percentile.
    pub p90: usize,
    /// 99th percentile.
    pub p99: usize,
    /// The most.
    pub max: usize,
}

impl Sizes {
    /// Of `sizes`, `None` where there are none.
    #[must_use]
    pub fn of(what: &str, mut sizes: Vec<usize>) -> Option<Self> {
        sizes.sort_unstable();
        let at = |q: f64| sizes.get(tt_status::distribution::rank(sizes.len(), q)).copied();
        Some(Self {
            what: what.to_owned(),
            n: sizes.len(),
            mean: sizes.iter().sum::<usize>() as f64 / sizes.len() as f64,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            max: *sizes.last()?,
        })
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "what": self.what, "n": self.n, "mean": self.mean,
            "p50": self.p50, "p90": self.p90, "p99": self.p99, "max": self.max,
        })
    }

    /// One line.
    pub(crate) fn text(&self) -> String {
        let Self { what, n, mean, p50, p90, p99, max } = self;
        format!("{what}: mean {mean:.1}, p50 {p50}, p90 {p90}, p99 {p99}, most {max} ({n} operations)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Aim, Sizes, Verdict};
    use crate::report::{Bootstrap, Row, RowText, Samples, Statistic, Unit};

    #[test]
    fn an_aim_is_decided_by_the_whole_interval() {
        let mut samples = Samples::new();
        (0..40).for_each(|block| samples.push_block(vec![10.0 + f64::from(block % 5), 12.0]));
        let text = RowText { name: "row", engine: "market", what: "", unit: Unit::Ns };
        let row = Row::of(text, &samples, 1, &Bootstrap { resamples: 500, seed: 1 }).expect("there are samples");
        let verdict = |at_most| row.verdict(&Aim { statistic: Statistic::Mean, at_most });
        assert_eq!(verdict(13.0), Verdict::Reached);
        assert_eq!(verdict(row.mean), Verdict::Undecided);
        assert_eq!(verdict(11.0), Verdict::Behind);
        // Forty-odd samples have no 99th percentile.
        assert_eq!(row.verdict(&Aim { statistic: Statistic::P99, at_most: 99.0 }), Verdict::Undecided);
    }

    #[test]
    fn sizes_are_order_statistics() {
        assert_eq!(Sizes::of("levels", Vec::new()), None);
        let sizes = Sizes::of("levels", (1..=100).rev().collect()).expect("there are some");
        assert_eq!((sizes.p50, sizes.p90, sizes.p99, sizes.max, sizes.mean), (50, 90, 99, 100, 50.5));
    }
}
