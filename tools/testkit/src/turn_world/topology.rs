//! Topology: hosts and rules, drawn from the seed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tt_model::Transport;

use super::limits::{Rates, Shares};
use super::wire::Algorithm;
use crate::draw::Draw;

pub(super) const REALM: &str = "example.org";
/// The longest world: calls go on long after credentials of an hour have ended.
pub(super) const CALLS_S: u64 = 10_800;
/// Unix time at which every world begins.
pub(super) const WALL_S: u64 = 1_800_000_000;

pub(super) fn listener(is_ipv4: bool) -> SocketAddr {
    SocketAddr::new(relay_ip(is_ipv4), 3_478)
}

/// The address that the listeners and the relays share.
pub(super) fn relay_ip(is_ipv4: bool) -> IpAddr {
    if is_ipv4 { Ipv4Addr::new(198, 41, 0, 9).into() } else { Ipv6Addr::new(0x2A00, 9, 0, 0, 0, 0, 0, 9).into() }
}

/// Faults that a run may have, each enabled with even odds, so that none hides another (swarm testing).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub(super) loss: bool,
    pub(super) duplicate: bool,
    pub(super) reorder: bool,
    pub(super) corrupt: bool,
    pub(super) truncate: bool,
    pub(super) delay: bool,
    pub(super) partition: bool,
    pub(super) mtu: bool,
    pub(super) crash: bool,
    pub(super) clock: bool,
    pub(super) squeeze: bool,
    pub(super) send_errors: bool,
    pub(super) steer: bool,
    pub(super) drain: bool,
    pub(super) reload: bool,
    pub(super) rotate: bool,
    pub(super) icmp: bool,
    pub(super) rebind: bool,
    pub(super) spoofer: bool,
    pub(super) replayer: bool,
    pub(super) appender: bool,
    pub(super) thief: bool,
    pub(super) flooder: bool,
    pub(super) flaws: bool,
    pub(super) budget: bool,
    pub(super) ipv6: bool,
    pub(super) streams: bool,
    pub(super) hairpin: bool,
    pub(super) pairs: bool,
    pub(super) small_tables: bool,
    pub(super) small_quotas: bool,
    pub(super) limited_names: bool,
    pub(super) peer_rules: bool,
    pub(super) rates: bool,
    pub(super) shares: bool,
}

impl Features {
    fn drawn(draw: &mut Draw) -> Self {
        let mut on = || draw.chance(1, 2);
        Self {
            loss: on(),
            duplicate: on(),
            reorder: on(),
            corrupt: on(),
            truncate: on(),
            delay: on(),
            partition: on(),
            mtu: on(),
            crash: on(),
            clock: on(),
            squeeze: on(),
            send_errors: on(),
            steer: on(),
            drain: on() && on(),
            reload: on(),
            rotate: on(),
            icmp: on(),
            rebind: on(),
            spoofer: on(),
            replayer: on(),
            appender: on(),
            thief: on(),
            flooder: on(),
            flaws: on(),
            budget: on() && on(),
            ipv6: on(),
            streams: on(),
            hairpin: on(),
            pairs: on(),
            small_tables: on() && on(),
            small_quotas: on() && on(),
            limited_names: on(),
            peer_rules: on(),
            rates: on() && on(),
            shares: on() && on(),
        }
    }
}

/// The operator's configuration, for the engine and the reference model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) lifetime_default_s: u32,
    pub(super) lifetime_max_s: u32,
    pub(super) nonce_lifetime_s: u32,
    pub(super) permissions_per_allocation: u32,
    pub(super) channels_per_allocation: u32,
    pub(super) allocations_per_user: u32,
    pub(super) allocations_total: u32,
    /// Of one worker.
    pub(super) allocations: u32,
    pub(super) permissions: u32,
    pub(super) channels: u32,
    /// Bytes of unauthenticated error replies beyond three times the request, to one address: a second, and at once.
    pub(super) error_budget: Option<(u32, u32)>,
    /// How long a relay rests behind an allocation.
    pub(super) rest_s: u64,
    /// SHA-256 is offered in addition to MD5.
    pub(super) offers_sha256: bool,
    /// A restarted server keeps its nonce key.
    pub(super) keeps_nonce_key: bool,
    /// Users from this number on have no password, but names that end.
    pub(super) limited_from: usize,
    /// A name that has ended ends its allocations.
    pub(super) strict_expiry: bool,
    /// A channel relays nothing without a permission.
    pub(super) strict_permissions: bool,
    pub(super) rates: Rates,
    pub(super) shares: Shares,
}

impl Rules {
    pub(super) fn is_limited(&self, user: usize) -> bool {
        user >= self.limited_from
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerRuleKind {
    Allow,
    Deny,
    /// The addresses are the host's own.
    CloseHost,
    /// Of the host's own, these may be reached.
    OpenHost,
}

/// A rule of the operator about peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerRule {
    pub(super) kind: PeerRuleKind,
    pub(super) ip: IpAddr,
    pub(super) prefix_bits: u32,
    pub(super) ports: (u16, u16),
}

impl PeerRule {
    /// Every port of an address is denied.
    pub(super) fn deny(ip: IpAddr) -> Self {
        let prefix_bits = if ip.is_ipv4() { 32 } else { 128 };
        Self { kind: PeerRuleKind::Deny, ip, prefix_bits, ports: (0, u16::MAX) }
    }

    /// About peers of the world, but for the echoing one, or about our own address.
    fn drawn(draw: &mut Draw, before: Option<Self>) -> Self {
        const NETWORKS: [(&str, [u32; 4]); 4] = [
            ("8.8.0.0", [24, 30, 31, 32]),
            ("10.0.0.0", [8, 16, 31, 32]),
            ("2600::", [112, 126, 127, 128]),
            ("fd00::", [7, 8, 127, 128]),
        ];
        const PORTS: [(u16, u16); 6] =
            [(0, u16::MAX), (0, u16::MAX), (9_001, 9_001), (9_000, 9_002), (9_002, u16::MAX), (1, 9_001)];
        let first = |bits: u128, number: u64, rest: u32| (bits + u128::from(number)) >> rest << rest;
        let (network, lengths) = draw.pick(&NETWORKS);
        let (prefix_bits, number) = (draw.pick(&lengths), draw.below(4));
        let ip = match network.parse().expect("an address") {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(first(ip.to_bits().into(), number, 32 - prefix_bits) as u32).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(first(ip.to_bits(), number, 128 - prefix_bits)).into(),
        };
        let own = [(9, 9), (10_000, 10_003), (10_000, 10_100)];
        let (prefix_bits, ip, ports) = match (draw.below(6), before) {
            (0, _) => (32, relay_ip(true), draw.pick(&own)),
            // The same addresses once more: ports, or the kind of the rule, make the difference.
            (1..=3, Some(before)) => {
                let ports = if draw.chance(1, 2) { before.ports } else { draw.pick(&PORTS) };
                (before.prefix_bits, before.ip, ports)
            }
            _ => (prefix_bits, ip, draw.pick(&PORTS)),
        };
        // Where a rule has the same range, the order of the two decides.
        let contrary = before.filter(|before| (before.ip, before.ports) == (ip, ports) && draw.chance(3, 4));
        let kind = match draw.below(8) {
            _ if contrary.is_some_and(|before| before.kind == PeerRuleKind::Allow) => PeerRuleKind::Deny,
            _ if contrary.is_some_and(|before| before.kind == PeerRuleKind::Deny) => PeerRuleKind::Allow,
            0 => PeerRuleKind::OpenHost,
            1..=3 => PeerRuleKind::Deny,
            // All its ports are the host's.
            4 => return Self { kind: PeerRuleKind::CloseHost, ip, prefix_bits, ports: (0, u16::MAX) },
            _ => PeerRuleKind::Allow,
        };
        Self { kind, ip, prefix_bits, ports }
    }
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    /// By MESSAGE-INTEGRITY over MD5, as RFC 5389 has it.
    Legacy,
    /// By MESSAGE-INTEGRITY-SHA256 over the algorithm, where the server offers any.
    Modern(Algorithm),
    /// By SHA-256, with USERHASH in place of USERNAME.
    Anonymous,
}

/// One client's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) transport: Transport,
    /// The address of its NAT, or its own.
    pub(super) ip: IpAddr,
    pub(super) user: usize,
    pub(super) speech: Speech,
    /// Has valid credentials and no good intentions: nothing is promised to it.
    pub(super) is_thief: bool,
    /// How long its first credential lasts, if it is one that ends.
    pub(super) credential_s: u64,
}

/// The whole of it.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    pub(super) features: Features,
    pub(super) rules: Rules,
    pub(super) workers: u16,
    pub(super) relays_v4: u32,
    pub(super) relays_v6: u32,
    pub(super) users: usize,
    pub(super) clients: Vec<Place>,
    /// Where peers listen.
    pub(super) peers: Vec<SocketAddr>,
    /// Rules about peers that are configured.
    pub(super) peer_rules: Vec<PeerRule>,
    pub(super) duration_s: u64,
}

/// How large the world is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As the seed has it: mostly some tens of clients, seldom thousands.
    Drawn,
    /// So many clients for so many virtual seconds, and no faults: for measuring speed.
    Calm {
        /// Clients.
        clients: u32,
        /// Virtual seconds.
        duration_s: u64,
    },
}

impl Topology {
    /// Whether this relay is registered together with the next one.
    pub(super) fn is_pair(&self, relay: u32) -> bool {
        let (at, of) =
            if relay < self.relays_v4 { (relay, self.relays_v4) } else { (relay - self.relays_v4, self.relays_v6) };
        self.features.pairs && at.is_multiple_of(2) && at + 1 < of && at < of / 2
    }

    pub(super) fn drawn(draw: &mut Draw, size: Size) -> Self {
        let (features, clients, duration_s) = match size {
            Size::Drawn => {
                let features = Features::drawn(draw);
                let clients = match draw.below(1_024) {
                    0 => draw.between(1_000, 5_000),
                    1..=20 => draw.between(100, 400),
                    21..=200 => draw.between(20, 60),
                    _ => draw.between(1, 20),
                };
                (features, clients, draw.pick(&[20, 120, 700, 1_500, 4_000, CALLS_S]))
            }
            Size::Calm { clients, duration_s } => (Features::default(), u64::from(clients), duration_s),
        };
        let users = draw.between(1, 8) as usize;
        let workers = draw.between(1, 8) as u16;
        let rules = Rules {
            limited_from: limited_from(draw, &features, users),
            ..rules(draw, &features, clients as u32, workers)
        };
        let relays = if features.squeeze && draw.chance(1, 2) {
            draw.between(1, (clients * 2 / u64::from(workers)).max(2)) as u32
        } else {
            // Ports are 16 bits wide, also for a crowd.
            (clients as u32 + 4).min(clients as u32 * 2 / u32::from(workers) + 400)
        };
        let features = Features { shares: features.shares && clients <= 100, ..features };
        let rules = if features.shares { shared(draw, rules, clients as u32, (relays, workers)) } else { rules };
        let nats = draw.between(1, clients);
        let places = (0..clients).map(|_| place(draw, &features, users, nats)).collect();
        let mut peers: Vec<SocketAddr> = Vec::new();
        for is_ipv4 in [true, false] {
            for number in 0..draw.between(1, 4) as u16 {
                let ip: IpAddr = if is_ipv4 {
                    Ipv4Addr::new(8, 8, 0, number as u8).into()
                } else {
                    Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, number).into()
                };
                peers.extend((0..draw.between(1, 3)).map(|port| SocketAddr::new(ip, 9_000 + port as u16)));
            }
        }
        let mut peer_rules = Vec::new();
        if features.peer_rules {
            // Peers that are denied without a rule.
            let more = ["10.0.0.0:9001", "10.0.0.1:9002", "[fd00::1]:9001"];
            peers.extend(more.map(|peer| peer.parse::<SocketAddr>().expect("an address")));
            for _ in 0..draw.between(1, 8) {
                peer_rules.push(PeerRule::drawn(draw, peer_rules.last().copied()));
            }
        }
        let relays_v6 = if features.ipv6 { relays } else { 0 };
        Self {
            features,
            rules,
            workers,
            relays_v4: relays,
            relays_v6,
            users,
            clients: places,
            peers,
            peer_rules,
            duration_s,
        }
    }
}

fn rules(draw: &mut Draw, features: &Features, clients: u32, workers: u16) -> Rules {
    let small = |draw: &mut Draw, sizes: &[u32]| if features.small_tables { draw.pick(sizes) } else { 64 };
    let permissions_per_allocation = small(draw, &[1, 2, 4]);
    let channels_per_allocation = small(draw, &[1, 2, 4]);
    let room = clients * 2 + 8;
    let tight = features.small_tables && draw.chance(1, 2);
    let allocations = if tight { (clients / u32::from(workers)).max(2) } else { room };
    Rules {
        lifetime_default_s: 600,
        lifetime_max_s: draw.pick(&[600, 900, 3_600]),
        nonce_lifetime_s: draw.pick(&[30, 120, 600, 3_600]),
        permissions_per_allocation,
        channels_per_allocation,
        allocations_per_user: if features.small_quotas {
            draw.between(1, u64::from(clients) / 2 + 2) as u32
        } else {
            u32::MAX
        },
        allocations_total: if features.small_quotas {
            draw.between(u64::from(clients) / 2 + 1, u64::from(clients) * 2) as u32
        } else {
            u32::MAX
        },
        allocations,
        permissions: if tight { allocations } else { room * 8 },
        channels: if tight { allocations } else { room * 8 },
        // A crowd behind few addresses would have to wait for its nonces.
        error_budget: (features.budget && clients <= 100).then_some((320, 8_192)),
        rest_s: draw.pick(&[0, 1, 10]),
        offers_sha256: draw.chance(3, 4),
        keeps_nonce_key: draw.chance(1, 2),
        limited_from: usize::MAX,
        strict_expiry: draw.chance(1, 4),
        strict_permissions: draw.chance(1, 4),
        rates: if features.rates { Rates::drawn(draw) } else { Rates::NONE },
        shares: Shares::NONE,
    }
}

/// The first user whose names end; the first of all has a password.
fn limited_from(draw: &mut Draw, features: &Features, users: usize) -> usize {
    if features.limited_names && users > 1 { draw.between(1, users as u64 - 1) as usize } else { usize::MAX }
}

/// Tables with room for what the pools allow.
fn shared(draw: &mut Draw, rules: Rules, clients: u32, (relays, workers): (u32, u16)) -> Rules {
    let room = clients * 2 + 8;
    Rules {
        shares: Shares::drawn(draw, clients, relays * u32::from(workers)),
        permissions_per_allocation: 64,
        channels_per_allocation: 64,
        allocations: room,
        permissions: room * 64,
        channels: room * 64,
        ..rules
    }
}

fn place(draw: &mut Draw, features: &Features, users: usize, nats: u64) -> Place {
    let nat = draw.below(nats);
    let is_ipv4 = !features.ipv6 || draw.chance(2, 3);
    let ip: IpAddr = if is_ipv4 {
        Ipv4Addr::from_bits(0xC612_0001 + nat as u32).into()
    } else if draw.chance(1, 32) {
        // A client behind 6to4, which is never served.
        Ipv6Addr::new(0x2002, 1, 0, 0, 0, 0, 0, nat as u16).into()
    } else {
        // Two neighbours have one network.
        Ipv6Addr::new(0x2001, 0xDB8, 0, nat as u16 / 2, 0, 0, 0, 1 + nat as u16 % 2).into()
    };
    let transport = match draw.below(8) {
        0 if features.streams => Transport::Tls,
        1 | 2 if features.streams => Transport::Tcp,
        _ => Transport::Udp,
    };
    let speech = match draw.below(6) {
        0 => Speech::Modern(Algorithm::Md5),
        1 => Speech::Modern(Algorithm::Sha256),
        2 => Speech::Anonymous,
        _ => Speech::Legacy,
    };
    Place {
        transport,
        ip,
        user: draw.below(users as u64) as usize,
        speech,
        is_thief: features.thief && draw.chance(1, 8),
        credential_s: draw.pick(&[5, 60, 600, 3_600, 86_400]),
    }
}
