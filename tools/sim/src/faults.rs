//! Faults injected into the simulated venues at intervals, so that users can watch detection and recovery.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Fault, SnapshotFault, Venue};

/// A kind of injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Alters the next book update of one instrument.
    Update(Fault),
    /// Alters the next REST snapshot of one instrument.
    Snapshot(SnapshotFault),
    /// Rejects three snapshot requests with 429.
    Refusals,
    /// A venue sends nothing for a while and keeps its connections open.
    Silence,
    /// A venue closes all connections.
    Disconnect,
}

/// The kinds that are not a [`Fault`], with their names.
const OTHERS: [(&str, Kind); 5] = [
    ("stale-snapshot", Kind::Snapshot(SnapshotFault::Stale)),
    ("partial-snapshot", Kind::Snapshot(SnapshotFault::Partial)),
    ("refuse-snapshots", Kind::Refusals),
    ("silence", Kind::Silence),
    ("disconnect", Kind::Disconnect),
];

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let update = Fault::ALL.into_iter().find(|fault| fault.name() == text).map(Self::Update);
        let other = || OTHERS.iter().find(|(name, _)| *name == text).map(|&(_, kind)| kind);
        update.or_else(other).ok_or_else(|| {
            let names = Fault::ALL.map(Fault::name).into_iter().chain(OTHERS.map(|(name, _)| name));
            format!("one of {}", names.collect::<Vec<_>>().join(", "))
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = || OTHERS.iter().find(|(_, kind)| kind == self).map_or("", |&(name, _)| name);
        f.write_str(if let Self::Update(fault) = self { fault.name() } else { other() })
    }
}

/// Returns the interval between two faults; `None` for 0.
///
/// # Errors
/// `seconds` is no time of zero or more.
pub fn every(seconds: f64) -> Result<Option<Duration>, String> {
    if seconds == 0.0 {
        return Ok(None);
    }
    let every = Duration::try_from_secs_f64(seconds).ok().filter(|every| !every.is_zero());
    every.map(Some).ok_or_else(|| format!("must be zero or more seconds, not {seconds}"))
}

/// Interval between faults, and duration of those that last.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Interval between two faults; `None`: no faults.
    pub every: Option<Duration>,
    /// Duration of [`Kind::Silence`].
    pub silence: Duration,
}

/// The thread that injects faults.
#[derive(Debug)]
pub struct Running {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// Injects faults of `kinds` at the given pace, at each of `at` in turn and its next instrument, and passes each to
/// `report`.
///
/// # Errors
/// The thread cannot be started.
pub fn start(
    venues: Arc<crate::Running>,
    at: &'static [Venue],
    kinds: Vec<Kind>,
    pace: Pace,
    mut report: impl FnMut(Kind, Venue, &str) + Send + 'static,
) -> io::Result<Running> {
    let (stop, stopped) = mpsc::channel();
    let Some(every) = pace.every.filter(|_| !kinds.is_empty() && !at.is_empty()) else {
        return Ok(Running { stop, thread: None });
    };
    let thread = thread::Builder::new().name("faults".into()).spawn(move || {
        let mut number = 0;
        while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            // Every venue gets every kind before the next instrument.
            let venue = at[number % at.len()];
            let kind = kinds[number / at.len() % kinds.len()];
            let instruments = venues.instruments(venue);
            let index = number / at.len() / kinds.len() % instruments.len();
            number += 1;
            report(kind, venue, &instruments[index].symbol);
            match kind {
                Kind::Update(fault) => venues.fault(venue, index, fault),
                Kind::Snapshot(fault) => venues.snapshot_fault(venue, index, fault),
                Kind::Refusals => venues.refuse_snapshots(venue, 3),
                Kind::Disconnect => venues.disconnect(venue),
                Kind::Silence => {
                    venues.mute(venue, true);
                    let ended = stopped.recv_timeout(pace.silence) != Err(RecvTimeoutError::Timeout);
                    venues.mute(venue, false);
                    if ended {
                        break;
                    }
                }
            }
        }
    });
    Ok(Running { stop, thread: Some(thread?) })
}

impl Running {
    /// Stops the thread.
    pub fn stop(self) {
        drop(self.stop);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_disables_faults_and_other_values_are_checked() {
        assert_eq!(every(0.0).unwrap(), None);
        assert_eq!(every(1.5).unwrap(), Some(Duration::from_millis(1500)));
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(every(seconds).is_err(), "{seconds}");
        }
    }

    #[test]
    fn every_kind_parses_from_its_own_name() {
        let all = Fault::ALL.into_iter().map(Kind::Update).chain(OTHERS.map(|(_, kind)| kind));
        for kind in all {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "loss".parse::<Kind>().unwrap_err();
        assert!(error.starts_with("one of drop, duplicate, reorder,") && error.ends_with("disconnect"), "{error}");
    }
}
