//! The counter reads: the only unsafe code of this crate.

/// Whether this machine has a counter that this module can read.
pub(crate) const PRESENT: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Reads the counter after all earlier instructions have completed; later ones may start before the read.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn start() -> u64 {
    let low: u64;
    let high: u64;
    // SAFETY: `lfence` and `rdtsc` exist on every x86-64, write only rax and rdx (both declared) and leave the stack
    // alone. Memory is left clobbered so that the compiler moves no access across the read.
    unsafe {
        core::arch::asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// Reads the counter without ordering: the processor may read it before earlier or after later instructions.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn unordered() -> u64 {
    let low: u64;
    let high: u64;
    // SAFETY: `rdtsc` exists on every x86-64, writes only rax and rdx (both declared) and leaves the stack alone.
    unsafe {
        core::arch::asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// Reads the counter after all earlier instructions have completed, and before any later one starts.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn end() -> u64 {
    let low: u64;
    let high: u64;
    // SAFETY: `rdtscp` exists on every x86-64 with an invariant counter, writes only rax, rdx and rcx (all declared) and
    // leaves the stack alone; `lfence` writes nothing. Memory is left clobbered as in `start`.
    unsafe {
        core::arch::asm!(
            "rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _, options(nostack, preserves_flags)
        );
    }
    high << 32 | low
}

/// Reads the counter after all earlier instructions have completed.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn start() -> u64 {
    let count: u64;
    // SAFETY: `cntvct_el0` is readable from user mode on every 64-bit Arm system that Linux supports; only one register,
    // declared, is written.
    unsafe {
        core::arch::asm!("isb", "mrs {count}, cntvct_el0", count = out(reg) count, options(nostack, preserves_flags));
    }
    count
}

/// Reads the counter without ordering.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn unordered() -> u64 {
    let count: u64;
    // SAFETY: `cntvct_el0` is readable from user mode on every 64-bit Arm system that Linux supports; only one register,
    // declared, is written.
    unsafe {
        core::arch::asm!("mrs {count}, cntvct_el0", count = out(reg) count, options(nostack, preserves_flags));
    }
    count
}

/// Reads the counter after all earlier instructions have completed, and before any later one starts.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn end() -> u64 {
    let count: u64;
    // SAFETY: as in `start`; the second `isb` writes nothing.
    unsafe {
        core::arch::asm!(
            "isb", "mrs {count}, cntvct_el0", "isb", count = out(reg) count, options(nostack, preserves_flags)
        );
    }
    count
}

/// There is no counter that this crate knows; [`PRESENT`] is false and no caller comes here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn start() -> u64 {
    0
}

/// There is no counter that this crate knows; [`PRESENT`] is false and no caller comes here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn end() -> u64 {
    0
}

/// There is no counter that this crate knows; [`PRESENT`] is false and no caller comes here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn unordered() -> u64 {
    0
}
