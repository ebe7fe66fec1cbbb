//! XOR-MAPPED-ADDRESS and its kin (RFC 8489 section 14.2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{MAGIC_COOKIE, TransactionId};

const FAMILY_IPV4: u8 = 0x01;
const FAMILY_IPV6: u8 = 0x02;
/// The cookie's upper half, with which the port is XORed.
const COOKIE_PORT: u16 = (MAGIC_COOKIE >> 16) as u16;

/// The value of an XOR address attribute: 8 bytes for IPv4, 20 for IPv6.
#[derive(Clone, Copy, Debug)]
pub struct XorAddress {
    bytes: [u8; 20],
    len: usize,
}

impl XorAddress {
    /// Encodes `addr` for the message with `transaction_id`.
    #[inline]
    #[must_use]
    pub fn encode(addr: SocketAddr, transaction_id: &TransactionId) -> Self {
        let port = (addr.port() ^ COOKIE_PORT).to_be_bytes();
        let mut bytes = [0; 20];
        bytes[2..4].copy_from_slice(&port);
        match addr.ip() {
            IpAddr::V4(ip) => {
                bytes[1] = FAMILY_IPV4;
                bytes[4..8].copy_from_slice(&(ip.to_bits() ^ MAGIC_COOKIE).to_be_bytes());
                Self { bytes, len: 8 }
            }
            IpAddr::V6(ip) => {
                bytes[1] = FAMILY_IPV6;
                bytes[4..20].copy_from_slice(&(ip.to_bits() ^ mask_v6(transaction_id)).to_be_bytes());
                Self { bytes, len: 20 }
            }
        }
    }

    /// The attribute's value on the wire.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The first `N` bytes of the value.
    #[inline(always)]
    pub(crate) fn first<const N: usize>(&self) -> &[u8; N] {
        const { assert!(N <= 20) };
        self.bytes.first_chunk().unwrap_or(&[0; N])
    }

    /// Reads an attribute's value back; `None` for an unknown family or a length that is not the family's. The
    /// first byte is not looked at (RFC 8489 section 14.1).
    #[inline]
    #[must_use]
    pub fn decode(value: &[u8], transaction_id: &TransactionId) -> Option<SocketAddr> {
        let (head, ip) = value.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes([head[2], head[3]]) ^ COOKIE_PORT;
        match head[1] {
            FAMILY_IPV4 => {
                let ip: [u8; 4] = ip.try_into().ok()?;
                Some(SocketAddr::new(Ipv4Addr::from_bits(u32::from_be_bytes(ip) ^ MAGIC_COOKIE).into(), port))
            }
            FAMILY_IPV6 => {
                let ip: [u8; 16] = ip.try_into().ok()?;
                let ip = Ipv6Addr::from_bits(u128::from_be_bytes(ip) ^ mask_v6(transaction_id));
                Some(SocketAddr::new(ip.into(), port))
            }
            _ => None,
        }
    }
}

#[inline]
fn mask_v6(transaction_id: &TransactionId) -> u128 {
    let mut mask = [0; 16];
    mask[..4].copy_from_slice(&MAGIC_COOKIE.to_be_bytes());
    mask[4..].copy_from_slice(transaction_id);
    u128::from_be_bytes(mask)
}
