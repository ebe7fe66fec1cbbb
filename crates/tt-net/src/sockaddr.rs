//! `sockaddr_in` and `sockaddr_in6` as bytes, so that no pointer is cast.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Room for the larger of the two, aligned as the kernel's structures are.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub(crate) struct SockAddr {
    bytes: [u8; SockAddr::CAPACITY],
}

impl SockAddr {
    /// Bytes of a `sockaddr_in6`.
    pub(crate) const CAPACITY: usize = size_of::<libc::sockaddr_in6>();
    const V4_LEN: usize = size_of::<libc::sockaddr_in>();

    /// The structure for `addr`, and its length in bytes.
    pub(crate) fn of(addr: SocketAddr) -> (Self, usize) {
        let mut bytes = [0; Self::CAPACITY];
        bytes[2..4].copy_from_slice(&addr.port().to_be_bytes());
        let (family, len) = match addr {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                (libc::AF_INET, Self::V4_LEN)
            }
            SocketAddr::V6(v6) => {
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (libc::AF_INET6, Self::CAPACITY)
            }
        };
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        (Self { bytes }, len)
    }

    /// The address that the kernel wrote; the unspecified one where it wrote none of the two families.
    pub(crate) fn get(&self) -> SocketAddr {
        let two = |at: usize| [self.bytes[at], self.bytes[at + 1]];
        let four = |at: usize| [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]];
        let port = u16::from_be_bytes(two(2));
        match i32::from(u16::from_ne_bytes(two(0))) {
            libc::AF_INET => SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from(four(4)), port)),
            libc::AF_INET6 => {
                let mut octets = [0; 16];
                octets.copy_from_slice(&self.bytes[8..24]);
                let (flowinfo, scope_id) = (u32::from_be_bytes(four(4)), u32::from_ne_bytes(four(24)));
                SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(octets), port, flowinfo, scope_id))
            }
            _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_socket2() {
        for text in ["192.0.2.1:3478", "[2001:db8::7]:49152", "[fe80::1%3]:9"] {
            let addr: SocketAddr = text.parse().unwrap();
            let (ours, len) = SockAddr::of(addr);
            let theirs = socket2::SockAddr::from(addr);
            assert_eq!(len, theirs.len() as usize, "{text}");
            assert_eq!(ours.get(), theirs.as_socket().unwrap(), "{text}");
            assert_eq!(ours.get(), addr, "{text}");
        }
    }

    #[test]
    fn unknown_family_is_unspecified() {
        assert_eq!(SockAddr::default().get(), "0.0.0.0:0".parse().unwrap());
    }
}
