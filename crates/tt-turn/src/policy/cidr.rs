//! A range of addresses.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A range of addresses, as `10.0.0.0/8` or `2001:db8::/32`; a bare address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    prefix_bits: u8,
}

/// Why a text is no CIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidrFault {
    /// The part before the slash is no address.
    Address,
    /// The part behind the slash is no prefix length of the family.
    Prefix,
    /// Bits are set behind the prefix.
    HostBits,
}

impl fmt::Display for CidrFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "no IP address before the slash",
            Self::Prefix => "no prefix length that fits the address",
            Self::HostBits => "bits are set behind the prefix",
        })
    }
}

impl core::error::Error for CidrFault {}

impl Cidr {
    /// The range of the addresses whose first `prefix_bits` are `network`'s.
    ///
    /// # Errors
    /// [`CidrFault::Prefix`] where the prefix is longer than the address, [`CidrFault::HostBits`] where `network` has
    /// bits behind it.
    pub const fn new(network: IpAddr, prefix_bits: u8) -> Result<Self, CidrFault> {
        let (bits, width) = match network {
            IpAddr::V4(ip) => ((ip.to_bits() as u128) << 96, 32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        };
        if prefix_bits > width {
            return Err(CidrFault::Prefix);
        }
        if bits & !mask(prefix_bits) != 0 {
            return Err(CidrFault::HostBits);
        }
        Ok(Self { network, prefix_bits })
    }

    /// Whether `ip` lies in the range; never across families.
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

    /// The first address of the range.
    #[must_use]
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// How many leading bits are fixed.
    #[must_use]
    pub const fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }
}

/// The topmost `prefix_bits` of 128 set.
const fn mask(prefix_bits: u8) -> u128 {
    match prefix_bits {
        0 => 0,
        bits => u128::MAX << (128 - bits as u32),
    }
}

impl FromStr for Cidr {
    type Err = CidrFault;

    fn from_str(text: &str) -> Result<Self, CidrFault> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| CidrFault::Address)?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().map_err(|_| CidrFault::Prefix)?
            }
            Some(_) => return Err(CidrFault::Prefix),
            None => width,
        };
        Self::new(network, prefix_bits)
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
