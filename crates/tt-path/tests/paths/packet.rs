//! Ethernet, IP and UDP packets, and their checksums calculated in full: RFC 791, RFC 8200, RFC 768, RFC 1071.

use std::net::{IpAddr, SocketAddr};

pub(crate) const ETH_LEN: usize = 14;
pub(crate) const UDP: u8 = 17;

/// The checksum of RFC 1071: big-endian words, an odd byte padded with zero.
pub(crate) fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The pseudo-header of RFC 768 and of RFC 8200 section 8.1.
fn pseudo_header(from: IpAddr, to: IpAddr, udp_len: usize) -> Vec<u8> {
    let len = u16::try_from(udp_len).unwrap().to_be_bytes();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [&from.octets()[..], &to.octets(), &[0, UDP], &len].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            [&from.octets()[..], &to.octets(), &[0, 0], &len, &[0, 0, 0, UDP]].concat()
        }
        _ => panic!("two families"),
    }
}

/// The sum that a sender stores which leaves the checksum to its device.
pub(crate) fn partial_checksum(from: IpAddr, to: IpAddr, udp_len: usize) -> u16 {
    sum(&[&pseudo_header(from, to, udp_len)])
}

/// The UDP checksum; a result of zero is sent as all ones. The field in `udp` is taken as zero.
pub(crate) fn udp_checksum(from: IpAddr, to: IpAddr, udp: &[u8]) -> u16 {
    let sum = !sum(&[&pseudo_header(from, to, udp.len()), &udp[..6], &udp[8..]]);
    if sum == 0 { 0xffff } else { sum }
}

/// Whether a receiver accepts the UDP checksum.
pub(crate) fn is_accepted(from: IpAddr, to: IpAddr, udp: &[u8]) -> bool {
    sum(&[&pseudo_header(from, to, udp.len()), udp]) == 0xffff
}

/// A packet to build.
#[derive(Clone, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) mac_to: [u8; 6],
    pub(crate) mac_from: [u8; 6],
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// TTL or hop limit.
    pub(crate) hop_limit: u8,
    /// DSCP and ECN.
    pub(crate) traffic_class: u8,
    pub(crate) dont_fragment: bool,
    pub(crate) id: u16,
    pub(crate) flow_label: u32,
    pub(crate) payload: &'a [u8],
}

impl Packet<'_> {
    pub(crate) fn build(&self) -> Vec<u8> {
        let udp_len = u16::try_from(8 + self.payload.len()).unwrap();
        let (sport, dport) = (self.from.port().to_be_bytes(), self.to.port().to_be_bytes());
        let mut udp = [&sport[..], &dport, &udp_len.to_be_bytes(), &[0, 0], self.payload].concat();
        let csum = udp_checksum(self.from.ip(), self.to.ip(), &udp);
        udp[6..8].copy_from_slice(&csum.to_be_bytes());
        let mut frame = [self.mac_to, self.mac_from].concat();
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let len = (20 + udp_len).to_be_bytes();
                let frag = if self.dont_fragment { 0x40 } else { 0 };
                let id = self.id.to_be_bytes();
                let fixed =
                    [0x45, self.traffic_class, len[0], len[1], id[0], id[1], frag, 0, self.hop_limit, UDP, 0, 0];
                let mut ip = [&fixed[..], &from.octets(), &to.octets()].concat();
                seal(&mut ip);
                frame.extend([0x08, 0x00]);
                frame.extend(ip);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
                frame.extend([0x86, 0xdd]);
                frame.extend(first.to_be_bytes());
                frame.extend(udp_len.to_be_bytes());
                frame.extend([UDP, self.hop_limit]);
                frame.extend(from.octets());
                frame.extend(to.octets());
            }
            _ => panic!("two families"),
        }
        frame.extend(udp);
        frame
    }
}

/// Calculates the checksum of an IPv4 header.
pub(crate) fn seal(ip: &mut [u8]) {
    ip[10..12].fill(0);
    let csum = !sum(&[&ip[..20]]);
    ip[10..12].copy_from_slice(&csum.to_be_bytes());
}
