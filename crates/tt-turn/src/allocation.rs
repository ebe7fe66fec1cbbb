//! Allocations: a flow's claim on a relayed address, or on one of each family (RFC 8656 sections 3.2 and 7.2).

use core::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use crate::credential::UserId;
use crate::error::ErrorCode;
use crate::flow::{FlowEntry, FlowKey, Flows};
use crate::message::TransactionId;
use crate::relay::{Family, RelayId};
use crate::slab::Slab;
use crate::wheel::Wheel;

/// No record: the end of a list, or nothing remembered.
pub(crate) const NO_INDEX: u32 = u32::MAX;

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The flow as the caller named it; answers to the client go there.
    pub(crate) flow: FiveTuple,
    /// Its relayed addresses by [`Family`], at least one.
    pub(crate) legs: [Option<Leg>; 2],
    pub(crate) user: UserId,
    /// The user's place in the quota table.
    pub(crate) quota_key: u64,
    /// The user's place among those whose bandwidth is bounded, [`NO_INDEX`] where it is not.
    pub(crate) meter: u32,
    /// The Allocate that made it: its retransmission gets the same answer (RFC 8489 section 6.3.1).
    pub(crate) transaction_id: TransactionId,
    /// The token that its answer told of.
    pub(crate) token: Option<u64>,
    /// The family that its answer refused.
    pub(crate) missing: Option<(Family, ErrorCode)>,
    /// The channel that carried the last payload; a media stream stays on it.
    pub(crate) last_channel: u32,
    /// Payload bytes relayed from the client to its peers.
    pub(crate) bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub(crate) bytes_to_client: u64,
}

/// One relayed address of an allocation, and what lives and dies with it (RFC 8656 section 8.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) relay: RelayId,
    /// The address that peers and the client are told.
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
}

impl Allocation {
    /// The relayed address of `family`, unless it has expired.
    #[inline]
    pub(crate) fn leg(&self, family: Family, now: Nanos) -> Option<&Leg> {
        self.legs[family as usize].as_ref().filter(|leg| leg.expires > now)
    }

    /// The relayed addresses that have not expired.
    pub(crate) fn live_legs(&self, now: Nanos) -> impl Iterator<Item = &Leg> {
        self.legs.iter().flatten().filter(move |leg| leg.expires > now)
    }

    /// When the first relayed address ends, and when the last.
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

/// The head of a list of records, and their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NO_INDEX, len: 0 };
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

    /// The live allocation of a flow. One that has expired is not found, whether it has been ended yet or not.
    #[inline]
    pub(crate) fn find(&self, flow: &FlowKey, now: Nanos) -> Option<u32> {
        self.flows.get(flow).filter(|entry| entry.expires > now).map(|entry| entry.allocation)
    }

    /// The allocation of a flow that has expired and has not been ended yet.
    pub(crate) fn find_expired(&self, flow: &FlowKey, now: Nanos) -> Option<u32> {
        self.flows.get(flow).filter(|entry| entry.expires <= now).map(|entry| entry.allocation)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Allocation> {
        self.records.get(index)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Allocation> {
        self.records.get_mut(index)
    }

    /// The relayed address of `family`, expired or not.
    pub(crate) fn leg_mut(&mut self, index: u32, family: Family) -> Option<&mut Leg> {
        self.records.get_mut(index)?.legs[family as usize].as_mut()
    }

    /// Every allocation with its place, expired ones that have not been ended yet included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Allocation)> {
        self.records.iter()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.records.room() > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Stores `allocation`; `None` where there is no room.
    pub(crate) fn insert(&mut self, now: Nanos, allocation: Allocation) -> Option<u32> {
        let key = FlowKey::of(&allocation.flow);
        let (first, last) = allocation.ends()?;
        let index = self.records.insert(allocation)?;
        if !self.flows.insert(key, FlowEntry { expires: last, allocation: index }) {
            self.records.remove(index);
            return None;
        }
        self.wheel.set(index, now, first);
        Some(index)
    }

    /// Takes notice of where the ends of an allocation's relayed addresses have moved; false where none is left.
    pub(crate) fn settle(&mut self, index: u32, now: Nanos) -> bool {
        let Some(allocation) = self.records.get(index) else { return false };
        let Some((first, last)) = allocation.ends() else { return false };
        let key = FlowKey::of(&allocation.flow);
        let stored = self.flows.insert(key, FlowEntry { expires: last, allocation: index });
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

    /// One allocation of which a relayed address has expired at `now`; it stays until it is removed.
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
