//! Listeners, relay addresses and certificates.

use std::net::{IpAddr, SocketAddr};

use super::options::TLS;
use super::{Reader, Setting};
use crate::ciphers::Ciphers;
use crate::import::Outcome;

const PORT: u16 = 3_478;
const TLS_PORT: u16 = 5_349;
/// The first port that is no system port: below it, truetick asks whether it is meant.
const LOW_PORTS_END: u64 = 1_024;

impl Reader<'_> {
    /// Maps the listeners, and returns whether they take TLS.
    pub(super) fn listeners(&mut self) -> bool {
        let port = self.port("listening-port", PORT);
        let tls_port = self.port("tls-listening-port", TLS_PORT);
        let (no_tcp, no_tls) = (self.is_on("no-tcp"), self.is_on("no-tls"));
        let has_tls = !no_tls && self.has("cert") && self.has("pkey");
        let ips = self.listening_ips();
        let on = |port: u16| ips.iter().map(|ip| SocketAddr::new(*ip, port).to_string()).collect::<Vec<_>>();
        let aux = self.aux_servers();
        self.document.turn_list("listen", [on(port), aux.clone()].concat());
        match (no_tcp, has_tls) {
            // coturn distinguishes TLS and plain TCP on both ports, as truetick does on ports with TCP.
            (false, true) => {
                let tls = if port == tls_port { Vec::new() } else { on(tls_port) };
                self.document.turn_list("listen_tcp", [on(port), tls, aux].concat());
            }
            // The other port is often that of a web server.
            (true, true) => {
                self.document.turn("no_tcp", true);
                self.document.turn_list("listen_tls", [on(tls_port), aux].concat());
            }
            (true, false) => self.document.turn("no_tcp", true),
            (false, false) => {}
        }
        self.rows_of("listening-port", Outcome::Same, "listen", "");
        let (outcome, keys, reason) = match (has_tls, no_tcp) {
            (true, false) => (Outcome::Same, "listen_tcp", "TLS and plain TCP on both ports"),
            (true, true) => (Outcome::Same, "listen_tls", "TLS only"),
            (false, _) => (Outcome::Ignored, "", "no certificate, so no TLS, as in coturn"),
        };
        self.rows_of("tls-listening-port", outcome, keys, reason);
        self.rows_of("no-tcp", Outcome::Same, "no_tcp", "");
        self.rows_of("no-tls", Outcome::Same, "", "without a certificate there is no TLS");
        if self.is_on("no-udp") {
            let reason = "UDP stays open on the ports of `listen`: close it in the firewall";
            self.rows_of("no-udp", Outcome::Differs, "", reason);
        } else {
            self.rows_of("no-udp", Outcome::Same, "", "off, as by default");
        }
        if has_tls {
            self.certificate();
        }
        has_tls
    }

    fn certificate(&mut self) {
        for (name, key) in [("cert", "cert"), ("pkey", "key")] {
            let path = self.last(name).map(|setting| self.host.path(setting.text())).unwrap_or_default();
            self.document.turn(key, path);
            let reason = "read by the user of truetick, and again on SIGHUP; others must not read the private key";
            self.rows_of(name, Outcome::Same, key, reason);
        }
        let reason = "private keys with a passphrase are not read: remove it (openssl pkey) and chmod 600 the file";
        self.rows_of("pkey-pwd", Outcome::Refused, "", reason);
        self.rows_of("no-tlsv1_2", Outcome::Same, "tls_version_min", "");
        if self.is_on("no-tlsv1_2") {
            self.document.turn("tls_version_min", "1.3");
            self.ciphers_of_1_3();
        } else {
            self.ciphers();
        }
    }

    /// Sets the row of a list without TLS 1.2. coturn takes suites of TLS 1.3 from it, too.
    fn ciphers_of_1_3(&mut self) {
        let Some(list) = self.last("cipher-list").map(Setting::text) else { return };
        let (outcome, reason) = match Ciphers::names_tls_1_3(list) {
            true => (Outcome::Differs, "rustls offers all of its suites of TLS 1.3, whatever the list has"),
            false => (Outcome::Ignored, "it has suites of TLS 1.2 only, which no-tlsv1_2 turns off, in coturn, too"),
        };
        self.rows_of("cipher-list", outcome, "", reason);
    }

    /// Maps the suites of TLS 1.2; those of TLS 1.3 are no matter of this list, as in coturn.
    fn ciphers(&mut self) {
        let Some(ciphers) = self.last("cipher-list").map(|setting| Ciphers::read(setting.text())) else { return };
        let absent = ciphers.absent.join(" ");
        let (outcome, reason) = match (ciphers.offered.is_empty(), ciphers.absent.is_empty()) {
            (true, true) => {
                (Outcome::Differs, "it has no suite of TLS 1.2; rustls offers its six of them, too".to_owned())
            }
            (true, false) => {
                (Outcome::Differs, format!("rustls offers none of these, and its six suites instead: {absent}"))
            }
            (false, false) => (Outcome::Better, format!("rustls does not offer: {absent}")),
            (false, true) if ciphers.has_keyword => (Outcome::Better, TLS.to_owned()),
            (false, true) => (Outcome::Same, String::new()),
        };
        let mut keys = "";
        if !ciphers.offered.is_empty() && !ciphers.are_all() {
            keys = "tls_ciphers";
            self.document.turn_list(keys, ciphers.offered.iter().map(|name| (*name).to_owned()).collect());
        }
        self.rows_of("cipher-list", outcome, keys, &reason);
    }

    /// Sets the rows of certificates that no listener uses.
    pub(super) fn unused_tls(&mut self) {
        let is_off = self.is_on("no-tls");
        let reason = if is_off { "no-tls is set" } else { "TLS needs both cert and pkey" };
        for name in ["cert", "pkey", "pkey-pwd", "cipher-list", "no-tlsv1_2"] {
            self.rows_of(name, Outcome::Ignored, "", reason);
        }
    }

    /// Returns the port of an option; 0 or none is the default.
    fn port(&self, name: &str, default: u16) -> u16 {
        let port = self.number(name).and_then(|port| u16::try_from(port).ok());
        port.filter(|port| *port != 0).unwrap_or(default)
    }

    /// Returns the addresses of the listeners; all addresses without any. The family that has the only public address
    /// is first, because those of truetick are in the order of the listeners.
    fn listening_ips(&mut self) -> Vec<IpAddr> {
        let ips = self.ips("listening-ip", "listen");
        if !ips.is_empty() {
            return ips;
        }
        let any: [IpAddr; 2] = [[0; 4].into(), [0; 16].into()];
        let bare = self.settings.iter().filter(|setting| setting.name == "external-ip").map(Setting::word);
        let families: Vec<_> = bare.filter_map(|ip| ip.parse::<IpAddr>().ok()).map(|ip| ip.is_ipv6()).collect();
        match (self.host.has_ipv6, families.contains(&true) && !families.contains(&false)) {
            (false, _) => vec![any[0]],
            (true, false) => any.to_vec(),
            (true, true) => any.into_iter().rev().collect(),
        }
    }

    /// Reads the addresses of an option that may repeat.
    fn ips(&mut self, name: &str, key: &str) -> Vec<IpAddr> {
        let mut ips = Vec::new();
        for index in self.indices(name) {
            match self.settings[index].word().parse() {
                Ok(ip) => {
                    if !ips.contains(&ip) {
                        ips.push(ip);
                    }
                    self.row(index, Outcome::Same, key, "");
                }
                Err(_) => self.row(index, Outcome::Refused, "", "not an IP address: name the address instead"),
            }
        }
        ips
    }

    fn aux_servers(&mut self) -> Vec<String> {
        let mut addrs = Vec::new();
        for index in self.indices("aux-server") {
            match self.settings[index].word().parse::<SocketAddr>() {
                Ok(addr) => {
                    addrs.push(addr.to_string());
                    self.row(index, Outcome::Same, "listen", "");
                }
                Err(_) => self.row(index, Outcome::Refused, "", "not ADDR:PORT"),
            }
        }
        addrs
    }

    /// Maps relay addresses, public addresses and ports.
    pub(super) fn relays(&mut self) {
        let publics = self.public_ips();
        let listening = self.settings.iter().filter(|setting| setting.name == "listening-ip");
        let listening: Vec<IpAddr> = listening.filter_map(|setting| setting.word().parse().ok()).collect();
        let mut relays = self.ips("relay-ip", "relay_ip");
        if relays.is_empty() && !publics.mapped.is_empty() {
            let private = publics.mapped.iter().map(|(_, private)| *private);
            for ip in private.chain(listening.iter().copied().filter(|ip| !ip.is_unspecified())) {
                if !relays.contains(&ip) {
                    relays.push(ip);
                }
            }
        }
        self.document.turn_list("relay_ip", relays.iter().map(ToString::to_string).collect());
        // Without relay addresses truetick takes those of the listeners, in their order.
        let bound = if relays.is_empty() { &listening } else { &relays };
        let externals = if bound.is_empty() || bound.iter().any(IpAddr::is_unspecified) {
            publics.bare.clone()
        } else {
            bound.iter().map(|ip| publics.of(*ip)).collect()
        };
        if !publics.bare.is_empty() || !publics.mapped.is_empty() {
            self.document.turn_list("external_ip", externals.iter().map(ToString::to_string).collect());
        }
        self.relay_ports();
        self.address_family();
    }

    fn public_ips(&mut self) -> PublicIps {
        let mut publics = PublicIps::default();
        for index in self.indices("external-ip") {
            let word = self.settings[index].word();
            let (public, private) =
                word.split_once('/').map_or((word, None), |(public, private)| (public, Some(private)));
            let parsed = (public.parse::<IpAddr>().ok(), private.map(|private| private.parse::<IpAddr>().ok()));
            match parsed {
                (Some(public), Some(Some(private))) if public.is_ipv4() == private.is_ipv4() => {
                    publics.mapped.push((public, private));
                    self.row(index, Outcome::Same, "relay_ip, external_ip", "");
                }
                (Some(public), None) => {
                    let is_first = publics.bare.is_empty();
                    if publics.bare.iter().any(|other| other.is_ipv4() == public.is_ipv4()) {
                        self.row(index, Outcome::Ignored, "", "the first one of its family counts");
                        continue;
                    }
                    publics.bare.push(public);
                    let (outcome, reason) = match is_first {
                        true => (Outcome::Same, ""),
                        false => {
                            (Outcome::Better, "coturn takes one address without /PRIVATE, truetick one of each family")
                        }
                    };
                    self.row(index, outcome, "external_ip", reason);
                }
                (_, _) => self.row(index, Outcome::Refused, "", "not PUBLIC or PUBLIC/PRIVATE of one family"),
            }
        }
        publics
    }

    fn relay_ports(&mut self) {
        let (low, high) = (self.number("min-port"), self.number("max-port"));
        let (first, last) = (low.unwrap_or(49_152), high.unwrap_or(65_535));
        let is_range = 0 < first && first <= last && last <= u64::from(u16::MAX);
        let (outcome, reason) = if is_range {
            (Outcome::Same, "")
        } else {
            (Outcome::Refused, "no range of ports: from 1 to 65535, min-port not above max-port")
        };
        if is_range && (low.is_some() || high.is_some()) {
            self.document.turn("relay_ports", format!("{first}-{last}"));
            if first < LOW_PORTS_END {
                self.document.turn("relay_low_ports", true);
            }
        }
        self.rows_of("min-port", outcome, "relay_ports", reason);
        self.rows_of("max-port", outcome, "relay_ports", reason);
    }

    fn address_family(&mut self) {
        let has_ipv6 = self.host.has_ipv6 && {
            let listening: Vec<_> = self.indices("listening-ip");
            listening.is_empty() || listening.iter().any(|index| self.settings[*index].word().contains(':'))
        };
        let reason = "an allocation without REQUESTED-ADDRESS-FAMILY is IPv4 (RFC 8656 section 7.2); browsers send it";
        let family = self.last("allocation-default-address-family").map(|setting| setting.word().to_owned());
        let differs = |keeps: bool| match keeps && has_ipv6 {
            true => (Outcome::Differs, reason),
            false => (Outcome::Same, "every allocation is IPv4 by default"),
        };
        let (outcome, reason) = differs(self.is_on("keep-address-family"));
        self.rows_of("keep-address-family", outcome, "", reason);
        let (outcome, reason) = match family.as_deref() {
            Some("ipv4") | None => (Outcome::Same, "every allocation is IPv4 by default"),
            Some("keep" | "ipv6") => differs(true),
            Some(_) => (Outcome::Ignored, "neither ipv4, ipv6 nor keep; coturn ignores it"),
        };
        self.rows_of("allocation-default-address-family", outcome, "", reason);
    }
}

/// Public addresses of relays.
#[derive(Debug, Default)]
struct PublicIps {
    /// Those that count for every relay of their family.
    bare: Vec<IpAddr>,
    /// Those of single relays, with the address of the relay.
    mapped: Vec<(IpAddr, IpAddr)>,
}

impl PublicIps {
    /// Returns the public address of a relay; its own without one.
    fn of(&self, relay: IpAddr) -> IpAddr {
        let mapped = self.mapped.iter().find(|(_, private)| *private == relay).map(|(public, _)| *public);
        let bare = || self.bare.iter().copied().find(|ip| ip.is_ipv4() == relay.is_ipv4());
        mapped.or_else(bare).unwrap_or(relay)
    }
}
