//! The result of `truetick floor`, the source of text, JSON, CSV and pages.

mod text;

use std::io;

use serde::Serialize;

use crate::report::ring::CauseCount;
use crate::report::{Environment, Estimate};

/// The whole result of one `truetick floor`.
#[derive(Clone, Debug, Serialize)]
pub struct FloorResult {
    /// Always `floor`: distinguishes this file from other results.
    pub truetick: &'static str,
    /// Fewer blocks, wider intervals, no curve.
    pub quick: bool,
    /// Resamples per interval.
    pub resamples: u32,
    /// The machine, the build and what disturbed the run.
    pub environment: Environment,
    /// Warnings to read before the figures.
    pub warnings: Vec<String>,
    /// The clocks.
    pub clocks: Vec<ClockRow>,
    /// A cache line's way between each pair of cores.
    pub transfers: Vec<TransferRow>,
    /// Costs, with the figures that V100 published.
    pub costs: Vec<CostRow>,
    /// The time of one dependent load by the size of what is loaded from; empty in a quick run.
    pub latencies: Vec<LatencyRow>,
    /// The cores' jitter, one after the other, then at once where that was asked for.
    pub jitter: Vec<JitterRow>,
}

/// Cost and resolution of a clock.
#[derive(Clone, Debug, Serialize)]
pub struct ClockRow {
    /// `counter_end`, `monotonic`.
    pub name: String,
    /// How it is read.
    pub what: String,
    /// A read, nanoseconds: the median of chunks.
    pub read_ns: Estimate,
    /// The smallest step between two different readings, nanoseconds; `None` where none was seen.
    pub step_ns: Option<f64>,
    /// How much faster than `CLOCK_MONOTONIC_RAW` it ran, parts per million; `None` for one that does not count time as it
    /// passes.
    pub drift_ppm: Option<f64>,
}

/// A cache line's way between two cores.
#[derive(Clone, Debug, Serialize)]
pub struct TransferRow {
    /// The asking CPU and the answering one.
    pub cpus: [usize; 2],
    /// Half a round trip, nanoseconds: the median of the probes.
    pub ns: Estimate,
    /// Probes.
    pub probes: usize,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// The placement of most probes.
    pub placement: String,
    /// Each placement that was seen.
    pub classes: Vec<TransferClass>,
    /// How often a probe found another placement than the one before it.
    pub changes: usize,
}

/// Probes of one placement.
#[derive(Clone, Debug, Serialize)]
pub struct TransferClass {
    /// `siblings`, `same_cache`, `across_caches`.
    pub placement: String,
    /// Its share of the probes, 0 to 1.
    pub share: f64,
    /// The median of its probes, nanoseconds.
    pub ns: f64,
}

/// Cost of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct CostRow {
    /// `system_call`.
    pub name: String,
    /// Description of the timed operation.
    pub what: String,
    /// Operations between two stamps.
    pub batch: u32,
    /// Chunks that were timed.
    pub chunks: usize,
    /// Blocks that they were timed in.
    pub blocks: usize,
    /// Nanoseconds: the median of the chunks.
    pub ns: Estimate,
    /// Nanoseconds: the mean of the chunks, what disturbed the machine included.
    pub mean_ns: Estimate,
    /// The figure published by V100, nanoseconds.
    pub v100_ns: Option<f64>,
}

/// One size of a curve.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LatencyRow {
    /// The size of the loaded memory.
    pub bytes: usize,
    /// Nanoseconds of a load, on pages of 4 KiB.
    pub small_pages_ns: f64,
    /// On pages of 2 MiB; `None` where the kernel has none.
    pub huge_pages_ns: Option<f64>,
}

/// Stalls of a spinning core.
#[derive(Clone, Debug, Serialize)]
pub struct JitterRow {
    /// The CPU.
    pub cpu: usize,
    /// All cores spun at once.
    pub at_once: bool,
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Seconds of them in which the kernel was asked for causes; no interrupt is seen meanwhile.
    pub asking_seconds: f64,
    /// Gaps longer than this are stalls, nanoseconds.
    pub threshold_ns: u64,
    /// Stalls a second.
    pub stalls_per_s: f64,
    /// The share of the time that they took, 0 to 1.
    pub share: f64,
    /// Each cause.
    pub causes: Vec<CauseCount>,
    /// Interrupts by the kernel's name, the most frequent first; those of the time spent asking included.
    pub interrupts: Vec<InterruptCount>,
    /// The longest stalls.
    pub longest: Vec<LongStall>,
    /// Stalls that no room was left for; they count in the causes, but not among the longest.
    pub unkept: u64,
}

/// Interrupts of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct InterruptCount {
    /// `LOC`, `CAL`, or a device's number and name.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// One of the longest stalls.
#[derive(Clone, Debug, Serialize)]
pub struct LongStall {
    /// Seconds after the first look.
    pub at_s: f64,
    /// How long it lasted, nanoseconds.
    pub length_ns: u64,
    /// The cause.
    pub cause: String,
}

impl FloorResult {
    /// Writes all of it as JSON.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *to, self)?;
        writeln!(to)
    }

    /// Writes one line a figure, `section,name,value,unit,ci95_low,ci95_high,v100,what,forced`, for `bench/results`. In the
    /// section `jitter` a line is a cause: its stalls a second, no interval.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_csv(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(to, "section,name,value,unit,ci95_low,ci95_high,v100,what,forced")?;
        let forced = self.environment.forced.is_some();
        let mut line = |section: &str, name: &str, unit: &str, value: &Estimate, v100: Option<f64>, what: &str| {
            let v100 = v100.map_or_else(String::new, |v100| v100.to_string());
            let Estimate { value, low, high } = value;
            let what = what.replace('"', "'");
            writeln!(to, "{section},{name},{value:.3},{unit},{low:.3},{high:.3},{v100},\"{what}\",{forced}")
        };
        for clock in &self.clocks {
            line("clock", &clock.name, "ns", &clock.read_ns, None, &clock.what)?;
        }
        for transfer in &self.transfers {
            let name = format!("{}-{}", transfer.cpus[0], transfer.cpus[1]);
            line("transfer", &name, "ns", &transfer.ns, None, &transfer.placement)?;
        }
        for cost in &self.costs {
            line("cost", &cost.name, "ns", &cost.ns, cost.v100_ns, &cost.what)?;
        }
        for core in &self.jitter {
            for cause in &core.causes {
                let name = format!("{}_{}{}", core.cpu, cause.cause, if core.at_once { "_at_once" } else { "" });
                let rate = Estimate { value: cause.per_s, low: cause.per_s, high: cause.per_s };
                let what =
                    format!("{:.0} ns in {} stalls, the longest {:.0}", cause.total_ns, cause.count, cause.max_ns);
                line("jitter", &name, "per_s", &rate, None, &what)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
