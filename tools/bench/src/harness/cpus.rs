//! CPUs that a run may use.

use std::sync::OnceLock;

/// Returns the CPUs that this process was allowed to use before a thread was pinned.
pub(crate) fn available() -> Vec<usize> {
    static CPUS: OnceLock<Vec<usize>> = OnceLock::new();
    CPUS.get_or_init(|| tt_os::cpu::available().unwrap_or_else(|_| vec![0])).clone()
}

/// Pins this thread to the last available CPU: the first one serves most interrupts.
pub(crate) fn pin_to_last() -> Option<usize> {
    let cpu = *available().last()?;
    tt_os::cpu::pin(cpu).ok().map(|()| cpu)
}
