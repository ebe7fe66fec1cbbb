//! The check that no quantile of the ring lies below the physical floor.

use std::io;

use serde::Serialize;

use super::text::interval;
use crate::report::Estimate;

/// The ring next to the smallest program that passes the same message between the same threads.
#[derive(Clone, Debug, Serialize)]
pub struct FloorComparison {
    /// The producer's action between events, which both have.
    pub name: &'static str,
    /// Whether the ring is above its floor at every quantile.
    pub verdict: FloorVerdict,
    /// One entry for each compared quantile.
    pub quantiles: Vec<FloorQuantile>,
}

/// Result of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorVerdict {
    /// No quantile of the ring is below the floor's by more than the A/A control's interval.
    Holds,
    /// At least one is: what was measured as the floor is none, and no share of it means anything.
    Fails,
}

/// A quantile of both.
#[derive(Clone, Debug, Serialize)]
pub struct FloorQuantile {
    /// `p1`, `p10`, `p50` or `p90`.
    pub quantile: &'static str,
    /// The floor's, nanoseconds, mean over the rounds.
    pub floor_ns: Estimate,
    /// By how much the ring's is above it.
    pub above_ns: Estimate,
    /// What two equal builds differ by at this quantile: the end of the A/A control's interval that is further from zero.
    pub noise_ns: f64,
    /// False if the ring is below its floor by more than that.
    pub is_held: bool,
}

impl FloorQuantile {
    /// Judges one quantile.
    #[must_use]
    pub fn new(quantile: &'static str, floor_ns: Estimate, above_ns: Estimate, noise_ns: f64) -> Self {
        Self { quantile, floor_ns, above_ns, noise_ns, is_held: above_ns.value >= -noise_ns }
    }
}

impl FloorComparison {
    /// Judges all quantiles: one that fails is enough.
    #[must_use]
    pub fn new(name: &'static str, quantiles: Vec<FloorQuantile>) -> Self {
        let is_held = quantiles.iter().all(|of| of.is_held);
        let verdict = if is_held { FloorVerdict::Holds } else { FloorVerdict::Fails };
        Self { name, verdict, quantiles }
    }

    /// Returns which quantiles fail and by how much, in words; `None` if none does.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let failed = self.quantiles.iter().filter(|of| !of.is_held).map(|of| {
            let below_ns = -of.above_ns.value;
            format!("{} by {below_ns:.1} ns (A/A control {:.1})", of.quantile, of.noise_ns)
        });
        let failed: Vec<String> = failed.collect();
        (!failed.is_empty()).then(|| format!("{}, {}", failed.join(", "), self.name))
    }

    pub(super) fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let verdict = match self.verdict {
            FloorVerdict::Holds => "holds",
            FloorVerdict::Fails => "FAILS: the floor is none",
        };
        let name = self.name;
        writeln!(to, "the ring above its floor, one cache line with the same stamps and pacing; {name}: {verdict}")?;
        for of in &self.quantiles {
            let (floor, above) = (of.floor_ns.value, &of.above_ns);
            let verdict = if of.is_held { "" } else { ": BELOW ITS FLOOR" };
            let moved = format!("{:+.1} {}", above.value, interval(above));
            writeln!(to, "  {:<4} floor {floor:>8.1}, ring {moved} (A/A {:.1}){verdict}", of.quantile, of.noise_ns)?;
        }
        Ok(())
    }
}
