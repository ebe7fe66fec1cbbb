//! RFC 8489's SHA-256 path: PASSWORD-ALGORITHMS, MESSAGE-INTEGRITY-SHA256, USERHASH.

use std::net::SocketAddr;

use tt_turn::DropReason;
use tt_turn::config::PasswordAlgorithms;
use tt_turn::credential::Secrets;
use tt_turn::shared::Quotas;

use super::wire::{self, ALLOCATE, CREATE_PERMISSION, NONCE, REFRESH, Reading, Writer, md5_key};
use super::world::{self, CHALLENGE, Out, PASSWORD, REALM, UDP, World, addr, key};

const FROM: &str = "192.0.2.1:1";
const MD5: [u8; 4] = [0, 1, 0, 0];
const SHA256: [u8; 4] = [0, 2, 0, 0];
/// Preferred first.
const OFFER: [u8; 8] = [0, 2, 0, 0, 0, 1, 0, 0];
const BARE_400: (u16, [u16; 1]) = (400, [wire::ERROR_CODE]);

fn from() -> SocketAddr {
    addr(FROM)
}

fn key_sha256(name: &str) -> [u8; 32] {
    wire::sha256_key(name, REALM, PASSWORD)
}

/// A request of alice up to its integrity, with the given algorithm attributes.
fn claim(
    world: &mut World,
    method: u16,
    attrs: &[(u16, Vec<u8>)],
    list: Option<&[u8]>,
    choice: Option<&[u8]>,
) -> Writer {
    let mut request = world.unsigned(from(), "alice", method, attrs);
    if let Some(list) = list {
        request = request.attr(wire::PASSWORD_ALGORITHMS, list);
    }
    match choice {
        Some(choice) => request.attr(wire::PASSWORD_ALGORITHM, choice),
        None => request,
    }
}

fn answer(world: &mut World, request: &Writer) -> Reading {
    world.client(from(), &request.0).reply()
}

/// Asks as a client of RFC 8489 does; the answer is signed by the same means and no other.
fn ask(world: &mut World, method: u16, attrs: &[(u16, Vec<u8>)]) -> Reading {
    let request = claim(world, method, attrs, Some(&OFFER), Some(&SHA256)).integrity_sha256(&key_sha256("alice"));
    let reply = answer(world, &request);
    assert!(reply.is_signed_sha256(&key_sha256("alice")) && reply.get(wire::INTEGRITY).is_none(), "{reply:?}");
    reply
}

fn configured(algorithms: PasswordAlgorithms) -> World {
    let mut config = world::config();
    config.password_algorithms = algorithms;
    World::with(config, world::quotas(), world::capacity(), world::secrets(1))
}

#[test]
fn rfc_r029_r053_r057_sha256_from_allocate_to_delete() {
    let mut world = World::new();
    let peer = addr("8.8.8.8:53");
    let reply = ask(&mut world, ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    assert_eq!(reply.code(), 0);
    assert_eq!(reply.get(wire::INTEGRITY_SHA256).map(<[u8]>::len), Some(32));
    let attr = world.peer_attr(peer);
    assert_eq!(ask(&mut world, CREATE_PERMISSION, &[attr]).code(), 0);
    assert!(matches!(world.send(from(), peer, b"x"), Out::ToPeer { .. }));
    // One user by both ways: no 441.
    assert_eq!(world.ask(from(), REFRESH, &[]).code(), 0);
    assert_eq!(ask(&mut world, REFRESH, &[(wire::LIFETIME, vec![0; 4])]).code(), 0);
    assert_eq!(world.server.allocations(), 0);
    world.probe();
}

#[test]
fn rfc_r045_r048_r058_case_a36_the_offer_is_the_operators() {
    for (algorithms, offer, cookie) in [
        (PasswordAlgorithms::Md5AndSha256, Some(&OFFER[..]), "obMatJos2wAAA"),
        (PasswordAlgorithms::Md5, None, "obMatJos2QAAA"),
        (PasswordAlgorithms::Sha256, Some(&SHA256[..]), "obMatJos2wAAA"),
    ] {
        let mut world = configured(algorithms);
        let challenge = world.challenge(from());
        assert_eq!(challenge.get(wire::PASSWORD_ALGORITHMS), offer, "{algorithms:?}");
        assert!(challenge.get(NONCE).is_some_and(|nonce| nonce.starts_with(cookie.as_bytes())), "{algorithms:?}");
        // Neither attribute: MD5 and MESSAGE-INTEGRITY, both ways, or 401 where MD5 is forbidden.
        let reply = {
            let request = claim(&mut world, REFRESH, &[], None, None).integrity(&key("alice"));
            answer(&mut world, &request)
        };
        if algorithms == PasswordAlgorithms::Sha256 {
            assert_eq!((reply.code(), reply.kinds()), (401, CHALLENGE.to_vec()));
        } else {
            assert_eq!(reply.code(), 437);
            assert!(reply.is_signed(&key("alice")) && reply.get(wire::INTEGRITY_SHA256).is_none());
        }
    }
    let mut world = configured(PasswordAlgorithms::Sha256);
    let sha256 = claim(&mut world, REFRESH, &[], Some(&SHA256), Some(&SHA256)).integrity_sha256(&key_sha256("alice"));
    assert_eq!(answer(&mut world, &sha256).code(), 437);
    let md5 = claim(&mut world, REFRESH, &[], Some(&SHA256), Some(&MD5)).integrity(&key("alice"));
    assert_eq!(answer(&mut world, &md5).code(), 400);
}

/// An algorithm chosen by name asks for MESSAGE-INTEGRITY-SHA256 in the answer (RFC 8489 section 9.2.4), whatever the
/// request is signed by. A client that signs with MESSAGE-INTEGRITY gets that too: there are some that want it back.
#[test]
fn rfc_r057_the_answer_is_signed_by_the_algorithm_that_was_chosen() {
    let mut world = World::new();
    for (choice, alice) in [(MD5, key("alice").to_vec()), (SHA256, key_sha256("alice").to_vec())] {
        let claim = |world: &mut World| claim(world, REFRESH, &[], Some(&OFFER), Some(&choice));
        let request = claim(&mut world).integrity_sha256(&alice);
        let by_sha256 = answer(&mut world, &request);
        assert!(by_sha256.code() == 437 && by_sha256.is_signed_sha256(&alice));
        assert_eq!(by_sha256.kinds(), [wire::ERROR_CODE, wire::INTEGRITY_SHA256]);
        let request = claim(&mut world).integrity(&alice).fingerprint();
        let by_sha1 = answer(&mut world, &request);
        assert!(by_sha1.code() == 437 && by_sha1.is_signed_sha256(&alice) && by_sha1.is_signed(&alice));
        let kinds = [wire::ERROR_CODE, wire::INTEGRITY, wire::INTEGRITY_SHA256, wire::FINGERPRINT];
        assert_eq!(by_sha1.kinds(), kinds);
    }
    // The key of the other algorithm is a wrong one.
    let crossed = claim(&mut world, REFRESH, &[], Some(&OFFER), Some(&MD5)).integrity_sha256(&key_sha256("alice"));
    assert_eq!(answer(&mut world, &crossed).code(), 401);
}

#[test]
fn rfc_r035_r049_r050_r051_case_a35_lists_and_choices_that_do_not_fit() {
    let mut world = World::new();
    let reordered = [0, 1, 0, 0, 0, 2, 0, 0];
    let with_parameters = [0, 2, 0, 1, 9, 0, 0, 0];
    let lists: [Option<&[u8]>; 7] =
        [None, Some(&OFFER), Some(&reordered), Some(&OFFER[..4]), Some(&OFFER[..7]), Some(&[]), Some(&with_parameters)];
    let choices: [Option<&[u8]>; 7] =
        [None, Some(&SHA256), Some(&MD5), Some(&[0, 3, 0, 0]), Some(&[0, 2]), Some(&[]), Some(&with_parameters)];
    for (list_at, list) in lists.into_iter().enumerate() {
        for (choice_at, choice) in choices.into_iter().enumerate() {
            let request = claim(&mut world, REFRESH, &[], list, choice);
            let request = match choice_at {
                0 | 2 => request.integrity(&key("alice")),
                _ => request.integrity_sha256(&key_sha256("alice")),
            };
            let reply = answer(&mut world, &request);
            let fits = matches!((list_at, choice_at), (0, 0) | (1, 1 | 2));
            if fits {
                assert_eq!(reply.code(), 437, "{list:?} {choice:?}");
            } else {
                assert_eq!((reply.code(), &reply.kinds()[..]), (BARE_400.0, &BARE_400.1[..]), "{list:?} {choice:?}");
            }
        }
    }
}

#[test]
fn case_a29_sha256_integrity_of_a_wrong_length() {
    let mut world = World::new();
    for len in [0, 12, 16, 28, 31, 33, 64] {
        let unsigned = claim(&mut world, REFRESH, &[], Some(&OFFER), Some(&SHA256));
        // As long as a truncated code would be right, and with a right MESSAGE-INTEGRITY before it too.
        for before in [unsigned.clone(), unsigned.clone().integrity(&key_sha256("alice"))] {
            let mut code = before.clone().integrity_sha256(&key_sha256("alice")).0.split_off(before.0.len() + 4);
            code.resize(len, 0);
            let mut covered = before.clone();
            covered.set_length(before.0.len() + 4 + len.next_multiple_of(4) - 20);
            let truncated = wire::hmac_sha256(&key_sha256("alice"), &covered.0);
            for value in [code, truncated.iter().chain(&[0; 32]).copied().take(len).collect()] {
                let reply = answer(&mut world, &before.clone().attr(wire::INTEGRITY_SHA256, &value));
                assert_eq!((reply.code(), reply.kinds()), (401, CHALLENGE.to_vec()), "{len}");
            }
        }
    }
}

/// A code of a wrong length is none at all, so that what else is missing is not looked at.
#[test]
fn case_a28_case_a29_a_code_of_a_wrong_length_is_no_code() {
    let mut world = World::new();
    for (kind, len) in [(wire::INTEGRITY, 19), (wire::INTEGRITY, 32), (wire::INTEGRITY_SHA256, 28)] {
        let tid = world.tid();
        let reply = answer(&mut world, &Writer::new(REFRESH, 0, tid).attr(kind, &vec![1; len]));
        assert_eq!((reply.code(), reply.kinds()), (401, CHALLENGE.to_vec()), "{kind:04x} {len}");
        let tid = world.tid();
        let right_before = Writer::new(REFRESH, 0, tid).integrity(&key("alice")).attr(wire::INTEGRITY_SHA256, &[1; 28]);
        assert_eq!(answer(&mut world, &right_before).code(), 401);
    }
}

#[test]
fn rfc_r053_case_a16_of_two_codes_sha256_is_verified() {
    let mut world = World::new();
    for (sha1_key, sha256_key, code) in [
        (&key_sha256("alice")[..], key_sha256("alice"), 437),
        (b"wrong", key_sha256("alice"), 437),
        (&key_sha256("alice"), [0; 32], 401),
    ] {
        let request = claim(&mut world, REFRESH, &[], Some(&OFFER), Some(&SHA256));
        let request = request.integrity(sha1_key).integrity_sha256(&sha256_key);
        assert_eq!(answer(&mut world, &request).code(), code);
    }
    // Without algorithm attributes both are made with the MD5 key, and MESSAGE-INTEGRITY answers.
    let request = claim(&mut world, REFRESH, &[], None, None).integrity(&key("alice")).integrity_sha256(&key("alice"));
    let reply = answer(&mut world, &request.fingerprint());
    assert!(reply.code() == 437 && reply.is_signed(&key("alice")) && reply.get(wire::INTEGRITY_SHA256).is_none());
}

#[test]
fn rfc_r038_r039_case_a13_a14_a15_attributes_after_either_code_do_not_count() {
    let mut world = World::new();
    let key = key_sha256("alice");
    ask(&mut world, ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    let signed = |world: &mut World| {
        let request = claim(world, REFRESH, &[(wire::LIFETIME, vec![0, 0, 3, 232])], Some(&OFFER), Some(&SHA256));
        request.integrity_sha256(&key)
    };
    // A second MESSAGE-INTEGRITY-SHA256 and a MESSAGE-INTEGRITY behind the code are among what is passed over.
    let appended: [(u16, &[u8]); 5] = [
        (wire::LIFETIME, &[0; 4]),
        (0x7777, &[1; 4]),
        (wire::INTEGRITY, &[1; 20]),
        (wire::INTEGRITY_SHA256, &[1; 32]),
        (wire::USERNAME, b"bob"),
    ];
    for (kind, value) in appended {
        let reply = {
            let request = signed(&mut world).attr(kind, value).fingerprint();
            answer(&mut world, &request)
        };
        assert_eq!((reply.code(), reply.lifetime(), world.server.allocations()), (0, Some(1_000), 1), "{kind:04x}");
    }
    // Between the two codes nothing counts either, although the second covers it.
    let between = claim(&mut world, REFRESH, &[], Some(&OFFER), Some(&SHA256)).integrity(&key);
    let between = between.attr(wire::LIFETIME, &[0; 4]).attr(0x7777, &[]).integrity_sha256(&key);
    assert_eq!((answer(&mut world, &between).lifetime(), world.server.allocations()), (Some(600), 1));
    // A peer behind the code is not permitted.
    let peer = addr("8.8.8.8:1");
    let attr = world.peer_attr(peer);
    let request = claim(&mut world, CREATE_PERMISSION, &[attr], Some(&OFFER), Some(&SHA256)).integrity_sha256(&key);
    let other = addr("9.9.9.9:1");
    assert_eq!(answer(&mut world, &request.address(wire::PEER_ADDRESS, other).fingerprint()).code(), 0);
    assert!(matches!(world.send(from(), peer, b"x"), Out::ToPeer { .. }));
    assert_eq!(world.send(from(), other, b"x"), Out::Drop(DropReason::NoPermission));
}

/// Each error together with every later one: the first decides.
#[test]
fn rfc_r042_r047_r052_r054_r055_r056_the_order_of_checks() {
    let mut world = World::new();
    let nonce = world.nonce(from());
    world.pass_s(3_600);
    let realm = REALM.as_bytes();
    let base = |world: &mut World, name: &[u8]| {
        let tid = world.tid();
        Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, name).attr(wire::REALM, realm)
    };
    let listed = |request: Writer| request.attr(wire::PASSWORD_ALGORITHMS, &OFFER);
    let chosen = |request: Writer| listed(request).attr(wire::PASSWORD_ALGORITHM, &SHA256);
    let right = key_sha256("alice");
    let challenge = CHALLENGE.to_vec();

    let unsigned = listed(base(&mut world, b"mallory"));
    let no_nonce = listed(base(&mut world, b"mallory")).integrity_sha256(&right);
    let half_an_offer = listed(base(&mut world, b"mallory").attr(NONCE, &nonce)).integrity_sha256(&right);
    let unknown = chosen(base(&mut world, b"mallory").attr(NONCE, &nonce)).integrity_sha256(&right);
    let wrong = chosen(base(&mut world, b"alice").attr(NONCE, &nonce)).integrity_sha256(b"wrong");
    let stale = chosen(base(&mut world, b"alice").attr(NONCE, &nonce)).integrity_sha256(&right);
    for (request, code, kinds) in [
        (unsigned, 401, challenge.clone()),
        (no_nonce, 400, vec![wire::ERROR_CODE]),
        (half_an_offer, 400, vec![wire::ERROR_CODE]),
        (unknown, 401, challenge.clone()),
        (wrong, 401, challenge.clone()),
        (stale, 438, challenge.clone()),
    ] {
        let reply = answer(&mut world, &request);
        assert_eq!((reply.code(), reply.kinds()), (code, kinds));
        // Whatever asks for credentials hands out a nonce that is good and the same offer.
        if let Some(fresh) = reply.get(NONCE).map(<[u8]>::to_vec) {
            assert_eq!(reply.get(wire::PASSWORD_ALGORITHMS), Some(&OFFER[..]));
            assert_eq!(reply.get(wire::REALM), Some(realm));
            let again = chosen(base(&mut world, b"alice").attr(NONCE, &fresh)).integrity_sha256(&right);
            assert_eq!(answer(&mut world, &again).code(), 437);
        }
    }
}

/// The cookie is as little a client's to change as the rest: taking the offer away ends in 438 (A34).
#[test]
fn case_a34_the_cookie_is_authenticated() {
    let mut world = World::new();
    let nonce = world.nonce(from());
    assert!(nonce.starts_with(b"obMatJos2wAAA"));
    for features in [&b"AAAA"[..], b"gAAA", b"QAAA", b"wAAB", b"////"] {
        let mut bid_down = nonce.clone();
        bid_down[9..13].copy_from_slice(features);
        let base = |world: &mut World| {
            let tid = world.tid();
            let request = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, b"alice");
            request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &bid_down)
        };
        let legacy = base(&mut world).integrity(&key("alice"));
        assert_eq!(answer(&mut world, &legacy).code(), 438);
        let chosen = base(&mut world).attr(wire::PASSWORD_ALGORITHMS, &OFFER).attr(wire::PASSWORD_ALGORITHM, &SHA256);
        assert_eq!(answer(&mut world, &chosen.integrity_sha256(&key_sha256("alice"))).code(), 438);
    }
}

#[test]
fn rfc_r027_r046_userhash_replaces_the_name_while_every_user_is_known() {
    let hashed = |world: &mut World, name: &str| {
        let (nonce, tid) = (world.nonce(from()), world.tid());
        let request = Writer::new(ALLOCATE, 0, tid).attr(wire::TRANSPORT, &UDP);
        let request = request.attr(wire::USERHASH, &wire::userhash(name, REALM)).attr(wire::REALM, REALM.as_bytes());
        let request = request.attr(NONCE, &nonce).attr(wire::PASSWORD_ALGORITHMS, &OFFER);
        let request = request.attr(wire::PASSWORD_ALGORITHM, &SHA256).integrity_sha256(&key_sha256(name));
        (nonce, answer(world, &request).code())
    };
    let mut world = World::new();
    let (nonce, code) = hashed(&mut world, "alice");
    assert!(nonce.starts_with(b"obMatJos2w") && code == 0);
    // Hash and name are one user, who is listed by name.
    assert_eq!(world.server.live_allocations().next().map(|live| live.user.to_vec()), Some(b"alice".to_vec()));
    assert_eq!(world.ask(from(), REFRESH, &[]).code(), 0);
    assert_eq!(hashed(&mut world, "bob").1, 437);
    assert_eq!(hashed(&mut world, "mallory").1, 401);

    // With a secret of time-limited names a hash may be that of any name, and so is not offered and not resolved.
    let mut secrets = world::secrets(1);
    secrets.add_auth_secret(b"secret");
    world.server.replace_secrets(world.now, &secrets);
    let (nonce, code) = hashed(&mut world, "alice");
    assert!(nonce.starts_with(b"obMatJos2g") && code == 401);
    assert_eq!(ask(&mut world, REFRESH, &[]).code(), 0);
}

/// The key of a user is worth nothing under a name that is nobody's, although such a name is checked against some key.
#[test]
fn case_a37_the_key_of_another_user_is_rejected() {
    let mut world = World::new();
    for name in ["mallory", "alic", "alice2", "Alice", "bo", "carol", "dave", "eve"] {
        for owner in ["alice", "bob"] {
            let request = world.unsigned(from(), name, REFRESH, &[]).integrity(&key(owner));
            assert_eq!(answer(&mut world, &request).code(), 401, "{name} with the key of {owner}");
            let (nonce, tid) = (world.nonce(from()), world.tid());
            let request = Writer::new(REFRESH, 0, tid).attr(wire::USERHASH, &wire::userhash(name, REALM));
            let request = request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce).integrity(&key(owner));
            assert_eq!(answer(&mut world, &request).code(), 401, "the hash of {name} with the key of {owner}");
        }
    }
    // Without users it is unknown as well.
    world.server.replace_secrets(world.now, &Secrets::new([1; 32], [77; 32]));
    for name in ["alice", ""] {
        let request = world.unsigned(from(), name, REFRESH, &[]).integrity(&[1; 32]);
        assert_eq!(answer(&mut world, &request).code(), 401);
    }
}

#[test]
fn quota_counts_a_user_once_whatever_the_way() {
    let quotas = Quotas { allocations_per_user: 1, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    world.allocate(addr("192.0.2.2:1"));
    let transport = [(wire::TRANSPORT, UDP.to_vec())];
    assert_eq!(ask(&mut world, ALLOCATE, &transport).code(), 486);
    let (nonce, tid) = (world.nonce(from()), world.tid());
    let request = Writer::new(ALLOCATE, 0, tid).attr(wire::TRANSPORT, &UDP);
    let request = request.attr(wire::USERHASH, &wire::userhash("alice", REALM)).attr(wire::REALM, REALM.as_bytes());
    let request = request.attr(NONCE, &nonce).integrity(&key("alice"));
    assert_eq!(answer(&mut world, &request).code(), 486);
}

#[test]
fn rfc_r059_errors_behind_authentication_are_signed_by_the_requests_means() {
    let quotas = Quotas { allocations_per_user: 1, ..world::quotas() };
    let mut world = World::with(world::config(), quotas, world::capacity(), world::secrets(1));
    let transport = [(wire::TRANSPORT, UDP.to_vec())];
    let both = |world: &mut World, method: u16, attrs: &[(u16, Vec<u8>)], code: u16| {
        assert_eq!(ask(world, method, attrs).code(), code);
        assert_eq!(world.ask(from(), method, attrs).code(), code);
    };
    both(&mut world, REFRESH, &[], 437);
    both(&mut world, ALLOCATE, &[(wire::TRANSPORT, vec![132, 0, 0, 0])], 442);
    let token = (wire::RESERVATION_TOKEN, vec![1; 8]);
    both(&mut world, ALLOCATE, &[transport[0].clone(), token], 508);
    world.allocate(addr("192.0.2.2:1"));
    both(&mut world, ALLOCATE, &transport, 486);
    both(&mut world, REFRESH, &[(0x7777, vec![])], 420);
    // The next ones need an allocation of alice's.
    let end = [(wire::LIFETIME, vec![0; 4])];
    assert_eq!(world.ask(addr("192.0.2.2:1"), REFRESH, &end).code(), 0);
    world.allocate(from());
    for (peer, code) in [("127.0.0.1:1", 403), ("[2001:4860::1]:1", 443)] {
        let attr = world.peer_attr(addr(peer));
        both(&mut world, CREATE_PERMISSION, &[attr], code);
    }
    both(&mut world, CREATE_PERMISSION, &[], 400);
}

#[test]
fn rfc_r025_case_a24_names_of_any_bytes_get_an_answer() {
    let mut world = World::new();
    let long = [vec![b'a'; 508], vec![b'a'; 513], vec![b'a'; 763], vec![b'a'; 764]];
    let odd: [&[u8]; 6] = [b"", b"\xFF\xFE", b"alice\0", b"ali\r\nce", b"\x1B[31malice", b"%s%n"];
    for name in long.iter().map(|name| &name[..]).chain(odd) {
        let (nonce, tid) = (world.nonce(from()), world.tid());
        let request = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, name).attr(wire::REALM, REALM.as_bytes());
        let reply = answer(&mut world, &request.attr(NONCE, &nonce).integrity(&key("alice")));
        assert_eq!((reply.code(), reply.kinds()), (401, CHALLENGE.to_vec()), "{name:?}");
    }
    // A name of as many bytes as the RFC allows is a name like any other.
    let name = "n".repeat(508);
    let mut secrets = Secrets::new([1; 32], [77; 32]);
    secrets.add_user(name.as_bytes(), REALM, PASSWORD.as_bytes());
    world.server.replace_secrets(world.now, &secrets);
    let request = world.unsigned(from(), &name, REFRESH, &[]).integrity(&md5_key(&name, REALM, PASSWORD));
    assert_eq!(answer(&mut world, &request).code(), 437);
    world.server.replace_secrets(world.now, &world::secrets(1));
    world.probe();
}

#[test]
fn rfc_r034_r044_nonces_are_short_and_of_one_address_and_port() {
    let mut world = World::new();
    let mut seen = std::collections::HashSet::new();
    for host in 1..=20u8 {
        for port in 1_000..1_050u16 {
            let nonce = world.nonce(SocketAddr::new([192, 0, 2, host].into(), port));
            assert!(nonce.len() < 128 && nonce.is_ascii());
            assert!(seen.insert(nonce));
        }
    }
}

/// RFC 8656 section 5: an hour at most, whatever is configured.
#[test]
fn rfc_r065_a_nonce_expires_within_the_hour() {
    for (configured_s, lives_s) in [(7_200, 3_600), (60, 60)] {
        let mut config = world::config();
        config.nonce_lifetime_s = configured_s;
        let mut world = World::with(config, world::quotas(), world::capacity(), world::secrets(1));
        let request = claim(&mut world, REFRESH, &[], None, None).integrity(&key("alice"));
        world.pass_s(lives_s - 1);
        assert_eq!(answer(&mut world, &request).code(), 437);
        world.pass_s(1);
        assert_eq!(answer(&mut world, &request).code(), 438);
    }
}
