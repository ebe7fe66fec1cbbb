//! Classification of failed system calls.

use std::io;

use nix::errno::Errno;

/// The class of a failed system call. None of them ends the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IoFault {
    /// The socket's buffer is full, or empty (`EAGAIN`).
    WouldBlock = 0,
    /// The kernel is short of memory (`ENOBUFS`, `ENOMEM`).
    NoBuffers = 1,
    /// The process or the system is short of descriptors (`EMFILE`, `ENFILE`).
    NoDescriptors = 2,
    /// No way to that address (`ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN`, `EHOSTDOWN`).
    Unreachable = 3,
    /// The port is closed (`ECONNREFUSED`).
    Refused = 4,
    /// The datagram is larger than the path allows (`EMSGSIZE`).
    TooLarge = 5,
    /// A firewall or the kernel forbids it (`EPERM`, `EACCES`).
    Forbidden = 6,
    /// An address that cannot be used (`EINVAL`, `EADDRINUSE`, `EADDRNOTAVAIL`, `EAFNOSUPPORT`).
    BadAddress = 7,
    /// Anything else.
    Other = 8,
}

impl IoFault {
    /// All classes in order.
    pub const ALL: [Self; 9] = [
        Self::WouldBlock,
        Self::NoBuffers,
        Self::NoDescriptors,
        Self::Unreachable,
        Self::Refused,
        Self::TooLarge,
        Self::Forbidden,
        Self::BadAddress,
        Self::Other,
    ];

    /// The class of `error`.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        let Some(code) = error.raw_os_error() else { return Self::Other };
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the kernel has a hundred codes; what is not named is Other"
        )]
        match Errno::from_raw(code) {
            Errno::EAGAIN => Self::WouldBlock,
            Errno::ENOBUFS | Errno::ENOMEM => Self::NoBuffers,
            Errno::EMFILE | Errno::ENFILE => Self::NoDescriptors,
            Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENETDOWN | Errno::EHOSTDOWN => Self::Unreachable,
            Errno::ECONNREFUSED => Self::Refused,
            Errno::EMSGSIZE => Self::TooLarge,
            Errno::EPERM | Errno::EACCES => Self::Forbidden,
            Errno::EINVAL | Errno::EADDRINUSE | Errno::EADDRNOTAVAIL | Errno::EAFNOSUPPORT => Self::BadAddress,
            _ => Self::Other,
        }
    }

    /// Whether `error` is of the kind that an ICMP message about an earlier datagram brings to the next system call of
    /// its socket (`IP_RECVERR`). The call has done nothing and may be made again.
    pub(crate) fn may_be_late(error: &io::Error) -> bool {
        use libc::{
            EACCES, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETUNREACH, ENONET, ENOPROTOOPT, EOPNOTSUPP,
            EPROTO,
        };
        let late = [
            ECONNREFUSED,
            EHOSTUNREACH,
            ENETUNREACH,
            EHOSTDOWN,
            ENONET,
            EMSGSIZE,
            ENOPROTOOPT,
            EOPNOTSUPP,
            EACCES,
            EPROTO,
        ];
        error.raw_os_error().is_some_and(|code| late.contains(&code))
    }

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WouldBlock => "would_block",
            Self::NoBuffers => "no_buffers",
            Self::NoDescriptors => "no_descriptors",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
            Self::Forbidden => "forbidden",
            Self::BadAddress => "bad_address",
            Self::Other => "other",
        }
    }
}

/// Counts of failed system calls, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; IoFault::ALL.len()]);

impl FaultCounts {
    /// Counts one failure of class `fault`.
    pub const fn record(&mut self, fault: IoFault) {
        self.0[fault as usize] += 1;
    }

    /// Returns the count of class `fault`.
    #[must_use]
    pub const fn of(&self, fault: IoFault) -> u64 {
        self.0[fault as usize]
    }

    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds `other` to these counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}
