//! Socket options for which there is no safe wrapper.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The kernel's treatment of packets longer than an MTU (`IP_MTU_DISCOVER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum MtuDiscovery {
    /// DF is 1, whatever the path's MTU is thought to be; nothing is fragmented here.
    Probe = libc::IP_PMTUDISC_PROBE,
    /// DF is 0; what is longer than the device's MTU is fragmented here, and no ICMP message shrinks that.
    Omit = libc::IP_PMTUDISC_OMIT,
}

/// Sets `IP_MTU_DISCOVER`.
pub(crate) fn set_mtu_discovery(socket: &impl AsFd, discovery: MtuDiscovery) -> io::Result<()> {
    let value = discovery as libc::c_int;
    let (descriptor, place) = (socket.as_fd().as_raw_fd(), std::ptr::from_ref(&value).cast());
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `place` points to `len` initialised bytes that outlive the call; the kernel only reads them.
    let done = unsafe { libc::setsockopt(descriptor, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, place, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
