//! Reserved ports: no worker has them, and every worker may claim one by its token.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tt_model::Nanos;
use tt_turn::relay::Reservation;

use super::RelayPort;

/// Marks [`ReservedPorts::next_at`] as none.
const NEVER: u64 = u64::MAX;

/// The reserved ports of all workers, with their sockets. Used when a port is reserved, claimed or released, never per datagram.
#[derive(Debug)]
pub(crate) struct ReservedPorts {
    held: Mutex<Held>,
    /// The first end in nanoseconds, for workers that look for it without the lock.
    next_at: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    by_token: BTreeMap<u64, Reserved>,
    /// When each is to be ended, and its token.
    ends: BTreeSet<(Nanos, u64)>,
}

#[derive(Debug)]
struct Reserved {
    bound: RelayPort,
    reservation: Reservation,
    ends_at: Nanos,
}

impl Default for ReservedPorts {
    fn default() -> Self {
        Self { held: Mutex::default(), next_at: AtomicU64::new(NEVER) }
    }
}

impl ReservedPorts {
    /// Keeps a socket until a worker claims it, or until `ends_at`.
    pub(crate) fn put(&self, bound: RelayPort, reservation: Reservation, ends_at: Nanos) {
        let mut held = self.held();
        held.ends.insert((ends_at, reservation.token()));
        held.by_token.insert(reservation.token(), Reserved { bound, reservation, ends_at });
        self.publish(&held);
    }

    /// Returns a second descriptor of the socket of `token`. It is valid after [`ReservedPorts::take`] too.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn lend(&self, token: u64) -> io::Result<Option<(RelayPort, Reservation)>> {
        let held = self.held();
        let Some(Reserved { bound, reservation, .. }) = held.by_token.get(&token) else { return Ok(None) };
        Ok(Some((bound.try_clone()?, *reservation)))
    }

    /// Removes the socket of `token`.
    pub(crate) fn take(&self, token: u64) -> Option<(RelayPort, Reservation)> {
        let mut held = self.held();
        let Reserved { bound, reservation, ends_at } = held.by_token.remove(&token)?;
        held.ends.remove(&(ends_at, token));
        self.publish(&held);
        Some((bound, reservation))
    }

    /// Removes one socket that is to be ended at `now`.
    pub(crate) fn take_due(&self, now: Nanos) -> Option<(RelayPort, Reservation)> {
        if self.next_at()? > now {
            return None;
        }
        let due = self.held().ends.first().filter(|(at, _)| *at <= now).map(|(_, token)| *token);
        self.take(due?)
    }

    /// Returns the time of the first end.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        Some(self.next_at.load(Ordering::Relaxed)).filter(|at| *at != NEVER).map(Nanos)
    }

    fn publish(&self, held: &Held) {
        self.next_at.store(held.ends.first().map_or(NEVER, |(at, _)| at.0), Ordering::Relaxed);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
