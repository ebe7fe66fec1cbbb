//! Changes from other threads while the gate runs.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{error, fmt};

use tt_model::InstrumentId;
use tt_risk::{Controls, GateError, Limits};

/// Changes of limits that may wait for the gate's thread.
const CHANGES_MAX: usize = 16;

/// A change of limits on its way to the gate's thread.
#[derive(Debug)]
pub(crate) struct LimitsChange {
    pub(crate) account: u16,
    pub(crate) instrument: InstrumentId,
    pub(crate) limits: Limits,
    pub(crate) reply: SyncSender<Result<u32, GateError>>,
}

/// Control of a running gate, for any thread.
#[derive(Clone, Debug)]
pub struct Control {
    changes: SyncSender<LimitsChange>,
    switches: Arc<Controls>,
}

/// Limits were not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetLimitsError {
    /// The gate rejects the limits.
    Gate(GateError),
    /// The gate's thread has ended.
    Stopped,
}

impl fmt::Display for SetLimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(error) => error.fmt(f),
            Self::Stopped => f.write_str("the gate has stopped"),
        }
    }
}

impl error::Error for SetLimitsError {}

impl Control {
    pub(crate) fn new(switches: Arc<Controls>) -> (Self, Receiver<LimitsChange>) {
        let (changes, received) = sync_channel(CHANGES_MAX);
        (Self { changes, switches }, received)
    }

    /// Replaces all limits of `account` in `instrument` between two intents; returns the new version of the limits.
    ///
    /// Every verdict names the version that it was made with. The call waits until the gate's thread has applied the
    /// change: before the next intent, and at most 50 ms if there is none.
    ///
    /// # Errors
    /// [`SetLimitsError::Gate`] if the gate rejects the limits, [`SetLimitsError::Stopped`] if it does not run.
    pub fn set_limits(&self, account: u16, instrument: InstrumentId, limits: &Limits) -> Result<u32, SetLimitsError> {
        let (reply, replied) = sync_channel(1);
        let change = LimitsChange { account, instrument, limits: *limits, reply };
        self.changes.send(change).map_err(|_| SetLimitsError::Stopped)?;
        replied.recv().map_err(|_| SetLimitsError::Stopped)?.map_err(SetLimitsError::Gate)
    }

    /// Returns the kill switches.
    #[must_use]
    pub fn switches(&self) -> &Controls {
        &self.switches
    }
}
