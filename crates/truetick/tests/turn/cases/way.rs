//! A client's way to the server: over UDP, or over TCP where a case is played again.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

use super::stage::PATIENCE;
use crate::server::Server;

thread_local! {
    /// Whether the callers of this thread's test come over TCP.
    static OVER_TCP: Cell<bool> = const { Cell::new(false) };
}

/// Plays `case` with callers over TCP.
pub(crate) fn over_tcp(case: fn()) {
    OVER_TCP.set(true);
    case();
}

pub(crate) enum Way {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Way {
    /// From `local` to the server's address of that family.
    pub(crate) fn to(server: &Server, local: IpAddr) -> Self {
        let of_family = |addrs: &[SocketAddr]| *addrs.iter().find(|addr| addr.is_ipv4() == local.is_ipv4()).unwrap();
        if OVER_TCP.get() {
            // From the address that the system chooses, unless another one is wanted.
            let socket = socket2::Socket::new(
                if local.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 },
                socket2::Type::STREAM,
                None,
            );
            let socket = socket.unwrap();
            socket.bind(&SocketAddr::new(local, 0).into()).unwrap();
            socket.connect(&of_family(&server.tcp).into()).unwrap();
            let stream = TcpStream::from(socket);
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            return Self::Tcp(stream);
        }
        let socket = UdpSocket::bind((local, 0)).unwrap();
        socket.connect(of_family(&server.listen)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::Udp(socket)
    }

    pub(crate) fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Tcp(stream) => stream.local_addr(),
        }
    }

    /// The socket of a client over UDP.
    pub(crate) fn udp(&self) -> &UdpSocket {
        match self {
            Self::Udp(socket) => socket,
            Self::Tcp(_) => panic!("over TCP"),
        }
    }

    /// Sends one message. Over TCP ChannelData is padded (RFC 8656 section 12.5).
    pub(crate) fn send(&self, message: &[u8]) {
        match self {
            Self::Udp(socket) => assert_eq!(socket.send(message).unwrap(), message.len()),
            Self::Tcp(stream) => {
                let mut stream = stream;
                let is_channel = message.first().is_some_and(|first| (0x40..=0x4F).contains(first));
                let padding = if is_channel { message.len().next_multiple_of(4) - message.len() } else { 0 };
                stream.write_all(&[message, &[0; 3][..padding]].concat()).unwrap();
            }
        }
    }

    /// The next message; over TCP without ChannelData's padding, which is zero.
    pub(crate) fn receive(&self) -> Vec<u8> {
        match self {
            Self::Udp(socket) => {
                let mut bytes = vec![0; 65_536];
                let length = socket.recv(&mut bytes).expect("an answer in time");
                bytes.truncate(length);
                bytes
            }
            Self::Tcp(stream) => {
                let mut stream = stream;
                let mut bytes = vec![0; 4];
                stream.read_exact(&mut bytes).expect("an answer in time");
                let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
                let is_channel = (0x40..=0x4F).contains(&bytes[0]);
                let total = if is_channel { 4 + length } else { 20 + length };
                bytes.resize(total.next_multiple_of(4), 0);
                stream.read_exact(&mut bytes[4..]).expect("the rest of it");
                assert!(bytes[total..].iter().all(|byte| *byte == 0), "padding is zero");
                bytes.truncate(total);
                bytes
            }
        }
    }

    /// Whether nothing is readable and the connection is open.
    pub(crate) fn hears_nothing(&self) -> bool {
        let heard = match self {
            Self::Udp(socket) => {
                socket.set_nonblocking(true).unwrap();
                let heard = socket.peek(&mut [0; 64]);
                socket.set_nonblocking(false).unwrap();
                heard
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true).unwrap();
                let heard = stream.peek(&mut [0; 64]);
                stream.set_nonblocking(false).unwrap();
                heard
            }
        };
        matches!(heard, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}
