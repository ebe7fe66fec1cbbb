//! What an operator may want to read of, one by one; counters say how often.

use alloc::collections::VecDeque;
use core::net::SocketAddr;

use tt_model::FiveTuple;

use crate::error::ErrorCode;
use crate::message::Method;
use crate::policy::Rule;
use crate::refusal::Refusal;

/// Bytes of a user's name that are kept beside an allocation and in an event.
pub const USER_NAME_KEPT_MAX: usize = 63;

/// Events that wait for the driver; more are counted, not kept.
const EVENTS_MAX: usize = 128;

/// The first bytes of a user's name as in USERNAME: any bytes that a client chose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserName {
    len: u8,
    bytes: [u8; USER_NAME_KEPT_MAX],
}

impl UserName {
    pub(crate) fn new(name: &[u8]) -> Self {
        let len = name.len().min(USER_NAME_KEPT_MAX);
        let mut kept = Self { len: len as u8, bytes: [0; USER_NAME_KEPT_MAX] };
        kept.bytes[..len].copy_from_slice(&name[..len]);
        kept
    }

    /// The bytes.
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

/// Something that happened to an allocation or a request, from [`Server::poll_event`](crate::Server::poll_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An allocation was made.
    Made {
        /// The client's five-tuple.
        flow: FiveTuple,
        /// The relayed address, as peers are told.
        relayed: SocketAddr,
        /// Whose it is.
        user: UserName,
    },
    /// An allocation ended, for whatever reason.
    Ended {
        /// The client's five-tuple.
        flow: FiveTuple,
        /// The relayed address, as peers were told.
        relayed: SocketAddr,
        /// Whose it was.
        user: UserName,
        /// Payload bytes relayed from the client to its peers.
        bytes_to_peers: u64,
        /// Payload bytes relayed from the peers to the client.
        bytes_to_client: u64,
    },
    /// A request with credentials was answered an error. Requests without any and those with an old nonce are part
    /// of every client's way in and make no event.
    Refused {
        /// What was asked.
        method: Method,
        /// What it was answered.
        error: ErrorCode,
        /// Who asked.
        client: SocketAddr,
        /// The first peer that the request names.
        peer: Option<SocketAddr>,
        /// Why, where it was 403, 486 or 508.
        refusal: Option<Refusal>,
        /// The rule of the peer policy, where it was one.
        rule: Option<Rule>,
        /// Whose name the request bears.
        user: UserName,
    },
}

/// Events on their way to the driver.
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
