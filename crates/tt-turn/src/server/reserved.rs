//! Reserved relays on their way between workers: a token is valid at each of them (RFC 8656 section 7.2).

use tt_model::Nanos;

use super::Server;
use crate::relay::{RelayError, RelayId, Reservation, ReservationEnd};
use crate::shared::{Charge, TokenClaim};

impl Server {
    /// Returns the next relay that an Allocate has reserved. Call until `None` before the response is sent.
    ///
    /// Its number is free from then on. The driver keeps the socket where every worker finds it by
    /// [`Reservation::token`], until an Allocate claims it or [`Server::end_reservation`] ends it.
    pub fn poll_reservation(&mut self) -> Option<(RelayId, Reservation)> {
        let (id, reservation) = self.reservations.take_made()?;
        self.relays.unregister(id);
        Some((id, reservation))
    }

    /// Adds a reserved relay for the Allocate that claims it, [`RelayNeed::Reserved`](crate::relay::RelayNeed).
    ///
    /// Call [`Server::withdraw_relay`] after that Allocate. If it returns `false`, the relay is this worker's.
    ///
    /// # Errors
    /// [`RelayError`] if the number is too large or in use, or another one is waiting; nothing changes.
    pub fn add_reserved(&mut self, id: RelayId, reservation: Reservation) -> Result<(), RelayError> {
        self.relays.check(id, reservation.address)?;
        if !self.reservations.lend(id, reservation) {
            return Err(RelayError::Registered);
        }
        self.end_rest(id);
        self.relays.register_reserved(id, reservation.address);
        Ok(())
    }

    /// Ends a reservation that has expired at `now`, at whichever worker.
    ///
    /// # Errors
    /// [`RelayError`] if the number is too large or in use; nothing changes.
    pub fn end_reservation(
        &mut self,
        now: Nanos,
        id: RelayId,
        reservation: &Reservation,
    ) -> Result<ReservationEnd, RelayError> {
        self.relays.check(id, reservation.address)?;
        if reservation.expires > now {
            return Ok(ReservationEnd::Pending);
        }
        Ok(match self.shared.claim_token(reservation.token) {
            TokenClaim::Claimed => ReservationEnd::Pending,
            TokenClaim::Unknown => ReservationEnd::Claimed,
            TokenClaim::Open => {
                self.end_rest(id);
                self.relays.register_reserved(id, reservation.address);
                self.close_reservation(reservation);
                // A client knows its address: packets from peers must not reach the next client.
                self.relays.retire(id, reservation.quota_key, 0);
                ReservationEnd::Retired
            }
        })
    }

    /// Withdraws the token of a reservation that no worker claimed. Its port stays with its user.
    fn close_reservation(&self, ended: &Reservation) {
        self.shared.withdraw_token(ended.token);
        self.shared.refund(ended.quota_key, Charge { allocations: 1, ports: 0, reservations: 1 });
    }

    /// Ends the reservations whose sockets the driver has not taken.
    pub(super) fn end_untaken_reservations(&mut self) {
        while let Some((id, reservation)) = self.reservations.take_made() {
            self.close_reservation(&reservation);
            self.relays.retire(id, reservation.quota_key, 0);
        }
    }
}
