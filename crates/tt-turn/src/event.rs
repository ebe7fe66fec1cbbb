//! Events for logs; counters report their numbers.

use alloc::collections::VecDeque;
use core::net::SocketAddr;

use tt_model::FiveTuple;

use crate::error::ErrorCode;
use crate::message::Method;
use crate::policy::Rule;
use crate::rejection::RejectReason;

/// Longest user name in bytes that is stored for an allocation and in an event.
pub const USER_NAME_LEN_MAX: usize = 63;

/// Events that wait for the driver. More are counted as lost.
const EVENTS_MAX: usize = 128;

/// The first bytes of a user name as in USERNAME. A client chose them; they may be any bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserName {
    len: u8,
    bytes: [u8; USER_NAME_LEN_MAX],
}

impl UserName {
    pub(crate) fn new(name: &[u8]) -> Self {
        let len = name.len().min(USER_NAME_LEN_MAX);
        let mut kept = Self { len: len as u8, bytes: [0; USER_NAME_LEN_MAX] };
        kept.bytes[..len].copy_from_slice(&name[..len]);
        kept
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for UserName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// Something that happened to an allocation or a request; returned by
/// [`Server::poll_event`](crate::Server::poll_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An allocation was created.
    Allocated {
        /// The client's five-tuple.
        flow: FiveTuple,
        /// The relayed address that peers see.
        relayed: SocketAddr,
        /// Its user.
        user: UserName,
    },
    /// An allocation ended.
    Ended {
        /// The client's five-tuple.
        flow: FiveTuple,
        /// The relayed address that peers saw.
        relayed: SocketAddr,
        /// Its user.
        user: UserName,
        /// Payload bytes relayed from the client to its peers.
        bytes_to_peers: u64,
        /// Payload bytes relayed from the peers to the client.
        bytes_to_client: u64,
    },
    /// A request with credentials was rejected. Requests without credentials and those with a stale nonce are part of
    /// every client's handshake and make no event.
    Rejected {
        /// The request's method.
        method: Method,
        /// The code of the response.
        code: ErrorCode,
        /// The client's address.
        client: SocketAddr,
        /// The first peer that the request names.
        peer: Option<SocketAddr>,
        /// The cause of a 403, 486 or 508.
        reason: Option<RejectReason>,
        /// The rule of the peer policy that denied the peer.
        rule: Option<Rule>,
        /// The user name in the request.
        user: UserName,
    },
}

/// Queue of events.
#[derive(Debug)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    pub(crate) lost: u64,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::with_capacity(EVENTS_MAX), lost: 0 }
    }

    pub(crate) fn push(&mut self, event: Event) {
        if self.waiting.len() < EVENTS_MAX {
            self.waiting.push_back(event);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn take(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }
}
