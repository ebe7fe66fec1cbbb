//! Addresses and ports of relay sockets, which a reload changes.

use std::net::IpAddr;

use tt_model::IpFamily;
use tt_turn::relay::OWN_IPS_MAX;
use turn_config::{PortRange, RelayIp};

use super::IDLE_HIGH;

/// Addresses, ports and number of the relay sockets of all workers.
#[derive(Clone, Debug)]
pub(crate) struct RelayPlan {
    /// The addresses. A reload keeps their places, also of those that new allocations do not get any more.
    pub(crate) ips: Vec<RelayIp>,
    /// Whether new allocations get the address of the same place.
    pub(crate) used: Vec<bool>,
    /// The ports.
    pub(crate) ports: PortRange,
    /// Maximum number of sockets, over all addresses.
    pub(crate) sockets_max: u32,
    /// The addresses and external addresses since the start. Engines know at most [`OWN_IPS_MAX`] and forget none.
    known: Vec<IpAddr>,
}

impl RelayPlan {
    /// Returns the plan of the start.
    pub(crate) fn new(ips: &[RelayIp], ports: PortRange, sockets_max: u32) -> Self {
        let none = Self { ips: Vec::new(), used: Vec::new(), ports, sockets_max, known: Vec::new() };
        none.succeeded_by(ips, ports, sockets_max)
    }

    /// Returns whether engines have room for all addresses since the start.
    pub(crate) fn fits_engines(&self) -> bool {
        self.known.len() <= OWN_IPS_MAX
    }

    /// Returns the plan with these addresses and ports; the former addresses keep their places.
    pub(crate) fn succeeded_by(&self, ips: &[RelayIp], ports: PortRange, sockets_max: u32) -> Self {
        let named = |known: &RelayIp| ips.iter().find(|next| next.bound == known.bound);
        let is_new = |next: &&RelayIp| self.ips.iter().all(|known| known.bound != next.bound);
        let kept = self.ips.iter().map(|known| (*named(known).unwrap_or(known), named(known).is_some()));
        let mut known = self.known.clone();
        for ip in ips.iter().flat_map(|next| [next.bound, next.external]) {
            if !known.contains(&ip) {
                known.push(ip);
            }
        }
        let (ips, used) = kept.chain(ips.iter().filter(is_new).map(|new| (*new, true))).unzip();
        Self { ips, used, ports, sockets_max, known }
    }

    /// Returns the places and addresses that new allocations get.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (usize, RelayIp)> {
        self.ips.iter().copied().enumerate().zip(&self.used).filter(|(_, used)| **used).map(|(place, _)| place)
    }

    /// Returns whether new allocations get the port of this address.
    pub(super) fn has(&self, ip: usize, port: u16) -> bool {
        self.used.get(ip) == Some(&true) && (self.ports.low..=self.ports.high).contains(&port)
    }

    /// Returns the sockets of one address that are bound ahead.
    pub(super) fn share(&self) -> usize {
        (self.sockets_max as usize / self.in_use().count().max(1)).clamp(1, IDLE_HIGH)
    }

    /// Returns the addresses of a family that new allocations get, in turn from a random one.
    pub(super) fn ips_of(&self, family: IpFamily, start: u32) -> impl Iterator<Item = usize> {
        let first = start as usize % self.ips.len();
        let all = (first..self.ips.len()).chain(0..first);
        all.filter(move |ip| self.used[*ip] && IpFamily::of(self.ips[*ip].bound) == family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An external address that changes again and again ends in an error, not in allocations that fail.
    #[test]
    fn engines_have_room_for_sixty_four_addresses_since_the_start() {
        let bound: IpAddr = "127.0.0.1".parse().unwrap();
        let ports = PortRange { low: 30_000, high: 60_000 };
        let changed = |plan: RelayPlan, last: u8| {
            plan.succeeded_by(&[RelayIp { bound, external: [203, 0, 113, last].into() }], ports, 2)
        };
        let start = RelayPlan::new(&[RelayIp { bound, external: bound }], ports, 2);
        let most = (1..64).fold(start, changed);
        assert!(most.fits_engines() && changed(most.clone(), 63).fits_engines());
        assert!(!changed(most, 64).fits_engines());
    }
}
