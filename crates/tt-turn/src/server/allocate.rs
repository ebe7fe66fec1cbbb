//! Allocate (RFC 8656 section 7.2).

mod relays;
mod request;

use tt_model::{IpFamily, Nanos};

use super::reply::Granted;
use super::{Request, Server, icmp_in};
use crate::allocation::{Allocation, Leg};
use crate::credential::User;
use crate::error::ErrorCode;
use crate::event::{AllocationEvent, AllocationStart, EndReason, GrantRequest};
use crate::flow::canonical;
use crate::message::Known;
use crate::rejection::{RejectReason, Rejection};
use crate::slab::NO_INDEX;
use relays::Choice;
pub(super) use request::{AllocateRequest, RequestedRelays, family, lifetime};

impl Server {
    /// Handles an Allocate; checks in the order of RFC 8656 section 7.2.
    pub(super) fn allocate(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, Rejection> {
        if let Some(index) = request.allocation {
            return Ok(self.allocate_again(request, user, index)?);
        }
        if self.shared.is_draining() {
            let is_redirected = self.alternate(request.from).is_some();
            return Err(if is_redirected { RejectReason::Redirected } else { RejectReason::Draining }.into());
        }
        if self.shared.is_memory_full() {
            return Err(RejectReason::Memory.into());
        }
        if !self.config.peer_policy.admits_client(canonical(request.from.client).ip()) {
            return Err(RejectReason::ClientTunnel.into());
        }
        let asked = self.read_request(request)?;
        if let Some(expired) = self.allocations.find_expired(&request.flow, request.now) {
            self.end_allocation(expired, request.now, EndReason::Expired);
        }
        if !self.allocations.has_room() {
            return Err(RejectReason::Allocations.into());
        }
        let choice = self.choose(request.now, &asked)?;
        let made = self.make_allocation(request, user, &asked, &choice);
        if made.is_err() {
            self.give_back(&choice);
        }
        Ok(made?)
    }

    /// Takes quota, publishes flow, addresses and token, and stores the allocation: all or nothing.
    fn make_allocation(
        &mut self,
        request: &Request<'_, '_>,
        user: &User,
        asked: &AllocateRequest,
        choice: &Choice,
    ) -> Result<Granted, RejectReason> {
        let account = self.charge(request.now, user, choice)?;
        if let Err(reason) = self.make_known(request, choice) {
            self.refund(user.quota_key, choice);
            return Err(reason);
        }
        let lifetime_s = self.lifetime_s(asked.lifetime_s);
        let expires = request.now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
        let allocation = Allocation {
            flow: *request.from,
            legs: choice.relays.map(|drawn| drawn.map(|drawn| Leg::new(drawn.relay, drawn.relayed, expires))),
            user: user.id,
            realm: user.realm,
            quota_key: user.quota_key,
            account,
            meter: self.shared.meter(account, canonical(request.from.client).ip(), request.now),
            transaction_id: request.message.transaction_id(),
            token: choice.token(),
            missing: choice.missing,
            knows_rfc8656: icmp_in::shows_rfc8656(&request.message),
            last_channel: NO_INDEX,
            bytes_to_peers: 0,
            bytes_to_client: 0,
            packets_to_peers: 0,
            packets_to_client: 0,
        };
        let Some(index) = self.allocations.insert(request.now, allocation) else {
            self.make_unknown(request, choice);
            self.refund(user.quota_key, choice);
            return Err(RejectReason::Allocations);
        };
        for drawn in choice.relays.iter().flatten() {
            self.relays.assign(drawn.relay, index, expires);
        }
        if let Some(key) = self.credentials.of(user.realm).kept_key(user) {
            self.kept_keys.keep(index, key);
            let nonce = request.message.value(Known::Nonce).unwrap_or_default();
            if let Some(proof) = self.nonces.proof(nonce, self.clock.unix_s(request.now)) {
                self.kept_keys.keep_nonce(index, proof);
            }
        }
        if let Some((relay, claimed)) = choice.claimed {
            self.reservations.take_back(relay);
            self.shared.withdraw_token(claimed.token);
            self.shared.refund(claimed.quota_key, Self::freed_by_claim(&claimed, user.quota_key));
        }
        if let Some((relay, reservation)) = self.reservation(request.now, user.quota_key, choice) {
            self.reservations.push_made(relay, reservation);
        }
        let start = AllocationStart {
            number: self.counters.allocations_made,
            flow: *request.from,
            realm: user.realm,
            user: self.user_name(&request.message),
            relayed: choice.relays.map(|drawn| drawn.map(|drawn| drawn.relayed)),
            at: self.clock.unix(request.now),
        };
        self.origins.set(index, request.now, &start);
        self.events.push(AllocationEvent { start, end: None }, 0);
        self.report_grant(index, GrantRequest::Allocate, lifetime_s);
        self.counters.allocations_made += 1;
        self.counters.allocations_live[request.from.transport as usize] += 1;
        Ok(Granted::Allocation {
            relayed: choice.relays.map(|drawn| drawn.map(|drawn| drawn.relayed)),
            lifetime_s,
            token: choice.token(),
            missing: choice.missing,
        })
    }

    /// Handles an Allocate on a flow with an allocation: 437, unless it is a retransmission (RFC 8656 section 7.2, the
    /// note after the list). The lifetime is then the remaining one.
    fn allocate_again(&self, request: &Request<'_, '_>, user: &User, index: u32) -> Result<Granted, ErrorCode> {
        let same = self.allocations.get(index).filter(|allocation| {
            allocation.transaction_id == request.message.transaction_id() && allocation.is_of(user)
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

    /// Returns the requested lifetime, limited to the range from the default to the maximum (RFC 8656 section 7.2).
    pub(super) fn lifetime_s(&self, asked_s: Option<u32>) -> u32 {
        asked_s.unwrap_or(0).min(self.config.lifetime_max_s).max(self.config.lifetime_default_s)
    }

    /// Reads the request and checks it as far as possible without choosing relays.
    fn read_request(&self, request: &Request<'_, '_>) -> Result<AllocateRequest, ErrorCode> {
        let asked = AllocateRequest::read(&request.message)?;
        match asked.relays {
            RequestedRelays::Reserved(_) => Ok(asked),
            RequestedRelays::One { family, .. } | RequestedRelays::Pair(family) if !self.relays.serves(family) => {
                Err(ErrorCode::AddressFamilyNotSupported)
            }
            // RFC 8656 section 7.2, item 7: without REQUESTED-ADDRESS-FAMILY IPv4 is asked for.
            RequestedRelays::Both { .. } if !self.relays.serves(IpFamily::V4) => {
                Err(ErrorCode::AddressFamilyNotSupported)
            }
            RequestedRelays::One { .. } | RequestedRelays::Pair(_) | RequestedRelays::Both { .. } => Ok(asked),
        }
    }
}
