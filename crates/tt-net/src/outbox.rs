//! Datagrams to send at the end of a round.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use tt_model::ByteRange;

use crate::ancillary::Leaving;
use crate::sys::{Departure, Departures};
use crate::{FaultCounts, Inbox, IoFault, UdpSocket};

/// Collects the datagrams of a round and sends them with one system call per socket and 64 datagrams or GSO batches.
///
/// Datagrams of one length from one socket to one receiver are sent as a GSO batch (`UDP_SEGMENT`); the last may be
/// shorter. If the kernel rejects a batch, its datagrams are sent one by one. Datagrams that must not be fragmented are
/// sent after the others of their socket. Apart from that, the order is kept per socket and receiver only.
///
/// Not `Send`: create it in the thread that uses it.
#[derive(Debug)]
pub struct Outbox {
    heads: Box<[u8]>,
    heads_used: usize,
    queue: Vec<Queued>,
    capacity: usize,
    departures: Departures,
    /// For the datagrams of a rejected batch.
    singles: Departures,
    batches: Vec<Range<usize>>,
}

/// A datagram to send: a head from the outbox's buffer, a range of a received datagram, and padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The key of the socket to send from.
    pub key: u64,
    /// Its receiver.
    pub to: SocketAddr,
    /// The local address to send from, on a socket bound to the unspecified address.
    pub source: Option<IpAddr>,
    /// Its traffic class: DSCP and ECN. Zero is the default, best effort.
    pub traffic_class: u8,
    /// Its time to live in hops. Zero is the system's default.
    pub hop_limit: u8,
    /// Whether it must not be fragmented: over IPv4 a DF bit of 1, over IPv6 not by this host.
    pub dont_fragment: bool,
    /// Length of its head, the first bytes of the last [`Outbox::head`]; zero: none.
    pub head_len: usize,
    /// Index of the received datagram that it quotes, and the range of bytes.
    pub quote: Option<(usize, ByteRange)>,
    /// Zero bytes at the end, at most three.
    pub padding: u8,
}

/// Counts of the datagrams of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// Those of them that quoted a received one.
    pub quoting: u64,
    /// Datagrams that the kernel rejected, by reason.
    pub refused: FaultCounts,
    /// Datagrams whose socket no longer exists.
    pub orphaned: u64,
    /// GSO batches that the kernel rejected; their datagrams were sent and counted one by one.
    pub gso_batches_rejected: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    key: u64,
    /// Groups datagrams by the DF bit and by receiver.
    bundle: u64,
    /// Position in the round; within a socket and a receiver the order is kept.
    order: u32,
    to: SocketAddr,
    source: Option<IpAddr>,
    traffic_class: u8,
    hop_limit: u8,
    dont_fragment: bool,
    head: (u32, u32),
    quote: Option<(u32, u32, u32)>,
    padding: u8,
}

/// Datagrams and GSO batches per system call.
const CALL: usize = 64;
/// Datagrams per GSO batch, at most: the limit of the oldest kernels with `UDP_SEGMENT`.
const BATCH_MAX: usize = 64;
/// Bytes per GSO batch, at most: the longest payload of UDP over IPv4.
const BATCH_LEN_MAX: usize = 65_507;
/// A head, a payload, padding.
const PIECES: usize = 3;
const ZEROS: [u8; 3] = [0; 3];

impl Outgoing {
    /// Creates a datagram from the range `span` of the received datagram `index`.
    #[must_use]
    pub fn quoting(key: u64, to: SocketAddr, index: usize, span: ByteRange) -> Self {
        Self { quote: Some((index, span)), ..Self::of_head(key, to, 0) }
    }

    /// Creates a datagram from the first `head_len` bytes of the last [`Outbox::head`].
    #[must_use]
    pub const fn of_head(key: u64, to: SocketAddr, head_len: usize) -> Self {
        Self {
            key,
            to,
            source: None,
            traffic_class: 0,
            hop_limit: 0,
            dont_fragment: false,
            head_len,
            quote: None,
            padding: 0,
        }
    }
}

impl Outbox {
    /// Creates an outbox for `capacity` datagrams with `heads_len` bytes of heads in total.
    #[must_use]
    pub fn new(capacity: usize, heads_len: usize) -> Self {
        Self {
            heads: vec![0; heads_len].into_boxed_slice(),
            heads_used: 0,
            queue: Vec::with_capacity(capacity),
            capacity,
            departures: Departures::new(CALL, capacity * PIECES),
            singles: Departures::new(BATCH_MAX, BATCH_MAX * PIECES),
            batches: Vec::with_capacity(CALL),
        }
    }

    /// Returns the buffer for the next datagram's head.
    pub fn head(&mut self) -> &mut [u8] {
        &mut self.heads[self.heads_used..]
    }

    /// Returns the number of free places.
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
            bundle: bundle(outgoing.to, outgoing.dont_fragment),
            order: self.queue.len() as u32,
            to: outgoing.to,
            source: outgoing.source,
            traffic_class: outgoing.traffic_class,
            hop_limit: outgoing.hop_limit,
            dont_fragment: outgoing.dont_fragment,
            head: (self.heads_used as u32, end as u32),
            quote: outgoing.quote.map(|(index, span)| (index as u32, span.start, span.end)),
            padding: outgoing.padding.min(ZEROS.len() as u8),
        });
        self.heads_used = end;
        true
    }

    /// Sends all datagrams, socket by socket, with quotes from `inbox`. `socket` returns the socket of a key.
    ///
    /// # Panics
    /// If a quote is not within the datagrams of `inbox`.
    pub fn flush<'s>(&mut self, inbox: &Inbox, socket: impl Fn(u64) -> Option<&'s UdpSocket>) -> Sent {
        let mut sent = Sent::default();
        self.queue.sort_unstable_by_key(|queued| (queued.key, queued.bundle, queued.order));
        let Self { heads, queue, departures, singles, batches, .. } = self;
        for of_socket in queue.chunk_by(|a, b| (a.key, a.dont_fragment) == (b.key, b.dont_fragment)) {
            let Some(socket) = socket(of_socket[0].key) else {
                sent.orphaned += of_socket.len() as u64;
                continue;
            };
            sent.datagrams += of_socket.len() as u64;
            sent.quoting += of_socket.iter().filter(|queued| queued.quote.is_some()).count() as u64;
            if let Err(error) = socket.set_df(of_socket[0].dont_fragment) {
                sent.refuse(of_socket, &error);
                continue;
            }
            let mut at = 0;
            while at < of_socket.len() {
                batches.clear();
                while at < of_socket.len() && batches.len() < CALL {
                    let start = at;
                    at += batch_len(&of_socket[at..]);
                    batches.push(start..at);
                }
                let each = batches.iter().map(|batch| gather(&of_socket[batch.clone()], heads, inbox));
                departures.send(socket, each, |index, error| {
                    let batch = &of_socket[batches[index].clone()];
                    if batch.len() == 1 || !is_batch_error(&error) {
                        sent.refuse(batch, &error);
                        return;
                    }
                    sent.gso_batches_rejected += 1;
                    let each = batch.chunks(1).map(|single| gather(single, heads, inbox));
                    singles.send(socket, each, |index, error| sent.refuse(&batch[index..=index], &error));
                });
            }
        }
        self.queue.clear();
        self.heads_used = 0;
        sent
    }
}

impl Sent {
    /// Moves the datagrams of `batch` from sent to rejected.
    fn refuse(&mut self, batch: &[Queued], error: &io::Error) {
        for queued in batch {
            self.datagrams -= 1;
            self.quoting -= u64::from(queued.quote.is_some());
            self.refused.record(IoFault::of(error));
        }
    }

    /// Counts one that quoted a received datagram as rejected.
    pub(crate) fn refuse_one(&mut self, error: &io::Error) {
        self.datagrams -= 1;
        self.quoting -= 1;
        self.refused.record(IoFault::of(error));
    }
}

impl Queued {
    fn len(&self) -> usize {
        let quoted = self.quote.map_or(0, |(_, start, end)| end - start);
        (self.head.1 - self.head.0 + quoted) as usize + usize::from(self.padding)
    }

    /// Whether `next` can be sent in the same batch: same receiver and header fields.
    fn goes_with(&self, next: &Self) -> bool {
        self.to == next.to
            && self.source == next.source
            && self.traffic_class == next.traffic_class
            && self.hop_limit == next.hop_limit
            && self.dont_fragment == next.dont_fragment
    }

    fn pieces<'a>(&self, heads: &'a [u8], inbox: &'a Inbox) -> [&'a [u8]; PIECES] {
        let payload = self
            .quote
            .map_or(&[][..], |(index, start, end)| &inbox.datagram(index as usize).bytes[start as usize..end as usize]);
        [&heads[self.head.0 as usize..self.head.1 as usize], payload, &ZEROS[..usize::from(self.padding)]]
    }
}

/// A hash of the receiver below the DF bit, so that a socket changes it at most once a flush.
fn bundle(to: SocketAddr, dont_fragment: bool) -> u64 {
    let ip = match to.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ ip.to_bits() as u64,
    };
    let receiver = ip.rotate_left(16) ^ u64::from(to.port());
    (receiver >> 1) | (u64::from(dont_fragment) << 63)
}

/// Number of datagrams at the front of `queue` that form a batch: same length, except that the last may be shorter.
fn batch_len(queue: &[Queued]) -> usize {
    let first = &queue[0];
    let (segment_len, mut bytes) = (first.len(), first.len());
    for (count, next) in queue.iter().enumerate().skip(1) {
        let len = next.len();
        let fits = len > 0 && len <= segment_len && bytes + len <= BATCH_LEN_MAX && first.goes_with(next);
        if count == BATCH_MAX || !fits {
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
    batch: &'a [Queued],
    heads: &'a [u8],
    inbox: &'a Inbox,
) -> Departure<impl Iterator<Item = &'a [u8]> + use<'a>> {
    let Queued { to, source, traffic_class, hop_limit, dont_fragment, .. } = batch[0];
    let segment_len = if batch.len() > 1 { batch[0].len() as u16 } else { 0 };
    let leaving = Leaving { is_ipv6: to.is_ipv6(), source, traffic_class, hop_limit, dont_fragment, segment_len };
    Departure { to, leaving, pieces: batch.iter().flat_map(|queued| queued.pieces(heads, inbox)) }
}

/// Whether the error concerns the batch, not its datagrams: a segment longer than the path's MTU, or a device without
/// support (`udp(7)`).
fn is_batch_error(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE))
}
