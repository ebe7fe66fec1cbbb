//! Sockets that a service manager has opened for this process: sd_listen_fds(3).

use std::env;
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, ensure};
use libsystemd::activation::receive_descriptors;

/// A descriptor, and its name in the unit (`FileDescriptorName=`); without one, the unit's name or nothing.
#[derive(Debug)]
pub struct PassedDescriptor {
    /// The name.
    pub name: String,
    /// The descriptor. The service manager keeps a copy.
    pub descriptor: OwnedFd,
}

/// Takes the descriptors that `LISTEN_FDS` announces if `LISTEN_PID` is this process, and removes both from the
/// environment. The second call returns none. Call it first: other threads must not read the environment meanwhile.
///
/// # Errors
/// The variables contradict each other, or a descriptor is not open.
pub fn take() -> anyhow::Result<Vec<PassedDescriptor>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let names = env::var("LISTEN_FDNAMES").ok();
    let descriptors = receive_descriptors(true).context("LISTEN_FDS")?;
    let mut names: Vec<String> = names.iter().flat_map(|names| names.split(':').map(str::to_owned)).collect();
    ensure!(
        names.is_empty() || descriptors.is_empty() || names.len() == descriptors.len(),
        "LISTEN_FDNAMES has {} names and LISTEN_FDS {} descriptors",
        names.len(),
        descriptors.len()
    );
    names.resize(descriptors.len(), String::new());
    let owned = descriptors.into_iter().zip(names).map(|(descriptor, name)| {
        // SAFETY: the descriptor is open, since it has just got a flag. No other code owns it: the service manager has
        // announced it for this process, no code here opens descriptors by number, and `TAKEN` lets one call get here.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor.into_raw_fd()) };
        PassedDescriptor { name, descriptor }
    });
    Ok(owned.collect())
}
