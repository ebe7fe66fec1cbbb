//! Whether a quantity grows: the slope of a line through its samples, with an interval.

use std::fmt;

/// The samples are averaged in this many groups, so that neighbours, which are alike, do not narrow the interval.
const GROUPS: usize = 20;
/// Two-sided 99 % quantile of Student's t with `GROUPS - 2` degrees of freedom.
const T_99: f64 = 2.878;
/// Growth over the samples, as a share of their mean, below which a slope is no trend.
const SHARE_MIN: f64 = 0.01;
/// A line through a single step of one rises by 1.5.
const STEPS_MIN: f64 = 2.0;

/// A slope per hour with its 99 % interval, and the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    pub(super) mean: f64,
    pub(super) slope: f64,
    /// Half of the interval's width.
    pub(super) margin: f64,
    hours: f64,
}

impl Trend {
    /// Fits a line to `samples` (hours, value); none if there are too few.
    pub(super) fn of(samples: &[(f64, f64)]) -> Option<Self> {
        let size = samples.len() / GROUPS;
        let groups: Vec<(f64, f64)> =
            samples.get(samples.len() - size * GROUPS..)?.chunks(size.max(1)).map(mean).collect();
        if groups.len() != GROUPS {
            return None;
        }
        let (x_mean, y_mean) = mean(&groups);
        let x_squares: f64 = groups.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        let products: f64 = groups.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let slope = products / x_squares;
        let residuals: f64 = groups.iter().map(|(x, y)| (y - y_mean - slope * (x - x_mean)).powi(2)).sum();
        let margin = T_99 * (residuals / (GROUPS - 2) as f64 / x_squares).sqrt();
        Some(Self { mean: y_mean, slope, margin, hours: samples[samples.len() - 1].0 - samples[0].0 })
    }

    /// True if the whole interval lies above zero, and the growth is more than a single step and 1 % of the mean.
    pub(super) fn grows(&self) -> bool {
        let growth = (self.slope - self.margin) * self.hours;
        growth > 0.0 && self.slope * self.hours > (self.mean * SHARE_MIN).max(STEPS_MIN)
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.1}, slope {:+.2} +/- {:.2} an hour", self.mean, self.slope, self.margin)
    }
}

fn mean(samples: &[(f64, f64)]) -> (f64, f64) {
    let (x, y) = samples.iter().fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
    (x / samples.len() as f64, y / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 samples in an hour of `f` (index, noise in -1..1).
    fn trend(f: impl Fn(f64, f64) -> f64) -> Trend {
        let noise = |index: u32| f64::from(index.wrapping_mul(2_654_435_761) >> 8) / f64::from(1_u32 << 23) - 1.0;
        let samples: Vec<(f64, f64)> =
            (0..400).map(|index| (f64::from(index) / 400.0, f(f64::from(index), noise(index)))).collect();
        Trend::of(&samples).unwrap()
    }

    #[test]
    fn a_line_has_its_slope_and_no_margin() {
        let line = trend(|index, _| 100.0 + index);
        assert!((line.slope - 400.0).abs() < 1e-6 && line.margin < 1e-6 && line.grows(), "{line}");
    }

    #[test]
    fn noise_does_not_grow_and_growth_within_noise_does() {
        assert!(!trend(|_, noise| 10_000.0 + 500.0 * noise).grows());
        // 6 % in an hour, under noise of 5 %.
        assert!(trend(|index, noise| 10_000.0 + 1.5 * index + 500.0 * noise).grows());
    }

    #[test]
    fn a_step_of_one_descriptor_and_what_falls_is_no_trend() {
        assert!(!trend(|index, _| if index < 200.0 { 40.0 } else { 41.0 }).grows());
        assert!(!trend(|index, _| 10_000.0 - 2.0 * index).grows());
        // Forty descriptors in an hour.
        assert!(trend(|index, _| (40.0 + index / 10.0).floor()).grows());
    }

    #[test]
    fn a_few_samples_have_no_trend() {
        assert_eq!(Trend::of(&[(0.0, 1.0); 19]), None);
        assert_eq!(Trend::of(&[]), None);
    }
}
