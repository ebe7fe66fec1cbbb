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

/// Values of `SO_MEMINFO` (`SK_MEMINFO_VARS` of `linux/sock_diag.h`).
const MEMORY_VALUES: usize = 9;

/// Returns the first two values of `SO_MEMINFO`: the bytes of the receive queue, and those that it may have.
pub(crate) fn socket_memory(socket: &impl AsFd) -> io::Result<[u32; 2]> {
    let mut values = [0_u32; MEMORY_VALUES];
    let mut len = size_of_val(&values) as libc::socklen_t;
    let (descriptor, place) = (socket.as_fd().as_raw_fd(), values.as_mut_ptr().cast());
    // SAFETY: `place` points to `len` writable bytes that outlive the call, in which the kernel writes whole integers, and
    // it writes no more than that into `values`.
    let done = unsafe { libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_MEMINFO, place, &raw mut len) };
    if done == 0 { Ok([values[0], values[1]]) } else { Err(io::Error::last_os_error()) }
}
