//! Codec and framing over UDP: cases A01 to A25, requirements R001 to R037.

use super::stage::{Caller, Stage, UDP};
use crate::wire::{self, ALLOCATE, BINDING, DATA, LIFETIME, PEER_ADDRESS, REFRESH, Reading, SEND, Writer};

/// What is neither of STUN nor of a channel.
const STRANGE: &[&str] = &["not_stun", "method"];

fn binding(caller: &mut Caller) -> Vec<u8> {
    caller.request(BINDING).0
}

#[test]
fn case_a01_datagrams_shorter_than_a_header() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let message = binding(&mut caller);
    let short: Vec<_> = (0..20).map(|len| message[..len].to_vec()).collect();
    stage.dropped(&caller, &["short"], &short);
    stage.probe();
}

#[test]
fn case_a02_first_bytes_of_other_protocols() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let message = binding(&mut caller);
    let strange = (4u8..16).chain(80..128).chain(192..=255);
    let strange: Vec<_> = strange.map(|first| [&[first], &message[1..]].concat()).collect();
    stage.dropped(&caller, STRANGE, &strange);
    stage.probe();
}

#[test]
fn case_a03_headers_that_are_not_stuns() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let message = binding(&mut caller);
    let with = |at: usize, byte: u8| {
        let mut changed = message.clone();
        changed[at] = byte;
        changed
    };
    let cookies: Vec<_> = (4..8).flat_map(|at| [0, 0xFF].map(|byte| with(at, byte))).collect();
    stage.dropped(&caller, &["not_stun"], &cookies);
    let top_bits: Vec<_> = [0x40, 0x80, 0xC0].map(|bits| with(0, bits)).to_vec();
    stage.dropped(&caller, &["not_stun", "no_allocation", "channel_length"], &top_bits);
    let lengths: Vec<_> = [1, 2, 3, 4, 8, 0xFC].map(|length| with(3, length)).to_vec();
    stage.dropped(&caller, &["length"], &lengths);
    let longer = caller.request(BINDING).attr(wire::SOFTWARE, b"four").0;
    let mut short = longer.clone();
    short[3] = 4;
    stage.dropped(&caller, &["length"], &[short]);
    assert_eq!(caller.exchange(&longer).code(), 0);
    stage.probe();
}

#[test]
fn case_a04_junk_behind_a_message() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let message = binding(&mut caller);
    let junk: Vec<_> = [1, 2, 3, 4, 8, 20, 1_000].map(|len| [&message[..], &vec![0; len]].concat()).to_vec();
    stage.dropped(&caller, &["length"], &junk);
    let twice = [&message[..], &message].concat();
    stage.dropped(&caller, &["length"], &[twice]);
    stage.probe();
}

#[test]
fn case_a07_attributes_past_the_end() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let mut past = Vec::new();
    for length in [5u16, 8, 0x7FFF, 0xFFFC, 0xFFFF] {
        let mut message = caller.request(BINDING).attr(wire::SOFTWARE, b"four").0;
        message[22..24].copy_from_slice(&length.to_be_bytes());
        past.push(message);
    }
    // DATA that is said to be longer than its datagram brings nothing of the memory behind it to the peer.
    caller.allocate();
    let peer = stage.peer();
    assert_eq!(caller.permit(peer.addr()), 0);
    let mut send = caller.send_indication(peer.addr(), b"four");
    let at = send.len() - 6;
    send[at..at + 2].copy_from_slice(&1_000u16.to_be_bytes());
    past.push(send);
    stage.dropped(&caller, &["attribute"], &past);
    // One to three stray bytes: the header's length is then no multiple of four.
    let mut stray = Vec::new();
    for len in 1..4 {
        let mut message = Writer([binding(&mut caller), vec![0; len]].concat());
        message.set_length(len);
        stray.push(message.0);
    }
    stage.dropped(&caller, &["length"], &stray);
    stage.probe();
}

#[test]
fn case_a09_many_attributes_of_odd_lengths() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let mut empty = |count: usize| {
        let mut request = caller.request(BINDING);
        request.0.extend([0x80, 0x22, 0, 0].repeat(count));
        request.set_length(4 * count);
        request.0
    };
    let (fits, too_long) = (empty(4_000), empty(16_000));
    let reply = caller.exchange(&fits);
    assert_eq!((reply.code(), reply.bytes.len()), (0, 32));
    stage.dropped(&caller, &["request_length"], &[too_long]);
    // What follows an odd length is found behind the padding.
    caller.allocate();
    for odd in 1..9 {
        let request = caller.request(REFRESH).attr(0x8FFF, &vec![0xFF; odd]).attr(LIFETIME, &700u32.to_be_bytes());
        assert_eq!(caller.ask(request).lifetime(), Some(700), "{odd}");
    }
    stage.probe();
}

#[test]
pub(super) fn case_a10_unknown_required_attributes() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let numbers: Vec<u16> = (0..300).map(|number| 0x4000 + number).collect();
    let request = numbers.iter().fold(caller.request(REFRESH), |request, number| request.attr(*number, &[]));
    let request = caller.signed(request).0;
    let reply = caller.exchange(&request);
    assert!(reply.is_signed(&caller.key()) && reply.bytes.len() <= request.len());
    let listed = reply.get(wire::UNKNOWN_ATTRIBUTES).unwrap();
    let expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    assert_eq!((reply.code(), listed), (420, &expected[..listed.len()]));
    assert!(!listed.is_empty() && listed.len().is_multiple_of(2));
    stage.probe();
}

#[test]
pub(super) fn rfc_r007_r008_r009_r010_r037_unknown_and_unexpected_attributes() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let three = caller.request(BINDING).attr(0x7FFE, &[1, 2, 3]).attr(0x0024, &[]).attr(0x0025, &[9; 8]);
    let reply = caller.exchange(&three.0);
    // Three types are six bytes; `Reading` asserts that two zeros pad them.
    assert_eq!((reply.code(), reply.get(wire::UNKNOWN_ATTRIBUTES)), (420, Some(&[0x7F, 0xFE, 0, 0x24, 0, 0x25][..])));
    let bare = caller.request(ALLOCATE).attr(0x7FFE, &[]);
    assert_eq!(caller.exchange(&bare.0).code(), 401, "credentials come first");
    let passed_over = caller.request(BINDING).attr(0xFFFE, &[1]).attr(LIFETIME, &[]).attr(DATA, b"x");
    let reply = caller.exchange(&passed_over.attr(wire::MAPPED_ADDRESS, &[9; 3]).0);
    assert_eq!((reply.code(), reply.address(wire::MAPPED_ADDRESS)), (0, caller.socket.local_addr().ok()));
    stage.probe();
}

#[test]
pub(super) fn case_a11_a12_the_first_of_two_counts() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    let (peer, other) = (stage.peer(), stage.peer());
    let denied = "10.1.2.3:9".parse().unwrap();
    assert_eq!(caller.permit(peer.addr()), 0);
    let twice = caller.indication(SEND).address(PEER_ADDRESS, denied).address(PEER_ADDRESS, peer.addr());
    stage.dropped(&caller, &["no_permission", "peer_denied"], &[twice.attr(DATA, b"x").0]);
    let twice = caller.indication(SEND).address(PEER_ADDRESS, peer.addr()).address(PEER_ADDRESS, other.addr());
    caller.send(&twice.attr(DATA, b"first").attr(DATA, b"second").0);
    assert_eq!(peer.receive(), (b"first".to_vec(), relayed));
    let twice = caller.request(REFRESH).attr(LIFETIME, &900u32.to_be_bytes()).attr(LIFETIME, &[0; 4]);
    assert_eq!(caller.ask(twice).lifetime(), Some(900));
    let request = caller.request(REFRESH);
    let named = caller.named(request).attr(wire::USERNAME, b"stranger").integrity(&caller.key());
    assert_eq!(caller.exchange(&named.0).code(), 0);
    stage.probe();
}

#[test]
pub(super) fn case_a17_a18_fingerprints() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let right = caller.request(BINDING).fingerprint();
    // `Reading` asserts the answer's: right and last.
    assert!(caller.exchange(&right.0).get(wire::FINGERPRINT).is_some());
    let plain = caller.request(BINDING);
    assert_eq!(caller.exchange(&plain.0).kinds(), [wire::MAPPED_ADDRESS], "not asked for, not given");
    let mut wrong: Vec<_> = (24..28)
        .map(|at| {
            let mut changed = right.0.clone();
            changed[at] ^= 1;
            changed
        })
        .collect();
    wrong.push(caller.request(BINDING).fingerprint().attr(wire::SOFTWARE, b"x").0);
    wrong.push(caller.request(BINDING).fingerprint().fingerprint().0);
    wrong.extend([0, 3, 5].map(|len| caller.request(BINDING).attr(wire::FINGERPRINT, &[0; 5][..len]).0));
    stage.dropped(&caller, &["fingerprint"], &wrong);
    caller.allocate();
    let request = caller.request(REFRESH);
    let request = caller.signed(request).fingerprint();
    let reply = caller.exchange(&request.0);
    assert!(reply.is_signed(&caller.key()) && reply.get(wire::FINGERPRINT).is_some());
    stage.probe();
}

#[test]
pub(super) fn case_a19_padding_is_ignored_in_and_zero_out() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let mut odd = caller.request(BINDING).attr(0x8FFF, b"odd!!").0;
    odd[29..32].fill(0xFF);
    assert_eq!(caller.exchange(&odd).code(), 0);
    let relayed = caller.allocate();
    let peer = stage.peer();
    assert_eq!(caller.permit(peer.addr()), 0);
    // Each buffer has held 0xFF before; `Reading` asserts that padding is zero.
    for round in 0..64 {
        caller.send_to(peer.addr(), &[0xFF; 1_200]);
        peer.receive();
        peer.send(relayed, &[0xFF; 1_200]);
        caller.receive();
        let payload = vec![0xFF; round % 8];
        peer.send(relayed, &payload);
        let indication = Reading::of(&caller.receive());
        assert_eq!((indication.method, indication.get(DATA)), (wire::DATA_METHOD, Some(&payload[..])));
        let named = caller.request(ALLOCATE).attr(0x7F00 + round as u16, &[0xFF; 5]);
        let reply = caller.ask(named);
        // One type of two bytes, and two bytes of padding.
        assert_eq!((reply.code(), reply.get(wire::UNKNOWN_ATTRIBUTES).map(<[u8]>::len)), (420, Some(2)));
    }
    stage.probe();
}

#[test]
pub(super) fn case_a20_a21_a22_what_a_server_is_never_sent() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    caller.allocate();
    let id = [7; 12];
    let methods = [BINDING, ALLOCATE, REFRESH, SEND, wire::CREATE_PERMISSION, wire::CHANNEL_BIND];
    let responses = methods.iter().flat_map(|method| [2, 3].map(|class| Writer::new(*method, class, id).0));
    let mut answers: Vec<_> = responses.collect();
    answers.push(Writer::new(wire::DATA_METHOD, 1, id).0);
    stage.dropped(&caller, &["class"], &answers);
    let mut never: Vec<_> = [ALLOCATE, REFRESH, wire::CREATE_PERMISSION, wire::CHANNEL_BIND]
        .map(|method| Writer::new(method, 1, id).attr(wire::TRANSPORT, &UDP).0)
        .to_vec();
    never.extend(
        [SEND, wire::DATA_METHOD, 0x000, 0x002, 0x005, 0x00F, 0x101, 0xFFF].map(|method| Writer::new(method, 0, id).0),
    );
    stage.dropped(&caller, &["method"], &never);
    stage.dropped(&caller, &["binding_indication"], &[Writer::new(BINDING, 1, id).0]);
    stage.probe();
}

#[test]
fn case_a23_classic_stun() {
    let stage = Stage::new();
    let caller = stage.caller();
    let classic = [&[0, 1, 0, 0][..], &[0xAB; 16]].concat();
    let change_request = [&[0, 1, 0, 8][..], &[0xAB; 16], &[0, 3, 0, 4, 0, 0, 0, 6]].concat();
    stage.dropped(&caller, &["not_stun"], &[classic, change_request]);
    stage.probe();
}

#[test]
pub(super) fn case_a24_names_of_odd_bytes() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let names: [&[u8]; 9] =
        [b"", &[0xFF, 0xFE], b"a\0b", b"a\r\nb", b"\x1B[31m", b"%s%n%n", &[b'a'; 513], &[b'a'; 763], &[b'a'; 764]];
    let nonce = caller.fresh_nonce();
    for name in names {
        let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP).attr(wire::USERNAME, name);
        let request = request.attr(wire::REALM, b"truetick").attr(wire::NONCE, &nonce).integrity(b"whatever");
        let code = caller.exchange(&request.0).code();
        assert!(matches!(code, 400 | 401), "{code} for {name:02x?}");
    }
    stage.probe();
}

#[test]
pub(super) fn case_a25_addresses_of_a_bad_family_or_length() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let relayed = caller.allocate();
    let peer = stage.peer();
    assert_eq!(caller.permit(peer.addr()), 0);
    for (family, len) in [(0, 8), (3, 8), (1, 7), (1, 0), (1, 20), (2, 8), (2, 19), (1, 4)] {
        let value = [&[0, family][..], &[0x55; 18]].concat()[..len].to_vec();
        let request = caller.request(wire::CREATE_PERMISSION).attr(PEER_ADDRESS, &value);
        assert_eq!(caller.ask(request).code(), 400, "{family} {len}");
        let request = caller.request(wire::CHANNEL_BIND).attr(wire::CHANNEL_NUMBER, &[0x40, 0, 0, 0]);
        assert_eq!(caller.ask(request.attr(PEER_ADDRESS, &value)).code(), 400, "{family} {len}");
        let send = caller.indication(SEND).attr(PEER_ADDRESS, &value).attr(DATA, b"x").0;
        stage.dropped(&caller, &["send_malformed"], &[send]);
    }
    let mut reserved = caller.send_indication(peer.addr(), b"its first byte");
    reserved[24] = 0xFF;
    caller.send(&reserved);
    assert_eq!(peer.receive(), (b"its first byte".to_vec(), relayed));
    stage.probe();
}

#[test]
pub(super) fn rfc_r004_r013_a_binding_reports_its_source() {
    let stage = Stage::new();
    for mut caller in [stage.caller(), stage.caller_v6(), stage.caller_from("127.0.0.9".parse().unwrap())] {
        let local = caller.socket.local_addr().unwrap();
        for _ in 0..3 {
            // `exchange` asserts the transaction identifier, `Reading` that the address's first byte is zero.
            let request = caller.request(BINDING);
            assert_eq!(caller.exchange(&request.0).address(wire::MAPPED_ADDRESS), Some(local));
        }
    }
    stage.probe();
}

#[test]
pub(super) fn rfc_r012_r032_r033_r034_r036_what_every_error_looks_like() {
    let stage = Stage::new();
    let (mut caller, mut stranger) = (stage.caller(), stage.caller());
    let mut replies = Vec::new();
    let bare = stranger.request(ALLOCATE);
    replies.push(stranger.exchange(&bare.0));
    let nameless = stranger.request(ALLOCATE).integrity(&[1; 16]);
    replies.push(stranger.exchange(&nameless.0));
    let homeless = stranger.request(REFRESH);
    replies.push(stranger.ask(homeless));
    caller.allocate();
    caller.nonce = stranger.nonce.clone();
    let stale = caller.request(REFRESH);
    let stale = caller.signed(stale);
    replies.push(caller.exchange(&stale.0));
    caller.nonce.clear();
    let peer = stage.peer().addr();
    let asked = [
        caller.request(REFRESH).attr(0x7FFF, &[]),
        caller.request(REFRESH).attr(wire::ADDRESS_FAMILY, &[2, 0, 0, 0]),
        caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP),
        caller.request(wire::CREATE_PERMISSION).address(PEER_ADDRESS, "10.0.0.1:1".parse().unwrap()),
        caller.request(wire::CREATE_PERMISSION).address(PEER_ADDRESS, "[2a00::1]:1".parse().unwrap()),
        caller.request(wire::CHANNEL_BIND).attr(wire::CHANNEL_NUMBER, &[0x50, 0, 0, 0]).address(PEER_ADDRESS, peer),
    ];
    replies.extend(asked.map(|request| caller.ask(request)));
    let asked = [
        stranger.request(ALLOCATE).attr(wire::TRANSPORT, &[132, 0, 0, 0]),
        stranger.request(ALLOCATE).attr(wire::TRANSPORT, &UDP).attr(wire::ADDRESS_FAMILY, &[9, 0, 0, 0]),
        stranger.request(ALLOCATE).attr(wire::TRANSPORT, &UDP).attr(wire::RESERVATION_TOKEN, &[1; 8]),
    ];
    replies.extend(asked.map(|request| stranger.ask(request)));
    let codes: Vec<_> = replies.iter().map(Reading::code).collect();
    assert_eq!(codes, [401, 400, 437, 438, 420, 443, 437, 403, 443, 400, 442, 440, 508]);
    for reply in &replies {
        let error = reply.get(wire::ERROR_CODE).expect("every error says which");
        let phrase = std::str::from_utf8(&error[4..]).unwrap();
        assert!(error[..2] == [0, 0] && (3..=6).contains(&error[2]) && error[3] < 100, "{error:?}");
        assert!(phrase.chars().count() < 128 && reply.get(wire::SOFTWARE).is_none());
        for kind in [wire::REALM, wire::NONCE] {
            let text = reply.get(kind).map_or("", |value| std::str::from_utf8(value).unwrap());
            assert!(text.chars().count() < 128);
        }
    }
    stage.probe();
}
