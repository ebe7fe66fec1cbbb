//! Description of the machine.

use std::fs;
use std::sync::OnceLock;

use tt_model::sort_short_by;

/// The machine that something was measured on. Texts that could not be read are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The CPU's model name.
    pub cpu_model: Option<String>,
    /// CPUs that the kernel has on line.
    pub cpus_online: usize,
    /// CPUs that this process may use.
    pub cpus_available: usize,
    /// The TSC runs at one rate whatever the core's frequency.
    pub constant_tsc: bool,
    /// The TSC goes on in deep sleep.
    pub nonstop_tsc: bool,
    /// The kernel's clock source: `tsc` where the TSC can be trusted.
    pub clocksource: Option<String>,
    /// The frequency governor of CPU 0; `None` under most hypervisors.
    pub governor: Option<String>,
    /// The machine is a guest of a hypervisor.
    pub hypervisor: bool,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Mitigations of the CPU's vulnerabilities in force, as `name: what`, sorted.
    pub mitigations: Vec<String>,
    /// Size of the last-level cache of CPU 0 in KiB.
    pub llc_kib: Option<u64>,
    /// Total memory in KiB.
    pub memory_kib: Option<u64>,
}

impl Machine {
    /// Reads what `/proc` and `/sys` say.
    #[must_use]
    pub fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let online = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        let flags = value_of(&cpuinfo, "flags").or_else(|| value_of(&cpuinfo, "Features")).unwrap_or_default();
        let has = |flag| flags.split_whitespace().any(|word| word == flag);
        Self {
            cpu_model: value_of(&cpuinfo, "model name").map(str::to_owned),
            cpus_online: online,
            cpus_available: crate::cpu::available().map_or(online, |cpus| cpus.len()),
            constant_tsc: has("constant_tsc"),
            nonstop_tsc: has("nonstop_tsc"),
            clocksource: line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            hypervisor: has("hypervisor"),
            kernel: line_of("/proc/sys/kernel/osrelease"),
            mitigations: mitigations(),
            llc_kib: llc_kib(),
            memory_kib: memory_kib(),
        }
    }

    /// Returns what the first call in this process read: `/proc/cpuinfo` interrupts every core.
    #[must_use]
    pub fn at_start() -> &'static Self {
        static MACHINE: OnceLock<Machine> = OnceLock::new();
        MACHINE.get_or_init(Self::read)
    }

    /// Whether stamps of the TSC can be turned into time (constant rate, never stopping, the kernel trusts it).
    #[must_use]
    pub fn trusts_tsc(&self) -> bool {
        self.constant_tsc && self.nonstop_tsc && self.clocksource.as_deref() == Some("tsc")
    }
}

/// The text after `key` and a colon on the first line that starts with `key`.
pub(crate) fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then_some(value.trim())
    })
}

fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}

fn mitigations() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let state = line_of(entry.path().to_str()?)?;
            let mitigation = state.strip_prefix("Mitigation: ")?;
            Some(format!("{}: {mitigation}", entry.file_name().to_string_lossy()))
        })
        .collect();
    sort_short_by(&mut found, Ord::cmp);
    found
}

fn llc_kib() -> Option<u64> {
    let size = |index| line_of(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"));
    let last = (0..8).rev().find_map(size)?;
    match last.strip_suffix('M') {
        Some(mib) => mib.parse().ok().map(|mib: u64| mib * 1024),
        None => last.trim_end_matches('K').parse().ok(),
    }
}

fn memory_kib() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    value_of(&meminfo, "MemTotal")?.trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Machine, value_of};

    #[test]
    fn reads_the_value_after_key_and_colon() {
        let text = "model\t\t: 17\nmodel name\t: Some CPU: 3\nflags\t: a b\n";
        assert_eq!(value_of(text, "model name"), Some("Some CPU: 3"));
        assert_eq!(value_of(text, "model"), Some("17"));
        assert_eq!(value_of(text, "mod"), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read();
        assert!(machine.cpus_online >= machine.cpus_available && machine.cpus_available >= 1);
        assert_eq!(machine.kernel.as_deref(), nix::sys::utsname::uname().unwrap().release().to_str());
        assert!(machine.memory_kib.is_some_and(|kib| kib > 1024));
    }
}
