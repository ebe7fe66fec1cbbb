//! Why the kernel does not relay, in one line that says what would help.

use std::error::Error;
use std::fmt;
use std::io;

/// Why the fast path cannot be used. The caller continues with sockets.
#[derive(Debug)]
pub enum PathError {
    /// The committed object and this crate disagree.
    Layout(String),
    /// The kernel did not accept maps or program.
    Load {
        /// The step that failed: `maps`, `program`.
        step: &'static str,
        /// The kernel's error, if a system call failed.
        os: Option<i32>,
        /// The first line of the loader's message, or the last of the verifier's log.
        detail: String,
    },
    /// The program could not be attached.
    Attach {
        /// Name of the interface.
        interface: String,
        /// The kernel's error.
        os: Option<i32>,
    },
    /// Another attached interface has the same slot.
    Slot {
        /// Name of the interface.
        interface: String,
        /// Index of the interface that has the slot.
        taken_by: u32,
    },
    /// A map could not be read or changed.
    Map {
        /// Name of the map.
        map: &'static str,
        /// The kernel's error.
        os: Option<i32>,
    },
    /// rtnetlink does not answer as it should.
    Netlink {
        /// The step that failed: `open`, `notifications`, `keep alive`.
        step: &'static str,
        /// The kernel's error; `None` if the answer is not understood.
        os: Option<i32>,
    },
    /// A path's addresses are not of one family.
    Family,
    /// An index is outside of its table.
    Index {
        /// Name of the table.
        map: &'static str,
        /// The index.
        index: u32,
    },
}

impl PathError {
    /// Returns the kernel's error number, if a system call failed.
    #[must_use]
    pub const fn os_error(&self) -> Option<i32> {
        match self {
            Self::Load { os, .. } | Self::Attach { os, .. } | Self::Map { os, .. } | Self::Netlink { os, .. } => *os,
            Self::Layout(_) | Self::Slot { .. } | Self::Family | Self::Index { .. } => None,
        }
    }
}

const EPERM: i32 = 1;
const E2BIG: i32 = 7;
const EBUSY: i32 = 16;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const ERANGE: i32 = 34;
const EOPNOTSUPP: i32 = 95;

const GRANT: &str = "grant CAP_BPF and CAP_NET_ADMIN";

impl fmt::Display for PathError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(what) => write!(out, "the XDP object is not the one of this build: {what}; build again"),
            Self::Load { step, os: Some(EPERM), .. } => {
                write!(out, "the kernel denies BPF ({step}): {GRANT}, or use sockets only")
            }
            Self::Load { step, os: Some(os), detail } => {
                let reason = io::Error::from_raw_os_error(*os);
                write!(out, "the kernel rejects the XDP {step}: {reason}: {detail}; Linux 5.18 or later is needed")
            }
            Self::Load { step, os: None, detail } => write!(out, "the XDP {step} cannot be loaded: {detail}"),
            Self::Attach { interface, os } => write_attach(out, interface, *os),
            Self::Slot { interface, taken_by } => {
                write!(out, "{interface} cannot be attached with interface {taken_by}: use one of them")
            }
            Self::Map { map, os: Some(E2BIG) } => write!(out, "the map {map} is full: raise the number of paths"),
            Self::Map { map, os: Some(EPERM) } => {
                write!(out, "the kernel denies access to the map {map}: keep CAP_BPF")
            }
            Self::Map { map, os: Some(os) } => write!(out, "the map {map}: {}", io::Error::from_raw_os_error(*os)),
            Self::Map { map, os: None } => write!(out, "the map {map} is not the one of this build: build again"),
            Self::Netlink { step, os: Some(EPERM) } => {
                write!(out, "the kernel denies rtnetlink ({step}): keep CAP_NET_ADMIN")
            }
            Self::Netlink { step, os: Some(os) } => {
                write!(out, "rtnetlink ({step}): {}", io::Error::from_raw_os_error(*os))
            }
            Self::Netlink { step, os: None } => write!(out, "rtnetlink ({step}): an answer that is not understood"),
            Self::Family => out.write_str("the addresses of the path are not of one family: relay by sockets"),
            Self::Index { map, index } => write!(out, "the map {map} has no entry {index}: load it with more"),
        }
    }
}

fn write_attach(out: &mut fmt::Formatter<'_>, interface: &str, os: Option<i32>) -> fmt::Result {
    match os {
        Some(EPERM) => write!(out, "the kernel denies XDP on {interface}: {GRANT}"),
        Some(EBUSY) => write!(out, "another XDP program is on {interface}: ip link set dev {interface} xdp off"),
        Some(ENODEV) => write!(out, "there is no interface {interface}: ip link show"),
        Some(EOPNOTSUPP) => {
            write!(out, "the driver of {interface} has no native XDP: use generic mode, or sockets only")
        }
        Some(EINVAL | ERANGE) => {
            write!(out, "the driver of {interface} rejects XDP: ethtool -K {interface} lro off, or a smaller MTU")
        }
        Some(os) => write!(out, "XDP on {interface}: {}", io::Error::from_raw_os_error(os)),
        None => write!(out, "{interface} has no BPF links: Linux 5.9 or later is needed"),
    }
}

impl Error for PathError {}

/// Why relays cannot share sockets. The caller continues with a socket for each of them.
#[derive(Debug)]
pub enum SteerError {
    /// The committed object and this crate disagree.
    Layout(String),
    /// The kernel did not accept maps, program or attachment.
    Load {
        /// The step that failed: `maps`, `program`, `link`.
        step: &'static str,
        /// The kernel's error, if a system call failed.
        os: Option<i32>,
        /// The first line of the loader's message, or the last of the verifier's log.
        detail: String,
    },
}

impl SteerError {
    pub(crate) fn load(step: &'static str, os: Option<i32>, error: &dyn Error) -> Self {
        Self::Load { step, os, detail: error.to_string().lines().next().unwrap_or_default().to_owned() }
    }

    /// Returns the kernel's error number, if a system call failed.
    #[must_use]
    pub const fn os_error(&self) -> Option<i32> {
        match self {
            Self::Layout(_) => None,
            Self::Load { os, .. } => *os,
        }
    }
}

impl fmt::Display for SteerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(what) => write!(out, "the sk_lookup object is not the one of this build: {what}; build again"),
            Self::Load { step, os: Some(EPERM), .. } => write!(out, "the kernel denies BPF ({step}): {GRANT}"),
            Self::Load { step, os: Some(os), detail } => {
                let reason = io::Error::from_raw_os_error(*os);
                write!(out, "the kernel rejects the sk_lookup {step}: {reason}: {detail}; Linux 5.9 or later is needed")
            }
            Self::Load { step, os: None, detail } => write!(out, "the sk_lookup {step} cannot be loaded: {detail}"),
        }
    }
}

impl Error for SteerError {}

/// Why packets that the kernel relays cannot be copied.
#[derive(Debug)]
pub enum DumpError {
    /// A privilege is missing.
    Denied,
    /// Another process has the packets of the program copied.
    Busy,
    /// A program is not one whose packets can be copied.
    Program {
        /// The kernel's number of it.
        id: u32,
        /// What it is.
        is: &'static str,
    },
    /// A program or a map cannot be read.
    Read {
        /// What cannot be read.
        what: &'static str,
        /// The kernel's error, if a system call failed.
        os: Option<i32>,
    },
}

impl DumpError {
    pub(crate) fn read(what: &'static str, error: &(dyn Error + 'static)) -> Self {
        match os_error(error) {
            Some(EPERM) => Self::Denied,
            os => Self::Read { what, os },
        }
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => {
                out.write_str("the kernel denies access to the server's program: run as root (CAP_SYS_ADMIN)")
            }
            Self::Busy => out.write_str("another dump of the server's packets runs"),
            Self::Program { id, is } => write!(out, "the XDP program {id} {is}"),
            Self::Read { what, os: Some(os) } => write!(out, "{what}: {}", io::Error::from_raw_os_error(*os)),
            Self::Read { what, os: None } => write!(out, "{what} cannot be read"),
        }
    }
}

impl Error for DumpError {}

/// Returns the number of the innermost system error in a chain of errors.
pub(crate) fn os_error(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    let mut found = None;
    while let Some(error) = next {
        found = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).or(found);
        next = error.source();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_one_line_that_says_what_would_help() {
        let attach = |os| PathError::Attach { interface: "eth0".to_owned(), os };
        let load = |os, detail: &str| PathError::Load { step: "program", os, detail: detail.to_owned() };
        let cases = [
            (load(Some(EPERM), ""), "CAP_BPF and CAP_NET_ADMIN"),
            (load(Some(EINVAL), "R1 invalid"), "R1 invalid; Linux 5.18"),
            (load(None, "no license"), "no license"),
            (attach(Some(EPERM)), "CAP_NET_ADMIN"),
            (attach(Some(EBUSY)), "ip link set dev eth0 xdp off"),
            (attach(Some(EOPNOTSUPP)), "no native XDP"),
            (attach(Some(EINVAL)), "ethtool -K eth0 lro off"),
            (attach(Some(ENODEV)), "no interface eth0"),
            (attach(None), "Linux 5.9"),
            (PathError::Map { map: "flows4", os: Some(E2BIG) }, "raise the number of paths"),
            (PathError::Map { map: "flows4", os: Some(EPERM) }, "keep CAP_BPF"),
            (PathError::Netlink { step: "keep alive", os: Some(EPERM) }, "keep CAP_NET_ADMIN"),
            (PathError::Netlink { step: "open", os: Some(24) }, "Too many open files"),
            (PathError::Netlink { step: "notifications", os: None }, "not understood"),
            (PathError::Layout("flow".to_owned()), "build again"),
        ];
        for (error, help) in cases {
            let text = error.to_string();
            assert!(text.contains(help) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn the_innermost_system_error_is_found() {
        let error = aya::maps::MapError::from(aya::sys::SyscallError {
            call: "bpf_map_update_elem",
            io_error: io::Error::from_raw_os_error(E2BIG),
        });
        assert_eq!(os_error(&error), Some(E2BIG));
        assert_eq!(os_error(&aya::maps::MapError::KeyNotFound), None);
    }
}
