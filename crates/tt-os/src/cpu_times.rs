//! Time of one CPU by use, from `/proc/stat`.

use std::fs;

/// Time of one CPU since the machine began, in the kernel's USER_HZ (1/100 s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// All of it.
    pub total: u64,
    /// In interrupts. Stays 0 where the kernel does not account for it, but charges it to whom it interrupts.
    pub interrupts: u64,
    /// In soft interrupts.
    pub soft_interrupts: u64,
    /// Given to others by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// Those of `cpu`; `None` where `/proc/stat` has no line for it.
    #[must_use]
    pub fn read(cpu: usize) -> Option<Self> {
        Self::of_stat(&fs::read_to_string("/proc/stat").ok()?, cpu)
    }

    /// Returns the difference from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            total: self.total.saturating_sub(earlier.total),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            soft_interrupts: self.soft_interrupts.saturating_sub(earlier.soft_interrupts),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// user, nice, system, idle, iowait, irq, softirq, steal (guest time is in user).
    fn of_stat(stat: &str, cpu: usize) -> Option<Self> {
        let name = format!("cpu{cpu} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        let mut parts = [0; 8];
        for (part, word) in parts.iter_mut().zip(line.split_whitespace()) {
            *part = word.parse().ok()?;
        }
        let [.., interrupts, soft_interrupts, steal] = parts;
        Some(Self { total: parts.iter().sum(), interrupts, soft_interrupts, steal })
    }
}

#[cfg(test)]
mod tests {
    use super::CpuTimes;

    #[test]
    fn a_cpu_is_read_by_its_whole_number() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\ncpu10 0 0 0 0 0 0 0 1 0 0\n";
        let times = CpuTimes::of_stat(stat, 1).expect("there is such a line");
        assert_eq!(times, CpuTimes { total: 36, interrupts: 6, soft_interrupts: 7, steal: 8 });
        assert_eq!(CpuTimes::of_stat(stat, 10).map(|times| times.steal), Some(1));
        assert_eq!(CpuTimes::of_stat(stat, 2), None);
    }
}
