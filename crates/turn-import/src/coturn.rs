//! `turnserver.conf` and the arguments of coturn's `turnserver`.
//!
//! The facts are those of coturn 4.17.1 ([docs/coturn-import.md] names the sources).
//!
//! [docs/coturn-import.md]: https://github.com/truetick/truetick/blob/main/docs/coturn-import.md

mod connection;
mod credentials;
mod limits;
mod listeners;
mod options;
mod peers;
mod setting;

use crate::document::Document;
use crate::import::{Host, Import, Outcome, Row};
use options::Treatment;

pub use peers::{PeerRules, peer_rules};
pub use setting::{Arguments, Setting, arguments, lines};

/// Replaces credentials in tables.
pub(crate) const MASK: &str = "<masked>";

/// Folders in which coturn looks for its file, in order.
pub const FOLDERS: [&str; 5] = [".", "etc", "../etc", "/etc", "/usr/local/etc"];

/// Returns the configuration of truetick that `settings` mean. Of an option that counts once, the last one counts.
#[must_use]
pub fn import(settings: Vec<Setting>, host: &Host<'_>) -> Import {
    let mut reader = Reader::new(settings, host);
    reader.fixed();
    let is_secure = reader.listeners();
    reader.relays();
    reader.credentials();
    reader.limits();
    reader.peers();
    reader.metrics();
    if !is_secure {
        reader.unused_tls();
    }
    reader.finish()
}

/// The options of a file, and what is known about each.
struct Reader<'a> {
    host: &'a Host<'a>,
    settings: Vec<Setting>,
    /// The row of each setting.
    rows: Vec<Option<Row>>,
    /// Rows of defaults that differ.
    defaults: Vec<Row>,
    import: Import,
    document: Document,
}

impl<'a> Reader<'a> {
    fn new(settings: Vec<Setting>, host: &'a Host<'a>) -> Self {
        let rows = settings.iter().map(|_| None).collect();
        Self { host, settings, rows, defaults: Vec::new(), import: Import::default(), document: Document::default() }
    }

    /// Returns the indices of an option's settings, in order.
    fn indices(&self, name: &str) -> Vec<usize> {
        let named = self.settings.iter().enumerate().filter(|(_, setting)| setting.name == name);
        named.map(|(index, _)| index).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.name == name)
    }

    /// Returns the last setting of an option.
    fn last(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.name == name)
    }

    /// Returns whether a switch is on; it is off without a setting.
    fn is_on(&self, name: &str) -> bool {
        self.last(name).is_some_and(|setting| setting.is_on() != Some(false))
    }

    /// Returns the number of an option that counts once.
    fn number(&self, name: &str) -> Option<u64> {
        self.last(name)?.number()
    }

    /// Sets the row of a setting.
    fn row(&mut self, index: usize, outcome: Outcome, keys: &str, reason: &str) {
        let setting = &self.settings[index];
        let is_secret = setting.spec.is_some_and(|spec| spec.is_secret);
        let value = match setting.value.as_ref() {
            Some(value) if is_secret && setting.name == "user" => {
                format!("{}:{MASK}", value.split_once(':').map_or("", |(name, _)| name))
            }
            // A misspelt option may have a credential.
            Some(_) if is_secret || setting.spec.is_none() => MASK.to_owned(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        self.rows[index] = Some(Row {
            place: setting.place.clone(),
            option: setting.name.clone(),
            value,
            outcome,
            keys: keys.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// Sets the rows of an option that counts once: of all settings but the last, that they do not count.
    fn rows_of(&mut self, name: &str, outcome: Outcome, keys: &str, reason: &str) {
        let indices = self.indices(name);
        for (position, index) in indices.iter().enumerate() {
            if position + 1 < indices.len() {
                self.row(*index, Outcome::Ignored, "", "a later one counts");
            } else {
                self.row(*index, outcome, keys, reason);
            }
        }
    }

    /// Adds a row about an option that is not set.
    fn default_row(&mut self, option: &str, outcome: Outcome, keys: &str, reason: String) {
        let (option, keys) = (option.to_owned(), keys.to_owned());
        self.defaults.push(Row { place: "default".to_owned(), option, value: String::new(), outcome, keys, reason });
    }

    /// Sets the rows of unknown lines, of switches that are off and of options whose outcome no other one changes.
    fn fixed(&mut self) {
        for index in 0..self.settings.len() {
            let setting = &self.settings[index];
            self.import.has_credentials |= setting.is_credential();
            let Some(spec) = setting.spec else {
                self.row(index, Outcome::Unknown, "", "no option of coturn, which ignores the line with a warning");
                continue;
            };
            let name = spec.name;
            match (spec.treatment, setting.is_on()) {
                (Treatment::WhenOn(_, _), None) => self.invalid(index, "not a switch's value"),
                (Treatment::WhenOn(outcome, reason), Some(true)) => self.rows_of(name, outcome, "", reason),
                (Treatment::WhenOn(_, _), Some(false)) => self.rows_of(name, Outcome::Same, "", "off, as by default"),
                (Treatment::Always(outcome, reason), _) => self.row(index, outcome, "", reason),
                (Treatment::Mapped, _) => {}
            }
        }
    }

    /// Sets the row of a setting that coturn rejects, too.
    fn invalid(&mut self, index: usize, reason: &str) {
        self.row(index, Outcome::Refused, "", &format!("{reason}; coturn does not start, either"));
    }

    /// Maps the metrics of coturn to the listener of `[http]`.
    fn metrics(&mut self) {
        let is_on = self.is_on("prometheus");
        let port = self.number("prometheus-port").and_then(|port| u16::try_from(port).ok()).unwrap_or(9_641);
        let any = if self.host.has_ipv6 { "::" } else { "0.0.0.0" };
        let address = self.last("prometheus-address").map_or(any, Setting::word).to_owned();
        let unused = (Outcome::Ignored, "", "it counts with prometheus only");
        let rows: [(&str, (Outcome, &str, &str)); 3] = match (is_on, address.parse::<std::net::IpAddr>()) {
            (true, Ok(ip)) => {
                self.document.http("listen", std::net::SocketAddr::new(ip, port).to_string());
                self.document.http("metrics_names", "coturn");
                let counts = "traffic is payload, counted while it is relayed";
                [
                    ("prometheus", (Outcome::Differs, "http.listen, http.metrics_names", counts)),
                    ("prometheus-port", (Outcome::Same, "http.listen", "")),
                    ("prometheus-address", (Outcome::Same, "http.listen", "")),
                ]
            }
            (true, Err(_)) => {
                let reason = "metrics are off, because the address is none: set `listen` of [http]";
                ["prometheus", "prometheus-port", "prometheus-address"]
                    .map(|name| (name, (Outcome::Differs, "", reason)))
            }
            (false, _) => [
                ("prometheus", (Outcome::Same, "", "off, as by default")),
                ("prometheus-port", unused),
                ("prometheus-address", unused),
            ],
        };
        for (name, (outcome, keys, reason)) in rows {
            self.rows_of(name, outcome, keys, reason);
        }
    }

    fn finish(mut self) -> Import {
        for index in 0..self.settings.len() {
            if self.rows[index].is_none() {
                self.row(index, Outcome::Refused, "", "truetick does not know how to read it");
            }
        }
        self.import.rows = self.rows.into_iter().flatten().chain(self.defaults).collect();
        self.import.document = self.document;
        self.import
    }
}
