//! Datagrams to send at the end of a round.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use crate::sys::{Departure, Departures};
use crate::{FaultCounts, Inbox, IoFault, UdpSocket};

/// Gathers a round's answers and sends them in one system call for each socket (and 64 datagrams).
///
/// Made in the thread that uses it: it is not `Send`.
#[derive(Debug)]
pub struct Outbox {
    heads: Box<[u8]>,
    heads_used: usize,
    queue: Vec<Queued>,
    capacity: usize,
    departures: Departures,
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
    /// Bytes at the front, the first `head_len` of the last [`Outbox::head`]; zero for none.
    pub head_len: usize,
    /// Index of the received datagram that is quoted, and the span of its bytes.
    pub quote: Option<(usize, Range<usize>)>,
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
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    key: u64,
    /// Position in the round; within a socket the order is kept.
    order: u32,
    to: SocketAddr,
    source: Option<IpAddr>,
    traffic_class: u8,
    head: (u32, u32),
    quote: Option<(u32, u32, u32)>,
    padding: u8,
}

const CALL: usize = 64;
const ZEROS: [u8; 3] = [0; 3];

impl Outgoing {
    /// Bytes `span` of the received datagram `index`, to `to`, through the socket of `key`.
    #[must_use]
    pub const fn quoting(key: u64, to: SocketAddr, index: usize, span: Range<usize>) -> Self {
        Self { key, to, source: None, traffic_class: 0, head_len: 0, quote: Some((index, span)), padding: 0 }
    }

    /// The first `head_len` bytes of the last [`Outbox::head`], to `to`, through the socket of `key`.
    #[must_use]
    pub const fn of_head(key: u64, to: SocketAddr, head_len: usize) -> Self {
        Self { key, to, source: None, traffic_class: 0, head_len, quote: None, padding: 0 }
    }
}

impl Outbox {
    /// Room for `capacity` datagrams with at most `head_len` bytes of their own each.
    #[must_use]
    pub fn new(capacity: usize, head_len: usize) -> Self {
        Self {
            heads: vec![0; capacity * head_len].into_boxed_slice(),
            heads_used: 0,
            queue: Vec::with_capacity(capacity),
            capacity,
            departures: Departures::new(CALL),
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
            order: self.queue.len() as u32,
            to: outgoing.to,
            source: outgoing.source,
            traffic_class: outgoing.traffic_class,
            head: (self.heads_used as u32, end as u32),
            quote: outgoing.quote.map(|(index, span)| (index as u32, span.start as u32, span.end as u32)),
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
        self.queue.sort_unstable_by_key(|queued| (queued.key, queued.order));
        let heads = &self.heads;
        for of_socket in self.queue.chunk_by(|a, b| a.key == b.key) {
            let Some(socket) = socket(of_socket[0].key) else {
                sent.orphaned += of_socket.len() as u64;
                continue;
            };
            for of_call in of_socket.chunks(CALL) {
                let departures = of_call.iter().map(|queued| queued.gather(heads, inbox));
                let mut quoting = of_call.iter().filter(|queued| queued.quote.is_some()).count();
                let refused = |index: usize, error| {
                    quoting -= usize::from(of_call[index].quote.is_some());
                    sent.refused.record(IoFault::of(&error));
                };
                sent.datagrams += self.departures.send(socket, departures, refused) as u64;
                sent.quoting += quoting as u64;
            }
        }
        self.queue.clear();
        self.heads_used = 0;
        sent
    }
}

impl Queued {
    fn gather<'a>(&self, heads: &'a [u8], inbox: &'a Inbox) -> Departure<'a> {
        let payload = self
            .quote
            .map_or(&[][..], |(index, start, end)| &inbox.datagram(index as usize).bytes[start as usize..end as usize]);
        let head = &heads[self.head.0 as usize..self.head.1 as usize];
        let pieces = [head, payload, &ZEROS[..usize::from(self.padding)]];
        Departure { to: self.to, source: self.source, traffic_class: self.traffic_class, pieces }
    }
}
