//! Files with anything in them: readers never panic and name every key, and peers are decided as coturn decides.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use tt_turn::policy::{Ownership, PeerDecision, PeerPolicy, PeerRange};
use turn_import::{Host, coturn, eturnal};

const NAMES: &str = include_str!("coturn_options.txt");
const KEYS: [&str; 20] = [
    "secret",
    "listen",
    "relay_ipv4_addr",
    "relay_ipv6_addr",
    "relay_min_port",
    "relay_max_port",
    "tls_crt_file",
    "tls_options",
    "max_allocations",
    "max_permissions",
    "max_bps",
    "blacklist",
    "whitelist_clients",
    "blacklist_peers",
    "strict_expiry",
    "credentials",
    "realm",
    "software_name",
    "modules",
    "what",
];

fn host(has_ipv6: bool) -> Host<'static> {
    Host { has_ipv6, folder: None }
}

/// A name of coturn, or any word.
fn name() -> impl Strategy<Value = String> {
    let names: Vec<String> = NAMES.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    prop_oneof![9 => proptest::sample::select(names), 1 => "[a-z#-]{0,8}"]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{0,22}",
        "[0-9a-f:./-]{0,24}",
        Just("10.0.0.0-10.255.255.255".to_owned()),
        Just("203.0.113.1/10.0.0.1".to_owned()),
        Just("ann:0x11".to_owned()),
        "\\PC{0,12}",
    ]
}

fn range(first: u32, last: u32) -> (Ipv4Addr, Ipv4Addr) {
    (Ipv4Addr::from_bits(first.min(last)), Ipv4Addr::from_bits(first.max(last)))
}

/// Addresses near each other and near the edges of special ranges.
fn address() -> impl Strategy<Value = u32> {
    let edge = proptest::sample::select(vec![
        [10, 0, 0, 0],
        [127, 0, 0, 0],
        [172, 16, 0, 0],
        [192, 168, 0, 0],
        [224, 0, 0, 0],
        [8, 8, 8, 8],
    ]);
    (edge, -3_i64..0x0100_0003)
        .prop_map(|(edge, offset)| (i64::from(u32::from_be_bytes(edge)) + offset).clamp(0, i64::from(u32::MAX)) as u32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_of_coturn_is_reported_line_by_line(text in "\\PC{0,80}(\n\\PC{0,40}){0,6}", has_ipv6: bool) {
        let settings = coturn::lines(&text);
        let count = settings.len();
        let import = coturn::import(settings, &host(has_ipv6));
        prop_assert_eq!(import.rows.iter().filter(|row| row.place != "default").count(), count);
    }

    #[test]
    fn every_option_of_coturn_is_in_the_report(lines in proptest::collection::vec((name(), value()), 0..12), has_ipv6: bool) {
        let text: String = lines.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let import = coturn::import(coturn::lines(&text), &host(has_ipv6));
        for (index, (name, _)) in lines.iter().enumerate() {
            let (place, line) = (format!("line {}", index + 1), name.trim());
            let rows: Vec<_> = import.rows.iter().filter(|row| row.place == place).collect();
            prop_assert_eq!(rows.len(), usize::from(!line.starts_with('#')), "{}", text);
            prop_assert!(rows.iter().all(|row| row.option == line), "{}", text);
        }
        prop_assert!(import.to_toml(None).parse::<toml::Table>().is_ok());
    }

    #[test]
    fn any_arguments_of_coturn_are_read_or_rejected(arguments in proptest::collection::vec("-{0,2}\\PC{0,10}", 0..6)) {
        if let Ok(read) = coturn::arguments(&arguments) {
            let count = read.settings.len();
            let import = coturn::import(read.settings, &host(true));
            prop_assert_eq!(import.rows.iter().filter(|row| row.place == "argument").count(), count);
        }
    }

    #[test]
    fn any_text_of_eturnal_is_read_or_rejected(text in "(eturnal:\n)?(  ?[a-z_]{0,8}:? ?\\PC{0,12}\n){0,6}\\PC{0,40}", has_ipv6: bool) {
        let _ = eturnal::import(&text, &host(has_ipv6));
    }

    #[test]
    fn every_key_of_eturnal_is_in_the_report(keys in proptest::sample::subsequence(&KEYS[..], 0..12), value in "[a-z0-9.:]{1,12}") {
        let lines: String = keys.iter().map(|key| format!("  {key}: \"{value}\"\n")).collect();
        let import = eturnal::import(&format!("eturnal:\n{lines}  last: 1\n"), &host(true)).unwrap();
        for (index, key) in keys.iter().enumerate() {
            let place = format!("line {}", index + 2);
            prop_assert!(import.rows.iter().any(|row| row.option == *key && row.place == place), "{}", key);
        }
        prop_assert!(import.to_toml(None).parse::<toml::Table>().is_ok());
    }

    /// coturn: loopback and 0.0.0.0/8 never; else allowed ranges, then denied ones. What neither names is up to the
    /// built-in list.
    #[test]
    fn peers_are_decided_as_coturn_decides(
        allowed in proptest::collection::vec((address(), address()), 0..4),
        denied in proptest::collection::vec((address(), address()), 0..4),
        peers in proptest::collection::vec(address(), 1..16),
    ) {
        let line = |name: &str, (first, last): &(u32, u32)| {
            let (first, last) = range(*first, *last);
            format!("{name}-peer-ip={first}-{last}\n")
        };
        let lines = allowed.iter().map(|range| line("allowed", range)).chain(denied.iter().map(|range| line("denied", range)));
        let import = coturn::import(coturn::lines(&lines.collect::<String>()), &host(true));
        let document: toml::Table = import.to_toml(None).parse().unwrap();
        let mut policy = PeerPolicy::new();
        let ranges = |key: &str| -> Vec<PeerRange> {
            let values = document["turn"].get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
            values.iter().map(|value| value.as_str().unwrap().parse().unwrap()).collect()
        };
        ranges("allow_peer").into_iter().for_each(|range| policy.allow(range));
        ranges("deny_peer").into_iter().for_each(|range| policy.deny(range));
        let built_in = PeerPolicy::new();
        let is_in = |list: &[(u32, u32)], peer: u32| list.iter().any(|(a, b)| (*a.min(b)..=*a.max(b)).contains(&peer));
        let bounds = allowed.iter().chain(&denied).flat_map(|(first, last)| [*first, *last]);
        for peer in peers.iter().copied().chain(bounds) {
            let ip = IpAddr::from(Ipv4Addr::from_bits(peer));
            let decide = |policy: &PeerPolicy| policy.decide(SocketAddr::new(ip, 9), Ownership::Foreign) == PeerDecision::Allowed;
            let is_never = peer >> 24 == 0 || peer >> 24 == 127;
            let expected = match (is_never, is_in(&allowed, peer), is_in(&denied, peer)) {
                (true, _, _) | (false, false, true) => false,
                (false, true, _) => true,
                (false, false, false) => decide(&built_in),
            };
            prop_assert_eq!(decide(&policy), expected, "{} {}", ip, import.to_toml(None));
        }
    }
}
