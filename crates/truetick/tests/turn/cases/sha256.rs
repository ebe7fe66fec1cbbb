//! RFC 8489's SHA-256 path over UDP: cases A16, A29, A34 to A37, requirements R027 to R029 and R045 to R058.

use super::stage::{Caller, REALM, Stage, UDP};
use crate::server::Server;
use crate::wire::{self, ALLOCATE, ERROR_CODE, LIFETIME, NONCE, REFRESH, Reading, Writer};

const MD5: &[u8] = &[0, 1, 0, 0];
const SHA256: &[u8] = &[0, 2, 0, 0];
/// Preferred first.
const OFFER: &[u8] = &[0, 2, 0, 0, 0, 1, 0, 0];

fn key(caller: &Caller) -> [u8; 32] {
    wire::sha256_key(&caller.name, REALM, &caller.password)
}

/// A request with everything but its integrity.
fn claim(caller: &mut Caller, request: Writer, list: Option<&[u8]>, choice: Option<&[u8]>) -> Writer {
    let mut request = caller.named(request);
    if let Some(list) = list {
        request = request.attr(wire::PASSWORD_ALGORITHMS, list);
    }
    match choice {
        Some(choice) => request.attr(wire::PASSWORD_ALGORITHM, choice),
        None => request,
    }
}

/// Asks as a client of RFC 8489 does; the answer is signed by the same means and no other.
fn ask(caller: &mut Caller, request: Writer) -> Reading {
    let request = claim(caller, request, Some(OFFER), Some(SHA256)).integrity_sha256(&key(caller));
    let reply = caller.exchange(&request.0);
    assert!(reply.is_signed_sha256(&key(caller)) && reply.get(wire::INTEGRITY).is_none(), "{reply:?}");
    reply
}

#[test]
pub(super) fn rfc_r029_r053_r057_r059_sha256_from_allocate_to_delete() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    let relayed = ask(&mut caller, request).address(wire::RELAYED_ADDRESS).unwrap();
    let peer = stage.peer();
    let request = caller.request(wire::CREATE_PERMISSION).address(wire::PEER_ADDRESS, peer.addr());
    assert_eq!(ask(&mut caller, request).code(), 0);
    caller.send_to(peer.addr(), b"sha-256");
    assert_eq!(peer.receive(), (b"sha-256".to_vec(), relayed));
    // Errors are signed as well.
    let request = caller.request(wire::CREATE_PERMISSION).address(wire::PEER_ADDRESS, "10.0.0.1:1".parse().unwrap());
    assert_eq!(ask(&mut caller, request).code(), 403);
    let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    assert_eq!(ask(&mut caller, request).code(), 437);
    assert_eq!(caller.refresh(600), 0, "one user by both ways");
    let request = caller.request(REFRESH).attr(LIFETIME, &[0; 4]);
    assert_eq!(ask(&mut caller, request).code(), 0);
    stage.probe();
}

#[test]
pub(super) fn rfc_r045_r052_case_a26_a37_the_challenge_offers_the_algorithms() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let nonce = caller.fresh_nonce();
    let base = |caller: &mut Caller| caller.request(REFRESH).attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce);
    let bare = caller.request(REFRESH);
    let unknown = base(&mut caller).attr(wire::USERNAME, b"stranger").integrity(b"x");
    let wrong = base(&mut caller).attr(wire::USERNAME, b"ann").integrity(b"x");
    let hash = wire::userhash("stranger", REALM);
    let hashed = base(&mut caller).attr(wire::USERHASH, &hash).integrity(b"x");
    let short_hash = base(&mut caller).attr(wire::USERHASH, &hash[..31]).integrity(b"x");
    for request in [bare, unknown, wrong, hashed, short_hash] {
        let reply = caller.exchange(&request.0);
        assert_eq!((reply.code(), reply.get(wire::PASSWORD_ALGORITHMS)), (401, Some(OFFER)));
        assert!(reply.get(NONCE).unwrap().starts_with(b"obMatJos2"));
    }
    stage.probe();
}

#[test]
fn rfc_r027_r046_a_user_by_the_hash_of_its_name() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let nonce = caller.fresh_nonce();
    // The second bit of the features: the server takes USERHASH.
    assert!(nonce.starts_with(b"obMatJos2wAAA"), "{nonce:?}");
    let hash = wire::userhash("ann", REALM);
    let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP).attr(wire::USERHASH, &hash);
    let request = request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce);
    let request = request.attr(wire::PASSWORD_ALGORITHMS, OFFER).attr(wire::PASSWORD_ALGORITHM, SHA256);
    let reply = caller.exchange(&request.integrity_sha256(&key(&caller)).0);
    assert!(reply.code() == 0 && reply.is_signed_sha256(&key(&caller)), "{reply:?}");
    assert_eq!(caller.refresh(600), 0, "and by its name");
    stage.probe();
}

#[test]
pub(super) fn case_a16_of_two_codes_sha256_is_verified() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    caller.allocate();
    for (sha1_key, sha256_key, code) in
        [(&key(&caller)[..], key(&caller), 0), (b"wrong", key(&caller), 0), (&key(&caller), [0; 32], 401)]
    {
        let request = caller.request(REFRESH);
        let request = claim(&mut caller, request, Some(OFFER), Some(SHA256)).integrity(sha1_key);
        assert_eq!(caller.exchange(&request.integrity_sha256(&sha256_key).0).code(), code);
    }
    stage.probe();
}

#[test]
fn case_a29_sha256_integrity_of_a_wrong_length() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    for length in [0, 12, 16, 28, 31, 33] {
        let request = caller.request(REFRESH);
        let unsigned = claim(&mut caller, request, Some(OFFER), Some(SHA256));
        let mut covered = unsigned.clone();
        covered.set_length(unsigned.0.len() + 4 + usize::next_multiple_of(length, 4) - 20);
        // As long as a truncated code would be right.
        let mut code = wire::hmac_sha256(&key(&caller), &covered.0).to_vec();
        code.resize(length, 0);
        assert_eq!(caller.exchange(&unsigned.attr(wire::INTEGRITY_SHA256, &code).0).code(), 401, "{length}");
    }
    stage.probe();
}

#[test]
pub(super) fn case_a35_rfc_r049_r050_r051_lists_and_choices_that_do_not_fit() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    caller.allocate();
    let reordered: &[u8] = &[0, 1, 0, 0, 0, 2, 0, 0];
    for (list, choice, code) in [
        (Some(OFFER), Some(SHA256), 0),
        (Some(OFFER), Some(MD5), 0),
        (Some(OFFER), None, 400),
        (None, Some(SHA256), 400),
        (Some(reordered), Some(SHA256), 400),
        (Some(SHA256), Some(SHA256), 400),
        (Some(MD5), Some(MD5), 400),
        (Some(&OFFER[..7]), Some(SHA256), 400),
        (Some(&[]), Some(SHA256), 400),
        (Some(OFFER), Some(&[0, 3, 0, 0]), 400),
        (Some(OFFER), Some(&[0, 2]), 400),
    ] {
        let request = caller.request(REFRESH);
        let request = claim(&mut caller, request, list, choice);
        let signed = match choice {
            Some(choice) if choice == MD5 => request.integrity_sha256(&caller.key()),
            Some(_) | None => request.integrity_sha256(&key(&caller)),
        };
        let reply = caller.exchange(&signed.0);
        assert_eq!(reply.code(), code, "{list:?} {choice:?}");
        if code == 400 {
            assert_eq!(reply.kinds(), [ERROR_CODE], "{list:?} {choice:?}");
        }
    }
    stage.probe();
}

#[test]
pub(super) fn case_a34_bidding_down_is_438() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    caller.allocate();
    for features in [&b"AAAA"[..], b"gAAA", b"QAAA", b"wAAB"] {
        let mut nonce = caller.nonce.clone();
        nonce[9..13].copy_from_slice(features);
        let request = caller.request(REFRESH).attr(wire::USERNAME, b"ann").attr(wire::REALM, REALM.as_bytes());
        let reply = caller.exchange(&request.attr(NONCE, &nonce).integrity(&caller.key()).0);
        assert_eq!((reply.code(), reply.get(wire::PASSWORD_ALGORITHMS)), (438, Some(OFFER)));
    }
    stage.probe();
}

#[test]
fn case_a36_rfc_r048_r058_md5_where_the_operator_allows_it() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    caller.allocate();
    // `ask` asserts MESSAGE-INTEGRITY in the answer; there is no other code in it.
    let request = caller.request(REFRESH);
    assert_eq!(caller.ask(request).get(wire::INTEGRITY_SHA256), None);
    stage.probe();
    let flags =
        ["--listen", "127.0.0.1:0", "--workers", "4", "--http", "127.0.0.1:0", "--password-algorithms", "sha256"];
    let stage = Stage::of(Server::start(&flags));
    let mut caller = stage.caller();
    let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    let request = caller.signed(request);
    let reply = caller.exchange(&request.0);
    assert_eq!((reply.code(), reply.get(wire::PASSWORD_ALGORITHMS)), (401, Some(SHA256)));
    let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    let request = claim(&mut caller, request, Some(SHA256), Some(SHA256)).integrity_sha256(&key(&caller));
    assert_eq!(caller.exchange(&request.0).code(), 0);
}
