//! Allocations: a flow's claim on a relayed address (RFC 8656 section 3.2).

use tt_model::{FiveTuple, Nanos};

use crate::credential::UserId;
use crate::flow::{FlowEntry, FlowKey, Flows};
use crate::message::TransactionId;
use crate::relay::{RelayAddress, RelayId};
use crate::slab::Slab;
use crate::wheel::Wheel;

/// No record: the end of a list, or nothing remembered.
pub(crate) const NO_INDEX: u32 = u32::MAX;

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The flow as the caller named it; answers to the client go there.
    pub(crate) flow: FiveTuple,
    pub(crate) expires: Nanos,
    pub(crate) relay: RelayId,
    pub(crate) relayed: RelayAddress,
    pub(crate) user: UserId,
    /// The user's place in the quota table.
    pub(crate) quota_key: u64,
    /// The Allocate that made it: its retransmission gets the same answer (RFC 8489 section 6.3.1).
    pub(crate) transaction_id: TransactionId,
    /// Its permissions, as a list through the records.
    pub(crate) permissions: List,
    /// Its channels, as a list through the records.
    pub(crate) channels: List,
    /// The channel that carried the last payload; a media stream stays on it.
    pub(crate) last_channel: u32,
    /// Payload bytes relayed from the client to its peers.
    pub(crate) bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub(crate) bytes_to_client: u64,
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
        let (key, expires) = (FlowKey::of(&allocation.flow), allocation.expires);
        let index = self.records.insert(allocation)?;
        if !self.flows.insert(key, FlowEntry { expires, allocation: index }) {
            self.records.remove(index);
            return None;
        }
        self.wheel.set(index, now, expires);
        Some(index)
    }

    /// Moves the end of an allocation.
    pub(crate) fn refresh(&mut self, index: u32, now: Nanos, expires: Nanos) {
        let Some(allocation) = self.records.get_mut(index) else { return };
        allocation.expires = expires;
        let key = FlowKey::of(&allocation.flow);
        let stored = self.flows.insert(key, FlowEntry { expires, allocation: index });
        debug_assert!(stored, "the flow is in the table already");
        self.wheel.set(index, now, expires);
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Allocation> {
        let allocation = self.records.remove(index)?;
        self.flows.remove(&FlowKey::of(&allocation.flow));
        self.wheel.clear(index);
        Some(allocation)
    }

    /// One allocation that has expired at `now`; it stays until it is removed.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        while let Some(index) = self.wheel.take_due(now) {
            match self.records.get(index).map(|allocation| allocation.expires) {
                Some(expires) if expires > now => self.wheel.set(index, now, expires),
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
