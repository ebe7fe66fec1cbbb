//! Allocations: a flow's claim on a relayed address, or on one of each family (RFC 8656 sections 3.2 and 7.2).

use core::net::SocketAddr;

use tt_model::{FiveTuple, IpFamily, Nanos};

use crate::credential::{User, UserId};
use crate::error::ErrorCode;
use crate::flow::{FlowKey, Flows};
use crate::message::TransactionId;
use crate::realm::RealmId;
use crate::relay::RelayId;
use crate::shared::Meter;
use crate::slab::{List, Slab};
use crate::table::Hash;
use crate::wheel::Wheel;

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The client's five-tuple, as the caller passed it. Responses go there.
    pub(crate) flow: FiveTuple,
    /// Its relayed addresses by [`IpFamily`], at least one.
    pub(crate) legs: [Option<Leg>; 2],
    pub(crate) user: UserId,
    pub(crate) realm: RealmId,
    /// The user's key in the quota table.
    pub(crate) quota_key: u64,
    /// The user's account in the pools.
    pub(crate) account: u32,
    pub(crate) meter: Meter,
    /// The transaction of the Allocate that created it: a retransmission gets the same response (RFC 8489 section
    /// 6.3.1).
    pub(crate) transaction_id: TransactionId,
    /// The reservation token in the response.
    pub(crate) token: Option<u64>,
    /// The family that the response rejects.
    pub(crate) missing: Option<(IpFamily, ErrorCode)>,
    /// The client has sent an attribute that RFC 8489 or RFC 8656 added.
    pub(crate) knows_rfc8656: bool,
    /// The channel of the last payload. A media stream stays on one channel.
    pub(crate) last_channel: u32,
    /// Payload bytes relayed from the client to its peers.
    pub(crate) bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub(crate) bytes_to_client: u64,
    /// Payloads relayed from the client to its peers.
    pub(crate) packets_to_peers: u64,
    /// Payloads relayed from the peers to the client.
    pub(crate) packets_to_client: u64,
}

/// One relayed address of an allocation, with its permissions and channels (RFC 8656 section 8.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) relay: RelayId,
    /// The address that peers and the client see.
    pub(crate) relayed: SocketAddr,
    pub(crate) expires: Nanos,
    /// Its permissions, as a list through the records.
    pub(crate) permissions: List,
    /// Its channels, as a list through the records.
    pub(crate) channels: List,
}

impl Leg {
    pub(crate) const fn new(relay: RelayId, relayed: SocketAddr, expires: Nanos) -> Self {
        Self { relay, relayed, expires, permissions: List::EMPTY, channels: List::EMPTY }
    }

    /// Returns whether it has no permission and no channel.
    pub(crate) const fn is_closed(&self) -> bool {
        self.permissions.len == 0 && self.channels.len == 0
    }
}

impl Allocation {
    /// Returns whether it is the user's.
    #[inline]
    pub(crate) fn is_of(&self, user: &User) -> bool {
        self.user == user.id && self.realm == user.realm
    }

    /// The relayed address of `family`, unless it has expired.
    #[inline]
    pub(crate) fn leg(&self, family: IpFamily, now: Nanos) -> Option<&Leg> {
        self.legs[family as usize].as_ref().filter(|leg| leg.expires > now)
    }

    /// The relayed addresses that have not expired.
    pub(crate) fn live_legs(&self, now: Nanos) -> impl Iterator<Item = &Leg> {
        self.legs.iter().flatten().filter(move |leg| leg.expires > now)
    }

    /// Returns the earliest and the latest expiry of its relayed addresses.
    fn ends(&self) -> Option<(Nanos, Nanos)> {
        let ends = || self.legs.iter().flatten().map(|leg| leg.expires);
        ends().min().zip(ends().max())
    }

    /// Live permissions and channels of all its relayed addresses.
    pub(crate) fn used(&self) -> (u32, u32) {
        let each = self.legs.iter().flatten();
        each.fold((0, 0), |(permissions, channels), leg| {
            (permissions + leg.permissions.len, channels + leg.channels.len)
        })
    }
}

/// The live allocations of one worker.
#[derive(Debug)]
pub(crate) struct Allocations {
    flows: Flows,
    records: Slab<Allocation>,
    wheel: Wheel,
}

impl Allocations {
    pub(crate) fn new(capacity: u32, seed: u64) -> Self {
        Self {
            flows: Flows::new(capacity as usize, seed),
            records: Slab::new(capacity),
            wheel: Wheel::new(capacity as usize),
        }
    }

    /// Returns the hash of a flow, and prefetches what [`Allocations::find_hashed`] reads.
    #[inline]
    pub(crate) fn prefetch_flow(&self, flow: &FlowKey) -> Hash {
        self.flows.prefetch(flow)
    }

    /// The same as [`Allocations::find`] for a flow with this hash.
    #[inline]
    pub(crate) fn find_hashed(&self, flow: &FlowKey, hash: Hash, now: Nanos) -> Option<u32> {
        self.flows.get_hashed(flow, hash).filter(|(expires, _)| *expires > now.0).map(|(_, allocation)| *allocation)
    }

    /// Returns the live allocation of a flow. An expired one is not found, even if it has not been ended.
    #[inline]
    pub(crate) fn find(&self, flow: &FlowKey, now: Nanos) -> Option<u32> {
        self.flows.get(flow).filter(|(expires, _)| *expires > now.0).map(|(_, allocation)| *allocation)
    }

    /// Returns the allocation of a flow if it has expired and has not been ended.
    pub(crate) fn find_expired(&self, flow: &FlowKey, now: Nanos) -> Option<u32> {
        self.flows.get(flow).filter(|(expires, _)| *expires <= now.0).map(|(_, allocation)| *allocation)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Allocation> {
        self.records.get(index)
    }

    /// Prefetches a whole allocation.
    #[inline]
    pub(crate) fn prefetch_whole(&self, index: u32) {
        self.records.prefetch_whole(index);
    }

    /// Prefetches what a packet for a relayed address reads.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        if let Some(allocation) = self.records.get(index) {
            tt_simd::prefetch(&allocation.flow);
            tt_simd::prefetch(&allocation.last_channel);
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Allocation> {
        self.records.get_mut(index)
    }

    /// The relayed address of `family`, expired or not.
    pub(crate) fn leg_mut(&mut self, index: u32, family: IpFamily) -> Option<&mut Leg> {
        self.records.get_mut(index)?.legs[family as usize].as_mut()
    }

    /// Iterates over all allocations with their indices, including expired ones that have not been ended.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Allocation)> {
        self.records.iter()
    }

    /// The places that were ever in use.
    pub(crate) fn end(&self) -> u32 {
        self.records.end()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.records.room() > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Stores `allocation`, or returns `None` if the table is full.
    pub(crate) fn insert(&mut self, now: Nanos, allocation: Allocation) -> Option<u32> {
        let key = FlowKey::of(&allocation.flow);
        let (first, last) = allocation.ends()?;
        let index = self.records.insert(allocation)?;
        if !self.flows.insert(key, (last.0, index)) {
            self.records.remove(index);
            return None;
        }
        self.wheel.set(index, now, first);
        Some(index)
    }

    /// Updates the flow table and the timer after a change of the relayed addresses; returns `false` if none is left.
    pub(crate) fn settle(&mut self, index: u32, now: Nanos) -> bool {
        let Some(allocation) = self.records.get(index) else { return false };
        let Some((first, last)) = allocation.ends() else { return false };
        let key = FlowKey::of(&allocation.flow);
        let stored = self.flows.insert(key, (last.0, index));
        debug_assert!(stored, "the flow is in the table already");
        self.wheel.set(index, now, first);
        true
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Allocation> {
        let allocation = self.records.remove(index)?;
        self.flows.remove(&FlowKey::of(&allocation.flow));
        self.wheel.clear(index);
        Some(allocation)
    }

    /// Returns one allocation with a relayed address that has expired at `now`. It stays in the table until it is
    /// removed.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        while let Some(index) = self.wheel.take_due(now) {
            match self.records.get(index).and_then(Allocation::ends) {
                Some((first, _)) if first > now => self.wheel.set(index, now, first),
                Some(_) => return Some(index),
                None => {}
            }
        }
        None
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.wheel.next_at()
    }
}
