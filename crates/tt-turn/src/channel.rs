//! Channels: a number that stands for a peer (RFC 8656 section 12).

use core::net::SocketAddr;

use tt_model::Nanos;

use crate::allocation::{List, NO_INDEX};
use crate::flow::bits_v6;
use crate::slab::Slab;
use crate::table::Table;
use crate::wheel::Wheel;

/// RFC 8656 section 12: a binding lives this long unless it is refreshed.
pub(crate) const LIFETIME: Nanos = Nanos::from_secs(600);

/// One binding of a number to a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) allocation: u32,
    pub(crate) number: u16,
    pub(crate) peer: SocketAddr,
    /// Where the peer's permission was last found.
    pub(crate) permission: u32,
    pub(crate) expires: Nanos,
    next: u32,
    previous: u32,
}

fn number_key(allocation: u32, number: u16) -> u64 {
    u64::from(allocation) << 16 | u64::from(number)
}

fn peer_key(allocation: u32, peer: SocketAddr) -> [u64; 3] {
    let bits = bits_v6(peer.ip());
    let of_family = (u64::from(allocation) + 1) << 1 | u64::from(peer.is_ipv4());
    [of_family << 16 | u64::from(peer.port()), (bits >> 64) as u64, bits as u64]
}

/// How a number and a peer stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// Neither is used.
    Free,
    /// They are bound to each other, by the channel at this place.
    Bound(u32),
    /// The channel at this place has expired and is in the way; it has not been ended yet.
    Expired(u32),
    /// The number is another peer's, or the peer has another number.
    Taken,
}

/// The channels of one worker's allocations.
#[derive(Debug)]
pub(crate) struct Channels {
    by_number: Table<u64, u32>,
    by_peer: Table<[u64; 3], u32>,
    records: Slab<Channel>,
    wheel: Wheel,
}

impl Channels {
    pub(crate) fn new(capacity: u32, seed: u64) -> Self {
        Self {
            by_number: Table::new(capacity as usize, seed),
            by_peer: Table::new(capacity as usize, seed.rotate_left(21)),
            records: Slab::new(capacity),
            wheel: Wheel::new(capacity as usize),
        }
    }

    pub(crate) fn room(&self) -> usize {
        self.records.room()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Channel> {
        self.records.get(index)
    }

    /// The live channel with `number`; `hint` is looked at first.
    #[inline]
    pub(crate) fn find_number(&self, allocation: u32, number: u16, hint: u32, now: Nanos) -> Option<u32> {
        let hinted = self.records.get(hint);
        let index = match hinted.filter(|channel| channel.allocation == allocation && channel.number == number) {
            Some(_) => hint,
            None => *self.by_number.get(&number_key(allocation, number))?,
        };
        self.records.get(index).filter(|channel| channel.expires > now).map(|_| index)
    }

    /// The live channel of `peer`; `hint` is looked at first.
    #[inline]
    pub(crate) fn find_peer(&self, allocation: u32, peer: SocketAddr, hint: u32, now: Nanos) -> Option<u32> {
        let hinted = self.records.get(hint);
        let index = match hinted.filter(|channel| channel.allocation == allocation && channel.peer == peer) {
            Some(_) => hint,
            None => *self.by_peer.get(&peer_key(allocation, peer))?,
        };
        self.records.get(index).filter(|channel| channel.expires > now).map(|_| index)
    }

    /// Brings nearer what [`Channels::pair`] and [`Channels::bind`] will look at.
    pub(crate) fn prefetch(&self, (allocation, list): (u32, &List), number: u16, peer: SocketAddr) {
        self.by_number.prefetch(&number_key(allocation, number));
        self.by_peer.prefetch(&peer_key(allocation, peer));
        self.records.prefetch(list.head);
        self.records.prefetch_next();
    }

    /// The record of this very pair; [`Pair::Free`] where both are unused.
    pub(crate) fn pair(&self, allocation: u32, number: u16, peer: SocketAddr, now: Nanos) -> Pair {
        let by_number = self.by_number.get(&number_key(allocation, number)).copied();
        let by_peer = self.by_peer.get(&peer_key(allocation, peer)).copied();
        let is_expired = |index: &u32| self.records.get(*index).is_some_and(|channel| channel.expires <= now);
        match (by_number, by_peer) {
            (None, None) => Pair::Free,
            (_, _) => match [by_number, by_peer].into_iter().flatten().find(is_expired) {
                Some(index) => Pair::Expired(index),
                None if by_number == by_peer => by_number.map_or(Pair::Free, Pair::Bound),
                None => Pair::Taken,
            },
        }
    }

    /// Remembers where the peer's permission is.
    #[inline]
    pub(crate) fn remember(&mut self, index: u32, permission: u32) {
        if let Some(channel) = self.records.get_mut(index) {
            channel.permission = permission;
        }
    }

    /// Binds `number` to `peer`, of which neither is used, or refreshes the channel at `bound`; `None` where there is no
    /// room.
    pub(crate) fn bind(
        &mut self,
        now: Nanos,
        (allocation, list): (u32, &mut List),
        number: u16,
        peer: SocketAddr,
        bound: Option<u32>,
    ) -> Option<u32> {
        let expires = now.saturating_add(LIFETIME);
        let index = match bound {
            Some(index) => {
                if let Some(channel) = self.records.get_mut(index) {
                    channel.expires = expires;
                }
                index
            }
            None => {
                let head = list.head;
                let record =
                    Channel { allocation, number, peer, permission: NO_INDEX, expires, next: head, previous: NO_INDEX };
                let index = self.records.insert(record)?;
                let stored = self.by_number.insert(number_key(allocation, number), index)
                    & self.by_peer.insert(peer_key(allocation, peer), index);
                debug_assert!(stored, "the indices have the records' capacity");
                if let Some(channel) = self.records.get_mut(head) {
                    channel.previous = index;
                }
                *list = List { head: index, len: list.len + 1 };
                index
            }
        };
        self.wheel.set(index, now, expires);
        Some(index)
    }

    /// Ends the binding at `index`.
    pub(crate) fn remove(&mut self, index: u32, list: &mut List) {
        let Some(channel) = self.records.remove(index) else { return };
        self.by_number.remove(&number_key(channel.allocation, channel.number));
        self.by_peer.remove(&peer_key(channel.allocation, channel.peer));
        self.wheel.clear(index);
        if let Some(next) = self.records.get_mut(channel.next) {
            next.previous = channel.previous;
        }
        match self.records.get_mut(channel.previous) {
            Some(previous) => previous.next = channel.next,
            None => list.head = channel.next,
        }
        list.len -= 1;
    }

    /// One channel that has expired at `now`, with its allocation; it stays until it is removed.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<(u32, u32)> {
        while let Some(index) = self.wheel.take_due(now) {
            match self.records.get(index) {
                Some(channel) if channel.expires > now => {
                    let expires = channel.expires;
                    self.wheel.set(index, now, expires);
                }
                Some(channel) => return Some((index, channel.allocation)),
                None => {}
            }
        }
        None
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.wheel.next_at()
    }
}
