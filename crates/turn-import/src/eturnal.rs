//! `eturnal.yml` of eturnal.
//!
//! The facts are those of eturnal's documentation (docs/coturn-import.md names the sources).

mod peers;
mod yaml;

use std::net::{IpAddr, SocketAddr};

use zeroize::Zeroizing;

use crate::coturn::MASK;
use crate::document::Document;
use crate::import::{Host, Import, Outcome, REALM, Row, is_realm, is_software};
use yaml::Node;

/// Keys that no other one changes.
const FIXED: [(&str, Outcome, &str); 13] = [
    ("tls_dh_file", Outcome::Better, TLS),
    ("tls_options", Outcome::Better, TLS),
    ("tls_ciphers", Outcome::Better, TLS),
    ("run_dir", Outcome::Ignored, "truetick writes no run-time files"),
    ("log_dir", Outcome::Ignored, LOG),
    ("log_level", Outcome::Ignored, LOG),
    ("log_rotate_size", Outcome::Ignored, LOG),
    ("log_rotate_count", Outcome::Ignored, LOG),
    ("mod_log_stun", Outcome::Ignored, LOG),
    ("mod_stats_influx", Outcome::Differs, "no statistics to InfluxDB: scrape /metrics of [http]"),
    ("mod_example", Outcome::Ignored, "an example without effect"),
    ("blacklist_clients", Outcome::Differs, CLIENTS),
    ("whitelist_clients", Outcome::Differs, CLIENTS),
];
const TLS: &str = "rustls chooses the cipher suites and curves: TLS 1.2 and 1.3, forward secrecy only";
const LOG: &str = "truetick logs to standard error, which journald keeps; see --log-level and --log-format";
const CLIENTS: &str = "no list of client addresses: deny them in the firewall";
const PORT: u16 = 3_478;
const TLS_PORT: u16 = 5_349;
const RELAY_PORTS: (u16, u16) = (49_152, 65_535);
const PROMETHEUS_PORT: u16 = 8_081;
const PERMISSIONS: u32 = 10;

/// Returns the configuration of truetick that `text` means.
///
/// # Errors
/// The text is not YAML that can be read, or has no section `eturnal`; the error names the line.
pub fn import(text: &str, host: &Host<'_>) -> Result<Import, String> {
    let root = yaml::read(text)?;
    let section = root.entries().iter().find(|(name, ..)| name == "eturnal");
    let (_, line, section) = section.ok_or("there is no section `eturnal`")?;
    if !matches!(section, Node::Map(_)) {
        return Err(format!("line {line}: the section `eturnal` is no map"));
    }
    let mut reader = Reader { host, section, import: Import::default(), document: Document::default() };
    for (name, line, node) in root.entries() {
        if name != "eturnal" {
            reader.row(name, (*line, node), Outcome::Ignored, "", "options of the Erlang virtual machine");
        }
    }
    for (name, line, node) in section.entries() {
        reader.key(name, *line, node);
    }
    reader.defaults();
    reader.import.document = reader.document;
    Ok(reader.import)
}

struct Reader<'a> {
    host: &'a Host<'a>,
    section: &'a Node,
    import: Import,
    document: Document,
}

impl Reader<'_> {
    fn get(&self, name: &str) -> Option<&Node> {
        self.section.entries().iter().find(|(key, ..)| key == name).map(|(.., node)| node)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Node::text)
    }

    fn row(&mut self, option: &str, (line, node): (usize, &Node), outcome: Outcome, keys: &str, reason: &str) {
        // A misspelt option may have a credential.
        let is_secret = outcome == Outcome::Unknown || option == "secret" || option.starts_with("credentials");
        let value = match node {
            Node::Scalar(_) | Node::List(_) if is_secret => MASK.to_owned(),
            Node::Scalar(text) => text.clone(),
            Node::List(values) => values.iter().filter_map(Node::text).collect::<Vec<_>>().join(" "),
            Node::Map(_) => String::new(),
        };
        self.import.rows.push(Row {
            place: format!("line {line}"),
            option: option.to_owned(),
            value,
            outcome,
            keys: keys.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn default_row(&mut self, option: &str, outcome: Outcome, keys: &str, reason: &str) {
        let (option, keys, reason) = (option.to_owned(), keys.to_owned(), reason.to_owned());
        self.import.rows.push(Row { place: "default".to_owned(), option, value: String::new(), outcome, keys, reason });
    }

    fn key(&mut self, name: &str, line: usize, node: &Node) {
        match name {
            "secret" => self.secrets(line, node),
            "credentials" => self.credentials(line, node),
            "listen" => self.listen_rows(line, node),
            "relay_ipv4_addr" | "relay_ipv6_addr" => self.relay_ip_row(name, line, node),
            "relay_min_port" | "relay_max_port" => {
                let is_port = node.text().is_some_and(|text| text.parse::<u16>().is_ok());
                let (outcome, reason) = if is_port { (Outcome::Same, "") } else { (Outcome::Refused, "not a port") };
                self.row(name, (line, node), outcome, "relay_ports", reason);
            }
            "tls_crt_file" => self.row(name, (line, node), Outcome::Same, "cert", ""),
            "tls_key_file" => {
                let reason = "others than its owner and group must not read it";
                self.row(name, (line, node), Outcome::Same, "key", reason);
            }
            "realm" => match node.text().filter(|realm| is_realm(realm)) {
                Some(realm) => {
                    self.document.turn("realm", realm);
                    self.row(name, (line, node), Outcome::Same, "realm", "");
                }
                None => self.row(name, (line, node), Outcome::Refused, "realm", REALM),
            },
            "software_name" => self.software(name, line, node),
            "strict_expiry" => {
                let is_strict = node.text() == Some("true");
                self.document.turn("strict_expiry", is_strict);
                self.row(name, (line, node), Outcome::Same, "strict_expiry", "");
            }
            "max_allocations" => self.limit(name, line, node, "user_allocations"),
            "max_permissions" => self.limit(name, line, node, "permissions_per_allocation"),
            "max_bps" => self.bandwidth(name, line, node),
            "blacklist_peers" | "whitelist_peers" | "blacklist" | "whitelist" => self.peer_row(name, line, node),
            "modules" => self.modules(line, node),
            _ => match FIXED.iter().find(|(key, ..)| *key == name) {
                Some((_, outcome, reason)) => self.row(name, (line, node), *outcome, "", reason),
                None => {
                    let reason = "no option of eturnal, which does not start with it";
                    self.row(name, (line, node), Outcome::Unknown, "", reason);
                }
            },
        }
    }

    fn secrets(&mut self, line: usize, node: &Node) {
        self.import.has_credentials = true;
        let is_secret = |text: &&str| !text.is_empty() && !text.chars().any(char::is_control);
        let secrets: Vec<_> = node.values().iter().filter_map(Node::text).filter(is_secret).collect();
        let is_whole = secrets.len() == node.values().len() && !secrets.is_empty();
        self.import.secrets.extend(secrets.into_iter().map(|secret| Zeroizing::new(secret.to_owned())));
        let (outcome, reason) = match is_whole {
            true => (Outcome::Same, ""),
            false => (Outcome::Refused, "an empty secret, or one with control characters"),
        };
        self.row("secret", (line, node), outcome, "auth_secret_file", reason);
    }

    fn credentials(&mut self, line: usize, node: &Node) {
        self.row("credentials", (line, node), Outcome::Same, "user_file", "");
        for (name, line, password) in node.entries() {
            self.import.has_credentials = true;
            let option = format!("credentials.{name}");
            match password.text().filter(|password| !password.is_empty()) {
                Some(_) if name.is_empty() || name.contains(':') => {
                    let reason = "a name with a colon cannot be in a user file";
                    self.row(&option, (*line, password), Outcome::Refused, "", reason);
                }
                Some(text) if text.starts_with("0x") => {
                    let reason = "a user file takes a password that begins with 0x for a key: change the password";
                    self.row(&option, (*line, password), Outcome::Refused, "", reason);
                }
                Some(text) => {
                    self.import.users.push(Zeroizing::new(format!("{name}:{text}")));
                    self.row(&option, (*line, password), Outcome::Same, "user_file", "");
                }
                None => self.row(&option, (*line, password), Outcome::Refused, "", "not a password"),
            }
        }
    }

    /// Maps one entry of `listen`, or all of them.
    fn listen_rows(&mut self, line: usize, node: &Node) {
        self.row("listen", (line, node), Outcome::Same, "listen, listen_tcp, listen_tls", "");
        for (name, line, value) in node.values().iter().flat_map(Node::entries) {
            let text = value.text().unwrap_or_default();
            let (outcome, reason) = match name.as_str() {
                "ip" if text.parse::<IpAddr>().is_err() => (Outcome::Refused, "not an IP address"),
                "port" if text.parse::<u16>().is_err() => (Outcome::Refused, "not a port"),
                "transport" if !["udp", "tcp", "tls", "auto"].contains(&text) => (Outcome::Refused, "no transport"),
                "proxy_protocol" if text == "true" => (
                    Outcome::Differs,
                    "set `proxy_protocol_from` to the addresses of the balancers: eturnal accepts the header from every address",
                ),
                "enable_turn" if text == "false" => {
                    (Outcome::Differs, "every listener offers TURN to those who have a credential")
                }
                "ip" | "port" | "transport" | "proxy_protocol" | "enable_turn" => (Outcome::Same, ""),
                _ => (Outcome::Unknown, "no option of eturnal, which does not start with it"),
            };
            self.row(&format!("listen.{name}"), (*line, value), outcome, "", reason);
        }
    }

    fn relay_ip_row(&mut self, name: &str, line: usize, node: &Node) {
        let text = node.text().unwrap_or_default();
        let (outcome, reason) = match text.parse::<IpAddr>() {
            Ok(_) => (Outcome::Same, ""),
            Err(_) if text == "none" => (Outcome::Same, "no relay of this family"),
            Err(_) => (Outcome::Refused, "neither an IP address nor none"),
        };
        self.row(name, (line, node), outcome, "relay_ip", reason);
    }

    fn software(&mut self, name: &str, line: usize, node: &Node) {
        match node.text() {
            Some(text) if text != "none" && !is_software(text) => {
                self.row(name, (line, node), Outcome::Refused, "software", "it has 1 to 127 characters");
            }
            Some("none") | None => self.row(name, (line, node), Outcome::Same, "", "no SOFTWARE attribute"),
            Some(text) => {
                self.document.turn("software", text);
                self.row(name, (line, node), Outcome::Same, "software", "");
            }
        }
    }

    fn limit(&mut self, name: &str, line: usize, node: &Node, key: &str) {
        let text = node.text().unwrap_or_default();
        let is_none = ["unlimited", "infinity"].contains(&text);
        match text.parse::<u32>() {
            Ok(limit) if limit > 0 => {
                self.document.quota(key, i64::from(limit));
                self.row(name, (line, node), Outcome::Same, &format!("quotas.{key}"), "");
            }
            Ok(_) | Err(_) if is_none => {
                let reason = "no limit but the capacity of the server";
                self.row(name, (line, node), Outcome::Same, "", reason);
            }
            Ok(_) | Err(_) => self.row(name, (line, node), Outcome::Refused, "", "neither a number nor unlimited"),
        }
    }

    fn bandwidth(&mut self, name: &str, line: usize, node: &Node) {
        match node.text().and_then(|text| text.parse::<i64>().ok()).filter(|limit| *limit > 0) {
            Some(limit) => {
                self.document.quota("allocation_bytes_per_second", limit.saturating_mul(2));
                let reason = "eturnal limits what it receives on a TCP or TLS connection; truetick counts bytes on the wire of every \
                              allocation, both directions together, and drops the excess: check the doubled value";
                self.row(name, (line, node), Outcome::Differs, "quotas.allocation_bytes_per_second", reason);
            }
            None => self.row(name, (line, node), Outcome::Same, "", "no limit"),
        }
    }

    fn modules(&mut self, line: usize, node: &Node) {
        self.row("modules", (line, node), Outcome::Same, "", "");
        for (name, line, module) in node.entries() {
            if name == "mod_stats_prometheus" {
                self.prometheus(*line, module);
            } else if let Some((_, outcome, reason)) = FIXED.iter().find(|(key, ..)| key == name) {
                self.row(name, (*line, module), *outcome, "", reason);
                for (option, line, value) in module.entries() {
                    self.row(&format!("{name}.{option}"), (*line, value), *outcome, "", reason);
                }
            } else {
                self.row(name, (*line, module), Outcome::Differs, "", "truetick has no module of this name");
                for (option, line, value) in module.entries() {
                    self.row(&format!("{name}.{option}"), (*line, value), Outcome::Ignored, "", "a module's option");
                }
            }
        }
    }

    fn prometheus(&mut self, line: usize, module: &Node) {
        let get = |name: &str| module.entries().iter().find(|(key, ..)| key == name).and_then(|(.., node)| node.text());
        let any = if self.host.has_ipv6 { "::" } else { "0.0.0.0" };
        let ip = get("ip").filter(|ip| *ip != "any").unwrap_or(any).parse::<IpAddr>();
        let port = get("port").map_or(Ok(PROMETHEUS_PORT), str::parse);
        let names = "the names of the metrics differ, and metrics of the Erlang virtual machine have no counterpart";
        match (ip, port) {
            (Ok(ip), Ok(port)) => {
                self.document.http("listen", SocketAddr::new(ip, port).to_string());
                self.row("mod_stats_prometheus", (line, module), Outcome::Differs, "http.listen", names);
            }
            (_, _) => {
                self.row("mod_stats_prometheus", (line, module), Outcome::Refused, "", "not an address and a port")
            }
        }
        for (option, line, value) in module.entries() {
            let (outcome, reason) = match (option.as_str(), value.text()) {
                ("tls", Some("true")) => {
                    (Outcome::Differs, "metrics are served over plain HTTP; put a reverse proxy in front of [http]")
                }
                ("vm_metrics" | "tls" | "tls_crt_file" | "tls_key_file", _) => (Outcome::Ignored, ""),
                ("ip" | "port", _) => (Outcome::Same, ""),
                (_, _) => (Outcome::Unknown, "no option of the module"),
            };
            self.row(&format!("mod_stats_prometheus.{option}"), (*line, value), outcome, "", reason);
        }
    }

    /// Writes what several keys decide, and the rows of keys that are not set.
    fn defaults(&mut self) {
        self.listeners();
        let port = |name: &str, default: u16| self.text(name).map_or(Some(default), |text| text.parse().ok());
        let (low, high) = (port("relay_min_port", RELAY_PORTS.0), port("relay_max_port", RELAY_PORTS.1));
        match (low, high) {
            (Some(low), Some(high)) if low <= high && low > 0 => {
                if (low, high) != RELAY_PORTS {
                    self.document.turn("relay_ports", format!("{low}-{high}"));
                }
            }
            (_, _) => self.default_row("relay_min_port", Outcome::Refused, "relay_ports", "no range of ports"),
        }
        let ips = ["relay_ipv4_addr", "relay_ipv6_addr"].map(|name| self.text(name).map(ToOwned::to_owned));
        let relays = ips.into_iter().flatten().filter(|ip| ip.parse::<IpAddr>().is_ok());
        let relays: Vec<String> = relays.collect();
        self.document.turn_list("relay_ip", relays);
        if self.get("realm").is_none() {
            self.document.turn("realm", "eturnal.net");
        }
        if self.get("software_name").is_none() {
            let reason = "no SOFTWARE attribute: set `software` to send one";
            self.default_row("software_name", Outcome::Better, "software", reason);
        }
        if self.get("secret").is_none() && self.get("credentials").is_none() {
            let reason = "eturnal takes the secret from ETURNAL_SECRET or draws one; truetick answers STUN Binding only: add a secret";
            self.default_row("secret", Outcome::Differs, "auth_secret_file", reason);
        }
        for (name, key) in [("max_allocations", "user_allocations"), ("max_permissions", "permissions_per_allocation")]
        {
            if self.get(name).is_none() {
                self.document.quota(key, i64::from(PERMISSIONS));
                let reason = "10, eturnal's default";
                self.default_row(name, Outcome::Same, &format!("quotas.{key}"), reason);
            }
        }
        self.peers();
    }

    fn listeners(&mut self) {
        let has_tls = self.get("tls_crt_file").is_some();
        let entries: Vec<Listener> = match self.get("listen") {
            Some(node) => node.values().iter().filter_map(|entry| Listener::read(entry, self.host)).collect(),
            None => ["udp", "tcp"].into_iter().filter_map(|transport| Listener::of(self.host, transport)).collect(),
        };
        let on = |transports: &[&str]| -> Vec<String> {
            let named = entries.iter().filter(|entry| transports.contains(&entry.transport.as_str()));
            named.flat_map(|entry| entry.addrs.iter().map(ToString::to_string)).collect()
        };
        let (udp, tcp, tls) = (on(&["udp"]), on(&["tcp", "auto"]), on(&["tls"]));
        if udp.is_empty() {
            let reason = "truetick listens on UDP port 3478, too: close it in the firewall";
            self.default_row("listen", Outcome::Differs, "listen", reason);
        }
        self.document.turn_list("listen", udp);
        if tcp.is_empty() {
            self.document.turn("no_tcp", true);
        } else {
            self.document.turn_list("listen_tcp", tcp);
        }
        if has_tls {
            let path = |reader: &Self, name: &str| reader.text(name).map(|path| reader.host.path(path));
            let certificate = path(self, "tls_crt_file").unwrap_or_default();
            let key = path(self, "tls_key_file").unwrap_or_else(|| certificate.clone());
            self.document.turn("cert", certificate);
            self.document.turn("key", key);
            self.document.turn_list("listen_tls", tls);
        } else if !tls.is_empty() || entries.iter().any(|entry| entry.transport == "auto") {
            let reason = "eturnal makes its own certificate; truetick offers no TLS without tls_crt_file: get one";
            self.default_row("tls_crt_file", Outcome::Differs, "cert, key", reason);
        }
    }
}

/// An entry of `listen`.
struct Listener {
    addrs: Vec<SocketAddr>,
    transport: String,
}

impl Listener {
    fn of(host: &Host<'_>, transport: &str) -> Option<Self> {
        Self::read(&Node::Map(vec![("transport".to_owned(), 0, Node::Scalar(transport.to_owned()))]), host)
    }

    /// Reads an entry; `None` if a value is invalid, which its row says.
    fn read(entry: &Node, host: &Host<'_>) -> Option<Self> {
        let get = |name: &str| entry.entries().iter().find(|(key, ..)| key == name).and_then(|(.., node)| node.text());
        let transport = get("transport").unwrap_or("udp").to_owned();
        let default_port = if transport == "tls" { TLS_PORT } else { PORT };
        let port = get("port").map_or(Some(default_port), |port| port.parse().ok())?;
        let ip: IpAddr = get("ip").unwrap_or("::").parse().ok()?;
        // On Linux, eturnal's :: takes IPv4 too; truetick's listeners have one family each.
        let any_v4: IpAddr = [0; 4].into();
        let ips = match (ip.is_ipv6() && ip.is_unspecified(), host.has_ipv6) {
            (true, true) => vec![any_v4, ip],
            (true, false) => vec![any_v4],
            (false, _) => vec![ip],
        };
        Some(Self { addrs: ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect(), transport })
    }
}
