//! Addresses.

use core::net::{IpAddr, SocketAddr};

/// An IP address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IpFamily {
    /// IPv4.
    V4 = 0,
    /// IPv6, IPv4-mapped addresses included.
    V6 = 1,
}

impl IpFamily {
    /// Both families, IPv4 first.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Returns the family of `ip`.
    #[inline]
    #[must_use]
    pub const fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// The transport protocol between a client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
}

impl Transport {
    /// Every transport, in the order of their values.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Tls];
}

/// The five-tuple of a client's flow: client address, server address and transport protocol
/// (RFC 8656 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// The client's address as the server sees it.
    pub client: SocketAddr,
    /// The server's address that the client sent to; replies leave from it.
    pub server: SocketAddr,
    /// The transport protocol.
    pub transport: Transport,
}
