//! Relays for a driver that adds them when an Allocate needs them.

use tt_model::{FiveTuple, IpFamily, Nanos};

use super::Server;
use super::allocate::{AllocateRequest, RequestedRelays};
use crate::flow::FlowKey;
use crate::message::{Known, Message};
use crate::relay::{PortChoice, PortNeed, RelayAddress, RelayError, RelayId, RelayNeed};

/// The first two bytes of an Allocate request (RFC 8656 section 17).
const ALLOCATE_REQUEST: [u8; 2] = [0x00, 0x03];

impl Server {
    /// Returns the relays that the pool of this worker lacks for a datagram from a client: an Allocate with
    /// credentials on a flow without an allocation. Changes and counts nothing.
    ///
    /// A driver whose workers share sockets adds them before [`Server::handle_client`], and removes those that are not
    /// in use by [`Server::withdraw_relay`] after it.
    #[must_use]
    pub fn relay_need(&self, now: Nanos, from: &FiveTuple, datagram: &[u8]) -> Option<RelayNeed> {
        if !datagram.starts_with(&ALLOCATE_REQUEST) {
            return None;
        }
        let message = Message::parse(datagram).ok()?;
        let has_code = message.has(Known::Integrity) || message.has(Known::IntegritySha256);
        if !has_code || self.allocations.find(&FlowKey::of(from), now).is_some() {
            return None;
        }
        let lacks = |family, port| self.relays.serves(family) && !self.relays.has(family, port);
        let one = |family, port| {
            let families = [IpFamily::V4, IpFamily::V6].map(|of| of == family && lacks(family, port));
            RelayNeed::new(families, port)
        };
        let need = match AllocateRequest::read(&message).ok()?.relays {
            RequestedRelays::Reserved(_) => return None,
            RequestedRelays::One { family, port } => one(family, port.into()),
            RequestedRelays::Pair(family) => one(family, PortNeed::Pair),
            RequestedRelays::Both { port } => {
                let port = port.into();
                RelayNeed::new([IpFamily::V4, IpFamily::V6].map(|family| lacks(family, port)), port)
            }
        };
        IpFamily::ALL.into_iter().any(|family| need.has(family)).then_some(need)
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

    /// Returns whether an allocation, a reservation or the pool has the relay.
    #[must_use]
    pub fn has_relay(&self, id: RelayId) -> bool {
        self.relays.is_registered(id)
    }

    /// Removes a relay that no allocation uses and no token reserves. Returns `false` if there is none in the pool.
    pub fn withdraw_relay(&mut self, id: RelayId) -> bool {
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
