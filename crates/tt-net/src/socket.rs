//! UDP sockets.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::{MtuDiscovery, set_mtu_discovery};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// A non-blocking UDP socket that knows the address it is bound to.
///
/// Over IPv4 it sends with a DF bit of 0: what is longer than an MTU is fragmented, here or on its way.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    local: SocketAddr,
    /// The kernel's running count of lost datagrams when it was last seen.
    overflow_seen: Cell<u32>,
}

impl UdpSocket {
    /// `count` sockets on `addr` between which the kernel spreads the clients, one five-tuple always to the same
    /// (`SO_REUSEPORT`). Port 0 is one free port for all of them. Bound to the unspecified address, they tell of each
    /// datagram which local address it was sent to.
    ///
    /// # Errors
    /// What the kernel says: `EADDRINUSE` also where the other holder would share the port.
    pub fn listeners(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let mut sockets: Vec<Self> = Vec::with_capacity(count);
        let mut addr = addr;
        for _ in 0..count {
            let sharing = !sockets.is_empty();
            let socket = Self::open(addr, sharing)?;
            if !sharing {
                // The first one is bound alone, so that a second server on this port is an error and not a rival.
                socket.socket.set_reuse_port(true)?;
                addr = socket.local;
            }
            if addr.ip().is_unspecified() {
                match addr {
                    SocketAddr::V4(_) => setsockopt(&socket.socket, sockopt::Ipv4PacketInfo, &true)?,
                    SocketAddr::V6(_) => setsockopt(&socket.socket, sockopt::Ipv6RecvPacketInfo, &true)?,
                }
            }
            sockets.push(socket);
        }
        Ok(sockets)
    }

    /// One socket of its own on `addr`.
    ///
    /// # Errors
    /// What the kernel says: `EADDRINUSE`, `EADDRNOTAVAIL`, `EMFILE`, ...
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        Self::open(addr, false)
    }

    fn open(addr: SocketAddr, sharing: bool) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(true)?;
            socket.set_recv_tclass_v6(true)?;
            socket.set_recv_hoplimit_v6(true)?;
        } else {
            socket.set_recv_tos_v4(true)?;
            setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
            set_mtu_discovery(&socket, MtuDiscovery::Omit)?;
        }
        if sharing {
            socket.set_reuse_port(true)?;
        }
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        socket.bind(&addr.into())?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { socket, local, overflow_seen: Cell::new(0) })
    }

    /// The address it is bound to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Asks the kernel to keep the ICMP errors about what this socket has sent for an [`IcmpInbox`](crate::IcmpInbox)
    /// (`IP_RECVERR`, `IPV6_RECVERR`).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn tell_icmp(&self) -> io::Result<()> {
        match self.local {
            SocketAddr::V4(_) => Ok(setsockopt(&self.socket, sockopt::Ipv4RecvErr, &true)?),
            SocketAddr::V6(_) => Ok(setsockopt(&self.socket, sockopt::Ipv6RecvErr, &true)?),
        }
    }

    /// A second socket on the same address and port that sends with a DF bit of 1 and receives nothing; IPv4 alone. The
    /// ICMP errors about what it sends come to this one. Datagrams may reach the second one while it is made: read it
    /// once.
    ///
    /// # Errors
    /// What the kernel says: `EADDRINUSE`, `EMFILE`, ...
    pub fn unfragmented(&self) -> io::Result<Self> {
        self.socket.set_reuse_port(true)?;
        let second = Self::open(self.local, true);
        // Alone again: nobody else may join.
        self.socket.set_reuse_port(false)?;
        let second = second?;
        set_mtu_discovery(&second.socket, MtuDiscovery::Probe)?;
        // Connected to itself, it is given what it sends to itself, and so nothing.
        second.socket.connect(&self.local.into())?;
        Ok(second)
    }

    /// Asks the kernel to hand over trains of datagrams as one (`UDP_GRO`); an [`Inbox`](crate::Inbox) takes them apart.
    ///
    /// # Errors
    /// What the kernel says: `ENOPROTOOPT` where it cannot.
    pub fn take_trains(&self) -> io::Result<()> {
        Ok(setsockopt(&self.socket, sockopt::UdpGroSegment, &true)?)
    }

    /// Asks for room for `bytes` of datagrams in each direction; the kernel may give less (`net.core.rmem_max`), unless
    /// the process may overrule it (`CAP_NET_ADMIN`) and `force`s it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_buffers(&self, bytes: usize, force: bool) -> io::Result<()> {
        let forced = force
            && setsockopt(&self.socket, sockopt::RcvBufForce, &bytes).is_ok()
            && setsockopt(&self.socket, sockopt::SndBufForce, &bytes).is_ok();
        if forced {
            return Ok(());
        }
        self.socket.set_recv_buffer_size(bytes)?;
        self.socket.set_send_buffer_size(bytes)
    }

    /// Where a datagram to `destination` was addressed to, and whether an answer must say so to leave from there.
    pub(crate) fn asked(&self, destination: Option<IpAddr>) -> SocketAddr {
        destination.map_or(self.local, |ip| SocketAddr::new(ip, self.local.port()))
    }

    /// How many datagrams were lost since the last call, by the kernel's running count `overflow`.
    pub(crate) fn lost_since(&self, overflow: u32) -> u32 {
        overflow.wrapping_sub(self.overflow_seen.replace(overflow))
    }
}

/// The local address from which the kernel would send to `destination`, by its routes; nothing is sent.
///
/// # Errors
/// What the kernel says: `ENETUNREACH` where there is no route.
pub fn source_towards(destination: IpAddr) -> io::Result<IpAddr> {
    let discard = SocketAddr::new(destination, 9);
    let socket = Socket::new(Domain::for_address(discard), Type::DGRAM, Some(Protocol::UDP))?;
    socket.connect(&discard.into())?;
    Ok(socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?.ip())
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
