//! What the caller does with a datagram that it handed in.

use core::net::SocketAddr;

use tt_model::FiveTuple;

use crate::counters::DropReason;
use crate::relay::RelayId;

/// The number of a worker, from 0; it names a [`Server`](crate::Server) among those that share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct WorkerId(pub u16);

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
    /// The allocation belongs to another worker: give it the datagram, unchanged.
    HandOver(WorkerId),
    /// Nothing is sent.
    Drop(DropReason),
}
