//! Allocate (RFC 8656 section 7.2).

mod asked;
mod relays;

use tt_model::Nanos;

use super::reply::Granted;
use super::{Request, Server};
use crate::allocation::{Allocation, Leg, NO_INDEX};
use crate::credential::User;
use crate::error::ErrorCode;
use crate::event::Event;
use crate::flow::canonical;
use crate::refusal::Refusal;
use asked::{Asked, Wanted};
pub(super) use asked::{family, lifetime, reservation_token};
use relays::Choice;

impl Server {
    /// Decides an Allocate, its items in the order of RFC 8656 section 7.2.
    pub(super) fn allocate(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, ErrorCode> {
        if let Some(index) = request.allocation {
            return self.allocate_again(request, user, index);
        }
        if self.shared.is_draining() {
            return Err(self.refused(Refusal::Draining));
        }
        if !self.config.peer_policy.admits_client(canonical(request.from.client).ip()) {
            return Err(self.refused(Refusal::ClientTunnel));
        }
        let asked = self.asked(request)?;
        if let Some(expired) = self.allocations.find_expired(&request.flow, request.now) {
            self.end_allocation(expired);
        }
        if !self.allocations.has_room() {
            return Err(self.refused(Refusal::Allocations));
        }
        let choice = self.choose(request.now, &asked).map_err(|refusal| self.refused(refusal))?;
        let made = self.make_allocation(request, user, &asked, &choice);
        if made.is_err() {
            self.give_back(&choice);
        }
        made.map_err(|refusal| self.refused(refusal))
    }

    /// Takes quota, makes flow, addresses and token known, and stores the allocation: all of it or nothing.
    fn make_allocation(
        &mut self,
        request: &Request<'_, '_>,
        user: &User,
        asked: &Asked,
        choice: &Choice,
    ) -> Result<Granted, Refusal> {
        let meter = self.take_units(request.now, user.quota_key, choice)?;
        if let Err(refusal) = self.make_known(request, user.quota_key, choice) {
            self.return_units(user.quota_key, choice);
            return Err(refusal);
        }
        let lifetime_s = self.lifetime_s(asked.lifetime_s);
        let expires = request.now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
        let allocation = Allocation {
            flow: *request.from,
            legs: choice.relays.map(|drawn| drawn.map(|drawn| Leg::new(drawn.relay, drawn.relayed, expires))),
            user: user.id,
            quota_key: user.quota_key,
            meter,
            transaction_id: request.message.transaction_id(),
            token: choice.token(),
            missing: choice.missing,
            last_channel: NO_INDEX,
            bytes_to_peers: 0,
            bytes_to_client: 0,
        };
        let Some(index) = self.allocations.insert(request.now, allocation) else {
            self.make_unknown(request, choice);
            self.return_units(user.quota_key, choice);
            return Err(Refusal::Allocations);
        };
        for drawn in choice.relays.iter().flatten() {
            self.relays.assign(drawn.relay, index);
        }
        if let Some(claimed) = choice.claimed {
            self.reservations.release(claimed.token);
            self.shared.withdraw_token(claimed.token);
        }
        let (user, relayed) = (self.user_name(&request.message), choice.relays.iter().flatten().next());
        if let Some(relayed) = relayed.map(|drawn| drawn.relayed) {
            self.origins.set(index, request.now, user, relayed);
            self.events.push(Event::Made { flow: *request.from, relayed, user });
        }
        self.counters.allocations_made += 1;
        Ok(Granted::Allocation {
            relayed: choice.relays.map(|drawn| drawn.map(|drawn| drawn.relayed)),
            lifetime_s,
            token: choice.token(),
            missing: choice.missing,
        })
    }

    /// An Allocate on a flow that has an allocation: 437, unless it is the request that made it, sent again (RFC 8656
    /// section 7.2, the note behind the list). The lifetime is then what is left of it.
    fn allocate_again(&self, request: &Request<'_, '_>, user: &User, index: u32) -> Result<Granted, ErrorCode> {
        let same = self.allocations.get(index).filter(|allocation| {
            allocation.transaction_id == request.message.transaction_id() && allocation.user == user.id
        });
        let allocation = same.ok_or(ErrorCode::AllocationMismatch)?;
        let last = allocation.live_legs(request.now).map(|leg| leg.expires).max();
        let left = last.ok_or(ErrorCode::AllocationMismatch)?.saturating_sub(request.now).0.div_ceil(Nanos::PER_SECOND);
        Ok(Granted::Allocation {
            relayed: allocation.legs.map(|leg| leg.filter(|leg| leg.expires > request.now).map(|leg| leg.relayed)),
            lifetime_s: left as u32,
            token: allocation.token,
            missing: allocation.missing,
        })
    }

    /// RFC 8656 section 7.2: what was asked for, at most the maximum, at least the default.
    pub(super) fn lifetime_s(&self, asked_s: Option<u32>) -> u32 {
        asked_s.unwrap_or(0).min(self.config.lifetime_max_s).max(self.config.lifetime_default_s)
    }

    /// What the request asks for, as far as the server can tell before it looks for relays.
    fn asked(&self, request: &Request<'_, '_>) -> Result<Asked, ErrorCode> {
        let asked = Asked::read(&request.message)?;
        match asked.wanted {
            Wanted::Reserved(_) => Ok(asked),
            Wanted::One { family, .. } | Wanted::Pair(family) if !self.relays.serves(family) => {
                Err(ErrorCode::AddressFamilyNotSupported)
            }
            // RFC 8656 section 7.2, item 7: without REQUESTED-ADDRESS-FAMILY IPv4 is asked for.
            Wanted::Both { .. } if !self.relays.serves(crate::relay::Family::V4) => {
                Err(ErrorCode::AddressFamilyNotSupported)
            }
            Wanted::One { .. } | Wanted::Pair(_) | Wanted::Both { .. } => Ok(asked),
        }
    }
}
