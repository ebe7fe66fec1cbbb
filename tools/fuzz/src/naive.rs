//! STUN read and written once more, plainly, from the RFCs: the oracle.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

pub(crate) const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
pub(crate) const INTEGRITY: u16 = 0x0008;
pub(crate) const INTEGRITY_SHA256: u16 = 0x001C;
pub(crate) const FINGERPRINT: u16 = 0x8028;

/// An attribute as it lies in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) kind: u16,
    pub(crate) value: Vec<u8>,
    /// Where its header starts.
    pub(crate) at: usize,
}

/// A message taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) bytes: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) class: u16,
    pub(crate) attributes: Vec<Attribute>,
}

/// Reads a whole message as RFC 8489 sections 5 and 14 have it; `None` where it is none.
pub(crate) fn read(bytes: &[u8]) -> Option<Reading> {
    let header: [u8; 20] = bytes.get(..20)?.try_into().ok()?;
    let kind = u16::from(header[0]) << 8 | u16::from(header[1]);
    let length = usize::from(header[2]) << 8 | usize::from(header[3]);
    if kind >> 14 != 0 || header[4..8] != COOKIE || length % 4 != 0 || bytes.len() != 20 + length {
        return None;
    }
    let (mut method, mut class) = (0, 0);
    // M11 .. M7 C1 M6 M5 M4 C0 M3 .. M0, from the highest bit down.
    for (place, bit) in (0..14).rev().map(|place| (place, kind >> place & 1)) {
        match place {
            8 | 4 => class = class << 1 | bit,
            _ => method = method << 1 | bit,
        }
    }
    let (mut at, mut attributes) = (20, Vec::new());
    while at < bytes.len() {
        let kind = u16::from(bytes[at]) << 8 | u16::from(bytes[at + 1]);
        let length = usize::from(bytes[at + 2]) << 8 | usize::from(bytes[at + 3]);
        let padded = length + (4 - length % 4) % 4;
        if at + 4 + padded > bytes.len() {
            return None;
        }
        // FINGERPRINT is the last of all.
        if attributes.last().is_some_and(|last: &Attribute| last.kind == FINGERPRINT) {
            return None;
        }
        attributes.push(Attribute { kind, value: bytes[at + 4..at + 4 + length].to_vec(), at });
        at += 4 + padded;
    }
    Some(Reading { bytes: bytes.to_vec(), method, class, attributes })
}

impl Reading {
    /// The attributes that count: what lies behind a message integrity is passed over (RFC 8489 sections 14.5, 14.6).
    pub(crate) fn counting(&self) -> impl Iterator<Item = &Attribute> {
        let is_integrity = |kind| kind == INTEGRITY || kind == INTEGRITY_SHA256;
        self.attributes.iter().take_while(move |attribute| !is_integrity(attribute.kind))
    }

    /// The first attribute of a kind.
    pub(crate) fn get(&self, kind: u16) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.kind == kind)
    }

    pub(crate) fn code(&self) -> Option<u16> {
        let value = &self.get(0x0009)?.value;
        Some(u16::from(value[2]) * 100 + u16::from(value[3]))
    }
}

/// The key of the long-term credentials with MD5.
pub(crate) fn md5_key(name: &str, realm: &str, password: &str) -> [u8; 16] {
    use md5::Digest as _;
    md5::Md5::digest(format!("{name}:{realm}:{password}")).into()
}

/// The code of a message up to the attribute at `at`.
pub(crate) fn integrity(key: &[u8], bytes: &[u8], at: usize) -> [u8; 20] {
    let mut covered = bytes[..at].to_vec();
    covered[2..4].copy_from_slice(&((at + 24 - 20) as u16).to_be_bytes());
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("any length of key");
    mac.update(&covered);
    mac.finalize().into_bytes().into()
}

/// The key of the long-term credentials with SHA-256 (RFC 8489 section 18.5.1.2).
pub(crate) fn sha256_key(name: &str, realm: &str, password: &str) -> [u8; 32] {
    use md5::Digest as _;
    Sha256::digest(format!("{name}:{realm}:{password}")).into()
}

/// The SHA-256 code of a message up to the attribute at `at`.
pub(crate) fn integrity_sha256(key: &[u8], bytes: &[u8], at: usize) -> [u8; 32] {
    let mut covered = bytes[..at].to_vec();
    covered[2..4].copy_from_slice(&((at + 36 - 20) as u16).to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length of key");
    mac.update(&covered);
    mac.finalize().into_bytes().into()
}

/// CRC-32 of ISO/IEC/IEEE 8802-3, a bit at a time.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}

/// The value of an XOR address attribute.
pub(crate) fn xor(addr: SocketAddr, tid: &[u8; 12]) -> Vec<u8> {
    let mask: Vec<u8> = COOKIE.iter().chain(tid).copied().collect();
    masked(addr, &mask)
}

/// An address in the form of MAPPED-ADDRESS (RFC 8489 section 14.1).
pub(crate) fn address(addr: SocketAddr) -> Vec<u8> {
    masked(addr, &[0; 16])
}

fn masked(addr: SocketAddr, mask: &[u8]) -> Vec<u8> {
    let (family, ip) = match addr.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let port = addr.port().to_be_bytes();
    let mut value = vec![0, family, port[0] ^ mask[0], port[1] ^ mask[1]];
    value.extend(ip.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    value
}

/// The address in an XOR address attribute.
pub(crate) fn unxor(value: &[u8], tid: &[u8; 12]) -> Option<SocketAddr> {
    let mask: Vec<u8> = COOKIE.iter().chain(tid).copied().collect();
    let plain: Vec<u8> = value.get(4..)?.iter().zip(&mask).map(|(byte, mask)| byte ^ mask).collect();
    let port = u16::from_be_bytes([value[2] ^ mask[0], value[3] ^ mask[1]]);
    let ip = match (value[1], value.len()) {
        (1, 8) => Ipv4Addr::from(<[u8; 4]>::try_from(plain).ok()?).into(),
        (2, 20) => Ipv6Addr::from(<[u8; 16]>::try_from(plain).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// A message being written.
#[derive(Clone, Debug)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn new(method: u16, class: u16, tid: [u8; 12]) -> Self {
        let kind = (method & 0xF80) << 2 | (class & 2) << 7 | (method & 0x70) << 1 | (class & 1) << 4 | method & 0xF;
        Self([&kind.to_be_bytes()[..], &[0, 0], &COOKIE, &tid].concat())
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(kind.to_be_bytes());
        self.0.extend((value.len() as u16).to_be_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        let length = (self.0.len() - 20) as u16;
        self.0[2..4].copy_from_slice(&length.to_be_bytes());
        self
    }

    pub(crate) fn signed(self, key: &[u8]) -> Self {
        let code = integrity(key, &self.0, self.0.len());
        self.attribute(INTEGRITY, &code)
    }

    pub(crate) fn signed_sha256(self, key: &[u8]) -> Self {
        let code = integrity_sha256(key, &self.0, self.0.len());
        self.attribute(INTEGRITY_SHA256, &code)
    }
}
