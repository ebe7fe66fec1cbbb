//! Which peers may be reached: everything but special-purpose networks, which are written here as text.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::super::topology::relay_ip;

const DENIED: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 \
    192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 \
    198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 \
    ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 \
    fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::/3 4000::/2 8000::/1";

pub(super) struct Policy {
    /// Address and mask, IPv4 as IPv6's mapped bits.
    denied: Vec<(bool, u128, u128)>,
    /// Peers that the operator denies in addition.
    pub(super) also: Vec<IpAddr>,
    /// Addresses and ports of peers on which the host listens.
    pub(super) listeners: Vec<SocketAddr>,
}

impl Policy {
    pub(super) fn new() -> Self {
        let range = |text: &str| {
            let (ip, bits) = text.split_once('/')?;
            let ip: IpAddr = ip.parse().ok()?;
            let bits: u32 = bits.parse::<u32>().ok()? + if ip.is_ipv4() { 96 } else { 0 };
            let mask = u128::MAX << (128 - bits);
            Some((ip.is_ipv4(), number(ip) & mask, mask))
        };
        let denied = DENIED.split_whitespace().filter_map(range).collect();
        Self { denied, also: Vec::new(), listeners: Vec::new() }
    }

    pub(super) fn is_own(&self, ip: IpAddr) -> bool {
        ip.to_canonical() == relay_ip(true) || ip == relay_ip(false)
    }

    /// Whether the port of an address that is not denied is.
    pub(super) fn denies_port(&self, peer: SocketAddr) -> bool {
        peer.port() == 0 || self.listeners.contains(&peer)
    }

    pub(super) fn denies(&self, ip: IpAddr) -> bool {
        let bits = number(ip);
        self.also.contains(&ip)
            || self.denied.iter().any(|(is_ipv4, range, mask)| *is_ipv4 == ip.is_ipv4() && bits & mask == *range)
    }
}

/// RFC 8656 section 21.4: Teredo and 6to4.
pub(super) fn is_tunnel(ip: IpAddr) -> bool {
    let IpAddr::V6(ip) = ip else { return false };
    let segments = ip.segments();
    segments[0] == 0x2002 || segments[..2] == [0x2001, 0]
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => Ipv6Addr::to_bits(ip.to_ipv6_mapped()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}
