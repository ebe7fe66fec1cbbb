//! Paths: what the driver may relay for the server, and when it must stop.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use tt_model::{Nanos, Transport};
use tt_turn::config::{ChannelNumbers, Config};
use tt_turn::event::AllocationEnd;
use tt_turn::path::{PathChange, PathId, PathLease, PathTraffic};
use tt_turn::policy::{PeerPolicy, PeerRange};
use tt_turn::relay::{RelayAddress, RelayDemand, RelayId};
use tt_turn::shared::{Pools, Quotas};

use super::wire::{self, LIFETIME, REFRESH};
use super::world::{self, Out, World, addr};

const CLIENT: &str = "192.0.2.1:1";
const PEER: &str = "8.8.8.8:53";
/// RFC 8656 section 9.
const PERMISSION_S: u64 = 300;

fn offering() -> World {
    let mut world = World::new();
    world.server.offer_paths(512);
    world
}

fn after(world: &World, seconds: u64) -> Nanos {
    world.now.saturating_add(Nanos::from_secs(seconds))
}

fn changes(world: &mut World) -> Vec<PathChange> {
    let now = world.now;
    std::iter::from_fn(|| world.server.poll_path(now)).collect()
}

#[track_caller]
fn opened(world: &mut World) -> (PathId, PathLease) {
    let changes = changes(world);
    let [PathChange::Open(id, lease)] = changes[..] else { panic!("{changes:?}") };
    (id, lease)
}

/// A client with a bound channel.
fn bound(world: &mut World) -> (RelayId, PathId) {
    let (relay, _) = world.allocate(addr(CLIENT));
    assert_eq!(world.bind(addr(CLIENT), 0x4000, addr(PEER)), 0);
    (relay, opened(world).0)
}

fn refresh(world: &mut World, seconds: u32) {
    assert_eq!(world.ask(addr(CLIENT), REFRESH, &[(LIFETIME, seconds.to_be_bytes().to_vec())]).code(), 0);
}

fn end(world: &mut World) -> AllocationEnd {
    let ends: Vec<_> = std::iter::from_fn(|| world.server.poll_event()).filter_map(|event| event.end).collect();
    let [end] = ends[..] else { panic!("{ends:?}") };
    end
}

#[test]
fn a_bound_channel_is_a_path_until_its_permission_ends() {
    let mut world = offering();
    let (relay, relayed) = world.allocate(addr(CLIENT));
    assert_eq!(world.permit(addr(CLIENT), addr(PEER)), 0);
    assert_eq!(changes(&mut world), [], "no channel yet");
    assert_eq!(world.bind(addr(CLIENT), 0x4001, addr(PEER)), 0);
    let (_, lease) = opened(&mut world);
    let expected = PathLease {
        client: world.flow(addr(CLIENT)),
        relay,
        relayed: RelayAddress { bound: relayed, external: relayed },
        peer: addr(PEER),
        channel: 0x4001,
        until: after(&world, PERMISSION_S),
    };
    assert_eq!(lease, expected);
    assert_eq!(changes(&mut world), [], "once");
}

#[test]
fn the_lease_follows_the_first_end_of_three() {
    let mut world = offering();
    let (_, id) = bound(&mut world);
    world.run_s(200);
    assert_eq!(world.permit(addr(CLIENT), addr(PEER)), 0);
    let until = after(&world, PERMISSION_S);
    assert_eq!(changes(&mut world), [PathChange::Extend(id, until)]);
    // The allocation ends with the 600 s of its Allocate, the channel with those of its bind.
    world.run_s(200);
    assert_eq!(world.permit(addr(CLIENT), addr(PEER)), 0);
    assert_eq!(changes(&mut world), [PathChange::Extend(id, after(&world, 200))]);
    refresh(&mut world, 900);
    assert_eq!(changes(&mut world), [], "the channel ends then");
    assert_eq!(world.bind(addr(CLIENT), 0x4000, addr(PEER)), 0);
    assert_eq!(changes(&mut world), [PathChange::Extend(id, after(&world, PERMISSION_S))]);
    world.run_s(250);
    assert_eq!(world.permit(addr(CLIENT), addr("9.9.9.9:9")), 0);
    assert_eq!(changes(&mut world), [], "another peer's permission");
    // A lease ends earlier too.
    let mut config = world::config();
    (config.lifetime_default_s, config.lifetime_max_s) = (20, 20);
    world.server.replace_config(config);
    assert_eq!(changes(&mut world), []);
    refresh(&mut world, 900);
    assert_eq!(changes(&mut world), [PathChange::Extend(id, after(&world, 20))]);
}

#[test]
fn a_permission_that_lapses_closes_and_a_new_one_opens() {
    let mut world = offering();
    let (relay, id) = bound(&mut world);
    world.run_s(PERMISSION_S);
    assert_eq!(changes(&mut world), [PathChange::Close(id)]);
    assert!(world.server.path_closed(id));
    // The channel still relays, datagram by datagram.
    let payload = b"x".to_vec();
    assert_eq!(world.channel_data(addr(CLIENT), 0x4000, b"x"), Out::ToPeer { relay, peer: addr(PEER), payload });
    assert_eq!(world.permit(addr(CLIENT), addr(PEER)), 0);
    let (_, lease) = opened(&mut world);
    assert_eq!(lease.until, after(&world, PERMISSION_S));
}

#[test]
fn a_path_is_closed_before_its_relay_is_retired_and_its_traffic_is_part_of_the_end() {
    let mut world = offering();
    let (relay, id) = bound(&mut world);
    world.channel_data(addr(CLIENT), 0x4000, b"by the server");
    let some = PathTraffic { packets_to_peer: 2, bytes_to_peer: 300, packets_to_client: 1, bytes_to_client: 50 };
    world.server.count_path(id, some);
    refresh(&mut world, 0);
    assert_eq!(world.server.poll_relay(), None, "before it was polled");
    assert_eq!(changes(&mut world), [PathChange::Close(id)]);
    assert_eq!(world.server.poll_relay(), None, "before it is closed");
    assert!(!std::iter::from_fn(|| world.server.poll_event()).any(|event| event.end.is_some()));
    let last = PathTraffic { packets_to_peer: 1, bytes_to_peer: 100, packets_to_client: 4, bytes_to_client: 400 };
    world.server.count_path(id, last);
    assert!(world.server.path_closed(id));
    assert!(!world.server.path_closed(id), "once");
    world.server.count_path(id, last);
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(relay)));
    let end = end(&mut world);
    assert_eq!((end.packets_to_peers, end.bytes_to_peers), (4, 413));
    assert_eq!((end.packets_to_client, end.bytes_to_client), (5, 450));
    let counters = world.server.counters();
    assert_eq!((counters.payloads_to_peers, counters.payloads_to_clients), (4, 5));
    assert!(counters.is_balanced());
}

#[test]
fn what_ended_later_is_not_waited_for() {
    let mut world = offering();
    let (clients, peer) = ([addr("192.0.2.1:1"), addr("192.0.2.2:1")], addr(PEER));
    let mut made = Vec::new();
    for client in clients {
        let (relay, _) = world.allocate(client);
        assert_eq!(world.bind(client, 0x4000, peer), 0);
        made.push((relay, opened(&mut world).0));
    }
    while world.server.poll_event().is_some() {}
    for (client, (relay, id)) in clients.into_iter().zip(&made) {
        assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        assert_eq!(changes(&mut world), [PathChange::Close(*id)], "{relay:?}");
    }
    let [(first, first_id), (second, second_id)] = made[..] else { panic!("two") };
    assert!(!world.server.path_closed(second_id), "not its turn");
    assert!(world.server.path_closed(first_id));
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(first)));
    assert_eq!(world.server.poll_relay(), None);
    assert_eq!(end(&mut world).packets_to_peers, 0);
    let last = PathTraffic { packets_to_peer: 9, ..PathTraffic::default() };
    world.server.count_path(second_id, last);
    assert!(world.server.path_closed(second_id));
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(second)));
    assert_eq!(end(&mut world).packets_to_peers, 9, "although an event before it was taken");
}

#[test]
fn more_channels_than_paths_stay_with_the_server() {
    let mut world = World::new();
    world.server.offer_paths(2);
    world.allocate(addr(CLIENT));
    for number in 0..3 {
        assert_eq!(world.bind(addr(CLIENT), 0x4000 + number, addr(&format!("8.8.8.{number}:53"))), 0);
    }
    let now = changes(&mut world);
    let [PathChange::Open(first, _), PathChange::Open(..)] = now[..] else { panic!("{now:?}") };
    assert!(matches!(world.channel_data(addr(CLIENT), 0x4002, b"x"), Out::ToPeer { .. }));
    // With a free place, a refreshed channel gets it.
    world.server.replace_policy({
        let mut policy = PeerPolicy::new();
        policy.deny("8.8.8.0/32".parse::<PeerRange>().expect("a range"));
        policy
    });
    assert_eq!(changes(&mut world), [PathChange::Close(first)]);
    assert!(world.server.path_closed(first));
    assert_eq!(world.bind(addr(CLIENT), 0x4002, addr("8.8.8.2:53")), 0);
    assert_eq!(opened(&mut world).1.channel, 0x4002);
}

/// The worker ends whatever the driver has not seen yet without a word about it.
#[test]
fn a_channel_that_ends_before_it_was_polled_is_no_path() {
    let mut world = offering();
    let (relay, _) = world.allocate(addr(CLIENT));
    assert_eq!(world.bind(addr(CLIENT), 0x4000, addr(PEER)), 0);
    refresh(&mut world, 0);
    assert_eq!(changes(&mut world), []);
    assert_eq!(world.server.poll_relay(), Some(RelayDemand::Retire(relay)));
}

#[test]
fn the_old_path_closes_before_the_next_client_of_the_same_address_opens_one() {
    let mut world = offering();
    let (relay, id) = bound(&mut world);
    refresh(&mut world, 0);
    let (next, _) = world.allocate(addr(CLIENT));
    assert_eq!(world.bind(addr(CLIENT), 0x4000, addr(PEER)), 0);
    assert_ne!(relay, next);
    let changes = changes(&mut world);
    let [PathChange::Close(first), PathChange::Open(second, lease)] = changes[..] else { panic!("{changes:?}") };
    assert_eq!((first, lease.relay), (id, next));
    assert_ne!(first, second, "its traffic is still to be counted");
}

#[test]
fn a_policy_that_denies_the_peer_or_asks_for_its_port_closes_at_once() {
    for rule in ["8.8.8.0/24", "8.8.8.8:1000-1024"] {
        let mut world = offering();
        let (_, id) = bound(&mut world);
        let mut policy = PeerPolicy::new();
        policy.deny(rule.parse::<PeerRange>().expect("a range"));
        world.server.replace_policy(policy);
        assert_eq!(changes(&mut world), [PathChange::Close(id)], "{rule}");
        assert!(world.server.path_closed(id));
        world.server.replace_policy(PeerPolicy::new());
        let reopens = matches!(changes(&mut world)[..], [PathChange::Open(..)]);
        assert_eq!(reopens, rule.contains(':'), "the denied peer's permission has ended");
    }
}

#[test]
fn a_quota_of_traffic_closes_and_its_end_opens() {
    let mut world = offering();
    let (_, id) = bound(&mut world);
    let before = world.shared.limits();
    for limited in [
        Quotas { bytes_per_second_per_user: 1_000, ..*before.quotas() },
        Quotas { packets_per_second_per_source: 1_000, ..*before.quotas() },
        Quotas { bytes_per_second_total: 1_000_000, ..*before.quotas() },
        Quotas { bytes_per_second_per_allocation: 1_000, ..*before.quotas() },
    ] {
        world.server.replace_limits(before.succeeded_by(limited, &[], Pools::UNLIMITED));
        let changes_now = changes(&mut world);
        let [PathChange::Close(closed)] = changes_now[..] else { panic!("{limited:?}: {changes_now:?}") };
        assert!(world.server.path_closed(closed));
        world.server.replace_limits(before.clone());
        opened(&mut world);
    }
    assert!(!world.server.path_closed(id));
}

#[test]
fn what_the_server_must_look_at_is_no_path() {
    // Another transport.
    let mut world = offering();
    world.transport = Transport::Tcp;
    world.allocate(addr(CLIENT));
    assert_eq!(world.bind(addr(CLIENT), 0x4000, addr(PEER)), 0);
    assert_eq!(changes(&mut world), []);
    // A relayed address of this server.
    let mut world = offering();
    world.allocate(addr(CLIENT));
    let (_, own) = world.allocate(addr("192.0.2.2:1"));
    assert_eq!(world.bind(addr(CLIENT), 0x4000, own), 0);
    assert_eq!(changes(&mut world), []);
    // A peer of the other family: the IPv6 client has an IPv4 relay.
    let mut world = offering();
    world.listener = addr("[2600::9]:3478");
    let client = addr("[2600::1]:1");
    world.allocate(client);
    assert_eq!(world.bind(client, 0x4000, addr(PEER)), 0);
    assert_eq!(changes(&mut world), []);
}

/// coturn's client draws its numbers up to 0x7FFF.
#[test]
fn every_number_that_the_server_binds_is_a_path() {
    let config = Config { channel_numbers: ChannelNumbers::Rfc5766, ..world::config() };
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    world.server.offer_paths(512);
    world.allocate(addr(CLIENT));
    assert_eq!(world.bind(addr(CLIENT), 0x7FFF, addr(PEER)), 0);
    assert_eq!(opened(&mut world).1.channel, 0x7FFF);
}

#[test]
fn channels_that_live_when_paths_are_offered_are_opened() {
    let mut world = World::new();
    world.allocate(addr(CLIENT));
    assert_eq!(world.bind(addr(CLIENT), 0x4000, addr(PEER)), 0);
    assert_eq!(changes(&mut world), [], "nothing is offered");
    world.server.offer_paths(512);
    assert_eq!(opened(&mut world).1.channel, 0x4000);
    world.server.offer_paths(512);
    assert_eq!(changes(&mut world), [], "once");
}

/// A kernel that does what [`PathChange`] says, and relays some packets without being asked.
#[derive(Default)]
struct Kernel {
    leases: BTreeMap<PathId, PathLease>,
    /// All that it relayed.
    relayed: PathTraffic,
    /// What it relayed and has not reported.
    tallies: BTreeMap<PathId, PathTraffic>,
    /// Paths that it has removed and that it has not reported as closed: another core may still relay on them.
    closing: VecDeque<(PathId, PathLease)>,
}

impl Kernel {
    /// Does what the server says, as a driver does after each round, and reports up to `closes` paths as closed.
    fn follow(&mut self, closes: usize, world: &mut World) {
        while let Some(change) = world.server.poll_path(world.now) {
            match change {
                PathChange::Open(id, lease) => {
                    assert!(lease.until > world.now);
                    assert_eq!(self.leases.insert(id, lease), None, "{id:?} is open");
                }
                PathChange::Extend(id, until) => {
                    self.leases.get_mut(&id).expect("an open path").until = until;
                }
                PathChange::Close(id) => {
                    let lease = self.leases.remove(&id).expect("an open path");
                    self.closing.push_back((id, lease));
                }
            }
        }
        for _ in 0..closes.min(self.closing.len()) {
            let (id, _) = self.closing.pop_front().expect("a closed path");
            if let Some((later, _)) = self.closing.front() {
                assert!(!world.server.path_closed(*later), "not its turn");
            }
            self.report(id, world);
            assert!(world.server.path_closed(id));
        }
        let mut retired = Vec::new();
        while let Some(RelayDemand::Retire(relay)) = world.server.poll_relay() {
            let mut used = self.leases.values().chain(self.closing.iter().map(|(_, lease)| lease));
            assert!(used.all(|lease| lease.relay != relay), "a path on a retired relay");
            retired.push(relay);
        }
        for relay in retired {
            let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + relay.0 as u16);
            world.server.add_relay(relay, RelayAddress { bound, external: bound }).expect("a relay");
        }
    }

    fn report(&mut self, id: PathId, world: &mut World) {
        if let Some(traffic) = self.tallies.remove(&id) {
            world.server.count_path(id, traffic);
        }
    }

    /// Relays a payload each way on a path, if its lease has not ended.
    fn relay(&mut self, id: PathId, len: u64, now: Nanos) {
        let closing = self.closing.iter().find(|(closing, _)| *closing == id).map(|(_, lease)| lease);
        if self.leases.get(&id).or(closing).is_some_and(|lease| lease.until > now) {
            for tally in [&mut self.relayed, self.tallies.entry(id).or_default()] {
                tally.packets_to_peer += 1;
                tally.bytes_to_peer += len;
                tally.packets_to_client += 2;
                tally.bytes_to_client += 3 * len;
            }
        }
    }
}

/// xorshift64*: the same choices in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }
}

fn client(number: u64) -> SocketAddr {
    SocketAddr::new([192, 0, 2, number as u8 + 1].into(), 1_000)
}

/// Peers 6 and 7 are of a range that the policy denies now and then.
fn peer(number: u64) -> SocketAddr {
    let ip = if number < 6 { [8, 8, 8, number as u8 / 2] } else { [9, 9, 9, number as u8 / 2] };
    SocketAddr::new(ip.into(), 1_000 + number as u16)
}

/// A lease that has not ended relays what the server would relay, to the same place; and what the server would relay
/// without asking its policy has a lease.
fn compare(kernel: &Kernel, world: &mut World, granted: &BTreeMap<(u64, u16), SocketAddr>, denied: bool) {
    let now = world.now;
    for lease in kernel.leases.values().filter(|lease| lease.until > now) {
        let payload = b"as the server".to_vec();
        let out = world.channel_data(lease.client.client, lease.channel, &payload);
        assert_eq!(out, Out::ToPeer { relay: lease.relay, peer: lease.peer, payload }, "{lease:?}");
        let back = world.peer(lease.relay, lease.peer, b"x");
        let bytes = [&lease.channel.to_be_bytes()[..], &[0, 1], b"x"].concat();
        assert_eq!(back, Out::ToClient { client: lease.client.client, bytes });
    }
    for ((number, channel), to) in granted {
        let is_sent = matches!(world.send(client(*number), *to, b"x"), Out::ToPeer { .. });
        let is_relayed =
            matches!(world.channel_data(client(*number), *channel, b"x"), Out::ToPeer { peer, .. } if peer == *to);
        let has_lease = kernel.leases.values().any(|lease| {
            lease.until > world.now && lease.client.client == client(*number) && lease.channel == *channel
        });
        if is_sent && is_relayed && !denied {
            assert!(has_lease, "client {number}, channel {channel:x}");
        }
    }
}

fn play(seed: u64) -> u64 {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut world, mut kernel) = (offering(), Kernel::default());
    let (mut granted, mut denied) = (BTreeMap::new(), false);
    let mut ended = PathTraffic::default();
    for _ in 0..120 {
        for _ in 0..=draw.below(4) {
            let (number, to) = (draw.below(4), peer(draw.below(8)));
            let from = client(number);
            let channel = 0x4000 + draw.below(5) as u16;
            match draw.below(12) {
                0..3 => {
                    let asked = [(wire::TRANSPORT, world::UDP.to_vec())];
                    world.ask(from, wire::ALLOCATE, &asked);
                }
                3..7 => {
                    if world.bind(from, channel, to) == 0 {
                        granted.insert((number, channel), to);
                    }
                }
                7 => drop(world.permit(from, to)),
                8 => drop(world.ask(from, REFRESH, &[(LIFETIME, vec![0; 4])])),
                9 => {
                    let lifetime = 600 + draw.below(900) as u32;
                    world.ask(from, REFRESH, &[(LIFETIME, lifetime.to_be_bytes().to_vec())]);
                }
                10 => {
                    let mut policy = PeerPolicy::new();
                    denied = draw.below(2) == 0;
                    if denied {
                        policy.deny("9.9.9.0/24".parse::<PeerRange>().expect("a range"));
                    }
                    world.server.replace_policy(policy);
                }
                _ => drop(world.server.end_user(world.now, None, b"alice", tt_turn::event::EndReason::Operator)),
            }
            let open: Vec<PathId> = kernel.leases.keys().copied().chain(kernel.closing.iter().map(|it| it.0)).collect();
            for id in open {
                // Between the end in the server and the poll the kernel still relays.
                kernel.relay(id, draw.below(1_200), world.now);
            }
        }
        kernel.follow(draw.below(3) as usize, &mut world);
        compare(&kernel, &mut world, &granted, denied);
        if draw.below(3) == 0 {
            let open: Vec<PathId> = kernel.tallies.keys().copied().collect();
            open.into_iter().for_each(|id| kernel.report(id, &mut world));
        }
        world.run_s(draw.below(120));
        kernel.follow(draw.below(9) as usize, &mut world);
        while let Some(event) = world.server.poll_event() {
            if let Some(end) = event.end {
                ended.packets_to_client += end.packets_to_client;
                ended.bytes_to_client += end.bytes_to_client;
            }
        }
    }
    world.server.end_all(world.now, tt_turn::event::EndReason::Shutdown);
    kernel.follow(usize::MAX, &mut world);
    assert!(kernel.leases.is_empty() && kernel.tallies.is_empty());
    while let Some(event) = world.server.poll_event() {
        // A beginning may have waited behind an end.
        let Some(end) = event.end else { continue };
        ended.packets_to_client += end.packets_to_client;
        ended.bytes_to_client += end.bytes_to_client;
    }
    let counters = *world.server.counters();
    assert!(counters.is_balanced());
    // Each payload is of one allocation, whoever relayed it.
    assert_eq!(ended.packets_to_client, counters.payloads_to_clients);
    assert_eq!(ended.bytes_to_client, counters.bytes_to_clients);
    assert!(counters.payloads_to_clients >= kernel.relayed.packets_to_client);
    kernel.relayed.packets_to_peer
}

#[test]
fn a_kernel_that_follows_relays_what_the_server_would() {
    let seeds = if cfg!(debug_assertions) { 40 } else { 2_000 };
    let relayed: u64 = (0..seeds).map(play).sum();
    assert!(relayed > 100 * seeds, "{relayed} payloads on paths of {seeds} seeds");
}
