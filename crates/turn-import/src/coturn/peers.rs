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
        let opened = allowances(&allowed, &closed);
        let mut host: Vec<Span> = allowed.iter().flat_map(|span| span.without(&closed)).collect();
        if loopback {
            host.extend(spans(&LOOPBACK));
        }
        let counted: Vec<Span> = denied.iter().flat_map(|span| span.without(&allowed)).collect();
        // A denied range counts for loopback in coturn, too, but allow-loopback-peers is about the others.
        self.document.turn_list("allow_peer", texts(&opened));
        self.document.turn_list("allow_own_host", texts(&host));
        self.document.turn_list("deny_peer", texts(&denials(&counted)));
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
