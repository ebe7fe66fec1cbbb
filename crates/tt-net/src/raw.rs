//! Datagrams that leave by a raw socket, from any port of an address without a socket that is bound to it.

mod headers;
mod icmp;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};
use tt_model::ByteRange;

use crate::ancillary::Leaving;
use crate::sys::{Departure, Departures};
use crate::{Inbox, Sent, UdpSocket};
use headers::{Fields, HEADERS_LEN_MAX};
pub use icmp::{IcmpSocket, RawIcmpInbox};

/// Datagrams per system call.
const CALL: usize = 64;
/// Sockets for datagrams that are to be fragmented.
const FRAGMENTING_MAX: usize = 16;

/// A raw socket that sends UDP datagrams from one address (`IPPROTO_RAW`). It receives nothing, and does not fragment.
///
/// What it sends passes routes, nftables and conntrack as a UDP socket's datagrams do.
#[derive(Debug)]
pub struct RawSocket {
    socket: Socket,
}

impl RawSocket {
    /// Opens a socket that sends from `source`.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW; `EADDRNOTAVAIL` if this host does not have the address.
    pub fn open(source: IpAddr) -> io::Result<Self> {
        let any_port = SocketAddr::new(source, 0);
        let protocol = Protocol::from(libc::IPPROTO_RAW);
        let socket = Socket::new(Domain::for_address(any_port), Type::RAW.nonblocking(), Some(protocol))?;
        socket.bind(&any_port.into())?;
        Ok(Self { socket })
    }

    /// Sets the size of the send buffer in bytes, as [`UdpSocket::set_buffers`] does.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        use nix::sys::socket::{setsockopt, sockopt};
        match setsockopt(&self.socket, sockopt::SndBufForce, &bytes) {
            Ok(()) => Ok(()),
            Err(_) => self.socket.set_send_buffer_size(bytes),
        }
    }

    /// Returns a second descriptor of this socket.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()? })
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sockets bound to the ports that have sent datagrams longer than an MTU: the system fragments them.
#[derive(Debug, Default)]
pub struct FragmentingSockets {
    /// Those used last are at the end.
    sockets: VecDeque<(SocketAddr, UdpSocket)>,
}

impl FragmentingSockets {
    /// Closes the socket of a port that has no relay any more.
    pub fn close(&mut self, from: SocketAddr) {
        self.sockets.retain(|(bound, _)| *bound != from);
    }

    fn get(&mut self, from: SocketAddr) -> io::Result<&UdpSocket> {
        let used = match self.sockets.iter().position(|(bound, _)| *bound == from) {
            Some(place) => self.sockets.remove(place),
            None => Some((from, UdpSocket::bind(from)?)),
        };
        if self.sockets.len() == FRAGMENTING_MAX {
            self.sockets.pop_front();
        }
        self.sockets.extend(used);
        self.sockets.back().map(|(_, socket)| socket).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A datagram to send: a range of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOutgoing {
    /// The number of the raw socket to send by.
    pub exit: usize,
    /// The address and port that it leaves from.
    pub from: SocketAddr,
    /// Its receiver, of the same family.
    pub to: SocketAddr,
    /// Its traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Its time to live in hops. Zero is 64.
    pub hop_limit: u8,
    /// Whether it must not be fragmented: over IPv4 a DF bit of 1, over IPv6 not by this host.
    pub dont_fragment: bool,
    /// Index of the received datagram, and the range of bytes.
    pub quote: (usize, ByteRange),
}

/// Collects the datagrams of a round and sends them with one system call per raw socket and 64 datagrams.
///
/// Not `Send`: create it in the thread that uses it.
#[derive(Debug)]
pub struct RawOutbox {
    queue: Vec<RawOutgoing>,
    capacity: usize,
    heads: Box<[[u8; HEADERS_LEN_MAX]]>,
    departures: Departures,
    /// Places in the queue of those that are too long for a device and may be fragmented.
    too_long: Vec<usize>,
}

impl RawOutbox {
    /// Creates an outbox for `capacity` datagrams.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: Vec::with_capacity(capacity),
            capacity,
            heads: vec![[0; HEADERS_LEN_MAX]; CALL].into_boxed_slice(),
            departures: Departures::new(CALL, CALL * 2),
            too_long: Vec::with_capacity(CALL),
        }
    }

    /// Returns the number of free places.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.queue.len()
    }

    /// Queues a datagram for the next [`flush`](Self::flush), or returns `false` where there is no room.
    pub fn push(&mut self, outgoing: RawOutgoing) -> bool {
        let has_room = self.room() > 0;
        if has_room {
            self.queue.push(outgoing);
        }
        has_room
    }

    /// Sends all datagrams with quotes from `inbox`, those of one raw socket in the order in which they were queued.
    ///
    /// # Panics
    /// If a quote is not within the datagrams of `inbox`.
    pub fn flush(&mut self, inbox: &Inbox, exits: &[RawSocket], fragmenting: &mut FragmentingSockets) -> Sent {
        let mut sent = Sent::default();
        // Stable, and no work for one socket.
        self.queue.sort_by_key(|outgoing| outgoing.exit);
        let Self { queue, heads, departures, too_long, .. } = self;
        for of_exit in queue.chunk_by(|one, other| one.exit == other.exit) {
            let Some(exit) = exits.get(of_exit[0].exit) else {
                sent.orphaned += of_exit.len() as u64;
                continue;
            };
            for batch in of_exit.chunks(CALL) {
                sent.datagrams += batch.len() as u64;
                sent.quoting += batch.len() as u64;
                too_long.clear();
                for (head, outgoing) in heads.iter_mut().zip(batch) {
                    headers::write(head, &Fields::of(outgoing), quoted(inbox, outgoing));
                }
                let each = heads.iter().zip(batch).map(|(head, outgoing)| Departure {
                    to: SocketAddr::new(outgoing.to.ip(), 0),
                    leaving: Leaving::default(),
                    pieces: [&head[..headers::len(outgoing.from)], quoted(inbox, outgoing)].into_iter(),
                });
                departures.send(exit, each, |index, error| {
                    if error.raw_os_error() == Some(libc::EMSGSIZE) && !batch[index].dont_fragment {
                        too_long.push(index);
                    } else {
                        sent.refuse_one(&error);
                    }
                });
                for index in too_long.drain(..) {
                    let outgoing = &batch[index];
                    let done = fragmenting.get(outgoing.from).map(|socket| {
                        let each = std::iter::once(bound(outgoing, quoted(inbox, outgoing)));
                        departures.send(socket, each, |_, error| sent.refuse_one(&error));
                    });
                    if let Err(error) = done {
                        sent.refuse_one(&error);
                    }
                }
            }
        }
        queue.clear();
        sent
    }
}

/// A datagram that leaves by the socket of its port.
fn bound<'a>(outgoing: &RawOutgoing, payload: &'a [u8]) -> Departure<std::iter::Once<&'a [u8]>> {
    let RawOutgoing { traffic_class, hop_limit, .. } = *outgoing;
    let leaving = Leaving { is_ipv6: outgoing.to.is_ipv6(), traffic_class, hop_limit, ..Leaving::default() };
    Departure { to: outgoing.to, leaving, pieces: std::iter::once(payload) }
}

fn quoted<'a>(inbox: &'a Inbox, outgoing: &RawOutgoing) -> &'a [u8] {
    let (index, range) = outgoing.quote;
    &inbox.datagram(index).bytes[range.to_range()]
}
