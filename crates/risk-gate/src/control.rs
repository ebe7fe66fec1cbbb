//! Changes from other threads while the gate runs.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{error, fmt, thread};

use anyhow::Result as AnyResult;
use gate_limits::LimitsFile;
use tt_model::InstrumentId;
use tt_risk::{Controls, GateError, KillSwitch, Limits, Mode};
use tt_sync::barrier::Barrier;

use crate::journal::JournalPosition;
use crate::modes::Modes;

/// Changes of limits that may wait for the gate's thread.
const CHANGES_MAX: usize = 16;

/// Time within which the gate and every sender must have seen a change of a mode.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(10);

/// Interval between two looks at those that have not.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// The passer of the gate's thread, before those of the senders.
pub(crate) const GATE: usize = 0;

/// A change of a mode that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The mode before.
    pub before: Mode,
    /// Those that were seen neither idle nor past the change within 10 ms: `gate`, or the name of a sender, which is closed
    /// now. Nothing else acts on the mode before.
    pub silent: Vec<String>,
    /// The number of senders, silent ones among them.
    pub senders: usize,
    /// The time from the change in memory until all had seen it, or the 10 ms.
    pub waited: Duration,
}

/// A change of limits on its way to the gate's thread.
#[derive(Debug)]
pub(crate) enum Change {
    Row(LimitsChange),
    Load(Load),
    Cancel(Cancel),
}

/// Open orders that an operator cancels.
#[derive(Debug)]
pub(crate) struct Cancel {
    pub(crate) scope: KillSwitch,
    pub(crate) reply: SyncSender<AnyResult<Cancelled>>,
}

/// What a cancel of all orders of a scope has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancelled {
    /// Cancels that were passed to the sender. An order whose cancel is young is not cancelled again.
    pub requested: usize,
    /// Orders that are open, by account and client id: until a report of the venue ends them.
    pub open: Vec<(u16, u64)>,
}

/// A limits file that replaces all limits.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) limits: Box<LimitsFile>,
    pub(crate) reply: SyncSender<AnyResult<u32>>,
}

/// Limits of an account in an instrument.
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
    changes: SyncSender<Change>,
    switches: Arc<Controls>,
    journal: Arc<JournalPosition>,
    modes: Option<Arc<Modes>>,
    barrier: Barrier,
    /// By passer.
    names: Arc<[String]>,
    limits: RunningLimits,
}

/// The limits file in force; `None` if no file has made the gate.
pub(crate) type RunningLimits = Arc<Mutex<Option<Arc<LimitsFile>>>>;

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
    pub(crate) fn new(
        (switches, journal): (Arc<Controls>, Arc<JournalPosition>),
        modes: Option<Arc<Modes>>,
        (barrier, names): (Barrier, Arc<[String]>),
        limits: RunningLimits,
    ) -> (Self, Receiver<Change>) {
        let (changes, received) = sync_channel(CHANGES_MAX);
        (Self { changes, switches, journal, modes, barrier, names, limits }, received)
    }

    /// Sets `switch` to `mode`: on disk first, if modes are kept, then in memory; returns once the gate and every sender
    /// were seen idle or past the change, or after 10 ms.
    ///
    /// A sender that is silent for so long is closed: it writes nothing more.
    ///
    /// # Errors
    /// The instrument is unknown, or the file cannot be written. A stricter mode is in force then too.
    pub fn set_mode(&self, switch: KillSwitch, mode: Mode) -> AnyResult<Acknowledged> {
        let before = self.switches.mode(switch);
        let kept = match &self.modes {
            Some(modes) => modes.set(switch, mode),
            None => {
                let set = self.switches.set_mode(switch, mode);
                set.ok_or_else(|| anyhow::anyhow!("no such instrument"))
            }
        };
        let acknowledged = self.acknowledge(before);
        kept.map(|_| acknowledged)
    }

    fn acknowledge(&self, before: Mode) -> Acknowledged {
        let (started, height) = (Instant::now(), self.barrier.raise());
        let mut silent: Vec<_> = (0..self.names.len()).collect();
        loop {
            silent.retain(|passer| !self.barrier.is_past(*passer, height));
            if silent.is_empty() || started.elapsed() >= ACKNOWLEDGED_WITHIN {
                break;
            }
            thread::sleep(LOOK_EVERY);
        }
        silent.iter().filter(|passer| **passer != GATE).for_each(|passer| self.barrier.close(*passer));
        let silent = silent.into_iter().map(|passer| self.names[passer].clone()).collect();
        // The gate's thread is the only passer besides the senders.
        let senders = self.names.len().saturating_sub(1);
        Acknowledged { before, silent, senders, waited: started.elapsed() }
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
        self.changes.send(Change::Row(change)).map_err(|_| SetLimitsError::Stopped)?;
        replied.recv().map_err(|_| SetLimitsError::Stopped)?.map_err(SetLimitsError::Gate)
    }

    /// Replaces all limits between two intents; returns their version, which every verdict names that they made.
    ///
    /// The call waits as [`set_limits`](Self::set_limits) does.
    ///
    /// # Errors
    /// Those of [`DurableGate::load`](crate::DurableGate::load), or the gate has stopped.
    pub fn load(&self, limits: LimitsFile) -> AnyResult<u32> {
        let (reply, replied) = sync_channel(1);
        let load = Load { limits: Box::new(limits), reply };
        self.changes.send(Change::Load(load)).map_err(|_| SetLimitsError::Stopped)?;
        replied.recv().map_err(|_| SetLimitsError::Stopped)?
    }

    /// Cancels every open order in `scope`, whoever has sent it; the cancels are those of [`Ports::cancels`].
    ///
    /// Call it again until no order is open: an order is cancelled again once its last cancel is old enough.
    ///
    /// [`Ports::cancels`]: crate::Ports::cancels
    ///
    /// # Errors
    /// Nothing takes the cancels, or the gate has stopped.
    pub fn cancel_scope(&self, scope: KillSwitch) -> AnyResult<Cancelled> {
        let (reply, replied) = sync_channel(1);
        self.changes.send(Change::Cancel(Cancel { scope, reply })).map_err(|_| SetLimitsError::Stopped)?;
        replied.recv().map_err(|_| SetLimitsError::Stopped)?
    }

    /// Returns the limits file in force; `None` if no file has made the gate.
    #[must_use]
    pub fn limits(&self) -> Option<Arc<LimitsFile>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how far the gate's journal is written.
    #[must_use]
    pub fn journal(&self) -> &JournalPosition {
        &self.journal
    }

    /// Returns the kill switches.
    #[must_use]
    pub fn switches(&self) -> &Controls {
        &self.switches
    }
}
