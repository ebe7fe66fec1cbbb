use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::string::{String, ToString};
use std::vec::Vec;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn cidr(text: &str) -> Cidr {
    text.parse().expect("a range")
}

fn range(text: &str) -> PeerRange {
    text.parse().expect("a range with or without ports")
}

fn rule_of(policy: &PeerPolicy, text: &str) -> Option<String> {
    match policy.decide_ip(ip(text), Ownership::Foreign) {
        PeerDecision::Allowed => None,
        PeerDecision::Denied(index) => Some(policy.rules()[index.0].to_string()),
    }
}

/// The list of the specification, word for word; the table under test is written in another form.
const SPECIFIED: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
    192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 \
    198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32 168.63.129.16/32 100.100.100.200/32 \
    ::/128 ::1/128 ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 \
    3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8";

fn bounds(range: Cidr) -> (IpAddr, IpAddr) {
    match range.network() {
        IpAddr::V4(first) => {
            let hosts = u32::MAX.checked_shr(u32::from(range.prefix_bits())).unwrap_or(0);
            (first.into(), Ipv4Addr::from_bits(first.to_bits() | hosts).into())
        }
        IpAddr::V6(first) => {
            let hosts = u128::MAX.checked_shr(u32::from(range.prefix_bits())).unwrap_or(0);
            (first.into(), Ipv6Addr::from_bits(first.to_bits() | hosts).into())
        }
    }
}

#[test]
fn every_specified_range_is_denied_at_both_ends() {
    let policy = PeerPolicy::new();
    for range in SPECIFIED.split_whitespace().map(cidr) {
        let (first, last) = bounds(range);
        for end in [first, last] {
            assert_ne!(policy.decide_ip(end, Ownership::Foreign), PeerDecision::Allowed, "{end} of {range}");
        }
    }
}

#[test]
fn the_open_internet_is_allowed_up_to_the_ranges() {
    let policy = PeerPolicy::new();
    for open in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.31.195.255",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "8.8.8.8",
        "2000::",
        "2001:200::1",
        "2001:db7:ffff::1",
        "2001:db9::",
        "2003::",
        "2606:4700::1111",
        "3ffe::1",
        "3fff:1000::",
        "3fff:ffff::",
    ] {
        assert_eq!(rule_of(&policy, open), None, "{open}");
    }
}

#[test]
fn case_a63_every_disguise_of_a_denied_address_is_denied() {
    let policy = PeerPolicy::new();
    for denied in [
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "169.254.169.254",
        "10.1.2.3",
        "192.168.0.1",
        "172.31.9.9",
        "100.100.100.200",
        "168.63.129.16",
    ] {
        let v4: Ipv4Addr = denied.parse().expect("an address");
        let bits = v4.to_bits();
        let (high, low) = (bits >> 16, bits & 0xFFFF);
        for disguise in [
            denied.to_string(),
            std::format!("::ffff:{denied}"),
            std::format!("::{denied}"),
            std::format!("::ffff:0:{denied}"),
            std::format!("64:ff9b::{denied}"),
            std::format!("2002:{high:x}:{low:x}::"),
            std::format!("2001:0:101:101::{:x}:{:x}", !high & 0xFFFF, !low & 0xFFFF),
            std::format!("2a00::5efe:{denied}"),
            std::format!("2a00::200:5efe:{denied}"),
        ] {
            assert!(rule_of(&policy, &disguise).is_some(), "{disguise} of {denied}");
        }
    }
    for denied in ["::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fec0::1", "ff02::1"] {
        assert!(rule_of(&policy, denied).is_some(), "{denied}");
    }
}

#[test]
fn opened_translation_prefixes_judge_what_they_embed() {
    let mut policy = PeerPolicy::new();
    for prefix in ["64:ff9b::/96", "::ffff:0:0/96", "::ffff:0:0:0/96"] {
        policy.allow(cidr(prefix));
    }
    assert_eq!(rule_of(&policy, "64:ff9b::8.8.8.8"), None);
    assert_eq!(rule_of(&policy, "64:ff9b::10.0.0.1").as_deref(), Some("deny 10.0.0.0/8 (built-in)"));
    assert_eq!(rule_of(&policy, "::ffff:127.0.0.1").as_deref(), Some("deny 127.0.0.0/8 (built-in)"));
    assert_eq!(rule_of(&policy, "::ffff:0:8.8.8.8"), None);
    assert_eq!(rule_of(&policy, "::ffff:0:127.0.0.1").as_deref(), Some("deny 127.0.0.0/8 (built-in)"));
    // ISATAP in a prefix that is otherwise open.
    assert_eq!(rule_of(&policy, "2a00::5efe:8.8.8.8"), None);
    assert_eq!(rule_of(&policy, "2a00::5efe:10.0.0.1").as_deref(), Some("deny 10.0.0.0/8 (built-in)"));
}

/// The table of RFC 6052 section 2.4, with 192.0.2.33 in every prefix length.
#[test]
fn the_ipv6_loopback_embeds_nothing_and_can_be_opened() {
    let mut policy = PeerPolicy::new();
    assert!(rule_of(&policy, "::1").is_some());
    policy.allow(cidr("::1/128"));
    assert_eq!(rule_of(&policy, "::1"), None);
    policy.allow(cidr("::/96"));
    assert_eq!(
        rule_of(&policy, "::2"),
        Some("deny 0.0.0.0/8 (built-in)".to_string()),
        "IPv4-compatible, and judged so"
    );
}

#[test]
fn configured_nat64_prefixes_of_every_length() {
    for (prefix, text) in [
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
    ] {
        let found = embedded_ipv4(ip(text), &[cidr(prefix)]);
        assert_eq!(found, Some(Ipv4Addr::new(192, 0, 2, 33)), "{prefix}");
    }
    let mut policy = PeerPolicy::new();
    policy.embed_nat64(cidr("2a00:64::/96"));
    assert_eq!(rule_of(&policy, "2a00:64::8.8.8.8"), None);
    assert_eq!(rule_of(&policy, "2a00:64::192.168.1.1").as_deref(), Some("deny 192.168.0.0/16 (built-in)"));
}

#[test]
fn case_a57_tunnels_stay_closed() {
    let mut policy = PeerPolicy::new();
    for range in ["2000::/3", "2001:db8::/32", "2002::/16", "2001::/32", "2002:808:808::1"] {
        policy.allow(cidr(range));
    }
    assert_eq!(rule_of(&policy, "2001:db8::1"), None);
    assert_eq!(rule_of(&policy, "2002:808:808::1").as_deref(), Some("deny 2002::/16 (RFC 8656 section 21.4)"));
    assert_eq!(rule_of(&policy, "2001:0:1::1").as_deref(), Some("deny 2001::/32 (RFC 8656 section 21.4)"));
    assert!(!policy.admits_client(ip("2002:808:808::1")) && policy.admits_client(ip("2001:db8::1")));
}

/// IANA has assigned 2000::/3 alone to global unicast.
#[test]
fn unassigned_ipv6_space_is_denied_until_it_is_allowed() {
    let mut policy = PeerPolicy::new();
    for closed in [
        "1fff:ffff::",
        "4000::1",
        "5eff:ffff::",
        "5f01::",
        "fbff:ffff::",
        "fe00::",
        "64:ff9c::",
        "64:ff9b:2::",
        "100:0:0:1::",
        "::1:0:0:1",
    ] {
        assert_eq!(rule_of(&policy, closed).as_deref(), Some("deny ::/0 (built-in)"), "{closed}");
    }
    policy.allow(cidr("4000::/8"));
    assert_eq!(rule_of(&policy, "4000::1"), None);
    assert_eq!(rule_of(&policy, "4100::1").as_deref(), Some("deny ::/0 (built-in)"));
}

/// The cases of the findings: a denial inside of an allowed range, and the other way round, in either order.
#[test]
fn the_most_specific_range_counts_and_on_a_tie_the_denial() {
    let with = |rules: &[(&str, bool)]| {
        let mut policy = PeerPolicy::new();
        for (range, allows) in rules {
            if *allows { policy.allow(cidr(range)) } else { policy.deny(cidr(range)) }
        }
        policy
    };
    for reversed in [false, true] {
        let ordered = |mut rules: Vec<(&'static str, bool)>| {
            if reversed {
                rules.reverse();
            }
            with(&rules)
        };
        let policy = ordered(std::vec![("10.0.0.0/8", true), ("10.0.0.5/32", false)]);
        assert_eq!(rule_of(&policy, "10.0.0.5").as_deref(), Some("deny 10.0.0.5/32"));
        assert_eq!((rule_of(&policy, "10.0.0.4"), rule_of(&policy, "10.0.0.6")), (None, None));
        let policy = ordered(std::vec![("10.0.0.0/8", true), ("10.1.0.0/16", false), ("10.1.2.0/24", true)]);
        assert_eq!(rule_of(&policy, "10.1.1.3").as_deref(), Some("deny 10.1.0.0/16"));
        assert_eq!((rule_of(&policy, "10.1.2.3"), rule_of(&policy, "10.2.2.3")), (None, None));
        let policy = ordered(std::vec![("8.8.0.0/16", false), ("8.8.8.8", true)]);
        assert_eq!(rule_of(&policy, "8.8.8.8"), None);
        assert_eq!(rule_of(&policy, "8.8.8.9").as_deref(), Some("deny 8.8.0.0/16"));
        let policy = ordered(std::vec![("192.168.0.0/16", true), ("192.168.0.0/16", false)]);
        assert_eq!(rule_of(&policy, "192.168.1.1").as_deref(), Some("deny 192.168.0.0/16"));
        // Between equal ranges the operator's counts, between others the more specific.
        let policy = ordered(std::vec![("0.0.0.0/0", true), ("127.0.0.0/8", true), ("::/0", true)]);
        assert_eq!((rule_of(&policy, "127.0.0.1"), rule_of(&policy, "4000::1")), (None, None));
        assert_eq!(rule_of(&policy, "10.0.0.1").as_deref(), Some("deny 10.0.0.0/8 (built-in)"));
        assert_eq!(rule_of(&policy, "100.100.100.200").as_deref(), Some("deny 100.100.100.200/32 (built-in)"));
        assert_eq!(rule_of(&policy, "fd00:ec2::254").as_deref(), Some("deny fc00::/7 (built-in)"));
    }
}

/// A datagram to 0.0.0.0 or to `::` reaches services of this host on loopback.
#[test]
fn this_host_on_this_network_stays_closed() {
    let mut policy = PeerPolicy::new();
    for range in ["0.0.0.0/0", "0.0.0.0/8", "0.0.0.0/32", "::/0", "::/96", "::/128", "::ffff:0:0/96"] {
        policy.allow(cidr(range));
    }
    for ownership in [Ownership::Foreign, Ownership::LiveRelay, Ownership::IdleRelay] {
        for closed in ["0.0.0.0", "0.255.255.255", "::", "::ffff:0.0.0.0", "::0.1.2.3"] {
            assert_ne!(policy.decide_ip(ip(closed), ownership), PeerDecision::Allowed, "{closed}");
        }
    }
}

#[test]
fn the_effective_table_covers_every_address_once() {
    let mut policy = PeerPolicy::new();
    policy.allow(cidr("10.1.0.0/16"));
    policy.deny(cidr("8.8.8.8"));
    let (v4, v6): (Vec<_>, Vec<_>) = policy.effective().partition(|stretch| stretch.first.is_ipv4());
    for (stretches, first, last) in
        [(&v4, "0.0.0.0", "255.255.255.255"), (&v6, "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]
    {
        let ends = stretches.first().zip(stretches.last()).map(|(head, tail)| (head.first, tail.last));
        assert_eq!(ends, Some((ip(first), ip(last))));
        for pair in stretches.windows(2) {
            let is_next = pair[0].last < pair[1].first || pair[0].ports.1 < pair[1].ports.0;
            assert!(is_next && pair[0].rule != pair[1].rule, "{pair:?}");
        }
        for stretch in stretches {
            // Each end decides as the table says; an embedded address or a closed range may deny more.
            for end in [stretch.first, stretch.last] {
                let decided = policy.decide_ip(end, Ownership::Foreign);
                assert!(decided == stretch.decision || decided != PeerDecision::Allowed, "{stretch:?}");
            }
        }
    }
    let of = |text: &str| v4.iter().find(|stretch| stretch.first == ip(text)).map(|found| (found.last, found.rule));
    assert_eq!(of("10.1.0.0"), Some((ip("10.1.255.255"), Some(Rule::Allowed(range("10.1.0.0/16"))))));
    assert_eq!(of("10.2.0.0"), Some((ip("10.255.255.255"), Some(Rule::BuiltIn(range("10.0.0.0/8"))))));
    assert_eq!(of("8.8.8.8"), Some((ip("8.8.8.8"), Some(Rule::Denied(range("8.8.8.8"))))));
}

#[test]
fn own_relays_are_reachable_while_they_live_and_listeners_never() {
    let mut policy = PeerPolicy::new();
    let listener: SocketAddr = "127.0.0.1:3478".parse().expect("an address");
    policy.deny_listener(listener);
    let relay: SocketAddr = "127.0.0.1:50000".parse().expect("an address");
    assert_eq!(policy.decide(relay, Ownership::LiveRelay), PeerDecision::Allowed);
    assert_eq!(policy.decide(relay, Ownership::IdleRelay), PeerDecision::Denied(OWN_RELAY));
    policy.allow(cidr("127.0.0.1"));
    assert_eq!(policy.decide(relay, Ownership::Foreign), PeerDecision::Allowed);
    assert_eq!(policy.decide(relay, Ownership::IdleRelay), PeerDecision::Denied(OWN_RELAY));
    policy.open_host(cidr("127.0.0.1"));
    assert_eq!(policy.decide(relay, Ownership::IdleRelay), PeerDecision::Allowed);
    assert!(matches!(policy.decide(listener, Ownership::Foreign), PeerDecision::Denied(_)));
    let mapped: SocketAddr = "[::ffff:127.0.0.1]:3478".parse().expect("an address");
    assert!(matches!(policy.decide(mapped, Ownership::Foreign), PeerDecision::Denied(_)));
    let closed: SocketAddr = "8.8.8.8:0".parse().expect("an address");
    assert_eq!(policy.decide(closed, Ownership::Foreign), PeerDecision::Denied(PORT_ZERO));
}

fn decide(policy: &PeerPolicy, text: &str) -> PeerDecision {
    policy.decide(text.parse().expect("an address and port"), Ownership::Foreign)
}

/// The own host is opened by its own rules only; the operator's denials count among those.
#[test]
fn own_addresses_are_denied_whatever_is_allowed() {
    let mut policy = PeerPolicy::new();
    for allowed in ["0.0.0.0/0", "10.0.0.5", "127.0.0.0/8", "10.0.0.5:80", "::1", "64:ff9b::/96", "2001:db8::5"] {
        policy.allow(range(allowed));
    }
    for own in ["10.0.0.5", "127.0.0.0/8", "::1", "2001:db8::5", "8.8.8.8"] {
        policy.close_host(range(own));
    }
    for closed in ["10.0.0.5", "127.0.0.1", "127.9.9.9", "::1", "64:ff9b::10.0.0.5", "2001:db8::5", "8.8.8.8"] {
        assert_eq!(rule_of(&policy, closed).as_deref(), Some("deny own host"), "{closed}");
        let peer = SocketAddr::new(ip(closed), 80);
        assert_eq!(policy.decide(peer, Ownership::Foreign), PeerDecision::Denied(OWN_HOST), "{closed}");
        let live = policy.decide(peer, Ownership::LiveRelay) == PeerDecision::Allowed;
        assert_eq!(live, !closed.starts_with("64:"), "a live relayed address: {closed}");
    }
    assert_eq!((rule_of(&policy, "9.9.9.9"), rule_of(&policy, "64:ff9b::9.9.9.9")), (None, None));
    policy.open_host(range("10.0.0.5:5000-5010"));
    policy.open_host(range("127.0.0.0/8"));
    policy.deny(range("127.0.0.1:53"));
    policy.deny(range("127.0.0.2"));
    for (peer, is_open) in [
        ("10.0.0.5:4999", false),
        ("10.0.0.5:5000", true),
        ("10.0.0.5:5010", true),
        ("10.0.0.5:5011", false),
        ("127.0.0.1:52", true),
        ("127.0.0.1:53", false),
        ("127.0.0.2:52", false),
        ("[::1]:5000", false),
    ] {
        assert_eq!(decide(&policy, peer) == PeerDecision::Allowed, is_open, "{peer}");
    }
    assert_eq!(rule_of(&policy, "10.0.0.5"), None, "one of its ports is open");
    assert!(policy.decides_by_port(ip("10.0.0.5")) && !policy.decides_by_port(ip("10.0.0.6")));
    let own: Vec<_> = policy.effective_host().filter(|stretch| stretch.first == ip("10.0.0.5")).collect();
    let ports: Vec<_> = own.iter().map(|stretch| (stretch.ports, stretch.rule)).collect();
    let allowed = Some(Rule::Allowed(range("10.0.0.5:5000-5010")));
    let closed = Some(Rule::OwnHost);
    assert_eq!(ports, [((0, 4_999), closed), ((5_000, 5_010), allowed), ((5_011, 65_535), closed)]);
    assert!(own.iter().all(|stretch| stretch.last == stretch.first));
}

/// Fewer addresses count before fewer ports; on a tie the denial counts.
#[test]
fn of_rules_with_ports_the_fewer_addresses_count_and_then_the_fewer_ports() {
    let rules: [(&str, bool); 8] = [
        ("10.0.0.0/8", true),
        ("10.0.0.0/8:0-1023", false),
        ("10.0.0.0/8:80", true),
        ("10.1.0.0/16", true),
        ("10.2.0.0/16:5000-6000", false),
        ("10.3.0.0-10.3.0.9:7000-7999", false),
        ("8.8.8.8:53", false),
        ("[2001:db8::/32]:443", true),
    ];
    for reversed in [false, true] {
        let mut policy = PeerPolicy::new();
        let ordered: Vec<_> = if reversed { rules.iter().rev().collect() } else { rules.iter().collect() };
        for (text, allows) in ordered {
            if *allows { policy.allow(range(text)) } else { policy.deny(range(text)) }
        }
        for (peer, rule) in [
            ("10.0.0.1:1023", Some("deny 10.0.0.0/8:0-1023")),
            ("10.0.0.1:1024", None),
            ("10.0.0.1:80", None),
            ("10.0.0.1:81", Some("deny 10.0.0.0/8:0-1023")),
            ("10.1.0.1:1000", None),
            ("10.2.0.1:1000", Some("deny 10.0.0.0/8:0-1023")),
            ("10.2.0.1:5000", Some("deny 10.2.0.0/16:5000-6000")),
            ("10.2.0.1:6001", None),
            ("10.3.0.9:7999", Some("deny 10.3.0.0-10.3.0.9:7000-7999")),
            ("10.3.0.10:7999", None),
            ("8.8.8.8:53", Some("deny 8.8.8.8/32:53")),
            ("8.8.8.8:54", None),
            ("[2001:db8::1]:443", None),
            ("[2001:db8::1]:444", Some("deny 2001:db8::/32 (built-in)")),
            ("[2002:a00:1::1]:80", Some("deny 2002::/16 (RFC 8656 section 21.4)")),
        ] {
            let denied = match decide(&policy, peer) {
                PeerDecision::Allowed => None,
                PeerDecision::Denied(index) => Some(policy.rules()[index.0].to_string()),
            };
            assert_eq!(denied.as_deref(), rule, "{peer}");
        }
        assert_eq!(rule_of(&policy, "8.8.8.8"), None, "a permission is for the address");
    }
    let mut policy = PeerPolicy::new();
    policy.allow(range("10.0.0.0/8:80"));
    policy.deny(range("10.0.0.0/8:80"));
    assert_ne!(decide(&policy, "10.0.0.1:80"), PeerDecision::Allowed);
    assert!(rule_of(&policy, "10.0.0.1").is_some(), "no port is open");
}

#[test]
fn peer_ranges_print_as_they_are_written() {
    for text in [
        "10.0.0.0/8",
        "10.0.0.1/32",
        "10.0.0.1-10.0.0.9",
        "10.0.0.0/8:0-1023",
        "10.0.0.1-10.0.0.9:53",
        "0.0.0.0/0",
        "::/0",
        "2001:db8::/32",
        "[2001:db8::/32]:0-1023",
        "2001:db8::1-2001:db8::ff",
        "[2001:db8::1-2001:db8::ff]:7",
    ] {
        assert_eq!(range(text).to_string(), text);
    }
    assert_eq!(range("10.0.0.1"), range("10.0.0.1/32"));
    assert_eq!(range("10.0.0.1/8"), range("10.0.0.0/8"));
    assert_eq!(range("10.0.0.0-10.0.0.255"), range("10.0.0.0/24"));
    assert_eq!(range("10.0.0.0/8:0-65535"), range("10.0.0.0/8"));
    for (text, error) in [
        ("", PeerRangeError::Address),
        ("10.0.0.0/33", PeerRangeError::Prefix),
        ("10.0.0.9-10.0.0.1", PeerRangeError::Order),
        ("10.0.0.9-2001:db8::1", PeerRangeError::Order),
        ("10.0.0.9:", PeerRangeError::Ports),
        ("10.0.0.9:2-1", PeerRangeError::Ports),
        ("10.0.0.9:65536", PeerRangeError::Ports),
        ("10.0.0.9:+1", PeerRangeError::Ports),
        ("[2001:db8::1]", PeerRangeError::Ports),
        ("[2001:db8::1", PeerRangeError::Address),
        ("ten", PeerRangeError::Address),
    ] {
        assert_eq!(text.parse::<PeerRange>(), Err(error), "{text}");
    }
}

#[test]
fn case_a64_a_range_is_what_lies_between_its_ends() {
    let mut state = 5u128;
    for prefix_bits in 0..=128u8 {
        state = state.wrapping_mul(0xDA94_2042_E4DD_58B5_DA94_2042_E4DD_58B5).wrapping_add(11);
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix_bits)).unwrap_or(0);
        let first = state & mask;
        let range = Cidr::new(Ipv6Addr::from_bits(first).into(), prefix_bits).expect("no host bits");
        let last = first | !mask;
        let candidates = [first.wrapping_sub(1), first, first + (last - first) / 2, last, last.wrapping_add(1)];
        let inside: Vec<bool> =
            candidates.iter().map(|bits| range.contains(Ipv6Addr::from_bits(*bits).into())).collect();
        let expected: Vec<bool> = candidates.iter().map(|bits| (first..=last).contains(bits)).collect();
        assert_eq!(inside, expected, "{range}");
    }
}

#[test]
fn cidr_faults() {
    assert_eq!("10.0.0.0/33".parse::<Cidr>(), Err(CidrError::Prefix));
    assert_eq!("10.0.0.1/8".parse::<Cidr>(), Err(CidrError::HostBits));
    assert_eq!("10.0.0/8".parse::<Cidr>(), Err(CidrError::Address));
    assert_eq!("10.0.0.0/".parse::<Cidr>(), Err(CidrError::Prefix));
    assert_eq!("10.0.0.0/+8".parse::<Cidr>(), Err(CidrError::Prefix));
}
