//! A client's five-tuple as an integer key.

use core::net::{IpAddr, SocketAddr};

use tt_model::{FiveTuple, Nanos, Transport};

use crate::table::Table;

/// Where a flow's allocation is, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowEntry {
    pub(crate) expires: Nanos,
    pub(crate) allocation: u32,
}

/// A five-tuple packed into integers: an IPv4 flow into 16 bytes, an IPv6 flow into 40.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKey {
    V4(u128),
    V6([u64; 5]),
}

/// `addr` with an IPv4-mapped IPv6 address as the IPv4 address that it stands for.
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
    #[inline]
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

/// An address as IPv6 bits, an IPv4 address as the mapped one.
#[inline]
pub(crate) fn bits_v6(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The flows that have an allocation.
#[derive(Debug)]
pub(crate) struct Flows {
    v4: Table<u128, FlowEntry>,
    v6: Table<[u64; 5], FlowEntry>,
}

impl Flows {
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self { v4: Table::new(capacity, seed), v6: Table::new(capacity, seed.rotate_left(17)) }
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
