//! Whether the process may use less than its CPUs: the bounds of its control group, version 2 or 1.

use std::fs;
use std::path::{Path, PathBuf};

/// CPU limit and throttling of this process's control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttle {
    /// CPUs' worth of time that the group may use; `None` without a bound, or where there is no group.
    pub cpus_max: Option<f64>,
    /// Periods in which the group was stopped because it had used its share.
    pub throttled_periods: u64,
}

impl Throttle {
    /// Reads it for the process's own group.
    #[must_use]
    pub fn read() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut throttle = Self::default();
        for folder in folders(&groups) {
            let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            let cpus_max = of_cpu_max(&read("cpu.max"))
                .or_else(|| of_quota(&read("cpu.cfs_quota_us"), &read("cpu.cfs_period_us")));
            throttle.cpus_max = throttle.cpus_max.or(cpus_max);
            throttle.throttled_periods = throttle.throttled_periods.max(throttled(&read("cpu.stat")));
        }
        throttle
    }
}

/// Returns the folders that may contain the limits of `groups`, lines of `N:controllers:path`; version 2 has no
/// controllers. In a container the path may be that outside of it, and the files at the top.
fn folders(groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        let tops: &[&str] = if controllers.is_empty() {
            &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        } else {
            &[]
        };
        for top in tops {
            folders.push(Path::new(top).join(path));
            folders.push(PathBuf::from(top));
        }
    }
    folders
}

/// `QUOTA PERIOD` in microseconds, or `max PERIOD`.
fn of_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    of_quota(quota, period)
}

/// Microseconds of each period; -1 and `max` are no bound.
fn of_quota(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok().filter(|quota| *quota > 0.0)?;
    Some(quota / period.trim().parse::<f64>().ok().filter(|period| *period > 0.0)?)
}

fn throttled(stat: &str) -> u64 {
    stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{folders, of_cpu_max, of_quota, throttled};
    use std::path::Path;

    #[test]
    fn bounds_of_both_versions_are_cpus() {
        assert_eq!(of_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(of_cpu_max("max 100000\n"), None);
        assert_eq!(of_quota("50000\n", "100000\n"), Some(0.5));
        assert_eq!(of_quota("-1\n", "100000\n"), None);
        assert_eq!(throttled("nr_periods 9\nnr_throttled 4\nthrottled_usec 7\n"), 4);
    }

    #[test]
    fn a_group_of_either_version_is_found() {
        let both = folders("2:cpu,cpuacct:/a\n1:memory:/m\n0::/b/c\n");
        assert!(both.iter().any(|folder| folder == Path::new("/sys/fs/cgroup/cpu/a")));
        assert!(both.iter().any(|folder| folder == Path::new("/sys/fs/cgroup/b/c")));
        assert!(!both.iter().any(|folder| folder.ends_with("m")));
    }
}
