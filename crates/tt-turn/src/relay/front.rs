//! What decides about a packet from a stranger, by relay.

use alloc::vec::Vec;
use core::net::IpAddr;

use tt_model::{IpFamily, Nanos};

use super::RelayId;
use crate::permission::PeerFilter;
use crate::slab::NO_INDEX;

/// What decides about a packet from a stranger. It has less than half a cache line; a relay and its allocation have seven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    /// The allocation that the relay serves; [`NO_INDEX`] if none.
    allocation: u32,
    /// That of the relayed address.
    family: IpFamily,
    /// When the relayed address expires.
    expires: Nanos,
    /// The addresses of its permissions and channels.
    peers: PeerFilter,
}

impl Front {
    const CLOSED: Self = Self::new(NO_INDEX, IpFamily::V4, Nanos(0));

    /// Creates the front of a relay without permissions and channels.
    pub(crate) const fn new(allocation: u32, family: IpFamily, expires: Nanos) -> Self {
        Self { allocation, family, expires, peers: PeerFilter::EMPTY }
    }

    /// Returns the allocation, whether or not the relayed address has expired.
    #[inline]
    pub(crate) fn serving(&self) -> Option<u32> {
        (self.allocation != NO_INDEX).then_some(self.allocation)
    }

    /// Returns the allocation if a relayed address of the family is in force.
    #[inline]
    pub(crate) fn live(&self, family: IpFamily, now: Nanos) -> Option<u32> {
        self.serving().filter(|_| self.family == family && self.expires > now)
    }

    /// Returns false if no permission or channel is for the address.
    #[inline]
    pub(crate) fn may_admit(&self, ip: IpAddr) -> bool {
        self.peers.may_have(ip)
    }
}

/// The fronts of one worker's relays.
#[derive(Debug)]
pub(crate) struct Fronts(Vec<Front>);

impl Fronts {
    pub(super) fn new(capacity: u32) -> Self {
        Self(Vec::with_capacity(capacity as usize))
    }

    /// Lets packets to a relay reach its allocation.
    pub(super) fn open(&mut self, relay: RelayId, front: Front) {
        let index = relay.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, Front::CLOSED);
        }
        self.0[index] = front;
    }

    pub(super) fn close(&mut self, relay: RelayId) {
        self.change(relay, |front| *front = Front::CLOSED);
    }

    /// Sets when the relayed address of a relay expires.
    pub(crate) fn set_expiry(&mut self, relay: RelayId, expires: Nanos) {
        self.change(relay, |front| front.expires = expires);
    }

    /// Adds an address to those of a relay's permissions and channels.
    pub(crate) fn add_peer(&mut self, relay: RelayId, ip: IpAddr) {
        self.change(relay, |front| front.peers.add(ip));
    }

    /// Forgets the addresses of a relay whose last permission and channel have ended: it forgets no single one.
    pub(crate) fn forget_peers(&mut self, relay: RelayId) {
        self.change(relay, |front| front.peers = PeerFilter::EMPTY);
    }

    #[inline]
    pub(crate) fn get(&self, relay: RelayId) -> Option<&Front> {
        self.0.get(relay.0 as usize)
    }

    /// Returns the allocation of a relay if it may have a permission or channel for an address.
    #[inline]
    pub(crate) fn admitting(&self, relay: RelayId, ip: IpAddr) -> Option<u32> {
        self.get(relay).filter(|front| front.may_admit(ip))?.serving()
    }

    /// Prefetches what [`Fronts::get`] reads.
    #[inline]
    pub(crate) fn prefetch(&self, relay: RelayId) {
        if let Some(front) = self.get(relay) {
            tt_simd::prefetch(front);
        }
    }

    fn change(&mut self, relay: RelayId, change: impl FnOnce(&mut Front)) {
        if let Some(front) = self.0.get_mut(relay.0 as usize) {
            change(front);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_admits_the_addresses_of_its_peers_until_they_are_forgotten() {
        let (mut fronts, relay, peer) = (Fronts::new(2), RelayId(1), IpAddr::from([203, 0, 113, 7]));
        let admits = |fronts: &Fronts| fronts.get(relay).is_some_and(|front| front.may_admit(peer));
        for end in [Fronts::forget_peers, Fronts::close] {
            fronts.open(relay, Front::new(4, IpFamily::V4, Nanos(10)));
            assert!(!admits(&fronts));
            fronts.add_peer(relay, peer);
            assert!(admits(&fronts));
            end(&mut fronts, relay);
            assert!(!admits(&fronts));
        }
        assert_eq!(fronts.get(relay).and_then(Front::serving), None);
    }

    #[test]
    fn a_front_serves_its_family_until_its_expiry() {
        let (mut fronts, relay) = (Fronts::new(1), RelayId(0));
        fronts.open(relay, Front::new(4, IpFamily::V6, Nanos(10)));
        let live = |fronts: &Fronts, family, at| fronts.get(relay).and_then(|front| front.live(family, Nanos(at)));
        assert_eq!([9, 10].map(|at| live(&fronts, IpFamily::V6, at)), [Some(4), None]);
        fronts.set_expiry(relay, Nanos(20));
        assert_eq!([19, 20].map(|at| live(&fronts, IpFamily::V6, at)), [Some(4), None]);
        assert_eq!(live(&fronts, IpFamily::V4, 9), None);
    }
}
