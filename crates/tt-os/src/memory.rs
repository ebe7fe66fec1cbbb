//! Memory that stays.

use nix::{
    errno::Errno,
    sys::{
        mman::{MlockAllFlags, mlockall, munlockall},
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

/// Lets the kernel move pages out again, and stops filling those of later before they are touched.
///
/// # Errors
/// The error of the system call.
pub fn unlock_all() -> Result<(), Errno> {
    munlockall()
}

/// Held by tests that lock the process's memory, and by those that see whether it is: they share a process.
#[cfg(test)]
pub(crate) static LOCKING: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::{LOCKING, lock_all, unlock_all};
    use crate::readings::memory_kib;
    use std::sync::PoisonError;
    use testkit::{Requirement, require};

    #[test]
    fn locked_pages_are_counted_until_they_are_unlocked() {
        let _alone = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(()) = require(Requirement::Privilege, lock_all()) else { return };
        assert!(memory_kib().0.is_some_and(|locked| locked > 0));
        unlock_all().unwrap();
        assert_eq!(memory_kib().0, Some(0));
    }
}
