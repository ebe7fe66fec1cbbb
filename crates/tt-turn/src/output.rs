//! Actions for the caller.

use core::net::SocketAddr;

use tt_model::{ByteRange, FiveTuple, Transport};

use crate::drop_reason::DropReason;
use crate::error::ErrorCode;
use crate::policy::RuleIndex;
use crate::rejection::{RejectReason, Rejection};
use crate::relay::{PeerPath, RelayId};

/// The number of a worker, from 0: names one [`Server`](crate::Server) among those that share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct WorkerId(pub u16);

/// Fields of the IP header of a datagram to a peer, without the addresses (RFC 8656 sections 13 to 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFields {
    /// Whether the network may fragment it.
    pub fragmentation: Fragmentation,
    /// Where DSCP, ECN and the hop limit come from.
    pub marks: Marks,
}

/// Whether the network may fragment a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragmentation {
    /// It may: the DF bit is 0. RFC 8656 section 14's alternate behavior: a socket does not report the DF bit of a
    /// received datagram.
    Allowed,
    /// It may not: the DF bit is 1; over IPv6 the host does not fragment either. The client sent DONT-FRAGMENT in a
    /// Send indication.
    Forbidden,
}

/// Source of DSCP, ECN and the hop limit of a datagram to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// The client's datagram; the hop limit is one less (RFC 8656 sections 13 and 14).
    Incoming,
    /// The system's defaults: best effort, Not-ECT. A byte stream carries no marks (RFC 8656 section 15).
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

/// Action for the caller after one datagram.
///
/// A `payload` is a range of the datagram that was handed in. A length counts bytes from the start of the caller's
/// `out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send the first `len` bytes of `out` to the client, from the server's address of its five-tuple.
    Reply {
        /// Length of the response.
        len: usize,
        /// What the response says.
        status: ReplyStatus,
    },
    /// Send `payload` from the relay's socket to the peer. If it is empty, send an empty datagram.
    ToPeer {
        /// The socket to send from.
        relay: RelayId,
        /// The destination.
        peer: SocketAddr,
        /// The client's payload.
        payload: ByteRange,
        /// Fields of the IP header.
        ip: IpFields,
    },
    /// Send the first `header_len` bytes of `out`, `payload` and `padding_len` zero bytes to the client, from the
    /// server's address: as one datagram, or in this order on its connection.
    ToClient {
        /// The client's flow.
        client: FiveTuple,
        /// Length of the ChannelData header, or of the Data indication up to the payload.
        header_len: usize,
        /// The peer's payload.
        payload: ByteRange,
        /// Zero bytes after the payload, 0 to 3.
        padding_len: u8,
    },
    /// Call [`handle_peer`](crate::Server::handle_peer) of another worker with this path and `payload`: the peer is a
    /// relayed address of that worker. No socket is involved.
    ToWorker {
        /// The worker that has the peer's allocation.
        worker: WorkerId,
        /// The relay of that allocation, and the relayed address that the payload comes from.
        path: PeerPath,
        /// The client's payload.
        payload: ByteRange,
    },
    /// Give the datagram, unchanged, to the worker that owns its allocation.
    HandOff(WorkerId),
    /// Send nothing.
    Drop(DropReason),
}

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// A success response.
    Success,
    /// An error response.
    Rejected {
        /// The code in ERROR-CODE.
        code: ErrorCode,
        /// The cause of a 403, 486 or 508.
        reason: Option<RejectReason>,
        /// The rule that denied the peer, an index of [`PeerPolicy::rules`](crate::policy::PeerPolicy::rules) of the policy of
        /// the allocation's realm.
        rule: Option<RuleIndex>,
    },
}

impl From<Rejection> for ReplyStatus {
    fn from(Rejection { code, reason, rule }: Rejection) -> Self {
        Self::Rejected { code, reason, rule }
    }
}
