//! The peer policy: any list of ranges, any address, judged as the published list and order say.

use std::net::{IpAddr, SocketAddr};

use tt_turn::policy::{Cidr, CidrError, Ownership, PeerDecision, PeerPolicy, PeerRange, Rule, embedded_ipv4};

use crate::choices::Choices;
use crate::peer_ranges;

/// IANA's special-purpose registries, multicast, and clouds' metadata, as they are published.
const DENIED: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
    192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 \
    198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32 168.63.129.16/32 100.100.100.200/32 \
    ::/128 ::1/128 ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 \
    3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8";
/// Refused whatever the operator opens (RFC 8656 section 21.4).
const TUNNELS: [&str; 2] = ["2002::/16", "2001::/32"];
/// Starts of addresses that embed another one, and of ranges with an end worth trying.
const STARTS: [u128; 12] = [
    0,
    0xFFFF << 32,
    0x2002 << 112,
    0x2001 << 112,
    0x0064_FF9B << 96,
    0x0064_FF9B_0001 << 80,
    0xFE80 << 112,
    0x0200_5EFE << 32 | 0xFE80 << 112,
    0x2001_0DB8 << 96,
    0xFC00 << 112,
    0x2600 << 112,
    0x0000_5EFE << 32 | 0x2600 << 112,
];

/// A range as its first bits.
#[derive(Clone, Debug)]
struct Bits(String, bool);

fn bits_of(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => format!("{:032b}", u32::from(ip)),
        IpAddr::V6(ip) => format!("{:0128b}", u128::from(ip)),
    }
}

impl Bits {
    fn new(ip: IpAddr, length: usize) -> Self {
        Self(bits_of(ip)[..length].to_owned(), ip.is_ipv4())
    }

    fn parse(text: &str) -> Self {
        let (ip, length) = text.split_once('/').expect("a slash");
        Self::new(ip.parse().expect("an address"), length.parse().expect("a length"))
    }

    fn holds(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.1 && bits_of(ip).starts_with(&self.0)
    }
}

/// The operator's ranges.
#[derive(Debug, Default)]
struct Lists {
    allowed: Vec<Bits>,
    denied: Vec<Bits>,
    nat64: Vec<Bits>,
    listeners: Vec<SocketAddr>,
}

/// Makes a policy of `data`, and asks it about addresses of `data`.
pub fn run(data: &[u8]) {
    texts(data);
    peer_ranges::run(data);
    let mut choices = Choices(data);
    let (mut policy, mut lists) = (PeerPolicy::new(), Lists::default());
    for _ in 0..choices.byte() % 8 {
        add(&mut choices, &mut policy, &mut lists);
    }
    table(&policy);
    for _ in 0..64 {
        if choices.is_spent() {
            break;
        }
        decide(&mut choices, &policy, &lists);
    }
}

/// The effective table has every address once, in order, and denies none that the policy allows.
fn table(policy: &PeerPolicy) {
    assert!(policy.rules().iter().all(|rule| !rule.to_string().is_empty()));
    let stretches: Vec<_> = policy.effective().collect();
    for is_ipv4 in [true, false] {
        let mut next = Some(0_u128);
        for stretch in stretches.iter().filter(|stretch| stretch.first.is_ipv4() == is_ipv4) {
            let [first, last] =
                [stretch.first, stretch.last].map(|ip| u128::from_str_radix(&bits_of(ip), 2).expect("bits"));
            assert!(next == Some(first) && first <= last && stretch.last.is_ipv4() == is_ipv4, "{stretch:?}");
            let most = if is_ipv4 { u128::from(u32::MAX) } else { u128::MAX };
            next = (last < most).then(|| last + 1);
            for ip in [stretch.first, stretch.last] {
                let is_denied = matches!(policy.decide_ip(ip, Ownership::Foreign), PeerDecision::Denied(_));
                assert!(is_denied || stretch.decision == PeerDecision::Allowed, "{ip}: {stretch:?}");
            }
        }
        assert_eq!(next, None, "the table ends before the last address");
    }
}

/// A CIDR's text: what is taken means what it says, and is printed as it was meant.
fn texts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(&data[..data.len().min(64)]) else { return };
    match text.parse::<PeerRange>() {
        Ok(range) => assert_eq!(range.to_string().parse::<PeerRange>(), Ok(range), "{text}"),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
    match text.parse::<Cidr>() {
        Ok(range) => {
            let printed = range.to_string();
            assert_eq!(printed.parse::<Cidr>(), Ok(range), "{text}");
            let length =
                text.split_once('/').map_or(range.prefix_bits(), |(_, length)| length.parse().expect("digits"));
            let ip: IpAddr = text.split('/').next().unwrap_or("").parse().expect("an address");
            assert_eq!((range.network(), range.prefix_bits()), (ip, length));
        }
        Err(fault) => {
            assert!(!fault.to_string().is_empty());
            let (ip, length) = text.split_once('/').unwrap_or((text, ""));
            match (ip.parse::<IpAddr>(), fault) {
                (Err(_), CidrError::Address) | (Ok(_), CidrError::Prefix) => {}
                (Ok(ip), CidrError::HostBits) => {
                    let length: usize = length.parse().expect("digits");
                    assert!(bits_of(ip)[length..].contains('1'), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}

fn add(choices: &mut Choices<'_>, policy: &mut PeerPolicy, lists: &mut Lists) {
    let what = choices.byte() % 4;
    let ip = address(choices);
    let width = if ip.is_ipv4() { 32 } else { 128 };
    let mut length = usize::from(choices.byte()) % (width + 2);
    if what == 2 {
        length = [32, 40, 48, 56, 64, 96][length % 6];
    }
    if what == 3 {
        let listener = SocketAddr::new(ip, choices.word());
        policy.deny_listener(listener);
        lists.listeners.push(SocketAddr::new(ip.to_canonical(), listener.port()));
        return;
    }
    if length > width {
        assert_eq!(Cidr::new(ip, length as u8), Err(CidrError::Prefix));
        return;
    }
    let bits = Bits::new(ip, length);
    let network = network(&bits);
    if network != ip {
        assert_eq!(Cidr::new(ip, length as u8), Err(CidrError::HostBits));
    }
    let range = Cidr::new(network, length as u8).expect("no bits behind the prefix");
    match what {
        0 => {
            policy.allow(range);
            lists.allowed.push(bits);
        }
        1 => {
            policy.deny(range);
            lists.denied.push(bits);
        }
        _ if network.is_ipv6() => {
            policy.embed_nat64(range);
            lists.nat64.push(bits);
        }
        _ => {}
    }
}

/// The first address of a range.
fn network(bits: &Bits) -> IpAddr {
    if bits.1 {
        IpAddr::from(u32::from_str_radix(&format!("{:0<32}", bits.0), 2).expect("bits").to_be_bytes())
    } else {
        IpAddr::from(u128::from_str_radix(&format!("{:0<128}", bits.0), 2).expect("bits").to_be_bytes())
    }
}

fn address(choices: &mut Choices<'_>) -> IpAddr {
    match choices.byte() % 3 {
        0 => IpAddr::from(choices.double().to_be_bytes()),
        1 => {
            let tail = u128::from(choices.double()) << (8 * (choices.byte() % 11));
            IpAddr::from((*choices.of(&STARTS) | tail).to_be_bytes())
        }
        _ => {
            let ranges: Vec<_> = DENIED.split_whitespace().collect();
            let range = Bits::parse(choices.of::<&str>(&ranges));
            let (first, past) = (network(&range), choices.byte() % 2);
            let last = |width: usize| format!("{:1<width$}", range.0);
            match (first, choices.byte() % 2) {
                (IpAddr::V4(ip), 0) => IpAddr::from(u32::from(ip).wrapping_sub(past.into()).to_be_bytes()),
                (IpAddr::V6(ip), 0) => IpAddr::from(u128::from(ip).wrapping_sub(past.into()).to_be_bytes()),
                (IpAddr::V4(_), _) => {
                    let last = u32::from_str_radix(&last(32), 2).expect("bits");
                    IpAddr::from(last.wrapping_add(past.into()).to_be_bytes())
                }
                (IpAddr::V6(_), _) => {
                    let last = u128::from_str_radix(&last(128), 2).expect("bits");
                    IpAddr::from(last.wrapping_add(past.into()).to_be_bytes())
                }
            }
        }
    }
}

fn decide(choices: &mut Choices<'_>, policy: &PeerPolicy, lists: &Lists) {
    let mut peer = SocketAddr::new(address(choices), choices.word());
    if let Some(listener) = lists.listeners.first().filter(|_| choices.byte().is_multiple_of(8)) {
        peer = *listener;
    }
    let ownership = *choices.of(&[Ownership::Foreign, Ownership::LiveRelay, Ownership::IdleRelay]);
    let inner = embedded(peer.ip(), lists);
    let nat64: Vec<Cidr> = lists
        .nat64
        .iter()
        .map(|bits| Cidr::new(network(bits), bits.0.len() as u8).expect("no bits behind the prefix"))
        .collect();
    assert_eq!(embedded_ipv4(peer.ip(), &nat64).map(IpAddr::V4), inner, "{peer}");
    let is_open = |ip, ownership| {
        let longest = |list: &[Bits]| list.iter().filter(|range| range.holds(ip)).map(|range| range.0.len()).max();
        let published = |text: &str| longest(&text.split_whitespace().map(Bits::parse).collect::<Vec<_>>());
        if published("2002::/16 2001::/32 0.0.0.0/8 ::/128").is_some() {
            return false;
        }
        let (allowed, denied) = (longest(&lists.allowed), longest(&lists.denied));
        let operator = allowed.max(denied).map(|length| (length, allowed > denied));
        match ownership {
            Ownership::LiveRelay => operator.is_none_or(|(_, allows)| allows),
            // A port of this host: `allow_peer` does not open it.
            Ownership::IdleRelay => false,
            Ownership::Foreign => {
                let (open, closed) = (published("0.0.0.0/0 2000::/3"), published(&format!("::/0 {DENIED}")));
                match operator {
                    Some((length, allows)) if Some(length) >= open.max(closed) => allows,
                    Some(_) | None => open > closed,
                }
            }
        }
    };
    let expected = is_open(peer.ip(), ownership) && inner.is_none_or(|ip| is_open(ip, Ownership::Foreign));
    let judged = policy.decide_ip(peer.ip(), ownership);
    assert_eq!(judged == PeerDecision::Allowed, expected, "{peer} {ownership:?} {lists:?}");
    if let PeerDecision::Denied(index) = judged {
        names(&policy.rules()[index.0], peer.ip(), inner);
    }
    let canonical = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let port_is_open = peer.port() != 0 && !lists.listeners.contains(&canonical);
    assert_eq!(policy.decide_port(peer) == PeerDecision::Allowed, port_is_open, "{peer}");
    assert_eq!(policy.decide(peer, ownership) == PeerDecision::Allowed, expected && port_is_open, "{peer}");
    assert_eq!(policy.decides_by_port(peer.ip()), lists.listeners.iter().any(|one| one.ip() == canonical.ip()));
    let admits = !TUNNELS.iter().any(|range| Bits::parse(range).holds(peer.ip()));
    assert_eq!(policy.admits_client(peer.ip()), admits);
}

/// The rule that is named holds the address, or the one inside of it.
fn names(rule: &Rule, ip: IpAddr, inner: Option<IpAddr>) {
    assert!(!rule.to_string().is_empty());
    match rule {
        Rule::Denied(range) | Rule::BuiltIn(range) | Rule::Tunnel(range) => {
            assert!(range.contains(ip) || inner.is_some_and(|ip| range.contains(ip)), "{rule} for {ip}");
        }
        Rule::OwnRelay | Rule::OwnHost => {}
        Rule::Allowed(_) | Rule::Listener(_) | Rule::PortZero => panic!("{rule} for {ip}"),
    }
}

/// The IPv4 address inside an IPv6 one, by the texts of RFC 4291, 3056, 4380, 5214 and 6052.
fn embedded(ip: IpAddr, lists: &Lists) -> Option<IpAddr> {
    let IpAddr::V6(v6) = ip else { return None };
    let octets = v6.octets();
    let four = |at: [usize; 4]| Some(IpAddr::from(at.map(|at| octets[at])));
    if let Some(prefix) = lists.nat64.iter().find(|prefix| prefix.holds(ip)) {
        // RFC 6052 section 2.2: the ninth octet is passed over.
        return match prefix.0.len() {
            32 => four([4, 5, 6, 7]),
            40 => four([5, 6, 7, 9]),
            48 => four([6, 7, 9, 10]),
            56 => four([7, 9, 10, 11]),
            64 => four([9, 10, 11, 12]),
            _ => four([12, 13, 14, 15]),
        };
    }
    let starts = |text: &str| Bits::parse(text).holds(ip);
    if u128::from(v6) <= 1 {
        None
    } else if ["::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"].into_iter().any(starts) {
        four([12, 13, 14, 15])
    } else if starts("2002::/16") {
        four([2, 3, 4, 5])
    } else if starts("2001::/32") {
        four([12, 13, 14, 15]).map(|ip| match ip {
            IpAddr::V4(ip) => IpAddr::from(ip.octets().map(|octet| !octet)),
            IpAddr::V6(_) => ip,
        })
    } else if (octets[8] == 0 || octets[8] == 2) && octets[9..12] == [0, 0x5E, 0xFE] {
        four([12, 13, 14, 15])
    } else {
        None
    }
}
