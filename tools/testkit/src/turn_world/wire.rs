//! STUN's wire format, written a second time from RFC 8489, so that the world does not repeat the engine's mistakes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;

pub(super) const BINDING: u16 = 0x001;
pub(super) const ALLOCATE: u16 = 0x003;
pub(super) const REFRESH: u16 = 0x004;
pub(super) const SEND: u16 = 0x006;
pub(super) const DATA_METHOD: u16 = 0x007;
pub(super) const CREATE_PERMISSION: u16 = 0x008;
pub(super) const CHANNEL_BIND: u16 = 0x009;

pub(super) const REQUEST: u16 = 0;
pub(super) const INDICATION: u16 = 1;
pub(super) const SUCCESS: u16 = 2;
pub(super) const ERROR: u16 = 3;

pub(super) const USERNAME: u16 = 0x0006;
pub(super) const INTEGRITY: u16 = 0x0008;
pub(super) const ERROR_CODE: u16 = 0x0009;
pub(super) const CHANNEL_NUMBER: u16 = 0x000C;
pub(super) const LIFETIME: u16 = 0x000D;
pub(super) const PEER_ADDRESS: u16 = 0x0012;
pub(super) const DATA: u16 = 0x0013;
pub(super) const REALM: u16 = 0x0014;
pub(super) const NONCE: u16 = 0x0015;
pub(super) const RELAYED_ADDRESS: u16 = 0x0016;
pub(super) const ADDRESS_FAMILY: u16 = 0x0017;
pub(super) const EVEN_PORT: u16 = 0x0018;
pub(super) const TRANSPORT: u16 = 0x0019;
pub(super) const INTEGRITY_SHA256: u16 = 0x001C;
pub(super) const PASSWORD_ALGORITHM: u16 = 0x001D;
pub(super) const USERHASH: u16 = 0x001E;
pub(super) const MAPPED_ADDRESS: u16 = 0x0020;
pub(super) const RESERVATION_TOKEN: u16 = 0x0022;
pub(super) const ADDITIONAL_FAMILY: u16 = 0x8000;
pub(super) const ADDRESS_ERROR_CODE: u16 = 0x8001;
pub(super) const PASSWORD_ALGORITHMS: u16 = 0x8002;
pub(super) const ICMP: u16 = 0x8004;
pub(super) const FINGERPRINT: u16 = 0x8028;

const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
const HEADER_LEN: usize = 20;

pub(super) type TransactionId = [u8; 12];

/// A message being written. Lengths are correct; the content is up to the writer.
#[derive(Clone, Debug)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn new(method: u16, class: u16, tid: TransactionId) -> Self {
        let kind = (method & 0xF80) << 2 | (class & 2) << 7 | (method & 0x70) << 1 | (class & 1) << 4 | method & 0xF;
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(COOKIE);
        bytes.extend(tid);
        Self(bytes)
    }

    fn set_length(&mut self, length: usize) {
        self.0[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    }

    pub(super) fn attr(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(kind.to_be_bytes());
        self.0.extend((value.len() as u16).to_be_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.set_length(self.0.len() - HEADER_LEN);
        self
    }

    pub(super) fn address(self, kind: u16, addr: SocketAddr) -> Self {
        let mask = mask(&self.0);
        let mut value = [0; 20];
        let port = addr.port().to_be_bytes();
        value[2..4].copy_from_slice(&[port[0] ^ mask[0], port[1] ^ mask[1]]);
        let len = match addr.ip() {
            IpAddr::V4(ip) => {
                value[1] = 1;
                value[4..8].copy_from_slice(&ip.octets());
                8
            }
            IpAddr::V6(ip) => {
                value[1] = 2;
                value[4..20].copy_from_slice(&ip.octets());
                20
            }
        };
        value[4..len].iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        self.attr(kind, &value[..len])
    }

    pub(super) fn integrity(mut self, key: &Key) -> Self {
        self.set_length(self.0.len() + 24 - HEADER_LEN);
        let code = key.sha1(&[&self.0]);
        self.attr(INTEGRITY, &code)
    }

    pub(super) fn integrity_sha256(mut self, key: &Key) -> Self {
        self.set_length(self.0.len() + 36 - HEADER_LEN);
        let code = key.sha256(&[&self.0]);
        self.attr(INTEGRITY_SHA256, &code)
    }

    pub(super) fn fingerprint(mut self) -> Self {
        self.set_length(self.0.len() + 8 - HEADER_LEN);
        let crc = crc32(&self.0) ^ 0x5354_554E;
        self.attr(FINGERPRINT, &crc.to_be_bytes())
    }
}

/// Password algorithm (RFC 8489 section 18.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    /// PASSWORD-ALGORITHM's value.
    pub(super) fn value(self) -> [u8; 4] {
        match self {
            Self::Md5 => [0, 1, 0, 0],
            Self::Sha256 => [0, 2, 0, 0],
        }
    }
}

/// A long-term key of RFC 8489 section 9.2.2, ready for both message integrities.
#[derive(Clone)]
pub(super) struct Key {
    sha1: Hmac<Sha1>,
    sha256: Hmac<Sha256>,
}

impl Key {
    pub(super) fn new(algorithm: Algorithm, name: &[u8], realm: &str, password: &str) -> Self {
        let text = [name, b":", realm.as_bytes(), b":", password.as_bytes()].concat();
        let digest = match algorithm {
            Algorithm::Md5 => Md5::digest(text).to_vec(),
            Algorithm::Sha256 => Sha256::digest(text).to_vec(),
        };
        let any = "HMAC takes keys of any length";
        Self { sha1: Hmac::new_from_slice(&digest).expect(any), sha256: Hmac::new_from_slice(&digest).expect(any) }
    }

    fn sha1(&self, parts: &[&[u8]]) -> [u8; 20] {
        let mut mac = self.sha1.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }

    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.sha256.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

/// The offer of algorithms, of [`features`].
pub(super) const ALGORITHMS: u8 = 32;
/// USERHASH is understood, of [`features`].
pub(super) const ANONYMITY: u8 = 16;

/// RFC 8489 section 9.2: the first six security features behind the nonce cookie.
pub(super) fn features(nonce: &[u8]) -> u8 {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let features = nonce.strip_prefix(b"obMatJos2").filter(|rest| rest.len() >= 4).and_then(<[u8]>::first);
    features.and_then(|digit| DIGITS.iter().position(|known| known == digit)).unwrap_or(0) as u8
}

/// USERHASH of a name (RFC 8489 section 14.4).
pub(super) fn user_hash(name: &[u8], realm: &str) -> [u8; 32] {
    Sha256::digest([name, b":", realm.as_bytes()].concat()).into()
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (mut crc, mut bit) = (at as u32, 0);
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| crc >> 8 ^ CRC_TABLE[usize::from(crc as u8 ^ byte)])
}

/// Cookie and transaction identifier: what addresses are XORed with.
fn mask(message: &[u8]) -> [u8; 16] {
    message[4..HEADER_LEN].try_into().unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
struct Attribute {
    kind: u16,
    /// Where the value begins.
    at: usize,
    len: usize,
}

/// A message that section 6.3 of RFC 8489 does not have silently discarded.
#[derive(Clone, Debug)]
pub(super) struct Reading<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) method: u16,
    pub(super) class: u16,
    pub(super) tid: TransactionId,
    /// Those that count: behind MESSAGE-INTEGRITY only its SHA-256 twin and FINGERPRINT (section 9).
    attributes: Vec<Attribute>,
    pub(super) padding_is_zero: bool,
}

impl<'a> Reading<'a> {
    /// Reads a datagram that is one message, or nothing.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] >= 0x40 || header[4..8] != COOKIE || length % 4 != 0 || length + HEADER_LEN != bytes.len() {
            return None;
        }
        let kind = u16::from_be_bytes([header[0], header[1]]);
        let mut reading = Self {
            bytes,
            method: kind & 0xF | kind >> 1 & 0x70 | kind >> 2 & 0xF80,
            class: kind >> 7 & 2 | kind >> 4 & 1,
            tid: header[8..].try_into().ok()?,
            attributes: Vec::with_capacity(12),
            padding_is_zero: true,
        };
        let (mut at, mut barrier) = (HEADER_LEN, 0);
        while at < bytes.len() {
            let head = bytes.get(at..at + 4)?;
            let kind = u16::from_be_bytes([head[0], head[1]]);
            let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let padding = bytes.get(at + 4 + len..at + 4 + len.next_multiple_of(4))?;
            reading.padding_is_zero &= padding.iter().all(|byte| *byte == 0);
            let counts = match kind {
                FINGERPRINT => true,
                INTEGRITY_SHA256 => barrier < 2,
                _ => barrier < 1,
            };
            if kind == FINGERPRINT {
                let right = bytes[at + 4..at + 4 + len] == (crc32(&bytes[..at]) ^ 0x5354_554E).to_be_bytes();
                if !right || at + 8 != bytes.len() {
                    return None;
                }
            }
            if counts {
                reading.attributes.push(Attribute { kind, at: at + 4, len });
            }
            barrier = match kind {
                INTEGRITY => barrier.max(1),
                INTEGRITY_SHA256 => 2,
                _ => barrier,
            };
            at += 4 + len.next_multiple_of(4);
        }
        Some(reading)
    }

    fn find(&self, kind: u16) -> Option<Attribute> {
        self.attributes.iter().copied().find(|attribute| attribute.kind == kind)
    }

    fn value(&self, attribute: Attribute) -> &'a [u8] {
        &self.bytes[attribute.at..attribute.at + attribute.len]
    }

    /// The value of the first attribute of its kind.
    pub(super) fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.find(kind).map(|found| self.value(found))
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.find(kind).is_some()
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = u16> {
        self.attributes.iter().map(|attribute| attribute.kind)
    }

    /// The error's code, 0 for a success; `None` where it is malformed.
    pub(super) fn code(&self) -> Option<u16> {
        match (self.class, self.get(ERROR_CODE)) {
            (SUCCESS, None) => Some(0),
            (ERROR, Some([0, 0, class, number, ..])) if (3..=6).contains(class) && *number < 100 => {
                Some(u16::from(*class) * 100 + u16::from(*number))
            }
            _ => None,
        }
    }

    fn decode(&self, value: &[u8]) -> Option<SocketAddr> {
        let mask = mask(self.bytes);
        let (head, ip) = value.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes([head[2] ^ mask[0], head[3] ^ mask[1]]);
        let ip = match (head[1], ip.len()) {
            (1, 4) => Ipv4Addr::from_octets(std::array::from_fn(|at| ip[at] ^ mask[at])).into(),
            (2, 16) => Ipv6Addr::from_octets(std::array::from_fn(|at| ip[at] ^ mask[at])).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    /// The first address of its kind; `None` too where it cannot be read.
    pub(super) fn address(&self, kind: u16) -> Option<SocketAddr> {
        self.decode(self.get(kind)?)
    }

    /// Every address of its kind, `None` for one that cannot be read.
    pub(super) fn addresses(&self, kind: u16) -> impl Iterator<Item = Option<SocketAddr>> {
        self.attributes
            .iter()
            .filter(move |attribute| attribute.kind == kind)
            .map(|attribute| self.decode(self.value(*attribute)))
    }

    pub(super) fn number(&self, kind: u16) -> Option<u32> {
        self.get(kind).and_then(|value| value.try_into().ok()).map(u32::from_be_bytes)
    }

    /// Whether the message integrity that counts is there and right for `key` (sections 9.2.4, 14.5 and 14.6).
    pub(super) fn is_signed_by(&self, key: &Key) -> bool {
        match self.find(INTEGRITY_SHA256) {
            Some(found) => self.value(found) == self.covered(found, 32, |parts| key.sha256(parts)),
            None => self.has_sha1_of(key),
        }
    }

    /// Whether MESSAGE-INTEGRITY is there and right for `key`.
    pub(super) fn has_sha1_of(&self, key: &Key) -> bool {
        self.find(INTEGRITY).is_some_and(|found| self.value(found) == self.covered(found, 20, |parts| key.sha1(parts)))
    }

    /// The code over the bytes before an attribute, with the length up to and including it.
    fn covered<const N: usize>(&self, found: Attribute, len: usize, mac: impl Fn(&[&[u8]]) -> [u8; N]) -> [u8; N] {
        let length = (found.at + len - HEADER_LEN) as u16;
        mac(&[&self.bytes[..2], &length.to_be_bytes(), &self.bytes[4..found.at - 4]])
    }

    /// Whether there is a message integrity of its full length (section 14.6: TURN allows no shorter one).
    pub(super) fn has_integrity(&self) -> bool {
        match self.get(INTEGRITY_SHA256) {
            Some(code) => code.len() == 32,
            None => self.get(INTEGRITY).is_some_and(|code| code.len() == 20),
        }
    }
}

/// ChannelData's number and payload (RFC 8656 section 12.4); padding may follow.
pub(super) fn channel_payload(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    let payload = rest.get(..usize::from(u16::from_be_bytes([head[2], head[3]])))?;
    Some((u16::from_be_bytes([head[0], head[1]]), payload))
}

/// ChannelData, padded to a multiple of four where `is_stream` (RFC 8656 section 12.5).
pub(super) fn on_channel(number: u16, payload: &[u8], is_stream: bool) -> Vec<u8> {
    let mut bytes = [&number.to_be_bytes()[..], &(payload.len() as u16).to_be_bytes(), payload].concat();
    if is_stream {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}
