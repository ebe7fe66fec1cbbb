//! UDP sockets.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use crate::SourceFilter;
use crate::sys::{MtuDiscovery, set_mtu_discovery, socket_memory};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use tt_model::IpFamily;

/// The port of the Discard protocol (RFC 863), which sends nothing.
const DISCARD: u16 = 9;

/// A non-blocking UDP socket that knows the address it is bound to.
///
/// Over IPv4 it sends with a DF bit of 0, unless [`Outgoing::dont_fragment`](crate::Outgoing::dont_fragment) is set.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    local: SocketAddr,
    /// The treatment of long packets that is set; IPv4 only.
    mtu_discovery: Cell<MtuDiscovery>,
    /// The kernel's count of lost datagrams at the last read.
    overflow_seen: Cell<u32>,
    reports_lost: bool,
    buffers: Buffers,
}

/// Whose choice the sizes of the buffers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffers {
    /// This process's.
    Own,
    /// That of the process that has passed the socket: without `CAP_NET_ADMIN` this one could make them smaller only.
    Passed,
}

/// A receive buffer, in bytes of the kernel's accounting, which counts a datagram with its overhead.
#[derive(Clone, Copy, Debug)]
pub struct QueueFill {
    /// Bytes in use. The kernel gives back what was read in steps of up to a quarter of the size.
    pub used: u32,
    /// Bytes there are.
    pub size: u32,
}

/// Has the kernel report the fields of the IP header that are relayed, and what it drops. Returns whether it reports the
/// latter: QEMU's emulated kernel does not know `SO_RXQ_OVFL`.
fn report_fields(socket: &Socket, addr: SocketAddr) -> io::Result<bool> {
    if addr.is_ipv6() {
        socket.set_recv_tclass_v6(true)?;
        socket.set_recv_hoplimit_v6(true)?;
    } else {
        socket.set_recv_tos_v4(true)?;
        setsockopt(socket, sockopt::Ipv4RecvTtl, &true)?;
        set_mtu_discovery(socket, MtuDiscovery::Omit)?;
    }
    match setsockopt(socket, sockopt::RxqOvfl, &1) {
        Ok(()) => Ok(true),
        Err(Errno::ENOPROTOOPT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Has the kernel report the address that each datagram was sent to, if `addr` leaves it open.
fn report_destination(socket: &Socket, addr: SocketAddr) -> io::Result<()> {
    match addr {
        _ if !addr.ip().is_unspecified() => Ok(()),
        SocketAddr::V4(_) => Ok(setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?),
        SocketAddr::V6(_) => Ok(setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?),
    }
}

impl UdpSocket {
    /// Opens `count` sockets on `addr`; the kernel distributes clients among them, each five-tuple always to the same
    /// one (`SO_REUSEPORT`). Port 0: one free port for all of them. Bound to the unspecified address, they report the
    /// local address that each datagram was sent to.
    ///
    /// # Errors
    /// `EADDRINUSE` also where the other holder would share the port.
    pub fn listeners(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        // The first one is bound alone, so that a second server on this port is an error and not a rival.
        let first = Self::open(addr, false)?;
        first.socket.set_reuse_port(true)?;
        report_destination(&first.socket, first.local)?;
        let further = Self::further_listeners(first.local, count.saturating_sub(1))?;
        Ok(std::iter::once(first).chain(further).take(count).collect())
    }

    /// Opens `count` more sockets, on a port that this user listens on with [`UdpSocket::listeners`]. On the same address
    /// they join the others.
    ///
    /// # Errors
    /// `EADDRINUSE` if a holder of the port does not share it.
    pub fn further_listeners(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let open = |_| {
            let socket = Self::open(addr, true)?;
            report_destination(&socket.socket, addr)?;
            Ok(socket)
        };
        (0..count).map(open).collect()
    }

    /// Has the kernel give no more datagrams to this socket, but to the others of its group: it is connected to an
    /// address that sends nothing. What has arrived can be read, and sending works on. A passed socket stays as it is:
    /// the process that has passed it has it, too.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn leave_group(&self) -> io::Result<()> {
        if self.buffers == Buffers::Passed {
            return Ok(());
        }
        let ip = match self.local.ip() {
            IpAddr::V4(ip) => IpAddr::V4(if ip.is_unspecified() { Ipv4Addr::LOCALHOST } else { ip }),
            IpAddr::V6(ip) => IpAddr::V6(if ip.is_unspecified() { Ipv6Addr::LOCALHOST } else { ip }),
        };
        self.socket.connect(&SocketAddr::new(ip, DISCARD).into())
    }

    /// Opens a socket for what a program in the kernel gives to it, whatever it was sent to
    /// ([`Inbox::receive_steered`](crate::Inbox::receive_steered)). It is bound to the loopback address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn steered(family: IpFamily) -> io::Result<Self> {
        let ip = match family {
            IpFamily::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpFamily::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let socket = Self::open(SocketAddr::new(ip, 0), false)?;
        match family {
            IpFamily::V4 => setsockopt(&socket.socket, sockopt::Ipv4OrigDstAddr, &true)?,
            IpFamily::V6 => setsockopt(&socket.socket, sockopt::Ipv6OrigDstAddr, &true)?,
        }
        socket.enable_gro()?;
        Ok(socket)
    }

    /// Opens one socket on `addr`.
    ///
    /// # Errors
    /// `EADDRINUSE`, `EADDRNOTAVAIL`, `EMFILE`, ...
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        Self::open(addr, false)
    }

    fn open(addr: SocketAddr, sharing: bool) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if sharing {
            socket.set_reuse_port(true)?;
        }
        let reports_lost = report_fields(&socket, addr)?;
        socket.bind(&addr.into())?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self::new(socket, local, reports_lost, Buffers::Own))
    }

    /// Takes a socket that another process has bound to `local`.
    pub(crate) fn passed(socket: Socket, local: SocketAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let reports_lost = report_fields(&socket, local)?;
        report_destination(&socket, local)?;
        let socket = Self::new(socket, local, reports_lost, Buffers::Passed);
        // That of a process before this one.
        socket.set_source_filter(None)?;
        Ok(socket)
    }

    fn new(socket: Socket, local: SocketAddr, reports_lost: bool, buffers: Buffers) -> Self {
        let mtu_discovery = Cell::new(MtuDiscovery::Omit);
        Self { socket, local, mtu_discovery, overflow_seen: Cell::new(0), reports_lost, buffers }
    }

    /// Whether the kernel reports how many datagrams it drops at a full buffer ([`Received::lost`](crate::Received::lost));
    /// if not, that is always 0.
    #[must_use]
    pub const fn reports_lost(&self) -> bool {
        self.reports_lost
    }

    /// The address it is bound to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Enables ICMP errors about sent datagrams for an [`IcmpInbox`](crate::IcmpInbox) (`IP_RECVERR`, `IPV6_RECVERR`).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn enable_icmp_errors(&self) -> io::Result<()> {
        match self.local {
            SocketAddr::V4(_) => Ok(setsockopt(&self.socket, sockopt::Ipv4RecvErr, &true)?),
            SocketAddr::V6(_) => Ok(setsockopt(&self.socket, sockopt::Ipv6RecvErr, &true)?),
        }
    }

    /// Sets the DF bit of the next datagrams over IPv4: Linux has no control message for it. Over IPv6 each datagram
    /// carries the choice (`IPV6_DONTFRAG`).
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn set_df(&self, dont_fragment: bool) -> io::Result<()> {
        let wanted = if dont_fragment { MtuDiscovery::Probe } else { MtuDiscovery::Omit };
        if self.mtu_discovery.get() == wanted || self.local.is_ipv6() {
            return Ok(());
        }
        set_mtu_discovery(&self.socket, wanted)?;
        self.mtu_discovery.set(wanted);
        Ok(())
    }

    /// Returns a second descriptor of this socket: both send and receive the same, and the last one closes it. Only one
    /// of the two may send, since each remembers the DF bit that it has set.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            local: self.local,
            mtu_discovery: self.mtu_discovery.clone(),
            overflow_seen: self.overflow_seen.clone(),
            reports_lost: self.reports_lost,
            buffers: self.buffers,
        })
    }

    /// Enables GRO: the kernel returns batches of datagrams (`UDP_GRO`), which an [`Inbox`](crate::Inbox) splits.
    ///
    /// # Errors
    /// `ENOPROTOOPT` without kernel support.
    pub fn enable_gro(&self) -> io::Result<()> {
        Ok(setsockopt(&self.socket, sockopt::UdpGroSegment, &true)?)
    }

    /// Sets the size of the send and receive buffers to `bytes`. The kernel limits it to `net.core.rmem_max` and
    /// `wmem_max`, unless `force` is set and the process has `CAP_NET_ADMIN`. Otherwise a passed socket keeps its sizes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_buffers(&self, bytes: usize, force: bool) -> io::Result<()> {
        let forced = force
            && setsockopt(&self.socket, sockopt::RcvBufForce, &bytes).is_ok()
            && setsockopt(&self.socket, sockopt::SndBufForce, &bytes).is_ok();
        if forced || self.buffers == Buffers::Passed {
            return Ok(());
        }
        self.socket.set_recv_buffer_size(bytes)?;
        self.socket.set_send_buffer_size(bytes)
    }

    /// Has the kernel drop datagrams of other sources than those of `filter` before they are queued; `None` ends that.
    /// They count as lost ([`Received::lost`](crate::Received::lost)).
    ///
    /// # Errors
    /// The kernel's error; nothing is dropped then.
    pub fn set_source_filter(&self, filter: Option<&SourceFilter>) -> io::Result<()> {
        match filter.map_or_else(|| self.socket.detach_filter(), |filter| filter.attach(&self.socket)) {
            // There was none.
            Err(error) if filter.is_none() && error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            done => done,
        }
    }

    /// Returns how much of its receive buffer is in use (`SO_MEMINFO`).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn queue_fill(&self) -> io::Result<QueueFill> {
        let memory = socket_memory(&self.socket)?;
        Ok(QueueFill { used: memory[0], size: memory[1] })
    }

    /// Sets the size of the receive buffer to `bytes`, or the kernel's minimum if that is more.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_recv_buffer_size(bytes)
    }

    /// Discards up to `most` datagrams that have arrived, and pending errors. Returns the number of datagrams, or of
    /// batches with GRO.
    pub fn discard(&self, most: usize) -> u64 {
        let mut discarded = 0;
        for _ in 0..most {
            match self.socket.recv(&mut [MaybeUninit::uninit()]) {
                Ok(_) => discarded += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        discarded
    }

    /// The local address of a datagram received for `destination`.
    pub(crate) fn asked(&self, destination: Option<IpAddr>) -> SocketAddr {
        destination.map_or(self.local, |ip| SocketAddr::new(ip, self.local.port()))
    }

    /// Number of datagrams lost since the last call; `overflow` is the kernel's running count.
    pub(crate) fn lost_since(&self, overflow: u32) -> u32 {
        overflow.wrapping_sub(self.overflow_seen.replace(overflow))
    }
}

/// Returns the local address that the kernel's routes select for `destination`; sends nothing.
///
/// # Errors
/// `ENETUNREACH` where there is no route.
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
