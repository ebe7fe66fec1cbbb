//! An allocation keeps the key that made it: its requests do not end with the credential, the password or the user.

use tt_turn::config::{Config, ExpiryCheck, RemovedUsers};
use tt_turn::credential::Secrets;
use tt_turn::shared::Quotas;

use super::time_limited::{knowing, rest_password};
use super::wire::{self, ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, REFRESH};
use super::world::{self, Out, REALM, UDP, WALL_S, World, addr};

const FROM: &str = "192.0.2.1:1";
const PEER: &str = "8.8.8.8:53";

/// A name and its password.
#[derive(Clone, Debug)]
struct Credential(String, String);

impl Credential {
    fn of(secret: &[u8], expires_in_s: i64, id: &str) -> Self {
        let name = format!("{}:{id}", WALL_S.saturating_add_signed(expires_in_s));
        let password = rest_password(secret, &name);
        Self(name, password)
    }
}

fn world_with(config: Config, secrets: &[&[u8]]) -> World {
    World::with(config, world::quotas(), world::capacity(), knowing(secrets))
}

/// The code of the answer, which is signed with the key of `credential` unless it is a 401.
fn code(world: &mut World, credential: &Credential, from: &str, method: u16) -> u16 {
    let peer = world.peer_attr(addr(PEER));
    let attributes = match method {
        ALLOCATE => vec![(wire::TRANSPORT, UDP.to_vec())],
        CREATE_PERMISSION => vec![peer],
        CHANNEL_BIND => vec![(wire::CHANNEL_NUMBER, vec![0x40, 0, 0, 0]), peer],
        _ => Vec::new(),
    };
    let Credential(name, password) = credential;
    let key = wire::md5_key(name, REALM, password);
    let request = world.unsigned(addr(from), name, method, &attributes).integrity(&key).0;
    let reply = world.client(addr(from), &request).reply();
    assert_eq!(reply.is_signed(&key), reply.code() != 401, "{reply:?}");
    reply.code()
}

fn codes(world: &mut World, credential: &Credential) -> [u16; 3] {
    [REFRESH, CREATE_PERMISSION, CHANNEL_BIND].map(|method| code(world, credential, FROM, method))
}

#[test]
fn requests_of_an_allocation_outlive_its_credential() {
    let mut world = world_with(world::config(), &[b"secret"]);
    let credential = Credential::of(b"secret", 3, "ann");
    assert_eq!(code(&mut world, &credential, FROM, ALLOCATE), 0);
    assert_eq!(codes(&mut world, &credential), [0; 3]);
    world.pass_s(3);
    assert_eq!(codes(&mut world, &credential), [0; 3]);
    // The expiry still bounds when an allocation is made, on another flow and on this one.
    assert_eq!(code(&mut world, &credential, "192.0.2.1:2", ALLOCATE), 401);
    assert_eq!(code(&mut world, &credential, "192.0.2.1:2", REFRESH), 401);
    assert_eq!(code(&mut world, &credential, FROM, ALLOCATE), 437);
    world.run_s(600);
    assert_eq!(world.server.allocations(), 0);
    assert_eq!(code(&mut world, &credential, FROM, REFRESH), 401);
    assert_eq!(code(&mut world, &credential, FROM, ALLOCATE), 401);
}

/// A call of three hours with a credential of one: it relays in every minute.
#[test]
fn a_call_of_three_hours_needs_a_credential_of_one() {
    let mut world = world_with(world::config(), &[b"secret"]);
    let credential = Credential::of(b"secret", 3_600, "ann");
    assert_eq!(code(&mut world, &credential, FROM, ALLOCATE), 0);
    for minute in 0..180 {
        if minute % 4 == 0 {
            assert_eq!(codes(&mut world, &credential), [0; 3], "minute {minute}");
        }
        assert!(matches!(world.send(addr(FROM), addr(PEER), b"a"), Out::ToPeer { .. }), "minute {minute}");
        assert!(matches!(world.channel_data(addr(FROM), 0x4000, b"b"), Out::ToPeer { .. }), "minute {minute}");
        world.run_s(60);
    }
}

#[test]
fn strict_expiry_ends_the_session_with_its_credential() {
    let config = Config { expiry_check: ExpiryCheck::EveryRequest, ..world::config() };
    let mut world = world_with(config, &[b"secret"]);
    let credential = Credential::of(b"secret", 3, "ann");
    assert_eq!(code(&mut world, &credential, FROM, ALLOCATE), 0);
    world.pass_s(2);
    assert_eq!(codes(&mut world, &credential), [0; 3]);
    world.pass_s(1);
    assert_eq!(codes(&mut world, &credential), [401; 3]);
    // Another expiry of the same user saves the call.
    assert_eq!(codes(&mut world, &Credential::of(b"secret", 100, "ann")), [0; 3]);
}

#[test]
fn another_credential_of_the_same_user_is_accepted_and_kept() {
    let mut world = world_with(world::config(), &[b"old", b"new"]);
    assert_eq!(code(&mut world, &Credential::of(b"old", 100, "ann"), FROM, ALLOCATE), 0);
    let later = Credential::of(b"old", 200, "ann");
    assert_eq!(codes(&mut world, &later), [0; 3]);
    // After a rotation the application signs with the other secret.
    assert_eq!(codes(&mut world, &Credential::of(b"new", 300, "ann")), [0; 3]);
    assert_eq!(codes(&mut world, &later), [0; 3]);
    world.pass_s(400);
    assert_eq!(codes(&mut world, &later), [0; 3], "the last one accepted");
    assert_eq!(codes(&mut world, &Credential::of(b"new", 300, "ann")), [0; 3], "the same user");
    assert_eq!(codes(&mut world, &Credential::of(b"other", 900, "ann")), [401; 3]);
    for other in ["bob", "an", "ann2", ""] {
        assert_eq!(codes(&mut world, &Credential::of(b"new", 900, other)), [441; 3], "{other:?}");
        assert_eq!(codes(&mut world, &Credential::of(b"new", 300, other)), [401; 3], "{other:?} has expired");
    }
    assert_eq!(codes(&mut world, &later), [0; 3], "none of them has taken it over");
}

/// A static user and the same id in a time-limited name are two users.
#[test]
fn a_static_user_of_the_same_name_is_another_user() {
    let mut secrets = knowing(&[b"secret"]);
    secrets.add_user(b"ann", REALM, b"password");
    let mut world = World::with(world::config(), world::quotas(), world::capacity(), secrets);
    let (limited, fixed) = (Credential::of(b"secret", 100, "ann"), Credential("ann".into(), "password".into()));
    assert_eq!(code(&mut world, &limited, FROM, ALLOCATE), 0);
    assert_eq!(codes(&mut world, &fixed), [441; 3]);
    assert_eq!(codes(&mut world, &limited), [0; 3]);
}

#[test]
fn the_session_key_counts_for_its_name_and_its_flow_only() {
    let mut world = world_with(world::config(), &[b"secret"]);
    let ann = Credential::of(b"secret", 3, "ann");
    assert_eq!(code(&mut world, &ann, FROM, ALLOCATE), 0);
    assert_eq!(code(&mut world, &Credential::of(b"secret", 9, "bob"), "192.0.2.2:1", ALLOCATE), 0);
    world.pass_s(3);
    assert_eq!(code(&mut world, &ann, "192.0.2.2:1", REFRESH), 401, "another flow");
    // Signed with the session's key under another name.
    for name in ["bob", "", &ann.0[1..], &format!("{} ", ann.0)] {
        let request = world.unsigned(addr(FROM), name, REFRESH, &[]);
        let request = request.integrity(&wire::md5_key(&ann.0, REALM, &ann.1)).0;
        assert_eq!(world.client(addr(FROM), &request).reply().code(), 401, "{name:?}");
    }
    assert_eq!(code(&mut world, &Credential(ann.0.clone(), "wrong".into()), FROM, REFRESH), 401);
    assert_eq!(codes(&mut world, &ann), [0; 3]);
}

#[test]
fn every_expiry_of_a_user_counts_against_one_quota() {
    let quotas = Quotas { allocations_per_user: 2, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), knowing(&[b"secret"]));
    let mut allocate =
        |expires_in_s, id, from| code(&mut world, &Credential::of(b"secret", expires_in_s, id), from, ALLOCATE);
    assert_eq!((allocate(10, "ann", "192.0.2.1:1"), allocate(20, "ann", "192.0.2.1:2")), (0, 0));
    assert_eq!((allocate(30, "ann", "192.0.2.1:3"), allocate(30, "bob", "192.0.2.1:4")), (486, 0));
}

fn with_user(password: &[u8]) -> Secrets {
    let mut secrets = knowing(&[b"new"]);
    secrets.add_user(b"carol", REALM, password);
    secrets
}

/// Users and secrets that a reload removes: by default their calls go on.
#[test]
fn removed_users_keep_their_allocations_unless_they_are_to_be_ended() {
    for (removed_users, left) in [(RemovedUsers::KeepAllocations, 4), (RemovedUsers::EndAllocations, 2)] {
        let mut secrets = knowing(&[b"old", b"new"]);
        secrets.add_user(b"carol", REALM, b"before");
        secrets.add_user(b"dave", REALM, b"secret");
        let config = Config { removed_users, ..world::config() };
        let mut world = World::with(config, world::quotas(), world::capacity(), secrets);
        let credentials = [
            (Credential("carol".into(), "before".into()), FROM),
            (Credential("dave".into(), "secret".into()), "192.0.2.1:2"),
            (Credential::of(b"old", 10, "ann"), "192.0.2.1:3"),
            (Credential::of(b"new", 10, "ann"), "192.0.2.1:4"),
        ];
        for (credential, from) in &credentials {
            assert_eq!(code(&mut world, credential, from, ALLOCATE), 0);
        }
        // dave and the old secret go; carol's password changes.
        world.server.replace_secrets(world.now, &with_user(b"after"));
        assert_eq!(world.server.allocations(), left);
        let refreshed = credentials.each_ref().map(|(credential, from)| code(&mut world, credential, from, REFRESH));
        let gone = if left == 4 { 0 } else { 401 };
        assert_eq!(refreshed, [0, gone, gone, 0]);
        assert_eq!(code(&mut world, &Credential("carol".into(), "after".into()), FROM, REFRESH), 0);
        // Whoever is removed makes no new allocation.
        assert_eq!(code(&mut world, &credentials[1].0, "192.0.2.1:5", ALLOCATE), 401);
        assert_eq!(code(&mut world, &credentials[2].0, "192.0.2.1:5", ALLOCATE), 401);
    }
}

/// The session keeps the algorithm, too: a client of SHA-256 goes on with SHA-256.
#[test]
fn a_session_of_sha256_outlives_its_credential() {
    let mut world = world_with(world::config(), &[b"secret"]);
    let Credential(name, password) = Credential::of(b"secret", 3, "ann");
    let ask = |world: &mut World, method| {
        let offered = world.challenge(addr(FROM)).get(wire::PASSWORD_ALGORITHMS).expect("an offer").to_vec();
        let transport = [(wire::TRANSPORT, UDP.to_vec())];
        let request = world.unsigned(addr(FROM), &name, method, if method == ALLOCATE { &transport } else { &[] });
        let key = wire::sha256_key(&name, REALM, &password);
        let request = request.attr(wire::PASSWORD_ALGORITHMS, &offered).attr(wire::PASSWORD_ALGORITHM, &[0, 2, 0, 0]);
        let reply = world.client(addr(FROM), &request.integrity_sha256(&key).0).reply();
        assert!(reply.is_signed_sha256(&key));
        reply.code()
    };
    assert_eq!(ask(&mut world, ALLOCATE), 0);
    world.pass_s(3);
    assert_eq!(ask(&mut world, REFRESH), 0);
    // The other algorithm's key is derived once more, and belongs to the same user.
    assert_eq!(codes(&mut world, &Credential(name.clone(), password.clone())), [0; 3]);
    assert_eq!(ask(&mut world, REFRESH), 0);
}
