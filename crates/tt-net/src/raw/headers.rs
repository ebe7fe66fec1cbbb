//! Headers of IP and UDP in front of a payload.

use std::net::{IpAddr, SocketAddr};

use super::RawOutgoing;

/// Bytes of IPv6 and UDP.
pub(super) const HEADERS_LEN_MAX: usize = 48;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const UDP: u8 = 17;
/// The default of RFC 1700, and of this system.
const HOPS: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;

/// Fields that vary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
    pub(super) dont_fragment: bool,
}

impl Fields {
    pub(super) const fn of(outgoing: &RawOutgoing) -> Self {
        let RawOutgoing { from, to, traffic_class, hop_limit, dont_fragment, .. } = *outgoing;
        Self { from, to, traffic_class, hop_limit, dont_fragment }
    }
}

/// Bytes of both headers.
pub(super) const fn len(from: SocketAddr) -> usize {
    UDP_LEN + if from.is_ipv4() { IPV4_LEN } else { IPV6_LEN }
}

/// Writes both headers of `payload`. The kernel writes IPv4's total length, identification and checksum.
pub(super) fn write(head: &mut [u8; HEADERS_LEN_MAX], fields: &Fields, payload: &[u8]) {
    let udp_len = (payload.len() + UDP_LEN) as u16;
    let hops = if fields.hop_limit == 0 { HOPS } else { fields.hop_limit };
    let udp_at = len(fields.from) - UDP_LEN;
    let addresses_at = match (fields.from.ip(), fields.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let flags = if fields.dont_fragment { DONT_FRAGMENT } else { 0 };
            head[..12].copy_from_slice(&[0x45, fields.traffic_class, 0, 0, 0, 0, flags, 0, hops, UDP, 0, 0]);
            head[12..16].copy_from_slice(&from.octets());
            head[16..20].copy_from_slice(&to.octets());
            12
        }
        (from, to) => {
            head[..4].copy_from_slice(&[0x60 | fields.traffic_class >> 4, fields.traffic_class << 4, 0, 0]);
            head[4..6].copy_from_slice(&udp_len.to_be_bytes());
            head[6..8].copy_from_slice(&[UDP, hops]);
            head[8..24].copy_from_slice(&ipv6(from));
            head[24..40].copy_from_slice(&ipv6(to));
            8
        }
    };
    let udp = &mut head[udp_at..udp_at + UDP_LEN];
    udp[..2].copy_from_slice(&fields.from.port().to_be_bytes());
    udp[2..4].copy_from_slice(&fields.to.port().to_be_bytes());
    udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
    udp[6..].fill(0);
    // RFC 768 and RFC 8200 section 8.1: addresses, protocol, length, UDP header, payload.
    let pseudo = sum(&head[addresses_at..udp_at]) + u64::from(u16::from(UDP).to_be()) + u64::from(udp_len.to_be());
    let folded = fold(pseudo + sum(&head[udp_at..udp_at + UDP_LEN]) + sum(payload));
    // A checksum of 0 would say that there is none.
    let checksum = if folded == u16::MAX { folded } else { !folded };
    head[udp_at + 6..udp_at + UDP_LEN].copy_from_slice(&checksum.to_ne_bytes());
}

fn ipv6(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// The sum of the 16-bit words of `bytes` in the machine's order, unfolded. RFC 1071 section 2: the order of the bytes
/// does not matter, and wider words may be added.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let mut lanes = [0_u64; 8];
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks_exact(4)) {
            *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut rest = chunks.remainder().chunks_exact(2);
    let words: u64 = rest.by_ref().map(|word| u64::from(u16::from_ne_bytes([word[0], word[1]]))).sum();
    let last = rest.remainder().first().map_or(0, |last| u64::from(u16::from_ne_bytes([*last, 0])));
    lanes.iter().sum::<u64>() + words + last
}

pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of RFC 1071 byte by byte, over the pseudo header and everything behind it.
    fn verified(head: &[u8], addresses: std::ops::Range<usize>, payload: &[u8]) -> u64 {
        let udp = &head[addresses.end..];
        let mut bytes = head[addresses].to_vec();
        bytes.extend([0, UDP, udp[4], udp[5]]);
        bytes.extend(udp);
        bytes.extend(payload);
        let words = bytes.chunks(2).map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| (*low).into()));
        let mut total: u64 = words.sum();
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        total
    }

    #[test]
    fn headers_verify_for_every_length() {
        let ends = [
            ("192.0.2.1:50000", "198.51.100.7:20001", 12..20),
            ("[2001:db8::1]:50000", "[2001:db8:1::7]:20001", 8..40),
        ];
        let payload: Vec<u8> = (0..1_300_u32).map(|at| (at * 7919) as u8).collect();
        for (from, to, addresses) in ends {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let fields = Fields { from, to, traffic_class: 0xb9, hop_limit: 63, dont_fragment: true };
            let mut head = [0xff; HEADERS_LEN_MAX];
            for len_of_payload in 0..payload.len() {
                write(&mut head, &fields, &payload[..len_of_payload]);
                let (head, udp_at) = (&head[..len(from)], addresses.end);
                assert_eq!(verified(head, addresses.clone(), &payload[..len_of_payload]), 0xffff, "{len_of_payload}");
                assert_ne!(head[udp_at + 6..], [0, 0]);
            }
            if from.is_ipv4() {
                assert_eq!((head[0], head[1], head[6], head[8]), (0x45, 0xb9, 0x40, 63));
            } else {
                assert_eq!((&head[..4], head[7]), (&[0x6b, 0x90, 0, 0][..], 63));
                assert_eq!(head[4..6], (1_299_u16 + 8).to_be_bytes());
            }
        }
    }

    /// RFC 768: a computed zero is sent as all ones.
    #[test]
    fn a_checksum_is_never_zero() {
        let (from, to) = ("192.0.2.1:50000".parse().unwrap(), "198.51.100.7:20001".parse().unwrap());
        let fields = Fields { from, to, traffic_class: 0, hop_limit: 0, dont_fragment: false };
        let mut head = [0; HEADERS_LEN_MAX];
        write(&mut head, &fields, &[0, 0]);
        assert_eq!((head[6], head[8]), (0, 64));
        // The payload that makes the sum all ones.
        let missing = u16::from_be_bytes([head[26], head[27]]);
        write(&mut head, &fields, &missing.to_be_bytes());
        assert_eq!(head[26..28], [0xff, 0xff]);
    }
}
