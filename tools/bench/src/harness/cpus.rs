//! CPUs that a run may use.

use std::sync::OnceLock;

/// Returns the CPUs that this process was allowed to use before a thread was pinned.
pub(crate) fn available() -> Vec<usize> {
    static CPUS: OnceLock<Vec<usize>> = OnceLock::new();
    CPUS.get_or_init(|| tt_os::cpu::available().unwrap_or_else(|_| vec![0])).clone()
}

/// Reads two CPUs as in `2,3`.
///
/// # Errors
/// The text is not two different numbers with a comma between them.
pub fn cpu_pair(text: &str) -> Result<[usize; 2], String> {
    let pair = text.split_once(',').and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
    pair.filter(|[one, other]| one != other).ok_or_else(|| "two different CPUs are needed, such as 2,3".to_owned())
}

/// Pins this thread to the last available CPU: the first one serves most interrupts.
pub(crate) fn pin_to_last() -> Option<usize> {
    let cpu = *available().last()?;
    tt_os::cpu::pin(cpu).ok().map(|()| cpu)
}
