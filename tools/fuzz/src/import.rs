//! Configurations of coturn and eturnal: each line and each key is reported once, no credential is shown, and truetick
//! reads what the import prints.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use control::HttpSection;
use serde::Deserialize;
use turn_import::coturn::PeerRules;
use turn_import::{CredentialFiles, Host, Import, Outcome, Row, coturn, eturnal};
use turn_server::{TurnConfig, TurnSection};

use crate::choices::Choices;

/// Long options of coturn.
const OPTIONS: &str = include_str!("../../../crates/turn-import/tests/coturn_options.txt");
/// A credential that no report may contain.
const SECRET: &str = "hidden-north";
/// Options of coturn whose value is a credential.
const SECRET_OPTIONS: [&str; 4] = ["static-auth-secret", "pkey-pwd", "cli-password", "redis-userdb"];
const LINES_MAX: usize = 24;
/// Values that some options accept.
const VALUES: [&str; 32] = [
    "",
    "0",
    "1",
    "no",
    "yes",
    "443",
    "3478",
    "65535",
    "4294967296",
    "99999999999999999999",
    "0.0.0.0",
    "::",
    "192.0.2.1",
    "2001:db8::1",
    "203.0.113.1/10.0.0.1",
    "203.0.113.1/2001:db8::1",
    "10.0.0.0-10.255.255.255",
    "0.0.0.0-255.255.255.255",
    "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "192.168.0.0/16",
    "192.0.2.2:3480",
    "[2001:db8::2]:3480",
    "ann:0x11",
    "example.org",
    "a \\\" \\\\ b",
    "ECDHE-RSA-AES128-GCM-SHA256:!AES256",
    "HIGH:TLS_AES_128_GCM_SHA256",
    "keep",
    "ipv6",
    ":",
    "any",
    "recommended",
];
/// Keys of eturnal with a scalar or a list.
const KEYS: [&str; 26] = [
    "secret",
    "relay_ipv4_addr",
    "relay_ipv6_addr",
    "relay_min_port",
    "relay_max_port",
    "tls_crt_file",
    "tls_key_file",
    "tls_dh_file",
    "tls_options",
    "tls_ciphers",
    "max_allocations",
    "max_permissions",
    "max_bps",
    "blacklist_peers",
    "whitelist_peers",
    "blacklist_clients",
    "whitelist_clients",
    "blacklist",
    "whitelist",
    "strict_expiry",
    "realm",
    "software_name",
    "run_dir",
    "log_dir",
    "log_level",
    "surprise",
];
const LISTEN_KEYS: [&str; 6] = ["ip", "port", "transport", "proxy_protocol", "enable_turn", "surprise"];
const TRANSPORTS: [&str; 5] = ["udp", "tcp", "tls", "auto", "dtls"];
const MODULES: [&str; 4] = ["mod_log_stun", "mod_stats_influx", "mod_stats_prometheus", "mod_other"];
const MODULE_KEYS: [&str; 4] = ["ip", "port", "tls", "vm_metrics"];

/// The sections of truetick that an import writes.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    turn: TurnSection,
    http: HttpSection,
}

/// Reads `data` as a file, as arguments, or as choices of a file.
///
/// # Panics
/// A line or key is not reported once, a credential is in the report, or the TOML is none of truetick.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let host = Host { has_ipv6: kind & 0x80 == 0, folder: (kind & 0x40 == 0).then_some(Path::new("/etc")) };
    match kind % 5 {
        0 => coturn_file(&String::from_utf8_lossy(rest), &host),
        1 => drop(eturnal::import(&String::from_utf8_lossy(rest), &host).map(|import| check(&import))),
        2 => arguments(&String::from_utf8_lossy(rest), &host),
        3 => chosen_coturn(&mut Choices(rest), &host),
        _ => chosen_eturnal(&mut Choices(rest), &host),
    }
}

/// Every line that is neither empty nor a comment has one row.
fn coturn_file(text: &str, host: &Host<'_>) {
    let import = coturn::import(coturn::lines(text), host);
    lists(text);
    let mut expected = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            expected.push(format!("line {}", index + 1));
        }
    }
    assert_eq!(places(&import), expected, "{text}");
    check(&import);
}

/// In a database, a realm's lists and those of every realm count together, whichever has a range; of the ranges that
/// cannot be read, those of the realm are counted.
fn lists(text: &str) {
    let of = |option: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(option)).map(str::to_owned).collect()
    };
    let (allowed, denied) = (&of("allowed-peer-ip=")[..], &of("denied-peer-ip=")[..]);
    let whole = coturn::peer_rules([&[], &[]], [allowed, denied]);
    let is_address = |text: &&String| text.trim().parse::<IpAddr>().is_ok();
    let others = allowed.iter().chain(denied).filter(|text| !is_address(text)).count();
    assert!(whole.invalid <= others, "an address is a range: {text}");
    let mut invalid = 0;
    for (every, own) in [([allowed, &[]], [&[][..], denied]), ([&[], denied], [allowed, &[]])] {
        let parts = coturn::peer_rules(every, own);
        invalid += parts.invalid;
        assert_eq!(PeerRules { invalid: whole.invalid, ..parts }, whole, "{text}");
    }
    assert_eq!(invalid, whole.invalid, "{text}");
}

/// Arguments are separated by line feeds. Each that is an option has one row.
fn arguments(text: &str, host: &Host<'_>) {
    let arguments: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let Ok(read) = coturn::arguments(&arguments) else { return };
    let count = read.settings.len();
    let import = coturn::import(read.settings, host);
    assert_eq!(places(&import), vec!["argument"; count], "{text}");
    check(&import);
}

/// The places of all rows but those of defaults.
fn places(import: &Import) -> Vec<&str> {
    let places = import.rows.iter().map(|row| row.place.as_str());
    places.filter(|place| *place != "default").collect()
}

/// A file of known options with values that some of them accept. Unlike an unknown line, none of them is unknown.
fn chosen_coturn(choices: &mut Choices, host: &Host<'_>) {
    let names: Vec<&str> = OPTIONS.lines().filter(|line| !line.starts_with('#')).collect();
    let (mut text, mut expected) = (String::new(), Vec::new());
    while !choices.is_spent() && expected.len() < LINES_MAX {
        let name = *choices.of(&names);
        let value = *choices.of(&VALUES);
        let value = match name {
            "user" => format!("ann:{SECRET}"),
            "redis-statsdb" => format!("ip=127.0.0.1 dbname=1 password={SECRET}"),
            _ if SECRET_OPTIONS.contains(&name) => SECRET.to_owned(),
            _ => value.to_owned(),
        };
        writeln!(text, "{name}={value}").expect("memory");
        expected.push((format!("line {}", expected.len() + 1), name.to_owned()));
    }
    let import = coturn::import(coturn::lines(&text), host);
    lists(&text);
    let found = import.rows.iter().filter(|row| row.place != "default");
    let found: Vec<_> = found.map(|row| (row.place.clone(), row.option.clone())).collect();
    assert_eq!(found, expected, "{text}");
    assert_eq!(import.rows_of(Outcome::Unknown).count(), 0, "{text}");
    hides(&import);
    check(&import);
}

/// A file of eturnal, and the name and the line of each of its keys.
#[derive(Default)]
struct Yaml {
    text: String,
    keys: Vec<(String, String)>,
}

impl Yaml {
    fn push(&mut self, indent: usize, prefix: &str, name: &str, value: &str) {
        writeln!(self.text, "{:indent$}{name}: {value}", "").expect("memory");
        self.keys.push((format!("line {}", self.text.lines().count()), format!("{prefix}{name}")));
    }
}

/// A file of known keys, each at most once, with values that some of them accept.
fn chosen_eturnal(choices: &mut Choices, host: &Host<'_>) {
    let mut yaml = Yaml::default();
    yaml.text.push_str("eturnal:\n");
    for key in KEYS {
        match choices.byte() % 4 {
            0 => yaml.push(2, "", key, &scalar(key, choices)),
            1 => {
                let list = [scalar(key, choices), scalar(key, choices)].join(", ");
                yaml.push(2, "", key, &format!("[{list}]"));
            }
            _ => {}
        }
    }
    if choices.byte() % 2 == 1 {
        yaml.push(2, "", "credentials", "");
        yaml.push(4, "credentials.", "ann", SECRET);
        yaml.push(4, "credentials.", "\"b:c\"", SECRET);
    }
    if choices.byte() % 2 == 1 {
        yaml.push(2, "", "listen", "");
        for _ in 0..choices.byte() % 4 {
            yaml.text.push_str("    -\n");
            for key in LISTEN_KEYS {
                let value = if key == "transport" { *choices.of(&TRANSPORTS) } else { *choices.of(&VALUES) };
                yaml.push(6, "listen.", key, &format!("\"{value}\""));
            }
        }
    }
    if choices.byte() % 2 == 1 {
        yaml.push(2, "", "modules", "");
        for module in MODULES {
            if choices.byte() % 2 == 1 {
                continue;
            }
            yaml.push(4, "", module, "");
            for key in MODULE_KEYS {
                yaml.push(6, &format!("{module}."), key, &format!("\"{}\"", choices.of(&VALUES)));
            }
        }
    }
    yaml.text.push_str("other:\n  a: b\n");
    yaml.keys.push((format!("line {}", yaml.text.lines().count() - 1), "other".to_owned()));
    let import = eturnal::import(&yaml.text, host).unwrap_or_else(|error| panic!("{error}: {}", yaml.text));
    let found = import.rows.iter().filter(|row| row.place != "default");
    let mut found: Vec<_> = found.map(|row| (row.place.clone(), row.option.replace("b:c", "\"b:c\""))).collect();
    found.sort();
    yaml.keys.sort();
    assert_eq!(found, yaml.keys, "{}", yaml.text);
    hides(&import);
    check(&import);
}

fn scalar(key: &str, choices: &mut Choices) -> String {
    let value = *choices.of(&VALUES);
    format!("\"{}\"", if key == "secret" { SECRET } else { value })
}

/// The report and the TOML of a chosen file contain no credential.
fn hides(import: &Import) {
    let is_masked = |row: &Row| !row.value.contains(SECRET) && !row.option.contains(SECRET);
    assert!(import.rows.iter().all(is_masked), "{:?}", import.rows);
    assert!(!import.to_toml(None).contains(SECRET), "{}", import.to_toml(None));
}

/// The TOML is one of truetick, and values of unknown options are masked. Unless something is refused, a server can be
/// made of it.
fn check(import: &Import) {
    let mut unknown = import.rows_of(Outcome::Unknown);
    assert!(unknown.all(|row| ["", "<masked>"].contains(&row.value.as_str())), "{:?}", import.rows);
    let is_changed = import.rows.iter().any(|row| matches!(row.outcome, Outcome::Differs | Outcome::Refused));
    assert_eq!(import.changes_behaviour(), is_changed);
    let files = CredentialFiles {
        users: "/etc/users".into(),
        secrets: "/etc/secrets".into(),
        database_password: "/etc/database".into(),
        stats_database_password: "/etc/stats-database".into(),
    };
    let read = |toml: &str| toml::from_str::<Written>(toml).unwrap_or_else(|error| panic!("{error}: {toml}"));
    read(&import.to_toml(Some(&files)));
    let toml = import.to_toml(None);
    let Written { turn: section, http } = read(&toml);
    assert_eq!(http.listen.is_some(), toml.contains("[http]"), "{toml}");
    // Of an unspecified address, the relays are those of this machine.
    let is_settled = !section.relay_ip.is_empty()
        || (!section.listen.is_empty() && section.listen.iter().all(|addr| !addr.ip().is_unspecified()));
    // truetick checks more of other alphabets than an import does.
    let is_ascii = section.realm.as_ref().is_none_or(|realm| realm.is_ascii());
    if is_settled && is_ascii && import.rows_of(Outcome::Refused).next().is_none() {
        let config = TurnConfig::new(&section);
        assert!(config.is_ok(), "{:#}: {toml} of {:?}", config.expect_err("it is an error"), import.rows);
    }
}
