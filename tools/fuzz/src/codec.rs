//! The codec: whatever bytes come, reading agrees with a plain reader; whatever is written reads back.

use std::net::{IpAddr, SocketAddr};

use tt_turn::codec::{Class, Emitter, HmacSha1, HmacSha256, Message, Method, XorAddress, attribute};
use tt_turn::credential::long_term_key;

use crate::choices::Choices;
use crate::naive::{self, FINGERPRINT, INTEGRITY, INTEGRITY_SHA256};
use crate::receiver;

const KEY: (&str, &str, &str) = ("alice", "example.org", "correct horse");
const METHODS: [Method; 7] = [
    Method::Binding,
    Method::Allocate,
    Method::Refresh,
    Method::Send,
    Method::Data,
    Method::CreatePermission,
    Method::ChannelBind,
];
const CLASSES: [Class; 4] = [Class::Request, Class::Indication, Class::Success, Class::Error];

/// Reads `data` as a message, then writes a message that `data` describes.
pub fn run(data: &[u8]) {
    read(data);
    receiver::ask(data);
    write(&mut Choices(data));
}

/// Compares every answer of the reader, and what an engine does with the message, with the plain reading.
pub(crate) fn read(bytes: &[u8]) {
    receiver::receive(bytes);
    let (Ok(message), expected) = (Message::parse(bytes), naive::read(bytes)) else {
        assert!(naive::read(bytes).is_none(), "refused: {bytes:02x?}");
        return;
    };
    let expected = expected.unwrap_or_else(|| panic!("taken: {bytes:02x?}"));
    assert_eq!(message.bytes(), bytes);
    assert_eq!(message.transaction_id(), bytes[8..20]);
    assert_eq!(message.class() as u16, expected.class);
    match message.method() {
        Ok(method) => assert_eq!(method as u16, expected.method),
        Err(number) => {
            assert_eq!(number, expected.method);
            assert!(METHODS.iter().all(|method| *method as u16 != number));
        }
    }
    let counting: Vec<_> = expected.counting().map(|found| (found.kind, &found.value[..])).collect();
    let found: Vec<_> = message.attributes().collect();
    assert_eq!(found, counting);
    let unknown: Vec<_> = message.unknown_types().collect();
    assert_eq!(unknown.len(), usize::from(message.unknown_required()));
    assert!(unknown.iter().all(|kind| *kind < 0x8000 && counting.iter().any(|(found, _)| found == kind)));
    let fingerprint = expected.get(FINGERPRINT);
    assert_eq!(message.has_fingerprint(), fingerprint.is_some());
    let is_right = fingerprint.is_none_or(|found| {
        let crc = naive::crc32(&bytes[..found.at]) ^ 0x5354_554E;
        found.value == crc.to_be_bytes()
    });
    assert_eq!(message.has_valid_fingerprint(), is_right);
    check_integrity(bytes, &message, &expected);
    let tid = message.transaction_id();
    for (_, value) in counting {
        assert_eq!(XorAddress::decode(value, &tid), naive::unxor(value, &tid));
    }
}

fn check_integrity(bytes: &[u8], message: &Message<'_>, expected: &naive::Reading) {
    // A MESSAGE-INTEGRITY behind one with SHA-256 does not count.
    let places = |kind| expected.attributes.iter().position(|found| found.kind == kind);
    let counts = match (places(INTEGRITY), places(INTEGRITY_SHA256)) {
        (Some(first), Some(other)) => first < other,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let found = expected.get(INTEGRITY).filter(|_| counts);
    let key = naive::md5_key(KEY.0, KEY.1, KEY.2);
    let is_right = found.is_some_and(|found| found.value == naive::integrity(&key, bytes, found.at));
    assert_eq!(message.has_valid_integrity(&sha1_states()), is_right);
    let found = expected.get(INTEGRITY_SHA256);
    let key = naive::sha256_key(KEY.0, KEY.1, KEY.2);
    let is_right = found.is_some_and(|found| found.value == naive::integrity_sha256(&key, bytes, found.at));
    assert_eq!(message.has_valid_integrity_sha256(&sha256_states()), is_right);
}

fn sha1_states() -> HmacSha1 {
    long_term_key(KEY.0.as_bytes(), KEY.1.as_bytes(), KEY.2.as_bytes())
}

fn sha256_states() -> HmacSha256 {
    HmacSha256::new(&naive::sha256_key(KEY.0, KEY.1, KEY.2))
}

/// Writes what the choices say into a used buffer of a size that they say, and reads it back.
fn write(choices: &mut Choices<'_>) {
    let (method, class) = (*choices.of(&METHODS), *choices.of(&CLASSES));
    let room = usize::from(choices.word()) % 400;
    let mut tid = [0; 12];
    tid[..4].copy_from_slice(&choices.double().to_be_bytes());
    let mut out = vec![0xEE; room];
    let mut emitter = Emitter::begin(&mut out, method, class, tid);
    let mut written = Vec::new();
    let mut size = 20;
    let mut is_signed = false;
    while !choices.is_spent() && size < 600 {
        let value = match choices.byte() % 7 {
            0 if !is_signed => {
                emitter.message_integrity(&sha1_states());
                is_signed = true;
                size += 24;
                continue;
            }
            3 if !is_signed => {
                emitter.message_integrity_sha256(&sha256_states());
                is_signed = true;
                size += 36;
                continue;
            }
            1 => {
                let addr = address(choices);
                let (kind, value) = if addr.port().is_multiple_of(2) {
                    emitter.xor_address(attribute::XOR_PEER_ADDRESS, addr);
                    (attribute::XOR_PEER_ADDRESS, naive::xor(addr, &tid))
                } else {
                    emitter.address(attribute::ALTERNATE_SERVER, addr);
                    (attribute::ALTERNATE_SERVER, naive::address(addr))
                };
                written.push((kind, value.clone()));
                value
            }
            2 => {
                let types: Vec<u16> = (0..choices.byte() % 9).map(|_| choices.word()).collect();
                emitter.unknown_attributes(types.iter().copied(), types.len());
                let value: Vec<u8> = types.iter().flat_map(|kind| kind.to_be_bytes()).collect();
                written.push((attribute::UNKNOWN_ATTRIBUTES, value.clone()));
                value
            }
            _ => {
                let length = usize::from(choices.byte()) % 40;
                let value = choices.bytes(length);
                emitter.attribute(attribute::SOFTWARE, &value);
                written.push((attribute::SOFTWARE, value.clone()));
                value
            }
        };
        size += 4 + value.len().next_multiple_of(4);
    }
    let ends_in_payload = choices.0.is_empty() && !is_signed && size % 8 == 4;
    let payload = [0x77; 13];
    let finished = if ends_in_payload {
        emitter.finish_before_payload(payload.len()).map(|head| [head, &payload, &[0; 3]].concat())
    } else {
        emitter.fingerprint();
        size += 8;
        emitter.finish().map(<[u8]>::to_vec)
    };
    let needed = if ends_in_payload { size + 4 } else { size };
    let Some(bytes) = finished else {
        assert!(needed > room, "{needed} of {room}");
        return;
    };
    assert!(needed <= room, "{needed} of {room}");
    read_back(&bytes, method, class, &written);
}

fn read_back(bytes: &[u8], method: Method, class: Class, written: &[(u16, Vec<u8>)]) {
    let read = naive::read(bytes).unwrap_or_else(|| panic!("not a message: {bytes:02x?}"));
    assert_eq!((read.method, read.class), (method as u16, class as u16));
    let ours =
        |found: &&naive::Attribute| !matches!(found.kind, INTEGRITY | INTEGRITY_SHA256 | FINGERPRINT | attribute::DATA);
    let found: Vec<_> = read.attributes.iter().filter(ours).map(|found| (found.kind, found.value.clone())).collect();
    assert_eq!(found, written);
    for attribute in &read.attributes {
        let end = attribute.at + 4 + attribute.value.len();
        assert!(bytes[end..end.next_multiple_of(4)].iter().all(|byte| *byte == 0), "padding: {bytes:02x?}");
    }
    self::read(bytes);
    let message = Message::parse(bytes).unwrap_or_else(|_| panic!("not taken back: {bytes:02x?}"));
    assert!(message.has_valid_fingerprint());
    assert_eq!(message.has_valid_integrity(&sha1_states()), read.get(INTEGRITY).is_some());
    assert_eq!(message.has_valid_integrity_sha256(&sha256_states()), read.get(INTEGRITY_SHA256).is_some());
}

fn address(choices: &mut Choices<'_>) -> SocketAddr {
    let ip = if choices.byte().is_multiple_of(2) {
        IpAddr::from(choices.double().to_be_bytes())
    } else {
        IpAddr::from((u128::from(choices.double()) << 96 | u128::from(choices.double())).to_be_bytes())
    };
    SocketAddr::new(ip, choices.word())
}
