//! Sockets that another process has opened, such as a service manager.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use socket2::{Protocol, Socket, Type};

use crate::UdpSocket;
use crate::stream::StreamListener;

/// A socket that another process has bound.
#[derive(Debug)]
pub enum PassedSocket {
    /// A UDP socket.
    Udp(UdpSocket),
    /// A TCP socket that listens.
    Tcp(StreamListener),
}

impl PassedSocket {
    /// Takes `descriptor` and sets the options of a socket that this crate has opened.
    ///
    /// # Errors
    /// `InvalidInput`: it is no UDP socket and no listening TCP socket, it is connected, or it is bound to `[::]` and
    /// takes IPv4, too. The kernel's error.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = Socket::from(descriptor);
        let local = socket.local_addr().map_err(|_| invalid("it is not a socket"))?.as_socket();
        let local = local.ok_or_else(|| invalid("it is not a socket of IPv4 or IPv6"))?;
        // The option cannot be changed on a socket that is bound.
        if local.is_ipv6() && local.ip().is_unspecified() && !socket.only_v6()? {
            return Err(invalid("it takes IPv4, too: BindIPv6Only=ipv6-only keeps the families apart"));
        }
        if socket.peer_addr().is_ok() {
            return Err(invalid("it is connected: Accept=no passes the socket that listens"));
        }
        match (socket.r#type()?, socket.protocol()?) {
            (Type::DGRAM, Some(Protocol::UDP)) => UdpSocket::passed(socket, local).map(Self::Udp),
            (Type::STREAM, Some(Protocol::TCP)) if socket.is_listener()? => {
                StreamListener::passed(socket, local).map(Self::Tcp)
            }
            (Type::STREAM, Some(Protocol::TCP)) => Err(invalid("it does not listen")),
            _ => Err(invalid("it is neither UDP nor TCP")),
        }
    }

    /// The address it is bound to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Tcp(listener) => listener.local_addr(),
        }
    }
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
