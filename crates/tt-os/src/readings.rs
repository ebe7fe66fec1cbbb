//! Load of the machine during a measurement.

use crate::machine::value_of;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use std::fs;

/// One step of the kernel's USER_HZ, microseconds.
const TICK_US: f64 = 10_000.0;

/// Counters of the machine and of this process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// Time of all CPUs together, in the kernel's USER_HZ (1/100 s).
    pub cpu_total: u64,
    /// Part of it stolen by the hypervisor.
    pub cpu_steal: u64,
    /// Part of it idle, or idle until a disk responds.
    pub cpu_idle: u64,
    /// CPUs that the time is of.
    pub cpus: usize,
    /// CPU time of this process and of those that it started and waited for, microseconds.
    pub cpu_own_us: u64,
    /// Microseconds in which some task waited for a CPU; `None` where the kernel has no pressure readings.
    pub pressure_cpu_us: Option<u64>,
    /// Interrupts of all CPUs.
    pub interrupts: u64,
    /// Times that a thread of this process gave its CPU up by itself.
    pub switches_voluntary: u64,
    /// Times that the kernel took the CPU from a thread of this process.
    pub switches_involuntary: u64,
    /// Page faults of this process that needed no disk.
    pub faults_minor: u64,
    /// Page faults of this process that needed one.
    pub faults_major: u64,
}

impl Readings {
    /// Takes the readings. Costs some tens of microseconds.
    #[must_use]
    pub fn take() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let pressure = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        let mut readings = Self::of_machine(&stat, &pressure);
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            readings.switches_voluntary = unsigned(usage.voluntary_context_switches());
            readings.switches_involuntary = unsigned(usage.involuntary_context_switches());
            readings.faults_minor = unsigned(usage.minor_page_faults());
            readings.faults_major = unsigned(usage.major_page_faults());
        }
        for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
            let used = getrusage(who).map_or(0, |usage| micros(usage.user_time()) + micros(usage.system_time()));
            readings.cpu_own_us += used;
        }
        readings
    }

    /// Returns the difference from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let pressure = self.pressure_cpu_us.zip(earlier.pressure_cpu_us);
        Self {
            cpu_total: self.cpu_total.saturating_sub(earlier.cpu_total),
            cpu_steal: self.cpu_steal.saturating_sub(earlier.cpu_steal),
            cpu_idle: self.cpu_idle.saturating_sub(earlier.cpu_idle),
            cpus: self.cpus,
            cpu_own_us: self.cpu_own_us.saturating_sub(earlier.cpu_own_us),
            pressure_cpu_us: pressure.map(|(now, then)| now.saturating_sub(then)),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
            faults_minor: self.faults_minor.saturating_sub(earlier.faults_minor),
            faults_major: self.faults_major.saturating_sub(earlier.faults_major),
        }
    }

    /// The stolen share of the CPUs' time, 0 to 1. Call it on a difference.
    #[must_use]
    pub fn steal_share(&self) -> f64 {
        if self.cpu_total == 0 { 0.0 } else { self.cpu_steal as f64 / self.cpu_total as f64 }
    }

    /// CPUs that some process or interrupt used, 0 to `cpus`. Call it on a difference.
    #[must_use]
    pub fn active_cpus(&self) -> f64 {
        let active = self.cpu_total.saturating_sub(self.cpu_idle).saturating_sub(self.cpu_steal);
        if self.cpu_total == 0 { 0.0 } else { active as f64 / self.cpu_total as f64 * self.cpus as f64 }
    }

    /// CPUs that other processes or interrupts used, 0 to `cpus`. Call it on a difference. A process that this one
    /// started counts as another until it was waited for.
    #[must_use]
    pub fn others_cpus(&self) -> f64 {
        let wall_us = self.cpu_total as f64 / self.cpus.max(1) as f64 * TICK_US;
        if self.cpu_total == 0 { 0.0 } else { (self.active_cpus() - self.cpu_own_us as f64 / wall_us).max(0.0) }
    }

    /// Reads the texts of `/proc/stat` and `/proc/pressure/cpu`; the counters of this process stay 0.
    ///
    /// The first line of `stat`: user, nice, system, idle, iowait, irq, softirq, steal (guest time is in user).
    #[must_use]
    pub fn of_machine(stat: &str, pressure: &str) -> Self {
        let first = stat.lines().next().unwrap_or_default();
        let mut parts = [0; 8];
        for (part, word) in parts.iter_mut().zip(first.split_whitespace().skip(1)) {
            *part = word.parse().unwrap_or(0);
        }
        let [.., idle, iowait, _irq, _softirq, steal] = parts;
        let interrupts = stat.lines().find_map(|line| line.strip_prefix("intr ")?.split(' ').next()?.parse().ok());
        Self {
            cpu_total: parts.iter().sum(),
            cpu_steal: steal,
            cpu_idle: idle + iowait,
            cpus: stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count(),
            pressure_cpu_us: pressure_us(pressure),
            interrupts: interrupts.unwrap_or(0),
            ..Self::default()
        }
    }
}

fn micros(time: TimeVal) -> u64 {
    unsigned(time.num_microseconds())
}

fn unsigned(count: impl Into<i64>) -> u64 {
    u64::try_from(count.into()).unwrap_or(0)
}

/// `some avg10=.. avg60=.. avg300=.. total=<us>`.
fn pressure_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

/// The locked and peak memory of this process in KiB: `VmLck`, `VmHWM`.
#[must_use]
pub fn memory_kib() -> (Option<u64>, Option<u64>) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |key| value_of(&status, key)?.trim_end_matches(" kB").parse().ok();
    (kib("VmLck"), kib("VmHWM"))
}

#[cfg(test)]
mod tests {
    use super::{Readings, memory_kib};

    #[test]
    fn the_line_of_all_cpus_is_read_by_column() {
        let stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 1234 5 6\nctxt 99\n";
        let pressure =
            "some avg10=1.00 avg60=2.00 avg300=3.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        let readings = Readings::of_machine(stat, pressure);
        assert_eq!((readings.cpu_total, readings.cpu_steal, readings.cpu_idle), (360, 80, 90));
        assert_eq!((readings.interrupts, readings.cpus, readings.pressure_cpu_us), (1234, 1, Some(77)));
        let since = readings.since(&Readings::default());
        assert_eq!((since.steal_share(), since.active_cpus()), (80.0 / 360.0, 190.0 / 360.0));
        assert_eq!(Readings::of_machine(stat, "").pressure_cpu_us, None);
    }

    #[test]
    fn other_processes_are_what_this_one_did_not_use() {
        // Two CPUs for 2 s: one busy all the time, the other for a tenth of it.
        let busy = Readings { cpu_total: 400, cpu_idle: 180, cpus: 2, ..Readings::default() };
        assert!((busy.others_cpus() - 1.1).abs() < 1e-9, "{busy:?}");
        let own = Readings { cpu_own_us: 2_000_000, ..busy };
        assert!((own.others_cpus() - 0.1).abs() < 1e-9, "{own:?}");
        // The kernel counts a process exactly and CPUs by samples.
        assert!(Readings { cpu_own_us: 2_300_000, ..busy }.others_cpus().abs() < 1e-9);
        assert!(Readings::default().others_cpus().abs() < 1e-9);
    }

    #[test]
    fn own_time_has_that_of_the_processes_which_ended() {
        let before = Readings::take();
        let loops = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let shell = std::process::Command::new("sh").args(["-c", loops]).status();
        assert!(shell.is_ok_and(|status| status.success()));
        let window = Readings::take().since(&before);
        assert!(window.cpu_own_us >= 30_000, "{window:?}");
    }

    #[test]
    fn a_fault_is_seen() {
        // Locked memory comes without faults.
        let _alone = crate::memory::LOCKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = Readings::take();
        let pages = core::hint::black_box(vec![1_u8; 1 << 22]);
        let window = Readings::take().since(&before);
        assert!(window.faults_minor > 0, "{window:?} after {} bytes", pages.len());
        assert!(memory_kib().1.is_some_and(|peak| peak > 4096));
    }
}
