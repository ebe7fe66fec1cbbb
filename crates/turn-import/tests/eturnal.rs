//! Keys of eturnal.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use turn_import::{Host, Import, Outcome, eturnal};

fn import(text: &str) -> Import {
    eturnal::import(text, &Host { has_ipv6: false, folder: Some("/etc".as_ref()) }).unwrap()
}

const WHOLE: &str = r#"
eturnal:
  secret:
    - "north"
    - "south"
  credentials:
    alice: l0ve
    bob: "with: colon"
  listen:
    - { ip: "::", port: 3478, transport: udp }
    - { ip: "192.0.2.1", transport: auto, proxy_protocol: true }
    - { ip: "192.0.2.1", transport: tls, enable_turn: false }
  relay_ipv4_addr: "192.0.2.1"
  relay_ipv6_addr: none
  relay_min_port: 50000
  relay_max_port: 50999
  tls_crt_file: tls/crt.pem
  tls_key_file: /etc/key.pem
  tls_dh_file: dh.pem
  tls_options: cipher_server_preference
  tls_ciphers: HIGH
  max_allocations: 20
  max_permissions: unlimited
  max_bps: 1000
  blacklist_peers:
    - recommended
    - "198.51.101.0/24"
  whitelist_peers: "10.1.0.0/16"
  blacklist_clients: "192.0.2.0/24"
  whitelist_clients: []
  strict_expiry: true
  realm: example.org
  software_name: none
  run_dir: run
  log_dir: stdout
  log_level: info
  log_rotate_size: 1
  log_rotate_count: 2
  modules:
    mod_log_stun: {}
    mod_stats_influx: { host: a }
    mod_stats_prometheus: { ip: "127.0.0.1", port: 9000, tls: false, vm_metrics: true }
other:
  a: b
"#;

#[test]
fn maps_every_key() {
    let import = import(WHOLE);
    let document: toml::Table = import.to_toml(None).parse().unwrap();
    let expected: toml::Table = r#"
[turn]
listen = ["0.0.0.0:3478"]
listen_tcp = ["192.0.2.1:3478"]
listen_tls = ["192.0.2.1:5349"]
cert = "/etc/tls/crt.pem"
key = "/etc/key.pem"
relay_ip = ["192.0.2.1"]
relay_ports = "50000-50999"
realm = "example.org"
strict_expiry = true
allow_peer = ["10.1.0.0/16"]
allow_own_host = ["10.1.0.0/16"]
deny_peer = ["198.51.101.0/24"]
[turn.quotas]
user_allocations = 20
allocation_bytes_per_second = 2000
[http]
listen = "127.0.0.1:9000"
"#
    .parse()
    .unwrap();
    assert_eq!(document, expected);
    let users: Vec<&str> = import.users.iter().map(|user| user.as_str()).collect();
    let secrets: Vec<&str> = import.secrets.iter().map(|secret| secret.as_str()).collect();
    assert_eq!((users, secrets), (vec!["alice:l0ve", "bob:with: colon"], vec!["north", "south"]));
    let rows = format!("{:?}", import.rows);
    assert!(!rows.contains("north") && !rows.contains("l0ve"), "{rows}");
    let of =
        |option: &str| import.rows.iter().find(|row| row.option == option && row.place != "default").unwrap().outcome;
    for (option, outcome) in [
        ("max_bps", Outcome::Differs),
        ("listen.proxy_protocol", Outcome::Differs),
        ("listen.enable_turn", Outcome::Differs),
        ("blacklist_clients", Outcome::Differs),
        ("mod_stats_influx", Outcome::Differs),
        ("mod_stats_prometheus", Outcome::Differs),
        ("tls_ciphers", Outcome::Better),
        ("log_dir", Outcome::Ignored),
        ("other", Outcome::Ignored),
        ("realm", Outcome::Same),
    ] {
        assert_eq!(of(option), outcome, "{option}");
    }
}

#[test]
fn texts_that_truetick_does_not_take_are_refused_and_not_written() {
    let long = "r".repeat(128);
    for (key, value) in
        [("realm", "a\\\"b"), ("realm", ""), ("realm", &long), ("software_name", ""), ("software_name", &long)]
    {
        let import = import(&format!("eturnal:\n  {key}: \"{value}\"\n"));
        let row = import.rows.iter().find(|row| row.option == key).unwrap();
        assert_eq!(row.outcome, Outcome::Refused, "{key} {value}");
        let document: toml::Table = import.to_toml(None).parse().unwrap();
        let written = if key == "realm" { "realm" } else { "software" };
        assert!(!document["turn"].as_table().unwrap().contains_key(written), "{document}");
    }
    let misspelt = import("eturnal:\n  secert: hush\n");
    assert!(misspelt.rows_of(Outcome::Unknown).next().is_some() && !format!("{:?}", misspelt.rows).contains("hush"));
}

#[test]
fn a_password_that_a_user_file_would_take_for_a_key_is_refused() {
    let import = import("eturnal:\n  credentials:\n    ann: 0xhush\n    bob: \"0X11\"\n");
    let users: Vec<&str> = import.users.iter().map(|user| user.as_str()).collect();
    let refused: Vec<&str> = import.rows_of(Outcome::Refused).map(|row| row.option.as_str()).collect();
    assert_eq!((users, refused), (vec!["bob:0X11"], vec!["credentials.ann"]));
    assert!(!format!("{:?}", import.rows).contains("hush"));
}

#[test]
fn defaults_are_those_of_eturnal() {
    let import = import("eturnal:\n  secret: a\n");
    let document: toml::Table = import.to_toml(None).parse().unwrap();
    let expected: toml::Table = "[turn]\nlisten = [\"0.0.0.0:3478\"]\nlisten_tcp = [\"0.0.0.0:3478\"]\n\
        realm = \"eturnal.net\"\n[turn.quotas]\nuser_allocations = 10\npermissions_per_allocation = 10\n"
        .parse()
        .unwrap();
    assert_eq!(document, expected);
}

#[test]
fn rejects_what_is_no_configuration_of_eturnal() {
    let host = Host { has_ipv6: false, folder: None };
    for (text, error) in [
        ("", "there is no section `eturnal`"),
        ("eturnal: 1\n", "line 1: the section `eturnal` is no map"),
        ("eturnal:\n  a: 1\n  a: 2\n", "line 3: a key is repeated"),
    ] {
        assert_eq!(eturnal::import(text, &host).unwrap_err(), error);
    }
}
