//! Permissions: which peer addresses may use an allocation (RFC 8656 section 9).

use core::net::IpAddr;

use tt_model::Nanos;

use crate::flow::bits_v6;
use crate::slab::{List, NO_INDEX, Slab};
use crate::table::{Index, Tag};
use crate::wheel::Wheel;

/// Lifetime of a permission (RFC 8656 section 9).
pub(crate) const LIFETIME: Nanos = Nanos::from_secs(300);

/// Whether the policy allows every port of a peer's address.
///
/// A port of one of our own relay addresses may belong to an allocation; then the payload does not leave the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    All,
    /// All, and the address is that of one of our relays.
    Own,
    AllocateRequest,
}

/// One permission: an address with any port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permission {
    pub(crate) allocation: u32,
    pub(crate) ip: IpAddr,
    pub(crate) ports: Ports,
    pub(crate) expires: Nanos,
    next: u32,
    previous: u32,
}

/// Where the permission of an address is: a record, live or expired, which a refresh uses again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    tag: Tag,
    record: Option<u32>,
}

impl Place {
    pub(crate) const fn is_recorded(self) -> bool {
        self.record.is_some()
    }
}

fn key(allocation: u32, ip: IpAddr) -> [u64; 3] {
    let bits = bits_v6(ip);
    // A mapped address is IPv6 and has another relayed address than the embedded IPv4 address.
    [(u64::from(allocation) + 1) << 1 | u64::from(ip.is_ipv4()), (bits >> 64) as u64, bits as u64]
}

/// Addresses of peers: a bit for each that was added, which it may share with others.
///
/// A packet from a stranger is discarded by what its allocation has in the cache, without a look at the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerFilter(u64);

impl PeerFilter {
    pub(crate) const EMPTY: Self = Self(0);

    #[inline]
    fn bit(ip: IpAddr) -> u64 {
        let bits = bits_v6(ip);
        1 << (((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
    }

    #[inline]
    pub(crate) fn add(&mut self, ip: IpAddr) {
        self.0 |= Self::bit(ip);
    }

    /// `false`: the address was not added.
    #[inline]
    pub(crate) fn may_have(self, ip: IpAddr) -> bool {
        self.0 & Self::bit(ip) != 0
    }
}

/// The permissions of one worker's allocations.
#[derive(Debug)]
pub(crate) struct Permissions {
    index: Index,
    records: Slab<Permission>,
    wheel: Wheel,
}

impl Permissions {
    pub(crate) fn new(capacity: u32, seed: u64) -> Self {
        Self {
            index: Index::new(capacity as usize, seed),
            records: Slab::new(capacity),
            wheel: Wheel::new(capacity as usize),
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Permission> {
        self.records.get(index)
    }

    pub(crate) fn set_ports(&mut self, index: u32, ports: Ports) {
        if let Some(permission) = self.records.get_mut(index) {
            permission.ports = ports;
        }
    }

    /// Returns the number of slots that were used: all indices are smaller.
    pub(crate) fn end(&self) -> u32 {
        self.records.end()
    }

    pub(crate) fn room(&self) -> usize {
        self.records.room()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns where the permission of `ip` is, or is to be.
    #[inline]
    pub(crate) fn place(&self, allocation: u32, ip: IpAddr) -> Place {
        let tag = self.index.tag(&key(allocation, ip));
        Place { tag, record: self.record((allocation, ip), tag) }
    }

    #[inline]
    fn record(&self, (allocation, ip): (u32, IpAddr), tag: Tag) -> Option<u32> {
        let is = |permission: &Permission| permission.allocation == allocation && permission.ip == ip;
        self.index.find(tag, |index| self.records.get(index).is_some_and(is))
    }

    /// Prefetches what [`Permissions::place`] and [`Permissions::install`] read.
    #[inline]
    pub(crate) fn prefetch(&self, (allocation, list): (u32, &List), ip: IpAddr) {
        self.prefetch_peer(allocation, ip);
        self.records.prefetch(list.head);
        self.records.prefetch_next();
    }

    /// Prefetches what [`Permissions::find`] reads.
    #[inline]
    pub(crate) fn prefetch_peer(&self, allocation: u32, ip: IpAddr) {
        self.index.prefetch(self.index.tag(&key(allocation, ip)));
    }

    /// Returns the live permission of `ip`.
    #[inline]
    pub(crate) fn find(&self, allocation: u32, ip: IpAddr, now: Nanos) -> Option<(u32, &Permission)> {
        let index = self.place(allocation, ip).record?;
        self.records.get(index).filter(|permission| permission.expires > now).map(|permission| (index, permission))
    }

    /// Returns the permission at `index` if it is live and that of `ip`: a channel remembers the index.
    #[inline]
    pub(crate) fn recall(&self, index: u32, allocation: u32, ip: IpAddr, now: Nanos) -> Option<&Permission> {
        self.records.get(index).filter(|found| found.allocation == allocation && found.ip == ip && found.expires > now)
    }

    /// Installs or refreshes the permission of `ip` at its place; returns `None` if the table is full.
    pub(crate) fn install(
        &mut self,
        now: Nanos,
        (allocation, list): (u32, &mut List),
        (ip, place): (IpAddr, Place),
        ports: Ports,
    ) -> Option<u32> {
        let expires = now.saturating_add(LIFETIME);
        let index = match place.record {
            Some(index) => {
                let permission = self.records.get_mut(index)?;
                permission.expires = expires;
                permission.ports = ports;
                index
            }
            None => {
                let head = list.head;
                let record = Permission { allocation, ip, ports, expires, next: head, previous: NO_INDEX };
                let index = self.records.insert(record)?;
                let stored = self.index.insert(place.tag, index);
                debug_assert!(stored, "the index has the records' capacity");
                if let Some(permission) = self.records.get_mut(head) {
                    permission.previous = index;
                }
                *list = List { head: index, len: list.len + 1 };
                index
            }
        };
        self.wheel.set(index, now, expires);
        Some(index)
    }

    /// Ends the permission at `index`.
    pub(crate) fn remove(&mut self, index: u32, list: &mut List) {
        let Some(permission) = self.records.remove(index) else { return };
        let was_indexed = self.index.remove(self.index.tag(&key(permission.allocation, permission.ip)), index);
        debug_assert!(was_indexed, "every record is in the index");
        self.wheel.clear(index);
        if let Some(next) = self.records.get_mut(permission.next) {
            next.previous = permission.previous;
        }
        match self.records.get_mut(permission.previous) {
            Some(previous) => previous.next = permission.next,
            None => list.head = permission.next,
        }
        list.len -= 1;
    }

    /// Returns one permission that has expired at `now`, with its allocation. It stays in the table until it is
    /// removed.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<(u32, u32)> {
        while let Some(index) = self.wheel.take_due(now) {
            match self.records.get(index) {
                Some(permission) if permission.expires > now => {
                    let expires = permission.expires;
                    self.wheel.set(index, now, expires);
                }
                Some(permission) => return Some((index, permission.allocation)),
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

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// Permissions of two allocations for addresses 1 to 4, and their places.
    fn installed() -> (Permissions, [List; 2], [[u32; 4]; 2]) {
        let (mut permissions, mut lists, mut places) = (Permissions::new(8, 7), [List::EMPTY; 2], [[0; 4]; 2]);
        for (owner, (list, places)) in (0u32..).zip(lists.iter_mut().zip(&mut places)) {
            for (last, place) in (1u8..).zip(places) {
                let new = permissions.place(owner, ip(last));
                *place = permissions.install(NOW, (owner, list), (ip(last), new), Ports::All).expect("room");
            }
        }
        (permissions, lists, places)
    }

    /// The index knows a part of a hash only: the record says whose it is.
    #[test]
    fn permissions_with_one_tag_are_distinguished() {
        let mut permissions = Permissions::new(8, 7);
        let mut known = std::collections::HashMap::new();
        let all = (0..256_u32).flat_map(|owner| (0..=u16::MAX).map(move |low| (owner, low.to_be_bytes())));
        let same_tag = |(owner, [high, low]): (u32, [u8; 2])| {
            let peer = (owner, IpAddr::from([192, 0, high, low]));
            let tag = std::format!("{:?}", permissions.index.tag(&key(peer.0, peer.1)));
            known.insert(tag, peer).map(|other| [other, peer])
        };
        let pair: [(u32, IpAddr); 2] = all.into_iter().find_map(same_tag).expect("two with one tag");
        let mut lists = [List::EMPTY; 2];
        for ((owner, ip), list) in pair.into_iter().zip(&mut lists) {
            let place = permissions.place(owner, ip);
            assert!(!place.is_recorded() && permissions.find(owner, ip, NOW).is_none(), "another's permission");
            permissions.install(NOW, (owner, list), (ip, place), Ports::All).expect("room");
        }
        for (owner, ip) in pair {
            let (_, found) = permissions.find(owner, ip, NOW).expect("installed");
            assert_eq!((found.allocation, found.ip), (owner, ip));
        }
    }

    #[test]
    fn a_place_that_is_remembered_serves_its_owner_and_address_alone_and_not_too_long() {
        let (permissions, _, places) = installed();
        let place = places[0][1];
        let last = Nanos(NOW.saturating_add(LIFETIME).0 - 1);
        assert!(permissions.recall(place, 0, ip(2), NOW).is_some());
        assert!(permissions.recall(place, 0, ip(2), last).is_some());
        assert!(permissions.recall(place, 0, ip(2), NOW.saturating_add(LIFETIME)).is_none());
        assert!(permissions.recall(place, 1, ip(2), NOW).is_none());
        assert!(permissions.recall(place, 0, ip(3), NOW).is_none());
        assert!(permissions.recall(NO_INDEX, 0, ip(2), NOW).is_none());
        assert!(permissions.find(0, ip(2), last).is_some());
        assert!(permissions.find(0, ip(2), NOW.saturating_add(LIFETIME)).is_none());
    }

    #[test]
    fn keys_differ_by_owner_and_family() {
        let mapped = IpAddr::from([0, 0, 0, 0, 0, 0xFFFF, 0xC000, 0x0201]);
        let wide = |bit: u32| IpAddr::V6(core::net::Ipv6Addr::from_bits(1 << bit));
        let mut keys = std::vec![key(0, ip(1)), key(1, ip(1)), key(2, ip(1)), key(0, mapped), key(1, mapped)];
        keys.extend((0..128).map(|bit| key(0, wide(bit))));
        for (at, one) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(one), "{one:x?}");
            assert_ne!(*one, [0; 3], "the empty bucket's");
        }
    }

    #[test]
    fn a_refreshed_permission_is_not_due_when_the_others_are() {
        let (mut permissions, mut lists, places) = installed();
        let later = NOW.saturating_add(Nanos::from_secs(60));
        let known = permissions.place(1, ip(3));
        let refreshed = permissions.install(later, (1, &mut lists[1]), (ip(3), known), Ports::All);
        assert_eq!(refreshed, Some(places[1][2]));
        let end = NOW.saturating_add(LIFETIME).saturating_add(Nanos::from_secs(2));
        let mut due = 0;
        while let Some((index, owner)) = permissions.take_due(end) {
            permissions.remove(index, &mut lists[owner as usize]);
            due += 1;
        }
        assert_eq!((due, permissions.len(), permissions.room()), (7, 1, 7));
        assert_eq!((lists[0].len, lists[0].head, lists[1].len, lists[1].head), (0, NO_INDEX, 1, places[1][2]));
        assert!(permissions.next_at().is_some_and(|at| at > end));
    }

    #[test]
    fn lists_hold_together_whichever_permission_goes() {
        for gone in 0..4 {
            let (mut permissions, mut lists, places) = installed();
            permissions.remove(places[0][gone], &mut lists[0]);
            let (mut at, mut left) = (lists[0].head, std::vec::Vec::new());
            while let Some(permission) = permissions.records.get(at) {
                left.push(at);
                at = permission.next;
            }
            left.reverse();
            let expected: std::vec::Vec<_> = (0..4).filter(|one| *one != gone).map(|one| places[0][one]).collect();
            assert_eq!((left, lists[0].len), (expected, 3));
        }
    }

    #[test]
    fn a_filter_has_what_was_added_and_little_else() {
        let strangers = || (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| IpAddr::from([198, 51, a, b])));
        let mut peers = PeerFilter::EMPTY;
        assert!(!strangers().any(|ip| peers.may_have(ip)));
        for number in 1..=4 {
            peers.add(ip(number));
        }
        assert!((1..=4).all(|number| peers.may_have(ip(number))));
        // Four bits of 64.
        let mistaken = strangers().filter(|ip| peers.may_have(*ip)).count();
        assert!(mistaken <= 65_536 / 12, "{mistaken}");
        let wide = |bit: u32| IpAddr::V6(core::net::Ipv6Addr::from_bits(1 << bit));
        let bits: std::collections::BTreeSet<u64> = (0..128).map(|bit| PeerFilter::bit(wide(bit))).collect();
        assert!(bits.len() >= 32, "every part of an address counts: {}", bits.len());
    }
}
