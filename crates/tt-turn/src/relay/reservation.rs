//! Reserved relays, which a client claims by a token (RFC 8656 sections 7.2 and 18.10).

use alloc::collections::VecDeque;

use tt_model::Nanos;

use super::{RelayAddress, RelayId};

/// Lifetime of a reservation. RFC 8656 section 7.2 requires at least 30 s; twice that tolerates a slow second request.
const LIFETIME: Nanos = Nanos::from_secs(60);

/// A reserved relay: the driver keeps its socket for all workers, and adds it to the one that receives its token.
///
/// RFC 8656 section 7.2: the token is valid from any five-tuple, so also over any transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub(crate) token: u64,
    pub(crate) address: RelayAddress,
    /// Key of the quota that it counts against.
    pub(crate) quota_key: u64,
    pub(crate) expires: Nanos,
}

impl Reservation {
    pub(crate) const fn new(now: Nanos, token: u64, address: RelayAddress, quota_key: u64) -> Self {
        Self { token, address, quota_key, expires: now.saturating_add(LIFETIME) }
    }

    /// The RESERVATION-TOKEN, unique among the workers that share.
    #[must_use]
    pub const fn token(&self) -> u64 {
        self.token
    }

    /// The addresses of the relay.
    #[must_use]
    pub const fn address(&self) -> RelayAddress {
        self.address
    }

    /// When to call [`Server::end_reservation`](crate::Server::end_reservation) of any worker.
    #[must_use]
    pub const fn expires(&self) -> Nanos {
        self.expires
    }
}

/// What became of a reservation whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationEnd {
    /// It has ended. The relay rests: [`Server::poll_relay`](crate::Server::poll_relay) returns it.
    Retired,
    /// A worker is about to claim it, or it has not expired. The number is free; try again later.
    Pending,
    /// A worker has claimed it, and has the relay. The number is free; close this descriptor of the socket.
    Claimed,
}

/// The reserved relays that pass through one worker.
#[derive(Debug)]
pub(crate) struct Reservations {
    /// Made by this worker; the driver has not polled them.
    made: VecDeque<(RelayId, Reservation)>,
    /// Added by the driver for one Allocate.
    lent: Option<(RelayId, Reservation)>,
}

impl Reservations {
    /// Creates room for half of `relays`: one relay is reserved for each that is in use.
    pub(crate) fn new(relays: u32) -> Self {
        Self { made: VecDeque::with_capacity(relays.div_ceil(2) as usize), lent: None }
    }

    pub(crate) fn push_made(&mut self, relay: RelayId, reservation: Reservation) {
        self.made.push_back((relay, reservation));
    }

    pub(crate) fn take_made(&mut self) -> Option<(RelayId, Reservation)> {
        self.made.pop_front()
    }

    /// Keeps a relay for the next Allocate; returns `false` if there is one already.
    pub(crate) fn lend(&mut self, relay: RelayId, reservation: Reservation) -> bool {
        let is_first = self.lent.is_none();
        if is_first {
            self.lent = Some((relay, reservation));
        }
        is_first
    }

    /// Returns the lent relay of `token`.
    pub(crate) fn lent(&self, token: u64) -> Option<(RelayId, Reservation)> {
        self.lent.filter(|(_, reservation)| reservation.token == token)
    }

    /// Ends the loan of `relay`; returns `false` if it is not lent.
    pub(crate) fn take_back(&mut self, relay: RelayId) -> bool {
        self.lent.take_if(|(lent, _)| *lent == relay).is_some()
    }
}
