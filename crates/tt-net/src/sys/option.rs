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
    set_option(socket, (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), &(discovery as libc::c_int).to_ne_bytes())
}

/// Sets the option of a level to the bytes of `value`.
pub(crate) fn set_option(socket: &impl AsFd, (level, option): (i32, i32), value: &[u8]) -> io::Result<()> {
    let (descriptor, place) = (socket.as_fd().as_raw_fd(), value.as_ptr().cast());
    let len = value.len() as libc::socklen_t;
    // SAFETY: `place` points to `len` initialised bytes that outlive the call; the kernel only reads them.
    let done = unsafe { libc::setsockopt(descriptor, level, option, place, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
