//! Datagrams of one round, from many sockets.

use std::io;
use std::net::SocketAddr;

use crate::sys::Slots;
use crate::{IoFault, UdpSocket};

/// Takes datagrams from one socket after the other until it is full, and keeps them where the kernel put them.
///
/// Made in the thread that uses it: it is not `Send`.
#[derive(Debug)]
pub struct Inbox {
    slots: Slots,
    /// By slot.
    origins: Vec<Origin>,
    /// By datagram.
    places: Vec<Place>,
}

/// The most datagrams that the kernel hands over as one (`UDP_GRO`).
const TRAIN_MAX: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Origin {
    key: u64,
    to: SocketAddr,
    traffic_class: u8,
    hop_limit: u8,
}

/// Where a datagram lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: u32,
    start: u32,
    end: u32,
    truncated: bool,
}

/// One received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The key of the socket it arrived at.
    pub key: u64,
    /// Who sent it.
    pub from: SocketAddr,
    /// The local address it was sent to; on a socket bound to the unspecified address that is the one in the packet.
    pub to: SocketAddr,
    /// Its payload, in bytes that may be quoted by an [`Outgoing`](crate::Outgoing) until the inbox is cleared.
    pub bytes: &'a [u8],
    /// It was longer than a slot; the rest is lost.
    pub truncated: bool,
    /// The traffic class that it came with: DSCP and ECN.
    pub traffic_class: u8,
    /// What was left of its time to live, in hops; zero where the kernel did not tell.
    pub hop_limit: u8,
}

/// What one call of [`Inbox::receive`] brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Datagrams, now at the end of the inbox.
    pub count: usize,
    /// The socket was emptied; it need not be read again before the poller tells of it.
    pub drained: bool,
    /// Datagrams that the kernel dropped at this socket for want of buffer since the last call (`SO_RXQ_OVFL`).
    pub lost: u64,
}

impl Inbox {
    /// Room for `capacity` arrivals of at most `datagram_len` bytes each. Memory is taken when it is first used.
    ///
    /// An arrival is a datagram, or a train of them that the kernel hands over as one where the socket
    /// [takes trains](UdpSocket::take_trains); with those, anything less than 65,536 bytes cuts trains short.
    #[must_use]
    pub fn new(capacity: usize, datagram_len: usize) -> Self {
        Self {
            slots: Slots::new(capacity, datagram_len),
            origins: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity * TRAIN_MAX),
        }
    }

    /// Takes at most `most` arrivals from `socket`, or as many as there is room for, without waiting. One system call,
    /// two where the first one only tells of an earlier datagram's ICMP error.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing: that is a [`Received`] of nothing, drained.
    pub fn receive(&mut self, socket: &UdpSocket, key: u64, most: usize) -> io::Result<Received> {
        let start = self.origins.len();
        let end = self.slots.len().min(start + most);
        if start == end {
            return Ok(Received::default());
        }
        let mut received = self.slots.receive(socket, start..end);
        if received.as_ref().is_err_and(IoFault::may_be_late) {
            received = self.slots.receive(socket, start..end);
        }
        let count = match received {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted || IoFault::may_be_late(&error) => {
                return Ok(Received::default());
            }
            Err(error) => return Err(error),
        };
        let (before, mut lost) = (self.places.len(), 0);
        for index in start..start + count {
            let ancillary = self.slots.ancillary(index);
            if let Some(overflow) = ancillary.overflow {
                lost += u64::from(socket.lost_since(overflow));
            }
            let to = socket.asked(ancillary.destination);
            let (traffic_class, hop_limit) = (ancillary.traffic_class, ancillary.hop_limit);
            self.origins.push(Origin { key, to, traffic_class, hop_limit });
            self.place(index, ancillary.segment_len);
        }
        // Fewer than asked for means that the kernel found the queue empty: reading again would only say so.
        Ok(Received { count: self.places.len() - before, drained: start + count < end, lost })
    }

    /// Makes datagrams of `segment_len` bytes of what arrived in `slot`; zero is one of all of it.
    fn place(&mut self, slot: usize, segment_len: usize) {
        let arrival = self.slots.arrival(slot);
        let step = if segment_len == 0 { arrival.len.max(1) } else { segment_len };
        let mut start = 0;
        loop {
            let end = arrival.len.min(start + step);
            let truncated = arrival.truncated && end == arrival.len;
            self.places.push(Place { slot: slot as u32, start: start as u32, end: end as u32, truncated });
            start = end;
            if start == arrival.len {
                return;
            }
        }
    }

    /// Adds a datagram that came another way. One copy. Returns `false`, and takes nothing, where there is no room or it
    /// is longer than a slot.
    pub fn insert(&mut self, datagram: Datagram<'_>) -> bool {
        let Datagram { key, from, to, bytes, traffic_class, hop_limit, truncated: _ } = datagram;
        let index = self.origins.len();
        let taken = index < self.slots.len() && self.slots.fill(index, from, bytes);
        if taken {
            self.origins.push(Origin { key, to, traffic_class, hop_limit });
            self.place(index, 0);
        }
        taken
    }

    /// Datagrams in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many more arrivals it can take.
    #[must_use]
    pub fn room(&self) -> usize {
        self.slots.len() - self.origins.len()
    }

    /// The datagram at `index`, in the order of arrival.
    ///
    /// # Panics
    /// If `index` is not less than [`len`](Self::len).
    #[must_use]
    pub fn datagram(&self, index: usize) -> Datagram<'_> {
        let Place { slot, start, end, truncated } = self.places[index];
        let slot = slot as usize;
        let Origin { key, to, traffic_class, hop_limit } = self.origins[slot];
        let from = self.slots.sender(slot).get();
        let bytes = &self.slots.bytes(slot)[start as usize..end as usize];
        Datagram { key, from, to, bytes, truncated, traffic_class, hop_limit }
    }

    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        self.origins.clear();
        self.places.clear();
    }
}
