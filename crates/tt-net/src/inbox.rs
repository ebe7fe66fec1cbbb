//! A batch of received datagrams, from many sockets.

use std::io;
use std::net::SocketAddr;

use crate::sys::Slots;
use crate::{IoFault, UdpSocket};

/// A buffer of received datagrams, filled from several sockets without copying.
///
/// Not `Send`: create it in the thread that uses it.
#[derive(Debug)]
pub struct Inbox {
    slots: Slots,
    /// By slot.
    origins: Vec<Origin>,
    /// By datagram.
    places: Vec<Place>,
}

/// Datagrams in one GRO batch, at most (`UDP_GRO`).
const GRO_BATCH_MAX: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Origin {
    key: u64,
    to: SocketAddr,
    traffic_class: u8,
    hop_limit: u8,
}

/// The position of a datagram in the slots.
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
    /// Its sender.
    pub from: SocketAddr,
    /// The local address it was sent to; on a socket bound to the unspecified address that is the one in the packet.
    pub to: SocketAddr,
    /// Its payload, in bytes that may be quoted by an [`Outgoing`](crate::Outgoing) until the inbox is cleared.
    pub bytes: &'a [u8],
    /// Whether it was longer than a slot and was cut.
    pub truncated: bool,
    /// The received traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// The received TTL or hop limit; zero if the kernel did not report it.
    pub hop_limit: u8,
}

/// Result of one call of [`Inbox::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Datagrams added at the end of the inbox.
    pub count: usize,
    /// Whether the socket is empty: read it again when the poller returns its key.
    pub drained: bool,
    /// Datagrams that the kernel dropped since the last call: the receive buffer was full, or a
    /// [`SourceFilter`](crate::SourceFilter) did not let them pass (`SO_RXQ_OVFL`).
    pub lost: u64,
    /// Datagrams that were read and are not in the inbox: to an address without a key.
    pub unclaimed: u64,
}

impl Inbox {
    /// Creates an inbox for `capacity` arrivals of at most `datagram_len` bytes each. Memory is committed on first use.
    ///
    /// An arrival is a datagram, or a GRO batch if the socket [receives batches](UdpSocket::enable_gro); then
    /// `datagram_len` must be 65,536, or batches are cut.
    #[must_use]
    pub fn new(capacity: usize, datagram_len: usize) -> Self {
        Self {
            slots: Slots::new(capacity, datagram_len),
            origins: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity * GRO_BATCH_MAX),
        }
    }

    /// Receives at most `most` arrivals from `socket`, or as many as fit, without blocking. One system call, or two if
    /// the first one only returns the ICMP error of an earlier datagram.
    ///
    /// # Errors
    /// The kernel's error. No datagram is not an error: it is a drained [`Received`] with `count` 0.
    pub fn receive(&mut self, socket: &UdpSocket, key: u64, most: usize) -> io::Result<Received> {
        self.receive_by(socket, most, |_| Some(key))
    }

    /// The same from a socket that gets what was sent to many addresses: `key_of` returns the key of each.
    ///
    /// # Errors
    /// As [`Inbox::receive`].
    pub fn receive_steered(
        &mut self,
        socket: &UdpSocket,
        most: usize,
        key_of: impl Fn(SocketAddr) -> Option<u64>,
    ) -> io::Result<Received> {
        self.receive_by(socket, most, key_of)
    }

    fn receive_by(
        &mut self,
        socket: &UdpSocket,
        most: usize,
        key_of: impl Fn(SocketAddr) -> Option<u64>,
    ) -> io::Result<Received> {
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
        let (before, mut lost, mut unclaimed) = (self.places.len(), 0, 0);
        for index in start..start + count {
            let ancillary = self.slots.ancillary(index);
            if let Some(overflow) = ancillary.overflow {
                lost += u64::from(socket.lost_since(overflow));
            }
            let to = ancillary.addressed.unwrap_or_else(|| socket.asked(ancillary.destination));
            let (traffic_class, hop_limit) = (ancillary.traffic_class, ancillary.hop_limit);
            let key = key_of(to);
            self.origins.push(Origin { key: key.unwrap_or_default(), to, traffic_class, hop_limit });
            let placed = self.places.len();
            self.place(index, ancillary.segment_len);
            if key.is_none() {
                unclaimed += (self.places.len() - placed) as u64;
                self.places.truncate(placed);
            }
        }
        // Fewer than asked for means that the kernel found the queue empty: reading again would only say so.
        Ok(Received { count: self.places.len() - before, drained: start + count < end, lost, unclaimed })
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

    /// Returns the number of free slots.
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
