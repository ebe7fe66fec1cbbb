//! Messages as `linux/rtnetlink.h`, `if_link.h`, `neighbour.h` and `fib_rules.h` define them, byte by byte.

use netlink_packet_core::Parseable as _;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::RuleMessage;

use super::*;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

/// `struct rtmsg`: family, prefix lengths, type of service, table, protocol, scope, kind, flags.
fn route(header: [u8; 8], flags: u32, attributes: &[Vec<u8>]) -> Option<Route> {
    let bytes = [&header[..], &flags.to_ne_bytes(), &attributes.concat()].concat();
    Route::read(&RouteMessage::parse(&bytes[..]).unwrap())
}

#[test]
fn every_part_of_a_route_is_read() {
    let metrics = [number(2, 1400), number(8, 7)].concat();
    let attributes = [
        attribute(1, &[10, 3, 0, 0]),
        number(4, 17),
        attribute(5, &[10, 92, 0, 1]),
        number(6, 42),
        attribute(8, &metrics),
        number(15, 70_000),
    ];
    let found = route([AF_INET, 16, 0, 8, 252, 4, 0, 1], 0, &attributes).unwrap();
    let expected = Route {
        family: IpFamily::V4,
        kind: RouteType::Unicast,
        prefix: Prefix { address: [10, 3, 0, 0].into(), len: 16 },
        table: 70_000,
        metric: 42,
        tos: 8,
        ifindex: Some(17),
        gateway: Some([10, 92, 0, 1].into()),
        mtu: Some(1400),
        refusal: None,
        is_cloned: false,
    };
    assert_eq!(found, expected);
    assert!(!found.is_in_main());
}

#[test]
fn a_default_route_of_ipv6_is_read() {
    let gateway: IpAddr = "fe80::1".parse().unwrap();
    let IpAddr::V6(octets) = gateway else { panic!("a link-local address") };
    let found = route([AF_INET6, 0, 0, 0, 254, 9, 0, 1], 0, &[attribute(5, &octets.octets())]).unwrap();
    assert_eq!((found.family, found.prefix.len, found.gateway), (IpFamily::V6, 0, Some(gateway)));
    assert_eq!((found.prefix.address, found.mtu), (IpAddr::from([0; 16]), None));
    assert!(found.is_in_main());
    let cloned = route([AF_INET6, 0, 0, 0, 254, 9, 0, 1], 0x200, &[]).unwrap();
    assert!(cloned.is_cloned && !cloned.is_in_main());
}

#[test]
fn an_ipv4_route_may_have_a_gateway_of_ipv6() {
    let via =
        [&u16::from(AF_INET6).to_ne_bytes()[..], &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]].concat();
    let found = route([AF_INET, 0, 0, 0, 254, 4, 0, 1], 0, &[attribute(18, &via)]).unwrap();
    assert_eq!(found.gateway, Some("fe80::7".parse().unwrap()));
    let of_no_family = attribute(18, &[&99_u16.to_ne_bytes()[..], &[0; 4]].concat());
    assert_eq!(route([AF_INET, 0, 0, 0, 254, 4, 0, 1], 0, &[of_no_family]), None);
}

#[test]
fn routes_that_are_more_than_one_hop_are_refused() {
    let next_hop = [&8_u16.to_ne_bytes()[..], &[0, 0], &17_u32.to_ne_bytes()].concat();
    for (attribute, refusal) in [
        (attribute(9, &[next_hop.clone(), next_hop].concat()), Refusal::Multipath),
        (number(30, 5), Refusal::NexthopObject),
        (attribute(21, &1_u16.to_ne_bytes()), Refusal::Encapsulated),
    ] {
        let found = route([AF_INET, 0, 0, 0, 254, 4, 0, 1], 0, &[attribute]).unwrap();
        assert_eq!(found.refusal, Some(refusal));
    }
    assert_eq!(route([7, 0, 0, 0, 254, 4, 0, 1], 0, &[]), None, "neither IPv4 nor IPv6");
}

#[test]
fn a_prefix_contains_the_addresses_that_begin_with_it() {
    let prefix = |text: &str, len| Prefix { address: text.parse().unwrap(), len };
    let contains = |prefix: Prefix, text: &str| prefix.contains(text.parse().unwrap());
    for (prefix, inside, outside) in [
        (prefix("10.128.0.0", 9), "10.255.255.255", "10.127.255.255"),
        (prefix("10.1.2.3", 32), "10.1.2.3", "10.1.2.2"),
        (prefix("0.0.0.0", 0), "255.255.255.255", "::"),
        (prefix("2001:db8::", 33), "2001:db8:7fff::1", "2001:db8:8000::"),
        (prefix("2001:db8::1", 128), "2001:db8::1", "2001:db8::"),
        (prefix("::", 0), "ffff::", "1.2.3.4"),
    ] {
        assert!(contains(prefix, inside) && !contains(prefix, outside), "{prefix:?}");
    }
}

/// `struct ifinfomsg`: family, padding, type, index, flags, change.
fn link(kind: u16, flags: u32, attributes: &[Vec<u8>]) -> Link {
    let words = [&17_u32.to_ne_bytes()[..], &flags.to_ne_bytes(), &[0; 4]].concat();
    let bytes = [&[0, 0][..], &kind.to_ne_bytes(), &words, &attributes.concat()].concat();
    Link::read(&LinkMessage::parse(&bytes).unwrap())
}

#[test]
fn an_interface_is_usable_only_if_it_is_ethernet_and_up() {
    const UP: u32 = 1 | 1 << 16;
    let mut settings = vec![0; 4 * 60];
    // DEVCONF_MTU6 is the third.
    settings[8..12].copy_from_slice(&1280_u32.to_ne_bytes());
    let families = attribute(26, &attribute(u16::from(AF_INET6), &attribute(2, &settings)));
    let attributes = [attribute(1, &MAC), number(4, 1500), families];
    let judge = |kind, flags| link(kind, flags, &attributes).judge(IpFamily::V4);
    assert_eq!(judge(1, UP), Ok((MAC, 1500)));
    assert_eq!(link(1, UP, &attributes).judge(IpFamily::V6), Ok((MAC, 1280)));
    assert_eq!(link(1, UP, &attributes[..2]).judge(IpFamily::V6), Ok((MAC, 1500)));
    assert_eq!(judge(1, 1), Err(Refusal::LinkDown), "no carrier");
    assert_eq!(judge(1, 1 << 16), Err(Refusal::LinkDown));
    assert_eq!(judge(772, UP | 8), Err(Refusal::Loopback));
    assert_eq!(judge(768, UP), Err(Refusal::NotEthernet), "a tunnel");
    assert_eq!(judge(1, UP | 1 << 7), Err(Refusal::NotEthernet), "NOARP");
    assert_eq!(link(1, UP, &attributes[1..]).judge(IpFamily::V4), Err(Refusal::NotEthernet), "no address");
}

fn neighbour(family: u8, state: u16, attributes: &[Vec<u8>]) -> Option<(u32, IpAddr, Neighbour)> {
    flagged_neighbour(family, state, 0, attributes)
}

/// `struct ndmsg`: family, padding, index, state, flags, type.
fn flagged_neighbour(family: u8, state: u16, flags: u8, attributes: &[Vec<u8>]) -> Option<(u32, IpAddr, Neighbour)> {
    let header = [&[family, 0, 0, 0][..], &17_u32.to_ne_bytes(), &state.to_ne_bytes(), &[flags, 1]].concat();
    let bytes = [header, attributes.concat()].concat();
    Neighbour::read(&NeighbourMessage::parse(&bytes[..]).unwrap())
}

#[test]
fn a_neighbour_is_usable_when_the_kernel_would_send_to_it() {
    let attributes = [attribute(1, &[10, 92, 0, 1]), attribute(2, &MAC)];
    let judge = |state, confirmation| neighbour(AF_INET, state, &attributes).unwrap().2.judge(confirmation);
    let (failed, stale) = (Err(Refusal::NeighbourFailed), Err(Refusal::NeighbourStale));
    // NUD_NONE, INCOMPLETE, REACHABLE, STALE, DELAY, PROBE, FAILED, NOARP, PERMANENT, and none of these.
    for (state, asked, denied, ages) in [
        (0, failed, failed, false),
        (1, failed, failed, false),
        (2, Ok(MAC), Ok(MAC), true),
        (4, Ok(MAC), stale, true),
        (8, Ok(MAC), Ok(MAC), true),
        (16, Ok(MAC), Ok(MAC), true),
        (32, failed, failed, false),
        (64, Ok(MAC), Ok(MAC), false),
        (128, Ok(MAC), Ok(MAC), false),
        (256, failed, failed, false),
    ] {
        assert_eq!(judge(state, Confirmation::Asked), asked, "{state}");
        assert_eq!(judge(state, Confirmation::Denied), denied, "{state}");
        assert_eq!(neighbour(AF_INET, state, &attributes).unwrap().2.ages(), ages, "{state}");
    }
    let (ifindex, address, found) = neighbour(AF_INET, 2, &attributes[..1]).unwrap();
    assert_eq!((ifindex, address), (17, [10, 92, 0, 1].into()));
    assert_eq!(found.judge(Confirmation::Asked), Err(Refusal::NeighbourFailed), "no Ethernet address");
    let address: IpAddr = "2001:db8::1".parse().unwrap();
    let IpAddr::V6(octets) = address else { panic!("an address of IPv6") };
    assert_eq!(neighbour(AF_INET6, 2, &[attribute(1, &octets.octets())]).unwrap().1, address);
    assert_eq!(neighbour(7, 2, &[attribute(2, &MAC)]), None, "an entry of a bridge");
}

#[test]
fn an_entry_that_a_daemon_or_the_kernel_manages_is_left_alone() {
    let attributes = [attribute(1, &[10, 92, 0, 1]), attribute(2, &MAC)];
    // NTF_EXT_LEARNED, NTF_ROUTER; NDA_FLAGS_EXT with NTF_EXT_MANAGED, NTF_EXT_LOCKED.
    let ages = |flags, more: &[Vec<u8>]| {
        let (.., found) = flagged_neighbour(AF_INET, 4, flags, &[&attributes[..], more].concat()).unwrap();
        assert_eq!(found.judge(Confirmation::Asked), Ok(MAC));
        found.ages()
    };
    assert_eq!([ages(0x10, &[]), ages(0x80, &[])], [false, true]);
    assert_eq!([ages(0, &[number(15, 1)]), ages(0, &[number(15, 2)])], [false, true]);
}

/// `struct fib_rule_hdr`: family, lengths, type of service, table, reserved, action, flags.
fn rule(header: [u8; 8], flags: u32, attributes: &[Vec<u8>]) -> Option<(u32, u32)> {
    let bytes = [&header[..], &flags.to_ne_bytes(), &attributes.concat()].concat();
    standard_rule(&RuleMessage::parse(&bytes[..]).unwrap())
}

#[test]
fn a_rule_with_any_condition_is_not_standard() {
    let main = [number(15, 254), number(14, u32::MAX), attribute(21, &[2]), number(6, 32_766)];
    let with = |attribute: Vec<u8>| rule([AF_INET, 0, 0, 0, 254, 0, 0, 1], 0, &[&main[..], &[attribute]].concat());
    assert_eq!(rule([AF_INET, 0, 0, 0, 254, 0, 0, 1], 1, &main), Some((32_766, 254)));
    assert_eq!(rule([AF_INET, 0, 0, 0, 255, 0, 0, 1], 0, &main[1..3]), Some((0, 255)));
    for (header, flags) in [
        ([AF_INET, 8, 0, 0, 254, 0, 0, 1], 0),
        ([AF_INET, 0, 8, 0, 254, 0, 0, 1], 0),
        ([AF_INET, 0, 0, 8, 254, 0, 0, 1], 0),
        ([AF_INET, 0, 0, 0, 254, 0, 0, 6], 0),
        ([AF_INET, 0, 0, 0, 254, 0, 0, 1], 2),
    ] {
        assert_eq!(rule(header, flags, &main), None, "{header:?} {flags}");
    }
    // Mark, interface, suppressed prefix length, VRF, ports, and an attribute of a later kernel.
    for condition in
        [number(10, 1), attribute(3, b"lo\0"), number(14, 0), attribute(19, &[1]), number(23, 1), number(200, 1)]
    {
        assert_eq!(with(condition.clone()), None, "{condition:?}");
    }
}

#[test]
fn only_the_rules_of_a_fresh_kernel_are_standard() {
    let [local, main, default] = [Some((0, 255)), Some((32_766, 254)), Some((32_767, 253))];
    assert!(are_standard(IpFamily::V4, &[local, main, default]) && are_standard(IpFamily::V6, &[local, main]));
    for rules in [&[local, main][..], &[main, default], &[local, main, None], &[local, main, default, None], &[]] {
        assert!(!are_standard(IpFamily::V4, rules), "{rules:?}");
    }
    assert!(!are_standard(IpFamily::V6, &[local, main, default]) && !are_standard(IpFamily::V6, &[local]));
}
