//! Datagrams of one round, from many sockets.

use std::io;
use std::net::SocketAddr;

use crate::UdpSocket;
use crate::sys::Slots;

/// Takes datagrams from one socket after the other until it is full, and keeps them where the kernel put them.
///
/// Made in the thread that uses it: it is not `Send`.
#[derive(Debug)]
pub struct Inbox {
    slots: Slots,
    origins: Vec<Origin>,
}

#[derive(Clone, Copy, Debug)]
struct Origin {
    key: u64,
    to: SocketAddr,
    traffic_class: u8,
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
    /// Room for `capacity` datagrams of at most `datagram_len` bytes each. Memory is taken when it is first used.
    #[must_use]
    pub fn new(capacity: usize, datagram_len: usize) -> Self {
        Self { slots: Slots::new(capacity, datagram_len), origins: Vec::with_capacity(capacity) }
    }

    /// Takes at most `most` datagrams from `socket`, or as many as there is room for, without waiting. One system call.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing: that is a [`Received`] of nothing, drained.
    pub fn receive(&mut self, socket: &UdpSocket, key: u64, most: usize) -> io::Result<Received> {
        let start = self.origins.len();
        let end = self.slots.len().min(start + most);
        if start == end {
            return Ok(Received::default());
        }
        let count = match self.slots.receive(socket, start..end) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Received::default()),
            Err(error) => return Err(error),
        };
        let mut lost = 0;
        for index in start..start + count {
            let ancillary = self.slots.ancillary(index);
            if let Some(overflow) = ancillary.overflow {
                lost += u64::from(socket.lost_since(overflow));
            }
            let (to, traffic_class) = (socket.asked(ancillary.destination), ancillary.traffic_class);
            self.origins.push(Origin { key, to, traffic_class });
        }
        // Fewer than asked for means that the kernel found the queue empty: reading again would only say so.
        Ok(Received { count, drained: start + count < end, lost })
    }

    /// Adds a datagram that came another way, from `from` to the local address `to`, under `key`. One copy. Returns
    /// `false`, and takes nothing, where there is no room or it is longer than a slot.
    pub fn insert(&mut self, key: u64, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> bool {
        let index = self.origins.len();
        let taken = index < self.slots.len() && self.slots.fill(index, from, bytes);
        if taken {
            self.origins.push(Origin { key, to, traffic_class: 0 });
        }
        taken
    }

    /// Datagrams in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// How many more it can take.
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
        let Origin { key, to, traffic_class } = self.origins[index];
        Datagram {
            key,
            from: self.slots.sender(index).get(),
            to,
            bytes: self.slots.bytes(index),
            truncated: self.slots.arrival(index).truncated,
            traffic_class,
        }
    }

    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        self.origins.clear();
    }
}
