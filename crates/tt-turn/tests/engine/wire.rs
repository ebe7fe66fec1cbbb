//! A second, plain implementation of STUN's wire format: the oracle of the tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;

pub(crate) const BINDING: u16 = 0x001;
pub(crate) const ALLOCATE: u16 = 0x003;
pub(crate) const REFRESH: u16 = 0x004;
pub(crate) const SEND: u16 = 0x006;
pub(crate) const DATA_METHOD: u16 = 0x007;
pub(crate) const CREATE_PERMISSION: u16 = 0x008;
pub(crate) const CHANNEL_BIND: u16 = 0x009;

pub(crate) const USERNAME: u16 = 0x0006;
pub(crate) const INTEGRITY: u16 = 0x0008;
pub(crate) const ERROR_CODE: u16 = 0x0009;
pub(crate) const UNKNOWN_ATTRIBUTES: u16 = 0x000A;
pub(crate) const CHANNEL_NUMBER: u16 = 0x000C;
pub(crate) const LIFETIME: u16 = 0x000D;
pub(crate) const PEER_ADDRESS: u16 = 0x0012;
pub(crate) const DATA: u16 = 0x0013;
pub(crate) const REALM: u16 = 0x0014;
pub(crate) const NONCE: u16 = 0x0015;
pub(crate) const RELAYED_ADDRESS: u16 = 0x0016;
pub(crate) const ADDRESS_FAMILY: u16 = 0x0017;
pub(crate) const EVEN_PORT: u16 = 0x0018;
pub(crate) const TRANSPORT: u16 = 0x0019;
pub(crate) const DONT_FRAGMENT: u16 = 0x001A;
pub(crate) const INTEGRITY_SHA256: u16 = 0x001C;
pub(crate) const PASSWORD_ALGORITHM: u16 = 0x001D;
pub(crate) const USERHASH: u16 = 0x001E;
pub(crate) const MAPPED_ADDRESS: u16 = 0x0020;
pub(crate) const RESERVATION_TOKEN: u16 = 0x0022;
pub(crate) const ADDITIONAL_FAMILY: u16 = 0x8000;
pub(crate) const ADDRESS_ERROR_CODE: u16 = 0x8001;
pub(crate) const ICMP: u16 = 0x8004;
pub(crate) const PASSWORD_ALGORITHMS: u16 = 0x8002;
pub(crate) const SOFTWARE: u16 = 0x8022;
pub(crate) const FINGERPRINT: u16 = 0x8028;

pub(crate) const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];

/// A message being written. Lengths and codes are right unless a test makes them wrong.
#[derive(Clone, Debug)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn new(method: u16, class: u16, tid: [u8; 12]) -> Self {
        let kind = (method & 0xF80) << 2 | (class & 2) << 7 | (method & 0x70) << 1 | (class & 1) << 4 | method & 0xF;
        let mut bytes = kind.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(COOKIE);
        bytes.extend(tid);
        Self(bytes)
    }

    pub(crate) fn set_length(&mut self, length: usize) {
        self.0[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    }

    pub(crate) fn attr(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(kind.to_be_bytes());
        self.0.extend((value.len() as u16).to_be_bytes());
        self.0.extend(value);
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
        self.set_length(self.0.len() - 20);
        self
    }

    pub(crate) fn address(self, kind: u16, addr: SocketAddr) -> Self {
        let tid: [u8; 12] = self.0[8..20].try_into().expect("12 bytes");
        self.attr(kind, &xor(addr, &tid))
    }

    pub(crate) fn integrity(mut self, key: &[u8]) -> Self {
        self.set_length(self.0.len() + 24 - 20);
        let code = hmac_sha1(key, &self.0);
        self.attr(INTEGRITY, &code)
    }

    pub(crate) fn integrity_sha256(mut self, key: &[u8]) -> Self {
        self.set_length(self.0.len() + 36 - 20);
        let code = hmac_sha256(key, &self.0);
        self.attr(INTEGRITY_SHA256, &code)
    }

    pub(crate) fn fingerprint(mut self) -> Self {
        self.set_length(self.0.len() + 8 - 20);
        let crc = crc32(&self.0) ^ 0x5354_554E;
        self.attr(FINGERPRINT, &crc.to_be_bytes())
    }
}

pub(crate) fn hmac_sha1(key: &[u8], bytes: &[u8]) -> [u8; 20] {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("any key");
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

pub(crate) fn hmac_sha256(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key");
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

/// RFC 8489 section 18.5.1.2.
pub(crate) fn sha256_key(name: &str, realm: &str, password: &str) -> [u8; 32] {
    Sha256::digest(format!("{name}:{realm}:{password}")).into()
}

/// RFC 8489 section 14.4.
pub(crate) fn userhash(name: &str, realm: &str) -> [u8; 32] {
    Sha256::digest(format!("{name}:{realm}")).into()
}

pub(crate) fn md5_key(name: &str, realm: &str, password: &str) -> [u8; 16] {
    Md5::digest(format!("{name}:{realm}:{password}")).into()
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut crc, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
        crc
    })
}

fn xor(addr: SocketAddr, tid: &[u8; 12]) -> Vec<u8> {
    let mask: Vec<u8> = COOKIE.iter().chain(tid).copied().collect();
    let (family, ip) = match addr.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let port = addr.port().to_be_bytes();
    let mut value = vec![0, family, port[0] ^ mask[0], port[1] ^ mask[1]];
    value.extend(ip.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    value
}

/// A message read back, with everything checked that a strict client would check.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) bytes: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) class: u16,
    pub(crate) tid: [u8; 12],
    pub(crate) attrs: Vec<(u16, Vec<u8>)>,
}

impl Reading {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        assert!(bytes.len() >= 20 && bytes.len().is_multiple_of(4), "{bytes:02x?}");
        assert_eq!(bytes[4..8], COOKIE);
        let kind = u16::from_be_bytes([bytes[0], bytes[1]]);
        assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), bytes.len() - 20);
        let (mut at, mut attrs) = (20, Vec::new());
        while at < bytes.len() {
            let kind = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let length = usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
            let value = bytes[at + 4..at + 4 + length].to_vec();
            if kind == FINGERPRINT {
                assert_eq!(value, (crc32(&bytes[..at]) ^ 0x5354_554E).to_be_bytes());
                assert_eq!(at + 8, bytes.len(), "FINGERPRINT is last");
            }
            let end = at + 4 + length.div_ceil(4) * 4;
            assert!(bytes[at + 4 + length..end].iter().all(|byte| *byte == 0), "padding is zero");
            attrs.push((kind, value));
            at = end;
        }
        Self {
            method: kind & 0xF | kind >> 1 & 0x70 | kind >> 2 & 0xF80,
            class: kind >> 7 & 2 | kind >> 4 & 1,
            tid: bytes[8..20].try_into().expect("12 bytes"),
            bytes: bytes.to_vec(),
            attrs,
        }
    }

    pub(crate) fn get(&self, kind: u16) -> Option<&[u8]> {
        self.attrs.iter().find(|(found, _)| *found == kind).map(|(_, value)| &value[..])
    }

    pub(crate) fn kinds(&self) -> Vec<u16> {
        self.attrs.iter().map(|(kind, _)| *kind).collect()
    }

    /// The error's code, or 0 for a success.
    pub(crate) fn code(&self) -> u16 {
        match self.get(ERROR_CODE) {
            Some(value) => {
                assert_eq!((self.class, &value[..2]), (3, &[0u8, 0][..]));
                u16::from(value[2]) * 100 + u16::from(value[3])
            }
            None => {
                assert_eq!(self.class, 2);
                0
            }
        }
    }

    pub(crate) fn address(&self, kind: u16) -> Option<SocketAddr> {
        let value = self.get(kind)?;
        let mask: Vec<u8> = COOKIE.iter().chain(&self.tid).copied().collect();
        let plain: Vec<u8> = value[4..].iter().zip(&mask).map(|(byte, mask)| byte ^ mask).collect();
        let port = u16::from_be_bytes([value[2] ^ mask[0], value[3] ^ mask[1]]);
        let ip: IpAddr = match (value[0], value[1], plain.len()) {
            (0, 1, 4) => Ipv4Addr::from(<[u8; 4]>::try_from(plain).expect("4 bytes")).into(),
            (0, 2, 16) => Ipv6Addr::from(<[u8; 16]>::try_from(plain).expect("16 bytes")).into(),
            other => panic!("{other:?}"),
        };
        Some(SocketAddr::new(ip, port))
    }

    pub(crate) fn lifetime(&self) -> Option<u32> {
        self.get(LIFETIME).map(|value| u32::from_be_bytes(value.try_into().expect("4 bytes")))
    }

    /// Whether MESSAGE-INTEGRITY is there and right for `key`.
    pub(crate) fn is_signed(&self, key: &[u8]) -> bool {
        let found = self.covered_by(INTEGRITY, 20);
        found.is_some_and(|(covered, code)| code == hmac_sha1(key, &covered))
    }

    /// Whether MESSAGE-INTEGRITY-SHA256 is there and right for `key`.
    pub(crate) fn is_signed_sha256(&self, key: &[u8]) -> bool {
        let found = self.covered_by(INTEGRITY_SHA256, 32);
        found.is_some_and(|(covered, code)| code == hmac_sha256(key, &covered))
    }

    /// What a code of `kind` and `code_len` bytes is made of, and the code.
    fn covered_by(&self, kind: u16, code_len: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut at = 20;
        for (found, value) in &self.attrs {
            if *found == kind {
                let mut covered = self.bytes[..at].to_vec();
                covered[2..4].copy_from_slice(&((at + 4 + code_len - 20) as u16).to_be_bytes());
                return Some((covered, value.clone()));
            }
            at += 4 + value.len().div_ceil(4) * 4;
        }
        None
    }
}
