//! Peer rules with address ranges and ports, and addresses of this host, against a list that is searched in whole.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tt_turn::policy::{Ownership, PeerDecision, PeerPolicy, PeerRange, PeerRangeError};

use crate::choices::Choices;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Allow,
    Deny,
    OpenHost,
    CloseHost,
}

/// Addresses are few, so that ranges overlap.
fn address(number: u8) -> IpAddr {
    match number % 20 {
        low @ 0..16 => Ipv4Addr::new(9, 9, 9, low).into(),
        high => IpAddr::from([0x2a00, 0, 0, 0, 0, 0, 0, u16::from(high)]),
    }
}

fn port(number: u8) -> u16 {
    [0, 1, 52, 53, 54, 1_023, 1_024, u16::MAX][usize::from(number % 8)]
}

fn range(choices: &mut Choices<'_>) -> Option<PeerRange> {
    let (first, last) = (address(choices.byte()), address(choices.byte()));
    let addresses = match PeerRange::new(first, last) {
        Ok(addresses) => addresses,
        Err(fault) => {
            assert_eq!(fault, PeerRangeError::Order);
            assert!(first.is_ipv4() != last.is_ipv4() || first > last, "{first} {last}");
            return None;
        }
    };
    if choices.byte().is_multiple_of(2) {
        return Some(addresses);
    }
    let (low, high) = (port(choices.byte()), port(choices.byte()));
    let with_ports = addresses.with_ports(low, high);
    assert_eq!(with_ports.is_err(), high < low);
    with_ports.ok()
}

/// Makes a policy of `data`, and asks it about every address and the ports at which rules begin and end.
pub(crate) fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let (mut policy, mut rules) = (PeerPolicy::new(), Vec::new());
    for _ in 0..choices.byte() % 8 {
        let kind = *choices.of(&[Kind::Allow, Kind::Deny, Kind::OpenHost, Kind::CloseHost]);
        let Some(range) = range(&mut choices) else { continue };
        assert_eq!(range.to_string().parse(), Ok(range));
        match kind {
            Kind::Allow => policy.allow(range),
            Kind::Deny => policy.deny(range),
            Kind::OpenHost => policy.open_host(range),
            // The host has its addresses whole.
            Kind::CloseHost if range.has_all_ports() => policy.close_host(range),
            Kind::CloseHost => continue,
        }
        rules.push((kind, range));
    }
    let ends = rules.iter().flat_map(|(_, range)| [Some(range.ports().0), range.ports().1.checked_add(1)]);
    let ports: Vec<u16> = ends.flatten().chain([0, 1, 53, u16::MAX]).collect();
    for ip in (0..20).map(address) {
        for ownership in [Ownership::Foreign, Ownership::LiveRelay, Ownership::IdleRelay] {
            let is_open = |port| is_open(&rules, ip, port, ownership);
            for port in ports.iter().copied() {
                let judged = policy.decide(SocketAddr::new(ip, port), ownership) == PeerDecision::Allowed;
                assert_eq!(judged, port != 0 && is_open(port), "{ip} port {port} {ownership:?} {rules:?}");
            }
            let judged = policy.decide_ip(ip, ownership) == PeerDecision::Allowed;
            assert_eq!(judged, ports.iter().copied().any(is_open), "{ip} {ownership:?} {rules:?}");
        }
    }
    tables(&policy, &rules);
}

/// Of the rules that contain an address and a port, the one with fewest addresses counts, then the one with fewest
/// ports, then a denial.
fn is_open(rules: &[(Kind, PeerRange)], ip: IpAddr, port: u16, ownership: Ownership) -> bool {
    let holds = |range: &PeerRange| range.contains(ip) && (range.ports().0..=range.ports().1).contains(&port);
    let is_own = rules.iter().any(|(kind, range)| *kind == Kind::CloseHost && range.contains(ip));
    let (opener, default) = match ownership {
        Ownership::LiveRelay => (Kind::Allow, true),
        Ownership::Foreign if !is_own => (Kind::Allow, true),
        Ownership::Foreign | Ownership::IdleRelay => (Kind::OpenHost, false),
    };
    let counted = rules.iter().filter(|(kind, range)| holds(range) && (*kind == opener || *kind == Kind::Deny));
    let size = |range: &PeerRange| {
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let (first, last) = range.addresses();
        (bits(last) - bits(first), range.ports().1 - range.ports().0)
    };
    let first = counted.min_by_key(|(kind, range)| (size(range), *kind != Kind::Deny));
    first.map_or(default, |(kind, _)| *kind != Kind::Deny)
}

/// The effective tables say what is decided.
fn tables(policy: &PeerPolicy, rules: &[(Kind, PeerRange)]) {
    let is_own = |ip: IpAddr| rules.iter().any(|(kind, range)| *kind == Kind::CloseHost && range.contains(ip));
    let foreign = policy.effective().filter(|stretch| !is_own(stretch.first)).map(|stretch| (false, stretch));
    let own = policy.effective_host().map(|stretch| (true, stretch));
    for (of_host, stretch) in foreign.chain(own).filter(|(_, stretch)| stretch.ports.1 != 0) {
        let peer = SocketAddr::new(stretch.first, stretch.ports.0.max(1));
        let judged = policy.decide(peer, Ownership::Foreign) == PeerDecision::Allowed;
        // Tunnels and what embeds an IPv4 address are denied beyond the table.
        assert!(!judged || stretch.decision == PeerDecision::Allowed, "{peer} {stretch:?}");
        assert!(!of_host || judged == (stretch.decision == PeerDecision::Allowed), "{peer} {stretch:?}");
    }
}
