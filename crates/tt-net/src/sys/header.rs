//! The kernel's header of a datagram, and the calls for many.

use std::os::fd::RawFd;

/// A `mmsghdr` that points nowhere.
pub(super) fn empty_header() -> libc::mmsghdr {
    // SAFETY: `mmsghdr` is a C structure of integers and raw pointers; all of them may be zero.
    unsafe { std::mem::zeroed() }
}

/// `sendmmsg(2)`: returns how many were sent, or -1 and sets `errno`. musl's own function sends them one by one.
///
/// # Safety
/// As for the system call: `headers` must point to `len` headers, and they to what they say.
pub(super) unsafe fn send_many(socket: RawFd, headers: *mut libc::mmsghdr, len: u32, flags: i32) -> libc::c_long {
    // SAFETY: the caller keeps the promises of the system call.
    unsafe { libc::syscall(libc::SYS_sendmmsg, socket, headers, len, flags) }
}

/// `recvmmsg(2)` without a time limit: returns how many were received, or -1 and sets `errno`.
///
/// # Safety
/// As for the system call: `headers` must point to `len` headers, and they to what they say.
pub(super) unsafe fn receive_many(socket: RawFd, headers: *mut libc::mmsghdr, len: u32, flags: i32) -> libc::c_long {
    // SAFETY: the caller keeps the promises of the system call; a null time limit is allowed.
    unsafe { libc::syscall(libc::SYS_recvmmsg, socket, headers, len, flags, std::ptr::null_mut::<libc::timespec>()) }
}
