//! Events for logs and records; counters report their numbers.

use alloc::collections::VecDeque;
use core::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use crate::config::GrantReports;
use crate::error::ErrorCode;
use crate::message::Method;
use crate::path::PathTraffic;
use crate::policy::Rule;
use crate::realm::RealmId;
use crate::rejection::RejectReason;

/// Longest user name in bytes (RFC 8489 section 14.3: fewer than 509).
pub const USER_NAME_LEN_MAX: usize = 508;

/// Maximum number of peers that the end of an allocation lists.
pub const PEERS_LISTED_MAX: usize = 16;

/// Rejected requests that wait for the driver. More are counted as lost.
const REJECTED_MAX: usize = 128;

/// Beginnings and ends of allocations that wait for the driver, in addition to one end for each allocation in the
/// table. More are counted as lost.
const EVENTS_MAX: usize = 1_024;

/// Lifetimes that wait for the driver. More are counted as lost.
const GRANTS_MAX: usize = 1_024;

/// The first bytes of a user name as in USERNAME. A client chose them; they may be any bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserName {
    len: u16,
    bytes: [u8; USER_NAME_LEN_MAX],
}

impl UserName {
    pub(crate) fn new(name: &[u8]) -> Self {
        let len = name.len().min(USER_NAME_LEN_MAX);
        let mut kept = Self { len: len as u16, bytes: [0; USER_NAME_LEN_MAX] };
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

/// The beginning or the end of an allocation; returned by [`Server::poll_event`](crate::Server::poll_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationEvent {
    /// Its beginning.
    pub start: AllocationStart,
    /// Its end, if it has ended.
    pub end: Option<AllocationEnd>,
}

/// The beginning of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationStart {
    /// Number of the allocation, from 0 in the order of creation. With the worker's number it joins beginning and end.
    pub number: u64,
    /// The client's five-tuple.
    pub flow: FiveTuple,
    /// The realm of its user.
    pub realm: RealmId,
    /// Its user.
    pub user: UserName,
    /// The relayed addresses that peers see, by [`IpFamily`](tt_model::IpFamily), at least one.
    pub relayed: [Option<SocketAddr>; 2],
    /// Wall-clock time of creation, since 1970 in UTC.
    pub at: Nanos,
}

impl AllocationStart {
    /// Returns the relayed address in the response to the Allocate: the IPv4 one of two.
    #[must_use]
    pub fn first_relayed(&self) -> Option<SocketAddr> {
        self.relayed.iter().flatten().next().copied()
    }
}

/// A lifetime that a client got; returned by [`Server::poll_grant`](crate::Server::poll_grant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationGrant {
    /// The beginning of the allocation.
    pub start: AllocationStart,
    /// The request that asked for it.
    pub request: GrantRequest,
    /// The lifetime from now on, seconds.
    pub lifetime_s: u32,
}

/// The request for a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantRequest {
    /// An Allocate.
    Allocate,
    /// A Refresh.
    Refresh,
}

/// The end of an allocation, and what it relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationEnd {
    /// Wall-clock time of the end, since 1970 in UTC, not before that of creation.
    pub at: Nanos,
    /// Wall-clock times at which the relayed addresses ended; one of two addresses may end earlier than the allocation.
    pub released: [Nanos; 2],
    /// Time from creation to the end, by the monotonic clock.
    pub duration: Nanos,
    /// Its cause.
    pub reason: EndReason,
    /// Payload bytes relayed from the client to its peers.
    pub bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub bytes_to_client: u64,
    /// Payloads relayed from the client to its peers.
    pub packets_to_peers: u64,
    /// Payloads relayed from the peers to the client.
    pub packets_to_client: u64,
    /// Peers for which the client installed permissions or channels.
    pub peers: Peers,
}

/// Payloads that an allocation has relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload bytes relayed from the client to its peers.
    pub bytes_to_peers: u64,
    /// Payload bytes relayed from the peers to the client.
    pub bytes_to_client: u64,
    /// Payloads relayed from the client to its peers.
    pub packets_to_peers: u64,
    /// Payloads relayed from the peers to the client.
    pub packets_to_client: u64,
}

impl Traffic {
    /// Returns the payloads in both directions.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets_to_peers + self.packets_to_client
    }

    /// Returns what came after `before`, an earlier reading of the same allocation.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            bytes_to_peers: self.bytes_to_peers.saturating_sub(before.bytes_to_peers),
            bytes_to_client: self.bytes_to_client.saturating_sub(before.bytes_to_client),
            packets_to_peers: self.packets_to_peers.saturating_sub(before.packets_to_peers),
            packets_to_client: self.packets_to_client.saturating_sub(before.packets_to_client),
        }
    }
}

impl AllocationEnd {
    /// Returns what the allocation has relayed.
    #[must_use]
    pub const fn traffic(&self) -> Traffic {
        Traffic {
            bytes_to_peers: self.bytes_to_peers,
            bytes_to_client: self.bytes_to_client,
            packets_to_peers: self.packets_to_peers,
            packets_to_client: self.packets_to_client,
        }
    }
}

/// Cause of the end of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its lifetime ended without a Refresh.
    Expired,
    /// The client deleted it by a Refresh with lifetime 0.
    Deleted,
    /// The client's connection was closed.
    ConnectionClosed,
    /// Its user or shared secret was removed.
    UserRemoved,
    /// An operator ended it.
    Operator,
    /// The server stopped.
    Shutdown,
    /// The worker failed.
    WorkerFailed,
}

impl EndReason {
    /// Returns the name in records, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Deleted => "deleted",
            Self::ConnectionClosed => "connection_closed",
            Self::UserRemoved => "user_removed",
            Self::Operator => "operator",
            Self::Shutdown => "shutdown",
            Self::WorkerFailed => "worker_failed",
        }
    }
}

/// The first peers of an allocation, and the number of the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Peers {
    listed: [SocketAddr; PEERS_LISTED_MAX],
    len: u8,
    others: u32,
}

impl core::fmt::Debug for Peers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} and {} others", self.listed(), self.others)
    }
}

impl Peers {
    pub(crate) const fn new() -> Self {
        let unused = SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 0);
        Self { listed: [unused; PEERS_LISTED_MAX], len: 0, others: 0 }
    }

    /// Returns the first peers. Port 0 is a permission without a channel: any port.
    #[must_use]
    pub fn listed(&self) -> &[SocketAddr] {
        &self.listed[..usize::from(self.len)]
    }

    /// Returns how many permissions and channels were installed for peers that are not listed. A peer counts again if
    /// its permission was installed again after it had expired.
    #[must_use]
    pub const fn others(&self) -> u32 {
        self.others
    }

    /// Adds a peer with a new permission (port 0) or a new channel.
    pub(crate) fn add(&mut self, peer: SocketAddr) {
        let mut permission = None;
        let listed = self.listed.iter_mut().take(usize::from(self.len));
        for known in listed.filter(|known| known.ip() == peer.ip()) {
            if peer.port() == 0 || known.port() == peer.port() {
                return;
            }
            if known.port() == 0 {
                permission = permission.or(Some(known));
            }
        }
        if let Some(permission) = permission {
            permission.set_port(peer.port());
            return;
        }
        match self.listed.get_mut(usize::from(self.len)) {
            Some(free) => {
                *free = peer;
                self.len += 1;
            }
            None => self.others = self.others.saturating_add(1),
        }
    }
}

/// A rejected request with credentials; returned by [`Server::poll_rejected`](crate::Server::poll_rejected).
///
/// Requests without credentials and those with a stale nonce are part of every client's handshake and are not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRequest {
    /// The request's method.
    pub method: Method,
    /// The code of the response.
    pub code: ErrorCode,
    /// The client's address.
    pub client: SocketAddr,
    /// The first peer that the request names.
    pub peer: Option<SocketAddr>,
    /// The cause of a 403, 486 or 508.
    pub reason: Option<RejectReason>,
    /// The rule of the peer policy that denied the peer.
    pub rule: Option<Rule>,
    /// The realm that the request names, if the server has it.
    pub realm: RealmId,
    /// The user name in the request.
    pub user: UserName,
}

/// Queues to the driver.
#[derive(Debug)]
pub(crate) struct Events {
    /// Each with the fence of paths that it waits for.
    allocations: VecDeque<(u64, AllocationEvent)>,
    /// Number of the first of them.
    first: u64,
    rejected: VecDeque<RejectedRequest>,
    /// Without memory if none is reported.
    grants: VecDeque<AllocationGrant>,
    pub(crate) grant_reports: GrantReports,
    pub(crate) grants_lost: u64,
    allocations_max: usize,
    pub(crate) allocations_lost: u64,
    pub(crate) rejected_lost: u64,
}

impl Events {
    /// Creates the queues of a server with `allocations` places. Memory that is never used is not touched.
    pub(crate) fn new(allocations: u32, grant_reports: GrantReports) -> Self {
        let grants_max = if grant_reports == GrantReports::Kept { GRANTS_MAX } else { 0 };
        let allocations_max = allocations as usize + EVENTS_MAX;
        Self {
            allocations: VecDeque::with_capacity(allocations_max),
            rejected: VecDeque::with_capacity(REJECTED_MAX),
            grants: VecDeque::with_capacity(grants_max),
            grant_reports,
            grants_lost: 0,
            allocations_max,
            first: 0,
            allocations_lost: 0,
            rejected_lost: 0,
        }
    }

    /// Queues an event behind a fence of paths, and returns its number; `None` if it is lost.
    pub(crate) fn push(&mut self, event: AllocationEvent, fence: u64) -> Option<u64> {
        if self.allocations.len() < self.allocations_max {
            self.allocations.push_back((fence, event));
            Some(self.first + self.allocations.len() as u64 - 1)
        } else {
            self.allocations_lost += 1;
            None
        }
    }

    /// Adds traffic to an end that is in the queue.
    pub(crate) fn add_traffic(&mut self, event: u64, traffic: &PathTraffic) {
        let place = event.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let queued = place.and_then(|place| self.allocations.get_mut(place));
        if let Some(end) = queued.and_then(|(_, event)| event.end.as_mut()) {
            end.packets_to_peers += traffic.packets_to_peer;
            end.bytes_to_peers += traffic.bytes_to_peer;
            end.packets_to_client += traffic.packets_to_client;
            end.bytes_to_client += traffic.bytes_to_client;
        }
    }

    pub(crate) fn push_rejected(&mut self, rejected: RejectedRequest) {
        if self.rejected.len() < REJECTED_MAX {
            self.rejected.push_back(rejected);
        } else {
            self.rejected_lost += 1;
        }
    }

    /// Queues a lifetime.
    pub(crate) fn push_grant(&mut self, grant: AllocationGrant) {
        if self.grants.len() < GRANTS_MAX {
            self.grants.push_back(grant);
        } else {
            self.grants_lost += 1;
        }
    }

    pub(crate) fn take_grant(&mut self) -> Option<AllocationGrant> {
        self.grants.pop_front()
    }

    pub(crate) fn take(&mut self, passed: u64) -> Option<AllocationEvent> {
        let (_, event) = self.allocations.pop_front_if(|(fence, _)| *fence <= passed)?;
        self.first += 1;
        if self.allocations.is_empty() {
            // The next one uses the same memory again.
            self.allocations.clear();
        }
        Some(event)
    }

    pub(crate) fn take_rejected(&mut self) -> Option<RejectedRequest> {
        self.rejected.pop_front()
    }
}
