//! Relays for a driver that adds them when an Allocate needs them.

use tt_model::{FiveTuple, IpFamily, Nanos};

use super::Server;
use super::allocate::{AllocateRequest, RequestedRelays};
use crate::config::REQUEST_MAX;
use crate::flow::FlowKey;
use crate::message::{Known, Message};
use crate::relay::{PortChoice, PortNeed, RelayAddress, RelayError, RelayId, RelayNeed};

/// The first two bytes of an Allocate request (RFC 8656 section 17).
const ALLOCATE_REQUEST: [u8; 2] = [0x00, 0x03];

impl Server {
    /// Returns the relays that this worker lacks for a datagram from a client: an Allocate with credentials and a fresh
    /// nonce on a flow without an allocation. Changes and counts nothing.
    ///
    /// Every other Allocate is refused whatever relays there are. A nonce cannot be forged, so a driver opens no socket
    /// for a source that has not shown that it receives what is sent to it.
    ///
    /// A driver whose workers share sockets adds them before [`Server::handle_client`], and removes those that are not
    /// in use by [`Server::withdraw_relay`] after it.
    #[must_use]
    pub fn relay_need(&self, now: Nanos, from: &FiveTuple, datagram: &[u8]) -> Option<RelayNeed> {
        if !datagram.starts_with(&ALLOCATE_REQUEST) || datagram.len() > REQUEST_MAX {
            return None;
        }
        let message = Message::parse(datagram).ok()?;
        let has_code = message.has(Known::Integrity) || message.has(Known::IntegritySha256);
        if !has_code || self.allocations.find(&FlowKey::of(from), now).is_some() {
            return None;
        }
        let nonce = message.value(Known::Nonce)?;
        if !self.nonces.is_fresh(nonce, self.clock.unix_s(now), from.client) {
            return None;
        }
        let lacks = |family, port| self.relays.serves(family) && !self.relays.has(family, port);
        let one = |family, port| ([IpFamily::V4, IpFamily::V6].map(|of| of == family && lacks(family, port)), port);
        let (families, port) = match AllocateRequest::read(&message).ok()?.relays {
            RequestedRelays::Reserved(token) => {
                return self.shared.is_token_open(token).then_some(RelayNeed::Reserved(token));
            }
            RequestedRelays::One { family, port } => one(family, port.into()),
            RequestedRelays::Pair(family) => one(family, PortNeed::Pair),
            RequestedRelays::Both { port } => {
                let port = port.into();
                ([IpFamily::V4, IpFamily::V6].map(|family| lacks(family, port)), port)
            }
        };
        families.contains(&true).then_some(RelayNeed::Free { families, port })
    }

    /// Adds an address on which relays may be registered later. Its ports do not matter.
    ///
    /// # Errors
    /// [`RelayError::Addresses`] if there are too many.
    pub fn add_relay_address(&mut self, address: RelayAddress) -> Result<(), RelayError> {
        self.add_own(address)?;
        self.relays.serve(IpFamily::of(address.external.ip()));
        Ok(())
    }

    /// Returns whether an allocation or the pool has the relay.
    #[must_use]
    pub fn has_relay(&self, id: RelayId) -> bool {
        self.relays.is_registered(id)
    }

    /// Removes a relay of the pool, or one that [`Server::add_reserved`] added and no Allocate claimed. Returns `false`
    /// if it is neither.
    pub fn withdraw_relay(&mut self, id: RelayId) -> bool {
        if self.reservations.take_back(id) {
            self.relays.unregister(id);
            return true;
        }
        self.relays.withdraw(id)
    }
}

impl From<PortChoice> for PortNeed {
    fn from(port: PortChoice) -> Self {
        match port {
            PortChoice::Any => Self::Any,
            PortChoice::Even => Self::Even,
        }
    }
}
