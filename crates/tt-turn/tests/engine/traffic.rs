//! Quotas of relayed bytes and packets, as they are on the wire.

use std::net::SocketAddr;
use std::sync::Arc;

use tt_model::Transport;
use tt_turn::DropReason;
use tt_turn::config::{Config, IcmpIndications};
use tt_turn::relay::{IcmpError, RelayAddress, RelayDemand, RelayId};
use tt_turn::shared::{Quotas, Shared};

use super::wire::{self, ADDITIONAL_FAMILY, ALLOCATE, CREATE_PERMISSION, LIFETIME, REFRESH, TRANSPORT};
use super::world::{self, Out, UDP, World, addr};

const CLIENT: &str = "192.0.2.1:1";
const PEER: &str = "8.8.8.8:53";
const PEER_V6: &str = "[2606:4700::1]:53";
const SECONDS: u64 = 20;
const STEP_MS: u64 = 5;
const STEPS: u64 = SECONDS * 1_000 / STEP_MS;

/// What left and what was dropped.
#[derive(Debug, Default)]
struct Tally {
    packets: u64,
    bytes: u64,
    drops: u64,
}

impl Tally {
    /// Counts an output, which may be a drop for `reason` alone. Headers: RFC 791, RFC 8200 and RFC 768.
    fn add(&mut self, out: &Out, reason: DropReason) {
        let (to, len) = match out {
            Out::ToPeer { peer, payload, .. } => (peer, payload.len()),
            Out::ToClient { client, bytes } => (client, bytes.len()),
            Out::Drop(dropped) if *dropped == reason => {
                self.drops += 1;
                return;
            }
            Out::Reply(_) | Out::ToWorker { .. } | Out::HandOff(_) | Out::Drop(_) => panic!("{out:?}"),
        };
        self.packets += 1;
        self.bytes += len as u64 + if to.is_ipv4() { 20 + 8 } else { 40 + 8 };
    }
}

fn world_with(quotas: Quotas) -> World {
    World::with(world::config(), quotas, world::capacity(), world::secrets(1))
}

fn step(world: &mut World) {
    world.now.0 += STEP_MS * 1_000_000;
}

/// A dual allocation with permissions and a channel on the IPv4 peer; its relays.
fn dual(world: &mut World, client: SocketAddr) -> (RelayId, RelayId) {
    let (v6, bound) = (RelayId(40), addr("[2a00::9]:50040"));
    world.server.add_relay(v6, RelayAddress { bound, external: bound }).expect("a relay");
    let attrs = [(TRANSPORT, UDP.to_vec()), (ADDITIONAL_FAMILY, vec![2, 0, 0, 0])];
    let reply = world.ask(client, ALLOCATE, &attrs);
    let v4 = reply.address(wire::RELAYED_ADDRESS).expect("an address").port() - 50_000;
    assert_eq!((world.permit(client, addr(PEER_V6)), world.bind(client, 0x4000, addr(PEER))), (0, 0));
    (RelayId(u32::from(v4)), v6)
}

#[test]
fn case_a76_headers_count_in_both_directions_and_families() {
    const BYTES: u64 = 1_000;
    for (transport, client) in [
        (Transport::Udp, CLIENT),
        (Transport::Udp, "[2001:db8::1]:1"),
        (Transport::Tcp, CLIENT),
        (Transport::Tls, "[2001:db8::1]:1"),
    ] {
        for len in [0, 1, 500] {
            let mut world = world_with(Quotas { bytes_per_second_per_user: BYTES, ..world::quotas() });
            let client = addr(client);
            world.transport = transport;
            world.listener = addr(if client.is_ipv4() { "198.41.0.9:3478" } else { "[2a00::9]:3478" });
            let (v4, v6) = dual(&mut world, client);
            let (mut tally, payload) = (Tally::default(), vec![7; len]);
            // A stream pads ChannelData.
            let padded = [&payload[..], &[0; 3][..(4 - len % 4) % 4]].concat();
            let message = [&[0x40, 0][..], &(len as u16).to_be_bytes(), &padded].concat();
            for _ in 0..STEPS {
                step(&mut world);
                tally.add(&world.client(client, &message), DropReason::UserBandwidth);
                tally.add(&world.send(client, addr(PEER_V6), &payload), DropReason::UserBandwidth);
                tally.add(&world.peer(v4, addr(PEER), &payload), DropReason::UserBandwidth);
                tally.add(&world.peer(v6, addr(PEER_V6), &payload), DropReason::UserBandwidth);
            }
            assert!((SECONDS * BYTES - 600..=SECONDS * BYTES).contains(&tally.bytes), "{client} {len}: {tally:?}");
            assert_eq!(tally.packets + tally.drops, 4 * STEPS);
            assert_eq!(world.server.counters().dropped(DropReason::UserBandwidth), tally.drops);
        }
    }
}

/// A datagram of more than a second's worth leaves a debt. It does not end with the user's last allocation.
#[test]
fn a_user_who_makes_allocations_again_and_again_gets_no_more() {
    const BYTES: u64 = 1_000;
    let mut world = world_with(Quotas { bytes_per_second_per_user: BYTES, ..world::quotas() });
    let (client, peer, payload) = (addr(CLIENT), addr(PEER), [1; 5_000]);
    let mut tally = Tally::default();
    for _ in 0..SECONDS {
        let _ = world.allocate(client);
        assert_eq!(world.permit(client, peer), 0);
        for _ in 0..=1_000 / STEP_MS {
            step(&mut world);
            tally.add(&world.send(client, peer, &payload), DropReason::UserBandwidth);
        }
        assert_eq!(world.ask(client, REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        let relays: Vec<_> = std::iter::from_fn(|| world.server.poll_relay()).collect();
        relays.into_iter().for_each(|RelayDemand::Retire(id)| world.server.end_rest(id));
        assert_eq!(world.shared.used().ports, 0, "the user holds nothing");
    }
    assert!((10_000..=SECONDS * BYTES + 6_000).contains(&tally.bytes), "{tally:?}");
}

/// A user who sends to a closed port gets an error for each datagram, which is longer than an empty one.
#[test]
fn case_a76_errors_of_peers_count() {
    const BYTES: u64 = 1_000;
    let config = Config { icmp_indications: IcmpIndications::Always, ..world::config() };
    let quotas = Quotas { bytes_per_second_per_user: BYTES, ..world::quotas() };
    let mut world = World::with(config, quotas, world::capacity(), world::secrets(1));
    let (client, peer) = (addr(CLIENT), addr(PEER));
    let (relay, _) = world.allocate(client);
    assert_eq!(world.permit(client, peer), 0);
    let mut tally = Tally::default();
    for _ in 0..STEPS {
        step(&mut world);
        let sent = world.send(client, peer, b"");
        tally.add(&sent, DropReason::UserBandwidth);
        if matches!(sent, Out::ToPeer { .. }) {
            let error = IcmpError { relay, peer, kind: 3, code: 3, mtu: 0 };
            tally.add(&world.icmp(error), DropReason::UserBandwidth);
        }
    }
    assert!((SECONDS * BYTES - 100..=SECONDS * BYTES).contains(&tally.bytes), "{tally:?}");
    assert_eq!(world.server.counters().dropped(DropReason::UserBandwidth), tally.drops);
}

#[test]
fn case_a76_packets_per_second_are_one_users() {
    const PACKETS: u64 = 30;
    let mut world = world_with(Quotas { packets_per_second_per_user: PACKETS, ..world::quotas() });
    let (client, other, peer) = (addr(CLIENT), addr("192.0.2.1:2"), addr(PEER));
    let (relay, _) = world.allocate(client);
    assert_eq!(world.permit(client, peer), 0);
    assert_eq!(world.ask_as("bob", other, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
    let attr = world.peer_attr(peer);
    assert_eq!(world.ask_as("bob", other, CREATE_PERMISSION, &[attr]).code(), 0);
    let mut tally = Tally::default();
    for number in 1..=STEPS {
        step(&mut world);
        let len = (number % 1_200) as usize;
        tally.add(&world.send(client, peer, &vec![1; len]), DropReason::UserPackets);
        tally.add(&world.peer(relay, peer, &vec![2; len]), DropReason::UserPackets);
        if number % 10 == 0 {
            assert!(matches!(world.send(other, peer, &[3; 1_200]), Out::ToPeer { .. }), "another user's");
        }
    }
    assert!((SECONDS * PACKETS - 1..=SECONDS * PACKETS).contains(&tally.packets), "{tally:?}");
    assert_eq!(tally.packets + tally.drops, 2 * STEPS);
    assert_eq!(world.server.counters().dropped(DropReason::UserPackets), tally.drops);
}

/// Two users at two workers have the total between them.
#[test]
fn case_a76_the_total_is_that_of_all_users_and_workers() {
    const BYTES: u64 = 10_000;
    const LEN: u64 = 400;
    let shared = Arc::new(Shared::new(
        Quotas { bytes_per_second_total: BYTES, user_share_percent: 100, ..world::quotas() },
        64,
        3,
    ));
    let (client, peer) = (addr(CLIENT), addr(PEER));
    let mut workers: Vec<_> = [(0, "alice"), (1, "bob")]
        .into_iter()
        .map(|(number, name)| {
            let mut world = World::sharing(world::config(), world::capacity(), world::secrets(1), &shared, number);
            world.listener.set_port(3_478 + number);
            let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + number);
            world.server.add_relay(RelayId(0), RelayAddress { bound, external: bound }).expect("a relay");
            assert_eq!(world.ask_as(name, client, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 0);
            let attr = world.peer_attr(peer);
            assert_eq!(world.ask_as(name, client, CREATE_PERMISSION, &[attr]).code(), 0);
            world
        })
        .collect();
    let mut tallies = [Tally::default(), Tally::default()];
    for number in 0..STEPS as usize {
        workers.iter_mut().for_each(step);
        // They take turns at being first.
        for worker in [number % 2, 1 - number % 2] {
            let out = workers[worker].send(client, peer, &[1; LEN as usize]);
            tallies[worker].add(&out, DropReason::TotalBandwidth);
        }
    }
    let carried = tallies[0].bytes + tallies[1].bytes;
    // The server had been idle: a second's worth at once.
    assert!(((SECONDS + 1) * BYTES - LEN - 28..=(SECONDS + 1) * BYTES).contains(&carried), "{tallies:?}");
    for (tally, world) in tallies.iter().zip(&workers) {
        assert!(tally.bytes > BYTES && tally.packets + tally.drops == STEPS, "{tallies:?}");
        assert_eq!(world.server.counters().dropped(DropReason::TotalBandwidth), tally.drops);
    }
}

#[test]
fn case_a76_bytes_of_one_allocation_are_its_own() {
    const BYTES: u64 = 1_000;
    let mut world = world_with(Quotas { bytes_per_second_per_allocation: BYTES, ..world::quotas() });
    let (clients, peer) = (["192.0.2.1:1", "192.0.2.1:2"].map(addr), addr(PEER));
    let relays = clients.map(|client| world.allocate(client).0);
    for client in clients {
        assert_eq!(world.bind(client, 0x4000, peer), 0);
    }
    let mut tallies = [Tally::default(), Tally::default()];
    for _ in 0..STEPS {
        step(&mut world);
        for (tally, (client, relay)) in tallies.iter_mut().zip(clients.into_iter().zip(relays)) {
            tally.add(&world.channel_data(client, 0x4000, b""), DropReason::AllocationBandwidth);
            tally.add(&world.peer(relay, peer, b""), DropReason::AllocationBandwidth);
        }
    }
    for tally in &tallies {
        assert!((SECONDS * BYTES - 32..=SECONDS * BYTES).contains(&tally.bytes), "{tallies:?}");
    }
    let drops = tallies[0].drops + tallies[1].drops;
    assert_eq!(world.server.counters().dropped(DropReason::AllocationBandwidth), drops);
}
