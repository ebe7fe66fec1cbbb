//! Several realms in one engine.

use std::net::SocketAddr;
use std::sync::Arc;

use tt_meter::Off;
use tt_model::{FiveTuple, Transport};
use tt_turn::Output;
use tt_turn::config::{Config, RealmConfig, RealmId, RemovedUsers};
use tt_turn::credential::{Secrets, USER_PARTS, UserPart, UserSecret};
use tt_turn::event::EndReason;
use tt_turn::relay::{RelayAddress, RelayId};
use tt_turn::shared::{Pools, RealmQuotas, Shared};

use super::time_limited::rest_password;
use super::wire::{self, ALLOCATE, REFRESH, Reading, TRANSPORT, Writer};
use super::world::{self, REALM, UDP, WALL_S, World, addr};

const A: &str = "a.example";
const B: &str = "b.example";
/// An attribute of draft-johnston-tram-stun-origin.
const ORIGIN: u16 = 0x802F;
const CLIENT: &str = "192.0.2.1:1";

fn config() -> Config {
    let realm =
        |name: &str| RealmConfig { name: name.into(), origins: vec![format!("https://{name}")], listeners: Vec::new() };
    Config { realms: vec![realm(A), realm(B)], ..world::config() }
}

fn quotas() -> [RealmQuotas; 2] {
    let quotas =
        |allocations, allocations_per_user| RealmQuotas { allocations, allocations_per_user, ..RealmQuotas::default() };
    [quotas(3, 1), quotas(2, 2)]
}

/// Users with one name and the password of each realm, and one shared secret in both further realms.
fn secrets(with: impl Fn(&str) -> bool) -> Secrets {
    let mut secrets = Secrets::new([1; 32], [77; 32]);
    for (id, realm) in [(RealmId::DEFAULT, REALM), (RealmId::further(0), A), (RealmId::further(1), B)] {
        if with(realm) {
            secrets.add_user_of(id, b"ann", realm, format!("password of {realm}").as_bytes());
        }
    }
    secrets
}

fn start(config: Config, secrets: Secrets) -> (World, Arc<Shared>) {
    let quotas = (world::quotas(), &quotas()[..]);
    let shared = Arc::new(Shared::with_realms(quotas, world::capacity().allocations, Pools::UNLIMITED, 42));
    let mut world = World::sharing(config, world::capacity(), secrets, &shared, 0);
    for relay in 0..16 {
        let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + relay as u16);
        world.server.add_relay(RelayId(relay), RelayAddress { bound, external: bound }).expect("a relay");
    }
    (world, shared)
}

fn ask_with(world: &mut World, from: SocketAddr, (realm, name, password): (&str, &str, &str), method: u16) -> Reading {
    let (nonce, tid) = (world.nonce(from), world.tid());
    let request = Writer::new(method, 0, tid).attr(TRANSPORT, &UDP).attr(wire::USERNAME, name.as_bytes());
    let request = request.attr(wire::REALM, realm.as_bytes()).attr(wire::NONCE, &nonce);
    let key = wire::md5_key(name, realm, password);
    let reply = world.client(from, &request.integrity(&key).0).reply();
    assert_eq!(reply.is_signed(&key), reply.code() != 401);
    reply
}

fn ask(world: &mut World, from: &str, realm: &str, method: u16) -> u16 {
    ask_with(world, addr(from), (realm, "ann", &format!("password of {realm}")), method).code()
}

#[test]
fn origin_chooses_the_challenge_and_others_are_unknown() {
    let (mut world, _) = start(config(), secrets(|_| true));
    let mut challenge = |origins: &[&str]| {
        let tid = world.tid();
        let write = |writer: Writer, origin: &&str| writer.attr(ORIGIN, origin.as_bytes());
        let request = origins.iter().fold(Writer::new(ALLOCATE, 0, tid), write);
        let reply = world.client(addr(CLIENT), &request.0).reply();
        assert_eq!(reply.code(), 401);
        String::from_utf8(reply.get(wire::REALM).expect("a realm").to_vec()).expect("UTF-8")
    };
    assert_eq!(challenge(&[]), REALM);
    assert_eq!(challenge(&["https://a.example"]), A);
    assert_eq!(challenge(&["https://B.EXAMPLE"]), B);
    assert_eq!(challenge(&["https://c.example", "https://b.example", "https://a.example"]), B);
    assert_eq!(challenge(&["https://a.exampl"]), REALM);
    assert_eq!(challenge(&["https://a.example\0"]), REALM);
    assert_eq!(ask(&mut world, CLIENT, "c.example", REFRESH), 401);
}

#[test]
fn users_of_one_name_have_allocations_and_quotas_of_their_own() {
    let (mut world, shared) = start(config(), secrets(|_| true));
    let allocations =
        || [RealmId::DEFAULT, RealmId::further(0), RealmId::further(1)].map(|id| shared.allocations_of(id));
    assert_eq!(ask(&mut world, "192.0.2.1:1", A, ALLOCATE), 0);
    assert_eq!(ask(&mut world, "192.0.2.1:2", A, ALLOCATE), 486);
    assert_eq!(ask(&mut world, "192.0.2.1:3", B, ALLOCATE), 0);
    assert_eq!(ask(&mut world, "192.0.2.1:4", B, ALLOCATE), 0);
    assert_eq!(ask(&mut world, "192.0.2.1:5", B, ALLOCATE), 486);
    for port in 6..10 {
        assert_eq!(ask(&mut world, &format!("192.0.2.1:{port}"), REALM, ALLOCATE), 0);
    }
    assert_eq!((allocations(), shared.allocations()), ([4, 1, 2], 7));
    assert_eq!(ask(&mut world, "192.0.2.1:1", B, REFRESH), 441);
    assert_eq!(ask(&mut world, "192.0.2.1:3", A, REFRESH), 441);
    assert_eq!(ask(&mut world, "192.0.2.1:3", A, ALLOCATE), 437);
    assert_eq!(ask(&mut world, "192.0.2.1:1", A, REFRESH), 0);
    // One realm of a user is ended, by its name.
    let (now, reason) = (world.now, EndReason::Operator);
    assert_eq!(world.server.end_user(now, Some(B), b"ann", reason), 2);
    assert_eq!(world.server.end_user(now, Some("c.example"), b"ann", reason), 0);
    assert_eq!(allocations(), [4, 1, 0]);
    assert_eq!(world.server.end_user(now, None, b"ann", reason), 5);
    assert_eq!((allocations(), shared.allocations()), ([0, 0, 0], 0));
}

#[test]
fn a_time_limited_name_is_another_user_in_each_realm() {
    let mut secrets = secrets(|_| false);
    for (index, secret) in [b"north", b"south"].into_iter().enumerate() {
        secrets.add_auth_secret_of(RealmId::further(index), secret);
    }
    let (mut world, shared) = start(config(), secrets);
    let name = format!("{}:ann", WALL_S + 600);
    let mut allocate = |from: &str, realm, secret: &[u8]| {
        ask_with(&mut world, addr(from), (realm, &name, &rest_password(secret, &name)), ALLOCATE).code()
    };
    assert_eq!(allocate("192.0.2.1:1", A, b"south"), 401);
    assert_eq!(allocate("192.0.2.1:1", REALM, b"north"), 401);
    assert_eq!(allocate("192.0.2.1:1", A, b"north"), 0);
    assert_eq!(allocate("192.0.2.1:2", A, b"north"), 486);
    assert_eq!(allocate("192.0.2.1:2", B, b"south"), 0);
    assert_eq!(allocate("192.0.2.1:3", B, b"south"), 0);
    assert_eq!(shared.allocations(), 3);
    assert_eq!(world.server.key_derivations(), 3, "one of each realm, and one of the wrong secret");
}

#[test]
fn removed_users_lose_the_allocations_of_their_realm() {
    let config = Config { removed_users: RemovedUsers::EndAllocations, ..config() };
    let (mut world, _) = start(config, secrets(|_| true));
    for (port, realm) in [(1, REALM), (2, A), (3, B)] {
        assert_eq!(ask(&mut world, &format!("192.0.2.1:{port}"), realm, ALLOCATE), 0);
    }
    world.server.replace_secrets(world.now, &secrets(|realm| realm != A));
    assert_eq!(world.server.allocations(), 2);
    assert_eq!(ask(&mut world, "192.0.2.1:1", REALM, REFRESH), 0);
    assert_eq!(ask(&mut world, "192.0.2.1:2", A, REFRESH), 401);
    assert_eq!(ask(&mut world, "192.0.2.1:3", B, REFRESH), 0);
}

#[test]
fn a_realm_is_added_and_another_loses_its_origin_while_allocations_live() {
    const NEW: &str = "new.example";
    let (mut world, shared) = start(config(), secrets(|_| true));
    assert_eq!(ask(&mut world, CLIENT, A, ALLOCATE), 0);
    assert_eq!(ask(&mut world, "192.0.2.9:1", NEW, ALLOCATE), 401);
    let limits =
        shared.limits().succeeded_by(world::quotas(), &[quotas()[0], quotas()[1], quotas()[0]], Pools::UNLIMITED);
    world.server.replace_limits(limits);
    let mut realms = config().realms;
    realms[1].origins.clear();
    let origins = vec![format!("https://{NEW}")];
    realms.push(RealmConfig { name: NEW.into(), origins, listeners: Vec::new() });
    let mut next = secrets(|_| true);
    world.server.replace_realms(&realms, &next);
    assert_eq!(ask(&mut world, "192.0.2.9:1", NEW, ALLOCATE), 401, "it has no users yet");
    let password = format!("password of {NEW}");
    for number in 0..USER_PARTS {
        let users = [(&b"ann"[..], UserSecret::Password(password.as_bytes()))];
        let realm = (RealmId::further(2), NEW);
        world.server.replace_users(&UserPart::of_realm(realm, number, users.into_iter(), (&shared, &[9; 32])));
    }
    assert_eq!(ask(&mut world, "192.0.2.9:1", NEW, ALLOCATE), 0);
    next.add_user_of(RealmId::further(2), b"ann", NEW, password.as_bytes());
    world.server.replace_secrets(world.now, &next);
    assert_eq!(ask(&mut world, "192.0.2.8:1", REALM, ALLOCATE), 0, "the users of the default realm are as before");
    assert_eq!(ask(&mut world, "192.0.2.10:1", NEW, ALLOCATE), 486, "its users have one allocation each");
    assert_eq!(ask(&mut world, "192.0.2.11:1", B, ALLOCATE), 401, "no request selects it any more");
    assert_eq!(ask(&mut world, CLIENT, A, REFRESH), 0, "what lives goes on");
    assert_eq!([0, 1, 2].map(|index| shared.allocations_of(RealmId::further(index))), [1, 0, 1]);
}

/// The default realm is renamed, and its old name becomes a realm with other users.
#[test]
fn a_live_allocation_keeps_its_key_where_another_realm_gets_the_old_name() {
    let (mut world, shared) = start(config(), secrets(|_| true));
    assert_eq!(ask(&mut world, CLIENT, REALM, ALLOCATE), 0);
    let limits =
        shared.limits().succeeded_by(world::quotas(), &[quotas()[0], quotas()[1], quotas()[0]], Pools::UNLIMITED);
    world.server.replace_limits(limits);
    let mut realms = config().realms;
    let origins = vec!["https://old.example".to_owned()];
    realms.push(RealmConfig { name: REALM.into(), origins, listeners: Vec::new() });
    let mut next = secrets(|realm| realm != REALM);
    next.add_user_of(RealmId::DEFAULT, b"ann", "calls.example", b"password of calls.example");
    next.add_user_of(RealmId::further(2), b"ann", REALM, b"another");
    world.server.replace_realms(&realms, &next);
    world.server.replace_config(Config::new("calls.example"));
    world.server.replace_secrets(world.now, &next);
    assert_eq!(ask(&mut world, CLIENT, REALM, REFRESH), 0, "with the key of before");
    let another =
        |world: &mut World, from: &str, method| ask_with(world, addr(from), (REALM, "ann", "another"), method).code();
    assert_eq!(another(&mut world, CLIENT, REFRESH), 441, "a user of the other realm");
    assert_eq!(ask(&mut world, "192.0.2.9:1", REALM, ALLOCATE), 401, "the key of before, for a new allocation");
    assert_eq!(another(&mut world, "192.0.2.9:1", ALLOCATE), 0);
    assert_eq!(ask(&mut world, "192.0.2.10:1", "calls.example", ALLOCATE), 0);
    assert_eq!(ask(&mut world, CLIENT, "calls.example", REFRESH), 0);
}

/// Behind a balancer the flow has the address that its header names, and the listener is another one.
#[test]
fn the_listener_of_a_balancer_selects_the_realm() {
    let (of_a, others, named) = (addr("198.41.0.9:3478"), addr("198.41.0.9:3479"), addr("203.0.113.9:3478"));
    let mut config = config();
    config.realms[0] = RealmConfig { origins: Vec::new(), listeners: vec![of_a], ..config.realms[0].clone() };
    let (mut world, _) = start(config, secrets(|_| true));
    let ask_at = |world: &mut World, (named, listener): (SocketAddr, SocketAddr), realm: &str| {
        let flow = FiveTuple { client: addr(CLIENT), server: named, transport: Transport::Tcp };
        let pass = |world: &mut World, request: &[u8]| {
            let mut out = [0; 1_500];
            let output = world.server.handle_proxied(world.now, (&flow, listener), request, &mut out, &mut Off);
            let Output::Reply { len, .. } = output else { panic!("{output:?}") };
            Reading::of(&out[..len])
        };
        let tid = world.tid();
        let first = pass(world, &Writer::new(ALLOCATE, 0, tid).0);
        let text = |kind| first.get(kind).expect("in a 401").to_vec();
        let challenge = String::from_utf8(text(wire::REALM)).expect("UTF-8");
        let request = Writer::new(ALLOCATE, 0, world.tid()).attr(TRANSPORT, &UDP).attr(wire::USERNAME, b"ann");
        let request = request.attr(wire::REALM, realm.as_bytes()).attr(wire::NONCE, &text(wire::NONCE));
        let key = wire::md5_key("ann", realm, &format!("password of {realm}"));
        let code = pass(world, &request.integrity(&key).0).code();
        if code == 0 {
            assert!(world.server.close_flow(world.now, &flow), "the flow has the address that the header names");
        }
        (challenge, code)
    };
    for named in [named, of_a, others] {
        assert_eq!(ask_at(&mut world, (named, of_a), A), (A.to_owned(), 0), "{named}");
        assert_eq!(ask_at(&mut world, (named, of_a), REALM), (A.to_owned(), 401), "{named}");
        assert_eq!(ask_at(&mut world, (named, others), A), (REALM.to_owned(), 401), "{named}");
        assert_eq!(ask_at(&mut world, (named, others), REALM), (REALM.to_owned(), 0), "{named}");
    }
}
