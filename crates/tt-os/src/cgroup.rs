//! The memory that the control group of this process may have (cgroups(7), version 2).

use std::fs;
use std::path::Path;

/// Where the control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Names the control group of this process.
const OWN: &str = "/proc/self/cgroup";

/// Returns the maximum memory in bytes of this process's control group and those above it: the kernel ends a process
/// there. `None` without a maximum, and without a memory controller of version 2.
#[must_use]
pub fn memory_max() -> Option<u64> {
    memory_max_of(Path::new(OWN), Path::new(MOUNT))
}

/// The same for the process of which `own` names the control group, below `mount`.
fn memory_max_of(own: &Path, mount: &Path) -> Option<u64> {
    let groups = fs::read_to_string(own).ok()?;
    // The line of version 2 has the number 0 and names no controllers.
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let group = mount.join(path);
    let above = group.ancestors().take_while(|folder| folder.starts_with(mount));
    above.filter_map(|folder| fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the maximum of a process whose file of groups has this text, where each group has the text of its file.
    fn found(own: &str, groups: &[(&str, &str)]) -> Option<u64> {
        let mount = tempfile::tempdir().unwrap();
        fs::write(mount.path().join("own"), own).unwrap();
        let root = mount.path().join("root");
        for (group, text) in groups {
            fs::create_dir_all(root.join(group)).unwrap();
            fs::write(root.join(group).join("memory.max"), text).unwrap();
        }
        memory_max_of(&mount.path().join("own"), &root)
    }

    #[test]
    fn the_least_maximum_of_the_group_and_those_above_counts() {
        let own = "0::/system.slice/truetick.service\n";
        let (slice, unit, other) = ("system.slice", "system.slice/truetick.service", "system.slice/other.service");
        assert_eq!(found(own, &[(slice, "max\n"), (unit, "536870912\n"), (other, "7\n")]), Some(536_870_912));
        assert_eq!(found(own, &[(slice, "1000\n"), (unit, "2000\n")]), Some(1_000));
        assert_eq!(found(own, &[(slice, "3000\n"), (unit, "max\n")]), Some(3_000));
        // A container sees its own group as the root.
        assert_eq!(found("0::/\n", &[("", "4000\n")]), Some(4_000));
        // Both versions.
        assert_eq!(found("4:memory:/x\n0::/a\n", &[("a", "5000\n"), ("x", "6\n")]), Some(5_000));
    }

    #[test]
    fn no_maximum_is_none() {
        assert_eq!(found("0::/a\n", &[("a", "max\n")]), None);
        assert_eq!(found("0::/a\n", &[("a", "nonsense\n")]), None);
        assert_eq!(found("0::/a\n", &[]), None);
        assert_eq!(found("4:memory:/a\n", &[("a", "1000\n")]), None);
        assert_eq!(found("", &[]), None);
    }
}
