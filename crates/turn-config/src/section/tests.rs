use std::num::NonZero;

use super::*;

/// Every field has another value, so that two swapped fields are noticed.
#[test]
fn every_limit_of_streams_is_copied_to_its_own_field() {
    let section = StreamsSection {
        half_open_per_source: Some(11),
        connections_per_source: Some(12),
        connections_max: Some(13),
        handshakes_max: Some(33),
        handshake_threads: Some(34),
        proxy_header_s: Some(35),
        handshake_s: Some(14),
        first_message_s: Some(15),
        idle_s: Some(16),
        queue_bytes: Some(17),
        first_message_bytes: Some(18),
    };
    let expected = StreamLimits {
        half_open_per_source: 11,
        connections_per_source: 12,
        connections_max: 13,
        handshakes_max: 33,
        handshake_threads: 34,
        proxy_header_s: 35,
        handshake_s: 14,
        first_message_s: 15,
        idle_s: 16,
        queue_bytes: 17,
        first_message_bytes: 18,
    };
    assert_eq!(section.limits(), expected);
    assert_eq!(StreamsSection::from(expected), section);
    assert_eq!(StreamsSection::default().limits(), StreamLimits::default());
}

#[test]
fn balancers_are_addresses_or_networks() {
    let contain = |text: &str, ip: &str| text.parse::<Balancers>().unwrap().contain(ip.parse().unwrap());
    assert!(contain("192.0.2.10", "192.0.2.10") && contain("192.0.2.10", "::ffff:192.0.2.10"));
    assert!(!contain("192.0.2.10", "192.0.2.11") && !contain("192.0.2.10", "2001:db8::1"));
    assert!(contain("10.0.0.0/28", "10.0.0.15") && !contain("10.0.0.0/28", "10.0.0.16"));
    assert!(contain("2001:db8::/64", "2001:db8::9") && !contain("2001:db8::1", "2001:db8::9"));
    for false_text in ["", "balancer", "10.0.0.0/33", "192.0.2.10:80"] {
        assert!(false_text.parse::<Balancers>().is_err(), "{false_text}");
    }
}

#[test]
fn every_quota_is_copied_to_its_own_field() {
    let section = QuotasSection {
        user_allocations: NonZero::new(21),
        user_share_percent: Some(33),
        user_allocations_per_second: Some(34),
        user_allocations_burst: Some(35),
        user_bytes_per_second: NonZero::new(22),
        user_packets_per_second: NonZero::new(30),
        source_bytes_per_second: NonZero::new(36),
        source_packets_per_second: NonZero::new(37),
        allocation_bytes_per_second: NonZero::new(31),
        bytes_per_second: NonZero::new(32),
        permissions_per_allocation: NonZero::new(23),
        channels_per_allocation: NonZero::new(24),
        error_excess_bytes_per_second: Some(25),
        error_excess_bytes_per_source: Some(26),
        binding_replies_per_second: Some(27),
        binding_replies_burst: Some(28),
        ipv6_prefix_bits: Some(29),
    };
    let (quotas, caps) = (section.quotas(), section.caps());
    assert_eq!((quotas.allocations_per_user, quotas.bytes_per_second_per_user), (21, 22));
    assert_eq!(quotas.user_share_percent, 33);
    assert_eq!((quotas.bytes_per_second_per_source, quotas.packets_per_second_per_source), (36, 37));
    assert_eq!((quotas.user_allocation_rate.per_second, quotas.user_allocation_rate.burst), (34, 35));
    assert_eq!((quotas.packets_per_second_per_user, quotas.bytes_per_second_per_allocation), (30, 31));
    assert_eq!(quotas.bytes_per_second_total, 32);
    assert_eq!((caps.permissions, caps.channels), (23, 24));
    assert_eq!((quotas.error_excess.per_second, quotas.error_excess.burst), (25, 25));
    assert_eq!((quotas.error_excess_per_source.per_second, quotas.error_excess_per_source.burst), (26, 104));
    assert_eq!(quotas.ipv6_prefix_bits, 29);
    assert_eq!((quotas.binding_replies.per_second, quotas.binding_replies.burst), (27, 28));
    assert_eq!(QuotasSection::of(&quotas, caps), section);
}

#[test]
fn key_sources_name_a_flag_before_a_file_and_a_former_name_by_the_new_one() {
    let mut keys = KeySources::default();
    keys.set_place("relay_ip", 1, "a.toml, line 3".to_owned());
    keys.set_place("linger_us", 0, "a.toml, line 4".to_owned());
    assert_eq!(keys.name("relay_ip", 1), "a.toml, line 3: turn.relay_ip");
    assert_eq!(keys.name("relay_ip", 0), "turn.relay_ip");
    assert_eq!(keys.name("busy_poll_us", 0), "a.toml, line 4: turn.busy_poll_us");
    assert_eq!(keys.deprecated(), [("linger_us", "busy_poll_us")]);
    keys.set_flag("relay_ip");
    assert_eq!(keys.name("relay_ip", 1), "--relay-ip");
}
