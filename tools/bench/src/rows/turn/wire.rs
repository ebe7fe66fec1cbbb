//! STUN datagrams written and read by plain code that shares nothing with the engine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use tt_model::SplitMix64;

/// How many different inputs every row has at least.
pub(super) const INPUTS: usize = 1 << 16;

/// Random addresses, outside of port 0.
pub(super) fn address(random: &mut SplitMix64, v6: bool) -> SocketAddr {
    let ip: IpAddr = if v6 { random.bytes::<16>().into() } else { Ipv4Addr::from(random.bytes::<4>()).into() };
    SocketAddr::new(ip, random.next_u64() as u16 | 1)
}

/// XOR-MAPPED-ADDRESS's value by RFC 8489 section 14.2, byte by byte.
pub(super) fn xor_value(address: SocketAddr, transaction_id: &[u8; 12]) -> Vec<u8> {
    let mut mask = vec![0x21, 0x12, 0xa4, 0x42];
    mask.extend(transaction_id);
    let (family, octets) = match address.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let mut value = vec![0, family];
    value.extend(address.port().to_be_bytes().iter().zip(&mask).map(|(byte, mask)| byte ^ mask));
    value.extend(octets.iter().zip(&mask).map(|(byte, mask)| byte ^ mask));
    value
}

/// A message of `kind` (method and class as on the wire) with `attributes` in order.
pub(super) fn message(kind: u16, transaction_id: &[u8; 12], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0x21, 0x12, 0xa4, 0x42]);
    bytes.extend(transaction_id);
    for (kind, value) in attributes {
        bytes.extend(kind.to_be_bytes());
        bytes.extend((value.len() as u16).to_be_bytes());
        bytes.extend(*value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    set_length(&mut bytes);
    bytes
}

/// Appends FINGERPRINT (RFC 8489 section 14.7).
pub(super) fn with_fingerprint(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() - 20 + 8) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    let crc = crc32(&bytes) ^ 0x5354_554e;
    bytes.extend([0x80, 0x28, 0, 4]);
    bytes.extend(crc.to_be_bytes());
    bytes
}

/// Appends MESSAGE-INTEGRITY under `key` (RFC 8489 section 14.5).
pub(super) fn with_integrity(mut bytes: Vec<u8>, key: &[u8; 16]) -> Vec<u8> {
    let length = (bytes.len() - 20 + 24) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    let mac = hmac_sha1(key, &bytes);
    bytes.extend([0, 8, 0, 20]);
    bytes.extend(mac);
    bytes
}

/// HMAC-SHA1 by RustCrypto's `hmac`, with nothing kept between calls.
pub(super) fn hmac_sha1(key: &[u8], bytes: &[u8]) -> [u8; 20] {
    let mut hmac = Hmac::<Sha1>::new_from_slice(key).expect("HMAC takes keys of any length");
    hmac.update(bytes);
    hmac.finalize().into_bytes().into()
}

/// MD5 of `user:realm:password` (RFC 8489 section 9.2.2).
pub(super) fn long_term_key(user: &str, realm: &str, password: &str) -> [u8; 16] {
    Md5::digest(format!("{user}:{realm}:{password}")).into()
}

/// The value of the first attribute `kind`, `None` where there is none or the message is torn.
pub(super) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = bytes.get(20..)?;
    while let Some((head, tail)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if u16::from_be_bytes([head[0], head[1]]) == kind {
            return tail.get(..length);
        }
        rest = tail.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// Whether the last attribute is a right FINGERPRINT.
pub(super) fn fingerprint_is_right(bytes: &[u8]) -> bool {
    let Some((body, last)) = bytes.split_last_chunk::<8>() else { return false };
    let crc = crc32(body) ^ 0x5354_554e;
    last[..4] == [0x80, 0x28, 0, 4] && last[4..] == crc.to_be_bytes()
}

fn set_length(bytes: &mut [u8]) {
    let length = (bytes.len() - 20) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
}

/// The CRC-32 of ITU V.42, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// Many byte strings in one piece of memory, in the order in which they are used.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Packed {
    /// Appends one.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The one at `index`.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[begin as usize..self.ends[index] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{crc32, hmac_sha1, long_term_key, xor_value};

    /// RFC 2202 section 3, case 2, and RFC 8489's example of a key (RFC 5769 section 2.4 uses the same parts).
    #[test]
    fn codes_and_keys_are_those_of_the_rfcs() {
        let mac = hmac_sha1(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(mac[..8], [0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f, 0xa2]);
        let key = long_term_key("user", "realm", "pass");
        assert_eq!(key[..8], [0x84, 0x93, 0xfb, 0xc5, 0x3b, 0xa5, 0x82, 0xfb]);
    }

    #[test]
    fn crc_gives_the_check_value_of_its_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    /// RFC 5769 sections 2.2 and 2.3.
    #[test]
    fn xor_addresses_are_those_of_the_test_vectors() {
        let id = [0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae];
        let v4 = xor_value("192.0.2.1:32853".parse().unwrap(), &id);
        assert_eq!(v4, [0x00, 0x01, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        let v6 = xor_value("[2001:db8:1234:5678:11:2233:4455:6677]:32853".parse().unwrap(), &id);
        let expected = [
            0x00, 0x02, 0xa1, 0x47, 0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3, 0xf1, 0x79, 0xbc, 0x25, 0xf4, 0xb5, 0xbe, 0xd2,
            0xb9, 0xd9,
        ];
        assert_eq!(v6, expected);
    }
}
