//! Credentials of the TURN REST API.

use md5::Digest;
use tt_turn::credential::Secrets;
use tt_turn::shared::Quotas;

use super::wire::{self, REFRESH, hmac_sha1};
use super::world::{self, REALM, WALL_S, World, addr};

const FROM: &str = "192.0.2.1:1";

pub(crate) fn knowing(secrets: &[&[u8]]) -> Secrets {
    let mut known = Secrets::new([1; 32], [77; 32]);
    secrets.iter().for_each(|secret| known.add_auth_secret(secret));
    known
}

fn world_knowing(secrets: &[&[u8]]) -> World {
    World::with(world::config(), world::quotas(), world::capacity(), knowing(secrets))
}

/// The code of the answer to a Refresh signed by way of MD5 and MESSAGE-INTEGRITY; 437 is one that was let in.
fn refresh(world: &mut World, name: &[u8], password: &str) -> u16 {
    let (nonce, tid) = (world.nonce(addr(FROM)), world.tid());
    let request = wire::Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, name);
    let request = request.attr(wire::REALM, REALM.as_bytes()).attr(wire::NONCE, &nonce);
    let key: [u8; 16] = md5::Md5::digest([name, b":", REALM.as_bytes(), b":", password.as_bytes()].concat()).into();
    world.client(addr(FROM), &request.integrity(&key).0).reply().code()
}

/// The same by way of SHA-256, whose answer must be signed so too.
fn refresh_sha256(world: &mut World, name: &str, password: &str) -> u16 {
    let offered = world.challenge(addr(FROM)).get(wire::PASSWORD_ALGORITHMS).expect("an offer").to_vec();
    let request = world.unsigned(addr(FROM), name, REFRESH, &[]).attr(wire::PASSWORD_ALGORITHMS, &offered);
    let key = wire::sha256_key(name, REALM, password);
    let request = request.attr(wire::PASSWORD_ALGORITHM, &[0, 2, 0, 0]).integrity_sha256(&key);
    let reply = world.client(addr(FROM), &request.0).reply();
    assert_eq!(reply.is_signed_sha256(&key), reply.code() != 401);
    reply.code()
}

/// The password of the TURN REST API, made as its document says.
pub(crate) fn rest_password(secret: &[u8], name: &str) -> String {
    rest_password_of_bytes(secret, name.as_bytes())
}

fn rest_password_of_bytes(secret: &[u8], name: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let code = hmac_sha1(secret, name);
    let mut text = String::new();
    for chunk in code.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).for_each(|place| text.push(DIGITS[(bits >> (18 - 6 * place) & 63) as usize] as char));
    }
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[test]
fn rest_password_of_a_known_example() {
    // RFC 2202 section 3, test case 2: the code is effcdf6ae5eb2fa2d27416d5f184df9c259a7c79.
    assert_eq!(rest_password(b"Jefe", "what do ya want for nothing?"), "7/zfauXrL6LSdBbV8YTfnCWafHk=");
}

#[test]
fn time_limited_credentials() {
    let mut world = world_knowing(&[b"old secret", b"new secret"]);
    let refresh = |world: &mut World, name: &str, password: &str| refresh(world, name.as_bytes(), password);
    let valid = format!("{}:alice", WALL_S + 100);
    for secret in [&b"old secret"[..], b"new secret"] {
        assert_eq!(refresh(&mut world, &valid, &rest_password(secret, &valid)), 437);
    }
    assert_eq!(refresh(&mut world, &valid, &rest_password(b"no secret", &valid)), 401);
    let bare = format!("{}", WALL_S + 100);
    assert_eq!(refresh(&mut world, &bare, &rest_password(b"new secret", &bare)), 437);
    for name in [format!("{}:alice", WALL_S - 1), format!("{WALL_S}"), "x:alice".into(), ":alice".into(), "-1:a".into()]
    {
        assert_eq!(refresh(&mut world, &name, &rest_password(b"new secret", &name)), 401, "{name}");
    }
    world.pass_s(99);
    assert_eq!(refresh(&mut world, &valid, &rest_password(b"new secret", &valid)), 437);
    world.pass_s(1);
    assert_eq!(refresh(&mut world, &valid, &rest_password(b"new secret", &valid)), 401);
}

/// Every proper prefix and suffix of a secret, a password and a name, and each with a byte changed, is rejected.
#[test]
fn only_the_whole_secret_the_whole_password_and_the_whole_name_are_accepted() {
    const SECRET: &str = "a-secret-of-24-characters";
    let mut world = world_knowing(&[b"another secret", SECRET.as_bytes()]);
    let name = format!("{}:alice", WALL_S + 3_000);
    let password = rest_password(SECRET.as_bytes(), &name);
    let codes = |world: &mut World, name: &str, password: &str| {
        [refresh(world, name.as_bytes(), password), refresh_sha256(world, name, password)]
    };
    assert_eq!(codes(&mut world, &name, &password), [437, 437]);
    for wrong in testkit::partial(SECRET) {
        assert_eq!(codes(&mut world, &name, &rest_password(wrong.as_bytes(), &name)), [401, 401], "secret {wrong}");
    }
    for wrong in testkit::partial(&password) {
        assert_eq!(codes(&mut world, &name, &wrong), [401, 401], "password {wrong}");
    }
    for wrong in testkit::partial(&name) {
        assert_eq!(codes(&mut world, &wrong, &password), [401, 401], "name {wrong}");
    }
    assert_eq!(codes(&mut world, &name, &password), [437, 437]);
}

#[test]
fn a_verified_name_is_not_derived_again() {
    let mut world = world_knowing(&[b"old secret", b"new secret"]);
    let name = format!("{}:alice", WALL_S + 100);
    let password = rest_password(b"new secret", &name);
    // Two secrets are tried until one fits; from then on the key is there.
    for _ in 0..3 {
        assert_eq!(refresh(&mut world, name.as_bytes(), &password), 437);
        assert_eq!(world.server.key_derivations(), 2);
    }
    for _ in 0..3 {
        assert_eq!(refresh_sha256(&mut world, &name, &password), 437);
        assert_eq!(world.server.key_derivations(), 4);
    }
    // A wrong password is nobody's, and does not push out the right one's key.
    assert_eq!(refresh_sha256(&mut world, &name, "wrong"), 401);
    let derived = world.server.key_derivations();
    assert_eq!(refresh_sha256(&mut world, &name, &password), 437);
    assert_eq!(world.server.key_derivations(), derived);
    // A kept key does not outlive the name's expiry, nor the secret that it was derived from.
    let refreshed = knowing(&[b"newest secret"]);
    world.pass_s(100);
    assert_eq!(refresh_sha256(&mut world, &name, &password), 401);
    assert_eq!(world.server.key_derivations(), derived);
    let later = format!("{}:alice", WALL_S + 1_000);
    assert_eq!(refresh_sha256(&mut world, &later, &rest_password(b"new secret", &later)), 437);
    world.server.replace_secrets(world.now, &refreshed);
    assert_eq!(refresh_sha256(&mut world, &later, &rest_password(b"new secret", &later)), 401);
    assert_eq!(refresh_sha256(&mut world, &later, &rest_password(b"newest secret", &later)), 437);
}

#[test]
fn verified_names_allocate_nothing() {
    let mut world = world_knowing(&[b"secret"]);
    let requests: Vec<_> = (0..200)
        .map(|number| {
            let name = format!("{}:{number}", WALL_S + 100);
            let request = world.unsigned(addr(FROM), &name, REFRESH, &[]);
            request.integrity(&wire::md5_key(&name, REALM, &rest_password(b"secret", &name))).0
        })
        .collect();
    let flow = tt_model::FiveTuple { client: addr(FROM), server: world.listener, transport: tt_model::Transport::Udp };
    let World { server, out, now, .. } = &mut world;
    let counted = allocation_counter::measure(|| {
        for request in requests.iter().chain(&requests) {
            let output = server.handle_client(*now, &flow, request, out, &mut tt_meter::Off);
            assert!(matches!(output, tt_turn::Output::Reply { .. }));
            assert_eq!(out[27], 37);
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// More names than places: every one is still let in, and as many keys are kept as there are places at most.
#[test]
fn more_names_than_places_are_derived_again() {
    let mut world = world_knowing(&[b"secret"]);
    let places = u64::from(world::capacity().allocations);
    let names = 4 * places;
    let round = |world: &mut World| {
        let before = world.server.key_derivations();
        for number in 0..names {
            let name = format!("{}:{number}", WALL_S + 100);
            assert_eq!(refresh_sha256(world, &name, &rest_password(b"secret", &name)), 437);
        }
        world.server.key_derivations() - before
    };
    assert_eq!(round(&mut world), names);
    let again = round(&mut world);
    assert!((names - places..=names).contains(&again), "{again}");
}

#[test]
fn case_a24_names_that_opaque_string_cannot_produce_are_unknown() {
    let mut world = world_knowing(&[b"secret"]);
    // The password is right every time, so that only the name is at fault.
    let password = |name: &[u8]| rest_password_of_bytes(b"secret", name);
    let good = [format!("{}:%s%n", WALL_S + 9), format!("{}:{}", WALL_S + 9, "a".repeat(508 - 11))];
    for name in &good {
        assert_eq!(refresh(&mut world, name.as_bytes(), &password(name.as_bytes())), 437, "{name}");
    }
    let stem = format!("{}:", WALL_S + 9).into_bytes();
    let endings: [&[u8]; 7] = [b"\xFF", b"\xC0\x80", b"a\0", b"a\r\nb", b"\x1B[31m", &[b'a'; 502], &[b'a'; 753]];
    for ending in endings {
        let name = [&stem[..], ending].concat();
        assert_eq!(refresh(&mut world, &name, &password(&name)), 401, "{}", name.len());
    }
    assert_eq!(refresh(&mut world, b"", &password(b"")), 401);
}

/// A static user and the user of a time-limited name with the same id have a quota each.
#[test]
fn a_static_user_and_a_time_limited_one_of_the_same_name_share_no_quota() {
    let mut secrets = knowing(&[b"secret"]);
    secrets.add_user(b"alice", REALM, world::PASSWORD.as_bytes());
    let quotas = Quotas { allocations_per_user: 1, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), secrets);
    let mut allocate = |name: &str, password: &str, port: u16| {
        let from = addr(&format!("192.0.2.1:{port}"));
        let request = world.unsigned(from, name, wire::ALLOCATE, &[(wire::TRANSPORT, world::UDP.to_vec())]);
        world.client(from, &request.integrity(&wire::md5_key(name, REALM, password)).0).reply().code()
    };
    let names = [100, 200].map(|seconds| format!("{}:alice", WALL_S + seconds));
    let passwords = names.each_ref().map(|name| rest_password(b"secret", name));
    assert_eq!(allocate("alice", world::PASSWORD, 1), 0);
    assert_eq!(allocate(&names[0], &passwords[0], 2), 0);
    assert_eq!(allocate("alice", world::PASSWORD, 3), 486);
    assert_eq!(allocate(&names[0], &passwords[0], 4), 486);
    assert_eq!(allocate(&names[1], &passwords[1], 5), 486, "whatever the expiry");
}
