//! Peer policy: the addresses that the relay may reach.
//!
//! Every range outside of the public Internet is denied; each can be allowed by a range of addresses and ports. The most
//! specific range counts: the one with fewer addresses, and of equally many the one with fewer ports. The addresses of
//! this host have their own list of allowances. An IPv6 address that embeds an IPv4 address is checked as both.

mod builtin;
mod cidr;
mod embedded;
mod peer_range;
mod ranges;
mod realms;

pub use cidr::{Cidr, CidrError};
pub use embedded::embedded_ipv4;
pub use peer_range::{PeerRange, PeerRangeError};
pub use realms::RealmPolicies;

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

use crate::flow::canonical;
use ranges::{Block, Precedence, Ranges};

/// A rule of the policy. Its `Display` is the text in logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The range is allowed.
    Allowed(PeerRange),
    /// The operator denies the range.
    Denied(PeerRange),
    /// The range is on the built-in list.
    BuiltIn(PeerRange),
    /// 6to4 and Teredo, which a TURN server must not accept (RFC 8656 section 21.4). No range allows them.
    Tunnel(PeerRange),
    /// An address and port on which this server listens. No range allows it.
    Listener(SocketAddr),
    /// An address of our relays, on a port without an allocation.
    OwnRelay,
    /// An address of this host.
    OwnHost,
    /// Port zero.
    PortZero,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed(range) => write!(f, "allow {range}"),
            Self::Denied(range) => write!(f, "deny {range}"),
            Self::BuiltIn(range) => write!(f, "deny {range} (built-in)"),
            Self::Tunnel(range) => write!(f, "deny {range} (RFC 8656 section 21.4)"),
            Self::Listener(addr) => write!(f, "deny listener {addr}"),
            Self::OwnRelay => f.write_str("deny own relay address outside a live allocation"),
            Self::OwnHost => f.write_str("deny own host"),
            Self::PortZero => f.write_str("deny port 0"),
        }
    }
}

/// Index of a rule in [`PeerPolicy::rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleIndex(pub usize);

/// Decision of the policy about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerDecision {
    /// The peer may be reached.
    Allowed,
    /// The peer may not be reached, because of this rule.
    Denied(RuleIndex),
}

/// Relation of a peer's address to our relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Not an address of our relays.
    Foreign,
    /// The relayed address of a live allocation.
    LiveRelay,
    /// An address of our relays, on a port without an allocation.
    IdleRelay,
}

pub(crate) const OWN_RELAY: RuleIndex = RuleIndex(0);
const PORT_ZERO: RuleIndex = RuleIndex(1);
const OWN_HOST: RuleIndex = RuleIndex(2);

/// Rules that decide which peers the relay may reach.
///
/// Tunnels, 0.0.0.0/8, `::` and own listeners are denied always. Of all ranges that contain an address and a port, the
/// operator's and the built-in ones, the one with the fewest addresses counts, and of these the one with the fewest
/// ports. Of two equally large ones, the operator's counts before the built-in one, and a denial before an allowance.
///
/// A live relayed address of this server is allowed unless the operator denies it. Another address of our relays or of
/// this host is denied unless [`PeerPolicy::open_host`] allows it; [`PeerPolicy::allow`] does not.
#[derive(Clone, Debug)]
pub struct PeerPolicy {
    rules: Vec<Rule>,
    tunnels: Ranges,
    /// What nothing allows.
    closed: Ranges,
    /// The operator's ranges.
    operator: Ranges,
    /// The operator's ranges and the built-in ones.
    all: Ranges,
    /// Addresses of this host.
    host: Ranges,
    /// What the operator allows of this host, and the operator's denied ranges.
    opened: Ranges,
    has_port_rules: bool,
    listeners: Vec<(SocketAddr, RuleIndex)>,
    nat64: Vec<Cidr>,
}

/// Addresses and ports for which one rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first address.
    pub first: IpAddr,
    /// The last address.
    pub last: IpAddr,
    /// The first and the last port.
    pub ports: (u16, u16),
    /// Whether peers may be reached.
    pub decision: PeerDecision,
    /// The rule; `None` if no range contains the addresses and ports.
    pub rule: Option<Rule>,
}

impl Default for PeerPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl PeerPolicy {
    /// Creates a policy with only the built-in deny list.
    #[must_use]
    pub fn new() -> Self {
        let mut policy = Self {
            rules: [Rule::OwnRelay, Rule::PortZero, Rule::OwnHost].to_vec(),
            tunnels: Ranges::default(),
            closed: Ranges::default(),
            operator: Ranges::default(),
            all: Ranges::default(),
            host: Ranges::default(),
            opened: Ranges::default(),
            has_port_rules: false,
            listeners: Vec::new(),
            nat64: Vec::new(),
        };
        let built_in = Precedence::BuiltIn;
        for range in builtin::TUNNELS.map(PeerRange::from) {
            let index = policy.add(Rule::Tunnel(range));
            policy.tunnels.push(range, PeerDecision::Denied(index), built_in, index);
            policy.all.push(range, PeerDecision::Denied(index), built_in, index);
        }
        for range in builtin::DENIED {
            let index = policy.add(Rule::BuiltIn(range.into()));
            policy.all.push(range.into(), PeerDecision::Denied(index), built_in, index);
            if builtin::CLOSED.contains(&range) {
                policy.closed.push(range.into(), PeerDecision::Denied(index), built_in, index);
            }
        }
        for range in builtin::ALLOWED.map(PeerRange::from) {
            let index = policy.add(Rule::Allowed(range));
            policy.all.push(range, PeerDecision::Allowed, built_in, index);
        }
        policy
    }

    fn add(&mut self, rule: Rule) -> RuleIndex {
        self.rules.push(rule);
        RuleIndex(self.rules.len() - 1)
    }

    /// Allows `range`, except what a more specific range denies, and except addresses of this host.
    pub fn allow(&mut self, range: impl Into<PeerRange>) {
        let range = range.into();
        let index = self.add(Rule::Allowed(range));
        for ranges in [&mut self.operator, &mut self.all] {
            ranges.push(range, PeerDecision::Allowed, Precedence::Allowed, index);
        }
        self.has_port_rules |= !range.has_all_ports();
    }

    /// Denies `range`, except what a more specific range allows.
    pub fn deny(&mut self, range: impl Into<PeerRange>) {
        let range = range.into();
        let index = self.add(Rule::Denied(range));
        for ranges in [&mut self.operator, &mut self.all, &mut self.opened] {
            ranges.push(range, PeerDecision::Denied(index), Precedence::Denied, index);
        }
        self.has_port_rules |= !range.has_all_ports();
    }

    /// Denies the addresses of `range` because they are this host's: [`PeerPolicy::allow`] does not allow them.
    pub fn close_host(&mut self, range: impl Into<PeerRange>) {
        self.host.push(range.into(), PeerDecision::Denied(OWN_HOST), Precedence::BuiltIn, OWN_HOST);
    }

    /// Allows what `range` has of the addresses of this host and of our relays, except what a more specific range
    /// denies.
    pub fn open_host(&mut self, range: impl Into<PeerRange>) {
        let range = range.into();
        let index = self.add(Rule::Allowed(range));
        self.opened.push(range, PeerDecision::Allowed, Precedence::Allowed, index);
        self.has_port_rules |= !range.has_all_ports();
    }

    /// Iterates over the effective table for peers that are no addresses of this host, IPv4 first.
    pub fn effective(&self) -> impl Iterator<Item = Stretch> {
        self.all.blocks().map(|block| self.stretch(&block, PeerDecision::Allowed, None))
    }

    /// Iterates over the effective table for the addresses of this host, IPv4 first. It counts before that of the other
    /// peers.
    pub fn effective_host(&self) -> impl Iterator<Item = Stretch> {
        let own = self.host.blocks().filter(|block| block.found.is_some());
        own.flat_map(move |own| {
            let of_family = move |block: &Block| block.first.is_ipv4() == own.first.is_ipv4();
            self.opened.blocks().filter(of_family).filter_map(move |block| {
                let (first, last) = (block.first.max(own.first), block.last.min(own.last));
                let clipped = Block { first, last, ..block };
                let stretch = self.stretch(&clipped, PeerDecision::Denied(OWN_HOST), Some(Rule::OwnHost));
                (first <= last).then_some(stretch)
            })
        })
    }

    fn stretch(&self, block: &Block, default: PeerDecision, default_rule: Option<Rule>) -> Stretch {
        Stretch {
            first: block.first,
            last: block.last,
            ports: block.ports,
            decision: block.found.map_or(default, |found| found.decision),
            rule: block.found.and_then(|found| self.rules.get(found.rule.0)).copied().or(default_rule),
        }
    }

    /// Denies an address and port on which this server listens; an unspecified address means every one of this host.
    /// Nothing allows it again.
    pub fn deny_listener(&mut self, listener: SocketAddr) {
        let listener = canonical(listener);
        let index = self.add(Rule::Listener(listener));
        self.listeners.push((listener, index));
    }

    /// Adds a NAT64 prefix of the network (RFC 6052): the embedded address is checked too.
    pub fn embed_nat64(&mut self, prefix: Cidr) {
        self.nat64.push(prefix);
    }

    /// Returns all rules. A [`RuleIndex`] is an index of this slice.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides about an address with a port.
    #[must_use]
    pub fn decide(&self, peer: SocketAddr, ownership: Ownership) -> PeerDecision {
        match self.decide_port(peer) {
            PeerDecision::Allowed => self.decide_ports(peer.ip(), Some(peer.port()), ownership),
            denied @ PeerDecision::Denied(_) => denied,
        }
    }

    /// Decides about a port of an allowed address: port 0 and the ports of listeners are denied.
    #[must_use]
    pub fn decide_port(&self, peer: SocketAddr) -> PeerDecision {
        if peer.port() == 0 {
            return PeerDecision::Denied(PORT_ZERO);
        }
        let peer = canonical(peer);
        let mut at_port = self.listeners.iter().filter(|(listener, _)| listener.port() == peer.port());
        match at_port.find(|(listener, _)| self.is_at(*listener, peer.ip())) {
            Some((_, rule)) => PeerDecision::Denied(*rule),
            None => PeerDecision::Allowed,
        }
    }

    /// Decides about an address: allowed if one of its ports is. Ignores listeners.
    #[must_use]
    pub fn decide_ip(&self, ip: IpAddr, ownership: Ownership) -> PeerDecision {
        self.decide_ports(ip, None, ownership)
    }

    /// Decides about one port or any port of `ip`, and of the address in it.
    fn decide_ports(&self, ip: IpAddr, port: Option<u16>, ownership: Ownership) -> PeerDecision {
        let outer = self.decide_one(ip, port, ownership);
        match (outer, embedded_ipv4(ip, &self.nat64)) {
            (PeerDecision::Allowed, Some(inner)) => self.decide_one(inner.into(), port, Ownership::Foreign),
            (PeerDecision::Denied(_), Some(_)) | (_, None) => outer,
        }
    }

    /// Returns whether ports of `ip` are decided singly: a listener has one, or a rule has ports.
    #[must_use]
    pub fn decides_by_port(&self, ip: IpAddr) -> bool {
        let differs = |ip| [&self.operator, &self.all, &self.opened].iter().any(|ranges| ranges.differs_by_port(ip));
        let has_rules = || differs(ip) || embedded_ipv4(ip, &self.nat64).is_some_and(|inner| differs(inner.into()));
        !self.listeners.is_empty() && self.listens_on(ip) || self.has_port_rules && has_rules()
    }

    fn listens_on(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.listeners.iter().any(|(listener, _)| self.is_at(*listener, ip))
    }

    /// Returns whether `listener` receives what is sent to its port at the canonical address `ip`.
    fn is_at(&self, listener: SocketAddr, ip: IpAddr) -> bool {
        listener.ip() == ip || listener.ip().is_unspecified() && self.host.find(ip, 0).is_some()
    }

    /// Returns whether a client with this address may have an allocation: not from 6to4 or Teredo (RFC 8656 section
    /// 21.4).
    #[must_use]
    pub fn admits_client(&self, ip: IpAddr) -> bool {
        self.tunnels.find(ip, 0).is_none()
    }

    fn decide_one(&self, ip: IpAddr, port: Option<u16>, ownership: Ownership) -> PeerDecision {
        if let Some(never) = self.tunnels.find(ip, 0).or_else(|| self.closed.find(ip, 0)) {
            return never.decision;
        }
        let (ranges, default) = match ownership {
            Ownership::LiveRelay => (&self.operator, PeerDecision::Allowed),
            Ownership::IdleRelay => (&self.opened, PeerDecision::Denied(OWN_RELAY)),
            Ownership::Foreign if self.host.find(ip, 0).is_some() => (&self.opened, PeerDecision::Denied(OWN_HOST)),
            Ownership::Foreign => (&self.all, PeerDecision::Allowed),
        };
        match port {
            Some(port) => ranges.find(ip, port).map_or(default, |found| found.decision),
            None => ranges.decide_any(ip, default),
        }
    }
}

#[cfg(test)]
mod tests;
