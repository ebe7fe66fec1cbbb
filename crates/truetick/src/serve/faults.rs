//! What goes wrong at the simulated venues from time to time, so that gaps, failed checksums and resyncs can be seen.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use sim::{Fault, Venue};

const FAULTS: [Fault; 4] = [Fault::Drop, Fault::FlipDigit, Fault::Swap, Fault::Duplicate];

/// `seconds` between two faults; `None` for 0.
pub(super) fn every(seconds: f64) -> Result<Option<Duration>> {
    if seconds == 0.0 {
        return Ok(None);
    }
    let every = Duration::try_from_secs_f64(seconds).ok().filter(|every| !every.is_zero());
    every.map(Some).with_context(|| format!("--fault-every must be zero or more seconds, not {seconds}"))
}

/// The thread that causes them.
pub(super) struct Running {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// Causes a fault each `every`, each at the next venue and instrument; none at all without it.
pub(super) fn start(venues: Arc<sim::Running>, every: Option<Duration>) -> Result<Running> {
    let (stop, stopped) = mpsc::channel();
    let Some(every) = every else { return Ok(Running { stop, thread: None }) };
    let thread = thread::Builder::new().name("faults".into()).spawn(move || {
        let instruments = Venue::ALL.map(|venue| venues.instruments(venue).len());
        let mut number = 0;
        while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let venue = number % Venue::ALL.len();
            let index = number / Venue::ALL.len() % instruments[venue].max(1);
            // Of the faults and the venues neither count divides the other: every venue meets every fault.
            venues.fault(Venue::ALL[venue], index, FAULTS[number % FAULTS.len()]);
            number += 1;
        }
    });
    Ok(Running { stop, thread: Some(thread.context("serve: thread of faults")?) })
}

impl Running {
    pub(super) fn stop(self) {
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
    fn zero_is_never_and_nonsense_is_refused() {
        assert_eq!(every(0.0).unwrap(), None);
        assert_eq!(every(1.5).unwrap(), Some(Duration::from_millis(1500)));
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(every(seconds).is_err(), "{seconds}");
        }
    }
}
