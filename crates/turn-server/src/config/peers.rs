//! The peer rules of a configuration, and how an operator sees them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use tt_turn::policy::{Cidr, PeerDecision, PeerPolicy, PeerRange, Stretch};

use super::TurnConfig;

impl TurnConfig {
    /// Returns the effective table of the peer rules, one line for each stretch of addresses and ports, without listeners
    /// and relays. The lines of this host's current addresses are last and count first.
    ///
    /// # Errors
    /// The kernel does not return the addresses of this host.
    pub fn peer_table(&self) -> io::Result<Vec<String>> {
        let policy = self.peer_policy(&[], &tt_os::addresses::own_addresses()?);
        let line = |who: &str, stretch: Stretch| {
            let decision = if stretch.decision == PeerDecision::Allowed { "allow" } else { "deny" };
            let rule = stretch.rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
            let ports = match stretch.ports {
                (0, u16::MAX) => String::new(),
                (first, last) => format!(" ports {first}-{last}"),
            };
            format!("{who} {}-{}{ports}: {decision}{rule}", stretch.first, stretch.last)
        };
        let peers = policy.effective().map(|stretch| line("peers", stretch));
        Ok(peers.chain(policy.effective_host().map(|stretch| line("own host", stretch))).collect())
    }

    /// Returns a text for each pair of an allowed and a denied range that overlap.
    #[must_use]
    pub fn peer_overlaps(&self) -> Vec<String> {
        let allowed = self.allow_peers.iter().map(|range| ("allow_peer", range.engine()));
        let allowed: Vec<_> =
            allowed.chain(self.allow_own_hosts.iter().map(|range| ("allow_own_host", range.engine()))).collect();
        let denied = self.deny_peers.iter().map(|range| range.engine());
        let pairs = denied.flat_map(|deny| allowed.iter().map(move |(key, allow)| (*key, *allow, deny)));
        let overlaps = pairs.filter(|(_, allow, deny)| allow.overlaps(deny));
        let warning = |(key, allow, deny): (&str, PeerRange, PeerRange)| match allow.size() < deny.size() {
            true => format!("{key} {allow} counts inside of deny_peer {deny}"),
            false => format!("deny_peer {deny} counts inside of {key} {allow}"),
        };
        overlaps.map(warning).collect()
    }

    /// Returns the peer policy. It denies the server's own `listeners`, loopback and the ranges `host` of this host's
    /// addresses, except what `allow_own_hosts` names of this host.
    ///
    /// # Panics
    /// If an [`IpNet`] has a prefix longer than its address, which that type rules out.
    #[must_use]
    pub fn peer_policy(&self, listeners: &[SocketAddr], host: &[(IpAddr, IpAddr)]) -> PeerPolicy {
        let cidr = |net: &IpNet| Cidr::new(net.network(), net.prefix_len()).expect("IpNet has checked the length");
        let mut policy = PeerPolicy::new();
        self.allow_peers.iter().for_each(|range| policy.allow(range.engine()));
        self.deny_peers.iter().for_each(|range| policy.deny(range.engine()));
        self.allow_own_hosts.iter().for_each(|range| policy.open_host(range.engine()));
        self.nat64_prefixes.iter().for_each(|net| policy.embed_nat64(cidr(net)));
        listeners.iter().for_each(|listener| policy.deny_listener(*listener));
        let loopback = (Ipv4Addr::new(127, 0, 0, 0).into(), Ipv4Addr::new(127, 255, 255, 255).into());
        let loopback_v6 = (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        let listening = listeners.iter().map(|listener| (listener.ip(), listener.ip()));
        let own = host.iter().copied().chain([loopback, loopback_v6]).chain(listening);
        // 0.0.0.0 and :: are denied always.
        let own = own.filter(|(first, _)| !first.is_unspecified());
        own.filter_map(|(first, last)| PeerRange::new(first, last).ok()).for_each(|range| policy.close_host(range));
        policy
    }
}
