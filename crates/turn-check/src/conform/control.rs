//! Bounds of a judgement: its rate, its live allocations, and its end.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::check::Unmet;

/// Interval between two messages: 200 per second at most.
const INTERVAL: Duration = Duration::from_millis(5);
/// Interval between two requests without a credential, whose errors servers limit: ten per second at most.
const STRANGER_INTERVAL: Duration = Duration::from_millis(100);
/// Allocations at one time.
const ALLOCATIONS_MAX: u32 = 6;

/// The bounds that all probes of a judgement share.
pub(super) struct Control {
    stop: Arc<AtomicBool>,
    next_message: Cell<Instant>,
    next_stranger: Cell<Instant>,
    allocations: Cell<u32>,
    /// Local UDP ports that were used: a server may remember the five-tuple of an ended allocation for a while.
    ports: RefCell<HashSet<u16>>,
}

impl Control {
    pub(super) fn new(stop: Arc<AtomicBool>) -> Self {
        let now = Instant::now();
        let (next_message, next_stranger) = (Cell::new(now), Cell::new(now));
        Self { stop, next_message, next_stranger, allocations: Cell::new(0), ports: RefCell::default() }
    }

    /// Returns an error if the judgement is to end.
    pub(super) fn heed_stop(&self) -> Result<(), Unmet> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Unmet::not_judged("interrupted")),
            false => Ok(()),
        }
    }

    /// Returns whether a local UDP port is used for the first time.
    pub(super) fn is_new_port(&self, port: u16) -> bool {
        self.ports.borrow_mut().insert(port)
    }

    /// Waits until the next message may be sent.
    pub(super) fn pace(&self) {
        wait(&self.next_message, INTERVAL);
    }

    /// Waits until the next request without a credential may be sent.
    pub(super) fn pace_stranger(&self) {
        wait(&self.next_stranger, STRANGER_INTERVAL);
    }

    /// Counts an allocation.
    ///
    /// # Errors
    /// There are as many as a judgement may hold.
    pub(super) fn begin_allocation(&self) -> Result<(), Unmet> {
        if self.allocations.get() >= ALLOCATIONS_MAX {
            return Err(Unmet::not_judged(format!("more than {ALLOCATIONS_MAX} allocations at one time")));
        }
        self.allocations.set(self.allocations.get() + 1);
        Ok(())
    }

    pub(super) fn end_allocation(&self) {
        self.allocations.set(self.allocations.get().saturating_sub(1));
    }
}

fn wait(next: &Cell<Instant>, interval: Duration) {
    let now = Instant::now();
    thread::sleep(next.get().saturating_duration_since(now));
    next.set(now.max(next.get()) + interval);
}
