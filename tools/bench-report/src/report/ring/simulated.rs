//! A distribution simulated from published figures: nothing of it was measured here.

use serde::Serialize;

use super::Figures;
use tt_status::distribution::Distribution;

/// Simulated events: the published run had as many.
const EVENTS: u32 = 1_000_000;
/// Halvings of the interval in which the greatest value is sought.
const HALVINGS: u32 = 60;

/// A simulated distribution and the figures that it was made from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The simulated events.
    pub distribution: Distribution,
    /// The published figures.
    pub published: Figures,
    /// How the events were made.
    pub method: String,
}

impl Simulated {
    /// Simulates the distribution that `published` describes, in buckets of at least `step_ns`; `None` where a quantile was
    /// not published, or where no distribution has these figures.
    ///
    /// The quantile function goes through the least value and each quantile, straight in the logarithm of the time. Its end,
    /// the greatest value, was not published: it is the one with which the mean is the published average. The events are
    /// that function at evenly spaced ranks, so that no chance is in them.
    #[must_use]
    pub fn of(published: &Figures, step_ns: f64) -> Option<Self> {
        let mut knots = vec![
            (0.0, published.min),
            (0.5, published.p50?),
            (0.95, published.p95?),
            (0.99, published.p99?),
            (0.999, published.p999?),
        ];
        let rises = knots.windows(2).all(|pair| 0.0 < pair[0].1 && pair[0].1 < pair[1].1);
        let (share, from_ns) = *knots.last().filter(|_| rises)?;
        let rest_ns = (published.average - knots.windows(2).map(part_of_mean).sum::<f64>()) / (1.0 - share);
        let greatest_ns = greatest(from_ns, rest_ns)?;
        knots.push((1.0, greatest_ns));
        let at = |event: u32| quantile(&knots, (f64::from(event) + 0.5) / f64::from(EVENTS));
        let samples: Vec<f64> = (0..EVENTS).map(at).collect();
        let what = "simulated (published parameters), not measured";
        let distribution = Distribution::of("simulated", what, &samples, step_ns, f64::INFINITY, |_| "unknown")?;
        let method = format!(
            "1,000,000 events at evenly spaced ranks of a quantile function through the published min, p50, p95, p99 and \
             p99.9, straight in the logarithm of the time. The maximum was not published; {:.1} \u{b5}s makes the mean the \
             published average.",
            greatest_ns / 1e3
        );
        Some(Self { distribution, published: *published, method })
    }
}

/// What the values between two knots add to the mean.
fn part_of_mean(pair: &[(f64, f64)]) -> f64 {
    let [(from, low), (to, high)] = [pair[0], pair[1]];
    (to - from) * (high - low) / (high / low).ln()
}

/// The greatest value of a piece that begins at `from_ns` and has the mean `mean_ns`.
fn greatest(from_ns: f64, mean_ns: f64) -> Option<f64> {
    let mean_to = |to_ns: f64| (to_ns - from_ns) / (to_ns / from_ns).ln();
    let (mut low, mut high) = (from_ns * 1.000_001, from_ns * 1e6);
    if !(mean_to(low)..mean_to(high)).contains(&mean_ns) {
        return None;
    }
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        if mean_to(middle) < mean_ns { low = middle } else { high = middle }
    }
    Some(low)
}

fn quantile(knots: &[(f64, f64)], rank: f64) -> f64 {
    let above = knots.iter().position(|(share, _)| rank < *share).unwrap_or(knots.len() - 1);
    let [(from, low), (to, high)] = [knots[above - 1], knots[above]];
    low * (high / low).powf((rank - from) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::{Figures, Simulated};

    const PUBLISHED: Figures = Figures {
        average: 150.0,
        p50: Some(142.0),
        p95: Some(162.0),
        p99: Some(172.0),
        p999: Some(2_346.0),
        min: 92.0,
        max: None,
    };

    #[test]
    fn has_the_published_figures() {
        let Simulated { distribution: found, published, .. } = Simulated::of(&PUBLISHED, 1.0).unwrap();
        assert_eq!((published, found.n), (PUBLISHED, 1_000_000));
        let is_near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-3;
        assert!(is_near(found.mean_ns, 150.0) && is_near(found.min_ns, 92.0), "{} {}", found.mean_ns, found.min_ns);
        let quantiles = [found.p50_ns, found.p95_ns, found.p99_ns, found.p999_ns];
        for (found, wanted) in quantiles.into_iter().zip([142.0, 162.0, 172.0, 2_346.0]) {
            assert!(found.is_some_and(|ns| is_near(ns, wanted)), "{found:?} for {wanted}");
        }
        assert_eq!(found.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), found.n);
        assert!(found.causes.is_empty() && found.what.starts_with("simulated"));
    }

    #[test]
    fn figures_that_no_distribution_has_are_not_simulated() {
        assert_eq!(Simulated::of(&Figures { p99: None, ..PUBLISHED }, 1.0), None);
        assert_eq!(Simulated::of(&Figures { p95: Some(172.0), ..PUBLISHED }, 1.0), None);
        assert_eq!(Simulated::of(&Figures { average: 100.0, ..PUBLISHED }, 1.0), None);
        assert_eq!(Simulated::of(&Figures { min: 0.0, ..PUBLISHED }, 1.0), None);
    }
}
