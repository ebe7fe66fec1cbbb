//! Control messages (`cmsg(3)`) of received and sent datagrams, as bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of control messages a datagram may carry, in either direction.
pub(crate) const CAPACITY: usize = 160;

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

/// Metadata of a received datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ancillary {
    /// The local address that the datagram was sent to (`IP_PKTINFO`, `IPV6_PKTINFO`).
    pub(crate) destination: Option<IpAddr>,
    /// The address and port that the datagram was sent to (`IP_ORIGDSTADDR`, `IPV6_ORIGDSTADDR`).
    pub(crate) addressed: Option<SocketAddr>,
    /// The received traffic class: DSCP and ECN (`IP_TOS`, `IPV6_TCLASS`).
    pub(crate) traffic_class: u8,
    /// The received TTL or hop limit (`IP_TTL`, `IPV6_HOPLIMIT`); zero if the kernel did not report it.
    pub(crate) hop_limit: u8,
    /// The length of each datagram in a GRO batch; the last may be shorter (`UDP_GRO`). Zero: the bytes are one
    /// datagram.
    pub(crate) segment_len: usize,
    /// The error from the socket's error queue (`IP_RECVERR`, `IPV6_RECVERR`).
    pub(crate) error: Option<QueuedError>,
    /// Datagrams dropped since the socket was opened because its receive buffer was full (`SO_RXQ_OVFL`).
    pub(crate) overflow: Option<u32>,
}

/// The fields of the kernel's `sock_extended_err` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedError {
    /// The origin of the error: `SO_EE_ORIGIN_ICMP`, `SO_EE_ORIGIN_ICMP6`, ...
    pub(crate) origin: u8,
    /// ICMP's type.
    pub(crate) kind: u8,
    /// ICMP's code.
    pub(crate) code: u8,
    /// The MTU, if the type and code carry one.
    pub(crate) mtu: u32,
}

/// Metadata of a datagram to send, or of a GSO batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// The packet is one of IPv6.
    pub(crate) is_ipv6: bool,
    /// The local address that it leaves from; the socket's own for `None`.
    pub(crate) source: Option<IpAddr>,
    /// DSCP and ECN.
    pub(crate) traffic_class: u8,
    /// Time to live in hops; zero for the system's default.
    pub(crate) hop_limit: u8,
    /// Whether this host must not fragment it; IPv6 only (`IPV6_DONTFRAG`).
    pub(crate) dont_fragment: bool,
    /// The length of each datagram in a GSO batch; the last may be shorter (`UDP_SEGMENT`). Zero: send one datagram.
    pub(crate) segment_len: u16,
}

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 8;

const fn align(len: usize) -> usize {
    len.next_multiple_of(WORD)
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn port_of(body: &[u8]) -> Option<u16> {
    take(body, 2).map(u16::from_be_bytes)
}

/// Reads a `sock_extended_err`: errno, origin, type, code, a byte of padding, then the MTU.
fn queued_error(body: &[u8]) -> Option<QueuedError> {
    let [origin, kind, code, _] = take::<4>(body, 4)?;
    Some(QueuedError { origin, kind, code, mtu: take(body, 8).map(u32::from_ne_bytes)? })
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
                // struct sockaddr_in { family, port, addr } and sockaddr_in6 { family, port, flowinfo, addr, .. }.
                (libc::IPPROTO_IP, libc::IP_ORIGDSTADDR) => {
                    found.addressed = port_of(body).zip(take::<4>(body, 4)).map(|(port, ip)| (ip, port).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_ORIGDSTADDR) => {
                    found.addressed = port_of(body).zip(take::<16>(body, 8)).map(|(port, ip)| (ip, port).into());
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => found.traffic_class = body.first().copied().unwrap_or(0),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    found.traffic_class = take(body, 0).map_or(0, i32::from_ne_bytes) as u8;
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    found.hop_limit = take(body, 0).map_or(0, i32::from_ne_bytes) as u8;
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    found.segment_len = take(body, 0).map_or(0, i32::from_ne_bytes).max(0) as usize;
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    found.error = queued_error(body);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => found.overflow = take(body, 0).map(u32::from_ne_bytes),
                _ => {}
            }
            rest = rest.get(align(length)..).unwrap_or_default();
        }
        found
    }

    /// Writes the control messages for `leaving` and returns their length in bytes: zero where all is as by default.
    pub(crate) fn write(&mut self, leaving: &Leaving) -> usize {
        let mut len = 0;
        match leaving.source {
            None => {}
            Some(IpAddr::V4(ip)) => {
                let mut body = [0; 12];
                body[4..8].copy_from_slice(&ip.octets());
                len = self.put(len, (libc::IPPROTO_IP, libc::IP_PKTINFO), &body);
            }
            Some(IpAddr::V6(ip)) => {
                let mut body = [0; 20];
                body[..16].copy_from_slice(&ip.octets());
                len = self.put(len, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), &body);
            }
        }
        let (class, hops) = if leaving.is_ipv6 {
            ((libc::IPPROTO_IPV6, libc::IPV6_TCLASS), (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT))
        } else {
            ((libc::IPPROTO_IP, libc::IP_TOS), (libc::IPPROTO_IP, libc::IP_TTL))
        };
        for (kind, value) in [(class, leaving.traffic_class), (hops, leaving.hop_limit)] {
            if value != 0 {
                len = self.put(len, kind, &i32::from(value).to_ne_bytes());
            }
        }
        if leaving.dont_fragment && leaving.is_ipv6 {
            len = self.put(len, (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG), &1i32.to_ne_bytes());
        }
        if leaving.segment_len != 0 {
            len = self.put(len, (libc::SOL_UDP, libc::UDP_SEGMENT), &leaving.segment_len.to_ne_bytes());
        }
        len
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
            let leaving =
                Leaving { is_ipv6, source: Some(source), traffic_class: 0xb9, hop_limit: 63, ..Leaving::default() };
            let mut control = Control::default();
            let len = control.write(&leaving);
            let len = control.put(len, (libc::SOL_SOCKET, libc::SCM_TIMESTAMP), &[1; 16]);
            let len = control.put(len, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), &7u32.to_ne_bytes());
            // A received destination has the layout of a sent source.
            let found = control.parse(len);
            assert_eq!((found.destination, found.overflow), (Some(source), Some(7)));
            assert_eq!((found.traffic_class, found.hop_limit, found.segment_len), (0xb9, 63, 0));
        }
        assert_eq!(Control::default().write(&Leaving::default()), 0);
    }

    #[test]
    fn holds_everything_at_once() {
        let source = Some("2001:db8::9".parse().unwrap());
        let all =
            Leaving { is_ipv6: true, source, traffic_class: 1, hop_limit: 1, dont_fragment: true, segment_len: 1_200 };
        let mut control = Control::default();
        let len = control.write(&all);
        let len = control.put(len, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), &7u32.to_ne_bytes());
        assert!(len <= CAPACITY);
        assert_eq!(control.parse(len).overflow, Some(7));
    }

    #[test]
    fn survives_every_truncation_and_a_wrong_length() {
        let source = Some("192.0.2.7".parse().unwrap());
        let mut control = Control::default();
        let len = control.write(&Leaving { source, traffic_class: 4, ..Leaving::default() });
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
