//! The peer rules of a configuration, and how an operator sees them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use tt_turn::config::{LapsedPermissions, RealmId};
use tt_turn::policy::{Cidr, PeerDecision, PeerPolicy, PeerRange, RealmPolicies, Stretch};

use super::TurnConfig;
use crate::credentials::ExternalPeers;
use crate::section::TurnSection;

/// The policy of the default realm, and those of further realms, which all workers share.
pub type PeerPolicies = (PeerPolicy, Arc<RealmPolicies>);

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

    /// Takes what a section says about peers and their permissions.
    pub(super) fn read_peers(&mut self, section: &TurnSection) {
        if section.strict_permissions {
            self.lapsed_permissions = LapsedPermissions::ChannelStops;
        }
        self.allow_peers.clone_from(&section.allow_peer);
        self.deny_peers.clone_from(&section.deny_peer);
        self.allow_own_hosts.clone_from(&section.allow_own_host);
        self.nat64_prefixes.clone_from(&section.nat64_prefix);
    }

    /// Returns the peer policy of the default realm, and those of realms that have other rules from outside. Realms with
    /// the same rules share one.
    #[must_use]
    pub fn peer_policies(&self, listeners: &[SocketAddr], host: &[(IpAddr, IpAddr)]) -> PeerPolicies {
        let base = self.peer_policy(listeners, host);
        let with = |peers: &ExternalPeers| {
            let mut policy = base.clone();
            peers.add_to(&mut policy);
            policy
        };
        let mut others: Vec<(&ExternalPeers, Vec<RealmId>)> = Vec::new();
        for (index, realm) in self.realms.iter().enumerate() {
            let (peers, realm) = (&*realm.external_peers, RealmId::further(index));
            match others.iter_mut().find(|(known, _)| *known == peers) {
                _ if *peers == *self.external_peers => {}
                Some((_, realms)) => realms.push(realm),
                None => others.push((peers, vec![realm])),
            }
        }
        let mut further = RealmPolicies::default();
        others.iter().for_each(|(peers, realms)| further.set(realms, with(peers)));
        (with(&self.external_peers), Arc::new(further))
    }

    /// Returns the peer policy without rules from outside. It denies the server's own `listeners`, loopback and the ranges
    /// `host` of this host's addresses, except what `allow_own_hosts` names of this host.
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

#[cfg(test)]
mod tests {
    use tt_turn::policy::Ownership;

    use super::*;
    use crate::config::Realm;

    /// A set of addresses is the model: a peer is denied if the configuration or its realm denies it.
    #[test]
    fn realms_have_the_rules_of_the_configuration_and_their_own_and_share_equal_ones() {
        let denied = |peers: &[&str]| {
            let texts: Vec<String> = peers.iter().map(|peer| (*peer).to_owned()).collect();
            Arc::new(ExternalPeers::read([&[], &[], &texts]))
        };
        let lists: [&[&str]; 6] =
            [&["1.0.0.1"], &["1.0.0.2"], &[], &["1.0.0.1"], &["1.0.0.3", "1.0.0.2"], &["1.0.0.2"]];
        let mut config =
            TurnConfig { external_peers: denied(lists[0]), ..TurnConfig::on("127.0.0.1:0".parse().unwrap()) };
        config.deny_peers.push("1.0.0.9".parse().unwrap());
        config.realms =
            lists[1..].iter().map(|list| Realm { external_peers: denied(list), ..Realm::default() }).collect();
        let (default, further) = config.peer_policies(&[], &[]);
        let of = |realm: usize| realm.checked_sub(1).and_then(|index| further.of(RealmId::further(index)));
        for (realm, list) in lists.iter().enumerate() {
            for peer in ["1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.9"] {
                let found = of(realm).unwrap_or(&default).decide_ip(peer.parse().unwrap(), Ownership::Foreign);
                let is_denied = peer == "1.0.0.9" || list.contains(&peer);
                assert_eq!(found != PeerDecision::Allowed, is_denied, "{peer} for realm {realm}");
            }
        }
        let is_same = |one: usize, other: usize| std::ptr::eq(of(one).unwrap(), of(other).unwrap());
        assert!(of(3).is_none() && is_same(1, 5) && !is_same(1, 2) && !is_same(1, 4));
    }
}
