//! The generator's side of the wire: one UDP socket that speaks for many addresses of 127.0.0.0/8.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt, sockopt::Ipv4PacketInfo,
};
use socket2::SockRef;

/// Ports are taken from here up: below the ports that servers relay from, so that no relay finds its port taken.
const PORT_FIRST: u16 = 20_000;
const BUFFER_LEN: usize = 4 << 20;

/// A socket. Bound to all addresses, it can send from any, and reports the destination of each datagram.
pub(crate) struct Face {
    socket: UdpSocket,
    pub(crate) port: u16,
    ancillary: Vec<u8>,
    buffer: Vec<u8>,
}

/// A datagram that came in.
pub(crate) struct Arrival<'a> {
    pub(crate) from: SocketAddrV4,
    /// Which of our addresses it came to.
    pub(crate) at: Ipv4Addr,
    pub(crate) bytes: &'a [u8],
}

impl Face {
    /// All addresses of this machine, on a port that is free on all of them.
    pub(crate) fn bind() -> io::Result<Self> {
        let mut ports = PORT_FIRST..32_768;
        let socket = loop {
            let port = ports.next().ok_or(io::ErrorKind::AddrInUse)?;
            match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)) {
                Ok(socket) => break socket,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        };
        socket.set_nonblocking(true)?;
        setsockopt(&socket, Ipv4PacketInfo, &true)?;
        // The kernel limits the buffer; datagrams that do not fit are counted as lost.
        SockRef::from(&socket).set_recv_buffer_size(BUFFER_LEN)?;
        SockRef::from(&socket).set_send_buffer_size(BUFFER_LEN)?;
        let port = socket.local_addr()?.port();
        Ok(Self { socket, port, ancillary: nix::cmsg_space!(libc::in_pktinfo), buffer: vec![0; 1 << 16] })
    }

    /// Sends `bytes` as one datagram from `source`.
    pub(crate) fn send(&self, source: Ipv4Addr, to: SocketAddrV4, bytes: &[u8]) -> Result<(), Errno> {
        let from = source_of(source);
        self.send_with(&[ControlMessage::Ipv4PacketInfo(&from)], to, bytes)
    }

    /// Sends `bytes` as datagrams of `segment_len` each, handed to the kernel in one piece.
    pub(crate) fn send_train(
        &self,
        source: Ipv4Addr,
        to: SocketAddrV4,
        bytes: &[u8],
        segment_len: u16,
    ) -> Result<(), Errno> {
        let from = source_of(source);
        let messages = [ControlMessage::Ipv4PacketInfo(&from), ControlMessage::UdpGsoSegments(&segment_len)];
        self.send_with(&messages, to, bytes)
    }

    fn send_with(&self, messages: &[ControlMessage<'_>], to: SocketAddrV4, bytes: &[u8]) -> Result<(), Errno> {
        let to = SockaddrIn::from(to);
        let pieces = [IoSlice::new(bytes)];
        sendmsg(self.socket.as_raw_fd(), &pieces, messages, MsgFlags::MSG_DONTWAIT, Some(&to)).map(|_| ())
    }

    /// The next datagram, if one is there.
    pub(crate) fn receive(&mut self) -> Result<Option<Arrival<'_>>, Errno> {
        let mut pieces = [IoSliceMut::new(&mut self.buffer)];
        let received = recvmsg::<SockaddrIn>(
            self.socket.as_raw_fd(),
            &mut pieces,
            Some(&mut self.ancillary),
            MsgFlags::MSG_DONTWAIT,
        );
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut at = Ipv4Addr::UNSPECIFIED;
        for message in received.cmsgs()? {
            if let ControlMessageOwned::Ipv4PacketInfo(found) = message {
                at = Ipv4Addr::from_bits(u32::from_be(found.ipi_addr.s_addr));
            }
        }
        let from = received.address.map_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), SocketAddrV4::from);
        let len = received.bytes;
        Ok(Some(Arrival { from, at, bytes: &self.buffer[..len] }))
    }
}

fn source_of(ip: Ipv4Addr) -> libc::in_pktinfo {
    let none = libc::in_addr { s_addr: 0 };
    libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: libc::in_addr { s_addr: ip.to_bits().to_be() }, ipi_addr: none }
}
