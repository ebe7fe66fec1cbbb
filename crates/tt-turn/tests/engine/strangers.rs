//! Error replies to senders without credentials: no sender takes them from another, and little goes to a forged source.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tt_meter::Off;
use tt_model::{FiveTuple, Nanos, Transport};
use tt_turn::config::Config;
use tt_turn::shared::{Budget, Quotas};
use tt_turn::{DropReason, Output};

use super::wire::{self, ALLOCATE, NONCE, REFRESH, Writer};
use super::world::{self, Out, REALM, UDP, World, addr, key};

/// 127 characters of four bytes: the longest realm, and so the longest 401.
fn longest_realm() -> String {
    "\u{1F600}".repeat(127)
}

fn default_world(realm: &str) -> World {
    let config = Config::new(realm);
    World::with(config, Quotas::default(), world::capacity(), world::secrets(1))
}

/// The first request of a usual client, 28 bytes.
fn first_allocate(tid: u64) -> Vec<u8> {
    let mut id = [7; 12];
    id[4..].copy_from_slice(&tid.to_be_bytes());
    Writer::new(ALLOCATE, 0, id).attr(wire::TRANSPORT, &UDP).0
}

/// The shortest request, 20 bytes.
fn bare_allocate(tid: u64) -> Vec<u8> {
    let mut id = [9; 12];
    id[4..].copy_from_slice(&tid.to_be_bytes());
    Writer::new(ALLOCATE, 0, id).0
}

/// The length of the 401 to a request, or `None` if its budget is used up.
fn challenged(world: &mut World, from: SocketAddr, request: &[u8]) -> Option<usize> {
    let flow = world.flow(from);
    match world.server.handle_client(world.now, &flow, request, &mut world.out, &mut Off) {
        Output::Reply { len, .. } => {
            assert_eq!(&world.out[24..28], &[0, 0, 4, 1], "401");
            Some(len)
        }
        Output::Drop(DropReason::ErrorBudget) => None,
        other @ (Output::ToPeer { .. }
        | Output::ToClient { .. }
        | Output::ToWorker { .. }
        | Output::HandOff(_)
        | Output::Drop(_)) => panic!("{other:?}"),
    }
}

#[test]
fn first_challenge_has_at_most_three_times_its_requests_bytes() {
    let mut world = default_world("truetick");
    let request = first_allocate(1);
    assert_eq!((request.len(), challenged(&mut world, addr("192.0.2.1:1"), &request)), (28, Some(84)));
}

/// An office after a blip: all clients behind one address ask in the same moment.
#[test]
fn a_thousand_clients_of_one_address_are_challenged_at_once() {
    for realm in ["truetick", &longest_realm()] {
        let mut world = default_world(realm);
        let office = IpAddr::from([192, 0, 2, 7]);
        let clients = 0..1_000u16;
        let served = clients.filter(|client| {
            challenged(&mut world, SocketAddr::new(office, 1_024 + client), &first_allocate((*client).into())).is_some()
        });
        assert_eq!(served.count(), 1_000, "{} bytes of realm", realm.len());
    }
}

/// Junk in the name of the victim's address, while a flood from everywhere has used up what is free.
#[test]
fn junk_in_the_name_of_an_address_takes_nothing_from_its_clients() {
    let mut world = World::with(world::config(), Quotas::default(), world::capacity(), world::secrets(1));
    let victim = IpAddr::from([192, 0, 2, 7]);
    let (live, over_udp) = (SocketAddr::new(victim, 5_000), SocketAddr::new(victim, 6_000));
    world.allocate(live);
    let stale = world.nonce(live);
    world.run_s(1);
    // The nonce of the live call is of an earlier key: the next request of it gets 438.
    let mut secrets = tt_turn::credential::Secrets::new([1; 32], [78; 32]);
    secrets.add_user(b"alice", REALM, world::PASSWORD.as_bytes());
    world.server.replace_secrets(world.now, &secrets);
    let start = world.now;
    let (mut junk, mut served) = (0u64, [0u32; 3]);
    for ms in 0..10_000u64 {
        world.now = start.saturating_add(Nanos::from_millis(ms));
        if ms % 2 == 0 {
            // 500 a second from the address, each from another port.
            junk += 1;
            let _ = challenged(&mut world, SocketAddr::new(victim, 10_000 + (ms % 30_000) as u16), &bare_allocate(ms));
        }
        if ms % 100 == 0 {
            let port = 20_000 + (ms / 100) as u16;
            served[0] +=
                u32::from(challenged(&mut world, SocketAddr::new(victim, port), &first_allocate(ms)).is_some());
            for transport in [Transport::Tcp, Transport::Tls] {
                world.transport = transport;
                let request = bare_allocate(ms);
                served[1] += u32::from(challenged(&mut world, over_udp, &request).is_some());
                world.transport = Transport::Udp;
            }
            let tid = world.tid();
            let request = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, b"alice");
            let request = request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &stale).integrity(&key("alice"));
            let reply = world.client(live, &request.0).reply();
            assert_eq!(reply.code(), 438);
            served[2] += 1;
        }
    }
    assert_eq!((junk, served), (5_000, [100, 200, 100]));
}

/// Where everything that may be spent is spent: no budget is left for any source.
#[test]
fn clients_that_are_proven_need_no_budget() {
    let none = Budget { per_second: 0, burst: 0 };
    let quotas = Quotas { error_excess: none, error_excess_per_source: none, ..Quotas::default() };
    let mut world = World::with(Config::new(&longest_realm()), quotas, world::capacity(), world::secrets(1));
    let from = addr("192.0.2.1:1");
    let mut ask = |transport, request: &[u8]| {
        world.transport = transport;
        challenged(&mut world, from, request).is_some()
    };
    assert!(!ask(Transport::Udp, &first_allocate(1)), "a stranger");
    for transport in [Transport::Tcp, Transport::Tls] {
        assert!(ask(transport, &first_allocate(2)) && ask(transport, &bare_allocate(3)), "{transport:?}");
    }
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    // A stranger gets nothing, so the first nonce comes over TCP; the same address and port are another flow.
    world.transport = Transport::Tcp;
    let nonce = world.nonce(from);
    world.transport = Transport::Udp;
    let tid = world.tid();
    let allocate = Writer::new(ALLOCATE, 0, tid).attr(wire::TRANSPORT, &UDP).attr(wire::USERNAME, b"alice");
    let allocate = allocate.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce).integrity(&key("alice")).0;
    assert_eq!(world.client(from, &allocate).reply().code(), 0);
    // A live allocation gets its 401s, however short the request, and its 438s.
    assert!(challenged(&mut world, from, &bare_allocate(4)).is_some());
    world.pass_s(590);
    assert!(challenged(&mut world, from, &bare_allocate(5)).is_some());
    world.pass_s(11);
    assert!(challenged(&mut world, from, &bare_allocate(6)).is_none(), "it has expired");
}

/// Every reply to a request with credentials has at most three times its bytes: it needs no budget.
#[test]
fn replies_to_credentials_need_no_budget() {
    let none = Budget { per_second: 0, burst: 0 };
    let quotas = Quotas { error_excess: none, error_excess_per_source: none, ..Quotas::default() };
    let mut world = World::with(Config::new("truetick"), quotas, world::capacity(), world::secrets(1));
    for (name, nonce) in [("alice", &b"obMatJos2wAAAforeign"[..]), ("mallory", b"x"), ("", b"")] {
        let tid = world.tid();
        let request = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, name.as_bytes());
        let request = request.attr(wire::REALM, b"truetick").attr(NONCE, nonce);
        let key = wire::md5_key("alice", "truetick", world::PASSWORD);
        let reply = world.client(addr("192.0.2.1:1"), &request.integrity(&key).0);
        assert!(matches!(reply, Out::Reply(_)), "{name} {nonce:?}: {reply:?}");
    }
}

/// 200,000 a second from random sources, for a second: the first tries of others are answered.
#[test]
fn forged_sources_from_everywhere_take_nothing_from_others() {
    for realm in ["truetick", "a realm of thirty-two characters."] {
        let mut world = default_world(realm);
        let start = world.now;
        let mut random = numbers(1);
        let (mut asked, mut served, mut flood_bytes) = (0u32, 0u32, 0usize);
        for number in 0..200_000u64 {
            world.now = start.saturating_add(Nanos(number * 5_000));
            let bits = random();
            let forged = SocketAddr::new(Ipv4Addr::from_bits(bits as u32).into(), (bits >> 32) as u16);
            flood_bytes += challenged(&mut world, forged, &bare_allocate(number)).unwrap_or(0);
            if number.is_multiple_of(500) {
                let bits = random();
                let honest = SocketAddr::new(Ipv4Addr::from_bits(bits as u32).into(), (bits >> 32) as u16);
                asked += 1;
                served += u32::from(challenged(&mut world, honest, &first_allocate(number)).is_some());
            }
        }
        assert!(asked == 400 && served * 100 >= asked * 99, "{realm}: {served} of {asked}");
        assert!(flood_bytes > 0);
    }
}

/// One sender who has a prefix has one budget: the rest of the world, and the neighbouring prefix, have theirs.
#[test]
fn a_hundred_thousand_sources_of_one_ipv6_prefix_are_one_source() {
    let excess_of = |prefix_bits| {
        let quotas = Quotas { ipv6_prefix_bits: prefix_bits, ..Quotas::default() };
        let config = Config::new(&longest_realm());
        let mut world = World::with(config, quotas, world::capacity(), world::secrets(1));
        world.listener = addr("[2001:4860::9]:3478");
        let source = |prefix: u128, host: u128| {
            let bits = 0x2A00_0000 << 96 | prefix << 64 | host;
            SocketAddr::new(Ipv6Addr::from_bits(bits).into(), 4_000)
        };
        let mut excess = 0;
        for host in 0..100_000u128 {
            let request = bare_allocate(host as u64);
            let reply = challenged(&mut world, source(1, host << 17 | host), &request);
            excess += reply.map_or(0, |len| len - 3 * request.len());
        }
        let others = (2..102u128)
            .filter(|prefix| challenged(&mut world, source(*prefix, 1), &first_allocate(*prefix as u64)).is_some());
        (excess, others.count())
    };
    let Quotas { error_excess, error_excess_per_source, .. } = Quotas::default();
    let (whole, others) = excess_of(64);
    let bound = error_excess.burst + error_excess_per_source.burst;
    assert!(whole <= bound as usize && others == 100, "{whole} of {bound}; {others} others");
    let (split, _) = excess_of(128);
    assert!(split > 10 * whole, "with single addresses as sources each has a budget: {split}");
}

#[test]
fn strangers_cost_no_memory() {
    let mut world = default_world(&longest_realm());
    let requests: Vec<_> = (0..1_000).map(bare_allocate).collect();
    let (now, listener) = (world.now, world.listener);
    let counted = allocation_counter::measure(|| {
        for (host, request) in (0u32..).zip(requests.iter().cycle().take(20_000)) {
            let client = SocketAddr::new(Ipv4Addr::from_bits(host % 20).into(), 1);
            let flow = FiveTuple { client, server: listener, transport: Transport::Udp };
            let output = world.server.handle_client(now, &flow, request, &mut world.out, &mut Off);
            assert!(matches!(output, Output::Reply { .. } | Output::Drop(DropReason::ErrorBudget)));
        }
    });
    assert_eq!(counted.count_total, 0);
    assert!(world.server.counters().dropped(DropReason::ErrorBudget) > 0);
}

/// Numbers of a linear congruential generator.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    }
}
