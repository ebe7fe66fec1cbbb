//! Peers: coturn's allowed addresses count before denied ones, truetick's smaller ranges before larger ones.

use super::Reader;
use crate::addresses::{Span, allowances, built_in, denials, texts};
use crate::import::Outcome;

/// Ranges that coturn denies whatever the file allows, and truetick too.
const CLOSED: [&str; 4] = ["0.0.0.0/8", "127.0.0.0/8", "::/128", "::1/128"];
/// Ranges that coturn denies by default, and truetick too; truetick opens them on request.
const DENIED_BY_BOTH: [&str; 4] = ["169.254.0.0/16", "fc00::/7", "fe80::/10", "fec0::/10"];
const MULTICAST: [&str; 2] = ["224.0.0.0/4", "ff00::/8"];
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// Lists of peers as truetick writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRules {
    /// `allow_peer`.
    pub allow: Vec<String>,
    /// `allow_own_host`.
    pub allow_own_host: Vec<String>,
    /// `deny_peer`.
    pub deny: Vec<String>,
    /// Ranges that could not be read.
    pub invalid: usize,
}

/// Returns what coturn's lists of allowed and denied peers mean, such as those of its databases: the lists that count for
/// every realm together with `own` of one realm, whose ranges that could not be read are counted.
#[must_use]
pub fn peer_rules(every: [&[String]; 2], own: [&[String]; 2]) -> PeerRules {
    let read = |texts: &[String]| texts.iter().map(|text| Span::read(text.trim())).collect::<Vec<_>>();
    let own = own.map(read);
    let invalid = own.iter().flatten().filter(|span| span.is_none()).count();
    let mut all = every.map(read);
    all.iter_mut().zip(own).for_each(|(all, own)| all.extend(own));
    let [allowed, denied] = all.map(|spans| spans.into_iter().flatten().collect::<Vec<_>>());
    PeerRules { invalid, ..rules(&allowed, &denied, &spans(&CLOSED), &[]) }
}

/// Returns the rules of these ranges. `host` are further addresses of the host that are open, and `closed` stay denied.
fn rules(allowed: &[Span], denied: &[Span], closed: &[Span], host: &[Span]) -> PeerRules {
    let opened = allowed.iter().flat_map(|span| span.without(closed)).chain(host.iter().copied());
    let counted: Vec<Span> = denied.iter().flat_map(|span| span.without(allowed)).collect();
    PeerRules {
        allow: texts(&allowances(allowed, closed)),
        allow_own_host: texts(&opened.collect::<Vec<_>>()),
        deny: texts(&denials(&counted)),
        invalid: 0,
    }
}

impl Reader<'_> {
    /// Maps the rules of peers.
    pub(super) fn peers(&mut self) {
        let loopback = self.is_on("allow-loopback-peers");
        let no_multicast = self.is_on("no-multicast-peers");
        self.rows_of("no-multicast-peers", Outcome::Same, "", "multicast peers are denied");
        let reason = if loopback { "addresses of this host" } else { "off, as by default" };
        self.rows_of("allow-loopback-peers", Outcome::Same, "allow_own_host", reason);
        let mut allowed = self.spans("allowed-peer-ip", "allow_peer, allow_own_host");
        // coturn allows the private part of an external address.
        for setting in self.settings.iter().filter(|setting| setting.name == "external-ip") {
            let private = setting.word().split_once('/').and_then(|(_, private)| Span::read(private));
            allowed.extend(private.filter(|private| !allowed.contains(private)));
        }
        let denied = self.spans("denied-peer-ip", "deny_peer");
        let multicast = if no_multicast { spans(&MULTICAST) } else { Vec::new() };
        let closed = [spans(&CLOSED), multicast].concat();
        // A denied range counts for loopback in coturn, too, but allow-loopback-peers is about the others.
        let host = if loopback { spans(&LOOPBACK) } else { Vec::new() };
        let rules = rules(&allowed, &denied, &closed, &host);
        self.document.turn_list("allow_peer", rules.allow);
        self.document.turn_list("allow_own_host", rules.allow_own_host);
        self.document.turn_list("deny_peer", rules.deny);
        let counted: Vec<Span> = denied.iter().flat_map(|span| span.without(&allowed)).collect();
        self.closed_by_default(&[closed, counted, allowed].concat());
    }

    /// Adds the ranges that only truetick denies: all but `settled`.
    fn closed_by_default(&mut self, settled: &[Span]) {
        let both = spans(&DENIED_BY_BOTH);
        let settled = [settled, &both].concat();
        let mut left: Vec<Span> = Vec::new();
        for span in built_in().into_iter().flat_map(|range| range.without(&settled)) {
            // Ranges of the list overlap.
            let new = span.without(&left);
            left.extend(new);
        }
        let names = texts(&left);
        if !names.is_empty() {
            let reason = format!(
                "coturn relays to these special and private addresses, truetick does not: add those that peers such as an SFU \
                 have to allow_peer: {}",
                names.join(" ")
            );
            self.default_row("allowed-peer-ip", Outcome::Differs, "allow_peer", reason);
        }
        let global = spans(&["0.0.0.0/0", "2000::/3"]);
        if global.iter().any(|span| !span.without(&settled).is_empty()) {
            let reason = "coturn relays to addresses of its host but loopback, truetick to relayed addresses only: a service of this \
                 host that is a peer needs allow_own_host"
                .to_owned();
            self.default_row("allowed-peer-ip", Outcome::Differs, "allow_own_host", reason);
        }
    }

    fn spans(&mut self, name: &str, keys: &str) -> Vec<Span> {
        let mut read = Vec::new();
        for index in self.indices(name) {
            match Span::read(self.settings[index].text().split('#').next().unwrap_or("").trim()) {
                Some(span) => {
                    read.push(span);
                    self.row(index, Outcome::Same, keys, "");
                }
                None => self.invalid(index, "not an address or a range ADDR-ADDR"),
            }
        }
        read
    }
}

fn spans(texts: &[&str]) -> Vec<Span> {
    texts.iter().filter_map(|text| Span::read(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_a_database_are_those_of_a_file() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (allowed, denied) =
            (list(&["10.0.0.5", "127.0.0.1", "x"]), list(&["10.0.0.4-10.0.0.6", "::1-", "11.0.0.1"]));
        let rules = peer_rules([&[], &[]], [&allowed, &denied]);
        let expected = PeerRules {
            allow: list(&["10.0.0.5"]),
            allow_own_host: list(&["10.0.0.5"]),
            deny: list(&["10.0.0.4", "10.0.0.6", "11.0.0.1"]),
            invalid: 2,
        };
        let single = |text: &String| text.trim_end_matches("/32").split('-').next().unwrap_or_default().to_owned();
        let shorten = |texts: &[String]| texts.iter().map(single).collect::<Vec<_>>();
        assert_eq!(shorten(&rules.deny), expected.deny);
        assert_eq!((shorten(&rules.allow), shorten(&rules.allow_own_host)), (expected.allow, expected.allow_own_host));
        assert_eq!(rules.invalid, expected.invalid);
        // An allowed range of a realm opens what every realm is denied, and the other way round; of the invalid ones,
        // those of the realm are counted.
        for (every, own) in [([&allowed[..], &[]], [&[][..], &denied]), ([&[], &denied], [&allowed, &[]])] {
            let both = peer_rules(every, own);
            assert_eq!((both.allow, both.allow_own_host), (rules.allow.clone(), rules.allow_own_host.clone()));
            assert_eq!((both.deny, both.invalid), (rules.deny.clone(), 1));
        }
    }
}
