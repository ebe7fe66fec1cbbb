//! The machine, the build and what disturbed the run.

use anyhow::ensure;
use serde::Serialize;

/// Label of a run that `--force` allowed.
pub const FORCED: &str = "FORCED on a busy machine";

/// Steal above which tails belong to the machine, per cent: one stolen step of the kernel's clock in 200, which a p99.9
/// already contains.
pub const STEAL_PCT_MAX: f64 = 0.5;

/// CPUs that other processes may use. An idle system with its daemons uses less than 0.05; a single spinning thread
/// uses 1, and a tenth of a CPU is already within reach of the tails (p90) of a row on that CPU.
pub const OTHERS_CPUS_MAX: f64 = 0.1;

/// CPU pressure above which a machine is busy before a run, per cent: in one part of 20 some thread waited for a CPU.
pub const PRESSURE_PCT_MAX: f64 = 5.0;

/// Machine, build, clock and disturbance of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Environment {
    /// UTC, ISO 8601.
    pub date: String,
    /// The machine.
    pub machine: Machine,
    /// The build.
    pub build: Build,
    /// The clock.
    pub timing: Timing,
    /// Disturbances during the run.
    pub disturbance: Disturbance,
    /// Why the machine was too busy before the run, if it was measured nevertheless (`--force`).
    pub forced: Option<String>,
    /// Seed of inputs and resampling.
    pub seed: u64,
    /// What this run does not measure.
    pub not_measured: Vec<String>,
}

/// The machine; a field that could not be read says "unknown".
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// Logical CPUs that this process may use.
    pub cores: usize,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// Frequency governor, or "hypervisor: unknown".
    pub governor: String,
    /// Whether turbo is on, or "unknown".
    pub turbo: String,
    /// Mitigations in force, shortened.
    pub mitigations: String,
    /// The kernel's clock source.
    pub clocksource: String,
    /// Flags of the CPU's counter (`constant_tsc nonstop_tsc`).
    pub counter_flags: String,
    /// The CPU that the measuring thread was pinned to, `None` where pinning failed.
    pub pinned_to: Option<usize>,
}

/// The build.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Build {
    /// `rustc --version`.
    pub rustc: String,
    /// `debug` or `release`.
    pub profile: String,
    /// Flags given to the compiler beyond the profile's.
    pub flags: String,
    /// Commit of the sources, "unknown" outside a repository.
    pub commit: String,
    /// Whether the sources differ from the commit.
    pub dirty: bool,
}

/// The clock of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Timing {
    /// Cycles of the counter in a second.
    pub counter_hz: f64,
    /// Cost of one read of the clock, nanoseconds. Each chunk includes one read.
    pub read_ns: f64,
    /// Smallest step between two different readings, nanoseconds.
    pub step_ns: f64,
    /// Drift against `CLOCK_MONOTONIC_RAW` over the run, parts per million.
    pub drift_ppm: f64,
    /// One iteration of the do-nothing loop, nanoseconds.
    pub empty_loop_ns: f64,
}

/// Other activity on the machine during the run; `None` where the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Disturbance {
    /// Wall time of the run, seconds.
    pub wall_s: f64,
    /// Share of the CPUs' time that the hypervisor took, per cent.
    pub steal_pct: Option<f64>,
    /// CPUs that other processes and interrupts used.
    pub others_cpus: Option<f64>,
    /// Share of the time in which some task waited for a CPU (`/proc/pressure/cpu`), per cent. The bench's own
    /// threads are among those tasks.
    pub psi_cpu_pct: Option<f64>,
    /// Context switches that this process asked for.
    pub voluntary_switches: Option<u64>,
    /// Context switches that it suffered.
    pub involuntary_switches: Option<u64>,
    /// Page faults without and with a read from disk.
    pub page_faults: Option<u64>,
    /// Interrupts on all CPUs.
    pub interrupts: Option<u64>,
    /// Tasks that ran or waited to run, averaged over the minute before the run.
    pub load_before: Option<f64>,
}

impl Disturbance {
    /// Steal above 0.5 % or other processes on more than 0.1 CPUs: tails belong to the machine and are no claim.
    #[must_use]
    pub fn limits_tails(&self) -> bool {
        self.steal_pct.is_some_and(|pct| pct > STEAL_PCT_MAX)
            || self.others_cpus.is_some_and(|cpus| cpus > OTHERS_CPUS_MAX)
    }
}

impl Build {
    /// A debug build's figures mean nothing.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let profile = self.profile.to_uppercase();
        (self.profile != "release").then(|| {
            format!("THIS IS A {profile} BUILD: no figure here means anything. Use `cargo run --release -- bench`.")
        })
    }
}

impl Environment {
    /// Returns the words before "full run" or "QUICK run" in a result's first line.
    #[must_use]
    pub fn label(&self) -> String {
        self.forced.as_ref().map_or_else(String::new, |_| format!("{FORCED}, "))
    }

    /// Ends a run whose ring lies below its floor at `quantiles`. Those of a debug build or of a forced run end nothing:
    /// no figure of theirs means anything.
    ///
    /// # Errors
    /// There is such a quantile, and the run's figures count.
    pub fn judge_floor(&self, quantiles: &[String]) -> anyhow::Result<()> {
        if quantiles.is_empty() {
            return Ok(());
        }
        let failure = format!("fails: the ring lies below its floor at {}", quantiles.join("; "));
        ensure!(self.build.warning().is_some() || self.forced.is_some(), "{failure}");
        eprintln!("{failure}; not judged: no figure of this run counts");
        Ok(())
    }

    /// Returns warnings, one line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(self.build.warning());
        warnings.extend(self.forced.as_ref().map(|reason| format!("{FORCED}: {reason}")));
        if self.machine.pinned_to.is_none() {
            warnings.push("the measuring thread could not be pinned".to_owned());
        }
        if let Some(load) = self.disturbance.load_before.filter(|load| *load > 0.5 * self.machine.cores as f64) {
            warnings.push(format!("the machine was busy before the run: load {load:.1}"));
        }
        if self.timing.drift_ppm.abs() > 50.0 {
            warnings.push(format!("void: the clock drifted by {:.0} ppm (more than 50)", self.timing.drift_ppm));
        }
        if self.disturbance.limits_tails() {
            warnings.push(format!(
                "tails are limited by the machine (steal {}, other processes on {} CPUs) and are no claim",
                percent(self.disturbance.steal_pct),
                cpus(self.disturbance.others_cpus)
            ));
        }
        warnings
    }
}

pub(crate) fn cpus(value: Option<f64>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |cpus| format!("{cpus:.2}"))
}

pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |pct| format!("{pct:.1} %"))
}

#[cfg(test)]
mod tests {
    use super::{Disturbance, Environment};

    #[test]
    fn a_debug_build_is_said_first_and_loudly() {
        let mut environment = Environment::default();
        environment.build.profile = "debug".to_owned();
        environment.disturbance.steal_pct = Some(0.6);
        environment.forced = Some("other processes use 1.00 CPUs".to_owned());
        let warnings = environment.warnings();
        assert!(warnings[0].contains("DEBUG BUILD"), "{warnings:?}");
        assert_eq!(warnings[1], "FORCED on a busy machine: other processes use 1.00 CPUs");
        assert!(warnings.iter().any(|line| line.contains("steal 0.6 %")), "{warnings:?}");
    }

    #[test]
    fn a_ring_below_its_floor_ends_a_run_whose_figures_count() {
        let mut environment = Environment::default();
        environment.build.profile = "release".to_owned();
        let below = ["p10 by 9.0 ns".to_owned()];
        assert!(environment.judge_floor(&[]).is_ok());
        let failure = environment.judge_floor(&below).unwrap_err().to_string();
        assert_eq!(failure, "fails: the ring lies below its floor at p10 by 9.0 ns");
        environment.forced = Some("other processes use 1.00 CPUs".to_owned());
        assert!(environment.judge_floor(&below).is_ok());
        environment.forced = None;
        environment.build.profile = "debug".to_owned();
        assert!(environment.judge_floor(&below).is_ok());
    }

    #[test]
    fn tails_are_limited_beyond_the_two_bounds_only() {
        let quiet = Disturbance { steal_pct: Some(0.5), others_cpus: Some(0.1), ..Disturbance::default() };
        assert!(!quiet.limits_tails());
        assert!(!Disturbance::default().limits_tails());
        assert!(Disturbance { steal_pct: Some(0.51), ..quiet }.limits_tails());
        assert!(Disturbance { others_cpus: Some(0.11), ..quiet }.limits_tails());
        // Threads of the bench that wait for each other are no fault of the machine.
        assert!(!Disturbance { psi_cpu_pct: Some(47.2), ..quiet }.limits_tails());
    }
}
