//! Relays of a new allocation: choice, quota and publication.

use tt_model::{IpFamily, Nanos};

use super::super::{Request, Server};
use super::request::{AllocateRequest, RequestedRelays};
use crate::credential::User;
use crate::error::ErrorCode;
use crate::rejection::RejectReason;
use crate::relay::{Drawn, RelayId, Reservation};
use crate::shared::{Charge, RelayEnd, TokenClaim};

/// Relays chosen for a new allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// Its relays by [`IpFamily`], at least one.
    pub(super) relays: [Option<Drawn>; 2],
    /// The requested family that is not available (RFC 8656 section 7.2, item 9).
    pub(super) missing: Option<(IpFamily, ErrorCode)>,
    /// The next port, to be reserved under a token.
    pub(super) next: Option<(Drawn, u64)>,
    /// The claimed reservation and its relay.
    pub(super) claimed: Option<(RelayId, Reservation)>,
}

impl Choice {
    fn of(family: IpFamily, drawn: Drawn) -> Self {
        let mut relays = [None; 2];
        relays[family as usize] = Some(drawn);
        Self { relays, missing: None, next: None, claimed: None }
    }

    /// Returns the token for the response.
    pub(super) fn token(&self) -> Option<u64> {
        self.next.map(|(_, token)| token)
    }

    /// Returns the units of the allocation and its reservation. The units of a reservation that its own user claims
    /// become those of the allocation.
    fn charge(&self, user: u64) -> Charge {
        let reserved = u32::from(self.next.is_some());
        let relays = self.relays.iter().flatten().count() as u32;
        match self.claimed {
            Some((_, claimed)) if claimed.quota_key == user => Charge::default(),
            Some(_) | None => Charge { allocations: 1 + reserved, ports: relays + reserved, reservations: reserved },
        }
    }
}

impl Server {
    /// Takes the requested relays from the pools (RFC 8656 section 7.2, items 5, 8 and 9).
    pub(super) fn choose(&mut self, now: Nanos, asked: &AllocateRequest) -> Result<Choice, RejectReason> {
        match asked.relays {
            RequestedRelays::Reserved(token) => {
                let Some((relay, reservation)) = self.reservations.lent(token) else {
                    // The driver adds the relay of a token that is open, if the system lets it.
                    let is_lost = self.shared.is_token_open(token);
                    return Err(if is_lost { RejectReason::RelayPool } else { RejectReason::Token });
                };
                if reservation.expires <= now || self.shared.claim_token(token) != TokenClaim::Open {
                    return Err(RejectReason::Token);
                }
                let relayed = reservation.address.external;
                let drawn = Drawn { relay, relayed, parted: None };
                Ok(Choice { claimed: Some((relay, reservation)), ..Choice::of(IpFamily::of(relayed.ip()), drawn) })
            }
            RequestedRelays::One { family, port } => {
                self.relays.draw(family, port).map(|drawn| Choice::of(family, drawn)).ok_or(RejectReason::RelayPool)
            }
            RequestedRelays::Pair(family) => {
                let (even, odd) = self.relays.draw_pair(family).ok_or(RejectReason::RelayPairs)?;
                let token = self.relays.draw_token();
                Ok(Choice { next: Some((odd, token)), ..Choice::of(family, even) })
            }
            RequestedRelays::Both { port } => {
                let relays = [IpFamily::V4, IpFamily::V6].map(|family| self.relays.draw(family, port));
                let missing = match relays {
                    [Some(_), Some(_)] => None,
                    [Some(_), None] if !self.relays.serves(IpFamily::V6) => {
                        Some((IpFamily::V6, ErrorCode::AddressFamilyNotSupported))
                    }
                    [Some(_), None] => Some((IpFamily::V6, ErrorCode::InsufficientCapacity)),
                    [None, Some(_)] => Some((IpFamily::V4, ErrorCode::InsufficientCapacity)),
                    [None, None] => return Err(RejectReason::RelayPool),
                };
                Ok(Choice { relays, missing, next: None, claimed: None })
            }
        }
    }

    /// Undoes [`Server::choose`].
    pub(super) fn give_back(&mut self, choice: &Choice) {
        match (choice.relays, choice.next, choice.claimed) {
            (_, _, Some((_, reservation))) => self.shared.reopen_token(reservation.token),
            ([Some(even), _] | [_, Some(even)], Some((odd, _)), None) => {
                self.relays.put_pair_back(even.relay, odd.relay);
            }
            (relays, _, None) => relays.iter().flatten().for_each(|drawn| self.relays.put_back(*drawn)),
        }
    }

    /// Charges `user` for the choice, and returns the user's account.
    pub(super) fn charge(&self, now: Nanos, user: &User, choice: &Choice) -> Result<u32, RejectReason> {
        let (realm, user) = (user.realm, user.quota_key);
        let charge = choice.charge(user);
        if charge == Charge::default() {
            return self.shared.account(user).ok_or(RejectReason::Allocations);
        }
        let account = self.shared.charge(now, (realm, user), charge)?;
        if !self.shared.spend_allocation(now, user) {
            self.shared.refund(user, charge);
            return Err(RejectReason::AllocationRate);
        }
        Ok(account)
    }

    /// Undoes [`Server::charge`].
    pub(super) fn refund(&self, user: u64, choice: &Choice) {
        self.shared.refund(user, choice.charge(user));
    }

    /// Returns what the user who reserved the relay of `claimed` does not pay any more once `claimer` has it.
    pub(super) fn freed_by_claim(claimed: &Reservation, claimer: u64) -> Charge {
        if claimed.quota_key == claimer {
            Charge { allocations: 0, ports: 0, reservations: 1 }
        } else {
            Charge { allocations: 1, ports: 1, reservations: 1 }
        }
    }

    /// Publishes flow, relayed addresses and token: all or none.
    pub(super) fn make_known(&mut self, request: &Request<'_, '_>, choice: &Choice) -> Result<(), RejectReason> {
        let mut known = self.shared.publish_flow(&request.flow, self.worker);
        for drawn in choice.relays.iter().flatten() {
            known = known
                && self.shared.publish_relayed(drawn.relayed, RelayEnd { worker: self.worker, relay: drawn.relay });
        }
        if !known {
            self.make_unknown(request, choice);
            return Err(RejectReason::Allocations);
        }
        if choice.token().is_some_and(|token| !self.shared.publish_token(token)) {
            self.make_unknown(request, choice);
            return Err(RejectReason::Reservations);
        }
        Ok(())
    }

    /// Returns the relay that the choice reserves, and its reservation.
    pub(super) fn reservation(&self, now: Nanos, quota_key: u64, choice: &Choice) -> Option<(RelayId, Reservation)> {
        let (drawn, token) = choice.next?;
        let address = self.relays.address(drawn.relay)?;
        Some((drawn.relay, Reservation::new(now, token, address, quota_key)))
    }

    /// Undoes [`Server::make_known`].
    pub(super) fn make_unknown(&mut self, request: &Request<'_, '_>, choice: &Choice) {
        self.shared.withdraw_flow(&request.flow);
        for drawn in choice.relays.iter().flatten() {
            self.shared.withdraw_relayed(drawn.relayed);
        }
        if let Some(token) = choice.token() {
            self.shared.withdraw_token(token);
        }
    }
}
