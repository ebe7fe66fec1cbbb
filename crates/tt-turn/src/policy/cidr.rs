//! A range of addresses.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A range of addresses, such as `10.0.0.0/8` or `2001:db8::/32`. An address without a prefix is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    prefix_bits: u8,
}

/// Reason why a text is not a CIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidrError {
    /// The part before the slash is not an address.
    Address,
    /// The part after the slash is not a prefix length of the family.
    Prefix,
    /// Bits are set after the prefix.
    HostBits,
}

impl fmt::Display for CidrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "no IP address before the slash",
            Self::Prefix => "no prefix length that fits the address",
            Self::HostBits => "bits are set behind the prefix",
        })
    }
}

impl core::error::Error for CidrError {}

impl Cidr {
    /// Returns the range of the addresses whose first `prefix_bits` bits are those of `network`.
    ///
    /// # Errors
    /// [`CidrError::Prefix`] if the prefix is longer than the address, [`CidrError::HostBits`] if `network` has bits
    /// after it.
    pub const fn new(network: IpAddr, prefix_bits: u8) -> Result<Self, CidrError> {
        let (bits, width) = match network {
            IpAddr::V4(ip) => ((ip.to_bits() as u128) << 96, 32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        };
        if prefix_bits > width {
            return Err(CidrError::Prefix);
        }
        if bits & !mask(prefix_bits) != 0 {
            return Err(CidrError::HostBits);
        }
        Ok(Self { network, prefix_bits })
    }

    /// Returns whether the range contains `ip`, which must be of the same family.
    #[inline]
    #[must_use]
    pub const fn contains(&self, ip: IpAddr) -> bool {
        match (self.network, ip) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                ((network.to_bits() ^ ip.to_bits()) as u128) << 96 & mask(self.prefix_bits) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => (network.to_bits() ^ ip.to_bits()) & mask(self.prefix_bits) == 0,
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Parses `text` and clears the bits after the prefix.
    pub(super) fn truncated(text: &str) -> Result<Self, CidrError> {
        let (ip, prefix_bits) = parts(text)?;
        let mask = mask(prefix_bits);
        let network = match ip {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & (mask >> 96) as u32).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & mask).into(),
        };
        Ok(Self { network, prefix_bits })
    }

    /// Returns the first address of the range.
    #[must_use]
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// Returns the length of the prefix in bits.
    #[must_use]
    pub const fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }
}

/// Returns 128 bits of which the topmost `prefix_bits` are set.
const fn mask(prefix_bits: u8) -> u128 {
    match prefix_bits {
        0 => 0,
        bits => u128::MAX << (128 - bits as u32),
    }
}

/// Reads the address and the length of the prefix.
fn parts(text: &str) -> Result<(IpAddr, u8), CidrError> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let network: IpAddr = address.parse().map_err(|_| CidrError::Address)?;
    let width = if network.is_ipv4() { 32 } else { 128 };
    match prefix {
        Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
            let bits = prefix.parse().map_err(|_| CidrError::Prefix)?;
            if bits > width { Err(CidrError::Prefix) } else { Ok((network, bits)) }
        }
        Some(_) => Err(CidrError::Prefix),
        None => Ok((network, width)),
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        parts(text).and_then(|(network, prefix_bits)| Self::new(network, prefix_bits))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}

/// An IPv4 range of the built-in lists.
pub(crate) const fn v4([a, b, c, d]: [u8; 4], prefix_bits: u8) -> Cidr {
    Cidr { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix_bits }
}

/// An IPv6 range of the built-in lists.
pub(crate) const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix_bits: u8) -> Cidr {
    Cidr { network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix_bits }
}
