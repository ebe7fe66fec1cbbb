//! Memory that stays.

use nix::{
    errno::Errno,
    sys::{
        mman::{MlockAllFlags, mlockall},
        resource::{Resource, getrlimit, setrlimit},
    },
};

/// Keeps every page of the process in memory, those of later too. Raises the soft limit of locked memory to the hard
/// one first.
///
/// # Errors
/// `EPERM` or `ENOMEM` where the limit of locked memory is too low.
pub fn lock_all() -> Result<(), Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_MEMLOCK)?;
    setrlimit(Resource::RLIMIT_MEMLOCK, hard, hard)?;
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE)
}
