//! Liveness of another process.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

/// Bits of a process's number: Linux gives none beyond.
const NUMBER_BITS: u32 = 22;

/// Identity of a process: its process id and start time, so that a reused id is distinguished.
///
/// Valid within one PID namespace, until the machine reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    mark: NonZeroU64,
}

impl Identity {
    /// Returns the identity of this process.
    ///
    /// # Errors
    /// `ENOENT` without `/proc`.
    pub fn own() -> Result<Self, Errno> {
        Self::of(std::process::id()).ok_or(Errno::ENOENT)
    }

    /// Returns the identity of the process `number`; `None` if there is none.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let mark = NonZeroU64::new(started(&stat)? << NUMBER_BITS | u64::from(number))?;
        Some(Self { mark })
    }

    /// Returns the identity as a number that can be sent to another process.
    #[must_use]
    pub const fn mark(self) -> NonZeroU64 {
        self.mark
    }

    /// Creates the identity from a number received from another process.
    #[must_use]
    pub const fn of_mark(mark: NonZeroU64) -> Self {
        Self { mark }
    }

    /// The process's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        (self.mark.get() & ((1 << NUMBER_BITS) - 1)) as u32
    }
}

/// When the process was started, in the kernel's USER_HZ since the machine was: the 20th field after the name, which may
/// hold anything.
fn started(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// A process that is watched for its end.
#[derive(Debug)]
pub struct Watch {
    process: OwnedFd,
}

impl Watch {
    /// Watches the process; `None` if it is gone already.
    ///
    /// # Errors
    /// The error of `pidfd_open(2)`, except `ESRCH`.
    pub fn new(identity: Identity) -> Result<Option<Self>, Errno> {
        let Some(number) = i32::try_from(identity.number()).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let process = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(errno) => return Err(Errno::from_raw(errno.raw_os_error())),
        };
        // The number may have been given to another process; while this one is watched, it cannot be.
        Ok((Identity::of(identity.number()) == Some(identity)).then_some(Self { process }))
    }

    /// Whether the process has ended, in whatever way. One system call.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let mut watched = [PollFd::new(self.process.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut watched, PollTimeout::ZERO), Ok(1..))
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, Watch, started};
    use std::num::NonZeroU64;
    use std::process::{Command, Stdio};

    #[test]
    fn reads_the_start_after_a_name_with_any_characters() {
        let stat = "7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 991 20";
        assert_eq!(started(stat), Some(991));
        assert_eq!(started("7 (a) R 1"), None);
    }

    #[test]
    fn a_process_is_gone_once_it_is_killed_and_its_number_alone_is_not_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        assert_eq!(Identity::of_mark(identity.mark()).number(), child.id());
        let watch = Watch::new(identity).unwrap().unwrap();
        assert!(!watch.is_gone());
        let other = Identity::of_mark(NonZeroU64::new(identity.mark().get() + (1 << super::NUMBER_BITS)).unwrap());
        assert!(Watch::new(other).unwrap().is_none());
        child.kill().unwrap();
        // A zombie counts as dead, some time after the signal.
        while !watch.is_gone() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(watch.is_gone() && Watch::new(identity).unwrap().is_none());
    }

    #[test]
    fn this_process_runs() {
        let own = Identity::own().unwrap();
        assert_eq!(own.number(), std::process::id());
        assert!(!Watch::new(own).unwrap().unwrap().is_gone());
    }
}
