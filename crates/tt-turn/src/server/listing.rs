//! List of live allocations for the control plane.

use core::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use super::Server;
use crate::event::{AllocationStart, Traffic, UserName};
use crate::message::{Known, Message};

/// One allocation, for a log or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveAllocation<'a> {
    /// Index in the worker's table, unique among live allocations.
    pub place: u32,
    /// The client's five-tuple.
    pub flow: FiveTuple,
    /// The relayed address that peers see; the IPv4 one of a dual allocation.
    pub relayed: SocketAddr,
    /// The IPv6 address of a dual allocation.
    pub relayed_second: Option<SocketAddr>,
    /// The name of its user's realm.
    pub realm: &'a str,
    /// The first [`USER_NAME_LEN_MAX`](crate::event::USER_NAME_LEN_MAX) bytes of the user name; any bytes that a
    /// client chose.
    pub user: &'a [u8],
    /// Time of creation.
    pub made: Nanos,
    /// Expiry of its last relayed address.
    pub expires: Nanos,
    /// Number of permissions, including expired ones that [`Server::handle_timeout`] has not ended.
    pub permissions: u32,
    /// Number of channels, likewise.
    pub channels: u32,
    /// Payload bytes relayed from the client to its peers.
    pub bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub bytes_to_client: u64,
}

/// What an allocation has relayed so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceTraffic {
    /// Number of the allocation, as in [`AllocationStart`].
    pub number: u64,
    /// Its payloads.
    pub traffic: Traffic,
}

impl Server {
    /// Iterates over the worker's allocations in no order, including expired ones that [`Server::handle_timeout`] has
    /// not ended.
    ///
    /// Walks the whole table: for the control plane.
    pub fn live_allocations(&self) -> impl Iterator<Item = LiveAllocation<'_>> {
        self.allocations.iter().filter_map(|(index, allocation)| {
            let mut legs = allocation.legs.iter().flatten();
            let first = legs.next()?;
            let second = legs.next();
            let origin = self.origins.get(index)?;
            let (permissions, channels) = allocation.used();
            Some(LiveAllocation {
                place: index,
                flow: allocation.flow,
                relayed: first.relayed,
                relayed_second: second.map(|leg| leg.relayed),
                realm: self.realm_name(origin.realm),
                user: self.origins.user(index),
                made: origin.made,
                expires: second.map_or(first.expires, |leg| leg.expires.max(first.expires)),
                permissions,
                channels,
                bytes_to_peers: allocation.bytes_to_peers,
                bytes_to_client: allocation.bytes_to_client,
            })
        })
    }

    /// Returns what the allocation at a place of the worker's table has relayed; `None` for a free place. Places count from
    /// 0 to [`Server::places`].
    #[must_use]
    pub fn traffic_at(&self, place: u32) -> Option<PlaceTraffic> {
        let (allocation, origin) = (self.allocations.get(place)?, self.origins.get(place)?);
        Some(PlaceTraffic {
            number: origin.number(),
            traffic: Traffic {
                bytes_to_peers: allocation.bytes_to_peers,
                bytes_to_client: allocation.bytes_to_client,
                packets_to_peers: allocation.packets_to_peers,
                packets_to_client: allocation.packets_to_client,
            },
        })
    }

    /// Returns the beginning of the allocation at a place of the worker's table.
    #[must_use]
    pub fn start_at(&self, place: u32) -> Option<AllocationStart> {
        self.allocations.get(place).and_then(|_| self.origins.start(place))
    }

    /// Returns the number of places of the worker's table that were ever in use.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.allocations.end()
    }

    /// Returns the first bytes of the user name in a message, by USERNAME or USERHASH.
    pub(super) fn user_name(&self, message: &Message<'_>) -> UserName {
        let realm = self.named_realm(message);
        let hashed = || self.credentials.of(realm).name_of(message.value(Known::UserHash)?);
        UserName::new(message.value(Known::Username).or_else(hashed).unwrap_or(&[]))
    }
}
