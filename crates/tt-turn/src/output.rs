//! What the caller does with a datagram that it handed in.

use core::net::SocketAddr;

use tt_model::{FiveTuple, Transport};

use crate::counters::DropReason;
use crate::relay::{PeerPath, RelayId};

/// The number of a worker, from 0; it names a [`Server`](crate::Server) among those that share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct WorkerId(pub u16);

/// What the IP header of a datagram to a peer says beside the addresses (RFC 8656 sections 13 to 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFields {
    /// Whether it may be fragmented on its way.
    pub fragmentation: Fragmentation,
    /// Where DSCP, ECN and the hop limit come from.
    pub marks: Marks,
}

/// Whether a datagram may be fragmented on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragmentation {
    /// It may: the DF bit is 0. RFC 8656 section 14's alternate behaviour, since no socket tells the DF bit of what
    /// came in.
    Allowed,
    /// It may not: the DF bit is 1, over IPv6 the host does not fragment either. The client asked for it with
    /// DONT-FRAGMENT in a Send indication.
    Forbidden,
}

/// Where DSCP, ECN and the hop limit of a datagram to a peer come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// From the client's datagram, the hop limit less one (RFC 8656 sections 13 and 14).
    Incoming,
    /// From the system: best effort, Not-ECT. What came on a byte stream has no marks of its own (RFC 8656 section
    /// 15).
    System,
}

impl IpFields {
    #[inline]
    pub(crate) const fn from_client(transport: Transport) -> Self {
        let marks = match transport {
            Transport::Udp => Marks::Incoming,
            Transport::Tcp | Transport::Tls => Marks::System,
        };
        Self { fragmentation: Fragmentation::Allowed, marks }
    }
}

/// What one datagram comes to. Payloads are parts of the datagram handed in, everything else is in the caller's
/// `out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Send this to the client, from the server's address of its five-tuple.
    Reply(&'a [u8]),
    /// Send `payload` from the relay's socket to the peer. It may be empty: then an empty datagram is sent.
    ToPeer {
        /// The socket to send from.
        relay: RelayId,
        /// The destination.
        peer: SocketAddr,
        /// The client's payload.
        payload: &'a [u8],
        /// What the IP header says beside the addresses.
        ip: IpFields,
    },
    /// Send `header`, `payload` and `padding` to the client, from the server's address: as one datagram, or one behind
    /// the other on its connection.
    ToClient {
        /// The client's flow.
        client: FiveTuple,
        /// ChannelData's header, or a Data indication up to the payload.
        header: &'a [u8],
        /// The peer's payload.
        payload: &'a [u8],
        /// Zero bytes behind the payload, 0 to 3.
        padding: &'static [u8],
    },
    /// The peer is a relayed address of another worker: give that one's [`handle_peer`](crate::Server::handle_peer) the
    /// payload, with this path. It came from this server's own relay, and needs no socket.
    ToWorker {
        /// The worker that has the peer's allocation.
        worker: WorkerId,
        /// The relay of that allocation, and the relayed address that the payload comes from.
        path: PeerPath,
        /// The client's payload.
        payload: &'a [u8],
    },
    /// The allocation belongs to another worker: give it the datagram, unchanged.
    HandOver(WorkerId),
    /// Nothing is sent.
    Drop(DropReason),
}
