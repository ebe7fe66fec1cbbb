//! Addresses and ports of a peer rule.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use super::cidr::{Cidr, CidrError};

/// Addresses of one family from the first to the last, and ports from the first to the last.
///
/// Its text is `ADDR`, `CIDR` or `ADDR-ADDR`, with `:PORT` or `:LOW-HIGH` behind it for single ports. IPv6 addresses
/// with ports are in brackets: `[2001:db8::/32]:0-1023`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerRange {
    first: IpAddr,
    last: IpAddr,
    first_port: u16,
    last_port: u16,
}

/// Reason why a text or a pair of bounds is not a [`PeerRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerRangeError {
    /// There is no IP address.
    Address,
    /// The part after the slash is not a prefix length of the family.
    Prefix,
    /// The last address is before the first, or of the other family.
    Order,
    /// There is no port, or the last is before the first.
    Ports,
}

impl fmt::Display for PeerRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "not an IP address, a CIDR or a range ADDR-ADDR (IPv6 with ports: [ADDR]:PORTS)",
            Self::Prefix => "no prefix length that fits the address",
            Self::Order => "the last address is before the first, or of the other family",
            Self::Ports => "not a port or a port range LOW-HIGH",
        })
    }
}

impl core::error::Error for PeerRangeError {}

impl From<Cidr> for PeerRange {
    fn from(range: Cidr) -> Self {
        let bits = u32::from(range.prefix_bits());
        let last = match range.network() {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() | u32::MAX.checked_shr(bits).unwrap_or(0)).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() | u128::MAX.checked_shr(bits).unwrap_or(0)).into(),
        };
        Self { first: range.network(), last, first_port: 0, last_port: u16::MAX }
    }
}

impl From<IpAddr> for PeerRange {
    fn from(ip: IpAddr) -> Self {
        Self { first: ip, last: ip, first_port: 0, last_port: u16::MAX }
    }
}

impl PeerRange {
    /// Returns the range from `first` to `last` with all ports.
    ///
    /// # Errors
    /// [`PeerRangeError::Order`] if `last` is before `first` or of the other family.
    pub fn new(first: IpAddr, last: IpAddr) -> Result<Self, PeerRangeError> {
        if first.is_ipv4() != last.is_ipv4() || last < first {
            return Err(PeerRangeError::Order);
        }
        Ok(Self { first, last, first_port: 0, last_port: u16::MAX })
    }

    /// Returns the same addresses with the ports from `first_port` to `last_port`.
    ///
    /// # Errors
    /// [`PeerRangeError::Ports`] if `last_port` is below `first_port`.
    pub const fn with_ports(self, first_port: u16, last_port: u16) -> Result<Self, PeerRangeError> {
        if last_port < first_port {
            return Err(PeerRangeError::Ports);
        }
        Ok(Self { first_port, last_port, ..self })
    }

    /// Returns the first and the last address.
    #[must_use]
    pub const fn addresses(&self) -> (IpAddr, IpAddr) {
        (self.first, self.last)
    }

    /// Returns the first and the last port.
    #[must_use]
    pub const fn ports(&self) -> (u16, u16) {
        (self.first_port, self.last_port)
    }

    /// Returns whether the range has every port.
    #[must_use]
    pub const fn has_all_ports(&self) -> bool {
        self.first_port == 0 && self.last_port == u16::MAX
    }

    /// Returns whether the range contains the address, of the same family.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.first.is_ipv4() == ip.is_ipv4() && (self.first..=self.last).contains(&ip)
    }

    /// Returns whether an address and a port are in both ranges.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let shares_addresses = self.contains(other.first) || other.contains(self.first);
        shares_addresses && self.first_port <= other.last_port && other.first_port <= self.last_port
    }

    /// Returns the number of addresses and of ports after the first. Of two rules that contain a peer, the one with the
    /// smaller size counts.
    #[must_use]
    pub fn size(&self) -> (u128, u16) {
        let (first, last) = self.bits();
        (last - first, self.last_port - self.first_port)
    }

    /// Returns the bits of the bounds, right-aligned.
    pub(super) fn bits(&self) -> (u128, u128) {
        (bits(self.first), bits(self.last))
    }

    /// Returns the length of the prefix if the addresses are a CIDR.
    fn prefix_bits(&self) -> Option<u8> {
        let (first, last) = self.bits();
        let hosts = first ^ last;
        let is_cidr = hosts & hosts.wrapping_add(1) == 0 && first & hosts == 0;
        let width: u32 = if self.first.is_ipv4() { 32 } else { 128 };
        is_cidr.then(|| u8::try_from(width - hosts.count_ones()).unwrap_or(u8::MAX))
    }
}

pub(super) fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

impl fmt::Display for PeerRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bracketed = self.first.is_ipv6() && !self.has_all_ports();
        f.write_str(if is_bracketed { "[" } else { "" })?;
        match self.prefix_bits() {
            Some(bits) => write!(f, "{}/{bits}", self.first)?,
            None => write!(f, "{}-{}", self.first, self.last)?,
        }
        f.write_str(if is_bracketed { "]" } else { "" })?;
        match (self.has_all_ports(), self.first_port == self.last_port) {
            (true, _) => Ok(()),
            (false, true) => write!(f, ":{}", self.first_port),
            (false, false) => write!(f, ":{}-{}", self.first_port, self.last_port),
        }
    }
}

impl FromStr for PeerRange {
    type Err = PeerRangeError;

    /// Bits after the prefix of a CIDR are ignored.
    fn from_str(text: &str) -> Result<Self, PeerRangeError> {
        let (addresses, ports) = match text.strip_prefix('[') {
            Some(rest) => {
                let (addresses, rest) = rest.split_once(']').ok_or(PeerRangeError::Address)?;
                (addresses, Some(rest.strip_prefix(':').ok_or(PeerRangeError::Ports)?))
            }
            None if text.bytes().filter(|byte| *byte == b':').count() == 1 => {
                let (addresses, ports) = text.split_once(':').ok_or(PeerRangeError::Address)?;
                (addresses, Some(ports))
            }
            None => (text, None),
        };
        let range = addresses_of(addresses)?;
        let Some(ports) = ports else { return Ok(range) };
        let (low, high) = ports.split_once('-').unwrap_or((ports, ports));
        let port = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| PeerRangeError::Ports),
            false => Err(PeerRangeError::Ports),
        };
        range.with_ports(port(low)?, port(high)?)
    }
}

fn addresses_of(text: &str) -> Result<PeerRange, PeerRangeError> {
    let address = |text: &str| text.parse::<IpAddr>().map_err(|_| PeerRangeError::Address);
    if let Some((first, last)) = text.split_once('-') {
        return PeerRange::new(address(first)?, address(last)?);
    }
    match Cidr::truncated(text) {
        Ok(range) => Ok(range.into()),
        Err(CidrError::Prefix) => Err(PeerRangeError::Prefix),
        Err(CidrError::Address | CidrError::HostBits) => Err(PeerRangeError::Address),
    }
}
