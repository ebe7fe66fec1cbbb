//! Reserved relays, which a client claims by a token (RFC 8656 sections 7.2 and 18.10).

use core::net::SocketAddr;

use tt_model::Nanos;

use crate::relay::RelayId;
use crate::slab::Slab;
use crate::table::Table;
use crate::wheel::Wheel;

/// Lifetime of a reservation. RFC 8656 section 7.2 requires at least 30 s; twice that tolerates a slow second request.
pub(crate) const LIFETIME: Nanos = Nanos::from_secs(60);
/// Maximum number of reserved relays of a worker.
const RESERVATIONS_MAX: u32 = 1_024;

/// One reserved relay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reservation {
    pub(crate) token: u64,
    pub(crate) relay: RelayId,
    pub(crate) relayed: SocketAddr,
    /// Key of the quota that it counts against.
    pub(crate) quota_key: u64,
    pub(crate) expires: Nanos,
}

/// The reserved relays of one worker.
#[derive(Debug)]
pub(crate) struct Reservations {
    by_token: Table<u64, u32>,
    records: Slab<Reservation>,
    wheel: Wheel,
}

impl Reservations {
    /// Creates room for half of `relays`.
    pub(crate) fn new(relays: u32, seed: u64) -> Self {
        let capacity = (relays / 2).min(RESERVATIONS_MAX);
        Self {
            by_token: Table::new(capacity as usize, seed),
            records: Slab::new(capacity),
            wheel: Wheel::new(capacity as usize),
        }
    }

    /// Returns the live reservation of `token`.
    pub(crate) fn find(&self, token: u64, now: Nanos) -> Option<Reservation> {
        let index = self.index(token)?;
        self.records.get(index).filter(|reservation| reservation.expires > now).copied()
    }

    /// Returns the index of `token`. Zero is not a token: it marks an empty bucket of the table.
    fn index(&self, token: u64) -> Option<u32> {
        if token == 0 { None } else { self.by_token.get(&token).copied() }
    }

    /// Reserves a relay; returns `false` if the table is full or the token is in use.
    pub(crate) fn hold(&mut self, now: Nanos, reservation: Reservation) -> bool {
        if reservation.token == 0 || self.index(reservation.token).is_some() {
            return false;
        }
        let Some(index) = self.records.insert(reservation) else { return false };
        let stored = self.by_token.insert(reservation.token, index);
        debug_assert!(stored, "the index has the records' capacity");
        self.wheel.set(index, now, reservation.expires);
        true
    }

    /// Removes the reservation of `token`.
    pub(crate) fn release(&mut self, token: u64) -> Option<Reservation> {
        let index = self.index(token)?;
        self.by_token.remove(&token);
        self.wheel.clear(index);
        self.records.remove(index)
    }

    /// Removes and returns one reservation that has expired at `now`.
    pub(crate) fn release_due(&mut self, now: Nanos) -> Option<Reservation> {
        while let Some(index) = self.wheel.take_due(now) {
            match self.records.get(index).map(|reservation| (reservation.token, reservation.expires)) {
                Some((_, expires)) if expires > now => self.wheel.set(index, now, expires),
                Some((token, _)) => return self.release(token),
                None => {}
            }
        }
        None
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.wheel.next_at()
    }
}
