//! Peer policy: the addresses that the relay may reach.
//!
//! Every range outside of the public Internet is denied; each can be allowed by a CIDR. The most specific range counts.
//! An IPv6 address that embeds an IPv4 address is checked as both.

mod builtin;
mod cidr;
mod embedded;
mod ranges;

pub use cidr::{Cidr, CidrError};
pub use embedded::embedded_ipv4;

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

use crate::flow::canonical;
use ranges::{Precedence, Ranges};

/// A rule of the policy. Its `Display` is the text in logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The range is allowed.
    Allowed(Cidr),
    /// The operator denies the range.
    Denied(Cidr),
    /// The range is on the built-in list.
    BuiltIn(Cidr),
    /// 6to4 and Teredo, which a TURN server must not accept (RFC 8656 section 21.4). No CIDR allows them.
    Tunnel(Cidr),
    /// An address and port on which this host listens. No CIDR allows it.
    Listener(SocketAddr),
    /// An address of our relays, on a port without an allocation.
    OwnRelay,
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

/// Rules that decide which peers the relay may reach.
///
/// Tunnels, 0.0.0.0/8, `::` and own listeners are denied always. Of all ranges that contain an address, the operator's
/// and the built-in ones, the most specific counts. Of two equal ones, the operator's counts before the built-in one, and
/// a denial before an allowance. A live relayed address of this server is allowed unless the operator denies it, another
/// address of our relays is denied unless the operator allows it.
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
    listeners: Vec<(SocketAddr, RuleIndex)>,
    nat64: Vec<Cidr>,
}

/// Addresses for which one rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first address.
    pub first: IpAddr,
    /// The last address.
    pub last: IpAddr,
    /// Whether peers may be reached.
    pub decision: PeerDecision,
    /// The rule; `None` if no range contains the addresses.
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
            rules: [Rule::OwnRelay, Rule::PortZero].to_vec(),
            tunnels: Ranges::default(),
            closed: Ranges::default(),
            operator: Ranges::default(),
            all: Ranges::default(),
            listeners: Vec::new(),
            nat64: Vec::new(),
        };
        let built_in = Precedence::BuiltIn;
        for range in builtin::TUNNELS {
            let index = policy.add(Rule::Tunnel(range));
            policy.tunnels.push(range, PeerDecision::Denied(index), built_in, index);
            policy.all.push(range, PeerDecision::Denied(index), built_in, index);
        }
        for range in builtin::DENIED {
            let index = policy.add(Rule::BuiltIn(range));
            policy.all.push(range, PeerDecision::Denied(index), built_in, index);
            if builtin::CLOSED.contains(&range) {
                policy.closed.push(range, PeerDecision::Denied(index), built_in, index);
            }
        }
        for range in builtin::ALLOWED {
            let index = policy.add(Rule::Allowed(range));
            policy.all.push(range, PeerDecision::Allowed, built_in, index);
        }
        policy
    }

    fn add(&mut self, rule: Rule) -> RuleIndex {
        self.rules.push(rule);
        RuleIndex(self.rules.len() - 1)
    }

    /// Allows `range`, except what a more specific range denies.
    pub fn allow(&mut self, range: Cidr) {
        let index = self.add(Rule::Allowed(range));
        for ranges in [&mut self.operator, &mut self.all] {
            ranges.push(range, PeerDecision::Allowed, Precedence::Allowed, index);
        }
    }

    /// Denies `range`, except what a more specific range allows.
    pub fn deny(&mut self, range: Cidr) {
        let index = self.add(Rule::Denied(range));
        for ranges in [&mut self.operator, &mut self.all] {
            ranges.push(range, PeerDecision::Denied(index), Precedence::Denied, index);
        }
    }

    /// Iterates over the effective table for peers that are no addresses of this server, IPv4 first.
    pub fn effective(&self) -> impl Iterator<Item = Stretch> {
        self.all.stretches().map(|(first, last, found)| Stretch {
            first,
            last,
            decision: found.map_or(PeerDecision::Allowed, |found| found.decision),
            rule: found.and_then(|found| self.rules.get(found.rule.0)).copied(),
        })
    }

    /// Denies an address and port on which this host listens. Nothing allows it again.
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
            PeerDecision::Allowed => self.decide_ip(peer.ip(), ownership),
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
        match self.listeners.iter().find(|(listener, _)| *listener == peer) {
            Some((_, rule)) => PeerDecision::Denied(*rule),
            None => PeerDecision::Allowed,
        }
    }

    /// Decides about an address with any port. Ignores listeners.
    #[must_use]
    pub fn decide_ip(&self, ip: IpAddr, ownership: Ownership) -> PeerDecision {
        let outer = self.decide_one(ip, ownership);
        match (outer, embedded_ipv4(ip, &self.nat64)) {
            (PeerDecision::Allowed, Some(inner)) => self.decide_one(inner.into(), Ownership::Foreign),
            (PeerDecision::Denied(_), Some(_)) | (_, None) => outer,
        }
    }

    /// Returns whether a port of `ip` is a listener's.
    #[must_use]
    pub fn listens_on(&self, ip: IpAddr) -> bool {
        self.listeners.iter().any(|(listener, _)| listener.ip() == ip.to_canonical())
    }

    /// Returns whether a client with this address may have an allocation: not from 6to4 or Teredo (RFC 8656 section
    /// 21.4).
    #[must_use]
    pub fn admits_client(&self, ip: IpAddr) -> bool {
        self.tunnels.find(ip).is_none()
    }

    fn decide_one(&self, ip: IpAddr, ownership: Ownership) -> PeerDecision {
        if let Some(never) = self.tunnels.find(ip).or_else(|| self.closed.find(ip)) {
            return never.decision;
        }
        let ranges = match ownership {
            Ownership::LiveRelay | Ownership::IdleRelay => &self.operator,
            Ownership::Foreign => &self.all,
        };
        match (ranges.find(ip), ownership) {
            (Some(found), _) => found.decision,
            (None, Ownership::LiveRelay | Ownership::Foreign) => PeerDecision::Allowed,
            (None, Ownership::IdleRelay) => PeerDecision::Denied(OWN_RELAY),
        }
    }
}

#[cfg(test)]
mod tests;
