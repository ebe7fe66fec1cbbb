//! The queue of events, in the order of time.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};
use tt_turn::relay::IcmpError;

use super::model::RelayPlace;
use super::stream::Way;

/// Something that will happen.
#[derive(Debug)]
pub(super) enum Event {
    AtServer {
        flow: FiveTuple,
        bytes: Vec<u8>,
    },
    HandedOver {
        worker: u16,
        flow: FiveTuple,
        bytes: Vec<u8>,
        hops: u8,
    },
    AtRelay {
        relay: RelayPlace,
        from: SocketAddr,
        bytes: Vec<u8>,
    },
    AtClient {
        flow: FiveTuple,
        bytes: Vec<u8>,
    },
    AtPeer {
        peer: SocketAddr,
        from: SocketAddr,
        bytes: Vec<u8>,
    },
    /// A client's patience is at an end.
    Patience {
        client: usize,
        timer: u32,
    },
    Rested {
        starts: u64,
        relay: RelayPlace,
    },
    /// What a connection was given to send sets out.
    Flush {
        client: usize,
        way: Way,
        number: u64,
    },
    /// Bytes of a connection.
    Piece {
        client: usize,
        flow: FiveTuple,
        way: Way,
        number: u64,
        bytes: Vec<u8>,
    },
    /// A stream is closed, by whomever.
    Closed {
        flow: FiveTuple,
    },
    /// The network reports to a relay why its datagram was dropped.
    Icmp {
        error: IcmpError,
        relay: RelayPlace,
    },
    Restart,
    Clear {
        clears: usize,
    },
}

pub(super) struct Entry {
    pub(super) at: Nanos,
    pub(super) number: u64,
    pub(super) event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
