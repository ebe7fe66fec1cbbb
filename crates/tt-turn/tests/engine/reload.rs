//! Secrets replaced while allocations live, and the list of live allocations.

use tt_turn::config::{Config, Hairpin};
use tt_turn::credential::Secrets;
use tt_turn::shared::{Pools, Quotas};

use super::wire::{self, ALLOCATE, NONCE, REFRESH, Writer};
use super::world::{self, Out, REALM, UDP, World, addr, key};

const NONCE_KEY: [u8; 32] = [77; 32];

/// The code of the answer to a Refresh, 0 for a success.
fn refresh(world: &mut World, name: &str, from: &str, password: &str) -> u16 {
    let request = world.unsigned(addr(from), name, REFRESH, &[]);
    world.client(addr(from), &request.integrity(&wire::md5_key(name, REALM, password)).0).reply().code()
}

#[test]
fn a_removed_user_relays_and_refreshes_on() {
    let mut world = World::new();
    let (ann, bob, peer) = ("192.0.2.1:1", "192.0.2.2:1", addr("8.8.8.8:53"));
    let (relay, _) = world.allocate(addr(ann));
    let transport = (wire::TRANSPORT, UDP.to_vec());
    assert_eq!(world.ask_as("bob", addr(bob), ALLOCATE, &[transport]).code(), 0);
    assert_eq!(world.permit(addr(ann), peer), 0);

    // The file names its users in another order now: who is who does not depend on it.
    let mut secrets = Secrets::new([1; 32], NONCE_KEY);
    secrets.add_user(b"carol", REALM, b"new");
    secrets.add_user(b"alice", REALM, world::PASSWORD.as_bytes());
    world.server.replace_secrets(world.now, &secrets);
    assert_eq!(world.server.allocations(), 2);
    assert_eq!(refresh(&mut world, "bob", "192.0.2.3:1", world::PASSWORD), 401, "no new flow");
    assert_eq!(refresh(&mut world, "carol", bob, "new"), 441);
    assert_eq!(refresh(&mut world, "alice", ann, world::PASSWORD), 0);
    let payload = b"on it goes".to_vec();
    assert_eq!(world.send(addr(ann), peer, &payload), Out::ToPeer { relay, peer, payload });
    world.run_s(599);
    assert_eq!(refresh(&mut world, "bob", bob, world::PASSWORD), 0);
    // Only time ends what is not refreshed any more.
    world.run_s(1);
    assert_eq!(world.server.allocations(), 1);
    world.run_s(599);
    assert_eq!(world.server.allocations(), 0);
}

#[test]
fn a_new_configuration_counts_for_the_next_requests_and_ends_nothing() {
    let mut world = World::new();
    let (ann, new, peer) = (addr("192.0.2.1:1"), addr("192.0.2.2:1"), addr("8.8.8.8:53"));
    let (relay, _) = world.allocate(ann);
    for peer in ["8.8.8.1:1", "8.8.8.2:1", "8.8.8.8:53"] {
        assert_eq!(world.permit(ann, addr(peer)), 0);
    }
    let mut config = Config::new(REALM);
    (config.lifetime_default_s, config.lifetime_max_s) = (60, 90);
    config.hairpin = Hairpin::Denied;
    world.server.replace_config(config);
    world.server.set_allocation_caps(2, 2);

    let reply = world.ask_as("alice", new, ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    assert_eq!((reply.code(), reply.lifetime()), (0, Some(60)));
    let asks = |seconds: u32| vec![(wire::LIFETIME, seconds.to_be_bytes().to_vec())];
    assert_eq!(world.ask_as("alice", new, REFRESH, &asks(900)).lifetime(), Some(90));
    assert_eq!(world.permit(ann, addr("8.8.8.3:1")), 508, "it has more than it may have");
    let payload = b"on it goes".to_vec();
    assert_eq!(world.send(ann, peer, &payload), Out::ToPeer { relay, peer, payload });
    assert_eq!(world.permit(ann, addr("10.0.0.1:1")), 403, "the peer policy of before");
    world.run_s(90);
    assert_eq!(world.server.allocations(), 1, "the first one has the lifetime of before");
}

/// Calls the default realm `realm`, with keys of its users for it.
fn rename(world: &mut World, realm: &str) {
    let mut secrets = Secrets::new([1; 32], NONCE_KEY);
    for name in [&b"alice"[..], b"bob"] {
        secrets.add_user(name, realm, world::PASSWORD.as_bytes());
    }
    world.server.replace_config(Config::new(realm));
    world.server.replace_secrets(world.now, &secrets);
}

/// The code of the answer to a request with the name and the key of `realm`, and the realm that the answer names.
fn ask_in(world: &mut World, (realm, name): (&str, &str), from: &str, method: u16) -> (u16, Option<String>) {
    ask_with(world, (realm, name), &wire::md5_key(name, realm, world::PASSWORD), from, method)
}

fn ask_with(
    world: &mut World,
    (realm, name): (&str, &str),
    key: &[u8; 16],
    from: &str,
    method: u16,
) -> (u16, Option<String>) {
    let (nonce, tid) = (world.nonce(addr(from)), world.tid());
    let request = Writer::new(method, 0, tid)
        .attr(wire::TRANSPORT, &UDP)
        .attr(wire::USERNAME, name.as_bytes())
        .attr(wire::REALM, realm.as_bytes())
        .attr(NONCE, &nonce)
        .integrity(key)
        .0;
    let reply = world.client(addr(from), &request).reply();
    (reply.code(), reply.get(wire::REALM).map(|realm| String::from_utf8(realm.to_vec()).expect("UTF-8")))
}

/// A client may take a 401 for the end of its call (libwebrtc does), so a live allocation goes on with the old name.
#[test]
fn a_live_allocation_is_refreshed_under_the_name_that_its_realm_had() {
    let (ann, bob, new) = ("192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1");
    let mut world = World::new();
    world.allocate(addr(ann));
    world.allocate(addr(bob));
    for (number, realm) in ["second", "third"].into_iter().enumerate() {
        rename(&mut world, realm);
        let challenge = world.challenge(addr(ann));
        assert_eq!(challenge.get(wire::REALM), Some(realm.as_bytes()));
        assert_eq!(ask_in(&mut world, (REALM, "alice"), ann, REFRESH), (0, None), "{realm}");
        let refused = (401, Some(realm.to_owned()));
        assert_eq!(ask_in(&mut world, (REALM, "bob"), ann, REFRESH), refused, "another user");
        assert_eq!(ask_in(&mut world, ("fourth", "alice"), ann, REFRESH), refused, "a name that it never had");
        let with_its_key = ask_with(&mut world, ("fourth", "alice"), &key("alice"), ann, REFRESH);
        assert_eq!(with_its_key, refused, "a name that it never had, with the right key");
        let stranger = format!("192.0.2.{}:9", 10 + number);
        assert_eq!(ask_in(&mut world, (REALM, "alice"), &stranger, ALLOCATE), refused, "a new allocation");
        assert_eq!(ask_in(&mut world, (realm, "alice"), &stranger, ALLOCATE), (0, None));
    }
    // Who has used the new name keeps to it.
    assert_eq!(ask_in(&mut world, ("third", "alice"), bob, REFRESH), (0, None));
    assert_eq!(ask_in(&mut world, (REALM, "alice"), bob, REFRESH).0, 401);
    // The first name comes back: it is that of new allocations again, and the second one that of live ones only.
    rename(&mut world, REALM);
    assert_eq!(ask_in(&mut world, (REALM, "alice"), new, ALLOCATE), (0, None));
    assert_eq!(ask_in(&mut world, ("second", "alice"), "192.0.2.10:9", REFRESH), (0, None));
    assert_eq!(ask_in(&mut world, ("third", "alice"), "192.0.2.11:9", REFRESH), (0, None));
    assert_eq!(ask_in(&mut world, ("second", "alice"), new, REFRESH).0, 401, "not of this allocation");
}

#[test]
fn a_changed_password_counts_for_new_allocations_and_either_for_live_ones() {
    let mut world = World::new();
    let from = "192.0.2.1:1";
    world.allocate(addr(from));
    let mut secrets = Secrets::new([1; 32], NONCE_KEY);
    secrets.add_user(b"alice", REALM, b"another");
    world.server.replace_secrets(world.now, &secrets);
    assert_eq!(refresh(&mut world, "alice", from, world::PASSWORD), 0);
    assert_eq!(refresh(&mut world, "alice", from, "another"), 0);
    // The client has changed to the new one.
    assert_eq!(refresh(&mut world, "alice", from, world::PASSWORD), 401);
    assert_eq!(refresh(&mut world, "alice", "192.0.2.1:2", world::PASSWORD), 401);
    assert_eq!(refresh(&mut world, "alice", "192.0.2.1:2", "another"), 437);
}

#[test]
fn a_new_nonce_key_accepts_the_previous_ones_nonces_only_while_it_is_named() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    let nonce = world.nonce(from);
    let ask = |world: &mut World| {
        let tid = world.tid();
        let request = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, b"alice");
        let request = request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce).integrity(&key("alice"));
        world.client(from, &request.0).reply().code()
    };
    assert_eq!(ask(&mut world), 437);
    let mut rotated = Secrets::new([1; 32], [78; 32]);
    rotated.add_user(b"alice", REALM, world::PASSWORD.as_bytes());
    let mut accepting = rotated.clone();
    accepting.accept_nonce_key(NONCE_KEY);
    world.server.replace_secrets(world.now, &accepting);
    assert_eq!(ask(&mut world), 437);
    world.server.replace_secrets(world.now, &rotated);
    assert_eq!(ask(&mut world), 438);
}

#[test]
fn live_allocations_are_listed_with_user_and_bytes() {
    let mut world = World::new();
    assert_eq!(world.server.live_allocations().count(), 0);
    let (from, peer) = (addr("192.0.2.1:1"), addr("8.8.8.8:53"));
    let (relay, relayed) = world.allocate(from);
    assert_eq!((world.permit(from, peer), world.bind(from, 0x4000, peer)), (0, 0));
    let sent = [world.send(from, peer, &[1; 30]), world.channel_data(from, 0x4000, &[2; 12])];
    assert!(sent.iter().all(|out| matches!(out, Out::ToPeer { .. })));
    assert!(matches!(world.peer(relay, peer, &[3; 500]), Out::ToClient { .. }));
    // What is dropped is not counted as relayed.
    assert!(matches!(world.send(from, addr("9.9.9.9:9"), &[4; 7]), Out::Drop(_)));
    assert!(matches!(world.peer(relay, addr("9.9.9.9:9"), &[5; 7]), Out::Drop(_)));

    let listed: Vec<_> = world.server.live_allocations().collect();
    let [live] = listed[..] else { panic!("{listed:?}") };
    assert_eq!((live.flow.client, live.flow.server, live.relayed), (from, world.listener, relayed));
    assert_eq!((live.user, live.permissions, live.channels), (&b"alice"[..], 1, 1));
    assert_eq!((live.bytes_to_peers, live.bytes_to_client), (42, 500));
    assert_eq!(live.expires, world.now.saturating_add(tt_model::Nanos::from_secs(600)));
}

#[test]
fn a_long_name_is_listed_whole() {
    let long = "n".repeat(tt_turn::event::USER_NAME_LEN_MAX);
    let mut secrets = world::secrets(1);
    secrets.add_user(long.as_bytes(), REALM, world::PASSWORD.as_bytes());
    let mut world = World::with(world::config(), world::quotas(), world::capacity(), secrets);
    let transport = (wire::TRANSPORT, UDP.to_vec());
    assert_eq!(world.ask_as(&long, addr("192.0.2.1:1"), ALLOCATE, &[transport]).code(), 0);
    let users: Vec<_> = world.server.live_allocations().map(|live| live.user.to_vec()).collect();
    assert_eq!(users, [long.into_bytes()]);
}

#[test]
fn new_quotas_count_at_once_and_end_no_allocation() {
    let mut world = World::new();
    let (from, peer) = (addr("192.0.2.1:1"), addr("8.8.8.8:53"));
    world.allocate(from);
    world.allocate(addr("192.0.2.1:2"));
    assert_eq!(world.permit(from, peer), 0);
    let sent =
        |world: &mut World| (0..50).filter(|_| matches!(world.send(from, peer, &[7; 972]), Out::ToPeer { .. })).count();
    assert_eq!(sent(&mut world), 50);
    let before = world.shared.limits();
    let limited = Quotas { bytes_per_second_per_user: 10_000, allocations_per_user: 1, ..*before.quotas() };
    let narrow = before.succeeded_by(limited, &[], Pools::UNLIMITED);
    world.server.replace_limits(narrow.clone());
    assert_eq!(world.server.allocations(), 2, "more than a user may have now");
    assert_eq!(world.ask_as("alice", addr("192.0.2.1:3"), ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]).code(), 486);
    // 28 bytes of headers and the payload are 1,000.
    assert_eq!(sent(&mut world), 10, "a second's worth, because there was no limit before");
    world.run_s(1);
    assert_eq!(sent(&mut world), 10);
    // Half the rate: the bucket is as empty as it was.
    let half = Quotas { bytes_per_second_per_user: 5_000, ..limited };
    world.server.replace_limits(narrow.succeeded_by(half, &[], Pools::UNLIMITED));
    assert_eq!(sent(&mut world), 0);
    world.run_s(1);
    assert_eq!(sent(&mut world), 5);
    world.server.replace_limits(before);
    assert_eq!(sent(&mut world), 50);
    assert_eq!(world.ask_as("alice", addr("192.0.2.1:4"), ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]).code(), 0);
}
