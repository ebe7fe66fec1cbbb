//! What the events of each allocation need, separate from the data that every datagram reads.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use tt_model::{FiveTuple, IpFamily, Nanos};

use crate::config::PeerLists;
use crate::event::{AllocationStart, Peers, USER_NAME_LEN_MAX, UserName};
use crate::realm::RealmId;

/// Longest user name that is kept with the rest.
const SHORT_NAME_LEN: usize = 62;

/// Origins by the index of their allocation.
#[derive(Debug)]
pub(super) struct Origins {
    /// Grows up to the highest index in use, so that memory that is never used is not touched.
    kept: Vec<Origin>,
    /// Longer user names, one after the other. Zeroed bytes, which the allocator gives without touching them.
    long_names: Box<[u8]>,
    /// Empty if no peers are listed.
    peers: Vec<Peers>,
    peer_lists: PeerLists,
}

/// Creation of one allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) made: Nanos,
    number: u64,
    flow: FiveTuple,
    pub(super) realm: RealmId,
    relayed: [Option<SocketAddr>; 2],
    /// Wall-clock time of creation.
    pub(super) at: Nanos,
    /// Wall-clock times at which relayed addresses have ended.
    pub(super) released: [Nanos; 2],
    name_len: u16,
    short_name: [u8; SHORT_NAME_LEN],
}

impl Origin {
    /// Number of the allocation.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}

impl Origins {
    pub(super) fn new(allocations: u32, peer_lists: PeerLists) -> Self {
        let places = allocations as usize;
        Self {
            kept: Vec::with_capacity(places),
            long_names: vec![0; places * USER_NAME_LEN_MAX].into_boxed_slice(),
            peers: Vec::with_capacity(if peer_lists == PeerLists::Kept { places } else { 0 }),
            peer_lists,
        }
    }

    /// Stores the beginning of an allocation.
    pub(super) fn set(&mut self, index: u32, made: Nanos, start: &AllocationStart) {
        let AllocationStart { number, flow, realm, relayed, at, .. } = *start;
        let (index, name) = (index as usize, start.user.as_bytes());
        let mut short_name = [0; SHORT_NAME_LEN];
        match (short_name.get_mut(..name.len()), self.long_names.get_mut(index * USER_NAME_LEN_MAX..)) {
            (Some(place), _) => place.copy_from_slice(name),
            (None, Some(place)) => place[..name.len()].copy_from_slice(name),
            (None, None) => {}
        }
        let name_len = name.len() as u16;
        let origin = Origin { made, number, flow, realm, relayed, at, released: [at; 2], name_len, short_name };
        put(&mut self.kept, index, origin);
        if self.peer_lists == PeerLists::Kept {
            put(&mut self.peers, index, Peers::new());
        }
    }

    /// Stores the wall-clock time at which a relayed address ended.
    pub(super) fn release(&mut self, index: u32, family: IpFamily, unix: Nanos) {
        if let Some(origin) = self.kept.get_mut(index as usize) {
            origin.released[family as usize] = unix.max(origin.at);
        }
    }

    /// Adds a peer with a new permission (port 0) or a new channel.
    pub(super) fn add_peer(&mut self, index: u32, peer: SocketAddr) {
        if let Some(peers) = self.peers.get_mut(index as usize) {
            peers.add(peer);
        }
    }

    /// Prefetches what [`Origins::add_peer`] reads.
    #[inline]
    pub(super) fn prefetch_peers(&self, index: u32) {
        if let Some(peers) = self.peers.get(index as usize) {
            tt_simd::prefetch_lines(peers);
        }
    }

    pub(super) fn get(&self, index: u32) -> Option<&Origin> {
        self.kept.get(index as usize)
    }

    /// Returns the user name.
    pub(super) fn user(&self, index: u32) -> &[u8] {
        let index = index as usize;
        let name = self.kept.get(index).and_then(|origin| {
            let len = usize::from(origin.name_len);
            origin.short_name.get(..len).or_else(|| self.long_names.get(index * USER_NAME_LEN_MAX..)?.get(..len))
        });
        name.unwrap_or_default()
    }

    /// Returns the beginning again.
    pub(super) fn start(&self, index: u32) -> Option<AllocationStart> {
        let Origin { number, flow, realm, relayed, at, .. } = *self.get(index)?;
        Some(AllocationStart { number, flow, realm, user: UserName::new(self.user(index)), relayed, at })
    }

    /// Returns the listed peers.
    pub(super) fn peers(&self, index: u32) -> Peers {
        self.peers.get(index as usize).copied().unwrap_or(Peers::new())
    }
}

/// Puts a value at an index. The table of allocations uses its slots in order.
fn put<T>(kept: &mut Vec<T>, index: usize, value: T) {
    match kept.get_mut(index) {
        Some(place) => *place = value,
        None => kept.push(value),
    }
}
