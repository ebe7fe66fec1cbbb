//! Which peers can be reached: cases A57, A63 and A64, and what other servers had wrong here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::stage::{Caller, Stage, UDP};
use crate::wire::{self, ALLOCATE, CREATE_PERMISSION, PEER_ADDRESS};

/// IPv4 ranges that are closed by default, as the specification writes them.
const CLOSED_V4: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
    192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 \
    198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32 168.63.129.16/32 100.100.100.200/32";
const CLOSED_V6: &str = "::/128 ::1/128 ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 \
    2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8";

/// A client of a server that opens nothing, with an allocation of each family.
struct Scanner {
    stage: Stage,
    v4: Caller,
    v6: Caller,
}

impl Scanner {
    fn new(flags: &[&str]) -> Self {
        let relays = ["--relay-ip", "127.0.0.77", "--relay-ip", "::1"];
        let stage = Stage::closed(&[&relays[..], flags].concat());
        let (mut v4, mut v6) = (stage.caller(), stage.caller_v6());
        v4.allocate();
        v6.allocate();
        Self { stage, v4, v6 }
    }

    fn of(&mut self, ip: IpAddr) -> &mut Caller {
        if ip.is_ipv4() { &mut self.v4 } else { &mut self.v6 }
    }

    fn permit(&mut self, ip: IpAddr) -> u16 {
        self.of(ip).permit(SocketAddr::new(ip, 8_080))
    }

    /// Asserts that no verb reaches `ip`. The address of our own relays may have a permission, as other clients' relayed
    /// addresses are reached under it; its ports are judged where they are named.
    fn is_closed(&mut self, ip: IpAddr) {
        let peer = SocketAddr::new(ip, 8_080);
        let permitted = if ip == IpAddr::V6(Ipv6Addr::LOCALHOST) { 0 } else { 403 };
        let caller = self.of(ip);
        assert_eq!((caller.permit(peer), caller.bind(0x4000, peer)), (permitted, 403), "{ip}");
        let send = caller.send_indication(peer, b"x");
        caller.send(&send);
    }

    /// Asserts that each of the last `sends` Send indications was dropped, and that nothing left for a peer.
    fn end(self, sends: u64) {
        let drops = self.stage.ledger().drops;
        assert_eq!(drops["no_permission"] + drops["peer_denied"], sends, "{drops:?}");
        assert_eq!(self.stage.get("/api/v1/turn/allocations")["allocations"]["to_peers_bytes"], 0);
    }
}

fn ends(cidr: &str) -> [IpAddr; 2] {
    let (first, bits) = cidr.split_once('/').unwrap();
    let bits: u32 = bits.parse().unwrap();
    match first.parse().unwrap() {
        IpAddr::V4(first) => {
            let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
            [first.into(), Ipv4Addr::from_bits(first.to_bits() | hosts).into()]
        }
        IpAddr::V6(first) => {
            let hosts = u128::MAX.checked_shr(bits).unwrap_or(0);
            [first.into(), Ipv6Addr::from_bits(first.to_bits() | hosts).into()]
        }
    }
}

/// The forms in which an IPv4 address hides in IPv6.
fn disguises(v4: Ipv4Addr) -> [IpAddr; 7] {
    let [a, b, c, d] = v4.octets().map(u16::from);
    let (high, low) = (a << 8 | b, c << 8 | d);
    [
        Ipv6Addr::new(0, 0, 0, 0, 0, 0xFFFF, high, low),
        Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0, 0, 0, 0, 0xFFFF, 0, high, low),
        Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 0),
        Ipv6Addr::new(0x2001, 0, 0x101, 0x101, 0, 0, !high, !low),
        Ipv6Addr::new(0x2A00, 0, 0, 0, 0, 0x5EFE, high, low),
    ]
    .map(IpAddr::V6)
}

#[test]
fn case_a63_closed_peers_in_every_disguise() {
    let mut scanner = Scanner::new(&[]);
    let mut sends = 0;
    for closed in [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "169.254.169.254",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
    ] {
        let v4: Ipv4Addr = closed.parse().unwrap();
        for form in [IpAddr::V4(v4)].into_iter().chain(disguises(v4)) {
            scanner.is_closed(form);
            sends += 1;
        }
    }
    let closed = "::,::1,fe80::1,febf::1,fc00::1,fd00:ec2::254,fd20:ce::254,fec0::1,ff02::1,4000::1,1fff::1";
    for closed in closed.split(',') {
        scanner.is_closed(closed.parse().unwrap());
        sends += 1;
    }
    scanner.end(sends);
}

/// A mapped address as the IPv4 allocation's peer: the attribute says IPv6, and so the family does not fit.
#[test]
fn case_a63_disguised_peers_of_an_ipv4_allocation() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    caller.allocate();
    for form in disguises(Ipv4Addr::LOCALHOST) {
        let request = caller.request(CREATE_PERMISSION).address(PEER_ADDRESS, SocketAddr::new(form, 9));
        let code = caller.ask(request).code();
        assert!(matches!(code, 403 | 443), "{code} for {form}");
    }
    stage.probe();
}

/// Even where loopback is opened, the server's own ports and unused relay ports stay closed.
#[test]
fn case_a63_our_own_listeners_and_idle_relays() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    for listener in stage.server.listen.clone().into_iter().filter(SocketAddr::is_ipv4) {
        assert_eq!(caller.bind(0x4000, listener), 403, "{listener}");
        assert_eq!(caller.permit(listener), 0, "a permission is for an address, and this one is opened");
        let send = caller.send_indication(listener, b"\0\x01\0\0!\x12\xA4Btwelve bytes");
        stage.dropped(&caller, &["peer_denied"], &[send]);
    }
    stage.probe();
    // Where it is not opened, the address of our relays is no peer but for live relayed addresses.
    let stage = Stage::closed(&[]);
    let (mut one, mut two) = (stage.caller(), stage.caller());
    let (first, second) = (one.allocate(), two.allocate());
    assert_eq!(one.bind(0x4000, second), 0);
    for port in [1, 22, 3_478, 8_080, 49_151, 49_152, 65_535]
        .into_iter()
        .filter(|port| ![first.port(), second.port()].contains(port))
    {
        assert_eq!(one.bind(0x4001, SocketAddr::new(relayed.ip(), port)), 403, "{port}");
    }
    assert_eq!(two.refresh(0), 0);
    assert_eq!(two.bind(0x4000, first), 437);
    let mut third = stage.caller();
    third.allocate();
    assert_eq!(third.bind(0x4000, second), 403, "it is unused now");
}

/// What a client finds who asks for everything that is closed: the networks behind the server, and cloud metadata.
#[test]
fn a_scan_of_every_closed_range_finds_nothing() {
    let mut scanner = Scanner::new(&[]);
    let mut state = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835u128;
    let mut sends = 0;
    for range in CLOSED_V4.split_whitespace().chain(CLOSED_V6.split_whitespace()) {
        let [first, last] = ends(range);
        let inside = |state: u128| match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                let hosts = last.to_bits() - first.to_bits();
                IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() | (state >> 64) as u32 & hosts))
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                let hosts = last.to_bits() - first.to_bits();
                IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() | state & hosts))
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => unreachable!("one family"),
        };
        let drawn = (0..20).map(|_| {
            state = state.wrapping_mul(0xDA94_2042_E4DD_58B5_DA94_2042_E4DD_58B5).wrapping_add(11);
            inside(state)
        });
        for ip in [first, last].into_iter().chain(drawn.collect::<Vec<_>>()) {
            scanner.is_closed(ip);
            sends += 1;
        }
    }
    scanner.end(sends);
}

#[test]
fn case_a64_a_range_contains_its_ends_and_nothing_else() {
    // 2001:db8::5 to 2001:db8:0:1::3 in prefixes, in a neighbourhood that is otherwise open.
    let mut prefixes = Vec::new();
    let last = "2a00:db8:0:1::3".parse::<Ipv6Addr>().unwrap().to_bits();
    let mut next = "2a00:db8::5".parse::<Ipv6Addr>().unwrap().to_bits();
    while next <= last {
        let mut size = next.trailing_zeros();
        while next + ((1u128 << size) - 1) > last {
            size -= 1;
        }
        prefixes.push(format!("{}/{}", Ipv6Addr::from_bits(next), 128 - size));
        next += 1u128 << size;
    }
    let flags: Vec<_> = prefixes.iter().flat_map(|prefix| ["--deny-peer", prefix]).collect();
    let mut scanner = Scanner::new(&flags);
    for (ip, code) in [
        ("2a00:db8::4", 0),
        ("2a00:db8::5", 403),
        ("2a00:db8::6", 403),
        ("2a00:db8::ff00", 403),
        ("2a00:db8:0:0:8000::", 403),
        ("2a00:db8:0:0:ffff:ffff:ffff:ffff", 403),
        ("2a00:db8:0:1::", 403),
        ("2a00:db8:0:1::2", 403),
        ("2a00:db8:0:1::3", 403),
        ("2a00:db8:0:1::4", 0),
        ("2a00:db7:ffff:ffff:ffff:ffff:ffff:ffff", 0),
        ("2a00:db8:0:2::", 0),
    ] {
        assert_eq!(scanner.permit(ip.parse().unwrap()), code, "{ip}");
    }
}

#[test]
fn case_a57_peers_in_tunnels() {
    // Allowed explicitly, but still denied: RFC 8656 section 21.4 leaves no choice.
    let mut scanner = Scanner::new(&["--allow-peer", "2001::/32", "--allow-peer", "2002::/16"]);
    for tunnel in ["2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1", "2002::"] {
        scanner.is_closed(tunnel.parse().unwrap());
    }
    scanner.end(4);
}

#[test]
fn what_is_opened_is_reached_and_its_neighbours_are_not() {
    let mut scanner = Scanner::new(&["--allow-peer", "10.1.0.0/16", "--deny-peer", "8.8.8.0/24"]);
    for (ip, code) in [
        ("10.1.0.0", 0),
        ("10.1.255.255", 0),
        ("10.0.255.255", 403),
        ("10.2.0.0", 403),
        ("8.8.7.255", 0),
        ("8.8.8.0", 403),
        ("8.8.8.255", 403),
        ("8.8.9.0", 0),
        ("2a00::5efe:10.1.0.1", 0),
        ("2a00::5efe:10.2.0.1", 403),
        ("2606:4700::1111", 0),
    ] {
        assert_eq!(scanner.permit(ip.parse().unwrap()), code, "{ip}");
    }
    let request = scanner.v4.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    assert_eq!(scanner.v4.ask(request).code(), 437);
}
