//! Peers: eturnal's allowed addresses count before denied ones.

use super::{Node, Reader};
use crate::addresses::{Span, allowances, built_in, denials, texts};
use crate::import::Outcome;

/// Ranges that eturnal never relays to.
const CLOSED: [&str; 4] = ["0.0.0.0/8", "::/128", "2001::/32", "2002::/16"];
/// `recommended`.
const RECOMMENDED: [&str; 20] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::1/128",
    "64:ff9b::/96",
    "100::/64",
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
];
const RECOMMENDED_WORD: &str = "recommended";

impl Reader<'_> {
    pub(super) fn peer_row(&mut self, name: &str, line: usize, node: &Node) {
        let is_valid =
            |node: &Node| node.text().is_some_and(|text| text == RECOMMENDED_WORD || Span::read(text).is_some());
        let is_about_clients = name == "blacklist" || name == "whitelist";
        let keys = if name.starts_with("white") { "allow_peer, allow_own_host" } else { "deny_peer" };
        let (outcome, reason) = match (node.values().iter().all(is_valid), is_about_clients) {
            (false, _) => (Outcome::Refused, "not an address or a CIDR"),
            (true, true) => (Outcome::Differs, "it counts for peers, not for clients: deny those in the firewall"),
            (true, false) => (Outcome::Same, ""),
        };
        self.row(name, (line, node), outcome, keys, reason);
    }

    /// Maps the lists of peers. Without `blacklist_peers` it is the recommended one.
    pub(super) fn peers(&mut self) {
        let denied = match self.get("blacklist_peers") {
            None => spans(&RECOMMENDED),
            Some(_) => self.listed("blacklist_peers"),
        };
        let denied = [denied, self.listed("blacklist")].concat();
        let allowed = [self.listed("whitelist_peers"), self.listed("whitelist")].concat();
        let closed = spans(&CLOSED);
        let host: Vec<Span> = allowed.iter().flat_map(|span| span.without(&closed)).collect();
        self.document.turn_list("allow_peer", texts(&allowances(&allowed, &closed)));
        self.document.turn_list("allow_own_host", texts(&host));
        // What truetick denies by default needs no rule.
        let denied_anyway = built_in();
        let counted = denied.iter().filter(|span| !denied_anyway.contains(span));
        let counted: Vec<Span> = counted.flat_map(|span| span.without(&allowed)).collect();
        self.document.turn_list("deny_peer", texts(&denials(&counted)));
        let settled = [closed, denied, allowed].concat();
        let mut left: Vec<Span> = Vec::new();
        for span in denied_anyway.into_iter().flat_map(|range| range.without(&settled)) {
            let new = span.without(&left);
            left.extend(new);
        }
        if !left.is_empty() {
            let reason = format!(
                "eturnal relays to these special addresses, truetick does not: add those that peers have to allow_peer: {}",
                texts(&left).join(" ")
            );
            self.default_row("whitelist_peers", Outcome::Differs, "allow_peer", &reason);
        }
        let reason = "eturnal relays to addresses of its host but loopback, truetick to relayed addresses only: a service of this \
                      host that is a peer needs allow_own_host";
        self.default_row("whitelist_peers", Outcome::Differs, "allow_own_host", reason);
    }

    fn listed(&self, name: &str) -> Vec<Span> {
        let words = self.get(name).map(Node::values).unwrap_or_default().iter().filter_map(Node::text);
        let listed = |word: &str| match word {
            RECOMMENDED_WORD => spans(&RECOMMENDED),
            _ => Span::read(word).into_iter().collect(),
        };
        words.flat_map(listed).collect()
    }
}

fn spans(texts: &[&str]) -> Vec<Span> {
    texts.iter().filter_map(|text| Span::read(text)).collect()
}
