//! Control messages (`cmsg(3)`) as bytes: what came along with a datagram, and what goes along with one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of control messages a datagram may carry, in either direction.
pub(crate) const CAPACITY: usize = 128;

/// Room for control messages, aligned as `cmsghdr` is.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Control {
    bytes: [u8; CAPACITY],
}

impl Default for Control {
    fn default() -> Self {
        Self { bytes: [0; CAPACITY] }
    }
}

/// What the kernel told about a datagram beside its bytes and its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ancillary {
    /// The local address that the datagram was sent to (`IP_PKTINFO`, `IPV6_PKTINFO`).
    pub(crate) destination: Option<IpAddr>,
    /// The traffic class that it came with: DSCP and ECN (`IP_TOS`, `IPV6_TCLASS`).
    pub(crate) traffic_class: u8,
    /// How many datagrams the socket has lost for want of buffer since it was opened (`SO_RXQ_OVFL`).
    pub(crate) overflow: Option<u32>,
}

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 8;

const fn align(len: usize) -> usize {
    len.next_multiple_of(WORD)
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Control {
    /// Parses the first `len` bytes; what is not understood is skipped.
    pub(crate) fn parse(&self, len: usize) -> Ancillary {
        let mut found = Ancillary::default();
        let mut rest = &self.bytes[..len.min(CAPACITY)];
        while let (Some(length), Some(level), Some(kind)) = (take(rest, 0), take(rest, WORD), take(rest, WORD + 4)) {
            let length = usize::from_ne_bytes(length);
            let Some(body) = rest.get(HEADER..length) else { break };
            match (i32::from_ne_bytes(level), i32::from_ne_bytes(kind)) {
                // struct in_pktinfo { ifindex, spec_dst, addr }: spec_dst is the local address, addr the header's.
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    found.destination = take::<4>(body, 4).map(|octets| Ipv4Addr::from(octets).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    found.destination = take::<16>(body, 0).map(|octets| Ipv6Addr::from(octets).into());
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => found.traffic_class = body.first().copied().unwrap_or(0),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    found.traffic_class = take(body, 0).map_or(0, i32::from_ne_bytes) as u8;
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => found.overflow = take(body, 0).map(u32::from_ne_bytes),
                _ => {}
            }
            rest = rest.get(align(length)..).unwrap_or_default();
        }
        found
    }

    /// The control messages that make a datagram leave from `source`, and with `traffic_class` in a packet of IPv6 or
    /// else IPv4, and their length in bytes: none for what is the socket's own address and the default class.
    pub(crate) fn leaving(source: Option<IpAddr>, traffic_class: u8, is_ipv6: bool) -> (Self, usize) {
        let mut control = Self::default();
        let mut len = 0;
        match source {
            None => {}
            Some(IpAddr::V4(ip)) => {
                let mut body = [0; 12];
                body[4..8].copy_from_slice(&ip.octets());
                len = control.put(len, (libc::IPPROTO_IP, libc::IP_PKTINFO), &body);
            }
            Some(IpAddr::V6(ip)) => {
                let mut body = [0; 20];
                body[..16].copy_from_slice(&ip.octets());
                len = control.put(len, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), &body);
            }
        }
        if traffic_class != 0 {
            let kind = if is_ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
            len = control.put(len, kind, &i32::from(traffic_class).to_ne_bytes());
        }
        (control, len)
    }

    /// Writes a message behind the first `at` bytes and returns where the next one goes.
    fn put(&mut self, at: usize, (level, kind): (i32, i32), body: &[u8]) -> usize {
        let length = HEADER + body.len();
        let room = &mut self.bytes[at..at + length];
        room[..WORD].copy_from_slice(&length.to_ne_bytes());
        room[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        room[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER..].copy_from_slice(body);
        at + align(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes_and_skips_the_unknown() {
        for (source, is_ipv6) in [("2001:db8::9", true), ("192.0.2.7", false)] {
            let source: IpAddr = source.parse().unwrap();
            let (mut control, len) = Control::leaving(Some(source), 0xb9, is_ipv6);
            let len = control.put(len, (libc::SOL_SOCKET, libc::SCM_TIMESTAMP), &[1; 16]);
            let len = control.put(len, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), &7u32.to_ne_bytes());
            // A received destination stands where a sent source does.
            let found = control.parse(len);
            assert_eq!((found.destination, found.traffic_class, found.overflow), (Some(source), 0xb9, Some(7)));
        }
        assert_eq!(Control::leaving(None, 0, true).1, 0);
    }

    #[test]
    fn survives_every_truncation_and_a_wrong_length() {
        let (control, len) = Control::leaving(Some("192.0.2.7".parse().unwrap()), 4, false);
        for cut in 0..len {
            let _ = control.parse(cut);
        }
        let mut wrong = control;
        wrong.bytes[..WORD].copy_from_slice(&0usize.to_ne_bytes());
        assert_eq!(wrong.parse(len), Ancillary::default());
        wrong.bytes[..WORD].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(wrong.parse(len), Ancillary::default());
    }
}
