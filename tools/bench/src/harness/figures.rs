//! Data of the benches for the figures of `report.html`.

use crate::machine::Placement;
use crate::report::{Bootstrap, Class, Estimate, Figures, Samples};
use tt_meter::Calibration;
use tt_model::sort_short_by_key;

use super::operation::Bench;

/// Nearest cores first; the last one is not a placement but the lack of one.
pub(crate) const PLACEMENTS: [Placement; 4] =
    [Placement::Siblings, Placement::SameCache, Placement::AcrossCaches, Placement::Moved];

/// From here on a sample is a stall.
pub(crate) const STALL_FROM_NS: f64 = 1_000.0;

/// Contribution of a bench to the figures.
#[derive(Debug)]
pub(crate) struct Sketch<'a> {
    /// Drawn from it.
    pub(crate) figures: &'a mut Figures,
    /// How intervals are made.
    pub(crate) bootstrap: &'a Bootstrap,
    /// Cycles to nanoseconds.
    pub(crate) calibration: &'a Calibration,
    /// Smallest step of the clock, nanoseconds.
    pub(crate) step_ns: f64,
}

impl Sketch<'_> {
    /// Returns the class of `placement`, after adding runs with their ping-pongs in cycles.
    pub(crate) fn class(&mut self, placement: Placement, ping_pongs: &[f64]) -> &mut Class {
        let ping_pong = self.ns_of_runs(ping_pongs);
        let class = self.figures.class(placement.name());
        class.runs += ping_pongs.len() as u64;
        class.ping_pong = class.ping_pong.or(ping_pong);
        class
    }

    /// The mean over runs of a value in cycles, in nanoseconds.
    pub(crate) fn ns_of_runs(&self, cycles: &[f64]) -> Option<Estimate> {
        let mut samples = Samples::new();
        for cycles in cycles {
            samples.push_block(vec![self.calibration.scale.ns_f64(*cycles)]);
        }
        self.bootstrap.mean(&samples)
    }
}

/// Returns the data of all `benches`, nearest cores first.
pub(crate) fn of(
    benches: &[Box<dyn Bench>],
    bootstrap: &Bootstrap,
    calibration: &Calibration,
    step_ns: f64,
) -> Figures {
    let mut figures = Figures::default();
    for bench in benches {
        bench.portray(&mut Sketch { figures: &mut figures, bootstrap, calibration, step_ns });
    }
    sort(&mut figures);
    figures
}

/// Nearest cores first.
pub(crate) fn sort(figures: &mut Figures) {
    let rank = |name: &str| PLACEMENTS.iter().position(|placement| placement.name() == name);
    sort_short_by_key(&mut figures.classes, |class| rank(&class.placement));
}
