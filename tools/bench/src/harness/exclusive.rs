//! Lock of the machine: one bench at a time.

use std::fs::{self, File, TryLockError};

use anyhow::{Context as _, bail};

/// Held while a bench runs.
#[derive(Debug)]
pub struct Exclusive {
    _lock: File,
    /// Tasks that ran or waited to run in the last minute, on average, before the bench began.
    pub load: Option<f64>,
}

impl Exclusive {
    /// Takes the lock of this machine.
    ///
    /// # Errors
    /// Another bench holds it, or the file cannot be made.
    pub fn take() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join("truetick-bench.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.with_context(|| format!("cannot open the lock {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another bench is running on this machine ({})", path.display()),
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock"),
        }
        let load = fs::read_to_string("/proc/loadavg").ok();
        Ok(Self { _lock: lock, load: load.and_then(|line| line.split(' ').next()?.parse().ok()) })
    }
}
