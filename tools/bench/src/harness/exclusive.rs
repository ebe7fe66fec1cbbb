//! Lock of the machine: one bench at a time, and none while other processes run.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tt_os::readings::Readings;

use crate::report::{Environment, FORCED, OTHERS_CPUS_MAX, PRESSURE_PCT_MAX, STEAL_PCT_MAX};

/// How long the machine is watched before a run: 200 steps of the kernel's clock on each CPU.
const WINDOW: Duration = Duration::from_secs(2);

/// Action on a busy machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// Do not measure.
    Refuse,
    /// Measure, and label the result.
    Force,
}

/// The machine is too busy to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyError {
    /// Each bound that was exceeded, with the value.
    pub reason: String,
}

impl fmt::Display for BusyError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the machine is busy: {}; --force measures and labels the result", self.reason)
    }
}

impl Error for BusyError {}

/// Exit status if the machine is too busy to measure.
pub const STATUS_BUSY: u8 = 3;

/// Returns the exit status of a program that measures, after printing the error in one line.
pub fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("{error:#}");
    ExitCode::from(status(&error))
}

fn status(error: &anyhow::Error) -> u8 {
    if error.is::<BusyError>() { STATUS_BUSY } else { 1 }
}

/// Held while a bench runs.
#[derive(Debug)]
pub struct Exclusive {
    _lock: File,
    /// Tasks that ran or waited to run in the last minute, on average, before the bench began.
    pub load: Option<f64>,
    /// Why a busy machine was measured; `None` if it was not busy.
    pub forced: Option<String>,
}

impl Exclusive {
    /// Takes the lock of this machine, and watches the machine for two seconds. Call it before threads of the run start.
    ///
    /// # Errors
    /// `BusyError` on a busy machine unless `when_busy` is `Force`; another bench holds the lock, or its file cannot be
    /// made.
    pub fn take(when_busy: WhenBusy) -> anyhow::Result<Self> {
        let lock = Self::lock()?;
        let (before, started) = (Readings::take(), Instant::now());
        thread::sleep(WINDOW);
        let during = Readings::take().since(&before);
        let forced = busy(&during, started.elapsed());
        match forced {
            Some(reason) if when_busy == WhenBusy::Refuse => Err(BusyError { reason }.into()),
            forced => Ok(Self { forced, ..lock }),
        }
    }

    /// Takes the lock of this machine, busy or not: for measurements of what else runs.
    ///
    /// # Errors
    /// Another bench holds it, or the file cannot be made.
    pub fn lock() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join("truetick-bench.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.with_context(|| format!("cannot open the lock {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another bench is running on this machine ({})", path.display()),
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock"),
        }
        let load = fs::read_to_string("/proc/loadavg").ok();
        let load = load.and_then(|line| line.split(' ').next()?.parse().ok());
        Ok(Self { _lock: lock, load, forced: None })
    }

    /// Writes the load and the label of a forced run into its environment.
    pub(crate) fn record(&self, environment: &mut Environment) {
        environment.disturbance.load_before = self.load;
        environment.forced.clone_from(&self.forced);
    }

    /// The label of a forced run as a note for a file of runs; none if the machine was not busy.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.forced.as_ref().map(|reason| format!("{FORCED}: {reason}"))
    }
}

/// Returns each bound that the machine exceeded in `wall`, or `None` if it was quiet.
fn busy(during: &Readings, wall: Duration) -> Option<String> {
    let (others, steal_pct) = (during.others_cpus(), during.steal_share() * 100.0);
    let pressure_pct = during.pressure_cpu_us.map_or(0.0, |us| us as f64 / 1e4 / wall.as_secs_f64());
    let mut reasons = Vec::new();
    if others > OTHERS_CPUS_MAX {
        reasons.push(format!("other processes use {others:.3} CPUs (at most {OTHERS_CPUS_MAX})"));
    }
    if steal_pct > STEAL_PCT_MAX {
        reasons.push(format!("steal is {steal_pct:.2} % (at most {STEAL_PCT_MAX})"));
    }
    if pressure_pct > PRESSURE_PCT_MAX {
        reasons.push(format!("CPU pressure is {pressure_pct:.2} % (at most {PRESSURE_PCT_MAX})"));
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

#[cfg(test)]
mod tests;
