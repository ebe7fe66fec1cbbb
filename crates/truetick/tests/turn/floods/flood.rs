//! What attackers send, from ten thousand addresses at a consistent rate.

use std::collections::VecDeque;
use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, bind, sendmmsg};
use socket2::{Domain, Socket, Type};

use super::network::{HARDWARE, LINK, SOURCES, received_by, source};
use crate::server::is_given;

/// Datagrams a second, to a program of this build and to a given one, which is optimised.
const RATES: [u32; 2] = [10_000, 200_000];
/// Connections a second, and how many of them are open at a time.
const CONNECTIONS: u32 = 1_500;
const OPEN: usize = 256;
/// A connection that is not made by then is given up.
const CONNECT: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(1);
/// Datagrams of one system call.
const BATCH: u32 = 64;
/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;
const ETHERNET: usize = 14;
/// The type of a frame with an IPv4 datagram (RFC 894).
const IPV4: [u8; 2] = [8, 0];

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
    /// Payload bytes of all answers that came over the attackers' link. Only for datagrams.
    pub(crate) link_bytes: u64,
    /// How long it was sent.
    pub(crate) seconds: f64,
}

impl Came {
    /// Datagrams or connections a second.
    pub(crate) fn rate(&self) -> f64 {
        self.sent as f64 / self.seconds
    }
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
    udp_at(RATES[usize::from(is_given())], kind, server, duration)
}

/// The same with `rate` datagrams a second.
pub(crate) fn udp_at(rate: u32, kind: Kind, server: SocketAddr, duration: Duration) -> Came {
    let SocketAddr::V4(server) = server else { panic!("the flood is of IPv4") };
    // Answers to every source come in here.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let mut forger = Forger::new(kind, socket.local_addr().unwrap().port(), server);
    socket.set_nonblocking(true).unwrap();
    let (started, before) = (Instant::now(), received_by(LINK));
    let (mut came, mut number) = (Came::default(), 0);
    while started.elapsed() < duration {
        let due = (started.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000) as u32;
        // What it cannot send in time it does not send later, for ever.
        while number < due && started.elapsed() < duration {
            number += forger.send(number..due.min(number + BATCH), &mut came);
        }
        receive(&socket, &mut came);
        std::thread::park_timeout(STEP);
    }
    came.seconds = started.elapsed().as_secs_f64();
    let last = Instant::now() + Duration::from_millis(300);
    while Instant::now() < last {
        receive(&socket, &mut came);
        std::thread::park_timeout(STEP);
    }
    // A socket loses what comes while datagrams are sent, so that its count is no bound of what was sent to it.
    let [packets, bytes] = received_by(LINK);
    came.link_bytes = (bytes - before[1]) - (packets - before[0]) * (HEADERS + ETHERNET) as u64;
    came
}

/// Writes whole Ethernet frames, so that each of a batch has another source. They pass no route and no queue of IP,
/// which would take most of a CPU at such rates.
struct Forger {
    socket: Socket,
    headers: MultiHeaders<()>,
    /// A frame from each source. This build is not optimised, and would make too few in time.
    frames: Vec<Vec<u8>>,
}

impl Forger {
    fn new(kind: Kind, from_port: u16, to: SocketAddrV4) -> Self {
        let of_link = getifaddrs().unwrap().find(|it| it.interface_name == LINK && is_link(it)).unwrap();
        let link = *of_link.address.as_ref().and_then(SockaddrStorage::as_link_addr).unwrap();
        // Protocol 0: it receives nothing.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).unwrap();
        bind(socket.as_raw_fd(), &link).unwrap();
        let from = link.addr().unwrap();
        let frame = |number| [&HARDWARE[..], &from, &IPV4, &datagram(number, from_port, to, kind)].concat();
        let frames = (0..SOURCES).map(frame).collect();
        Self { socket, headers: MultiHeaders::preallocate(BATCH as usize, None), frames }
    }

    /// Sends the datagrams of `numbers`, fewer where the sources begin again, and returns how many.
    fn send(&mut self, numbers: std::ops::Range<u32>, came: &mut Came) -> u32 {
        let first = (numbers.start % SOURCES) as usize;
        let last = self.frames.len().min(first + numbers.len());
        let slices: Vec<[IoSlice; 1]> = self.frames[first..last].iter().map(|it| [IoSlice::new(it)]).collect();
        let to = [None; BATCH as usize];
        let sent = sendmmsg(self.socket.as_raw_fd(), &mut self.headers, &slices, to, [], MsgFlags::empty());
        let sent = sent.map_or(0, Iterator::count);
        came.sent += sent as u64;
        let payload = |frame: &Vec<u8>| (frame.len() - ETHERNET - HEADERS) as u64;
        came.sent_bytes += self.frames[first..][..sent].iter().map(payload).sum::<u64>();
        slices.len() as u32
    }
}

fn is_link(of: &InterfaceAddress) -> bool {
    of.address.as_ref().and_then(SockaddrStorage::as_link_addr).is_some()
}

/// RFC 791 section 3.1 and RFC 768. UDP's checksum is optional and left out.
fn datagram(number: u32, from_port: u16, to: SocketAddrV4, kind: Kind) -> Vec<u8> {
    let message = kind.message(number);
    let length = HEADERS + message.len();
    let mut datagram = Vec::with_capacity(length);
    datagram.extend([0x45, 0]);
    datagram.extend((length as u16).to_be_bytes());
    datagram.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    datagram.extend(source(number).octets());
    datagram.extend(to.ip().octets());
    let sum: u32 = datagram.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum >> 16) + (sum & 0xFFFF);
    let checksum = !((folded >> 16) + folded) as u16;
    datagram[10..12].copy_from_slice(&checksum.to_be_bytes());
    datagram.extend(from_port.to_be_bytes());
    datagram.extend(to.port().to_be_bytes());
    datagram.extend(((length - 20) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(message);
    datagram
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
    came.seconds = started.elapsed().as_secs_f64();
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

/// Takes what is there.
fn receive(socket: &UdpSocket, came: &mut Came) {
    let mut bytes = [0; 2_048];
    while let Ok((length, _)) = socket.recv_from(&mut bytes) {
        came.replies += 1;
        came.reply_bytes += length as u64;
    }
}
