//! XOR-MAPPED-ADDRESS, XOR-PEER-ADDRESS and XOR-RELAYED-ADDRESS (RFC 8489 section 14.2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tt_model::IpFamily;

use super::{MAGIC_COOKIE, TransactionId};

const FAMILY_IPV4: u8 = 0x01;
const FAMILY_IPV6: u8 = 0x02;
/// The upper half of the cookie, which is XORed with the port.
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

    /// Returns the attribute's value on the wire.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the first `N` bytes of the value.
    #[inline(always)]
    pub(crate) fn first<const N: usize>(&self) -> &[u8; N] {
        const { assert!(N <= 20) };
        self.bytes.first_chunk().unwrap_or(&[0; N])
    }

    /// Decodes an attribute's value; returns `None` for an unknown family or a wrong length. Ignores the first byte
    /// (RFC 8489 section 14.1).
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

/// Returns the number of `family` on the wire (RFC 8489 section 14.1).
pub(crate) const fn family_number(family: IpFamily) -> u8 {
    match family {
        IpFamily::V4 => FAMILY_IPV4,
        IpFamily::V6 => FAMILY_IPV6,
    }
}

/// Returns the family with `number` on the wire.
pub(crate) const fn family_from_number(number: u8) -> Option<IpFamily> {
    match number {
        FAMILY_IPV4 => Some(IpFamily::V4),
        FAMILY_IPV6 => Some(IpFamily::V6),
        _ => None,
    }
}
