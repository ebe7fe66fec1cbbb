//! Channels: numbers bound to peers (RFC 8656 section 12).

use core::net::SocketAddr;

use tt_model::Nanos;

use crate::flow::bits_v6;
use crate::slab::{List, NO_INDEX, Slab};
use crate::table::{Index, Tag};
use crate::wheel::Wheel;

/// Lifetime of a binding (RFC 8656 section 12).
pub(crate) const LIFETIME: Nanos = Nanos::from_secs(600);

/// One binding of a number to a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) allocation: u32,
    pub(crate) number: u16,
    pub(crate) peer: SocketAddr,
    /// Index of the peer's permission when it was last found.
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

/// A number and a peer of an allocation, to be bound to each other, with their tags in the indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    allocation: u32,
    pub(crate) number: u16,
    pub(crate) peer: SocketAddr,
    number_tag: Tag,
    peer_tag: Tag,
}

/// State of a channel number and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// Both are unused.
    Free,
    /// They are bound to each other, by the channel at this index.
    Bound(u32),
    /// The channel at this index uses one of them; it has expired and has not been ended.
    Expired(u32),
    /// The number is bound to another peer, or the peer to another number.
    Taken,
}

/// The channels of one worker's allocations.
#[derive(Debug)]
pub(crate) struct Channels {
    by_number: Index,
    by_peer: Index,
    records: Slab<Channel>,
    wheel: Wheel,
}

impl Channels {
    pub(crate) fn new(capacity: u32, seed: u64) -> Self {
        Self {
            by_number: Index::new(capacity as usize, seed),
            by_peer: Index::new(capacity as usize, seed.rotate_left(21)),
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

    /// Returns the number of slots that were used: all indices are smaller.
    pub(crate) fn end(&self) -> u32 {
        self.records.end()
    }

    /// Iterates over the indices of a list.
    pub(crate) fn of(&self, list: &List) -> impl Iterator<Item = u32> {
        let mut at = list.head;
        core::iter::from_fn(move || {
            let index = at;
            at = self.records.get(index)?.next;
            Some(index)
        })
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Channel> {
        self.records.get(index)
    }

    /// Returns the live channel with `number`. Checks `hint` first.
    #[inline]
    pub(crate) fn find_number(&self, allocation: u32, number: u16, hint: u32, now: Nanos) -> Option<u32> {
        let hinted = self.records.get(hint);
        let index = match hinted.filter(|channel| channel.allocation == allocation && channel.number == number) {
            Some(_) => hint,
            None => self.numbered((allocation, number), self.by_number.tag(&number_key(allocation, number)))?,
        };
        self.records.get(index).filter(|channel| channel.expires > now).map(|_| index)
    }

    /// Returns the live channel of `peer`. Checks `hint` first.
    #[inline]
    pub(crate) fn find_peer(&self, allocation: u32, peer: SocketAddr, hint: u32, now: Nanos) -> Option<u32> {
        let hinted = self.records.get(hint);
        let index = match hinted.filter(|channel| channel.allocation == allocation && channel.peer == peer) {
            Some(_) => hint,
            None => self.of_peer((allocation, peer), self.by_peer.tag(&peer_key(allocation, peer)))?,
        };
        self.records.get(index).filter(|channel| channel.expires > now).map(|_| index)
    }

    #[inline]
    fn numbered(&self, (allocation, number): (u32, u16), tag: Tag) -> Option<u32> {
        let is = |channel: &Channel| channel.allocation == allocation && channel.number == number;
        self.by_number.find(tag, |index| self.records.get(index).is_some_and(is))
    }

    #[inline]
    fn of_peer(&self, (allocation, peer): (u32, SocketAddr), tag: Tag) -> Option<u32> {
        let is_at = |other: SocketAddr| other.ip() == peer.ip() && other.port() == peer.port();
        let is = |channel: &Channel| channel.allocation == allocation && is_at(channel.peer);
        self.by_peer.find(tag, |index| self.records.get(index).is_some_and(is))
    }

    /// Returns `number` and `peer` with their tags.
    #[inline]
    pub(crate) fn binding(&self, allocation: u32, number: u16, peer: SocketAddr) -> Binding {
        Binding {
            allocation,
            number,
            peer,
            number_tag: self.by_number.tag(&number_key(allocation, number)),
            peer_tag: self.by_peer.tag(&peer_key(allocation, peer)),
        }
    }

    /// Prefetches what [`Channels::pair`] and [`Channels::bind`] read.
    #[inline]
    pub(crate) fn prefetch(&self, binding: &Binding, list: &List) {
        self.by_number.prefetch(binding.number_tag);
        self.by_peer.prefetch(binding.peer_tag);
        self.records.prefetch(list.head);
        self.records.prefetch_next();
    }

    /// Prefetches what [`Channels::find_peer`] reads without its hint.
    #[inline]
    pub(crate) fn prefetch_peer(&self, allocation: u32, peer: SocketAddr) {
        self.by_peer.prefetch(self.by_peer.tag(&peer_key(allocation, peer)));
    }

    /// Returns the state of a number and a peer.
    pub(crate) fn pair(&self, binding: &Binding, now: Nanos) -> Pair {
        let Binding { allocation, number, peer, number_tag, peer_tag } = *binding;
        let by_number = self.numbered((allocation, number), number_tag);
        let by_peer = self.of_peer((allocation, peer), peer_tag);
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

    /// Stores the index of the peer's permission.
    #[inline]
    pub(crate) fn remember(&mut self, index: u32, permission: u32) {
        if let Some(channel) = self.records.get_mut(index) {
            channel.permission = permission;
        }
    }

    /// Binds a number to a peer, both unused, or refreshes the channel at `bound`; returns `None` if the table is full.
    pub(crate) fn bind(&mut self, now: Nanos, binding: &Binding, list: &mut List, bound: Option<u32>) -> Option<u32> {
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
                let Binding { allocation, number, peer, number_tag, peer_tag } = *binding;
                let record =
                    Channel { allocation, number, peer, permission: NO_INDEX, expires, next: head, previous: NO_INDEX };
                let index = self.records.insert(record)?;
                let stored = self.by_number.insert(number_tag, index) & self.by_peer.insert(peer_tag, index);
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
        let Binding { number_tag, peer_tag, .. } = self.binding(channel.allocation, channel.number, channel.peer);
        let was_indexed = self.by_number.remove(number_tag, index) & self.by_peer.remove(peer_tag, index);
        debug_assert!(was_indexed, "every record is in both indices");
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

    /// Returns one channel that has expired at `now`, with its allocation. It stays in the table until it is removed.
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::from_secs(1_000);

    fn peer(last: u8) -> SocketAddr {
        SocketAddr::new([192, 0, 2, last].into(), 9)
    }

    /// Channels 0x4000 to 0x4003 of two allocations to peers 1 to 4, and their places.
    fn bound() -> (Channels, [List; 2], [[u32; 4]; 2]) {
        let (mut channels, mut lists, mut places) = (Channels::new(8, 7), [List::EMPTY; 2], [[0; 4]; 2]);
        for (owner, (list, places)) in (0u32..).zip(lists.iter_mut().zip(&mut places)) {
            for (offset, place) in (0u8..).zip(places) {
                let number = 0x4000 + u16::from(offset);
                let bound = channels.bind(NOW, &channels.binding(owner, number, peer(offset + 1)), list, None);
                *place = bound.expect("room");
            }
        }
        (channels, lists, places)
    }

    /// Two of `keys` with one tag.
    fn colliding<K: Copy>(keys: impl Iterator<Item = K>, tag: impl Fn(K) -> Tag) -> [K; 2] {
        let mut known = std::collections::HashMap::new();
        for key in keys {
            if let Some(other) = known.insert(std::format!("{:?}", tag(key)), key) {
                return [other, key];
            }
        }
        panic!("no two keys have one tag");
    }

    /// The index knows a part of a hash only: the record says whose it is.
    #[test]
    fn channels_with_one_tag_are_distinguished() {
        let owners = 0..256_u32;
        let numbers = |owner| (0x4000..0x5000_u16).map(move |number| (owner, number));
        let mut channels = Channels::new(8, 7);
        let of_number = |(owner, number)| channels.by_number.tag(&number_key(owner, number));
        let one = colliding(owners.clone().flat_map(numbers), of_number);
        let at = |port| SocketAddr::new([192, 0, 2, 1].into(), port);
        let ports = |owner| (1..4_096_u16).map(move |port| (owner, port));
        let of_peer = |(owner, port)| channels.by_peer.tag(&peer_key(owner, at(port)));
        let other = colliding(owners.flat_map(ports), of_peer);
        let mut lists = [List::EMPTY; 4];
        let wanted = [(one[0], 1), (one[1], 2)].map(|((owner, number), port)| (owner, number, at(port)));
        let further = [(other[0], 0x4ffe), (other[1], 0x4fff)].map(|((owner, port), number)| (owner, number, at(port)));
        for ((owner, number, peer), list) in wanted.into_iter().chain(further).zip(&mut lists) {
            let binding = channels.binding(owner, number, peer);
            assert_eq!(channels.pair(&binding, NOW), Pair::Free, "another's channel is not in the way");
            let index = channels.bind(NOW, &binding, list, None).expect("room");
            assert_eq!(channels.find_number(owner, number, NO_INDEX, NOW), Some(index));
        }
        for (owner, number, _) in wanted {
            let index = channels.find_number(owner, number, NO_INDEX, NOW).expect("bound");
            assert_eq!(channels.records.get(index).map(|channel| channel.allocation), Some(owner));
        }
    }

    #[test]
    fn keys_differ_by_owner_number_port_and_address() {
        let wide = |bit: u32, port| SocketAddr::new(core::net::Ipv6Addr::from_bits(1 << bit).into(), port);
        let mut keys: std::vec::Vec<_> = (0..128).map(|bit| peer_key(0, wide(bit, 9))).collect();
        keys.extend((0..16).map(|bit| peer_key(0, wide(0, 9 ^ 1 << bit))));
        keys.extend([0, 1, 2].map(|owner| peer_key(owner, peer(1))));
        let mapped = core::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped();
        keys.push(peer_key(0, SocketAddr::new(mapped.into(), 9)));
        for (at, one) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(one), "{at}: {one:x?}");
            assert_ne!(*one, [0; 3], "the empty bucket's");
        }
        assert_ne!(number_key(1, 0x4000), number_key(0, 0x4000));
        assert_eq!(number_key(1, 0x4001) ^ number_key(1, 0x4000), 1);
    }

    #[test]
    fn a_wrong_hint_finds_no_wrong_channel() {
        let (channels, _, places) = bound();
        for (owner, own) in (0u32..).zip(places) {
            for (offset, place) in (0u8..).zip(own) {
                for hint in (0..8).chain([NO_INDEX]) {
                    let number = 0x4000 + u16::from(offset);
                    assert_eq!(channels.find_number(owner, number, hint, NOW), Some(place));
                    assert_eq!(channels.find_peer(owner, peer(offset + 1), hint, NOW), Some(place));
                }
            }
        }
        assert_eq!(channels.find_number(0, 0x4004, places[0][0], NOW), None);
        assert_eq!(channels.find_number(2, 0x4000, places[0][0], NOW), None);
        assert_eq!(channels.find_peer(2, peer(1), places[0][0], NOW), None);
        let other_port = SocketAddr::new(peer(1).ip(), 10);
        assert_eq!(channels.find_peer(0, other_port, places[0][0], NOW), None);
    }

    #[test]
    fn a_channel_ends_at_its_time_and_not_before() {
        let (channels, _, places) = bound();
        let end = NOW.saturating_add(LIFETIME);
        for hint in [places[0][0], NO_INDEX] {
            assert!(channels.find_number(0, 0x4000, hint, Nanos(end.0 - 1)).is_some());
            assert!(channels.find_peer(0, peer(1), hint, Nanos(end.0 - 1)).is_some());
            assert_eq!(channels.find_number(0, 0x4000, hint, end), None);
            assert_eq!(channels.find_peer(0, peer(1), hint, end), None);
        }
    }

    #[test]
    fn a_refreshed_channel_is_not_due_when_the_others_are() {
        let (mut channels, mut lists, places) = bound();
        assert_eq!((channels.len(), channels.room()), (8, 0));
        assert!(channels.next_at().is_some_and(|at| at >= NOW.saturating_add(LIFETIME)));
        let later = NOW.saturating_add(Nanos::from_secs(60));
        let binding = channels.binding(1, 0x4002, peer(3));
        let refreshed = channels.bind(later, &binding, &mut lists[1], Some(places[1][2]));
        assert_eq!(refreshed, Some(places[1][2]));
        let end = NOW.saturating_add(LIFETIME).saturating_add(Nanos::from_secs(2));
        let mut due = std::vec::Vec::new();
        while let Some((index, owner)) = channels.take_due(end) {
            channels.remove(index, &mut lists[owner as usize]);
            due.push(index);
        }
        assert_eq!((due.len(), channels.len(), channels.room()), (7, 1, 7));
        assert!(!due.contains(&places[1][2]));
        assert_eq!((lists[0].len, lists[1].len, lists[1].head), (0, 1, places[1][2]));
        assert_eq!(lists[0].head, NO_INDEX);
    }

    #[test]
    fn lists_hold_together_whichever_channel_goes() {
        for gone in 0..4 {
            let (mut channels, mut lists, places) = bound();
            channels.remove(places[0][gone], &mut lists[0]);
            assert_eq!(lists[0].len, 3);
            let (mut at, mut left) = (lists[0].head, std::vec::Vec::new());
            while let Some(channel) = channels.get(at) {
                left.push(at);
                at = channel.next;
            }
            left.reverse();
            let expected: std::vec::Vec<_> =
                (0..4).filter(|place| *place != gone).map(|place| places[0][place]).collect();
            assert_eq!(left, expected);
            let binding = channels.binding(0, 0x4000 + gone as u16, peer(gone as u8 + 1));
            assert_eq!(channels.pair(&binding, NOW), Pair::Free);
        }
    }

    #[test]
    fn where_a_permission_was_found_is_remembered() {
        let (mut channels, _, places) = bound();
        channels.remember(places[0][1], 77);
        assert_eq!(channels.get(places[0][1]).map(|channel| channel.permission), Some(77));
        assert_eq!(channels.get(places[0][0]).map(|channel| channel.permission), Some(NO_INDEX));
    }
}
