//! Live allocations as the driver shows them.

use alloc::boxed::Box;
use alloc::vec;
use core::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use super::Server;

/// Bytes of a user's name that are kept beside an allocation.
pub const USER_NAME_KEPT_MAX: usize = 63;

/// One live allocation, for a log or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveAllocation<'a> {
    /// The client's five-tuple.
    pub flow: FiveTuple,
    /// The relayed address, as peers are told; of a dual allocation the IPv4 one.
    pub relayed: SocketAddr,
    /// The IPv6 one of a dual allocation.
    pub relayed_second: Option<SocketAddr>,
    /// The user's name as in USERNAME, its first [`USER_NAME_KEPT_MAX`] bytes; any bytes that a client chose.
    pub user: &'a [u8],
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
            let (permissions, channels) = allocation.used();
            Some(LiveAllocation {
                flow: allocation.flow,
                relayed: first.relayed,
                relayed_second: second.map(|leg| leg.relayed),
                user: self.user_names.get(index),
                expires: second.map_or(first.expires, |leg| leg.expires.max(first.expires)),
                permissions,
                channels,
                bytes_to_peers: allocation.bytes_to_peers,
                bytes_to_client: allocation.bytes_to_client,
            })
        })
    }
}

/// The name of each allocation's user, by the allocation's place: apart from what every datagram reads.
#[derive(Debug)]
pub(super) struct UserNames {
    kept: Box<[KeptName]>,
}

#[derive(Clone, Copy, Debug)]
struct KeptName {
    len: u8,
    bytes: [u8; USER_NAME_KEPT_MAX],
}

impl UserNames {
    pub(super) fn new(allocations: u32) -> Self {
        let nobody = KeptName { len: 0, bytes: [0; USER_NAME_KEPT_MAX] };
        Self { kept: vec![nobody; allocations as usize].into_boxed_slice() }
    }

    pub(super) fn set(&mut self, index: u32, name: &[u8]) {
        let Some(kept) = self.kept.get_mut(index as usize) else { return };
        let len = name.len().min(USER_NAME_KEPT_MAX);
        kept.bytes[..len].copy_from_slice(&name[..len]);
        kept.len = len as u8;
    }

    fn get(&self, index: u32) -> &[u8] {
        self.kept.get(index as usize).map_or(&[], |kept| &kept.bytes[..usize::from(kept.len)])
    }
}
