//! Status of the machine and of this process.

use serde::Serialize;

/// The machine and this process on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineStatus {
    /// truetick's version.
    pub version: &'static str,
    /// `release`, or `debug`: then every time is many times too long.
    pub build: &'static str,
    /// The instruction set.
    pub arch: &'static str,
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The frequency governor, absent where the machine has none.
    pub governor: Option<String>,
    /// Since the control plane started, milliseconds.
    pub uptime_ms: u64,
    /// Memory in use, bytes.
    pub rss_bytes: u64,
    /// Processor time used by all threads, milliseconds.
    pub cpu_ms: u64,
    /// Threads.
    pub threads: u64,
}
