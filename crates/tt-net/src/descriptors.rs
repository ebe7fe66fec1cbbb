//! The limit of open files.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the number of descriptors that the process may have to the most that it may allow itself, and returns it.
///
/// # Errors
/// The kernel's error.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}
