//! ICMP errors on their way to the client: RFC 8656 sections 11.5 and 18.13.

use tt_turn::DropReason;
use tt_turn::config::{Config, IcmpIndications};
use tt_turn::relay::{IcmpError, RelayAddress, RelayId};

use super::wire::{self, ICMP, LIFETIME, PEER_ADDRESS, REFRESH, Reading, TRANSPORT};
use super::world::{self, Out, UDP, World, addr};

const FROM: &str = "192.0.2.1:1";
const V6_RELAY: RelayId = RelayId(40);

fn error(relay: RelayId, peer: &str, kind: u8, code: u8) -> IcmpError {
    IcmpError { relay, peer: addr(peer), kind, code, mtu: 1_280 }
}

/// An allocation of each family with a permission: returns the relay of the IPv4 one.
fn world() -> (World, RelayId) {
    world_with(IcmpIndications::Always)
}

fn world_with(icmp_indications: IcmpIndications) -> (World, RelayId) {
    let config = Config { icmp_indications, ..world::config() };
    let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
    let bound = addr("[2a00::9]:50040");
    world.server.add_relay(V6_RELAY, RelayAddress { bound, external: bound }).expect("a relay");
    let (relay, _) = world.allocate(addr(FROM));
    let v6 = addr("192.0.2.1:2");
    let attrs = [(TRANSPORT, UDP.to_vec()), (wire::ADDRESS_FAMILY, vec![2, 0, 0, 0])];
    assert_eq!(world.ask(v6, wire::ALLOCATE, &attrs).code(), 0);
    assert_eq!(world.permit(addr(FROM), addr("8.8.8.8:53")), 0);
    assert_eq!(world.permit(v6, addr("[2606:4700::1]:53")), 0);
    (world, relay)
}

fn indication(out: Out, client: &str) -> Reading {
    let Out::ToClient { client: to, bytes } = out else { panic!("{out:?}") };
    assert_eq!(to, addr(client));
    let reading = Reading::of(&bytes);
    assert_eq!((reading.method, reading.class, reading.kinds()), (wire::DATA_METHOD, 1, vec![PEER_ADDRESS, ICMP]));
    reading
}

#[test]
fn rfc_r107_rfc_r108_case_a74_a_permitted_error_is_a_data_indication() {
    let (mut world, relay) = world();
    // Figure 11: 16 reserved bits, type in 7, code in 9, the MTU if the type defines one.
    for (kind, code, value) in [
        (3, 4, [0, 0, 3 << 1, 4, 0, 0, 5, 0]),
        (3, 3, [0, 0, 3 << 1, 3, 0, 0, 0, 0]),
        (3, 255, [0, 0, 3 << 1, 255, 0, 0, 0, 0]),
        (11, 0, [0, 0, 11 << 1, 0, 0, 0, 0, 0]),
        (11, 4, [0, 0, 11 << 1, 4, 0, 0, 0, 0]),
    ] {
        let reading = indication(world.icmp(error(relay, "8.8.8.8:53", kind, code)), FROM);
        assert_eq!(reading.get(ICMP), Some(&value[..]));
        assert_eq!(reading.address(PEER_ADDRESS), Some(addr("8.8.8.8:53")));
    }
    for (kind, code, value) in [
        (1, 4, [0, 0, 1 << 1, 4, 0, 0, 0, 0]),
        (2, 0, [0, 0, 2 << 1, 0, 0, 0, 5, 0]),
        (2, 9, [0, 0, 2 << 1, 9, 0, 0, 5, 0]),
        (3, 1, [0, 0, 3 << 1, 1, 0, 0, 0, 0]),
    ] {
        let reading = indication(world.icmp(error(V6_RELAY, "[2606:4700::1]:53", kind, code)), "192.0.2.1:2");
        assert_eq!(reading.get(ICMP), Some(&value[..]));
        assert_eq!(reading.address(PEER_ADDRESS), Some(addr("[2606:4700::1]:53")));
    }
    // The port is neither needed nor compared.
    for port in [0, 9] {
        let peer = format!("8.8.8.8:{port}");
        let reading = indication(world.icmp(error(relay, &peer, 3, 1)), FROM);
        assert_eq!(reading.address(PEER_ADDRESS), Some(addr(&peer)));
    }
}

#[test]
fn rfc_r107_case_a74_every_other_error_is_dropped_under_a_name() {
    let (mut world, relay) = world();
    let mut dropped = |error: IcmpError, reason: DropReason| {
        let before = *world.server.counters();
        assert_eq!(world.icmp(error), Out::Drop(reason), "{error:?}");
        let after = *world.server.counters();
        assert_eq!((after.dropped(reason), after.relayed()), (before.dropped(reason) + 1, before.relayed()));
    };
    for kind in 0..=255 {
        if kind != 3 && kind != 11 {
            dropped(error(relay, "8.8.8.8:53", kind, 4), DropReason::IcmpType);
        }
        if !(1..=3).contains(&kind) {
            dropped(error(V6_RELAY, "[2606:4700::1]:53", kind, 0), DropReason::IcmpType);
        }
    }
    dropped(error(relay, "8.8.4.4:53", 3, 4), DropReason::NoPermission);
    dropped(error(V6_RELAY, "[2606:4700::2]:53", 2, 0), DropReason::NoPermission);
    dropped(error(relay, "[2606:4700::1]:53", 2, 0), DropReason::NoPermission);
    for unknown in [RelayId(41), RelayId(63), RelayId(64), RelayId(u32::MAX)] {
        dropped(error(unknown, "8.8.8.8:53", 3, 4), DropReason::RelayUnallocated);
    }
    world.pass_s(300);
    assert_eq!(world.icmp(error(relay, "8.8.8.8:53", 3, 4)), Out::Drop(DropReason::NoPermission));
    assert_eq!(world.ask(addr(FROM), REFRESH, &[(LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.icmp(error(relay, "8.8.8.8:53", 3, 4)), Out::Drop(DropReason::RelayUnallocated));
    world.probe();
}

/// A client of RFC 5766 may fail at a Data indication without DATA, so only those that have shown an attribute of RFC
/// 8489 or 8656 get one.
#[test]
fn only_clients_that_know_the_icmp_attribute_get_it() {
    let closed = |relay| error(relay, "8.8.8.8:53", 3, 3);
    let (mut world, relay) = world_with(IcmpIndications::Auto);
    assert_eq!(world.icmp(closed(relay)), Out::Drop(DropReason::IcmpClient));
    // The order of the checks stays: without a permission it is none of the client's business.
    assert_eq!(world.icmp(error(relay, "9.9.9.9:53", 3, 3)), Out::Drop(DropReason::NoPermission));
    // SOFTWARE and ADDITIONAL attributes of RFC 6156 show nothing.
    assert_eq!(world.ask(addr(FROM), REFRESH, &[(wire::SOFTWARE, b"rfc 5766".to_vec())]).code(), 0);
    assert_eq!(world.icmp(closed(relay)), Out::Drop(DropReason::IcmpClient));
    // Another user's request on the flow shows nothing of the client.
    let sha256 = |world: &mut World, name: &str| {
        let offered = world.challenge(addr(FROM)).get(wire::PASSWORD_ALGORITHMS).expect("an offer").to_vec();
        let request = world.unsigned(addr(FROM), name, REFRESH, &[]).attr(wire::PASSWORD_ALGORITHMS, &offered);
        let key = wire::sha256_key(name, world::REALM, world::PASSWORD);
        let request = request.attr(wire::PASSWORD_ALGORITHM, &[0, 2, 0, 0]).integrity_sha256(&key);
        world.client(addr(FROM), &request.0).reply().code()
    };
    assert_eq!(sha256(&mut world, "bob"), 441);
    assert_eq!(world.icmp(closed(relay)), Out::Drop(DropReason::IcmpClient));
    assert_eq!(sha256(&mut world, "alice"), 0);
    indication(world.icmp(closed(relay)), FROM);
    let (mut world, relay) = world_with(IcmpIndications::Never);
    assert_eq!(sha256(&mut world, "alice"), 0);
    assert_eq!(world.icmp(closed(relay)), Out::Drop(DropReason::IcmpClient));
}

/// Each attribute of RFC 8656 that a client may put into an Allocate shows that the client knows it.
#[test]
fn an_allocate_shows_what_its_client_knows() {
    for (kind, value, knows) in [
        (wire::ADDITIONAL_FAMILY, vec![2, 0, 0, 0], true),
        (0x8001, vec![2, 0, 4, 40], true),
        (ICMP, vec![0; 8], true),
        (LIFETIME, vec![0, 0, 2, 88], false),
        (wire::ADDRESS_FAMILY, vec![1, 0, 0, 0], false),
        (0x8005, vec![0; 4], false),
    ] {
        let mut world = World::new();
        let bound = addr("[2a00::9]:50040");
        world.server.add_relay(V6_RELAY, RelayAddress { bound, external: bound }).expect("a relay");
        let reply = world.ask(addr(FROM), wire::ALLOCATE, &[(TRANSPORT, UDP.to_vec()), (kind, value)]);
        let relayed = reply.address(wire::RELAYED_ADDRESS).expect("an address");
        let relay = RelayId(u32::from(relayed.port() - 50_000));
        assert_eq!(world.permit(addr(FROM), addr("8.8.8.8:53")), 0);
        let out = world.icmp(error(relay, "8.8.8.8:53", 3, 3));
        assert_eq!(matches!(out, Out::ToClient { .. }), knows, "{kind:#06x}: {out:?}");
    }
}
