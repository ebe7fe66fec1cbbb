//! Allocate and Refresh: cases A44 to A60.

use tt_model::{IpFamily, Transport};
use tt_turn::config::{Capacity, Config, DontFragment};
use tt_turn::relay::{RelayAddress, RelayDemand, RelayId};
use tt_turn::shared::Quotas;
use tt_turn::{ErrorCode, Fragmentation, IpFields, Marks};

use super::wire::{
    self, ADDITIONAL_FAMILY, ADDRESS_FAMILY, ALLOCATE, EVEN_PORT, LIFETIME, MAPPED_ADDRESS, REFRESH, RELAYED_ADDRESS,
    RESERVATION_TOKEN, TRANSPORT, Writer,
};
use super::world::{self, Out, UDP, World, addr, key};

const FROM: &str = "192.0.2.1:1";
const V4: [u8; 4] = [1, 0, 0, 0];
const V6: [u8; 4] = [2, 0, 0, 0];

fn allocate(world: &mut World, attrs: &[(u16, &[u8])]) -> u16 {
    let attrs: Vec<_> =
        [(TRANSPORT, &UDP[..])].iter().chain(attrs).map(|(kind, value)| (*kind, value.to_vec())).collect();
    world.ask(addr(FROM), ALLOCATE, &attrs).code()
}

fn add_v6_relay(world: &mut World, number: u32) {
    let bound = addr(&format!("[2a00::9]:{}", 50_000 + number));
    world.server.add_relay(RelayId(number), RelayAddress { bound, external: bound }).expect("a relay");
}

#[test]
fn allocate_says_relayed_mapped_and_lifetime() {
    let mut world = World::new();
    let reply = world.ask(addr(FROM), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]);
    assert_eq!(reply.kinds(), [RELAYED_ADDRESS, MAPPED_ADDRESS, LIFETIME, wire::INTEGRITY]);
    assert_eq!((reply.address(MAPPED_ADDRESS), reply.lifetime()), (Some(addr(FROM)), Some(600)));
    assert_eq!(reply.address(RELAYED_ADDRESS).map(|relayed| relayed.ip()), Some([198, 41, 0, 9].into()));
}

#[test]
fn the_external_address_is_the_relayed_address() {
    let mut world = World::sharing(
        world::config(),
        world::capacity(),
        world::secrets(1),
        &std::sync::Arc::new(tt_turn::shared::Shared::new(world::quotas(), 64, 1)),
        0,
    );
    let address = RelayAddress { bound: addr("10.0.0.5:50000"), external: addr("203.0.113.5:50000") };
    world.server.add_relay(RelayId(0), address).expect("a relay");
    assert_eq!(world.allocate(addr(FROM)).1, address.external);
}

#[test]
fn case_a44_requested_transport() {
    let mut world = World::new();
    let mut ask = |value: Option<&[u8]>| {
        let attrs: Vec<_> = value.iter().map(|value| (TRANSPORT, value.to_vec())).collect();
        world.ask(addr(FROM), ALLOCATE, &attrs).code()
    };
    assert_eq!(ask(None), 400);
    for len in [0, 1, 3, 5, 8] {
        assert_eq!(ask(Some(&[17; 8][..len])), 400);
    }
    for protocol in [132, 6, 0, 255] {
        assert_eq!(ask(Some(&[protocol, 0, 0, 0])), 442);
    }
    assert_eq!(ask(Some(&[17, 9, 9, 9])), 0);
}

#[test]
fn case_a45_address_families() {
    let mut world = World::new();
    for family in [0, 3, 255] {
        assert_eq!(allocate(&mut world, &[(ADDRESS_FAMILY, &[family, 0, 0, 0])]), 440);
    }
    assert_eq!(allocate(&mut world, &[(ADDRESS_FAMILY, &[1, 0, 0])]), 400);
    assert_eq!(allocate(&mut world, &[(ADDRESS_FAMILY, &V6)]), 440);
    add_v6_relay(&mut world, 40);
    let reply = world.ask(addr(FROM), ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (ADDRESS_FAMILY, V6.to_vec())]);
    assert_eq!(reply.address(RELAYED_ADDRESS), Some(addr("[2a00::9]:50040")));
    // The family's pool is empty: there is no capacity, though the family is served.
    let again = [(TRANSPORT, UDP.to_vec()), (ADDRESS_FAMILY, V6.to_vec())];
    assert_eq!(world.ask(addr("192.0.2.1:2"), ALLOCATE, &again).code(), 508);
    let v4 = [(TRANSPORT, UDP.to_vec()), (ADDRESS_FAMILY, V4.to_vec())];
    assert_eq!(world.ask(addr("192.0.2.1:3"), ALLOCATE, &v4).code(), 0);
}

#[test]
fn case_a46_a47_attributes_that_exclude_each_other() {
    let mut world = World::new();
    let token: &[u8] = &[7; 8];
    assert_eq!(allocate(&mut world, &[(ADDRESS_FAMILY, &V4), (ADDITIONAL_FAMILY, &V6)]), 400);
    assert_eq!(allocate(&mut world, &[(ADDITIONAL_FAMILY, &V4)]), 400);
    assert_eq!(allocate(&mut world, &[(ADDITIONAL_FAMILY, &V6), (EVEN_PORT, &[0x80])]), 400);
    for other in [(EVEN_PORT, &[0u8][..]), (ADDRESS_FAMILY, &V4), (ADDITIONAL_FAMILY, &V6)] {
        assert_eq!(allocate(&mut world, &[(RESERVATION_TOKEN, token), other]), 400);
    }
    for len in [0, 7, 9] {
        assert_eq!(allocate(&mut world, &[(RESERVATION_TOKEN, &[7; 9][..len])]), 400);
    }
    assert_eq!(allocate(&mut world, &[(EVEN_PORT, &[0, 0])]), 400);
    // Well-formed and not to be had: 508. No two relays here stand on a port and the next one, as far as is known.
    assert_eq!(allocate(&mut world, &[(RESERVATION_TOKEN, token)]), 508);
    assert_eq!(allocate(&mut world, &[(EVEN_PORT, &[0x80])]), 508);
    assert_eq!(world.server.allocations(), 0);
}

#[test]
fn additional_family_is_answered_with_its_error() {
    let mut world = World::new();
    let attrs = [(TRANSPORT, UDP.to_vec()), (ADDITIONAL_FAMILY, V6.to_vec())];
    let reply = world.ask(addr(FROM), ALLOCATE, &attrs);
    assert_eq!((reply.code(), reply.get(wire::ADDRESS_ERROR_CODE)), (0, Some(&[2, 0, 4, 40][..])));
    assert!(reply.address(RELAYED_ADDRESS).is_some_and(|relayed| relayed.is_ipv4()));
}

#[test]
fn case_a49_even_ports_come_back() {
    let mut world = World::new();
    for round in 0..320 {
        let attrs = [(TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0])];
        let reply = world.ask(addr(FROM), ALLOCATE, &attrs);
        assert_eq!(reply.code(), 0, "{round}");
        assert_eq!(reply.address(RELAYED_ADDRESS).map(|relayed| relayed.port() % 2), Some(0));
        assert_eq!(world.ask(addr(FROM), REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
        let Some(RelayDemand::Retire(id)) = world.server.poll_relay() else { panic!("a relay to retire") };
        assert_eq!(world.server.poll_relay(), None);
        let bound = addr(&format!("198.41.0.9:{}", 50_000 + id.0));
        world.server.add_relay(id, RelayAddress { bound, external: bound }).expect("a relay");
    }
    assert_eq!(world.server.relays_pooled(IpFamily::V4), 32);
}

#[test]
fn case_a51_an_exhausted_pool_recovers() {
    let mut world = World::new();
    let client = |number: u16| std::net::SocketAddr::new([192, 0, 2, 1].into(), 1_000 + number);
    let mut ports: Vec<u16> = (0..32).map(|number| world.allocate(client(number)).1.port()).collect();
    ports.sort_unstable();
    assert_eq!(ports, (50_000..50_032).collect::<Vec<_>>(), "every relay serves one allocation");
    assert_eq!(world.ask(client(99), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 508);
    assert_eq!(world.ask(client(3), REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    // The freed relay rests until the driver gives it back.
    assert_eq!(world.ask(client(99), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 508);
    let Some(RelayDemand::Retire(id)) = world.server.poll_relay() else { panic!("a relay to retire") };
    let bound = addr("198.41.0.9:50099");
    world.server.add_relay(id, RelayAddress { bound, external: bound }).expect("a relay");
    assert_eq!(world.allocate(client(99)).1, bound);
    assert_eq!(world.server.counters().errors[ErrorCode::InsufficientCapacity as usize], 2);
}

#[test]
fn relayed_ports_are_drawn_at_random() {
    let mut first = [0u32; 32];
    for seed in 0..=255 {
        let mut world = World::with(world::config(), world::quotas(), world::capacity(), world::secrets(seed));
        first[world.allocate(addr(FROM)).0.0 as usize] += 1;
    }
    // Chi-square with 31 degrees of freedom: above 61 in one of a thousand.
    let chi_square: f64 = first.iter().map(|count| (f64::from(*count) - 8.0).powi(2) / 8.0).sum();
    assert!(chi_square < 61.0, "{chi_square} {first:?}");
}

#[test]
fn case_a53_lifetimes() {
    for (asked, granted) in
        [(0u32, 600), (1, 600), (600, 600), (601, 601), (3_600, 3_600), (3_601, 3_600), (u32::MAX, 3_600)]
    {
        let mut world = World::new();
        let attrs = [(TRANSPORT, UDP.to_vec()), (LIFETIME, asked.to_be_bytes().to_vec())];
        assert_eq!(world.ask(addr(FROM), ALLOCATE, &attrs).lifetime(), Some(granted));
        if asked > 0 {
            assert_eq!(world.ask(addr(FROM), REFRESH, &attrs[1..]).lifetime(), Some(granted));
        }
        assert_eq!(world.ask(addr(FROM), REFRESH, &[(LIFETIME, vec![0; 3])]).code(), 400);
        assert_eq!(world.ask(addr(FROM), REFRESH, &[]).lifetime(), Some(600));
    }
}

#[test]
fn allocations_end_with_their_lifetime_to_the_second() {
    let mut world = World::new();
    world.allocate(addr(FROM));
    world.pass_s(599);
    assert_eq!(world.ask(addr(FROM), REFRESH, &[(LIFETIME, 700u32.to_be_bytes().to_vec())]).code(), 0);
    world.pass_s(699);
    let peer = world.peer_attr(addr("8.8.8.8:1"));
    assert_eq!(world.ask(addr(FROM), wire::CREATE_PERMISSION, &[peer]).code(), 0);
    world.pass_s(1);
    // handle_timeout has not been called yet, and it has expired.
    assert_eq!(world.ask(addr(FROM), REFRESH, &[]).code(), 437);
    assert_eq!(world.server.allocations(), 1);
    world.run_s(1);
    assert_eq!((world.server.allocations(), world.server.poll_timeout()), (0, None));
    assert!(matches!(world.server.poll_relay(), Some(RelayDemand::Retire(_))));
    assert_eq!(world.server.counters().allocations_ended, 1);
}

#[test]
fn an_expired_allocation_gives_way_to_a_new_one() {
    let mut world = World::new();
    world.allocate(addr(FROM));
    world.pass_s(600);
    world.allocate(addr(FROM));
    assert_eq!(world.server.allocations(), 1);
}

#[test]
fn case_a55_a_retransmission_changes_nothing() {
    let mut world = World::new();
    let from = addr(FROM);
    let request = world.unsigned(from, "alice", ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).integrity(&key("alice")).0;
    let first = world.client(from, &request).reply();
    world.now.0 += 500_000_000;
    assert_eq!(world.client(from, &request).reply().bytes, first.bytes);
    world.now.0 += 9_500_000_000;
    let late = world.client(from, &request).reply();
    assert_eq!(late.address(RELAYED_ADDRESS), first.address(RELAYED_ADDRESS));
    assert_eq!((late.lifetime(), world.server.allocations()), (Some(590), 1));
    assert_eq!(world.ask(from, ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 437);
}

/// The server of a driver that cannot set the DF bit.
#[test]
fn rfc_r074_case_a56_dont_fragment_where_it_is_not_supported() {
    let config = Config { dont_fragment: DontFragment::Unknown, ..world::config() };
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let attrs = [(TRANSPORT, UDP.to_vec()), (wire::DONT_FRAGMENT, vec![]), (0x7777, vec![])];
    let reply = world.ask(addr(FROM), ALLOCATE, &attrs[..2]);
    assert_eq!((reply.code(), reply.get(wire::UNKNOWN_ATTRIBUTES)), (420, Some(&[0, 0x1A][..])));
    let reply = world.ask(addr(FROM), ALLOCATE, &attrs);
    assert_eq!((reply.code(), reply.get(wire::UNKNOWN_ATTRIBUTES)), (420, Some(&[0x77, 0x77, 0, 0x1A][..])));
    let peer = addr("8.8.8.8:1");
    world.allocate(addr(FROM));
    assert_eq!(world.permit(addr(FROM), peer), 0);
    let tid = world.tid();
    let send = Writer::new(wire::SEND, 1, tid).address(wire::PEER_ADDRESS, peer).attr(wire::DONT_FRAGMENT, &[]);
    world.dropped(addr(FROM), &send.attr(wire::DATA, b"x").0, tt_turn::DropReason::SendUnsupported);
    // Elsewhere it means nothing, supported or not.
    assert_eq!(world.ask(addr(FROM), REFRESH, &[(wire::DONT_FRAGMENT, vec![])]).code(), 0);
}

/// RFC 8656 sections 14 and 15: DF where the client asks for it, 0 else; a byte stream has no marks to copy.
#[test]
fn rfc_r114_what_the_ip_header_says() {
    let (from, peer) = (addr(FROM), addr("8.8.8.8:1"));
    for (transport, marks) in
        [(Transport::Udp, Marks::Incoming), (Transport::Tcp, Marks::System), (Transport::Tls, Marks::System)]
    {
        let mut world = World::new();
        world.transport = transport;
        let attrs = [(TRANSPORT, UDP.to_vec()), (wire::DONT_FRAGMENT, vec![])];
        assert_eq!(world.ask(from, ALLOCATE, &attrs).code(), 0);
        assert_eq!(world.bind(from, 0x4000, peer), 0);
        let tid = world.tid();
        let send = Writer::new(wire::SEND, 1, tid).address(wire::PEER_ADDRESS, peer).attr(wire::DATA, b"x");
        let whole = send.clone().attr(wire::DONT_FRAGMENT, &[]).0;
        for (datagram, fragmentation) in [
            (send.0, Fragmentation::Allowed),
            (whole, Fragmentation::Forbidden),
            (vec![0x40, 0, 0, 0], Fragmentation::Allowed),
        ] {
            assert!(matches!(world.client(from, &datagram), Out::ToPeer { .. }));
            assert_eq!(world.ip.take(), Some(IpFields { fragmentation, marks }));
        }
    }
}

#[test]
fn case_a57_clients_behind_tunnels() {
    let mut world = World::new();
    for from in ["[2002:808:808::1]:9", "[2001:0:1::1]:9"] {
        assert_eq!(world.ask(addr(from), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 403);
    }
}

#[test]
fn case_a58_a59_a60_refresh() {
    let mut world = World::new();
    let from = addr(FROM);
    assert_eq!(world.ask(from, REFRESH, &[]).code(), 437);
    world.allocate(from);
    assert_eq!(world.ask(from, REFRESH, &[(ADDRESS_FAMILY, V6.to_vec())]).code(), 443);
    assert_eq!(world.ask(from, REFRESH, &[(ADDRESS_FAMILY, V4.to_vec())]).code(), 0);
    let end = world.unsigned(from, "alice", REFRESH, &[(LIFETIME, vec![0; 4])]).integrity(&key("alice")).0;
    let reply = world.client(from, &end).reply();
    assert_eq!((reply.code(), reply.lifetime()), (0, Some(0)));
    assert_eq!(world.client(from, &end).reply().code(), 437);
    for method in [wire::CREATE_PERMISSION, wire::CHANNEL_BIND] {
        assert_eq!(world.ask(from, method, &[]).code(), 437);
    }
    let tid = world.tid();
    let send = Writer::new(wire::SEND, 1, tid).address(wire::PEER_ADDRESS, addr("8.8.8.8:1")).attr(wire::DATA, b"x");
    world.dropped(from, &send.0, tt_turn::DropReason::NoAllocation);
    world.dropped(from, &[0x40, 0, 0, 0], tt_turn::DropReason::NoAllocation);
    world.probe();
}

#[test]
fn quotas_per_user_and_in_total() {
    let quotas = Quotas { allocations_per_user: 2, allocations_total: 3, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    let transport = [(TRANSPORT, UDP.to_vec())];
    let client = |number: u16| std::net::SocketAddr::new([192, 0, 2, 1].into(), number);
    assert_eq!(world.ask(client(1), ALLOCATE, &transport).code(), 0);
    assert_eq!(world.ask(client(2), ALLOCATE, &transport).code(), 0);
    assert_eq!(world.ask(client(3), ALLOCATE, &transport).code(), 486);
    assert_eq!(world.ask_as("bob", client(4), ALLOCATE, &transport).code(), 0);
    assert_eq!(world.ask_as("bob", client(5), ALLOCATE, &transport).code(), 486);
    assert_eq!(world.ask(client(1), REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.ask_as("bob", client(5), ALLOCATE, &transport).code(), 0);
    world.run_s(601);
    assert_eq!(world.ask(client(7), ALLOCATE, &transport).code(), 0);
    assert_eq!(world.server.relays_pooled(IpFamily::V4), 32 - 5, "a refused Allocate keeps no relay");
}

#[test]
fn room_for_allocations_is_508() {
    let capacity = Capacity { allocations: 2, ..world::capacity() };
    let mut world = World::with(world::config(), world::quotas(), capacity, world::secrets(1));
    world.allocate(addr("192.0.2.1:1"));
    world.allocate(addr("192.0.2.1:2"));
    assert_eq!(world.ask(addr("192.0.2.1:3"), ALLOCATE, &[(TRANSPORT, UDP.to_vec())]).code(), 508);
}

#[test]
fn rfc_r115_reserved_bits_are_ignored() {
    let mut world = World::new();
    add_v6_relay(&mut world, 40);
    let attrs =
        [(TRANSPORT, vec![17, 0xFF, 0xFF, 0xFF]), (EVEN_PORT, vec![0x7F]), (ADDRESS_FAMILY, vec![1, 0xFF, 0xFF, 0xFF])];
    let reply = world.ask(addr(FROM), ALLOCATE, &attrs);
    assert_eq!((reply.code(), reply.get(RESERVATION_TOKEN)), (0, None));
    assert_eq!(reply.address(RELAYED_ADDRESS).map(|relayed| (relayed.is_ipv4(), relayed.port() % 2)), Some((true, 0)));
    let both = [(TRANSPORT, vec![17, 1, 2, 3]), (ADDITIONAL_FAMILY, vec![2, 0xFF, 0xFF, 0xFF])];
    let reply = world.ask(addr("192.0.2.1:2"), ALLOCATE, &both);
    assert_eq!((reply.code(), reply.kinds()[..2].to_vec()), (0, vec![RELAYED_ADDRESS; 2]));
    let peer = world.peer_attr(addr("8.8.8.8:1"));
    let number = (wire::CHANNEL_NUMBER, vec![0x40, 0x00, 0xFF, 0xFF]);
    assert_eq!(world.ask(addr(FROM), wire::CHANNEL_BIND, &[number, peer]).code(), 0);
    assert!(matches!(world.channel_data(addr(FROM), 0x4000, b"x"), Out::ToPeer { .. }));
    assert_eq!(world.ask(addr(FROM), REFRESH, &[(ADDRESS_FAMILY, vec![1, 0xFF, 0, 0xFF])]).code(), 0);
}

#[test]
fn rfc_r095_a_refresh_returns_the_lifetime_and_refreshes_no_permission() {
    let mut world = World::new();
    let (from, peer) = (addr(FROM), addr("8.8.8.8:1"));
    world.allocate(from);
    assert_eq!(world.bind(from, 0x4000, peer), 0);
    world.run_s(299);
    let reply = world.ask(from, REFRESH, &[(LIFETIME, 1_000u32.to_be_bytes().to_vec())]);
    assert_eq!((reply.code(), reply.lifetime(), reply.kinds()), (0, Some(1_000), vec![LIFETIME, wire::INTEGRITY]));
    assert!(matches!(world.send(from, peer, b"x"), Out::ToPeer { .. }));
    world.run_s(2);
    assert_eq!(world.send(from, peer, b"x"), Out::Drop(tt_turn::DropReason::NoPermission));
    world.run_s(300);
    assert_eq!(world.channel_data(from, 0x4000, b"x"), Out::Drop(tt_turn::DropReason::ChannelUnbound));
}
