//! Which peers may be reached: everything but special-purpose networks, which are written here as text.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::super::topology::{PeerRule, PeerRuleKind, listener, relay_ip};

const DENIED: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 \
    192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 \
    198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 \
    ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 \
    fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::/3 4000::/2 8000::/1";

/// Addresses and ports, as a rule names them.
#[derive(Clone, Copy)]
struct Range {
    is_ipv4: bool,
    bits: u128,
    mask: u128,
    ports: (u16, u16),
}

impl Range {
    fn new(ip: IpAddr, prefix_bits: u32, ports: (u16, u16)) -> Self {
        let prefix_bits = prefix_bits + if ip.is_ipv4() { 96 } else { 0 };
        let mask = if prefix_bits == 0 { 0 } else { u128::MAX << (128 - prefix_bits) };
        Self { is_ipv4: ip.is_ipv4(), bits: number(ip) & mask, mask, ports }
    }

    fn of(rule: &PeerRule) -> Self {
        Self::new(rule.ip, rule.prefix_bits, rule.ports)
    }

    fn holds(&self, ip: IpAddr, port: u16) -> bool {
        self.is_ipv4 == ip.is_ipv4()
            && number(ip) & self.mask == self.bits
            && (self.ports.0..=self.ports.1).contains(&port)
    }
}

/// Whether an address is one of our relays'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    Foreign,
    /// With an allocation on the port.
    Live,
    /// Without.
    Idle,
}

pub(super) struct Policy {
    denied: Vec<Range>,
    /// The operator's rules: those of the configuration, then those that came later.
    pub(super) rules: Vec<PeerRule>,
    configured: usize,
    /// Addresses and ports of peers on which the host listens.
    pub(super) listeners: Vec<SocketAddr>,
}

impl Policy {
    pub(super) fn new(rules: &[PeerRule]) -> Self {
        let range = |text: &str| {
            let (ip, bits) = text.split_once('/')?;
            Some(Range::new(ip.parse().ok()?, bits.parse().ok()?, (0, u16::MAX)))
        };
        let denied = DENIED.split_whitespace().filter_map(range).collect();
        Self { denied, rules: rules.to_vec(), configured: rules.len(), listeners: Vec::new() }
    }

    /// The rules that a restart leaves.
    pub(super) fn configured(&self) -> &[PeerRule] {
        &self.rules[..self.configured]
    }

    pub(super) fn is_own(&self, ip: IpAddr) -> bool {
        ip.to_canonical() == relay_ip(true) || ip == relay_ip(false)
    }

    /// Whether nothing allows the port.
    pub(super) fn denies_port(&self, peer: SocketAddr) -> bool {
        peer.port() == 0 || peer == listener(peer.is_ipv4()) || self.listeners.contains(&peer)
    }

    /// Whether a permission may be made: one port of the address is allowed.
    pub(super) fn may_permit(&self, ip: IpAddr) -> bool {
        let ends = self.rules.iter().flat_map(|rule| [rule.ports.0, rule.ports.1, rule.ports.1.saturating_add(1)]);
        // Port 0 is never reached, but belongs to an address.
        let any = |ownership| ends.clone().chain([0]).any(|port| self.allows(ip, port, ownership));
        if self.is_own(ip) { any(Ownership::Live) || any(Ownership::Idle) } else { any(Ownership::Foreign) }
    }

    /// The rule with the fewest addresses counts, of these the one with the fewest ports, then the operator's before
    /// the built-in one, then a denial.
    pub(super) fn allows(&self, ip: IpAddr, port: u16, ownership: Ownership) -> bool {
        let is_host = |rule: &PeerRule| rule.kind == PeerRuleKind::CloseHost && Range::of(rule).holds(ip, port);
        let is_host = ownership == Ownership::Foreign && self.rules.iter().any(is_host);
        let counts = |kind: PeerRuleKind| match kind {
            PeerRuleKind::CloseHost => false,
            PeerRuleKind::Deny => true,
            PeerRuleKind::Allow => ownership != Ownership::Idle && !is_host,
            PeerRuleKind::OpenHost => ownership == Ownership::Idle || is_host,
        };
        let operator = self.rules.iter().filter(|rule| counts(rule.kind));
        let operator = operator.map(|rule| (Range::of(rule), false, rule.kind != PeerRuleKind::Deny));
        let built_in = self.denied.iter().filter(|_| ownership == Ownership::Foreign && !is_host);
        let built_in = built_in.map(|range| (*range, true, false));
        let holding = operator.chain(built_in).filter(|(range, _, _)| range.holds(ip, port));
        let first = holding.min_by_key(|(range, is_built_in, allows)| {
            (!range.mask, u32::from(range.ports.1) - u32::from(range.ports.0), *is_built_in, *allows)
        });
        first.map_or(ownership != Ownership::Idle && !is_host, |(_, _, allows)| allows)
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
