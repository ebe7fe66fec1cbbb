//! Paths: bound channels that the driver may relay without the server.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use crate::relay::{RelayAddress, RelayId};
use crate::slab::NO_INDEX;

/// Number of a path: one bound channel, in both directions. It is used again after
/// [`Server::path_closed`](crate::Server::path_closed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PathId(pub u32);

/// What a path relays, and until when. What does not fit exactly belongs to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLease {
    /// The client's five-tuple, over UDP.
    pub client: FiveTuple,
    /// The relay socket.
    pub relay: RelayId,
    /// Its addresses: datagrams leave from the bound one.
    pub relayed: RelayAddress,
    /// The peer, of the client's address family.
    pub peer: SocketAddr,
    /// The channel, as the server accepts numbers.
    pub channel: u16,
    /// The first moment at which it relays nothing.
    pub until: Nanos,
}

/// What the driver must do with a path, returned by [`Server::poll_path`](crate::Server::poll_path).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Relay it no longer. Then count its last traffic and call [`Server::path_closed`](crate::Server::path_closed).
    Close(PathId),
    /// Relay it until its lease ends.
    Open(PathId, PathLease),
    /// The lease of an open path ends at this time, which may be earlier than before.
    Extend(PathId, Nanos),
}

/// What a path has relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTraffic {
    /// Payloads from the client to the peer.
    pub packets_to_peer: u64,
    /// Their bytes, without ChannelData headers.
    pub bytes_to_peer: u64,
    /// Payloads from the peer to the client.
    pub packets_to_client: u64,
    /// Their bytes, without ChannelData headers.
    pub bytes_to_client: u64,
}

/// To whom the traffic of a path is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The allocation of this index.
    Allocation(u32),
    /// The end of its allocation, by its number in the queue of events, which keeps it until the path is closed.
    End(u64),
    /// No record of the allocation is left.
    Lost,
}

/// How far a path has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The driver does not know it.
    New,
    /// The driver relays it.
    Open,
    /// It has ended, and the driver has not polled that.
    Ended,
    /// The driver closes it.
    Closing,
}

/// One path. It is in the list of its allocation, and in at most one queue.
#[derive(Clone, Copy, Debug)]
struct Slot {
    channel: u32,
    owner: Owner,
    stage: Stage,
    /// End of the lease as the driver knows it.
    until: Nanos,
    is_queued: bool,
    queue: Links,
    siblings: Links,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
}

const UNLINKED: Links = Links { next: NO_INDEX, previous: NO_INDEX };

/// A queue through the slots.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

const EMPTY: Queue = Queue { head: NO_INDEX, tail: NO_INDEX };

/// The paths of one worker. Without an offer it has no memory and all calls do nothing.
#[derive(Debug)]
pub(crate) struct Paths {
    slots: Vec<Slot>,
    free: Vec<u32>,
    capacity: usize,
    /// Slot by channel.
    by_channel: Box<[u32]>,
    /// First slot by allocation.
    first: Box<[u32]>,
    /// Paths to look at: new ones, and those whose lease may have changed.
    changed: Queue,
    /// Ended paths that the driver must close.
    ended: Queue,
    /// Paths that the driver closes, in the order in which they ended.
    closing: Queue,
    /// Paths that have ended, ever.
    ended_count: u64,
    /// Those of them that the driver has closed.
    closed_count: u64,
}

impl Paths {
    pub(crate) fn none() -> Self {
        Self::new(0, 0, 0)
    }

    pub(crate) fn new(paths: u32, channels: u32, allocations: u32) -> Self {
        Self {
            slots: Vec::with_capacity(paths as usize),
            free: Vec::with_capacity(paths as usize),
            capacity: paths as usize,
            by_channel: vec![NO_INDEX; channels as usize].into_boxed_slice(),
            first: vec![NO_INDEX; allocations as usize].into_boxed_slice(),
            changed: EMPTY,
            ended: EMPTY,
            closing: EMPTY,
            ended_count: 0,
            closed_count: 0,
        }
    }

    #[inline]
    pub(crate) fn are_offered(&self) -> bool {
        self.capacity > 0
    }

    /// Returns the fence of what must not happen before all paths that have ended by now are closed.
    #[inline]
    pub(crate) fn fence(&self) -> u64 {
        self.ended_count
    }

    /// Returns the highest fence that has been passed.
    #[inline]
    pub(crate) fn passed(&self) -> u64 {
        self.closed_count
    }

    /// Looks at a channel at the next poll: it may have a path, or another lease.
    pub(crate) fn touch(&mut self, channel: u32, allocation: u32) {
        let Some(known) = self.by_channel.get(channel as usize).copied() else { return };
        let index = if known == NO_INDEX { self.insert(channel, allocation) } else { Some(known) };
        // Without a free slot the channel is relayed by the server, and gets another chance when it is refreshed.
        let Some(index) = index else { return };
        if !self.slots[index as usize].is_queued {
            Self::push(&mut self.slots, &mut self.changed, index);
        }
    }

    fn insert(&mut self, channel: u32, allocation: u32) -> Option<u32> {
        let first = self.first.get_mut(allocation as usize)?;
        let slot = Slot {
            channel,
            owner: Owner::Allocation(allocation),
            stage: Stage::New,
            until: Nanos(0),
            is_queued: false,
            queue: UNLINKED,
            siblings: Links { next: *first, previous: NO_INDEX },
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None if self.slots.len() < self.capacity => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let next = core::mem::replace(first, index);
        if let Some(next) = self.slots.get_mut(next as usize) {
            next.siblings.previous = index;
        }
        self.by_channel[channel as usize] = index;
        Some(index)
    }

    /// Ends the path of a channel.
    pub(crate) fn end(&mut self, channel: u32) {
        let Some(index) = self.by_channel.get(channel as usize).copied().filter(|index| *index != NO_INDEX) else {
            return;
        };
        self.by_channel[channel as usize] = NO_INDEX;
        if self.slots[index as usize].is_queued {
            Self::remove(&mut self.slots, &mut self.changed, index);
        }
        if self.slots[index as usize].stage == Stage::New {
            self.release(index);
        } else {
            self.slots[index as usize].stage = Stage::Ended;
            self.ended_count += 1;
            Self::push(&mut self.slots, &mut self.ended, index);
        }
    }

    /// Gives the paths of an allocation, which have all ended, to its end in the queue of events.
    pub(crate) fn end_allocation(&mut self, allocation: u32, event: Option<u64>) {
        let Some(first) = self.first.get_mut(allocation as usize) else { return };
        let mut at = core::mem::replace(first, NO_INDEX);
        while let Some(slot) = self.slots.get_mut(at as usize) {
            slot.owner = event.map_or(Owner::Lost, Owner::End);
            at = slot.siblings.next;
            slot.siblings = UNLINKED;
        }
    }

    /// Returns an ended path, which the driver closes.
    pub(crate) fn take_ended(&mut self) -> Option<PathId> {
        let index = Self::pop(&mut self.slots, &mut self.ended)?;
        self.slots[index as usize].stage = Stage::Closing;
        Self::push(&mut self.slots, &mut self.closing, index);
        Some(PathId(index))
    }

    /// Returns a path to look at, with its channel and with the end of its lease if the driver relays it.
    pub(crate) fn take_changed(&mut self) -> Option<(PathId, u32, Option<Nanos>)> {
        let index = Self::pop(&mut self.slots, &mut self.changed)?;
        let slot = &self.slots[index as usize];
        Some((PathId(index), slot.channel, (slot.stage == Stage::Open).then_some(slot.until)))
    }

    /// The driver relays the path until then.
    pub(crate) fn lease(&mut self, id: PathId, until: Nanos) {
        let slot = &mut self.slots[id.0 as usize];
        (slot.stage, slot.until) = (Stage::Open, until);
    }

    /// Returns to whom the traffic of a path is counted, if the driver relays it or is to close it.
    pub(crate) fn owner(&self, id: PathId) -> Option<Owner> {
        let slot = self.slots.get(id.0 as usize)?;
        // A free slot is as it was released: new.
        (slot.stage != Stage::New).then_some(slot.owner)
    }

    /// Frees a path that the driver has closed; returns `false` if it is not the first of those to be closed.
    pub(crate) fn closed(&mut self, id: PathId) -> bool {
        if id.0 == NO_INDEX || self.closing.head != id.0 {
            return false;
        }
        Self::pop(&mut self.slots, &mut self.closing);
        self.closed_count += 1;
        self.release(id.0);
        true
    }

    fn release(&mut self, index: u32) {
        let slot = self.slots[index as usize];
        if let Owner::Allocation(allocation) = slot.owner {
            match self.slots.get_mut(slot.siblings.previous as usize) {
                Some(previous) => previous.siblings.next = slot.siblings.next,
                None => self.first[allocation as usize] = slot.siblings.next,
            }
            if let Some(next) = self.slots.get_mut(slot.siblings.next as usize) {
                next.siblings.previous = slot.siblings.previous;
            }
        }
        self.slots[index as usize].stage = Stage::New;
        self.free.push(index);
    }

    fn push(slots: &mut [Slot], queue: &mut Queue, index: u32) {
        let slot = &mut slots[index as usize];
        slot.is_queued = true;
        slot.queue = Links { next: NO_INDEX, previous: queue.tail };
        match slots.get_mut(queue.tail as usize) {
            Some(tail) => tail.queue.next = index,
            None => queue.head = index,
        }
        queue.tail = index;
    }

    fn remove(slots: &mut [Slot], queue: &mut Queue, index: u32) {
        let slot = &mut slots[index as usize];
        let Links { next, previous } = core::mem::replace(&mut slot.queue, UNLINKED);
        slot.is_queued = false;
        match slots.get_mut(previous as usize) {
            Some(previous) => previous.queue.next = next,
            None => queue.head = next,
        }
        match slots.get_mut(next as usize) {
            Some(next) => next.queue.previous = previous,
            None => queue.tail = previous,
        }
    }

    fn pop(slots: &mut [Slot], queue: &mut Queue) -> Option<u32> {
        let index = queue.head;
        slots.get(index as usize)?;
        Self::remove(slots, queue, index);
        Some(index)
    }
}
