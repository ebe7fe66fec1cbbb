//! A client's five-tuple as an integer key.

use core::net::{IpAddr, SocketAddr};

use tt_model::{FiveTuple, Transport};

use crate::table::{Hash, Table};

/// Expiry, nanoseconds, and index of a flow's allocation. Tables of integers are memory that is not touched before it is
/// used.
pub(crate) type FlowEntry = (u64, u32);

/// A five-tuple packed into integers: an IPv4 flow into 16 bytes, an IPv6 flow into 40.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKey {
    V4(u128),
    V6([u64; 5]),
}

/// Returns `addr` with an IPv4-mapped IPv6 address converted to IPv4.
#[inline]
pub(crate) fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(_) => addr,
        SocketAddr::V6(v6) => SocketAddr::new(v6.ip().to_canonical(), v6.port()),
    }
}

const fn transport_bits(transport: Transport) -> u8 {
    match transport {
        Transport::Udp => 1,
        Transport::Tcp => 2,
        Transport::Tls => 3,
    }
}

impl FlowKey {
    #[inline(always)]
    pub(crate) fn of(flow: &FiveTuple) -> Self {
        let transport = u128::from(transport_bits(flow.transport));
        match (canonical(flow.client), canonical(flow.server)) {
            (SocketAddr::V4(client), SocketAddr::V4(server)) => Self::V4(
                u128::from(client.ip().to_bits()) << 96
                    | u128::from(server.ip().to_bits()) << 64
                    | u128::from(client.port()) << 32
                    | u128::from(server.port()) << 16
                    | transport,
            ),
            (client, server) => {
                let (c, s) = (bits_v6(client.ip()), bits_v6(server.ip()));
                let ports = u64::from(client.port()) << 32 | u64::from(server.port()) << 16 | transport as u64;
                Self::V6([(c >> 64) as u64, c as u64, (s >> 64) as u64, s as u64, ports])
            }
        }
    }
}

/// Returns an address as IPv6 bits; IPv4 as the mapped address.
#[inline]
pub(crate) fn bits_v6(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// Flows with an allocation.
#[derive(Debug)]
pub(crate) struct Flows {
    v4: Table<u128, FlowEntry>,
    v6: Table<[u64; 5], FlowEntry>,
}

impl Flows {
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self { v4: Table::new(capacity, seed), v6: Table::new(capacity, seed.rotate_left(17)) }
    }

    /// Returns the hash of `key`, and prefetches its entry.
    #[inline]
    pub(crate) fn prefetch(&self, key: &FlowKey) -> Hash {
        match key {
            FlowKey::V4(key) => self.v4.prefetch(key),
            FlowKey::V6(key) => self.v6.prefetch(key),
        }
    }

    /// The same as [`Flows::get`] for a key with this hash.
    #[inline]
    pub(crate) fn get_hashed(&self, key: &FlowKey, hash: Hash) -> Option<&FlowEntry> {
        match key {
            FlowKey::V4(key) => self.v4.get_hashed(key, hash),
            FlowKey::V6(key) => self.v6.get_hashed(key, hash),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: &FlowKey) -> Option<&FlowEntry> {
        match key {
            FlowKey::V4(key) => self.v4.get(key),
            FlowKey::V6(key) => self.v6.get(key),
        }
    }

    #[must_use]
    pub(crate) fn insert(&mut self, key: FlowKey, entry: FlowEntry) -> bool {
        match key {
            FlowKey::V4(key) => self.v4.insert(key, entry),
            FlowKey::V6(key) => self.v6.insert(key, entry),
        }
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        match key {
            FlowKey::V4(key) => self.v4.remove(key),
            FlowKey::V6(key) => self.v6.remove(key),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::vec::Vec;

    use super::*;

    /// `flow` with each bit of each of its parts changed, one at a time.
    fn neighbours(flow: FiveTuple) -> Vec<FiveTuple> {
        let flipped = |ip: IpAddr, bit: u32| match ip {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() ^ 1 << (bit % 32))),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() ^ 1 << (bit % 128))),
        };
        let bits = if flow.client.is_ipv4() { 32 } else { 128 };
        let mut neighbours = std::vec![
            FiveTuple { transport: Transport::Tcp, ..flow },
            FiveTuple { transport: Transport::Tls, ..flow },
        ];
        for bit in 0..bits {
            let (client, server) = (flow.client, flow.server);
            let client = SocketAddr::new(flipped(client.ip(), bit), client.port());
            let server = SocketAddr::new(flipped(server.ip(), bit), server.port());
            neighbours.extend([FiveTuple { client, ..flow }, FiveTuple { server, ..flow }]);
        }
        for bit in 0..16 {
            let (mut client, mut server) = (flow.client, flow.server);
            client.set_port(client.port() ^ 1 << bit);
            server.set_port(server.port() ^ 1 << bit);
            neighbours.extend([FiveTuple { client, ..flow }, FiveTuple { server, ..flow }]);
        }
        neighbours
    }

    #[test]
    fn flows_that_differ_in_a_bit_have_different_keys() {
        for (client, server) in [
            ("203.0.113.200:49999", "198.51.100.254:3478"),
            ("[2001:db8:ffff:1234:fedc::9]:49999", "[2a00:1234:5678:9abc:def0:1357:2468:ace1]:3478"),
        ] {
            let (client, server) = (client.parse().expect("an address"), server.parse().expect("an address"));
            let flow = FiveTuple { client, server, transport: Transport::Udp };
            let mut keys = std::vec![FlowKey::of(&flow)];
            for neighbour in neighbours(flow) {
                let key = FlowKey::of(&neighbour);
                assert!(!keys.contains(&key), "{neighbour:?}");
                keys.push(key);
            }
        }
    }

    #[test]
    fn an_ipv4_mapped_client_is_the_ipv4_client() {
        let flow = |client: &str, server: &str| FiveTuple {
            client: client.parse().expect("an address"),
            server: server.parse().expect("an address"),
            transport: Transport::Udp,
        };
        let mapped = flow("[::ffff:192.0.2.1]:7", "[::ffff:192.0.2.2]:8");
        assert_eq!(FlowKey::of(&mapped), FlowKey::of(&flow("192.0.2.1:7", "192.0.2.2:8")));
    }
}
