//! Allocate (RFC 8656 section 7.2).

use tt_model::Nanos;

use super::reply::Granted;
use super::{Request, Server};
use crate::allocation::{Allocation, List, NO_INDEX};
use crate::credential::User;
use crate::error::ErrorCode;
use crate::flow::canonical;
use crate::message::{Known, Message};
use crate::relay::{Family, PortChoice, RelayAddress, RelayId};

/// REQUESTED-TRANSPORT's number of UDP.
const PROTOCOL_UDP: u8 = 17;
/// EVEN-PORT's bit that asks for the next port too.
const RESERVE_NEXT: u8 = 0x80;
const FAMILY_IPV4: u8 = 0x01;
const FAMILY_IPV6: u8 = 0x02;

/// What an Allocate asks for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    family: Family,
    /// IPv6 beside IPv4.
    both: bool,
    port: PortChoice,
    lifetime_s: Option<u32>,
}

impl Server {
    pub(super) fn allocate(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, ErrorCode> {
        if let Some(index) = request.allocation {
            return self.allocate_again(request, user, index);
        }
        if !self.config.peer_policy.admits_client(canonical(request.from.client).ip()) {
            return Err(ErrorCode::Forbidden);
        }
        let asked = asked(&request.message)?;
        if !self.relays.serves(asked.family) {
            return Err(ErrorCode::AddressFamilyNotSupported);
        }
        if let Some(expired) = self.allocations.find_expired(&request.flow, request.now) {
            self.end_allocation(expired);
        }
        if !self.allocations.has_room() {
            return Err(ErrorCode::InsufficientCapacity);
        }
        let (relay, relayed) = self.relays.draw(asked.family, asked.port).ok_or(ErrorCode::InsufficientCapacity)?;
        let lifetime_s = self.lifetime_s(asked.lifetime_s);
        let made = self.make_allocation(request, user, (relay, relayed), lifetime_s);
        if made.is_err() {
            self.relays.put_back(relay);
        }
        made.map(|()| Granted::Allocation { relayed, lifetime_s, without_ipv6: asked.both })
    }

    fn make_allocation(
        &mut self,
        request: &Request<'_, '_>,
        user: &User,
        (relay, relayed): (RelayId, RelayAddress),
        lifetime_s: u32,
    ) -> Result<(), ErrorCode> {
        if !self.shared.take_quota(user.quota_key) {
            return Err(ErrorCode::AllocationQuotaReached);
        }
        if !self.shared.publish(&request.flow, relayed.external, self.worker) {
            self.shared.return_quota(user.quota_key);
            return Err(ErrorCode::InsufficientCapacity);
        }
        let allocation = Allocation {
            flow: *request.from,
            expires: request.now.saturating_add(Nanos::from_secs(u64::from(lifetime_s))),
            relay,
            relayed,
            user: user.id,
            quota_key: user.quota_key,
            transaction_id: request.message.transaction_id(),
            permissions: List::EMPTY,
            channels: List::EMPTY,
            last_channel: NO_INDEX,
            bytes_to_peers: 0,
            bytes_to_client: 0,
        };
        let Some(index) = self.allocations.insert(request.now, allocation) else {
            self.shared.withdraw(&request.flow, relayed.external);
            self.shared.return_quota(user.quota_key);
            return Err(ErrorCode::InsufficientCapacity);
        };
        self.relays.assign(relay, index);
        let message = &request.message;
        let hashed = || self.credentials.name_of(message.value(Known::UserHash)?);
        self.user_names.set(index, message.value(Known::Username).or_else(hashed).unwrap_or(&[]));
        self.counters.allocations_made += 1;
        Ok(())
    }

    /// An Allocate on a flow that has an allocation: 437, unless it is the request that made it, sent again (RFC 8656
    /// section 7.2, the note behind the list). The lifetime is then what is left of it.
    fn allocate_again(&self, request: &Request<'_, '_>, user: &User, index: u32) -> Result<Granted, ErrorCode> {
        let same = self.allocations.get(index).filter(|allocation| {
            allocation.transaction_id == request.message.transaction_id() && allocation.user == user.id
        });
        let allocation = same.ok_or(ErrorCode::AllocationMismatch)?;
        let left = allocation.expires.saturating_sub(request.now).0.div_ceil(Nanos::PER_SECOND);
        let without_ipv6 = request.message.has(Known::AdditionalAddressFamily);
        Ok(Granted::Allocation { relayed: allocation.relayed, lifetime_s: left as u32, without_ipv6 })
    }

    /// RFC 8656 section 7.2: what was asked for, at most the maximum, at least the default.
    pub(super) fn lifetime_s(&self, asked_s: Option<u32>) -> u32 {
        asked_s.unwrap_or(0).min(self.config.lifetime_max_s).max(self.config.lifetime_default_s)
    }
}

/// Reads what the request asks for, in the order of RFC 8656 section 7.2.
fn asked(message: &Message<'_>) -> Result<Asked, ErrorCode> {
    match message.value(Known::RequestedTransport) {
        Some([PROTOCOL_UDP, _, _, _]) => {}
        Some([_, _, _, _]) => return Err(ErrorCode::UnsupportedTransportProtocol),
        Some(_) | None => return Err(ErrorCode::BadRequest),
    }
    let even_port = message.value(Known::EvenPort);
    let requested = family(message.value(Known::RequestedAddressFamily))?;
    let additional = family(message.value(Known::AdditionalAddressFamily))?;
    if let Some(token) = message.value(Known::ReservationToken) {
        let exclusive = even_port.is_none() && requested.is_none() && additional.is_none();
        // No port is ever reserved, so that no token is valid.
        return Err(if token.len() == 8 && exclusive {
            ErrorCode::InsufficientCapacity
        } else {
            ErrorCode::BadRequest
        });
    }
    if requested.is_some() && additional.is_some() {
        return Err(ErrorCode::BadRequest);
    }
    let family = match requested {
        None | Some(FAMILY_IPV4) => Family::V4,
        Some(FAMILY_IPV6) => Family::V6,
        Some(_) => return Err(ErrorCode::AddressFamilyNotSupported),
    };
    if additional.is_some_and(|family| family != FAMILY_IPV6) {
        return Err(ErrorCode::BadRequest);
    }
    let port = match even_port {
        None => PortChoice::Any,
        Some([bits]) if bits & RESERVE_NEXT == 0 => PortChoice::Even,
        Some([_]) if additional.is_some() => return Err(ErrorCode::BadRequest),
        Some([_]) => return Err(ErrorCode::InsufficientCapacity),
        Some(_) => return Err(ErrorCode::BadRequest),
    };
    let lifetime_s = lifetime(message)?;
    Ok(Asked { family, both: additional.is_some(), port, lifetime_s })
}

/// The family's number in REQUESTED-ADDRESS-FAMILY or ADDITIONAL-ADDRESS-FAMILY; 400 where the length is wrong.
pub(super) fn family(value: Option<&[u8]>) -> Result<Option<u8>, ErrorCode> {
    match value {
        None => Ok(None),
        Some([family, _, _, _]) => Ok(Some(*family)),
        Some(_) => Err(ErrorCode::BadRequest),
    }
}

/// LIFETIME in seconds; 400 where the length is wrong.
pub(super) fn lifetime(message: &Message<'_>) -> Result<Option<u32>, ErrorCode> {
    match message.value(Known::Lifetime) {
        None => Ok(None),
        Some([a, b, c, d]) => Ok(Some(u32::from_be_bytes([*a, *b, *c, *d]))),
        Some(_) => Err(ErrorCode::BadRequest),
    }
}
