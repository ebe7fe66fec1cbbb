//! The kernel's header of a datagram.

/// A `mmsghdr` that points nowhere.
pub(super) fn empty_header() -> libc::mmsghdr {
    // SAFETY: `mmsghdr` is a C structure of integers and raw pointers; all of them may be zero.
    unsafe { std::mem::zeroed() }
}
