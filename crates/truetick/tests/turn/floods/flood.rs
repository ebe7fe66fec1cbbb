//! What attackers send, from ten thousand addresses at a consistent rate.

use std::collections::VecDeque;
use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc::{in_addr, in_pktinfo};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg};
use socket2::{Domain, Socket, Type};

use super::network::source;
use crate::server::is_given;

/// Datagrams a second, to a program of this build and to a given one, which is optimised.
const RATES: [u32; 2] = [10_000, 200_000];
/// Connections a second, and how many of them are open at a time.
const CONNECTIONS: u32 = 1_500;
const OPEN: usize = 256;
/// A connection that is not made by then is given up.
const CONNECT: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(1);

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Binding requests.
    Binding,
    /// Allocate requests without credentials: each is answered 401.
    Unauthenticated,
    /// Allocate requests with a made-up nonce and a made-up MESSAGE-INTEGRITY.
    Forged,
    /// Bytes of no protocol.
    Junk,
}

/// What a flood came to, in payload bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Came {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) replies: u64,
    pub(crate) reply_bytes: u64,
}

impl Kind {
    /// The bytes of the `number`th message.
    pub(crate) fn message(self, number: u32) -> Vec<u8> {
        let mut tid = [0x33; 12];
        tid[..4].copy_from_slice(&number.to_be_bytes());
        let header = |kind: u16, length: u16| {
            [&kind.to_be_bytes()[..], &length.to_be_bytes(), &[0x21, 0x12, 0xA4, 0x42], &tid].concat()
        };
        let transport = [0, 0x19, 0, 4, 17, 0, 0, 0];
        match self {
            Self::Binding => header(0x0001, 0),
            Self::Unauthenticated => [header(0x0003, 8), transport.to_vec()].concat(),
            Self::Forged => {
                let mut attributes = transport.to_vec();
                for (kind, value) in [(0x0006u16, &b"mallory1"[..]), (0x0014, b"truetick"), (0x0015, &[b'f'; 32])] {
                    attributes.extend(kind.to_be_bytes());
                    attributes.extend((value.len() as u16).to_be_bytes());
                    attributes.extend(value);
                }
                attributes.extend([0, 8, 0, 20]);
                attributes.extend(tid.iter().chain(&tid[..8]));
                [header(0x0003, attributes.len() as u16), attributes].concat()
            }
            Self::Junk => tid.iter().map(|byte| byte ^ 0x95).cycle().take(20 + number as usize % 180).collect(),
        }
    }
}

/// Sends datagrams of `kind` to `server` for `duration`, each from the next source, and counts what comes back.
pub(crate) fn udp(kind: Kind, server: SocketAddr, duration: Duration) -> Came {
    let SocketAddr::V4(server) = server else { panic!("the flood is of IPv4") };
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(STEP)).unwrap();
    let rate = RATES[usize::from(is_given())];
    let started = Instant::now();
    let (mut came, mut number) = (Came::default(), 0);
    while started.elapsed() < duration {
        let due = (started.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000) as u32;
        // What it cannot send in time it does not send later, for ever.
        while number < due && started.elapsed() < duration {
            let message = kind.message(number);
            if send_from(&socket, server, number, &message) {
                came.sent += 1;
                came.sent_bytes += message.len() as u64;
            }
            number += 1;
        }
        receive(&socket, &mut came, STEP);
    }
    receive(&socket, &mut came, Duration::from_millis(300));
    came
}

/// The same over TCP: each message on a new connection, which is reset afterwards.
pub(crate) fn tcp(kind: Kind, server: SocketAddr, duration: Duration) -> Came {
    let started = Instant::now();
    let (mut came, mut number, mut open) = (Came::default(), 0, VecDeque::new());
    while started.elapsed() < duration {
        let due = (started.elapsed().as_millis() * u128::from(CONNECTIONS) / 1_000) as u32;
        while number < due {
            let message = kind.message(number);
            if let Ok(connection) = send_on_connection(server, number, &message) {
                came.sent += 1;
                came.sent_bytes += message.len() as u64;
                open.push_back(connection);
            }
            number += 1;
            if open.len() > OPEN {
                open.pop_front().into_iter().for_each(|connection| reset(connection, &mut came));
            }
        }
        std::thread::park_timeout(STEP);
    }
    open.into_iter().for_each(|connection| reset(connection, &mut came));
    came
}

fn send_on_connection(server: SocketAddr, number: u32, message: &[u8]) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(source(number).into(), 0).into())?;
    socket.connect_timeout(&server.into(), CONNECT)?;
    socket.set_linger(Some(Duration::ZERO))?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(message)?;
    Ok(stream)
}

fn reset(mut connection: TcpStream, came: &mut Came) {
    let mut bytes = [0; 2_048];
    connection.set_nonblocking(true).unwrap();
    if let Ok(length) = connection.read(&mut bytes)
        && length > 0
    {
        came.replies += 1;
        came.reply_bytes += length as u64;
    }
}

fn send_from(socket: &UdpSocket, server: SocketAddrV4, number: u32, message: &[u8]) -> bool {
    let from = in_addr { s_addr: u32::from_ne_bytes(source(number).octets()) };
    let info = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: from, ipi_addr: in_addr { s_addr: 0 } };
    let control = [ControlMessage::Ipv4PacketInfo(&info)];
    let to = SockaddrIn::from(server);
    sendmsg(socket.as_raw_fd(), &[IoSlice::new(message)], &control, MsgFlags::empty(), Some(&to)).is_ok()
}

/// Takes what is there, and what comes until `patience` is over.
fn receive(socket: &UdpSocket, came: &mut Came, patience: Duration) {
    let until = Instant::now() + patience;
    let mut bytes = [0; 2_048];
    loop {
        match socket.recv_from(&mut bytes) {
            Ok((length, _)) => {
                came.replies += 1;
                came.reply_bytes += length as u64;
            }
            Err(_) if Instant::now() >= until => return,
            Err(_) => {}
        }
    }
}
