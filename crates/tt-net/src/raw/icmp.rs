//! ICMP errors about datagrams that left by a raw socket, which has no queue of errors.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};
use tt_model::IpFamily;

use super::headers;
use crate::IcmpReport;
use crate::sys::{Slots, set_option};

/// Messages of one system call.
const REPORTS: usize = 16;
/// The longest message that is read. RFC 1812 section 4.3.2.3 and RFC 4443 section 2.4 bound errors by 576 and 1,280
/// bytes.
const MESSAGE_LEN: usize = 1_536;
const UDP: u8 = 17;
/// `ICMP_FILTER` and `ICMP6_FILTER`.
const FILTER: i32 = 1;
/// Destination unreachable, time exceeded, parameter problem.
const IPV4_KINDS: [u8; 3] = [3, 11, 12];
/// Destination unreachable, packet too big, time exceeded, parameter problem.
const IPV6_KINDS: [u8; 4] = [1, 2, 3, 4];
const FRAGMENTATION_NEEDED: (u8, u8) = (3, 4);
const PACKET_TOO_BIG: u8 = 2;

/// Receives the ICMP errors of this host.
#[derive(Debug)]
pub struct IcmpSocket {
    socket: Socket,
    family: IpFamily,
}

impl IcmpSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW.
    pub fn open(family: IpFamily) -> io::Result<Self> {
        let (domain, protocol) = match family {
            IpFamily::V4 => (Domain::IPV4, Protocol::ICMPV4),
            IpFamily::V6 => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(protocol))?;
        // A bit of 1 keeps a type away.
        match family {
            IpFamily::V4 => {
                let passed = IPV4_KINDS.iter().fold(0_u32, |bits, kind| bits | 1 << kind);
                set_option(&socket, (libc::SOL_RAW, FILTER), &(!passed).to_ne_bytes())?;
            }
            IpFamily::V6 => {
                let mut filter = [0xff; 32];
                let passed = IPV6_KINDS.iter().fold(0_u32, |bits, kind| bits | 1 << kind);
                filter[..4].copy_from_slice(&(!passed).to_ne_bytes());
                set_option(&socket, (libc::IPPROTO_ICMPV6, FILTER), &filter)?;
            }
        }
        Ok(Self { socket, family })
    }

    /// Returns a second descriptor of this socket.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, family: self.family })
    }
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads ICMP errors from raw sockets.
///
/// Not `Send`: create it in the thread that uses it.
#[derive(Debug)]
pub struct RawIcmpInbox {
    slots: Slots,
}

impl Default for RawIcmpInbox {
    fn default() -> Self {
        Self { slots: Slots::new(REPORTS, MESSAGE_LEN) }
    }
}

impl RawIcmpInbox {
    /// Calls `report` with each of the next errors about a UDP datagram, at most 16, without blocking: first the address
    /// and port that it had left from. Returns whether those were all. One system call.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&mut self, socket: &IcmpSocket, mut report: impl FnMut(SocketAddr, IcmpReport)) -> io::Result<bool> {
        let count = match self.slots.receive(socket, 0..REPORTS) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(error),
        };
        for index in 0..count {
            if self.slots.arrival(index).truncated {
                continue;
            }
            let bytes = self.slots.bytes(index);
            let parsed = match socket.family {
                IpFamily::V4 => parse_ipv4(bytes),
                IpFamily::V6 => parse_ipv6(bytes),
            };
            if let Some((from, parsed)) = parsed {
                report(from, parsed);
            }
        }
        Ok(count < REPORTS)
    }
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn port(bytes: &[u8], at: usize) -> Option<u16> {
    take(bytes, at).map(u16::from_be_bytes)
}

/// Returns what is behind an IPv4 header, with its protocol, if it is not a later fragment.
fn behind_ipv4(packet: &[u8]) -> Option<(u8, &[u8])> {
    let first = *packet.first()?;
    let header_len = usize::from(first & 0xf) * 4;
    let fragment = u16::from_be_bytes(take(packet, 6)?) & 0x1fff;
    (first >> 4 == 4 && header_len >= 20 && fragment == 0).then_some((*packet.get(9)?, packet.get(header_len..)?))
}

/// Reads a packet with an ICMP error. The kernel passes it on before it verifies the checksum.
fn parse_ipv4(packet: &[u8]) -> Option<(SocketAddr, IcmpReport)> {
    let (_, message) = behind_ipv4(packet)?;
    let [kind, code, ..] = take::<4>(message, 0)?;
    if !IPV4_KINDS.contains(&kind) || headers::fold(headers::sum(message)) != u16::MAX {
        return None;
    }
    let mtu = if (kind, code) == FRAGMENTATION_NEEDED { port(message, 6)? } else { 0 };
    let inner = message.get(8..)?;
    let (protocol, udp) = behind_ipv4(inner)?;
    let [from, to] = [12, 16].map(|at| take::<4>(inner, at).map(|ip| IpAddr::V4(Ipv4Addr::from(ip))));
    report(protocol, [from?, to?], udp, (kind, code, mtu.into()))
}

/// Reads an ICMPv6 error, whose checksum the kernel has verified (RFC 3542 section 3.1).
fn parse_ipv6(message: &[u8]) -> Option<(SocketAddr, IcmpReport)> {
    let [kind, code, ..] = take::<4>(message, 0)?;
    if !IPV6_KINDS.contains(&kind) {
        return None;
    }
    let mtu = if kind == PACKET_TOO_BIG { u32::from_be_bytes(take(message, 4)?) } else { 0 };
    let inner = message.get(8..)?;
    let [from, to] = [8, 24].map(|at| take::<16>(inner, at).map(|ip| IpAddr::V6(Ipv6Addr::from(ip))));
    report(*inner.get(6)?, [from?, to?], inner.get(40..)?, (kind, code, mtu))
}

fn report(
    protocol: u8,
    [from, to]: [IpAddr; 2],
    udp: &[u8],
    (kind, code, mtu): (u8, u8, u32),
) -> Option<(SocketAddr, IcmpReport)> {
    if protocol != UDP {
        return None;
    }
    let destination = SocketAddr::new(to, port(udp, 2)?);
    Some((SocketAddr::new(from, port(udp, 0)?), IcmpReport { destination, kind, code, mtu }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv4 or IPv6 with 8 bytes of UDP, as an error quotes it.
    fn quoted(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let fields = headers::Fields { from, to, traffic_class: 0, hop_limit: 9, dont_fragment: true };
        let mut head = [0; headers::HEADERS_LEN_MAX];
        headers::write(&mut head, &fields, b"");
        head[..headers::len(from)].to_vec()
    }

    fn icmp(kind: u8, code: u8, rest: [u8; 4], inner: &[u8]) -> Vec<u8> {
        let mut message = [&[kind, code, 0, 0][..], &rest, inner].concat();
        let checksum = !headers::fold(headers::sum(&message));
        message[2..4].copy_from_slice(&checksum.to_ne_bytes());
        message
    }

    fn packet(message: &[u8]) -> Vec<u8> {
        // With an option: the header is longer than usual.
        [&[0x46, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 9, 192, 0, 2, 1, 1, 1, 1, 1][..], message].concat()
    }

    #[test]
    fn an_error_names_both_ends_of_the_datagram() {
        let [from, to] = ["192.0.2.1:50000", "198.51.100.7:9"].map(|addr| addr.parse().unwrap());
        let message = icmp(3, 4, [0, 0, 5, 0], &quoted(from, to));
        let expected = IcmpReport { destination: to, kind: 3, code: 4, mtu: 1_280 };
        assert_eq!(parse_ipv4(&packet(&message)), Some((from, expected)));
        let other = icmp(3, 3, [0, 0, 5, 0], &quoted(from, to));
        assert_eq!(parse_ipv4(&packet(&other)).unwrap().1.mtu, 0, "only one code has an MTU");

        let [from, to] = ["[2001:db8::1]:50000", "[2001:db8::7]:9"].map(|addr| addr.parse().unwrap());
        let message = icmp(2, 0, [0, 0, 5, 0], &quoted(from, to));
        assert_eq!(parse_ipv6(&message), Some((from, IcmpReport { destination: to, kind: 2, code: 0, mtu: 1_280 })));
    }

    #[test]
    fn what_is_not_an_error_about_udp_is_not_reported() {
        let [from, to] = ["192.0.2.1:50000", "198.51.100.7:9"].map(|addr| addr.parse().unwrap());
        let good = packet(&icmp(3, 3, [0; 4], &quoted(from, to)));
        assert!(parse_ipv4(&good).is_some());
        for cut in 0..good.len() {
            assert_eq!(parse_ipv4(&good[..cut]), None, "{cut} bytes");
        }
        for at in 24..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x55;
            assert_eq!(parse_ipv4(&changed), None, "another byte at {at}, the same checksum");
        }
        let mut tcp = quoted(from, to);
        tcp[9] = 6;
        let mut fragment = quoted(from, to);
        fragment[7] = 1;
        for inner in [tcp, fragment] {
            assert_eq!(parse_ipv4(&packet(&icmp(3, 3, [0; 4], &inner))), None);
        }
        assert_eq!(parse_ipv4(&packet(&icmp(8, 0, [0; 4], &quoted(from, to)))), None, "an echo request");
    }
}
