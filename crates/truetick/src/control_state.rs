//! State for the control plane: the API token and the status of the machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use control::{ApiToken, HttpSection};
use tt_os::machine::Machine;
use tt_os::secret_file;
use tt_os::usage::ProcessUsage;
use tt_status::Reading;
use tt_status::machine::MachineStatus;

/// Reads the API token from the file that the flag or else `[http]` names.
///
/// # Errors
/// The file cannot be read, has permissions for others than its owner, or holds no token; the error names it.
pub(crate) fn api_token(flag: Option<&Path>, section: &HttpSection) -> anyhow::Result<Option<ApiToken>> {
    let path = flag.or(section.api_token_file.as_deref());
    path.map(|path| Ok(ApiToken::new(secret_file::read_first_line(path)?))).transpose()
}

/// Returns the reading of the machine and this process. The machine is read once: `/proc/cpuinfo` interrupts every core.
pub(crate) fn machine() -> Reading<MachineStatus> {
    let (host, started) = (Machine::at_start(), Instant::now());
    Arc::new(move || {
        let usage = ProcessUsage::read();
        MachineStatus {
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            arch: std::env::consts::ARCH,
            cpu: host.cpu_model.clone().unwrap_or_else(|| "unknown".into()),
            cores: host.cpus_available,
            kernel: host.kernel.clone().unwrap_or_default(),
            governor: host.governor.clone(),
            uptime_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            rss_bytes: usage.resident_bytes,
            cpu_ms: usage.cpu_ms,
            threads: usage.threads,
        }
    })
}
