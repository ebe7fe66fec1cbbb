//! The privileges of the kernel path and of relays that share sockets, which no other thread keeps.

use rustix::io;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Drops CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW from this thread, which needs none of them.
pub(crate) fn drop_all() {
    // A thread that may not drop them had none that matter.
    let _ = drop_unless_needed(|| true);
}

/// Drops CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW from this thread and from those that it starts. `is_writable` says
/// whether this thread can write the kernel's tables: before Linux 5.19 that needs CAP_BPF, which stays in that case.
/// Returns whether it stays.
///
/// # Errors
/// The system call failed; the thread keeps what it had.
pub(crate) fn drop_unless_needed(is_writable: impl FnOnce() -> bool) -> io::Result<bool> {
    let before = capabilities(None)?;
    let all = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    set_capabilities(None, CapabilitySets { effective: before.effective - all, ..before })?;
    let is_bpf_needed = !is_writable() && before.permitted.contains(CapabilitySet::BPF);
    let dropped = if is_bpf_needed { all - CapabilitySet::BPF } else { all };
    let after = CapabilitySets {
        effective: before.effective - dropped,
        permitted: before.permitted - dropped,
        inheritable: before.inheritable - dropped,
    };
    set_capabilities(None, after)?;
    Ok(is_bpf_needed)
}
