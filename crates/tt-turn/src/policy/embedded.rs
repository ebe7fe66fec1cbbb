//! IPv4 addresses inside IPv6 addresses.

use core::net::{IpAddr, Ipv4Addr};

use super::Cidr;

/// Returns the IPv4 address in an IPv6 address: IPv4-mapped and -compatible (RFC 4291),
/// IPv4-translated (SIIT, RFC 2765), 6to4 (RFC 3056), Teredo (RFC
/// 4380), ISATAP (RFC 5214), NAT64's well-known prefix and those of `nat64` (RFC 6052).
#[must_use]
pub fn embedded_ipv4(ip: IpAddr, nat64: &[Cidr]) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = ip else { return None };
    let bits = v6.to_bits();
    let low = Ipv4Addr::from_bits(bits as u32);
    if let Some(prefix) = nat64.iter().find(|prefix| prefix.contains(ip)) {
        return Some(rfc6052(bits, prefix.prefix_bits()));
    }
    let [a, b, c, d, _, f, ..] = v6.segments();
    match (a, b, c, d) {
        // RFC 4291 section 2.5.2 and 2.5.3: the unspecified and the loopback address embed nothing.
        (0, 0, 0, 0) if bits <= 1 => None,
        // ::a.b.c.d, ::ffff:a.b.c.d and ::ffff:0:a.b.c.d
        (0, 0, 0, 0) if [0, 0xFFFF, 0xFFFF_0000].contains(&(bits >> 32)) => Some(low),
        (0x2002, ..) => Some(Ipv4Addr::from_bits((bits >> 80) as u32)),
        (0x2001, 0, ..) => Some(Ipv4Addr::from_bits(!(bits as u32))),
        (0x0064, 0xFF9B, 0, 0) if bits >> 32 & 0xFFFF_FFFF == 0 => Some(low),
        _ if f == 0x5EFE && v6.segments()[4] & 0xFDFF == 0 => Some(low),
        _ => None,
    }
}

/// Reads the address after a NAT64 prefix; bits 64 to 71 are skipped (RFC 6052 section 2.2).
fn rfc6052(bits: u128, prefix_bits: u8) -> Ipv4Addr {
    let at = u32::from(prefix_bits);
    if at >= 96 {
        return Ipv4Addr::from_bits(bits as u32);
    }
    let without_u = (bits >> 64) << 56 | (bits & 0x00FF_FFFF_FFFF_FFFF);
    let shift = 120u32.saturating_sub(at + 32);
    Ipv4Addr::from_bits((without_u >> shift) as u32)
}
