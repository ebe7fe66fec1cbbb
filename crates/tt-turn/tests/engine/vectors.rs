//! RFC 5769: parsed, verified and emitted.

use std::net::SocketAddr;

use tt_turn::DropReason;
use tt_turn::codec::{Class, Emitter, HmacSha1, HmacSha256, Message, Method, XorAddress, attribute};
use tt_turn::credential::{LongTermKey, long_term_key, user_hash};

use super::world::addr;

/// Section 2.1.
pub(crate) const REQUEST: &str = "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74\
    002400046e0001ff80290008932ff9b151263b36000600096576746a3a683676592020200008001\
    49aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf";
/// Section 2.2.
pub(crate) const RESPONSE_V4: &str = "0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220\
    002000080001a147e112a643000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96";
/// Section 2.3.
pub(crate) const RESPONSE_V6: &str = "010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220\
    002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed41\
    80280004c8fb0b4c";
/// Section 2.4.
pub(crate) const LONG_TERM: &str = "000100602112a44278ad3433c6ad72c029da412e00060012e3839ee38388e383aae38383e382afe382b90000\
    0015001c662f2f3439396b39353464364f4c33346f4c39465354767936347341\
    0014000b6578616d706c652e6f72670000080014f67024656dd64a3e02b8e0712e85c9a28ca89666";

/// RFC 8489, appendix B.1, as printed: its length counts the header too, against section 5.
const LONG_TERM_SHA256: &str = "0001009c2112a44278ad3433c6ad72c029da412e\
    001e00204a3cf38fef6992bda952c6780417da0f24819415569e60b205c46e41407f1704\
    001500296f624d61744a6f733241414143662f2f3439396b39353464364f4c33346f4c394653547679363473410000000014000b\
    6578616d706c652e6f726700001c0020e4686c8f0edeb59013e07090010a93efccbccc544c0a45d9f830aa6d6f735a01";

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
        .collect()
}

const PASSWORD: &[u8] = b"VOkJxbRl1RmTxUk/WvJxBt";

#[test]
fn rfc_r028_r031_rfc5769_messages_parse_and_verify() {
    let key = HmacSha1::new(PASSWORD);
    for (hex, class) in [(REQUEST, Class::Request), (RESPONSE_V4, Class::Success), (RESPONSE_V6, Class::Success)] {
        let bytes = bytes(hex);
        let message = Message::parse(&bytes).expect("a message");
        assert_eq!((message.method(), message.class()), (Ok(Method::Binding), class));
        assert_eq!(message.transaction_id()[..], bytes[8..20]);
        assert!(message.has_fingerprint() && message.has_valid_fingerprint());
        assert!(message.has_valid_integrity(&key));
        assert!(!message.has_valid_integrity(&HmacSha1::new(b"another")));
        // Every byte that the code covers counts; the length in the header is checked by the parser.
        for at in (0..bytes.len() - 32).filter(|at| !(2..8).contains(at)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Message::parse(&changed).map_or(true, |message| !message.has_valid_integrity(&key)), "{at}");
        }
    }
}

#[test]
fn rfc_r024_rfc5769_addresses_decode_and_encode() {
    let (v4, v6) = (addr("192.0.2.1:32853"), addr("[2001:db8:1234:5678:11:2233:4455:6677]:32853"));
    for (hex, expected) in [(RESPONSE_V4, v4), (RESPONSE_V6, v6)] {
        let bytes = bytes(hex);
        let message = Message::parse(&bytes).expect("a message");
        let tid = message.transaction_id();
        let (_, value) =
            message.attributes().find(|(kind, _)| *kind == attribute::XOR_MAPPED_ADDRESS).expect("an address");
        assert_eq!(XorAddress::decode(value, &tid), Some(expected));
        assert_eq!(XorAddress::encode(expected, &tid).as_bytes(), value);
    }
}

#[test]
fn rfc_r028_rfc5769_long_term_request_verifies_and_is_emitted_byte_for_byte() {
    let name = "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}";
    let key = long_term_key(name.as_bytes(), b"example.org", b"TheMatrIX");
    let expected = bytes(LONG_TERM);
    let message = Message::parse(&expected).expect("a message");
    assert!(message.has_valid_integrity(&key));

    let mut out = [0xEE; 200];
    let mut emitter = Emitter::begin(&mut out, Method::Binding, Class::Request, message.transaction_id());
    emitter.attribute(attribute::USERNAME, name.as_bytes());
    emitter.attribute(attribute::NONCE, b"f//499k954d6OL34oL9FSTvy64sA");
    emitter.attribute(attribute::REALM, b"example.org");
    emitter.message_integrity(&key);
    assert_eq!(emitter.finish(), Some(&expected[..]));
}

/// The code of the appendix is right for the bytes as printed, wrong length and all, so that a parser which holds to
/// section 5 must refuse the message.
#[test]
fn rfc_r027_r029_rfc8489_appendix_b() {
    let name = "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}";
    let key = LongTermKey::sha256(name.as_bytes(), b"example.org", b"TheMatrIX").sha256;
    let printed = bytes(LONG_TERM_SHA256);
    let (covered, code) = (&printed[..printed.len() - 36], &printed[printed.len() - 32..]);
    assert_eq!(key.mac(covered), code);
    assert_eq!(user_hash(name.as_bytes(), b"example.org"), printed[24..56]);
    assert_eq!(Message::parse(&printed).err(), Some(DropReason::Length));

    // The same message with its length right, and the code that a plain HMAC makes of it.
    let mut right = printed.clone();
    right[3] -= 20;
    let end = right.len() - 36;
    let plain_key = super::wire::sha256_key(name, "example.org", "TheMatrIX");
    let code = super::wire::hmac_sha256(&plain_key, &right[..end]);
    right[end + 4..].copy_from_slice(&code);
    let message = Message::parse(&right).expect("a message");
    assert!(message.has_valid_integrity_sha256(&key));
    assert!(!message.has_valid_integrity_sha256(&HmacSha256::new(b"another")));
    for at in (0..right.len()).filter(|at| !(2..8).contains(at)) {
        let mut changed = right.clone();
        changed[at] ^= 1;
        let passes = |message: Message<'_>| message.has_valid_integrity_sha256(&key);
        assert!(!Message::parse(&changed).is_ok_and(passes), "{at}");
    }

    let mut out = [0xEE; 200];
    let mut emitter = Emitter::begin(&mut out, Method::Binding, Class::Request, message.transaction_id());
    for (kind, value) in message.attributes() {
        emitter.attribute(kind, value);
    }
    emitter.message_integrity_sha256(&key);
    assert_eq!(emitter.finish(), Some(&right[..]));
}

/// The RFC pads SOFTWARE with a blank, a server with zero; all else must be the same.
#[test]
fn rfc5769_responses_are_emitted() {
    let key = HmacSha1::new(PASSWORD);
    let mapped: [(&str, SocketAddr); 2] =
        [(RESPONSE_V4, addr("192.0.2.1:32853")), (RESPONSE_V6, addr("[2001:db8:1234:5678:11:2233:4455:6677]:32853"))];
    for (hex, mapped) in mapped {
        let mut expected = bytes(hex);
        expected[35] = 0;
        let covered = expected.len() - 32;
        let tid = Message::parse(&bytes(hex)).expect("a message").transaction_id();
        let mut out = [0xEE; 200];
        let mut emitter = Emitter::begin(&mut out, Method::Binding, Class::Success, tid);
        emitter.attribute(attribute::SOFTWARE, b"test vector");
        emitter.xor_address(attribute::XOR_MAPPED_ADDRESS, mapped);
        emitter.message_integrity(&key);
        emitter.fingerprint();
        let emitted = emitter.finish().expect("room");
        assert_eq!(emitted.len(), expected.len());
        assert_eq!(emitted[..covered], expected[..covered]);
        let reading = super::wire::Reading::of(emitted);
        assert!(reading.is_signed(PASSWORD) && reading.get(super::wire::FINGERPRINT).is_some());
    }
}

#[test]
fn emitter_reports_a_buffer_that_is_too_small() {
    for size in 0..44 {
        let mut out = vec![0; size];
        let mut emitter = Emitter::begin(&mut out, Method::Binding, Class::Success, [1; 12]);
        emitter.message_integrity(&HmacSha1::new(b"key"));
        assert_eq!(emitter.finish().map(<[u8]>::len), None, "{size}");
    }
}

proptest::proptest! {
    #[test]
    fn hmac_agrees_with_the_plain_one(key: Vec<u8>, text: Vec<u8>) {
        proptest::prop_assert_eq!(HmacSha1::new(&key).mac(&text), super::wire::hmac_sha1(&key, &text));
        proptest::prop_assert_eq!(HmacSha256::new(&key).mac(&text), super::wire::hmac_sha256(&key, &text));
    }

    #[test]
    fn hmac_agrees_around_the_blocks_edges(key in proptest::collection::vec(0u8.., 60..70), len in 0usize..200) {
        let text = vec![0xA5; len];
        proptest::prop_assert_eq!(HmacSha1::new(&key).mac(&text), super::wire::hmac_sha1(&key, &text));
        proptest::prop_assert_eq!(HmacSha256::new(&key).mac(&text), super::wire::hmac_sha256(&key, &text));
    }
}
