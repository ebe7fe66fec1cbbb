//! NullRing's figures of each loop, all runs together and by placement.

use crate::machine::Placement;
use crate::report::ring::{Bucket, ClassFigures, Figures, Loop, LoopKind};
use crate::report::{Bootstrap, Estimate, Samples};
use tt_meter::Histogram;

use super::rounds::{Made, Rounds, Variant};

/// Every placement, in the order of print.
pub(crate) const PLACEMENTS: [Placement; 4] =
    [Placement::Siblings, Placement::SameCache, Placement::AcrossCaches, Placement::Moved];

/// Samples that a quantile needs above it.
const ABOVE_MIN: usize = 100;

/// NullRing on Windows, two pinned cores, producer, ring, evaluator, by RDTSCP.
const NULLRING: Figures = Figures {
    average: 150.0,
    p50: Some(142.0),
    p95: Some(162.0),
    p99: Some(172.0),
    p999: Some(2_346.0),
    min: 92.0,
    max: None,
};

impl Rounds {
    /// One in flight, then each rate.
    pub(super) fn loops(&self, bootstrap: &Bootstrap) -> Vec<Loop> {
        let open = self.sizes.rates.iter().map(|rate| Variant::Open(*rate));
        [Variant::Gate, Variant::HoldsNext, Variant::Floor, Variant::FloorHoldsNext, Variant::Watched]
            .into_iter()
            .chain(open)
            .map(|variant| self.loop_of(variant, bootstrap))
            .collect()
    }

    fn loop_of(&self, variant: Variant, bootstrap: &Bootstrap) -> Loop {
        let (runs, void): (Vec<&Made>, Vec<&Made>) =
            self.made.iter().filter(|made| made.variant == variant).partition(|made| !made.is_void());
        let all = runs.iter().chain(&void);
        let rates: Vec<f64> = all.map(|made| self.rate_of(&made.run)).collect();
        let (kind, offered_per_s) = match variant.rate() {
            Some(rate) => (LoopKind::ResponseTime, Some(f64::from(rate))),
            None => (LoopKind::ServiceTime, None),
        };
        let published = (variant == Variant::Gate).then_some(NULLRING);
        let mut classes: Vec<ClassFigures> = self.class("all", &runs, bootstrap).into_iter().collect();
        for placement in PLACEMENTS {
            let of: Vec<&Made> = runs.iter().copied().filter(|made| made.run.placement == placement).collect();
            classes.extend(self.class(placement.name(), &of, bootstrap));
        }
        Loop {
            name: variant.name(),
            kind,
            offered_per_s,
            achieved_per_s: rates.iter().sum::<f64>() / rates.len().max(1) as f64,
            void_runs: void.len(),
            published,
            classes,
        }
    }

    /// Figures of `runs`; `None` without any.
    fn class(&self, name: &str, runs: &[&Made], bootstrap: &Bootstrap) -> Option<ClassFigures> {
        let scale = self.calibration.scale;
        let mut samples = Samples::new();
        let mut histogram = Histogram::new();
        for made in runs {
            made.run.cycles.iter().for_each(|cycles| histogram.record(*cycles));
            samples.push_block(made.run.cycles.iter().map(|cycles| scale.ns_f64(*cycles as f64)).collect());
        }
        let ping_pong: Vec<f64> =
            runs.iter().filter_map(|made| made.run.ping_pong_cycles()).map(|cycles| scale.ns_f64(cycles)).collect();
        let sorted: Vec<f64> = samples.sorted();
        let ns = figures(&sorted)?;
        let in_cycles = |ns: f64| (ns / scale.ns_f64(1.0)).round();
        Some(ClassFigures {
            class: name.to_owned(),
            runs: runs.len(),
            events: sorted.len() as u64,
            ping_pong_ns: mean(&ping_pong, bootstrap)?,
            cycles: Figures {
                average: ns.average / scale.ns_f64(1.0),
                p50: ns.p50.map(in_cycles),
                p95: ns.p95.map(in_cycles),
                p99: ns.p99.map(in_cycles),
                p999: ns.p999.map(in_cycles),
                min: in_cycles(ns.min),
                max: ns.max.map(in_cycles),
            },
            average_ns: bootstrap.mean(&samples)?,
            p50_ns: bootstrap.quantile(&samples, 0.5)?,
            ns,
            histogram: histogram
                .filled()
                .map(|(low, high, count)| Bucket {
                    low_ns: scale.ns_f64(low as f64),
                    high_ns: scale.ns_f64(high as f64),
                    count,
                })
                .collect(),
        })
    }
}

/// Figures of sorted samples; `None` without any.
pub(super) fn figures(sorted: &[f64]) -> Option<Figures> {
    let quantile = |q: f64| {
        let rank = (sorted.len() as f64 * q).ceil() as usize;
        (sorted.len() >= rank + ABOVE_MIN).then(|| sorted[rank.max(1) - 1])
    };
    Some(Figures {
        average: sorted.iter().sum::<f64>() / sorted.len() as f64,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        min: *sorted.first()?,
        max: sorted.last().copied(),
    })
}

/// The mean of one value a run, resampled by runs; `None` without any.
pub(crate) fn mean(values: &[f64], bootstrap: &Bootstrap) -> Option<Estimate> {
    let mut samples = Samples::new();
    values.iter().for_each(|value| samples.push_block(vec![*value]));
    bootstrap.mean(&samples)
}
