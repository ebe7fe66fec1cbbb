//! Memory of a process under test.

/// Returns the bytes of `line` in /proc/PID/status, for example `VmRSS` (proc_pid_status(5)).
///
/// # Panics
/// If the process has ended, or the file has no such line.
#[must_use]
pub fn memory_bytes(pid: u32, line: &str) -> u64 {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let kib = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':')?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_else(|| panic!("{path}: no {line}\n{status}")) * 1_024
}
