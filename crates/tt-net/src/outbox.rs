//! Datagrams to send at the end of a round.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use tt_model::ByteRange;

use crate::ancillary::Leaving;
use crate::sys::{Departure, Departures};
use crate::{FaultCounts, Inbox, IoFault, UdpSocket};

/// Gathers a round's answers and sends them in one system call for each socket (and 64 datagrams or trains).
///
/// Datagrams of one length from one socket to one receiver leave as a train (`UDP_SEGMENT`), the last of which may be
/// shorter: the kernel passes them down as one. Where it refuses a train, they leave one by one. Between different
/// receivers no order is kept.
///
/// Made in the thread that uses it: it is not `Send`.
#[derive(Debug)]
pub struct Outbox {
    heads: Box<[u8]>,
    heads_used: usize,
    queue: Vec<Queued>,
    capacity: usize,
    departures: Departures,
    /// For the datagrams of a refused train.
    singles: Departures,
    trains: Vec<Range<usize>>,
}

/// A datagram to send: a head from the outbox's own bytes, then a span of a received datagram, then padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The key of the socket it leaves through.
    pub key: u64,
    /// Who is to get it.
    pub to: SocketAddr,
    /// The local address it must leave from, on a socket bound to the unspecified address.
    pub source: Option<IpAddr>,
    /// Its traffic class: DSCP and ECN. Zero is the default, best effort.
    pub traffic_class: u8,
    /// Its time to live in hops. Zero is the system's default.
    pub hop_limit: u8,
    /// Over IPv6 it must not be fragmented on this host; over IPv4 that is the socket's choice, see
    /// [`UdpSocket::unfragmented`].
    pub whole: bool,
    /// Bytes at the front, the first `head_len` of the last [`Outbox::head`]; zero for none.
    pub head_len: usize,
    /// Index of the received datagram that is quoted, and the span of its bytes.
    pub quote: Option<(usize, ByteRange)>,
    /// Zero bytes at the end, at most three.
    pub padding: u8,
}

/// What became of a round's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Those of them that quoted a received one.
    pub quoting: u64,
    /// Datagrams that it refused, by reason.
    pub refused: FaultCounts,
    /// Datagrams whose socket is gone.
    pub orphaned: u64,
    /// Trains that the kernel refused; their datagrams left one by one, and are counted as those.
    pub trains_refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    key: u64,
    /// Brings together what goes to one receiver.
    bundle: u64,
    /// Position in the round; within a socket and a receiver the order is kept.
    order: u32,
    to: SocketAddr,
    source: Option<IpAddr>,
    traffic_class: u8,
    hop_limit: u8,
    whole: bool,
    head: (u32, u32),
    quote: Option<(u32, u32, u32)>,
    padding: u8,
}

/// Datagrams and trains of one system call.
const CALL: usize = 64;
/// The most datagrams of a train: what every kernel with `UDP_SEGMENT` takes.
const TRAIN_MAX: usize = 64;
/// The most bytes of a train: the longest payload of UDP over IPv4.
const TRAIN_LEN_MAX: usize = 65_507;
/// A head, a payload, padding.
const PIECES: usize = 3;
const ZEROS: [u8; 3] = [0; 3];

impl Outgoing {
    /// Bytes `span` of the received datagram `index`, to `to`, through the socket of `key`.
    #[must_use]
    pub fn quoting(key: u64, to: SocketAddr, index: usize, span: ByteRange) -> Self {
        Self { quote: Some((index, span)), ..Self::of_head(key, to, 0) }
    }

    /// The first `head_len` bytes of the last [`Outbox::head`], to `to`, through the socket of `key`.
    #[must_use]
    pub const fn of_head(key: u64, to: SocketAddr, head_len: usize) -> Self {
        Self { key, to, source: None, traffic_class: 0, hop_limit: 0, whole: false, head_len, quote: None, padding: 0 }
    }
}

impl Outbox {
    /// Room for `capacity` datagrams with `heads_len` bytes of their own together.
    #[must_use]
    pub fn new(capacity: usize, heads_len: usize) -> Self {
        Self {
            heads: vec![0; heads_len].into_boxed_slice(),
            heads_used: 0,
            queue: Vec::with_capacity(capacity),
            capacity,
            departures: Departures::new(CALL, capacity * PIECES),
            singles: Departures::new(TRAIN_MAX, TRAIN_MAX * PIECES),
            trains: Vec::with_capacity(CALL),
        }
    }

    /// Where to write the next datagram's head.
    pub fn head(&mut self) -> &mut [u8] {
        &mut self.heads[self.heads_used..]
    }

    /// How many more datagrams it can take.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.queue.len()
    }

    /// Queues `outgoing` for the next [`flush`](Self::flush), or returns `false` where there is no room.
    pub fn push(&mut self, outgoing: Outgoing) -> bool {
        let end = self.heads_used + outgoing.head_len;
        if self.room() == 0 || end > self.heads.len() {
            return false;
        }
        self.queue.push(Queued {
            key: outgoing.key,
            bundle: bundle(outgoing.to),
            order: self.queue.len() as u32,
            to: outgoing.to,
            source: outgoing.source,
            traffic_class: outgoing.traffic_class,
            hop_limit: outgoing.hop_limit,
            whole: outgoing.whole,
            head: (self.heads_used as u32, end as u32),
            quote: outgoing.quote.map(|(index, span)| (index as u32, span.start, span.end)),
            padding: outgoing.padding.min(ZEROS.len() as u8),
        });
        self.heads_used = end;
        true
    }

    /// Sends all, socket by socket, quoting from `inbox`. `socket` finds the socket of a key.
    ///
    /// # Panics
    /// If a quote is not within the datagrams of `inbox`.
    pub fn flush<'s>(&mut self, inbox: &Inbox, socket: impl Fn(u64) -> Option<&'s UdpSocket>) -> Sent {
        let mut sent = Sent::default();
        self.queue.sort_unstable_by_key(|queued| (queued.key, queued.bundle, queued.order));
        let Self { heads, queue, departures, singles, trains, .. } = self;
        for of_socket in queue.chunk_by(|a, b| a.key == b.key) {
            let Some(socket) = socket(of_socket[0].key) else {
                sent.orphaned += of_socket.len() as u64;
                continue;
            };
            sent.datagrams += of_socket.len() as u64;
            sent.quoting += of_socket.iter().filter(|queued| queued.quote.is_some()).count() as u64;
            let mut at = 0;
            while at < of_socket.len() {
                trains.clear();
                while at < of_socket.len() && trains.len() < CALL {
                    let start = at;
                    at += train_len(&of_socket[at..]);
                    trains.push(start..at);
                }
                let each = trains.iter().map(|train| gather(&of_socket[train.clone()], heads, inbox));
                departures.send(socket, each, |index, error| {
                    let train = &of_socket[trains[index].clone()];
                    if train.len() == 1 || !is_of_train(&error) {
                        sent.refuse(train, &error);
                        return;
                    }
                    sent.trains_refused += 1;
                    let each = train.chunks(1).map(|single| gather(single, heads, inbox));
                    singles.send(socket, each, |index, error| sent.refuse(&train[index..=index], &error));
                });
            }
        }
        self.queue.clear();
        self.heads_used = 0;
        sent
    }
}

impl Sent {
    /// Takes back `train`, which was counted as sent.
    fn refuse(&mut self, train: &[Queued], error: &io::Error) {
        for queued in train {
            self.datagrams -= 1;
            self.quoting -= u64::from(queued.quote.is_some());
            self.refused.record(IoFault::of(error));
        }
    }
}

impl Queued {
    fn len(&self) -> usize {
        let quoted = self.quote.map_or(0, |(_, start, end)| end - start);
        (self.head.1 - self.head.0 + quoted) as usize + usize::from(self.padding)
    }

    /// Whether `next` may leave in the same train: the same way, with the same header fields.
    fn goes_with(&self, next: &Self) -> bool {
        self.to == next.to
            && self.source == next.source
            && self.traffic_class == next.traffic_class
            && self.hop_limit == next.hop_limit
            && self.whole == next.whole
    }

    fn pieces<'a>(&self, heads: &'a [u8], inbox: &'a Inbox) -> [&'a [u8]; PIECES] {
        let payload = self
            .quote
            .map_or(&[][..], |(index, start, end)| &inbox.datagram(index as usize).bytes[start as usize..end as usize]);
        [&heads[self.head.0 as usize..self.head.1 as usize], payload, &ZEROS[..usize::from(self.padding)]]
    }
}

/// A number that tells most receivers apart.
fn bundle(to: SocketAddr) -> u64 {
    let ip = match to.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ ip.to_bits() as u64,
    };
    ip.rotate_left(16) ^ u64::from(to.port())
}

/// How many datagrams at the front of `queue` leave together: of one length, but the last may be shorter.
fn train_len(queue: &[Queued]) -> usize {
    let first = &queue[0];
    let (segment_len, mut bytes) = (first.len(), first.len());
    for (count, next) in queue.iter().enumerate().skip(1) {
        let len = next.len();
        let fits = len > 0 && len <= segment_len && bytes + len <= TRAIN_LEN_MAX && first.goes_with(next);
        if count == TRAIN_MAX || !fits {
            return count;
        }
        if len < segment_len {
            return count + 1;
        }
        bytes += len;
    }
    queue.len()
}

fn gather<'a>(
    train: &'a [Queued],
    heads: &'a [u8],
    inbox: &'a Inbox,
) -> Departure<impl Iterator<Item = &'a [u8]> + use<'a>> {
    let Queued { to, source, traffic_class, hop_limit, whole, .. } = train[0];
    let segment_len = if train.len() > 1 { train[0].len() as u16 } else { 0 };
    let leaving = Leaving { is_ipv6: to.is_ipv6(), source, traffic_class, hop_limit, whole, segment_len };
    Departure { to, leaving, pieces: train.iter().flat_map(|queued| queued.pieces(heads, inbox)) }
}

/// Whether the kernel refuses the train and not its datagrams: a segment longer than the path's MTU, or a device that
/// cannot (`udp(7)`).
fn is_of_train(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE))
}
