//! Which peers the relay may reach.
//!
//! Every range that is not the open Internet is denied; each can be opened by a CIDR. An IPv6 address that stands for
//! an IPv4 address is judged as both.

mod builtin;
mod cidr;
mod embedded;
mod ranges;

pub use cidr::{Cidr, CidrFault};
pub use embedded::embedded_ipv4;

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

use crate::flow::canonical;
use ranges::Ranges;

/// A rule of the policy. Its `Display` is what a log line or a counter's label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The operator opens the range.
    Allowed(Cidr),
    /// The operator closes the range.
    Denied(Cidr),
    /// The range is on the built-in list.
    BuiltIn(Cidr),
    /// 6to4 and Teredo, which a TURN server must not accept (RFC 8656 section 21.4); no CIDR opens them.
    Tunnel(Cidr),
    /// An address and port that this host listens on; no CIDR opens it.
    Listener(SocketAddr),
    /// Our relay's address, on a port that relays for nobody.
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

/// The number of a rule in [`PeerPolicy::rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleIndex(pub usize);

/// What the policy says of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The peer may be reached.
    Allowed,
    /// The peer may not be reached, for this rule.
    Denied(RuleIndex),
}

/// What of our own a peer's address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Nothing of ours.
    Foreign,
    /// The relayed address of a live allocation.
    LiveRelay,
    /// One of our relays' addresses, on a port that relays for nobody.
    IdleRelay,
}

pub(crate) const OWN_RELAY: RuleIndex = RuleIndex(0);
const PORT_ZERO: RuleIndex = RuleIndex(1);

/// The rules that decide which peers the relay may reach: the built-in deny list, opened and closed by CIDRs.
///
/// In this order: what nothing opens (tunnels, own listeners); what the operator opens; what the operator closes; live
/// relayed addresses of our own, which are always reachable; the rest of our relays' addresses; the built-in list.
#[derive(Clone, Debug)]
pub struct PeerPolicy {
    rules: Vec<Rule>,
    tunnels: Ranges,
    allowed: Ranges,
    denied: Ranges,
    built_in: Ranges,
    listeners: Vec<(SocketAddr, RuleIndex)>,
    nat64: Vec<Cidr>,
}

impl Default for PeerPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl PeerPolicy {
    /// The built-in deny list alone.
    #[must_use]
    pub fn new() -> Self {
        let mut policy = Self {
            rules: [Rule::OwnRelay, Rule::PortZero].to_vec(),
            tunnels: Ranges::default(),
            allowed: Ranges::default(),
            denied: Ranges::default(),
            built_in: Ranges::default(),
            listeners: Vec::new(),
            nat64: Vec::new(),
        };
        for range in builtin::TUNNELS {
            let index = policy.add(Rule::Tunnel(range));
            policy.tunnels.push(range, index);
        }
        for range in builtin::DENIED {
            let index = policy.add(Rule::BuiltIn(range));
            policy.built_in.push(range, index);
        }
        policy
    }

    fn add(&mut self, rule: Rule) -> RuleIndex {
        self.rules.push(rule);
        RuleIndex(self.rules.len() - 1)
    }

    /// Opens `range`, whatever range closes it.
    pub fn allow(&mut self, range: Cidr) {
        let index = self.add(Rule::Allowed(range));
        self.allowed.push(range, index);
    }

    /// Closes `range` unless it is opened too.
    pub fn deny(&mut self, range: Cidr) {
        let index = self.add(Rule::Denied(range));
        self.denied.push(range, index);
    }

    /// Closes an address and port that this host listens on, for good.
    pub fn deny_listener(&mut self, listener: SocketAddr) {
        let listener = canonical(listener);
        let index = self.add(Rule::Listener(listener));
        self.listeners.push((listener, index));
    }

    /// Takes `prefix` as one of the network's NAT64 prefixes (RFC 6052): what it embeds is judged too.
    pub fn embed_nat64(&mut self, prefix: Cidr) {
        self.nat64.push(prefix);
    }

    /// All rules; a [`RuleIndex`] is a place in this list.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Judges an address with a port.
    #[must_use]
    pub fn judge(&self, peer: SocketAddr, ownership: Ownership) -> Verdict {
        match self.judge_port(peer) {
            Verdict::Allowed => self.judge_ip(peer.ip(), ownership),
            denied @ Verdict::Denied(_) => denied,
        }
    }

    /// Judges a port of an address that is allowed: it must not be zero, nor a listener's.
    #[must_use]
    pub fn judge_port(&self, peer: SocketAddr) -> Verdict {
        if peer.port() == 0 {
            return Verdict::Denied(PORT_ZERO);
        }
        let peer = canonical(peer);
        match self.listeners.iter().find(|(listener, _)| *listener == peer) {
            Some((_, rule)) => Verdict::Denied(*rule),
            None => Verdict::Allowed,
        }
    }

    /// Judges an address whatever the port: listeners are not looked at.
    #[must_use]
    pub fn judge_ip(&self, ip: IpAddr, ownership: Ownership) -> Verdict {
        let outer = self.judge_one(ip, ownership);
        match (outer, embedded_ipv4(ip, &self.nat64)) {
            (Verdict::Allowed, Some(inner)) => self.judge_one(inner.into(), Ownership::Foreign),
            (Verdict::Denied(_), Some(_)) | (_, None) => outer,
        }
    }

    /// Whether a listener's port makes a difference for `ip`.
    #[must_use]
    pub fn listens_on(&self, ip: IpAddr) -> bool {
        self.listeners.iter().any(|(listener, _)| listener.ip() == ip.to_canonical())
    }

    /// Whether a client of this address may have an allocation: not from 6to4 or Teredo (RFC 8656 section 21.4).
    #[must_use]
    pub fn admits_client(&self, ip: IpAddr) -> bool {
        self.tunnels.find(ip).is_none()
    }

    fn judge_one(&self, ip: IpAddr, ownership: Ownership) -> Verdict {
        if let Some(tunnel) = self.tunnels.find(ip) {
            return Verdict::Denied(tunnel);
        }
        if self.allowed.find(ip).is_some() {
            return Verdict::Allowed;
        }
        if let Some(denied) = self.denied.find(ip) {
            return Verdict::Denied(denied);
        }
        match ownership {
            Ownership::LiveRelay => return Verdict::Allowed,
            Ownership::IdleRelay => return Verdict::Denied(OWN_RELAY),
            Ownership::Foreign => {}
        }
        self.built_in.find(ip).map_or(Verdict::Allowed, Verdict::Denied)
    }
}

#[cfg(test)]
mod tests;
