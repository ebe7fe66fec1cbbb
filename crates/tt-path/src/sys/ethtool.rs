//! Offloads of an interface (`SIOCETHTOOL`, as ethtool asks).

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// A question with one word as its answer (`linux/ethtool.h`).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Question {
    TxChecksum = 0x16,
    Flags = 0x25,
    Gro = 0x2b,
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

nix::ioctl_readwrite_bad!(ethtool, SIOCETHTOOL, libc::ifreq);

/// Asks about the interfaces of the thread's network namespace.
#[derive(Debug)]
pub(crate) struct Ethtool(OwnedFd);

impl Ethtool {
    pub(crate) fn open() -> Result<Self, Errno> {
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map(Self)
    }

    /// # Errors
    /// The kernel's error: the driver has no answer, or there is no such interface.
    pub(crate) fn ask(&self, name: &str, question: Question) -> Result<u32, Errno> {
        let mut value = Value { command: question as u32, data: 0 };
        let mut ifr_name = [0; libc::IFNAMSIZ];
        if name.len() >= ifr_name.len() {
            return Err(Errno::ENODEV);
        }
        for (to, from) in ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
        let mut request = libc::ifreq { ifr_name, ifr_ifru };
        // SAFETY: the kernel reads the name, which ends with a zero, and for these questions writes a `Value` where
        // `ifru_data` points, which lives until the call returns.
        unsafe { ethtool(self.0.as_raw_fd(), &raw mut request) }?;
        Ok(value.data)
    }
}
