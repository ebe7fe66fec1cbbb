//! Live allocations as the driver shows them.

use alloc::boxed::Box;
use alloc::vec;
use core::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use super::Server;
use crate::event::UserName;
use crate::message::{Known, Message};

/// One live allocation, for a log or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveAllocation<'a> {
    /// Its place in the worker's table, which no other has as long as it lives.
    pub place: u32,
    /// The client's five-tuple.
    pub flow: FiveTuple,
    /// The relayed address, as peers are told; of a dual allocation the IPv4 one.
    pub relayed: SocketAddr,
    /// The IPv6 one of a dual allocation.
    pub relayed_second: Option<SocketAddr>,
    /// The user's name as in USERNAME, its first [`USER_NAME_KEPT_MAX`](crate::event::USER_NAME_KEPT_MAX) bytes; any
    /// bytes that a client chose.
    pub user: &'a [u8],
    /// When it was made.
    pub made: Nanos,
    /// When it ends unless it is refreshed: its last relayed address.
    pub expires: Nanos,
    /// Live permissions, expired ones included until [`Server::handle_timeout`] ends them.
    pub permissions: u32,
    /// Live channels, with expired ones likewise.
    pub channels: u32,
    /// Payload bytes relayed from the client to its peers.
    pub bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub bytes_to_client: u64,
}

impl Server {
    /// The worker's live allocations in no order, for the control plane: it walks every place of the table. Expired
    /// ones are included until [`Server::handle_timeout`] ends them.
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
                user: origin.user.as_bytes(),
                made: origin.made,
                expires: second.map_or(first.expires, |leg| leg.expires.max(first.expires)),
                permissions,
                channels,
                bytes_to_peers: allocation.bytes_to_peers,
                bytes_to_client: allocation.bytes_to_client,
            })
        })
    }

    /// The first bytes of the name that a message bears, by USERNAME or USERHASH.
    pub(super) fn user_name(&self, message: &Message<'_>) -> UserName {
        let hashed = || self.credentials.name_of(message.value(Known::UserHash)?);
        UserName::new(message.value(Known::Username).or_else(hashed).unwrap_or(&[]))
    }
}

/// When each allocation was made and for whom, by the allocation's place: apart from what every datagram reads.
#[derive(Debug)]
pub(super) struct Origins {
    kept: Box<[Origin]>,
}

#[derive(Clone, Copy, Debug)]
struct Origin {
    made: Nanos,
    user: UserName,
    relayed: SocketAddr,
}

impl Origins {
    pub(super) fn new(allocations: u32) -> Self {
        let relayed = SocketAddr::from(([0; 4], 0));
        let nobody = Origin { made: Nanos(0), user: UserName::new(&[]), relayed };
        Self { kept: vec![nobody; allocations as usize].into_boxed_slice() }
    }

    pub(super) fn set(&mut self, index: u32, made: Nanos, user: UserName, relayed: SocketAddr) {
        if let Some(kept) = self.kept.get_mut(index as usize) {
            *kept = Origin { made, user, relayed };
        }
    }

    /// Whose the allocation is, and where it relays, or relays first.
    pub(super) fn whose(&self, index: u32) -> Option<(UserName, SocketAddr)> {
        self.get(index).map(|origin| (origin.user, origin.relayed))
    }

    fn get(&self, index: u32) -> Option<&Origin> {
        self.kept.get(index as usize)
    }
}
