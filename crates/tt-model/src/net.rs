//! Addresses.

use core::net::SocketAddr;

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

/// What identifies a client's flow: its address, the server's address that it talks to, and the transport protocol
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
