//! Status of the TURN server.

mod ended;

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;

use crate::accounting::{Accounting, Count, Stages};
use crate::allocation_messages::MessageStatus;
pub use ended::{EndedTraffic, EndedUser, EndedUsers, RealmTraffic, user_of};

/// The TURN server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TurnStatus {
    /// Listener addresses with their transport.
    pub listens: Vec<String>,
    /// The realm of its credentials.
    pub realm: String,
    /// Worker threads.
    pub workers: usize,
    /// Datagrams.
    pub ledger: Accounting,
    /// The pass of a datagram.
    pub stages: Stages,
    /// Allocations and what hangs on them.
    pub allocations: Allocations,
    /// Binding requests.
    pub bindings: Bindings,
    /// Connections over TCP and TLS.
    pub streams: Streams,
    /// Whether it makes no new allocations, since it is about to end.
    pub draining: bool,
    /// Workers that are down after a panic.
    pub workers_down: usize,
    /// Panics of workers since the start.
    pub panics: u64,
    /// Datagrams that the kernel dropped, because a receive buffer was full or kept free for known clients; not part of
    /// `ledger`.
    pub kernel_lost: u64,
    /// Times that a UDP listener began to keep its receive buffer free for clients with an allocation.
    pub overloads: u64,
    /// What the kernel relays without a socket, if it was asked to and can.
    pub kernel_path: Option<KernelPath>,
    /// Events that are missing in the log, by the queue that was full.
    pub events_lost: Vec<Count>,
    /// Resident memory, if it has a bound.
    pub memory: Option<Memory>,
    /// Lines of allocation records, by what became of them; empty without records.
    pub records: Vec<Count>,
    /// What ended allocations have relayed since the start, by realm.
    pub ended_by_realm: Vec<RealmTraffic>,
    /// Messages for a database of statistics, if there is one.
    pub messages: Option<MessageStatus>,
    /// System calls that failed.
    pub faults: Vec<CallErrors>,
    /// Error replies by code.
    pub errors: Vec<CodeCount>,
    /// Requests with a wrong name or password. The 401 that begins every client's login does not count.
    pub failed_logins: u64,
    /// Sources with the most rejected requests of the last five minutes, at most eight, most requests first.
    pub rejected_sources: Vec<RejectedSource>,
    /// Requests refused with 403, 486 or 508, by why.
    pub refusals: Vec<Count>,
    /// Peers denied, by the rule of the peer policy.
    pub denied: Vec<RuleCount>,
}

/// Resident memory and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Resident memory of the process, bytes.
    pub resident_bytes: u64,
    /// The bound, bytes.
    pub max_bytes: u64,
    /// Whether new allocations are rejected.
    pub is_full: bool,
}

/// Packets of bound channels that an XDP program relays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelPath {
    /// Payloads relayed from clients to peers since the start; `ledger` counts them too.
    pub to_peers: u64,
    /// Payloads relayed from peers to clients.
    pub to_clients: u64,
    /// Packets that went up to the sockets, by reason; `bandwidth` and `lost` were dropped.
    pub passed: Vec<Count>,
    /// Channels in the kernel's tables.
    pub open: u64,
    /// Writes of the tables that failed.
    pub write_failed: u64,
    /// Interfaces that the program is attached to.
    pub interfaces: Vec<PathInterface>,
}

/// An interface of the kernel path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathInterface {
    /// Its name.
    pub name: String,
    /// Its driver, or the kind of a virtual device; absent if the kernel does not say.
    pub driver: Option<String>,
    /// `native` or `generic`.
    pub mode: &'static str,
    /// Whether checksums that arrive are complete: `proving`, `proven` or `unproven`; `detached` if the program is no more
    /// attached to the interface.
    pub proof: &'static str,
    /// Packets whose whole checksum was verified.
    pub checked: u32,
    /// Packets with a partial checksum.
    pub bad: u32,
}

/// A database of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DatabaseStatus {
    /// Its kind.
    pub kind: &'static str,
    /// Whether the last read succeeded.
    pub is_up: bool,
    /// Time since the last read that succeeded, milliseconds.
    pub age_ms: Option<u64>,
    /// Users in force.
    pub users: u64,
    /// Secrets in force.
    pub secrets: u64,
    /// Rows of peers in force.
    pub peers: u64,
    /// Reads since the start, by result.
    pub reads: Vec<Count>,
    /// Rows that are not used, by reason.
    pub skipped: Vec<Count>,
}

/// Connections over TCP and TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Streams {
    /// Now.
    pub open: u64,
    /// Those of them over TLS.
    pub open_tls: u64,
    /// Those of them that have brought no whole message yet.
    pub half_open: u64,
    /// Taken since the start: `accepted - ended = open`.
    pub accepted: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Those of them that resumed an earlier session.
    pub handshakes_resumed: u64,
    /// TLS handshakes that have begun or wait to begin.
    pub handshakes_in_progress: u64,
    /// Not taken, by the bound that was reached.
    pub refused: Vec<Count>,
    /// Ended since the start, by reason.
    pub ended: Vec<Count>,
    /// Received messages; `ledger` counts them as datagrams.
    pub messages_in: u64,
    /// Bytes that still waited to be sent when their connection ended.
    pub unsent_bytes: u64,
}

/// System calls that failed, of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CallErrors {
    /// The system call.
    pub call: &'static str,
    /// Why they failed.
    #[serde(rename = "fault")]
    pub error: &'static str,
    /// Their number.
    pub count: u64,
}

/// Rejected requests of one source with one code. Requests without credentials and with a stale nonce are part of every
/// client's start and do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedSource {
    /// The client's address.
    pub source: IpAddr,
    /// The code: 401 is a wrong name or password.
    pub code: u16,
    /// Their number since `first_unix_ms`.
    pub count: u64,
    /// The first of them, milliseconds of the Unix epoch.
    pub first_unix_ms: u64,
    /// The last of them, milliseconds of the Unix epoch.
    pub last_unix_ms: u64,
}

/// Error replies with one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CodeCount {
    /// The code.
    pub code: u16,
    /// Their number.
    pub count: u64,
}

/// Peers denied by one rule. The rules are the configuration's and the built-in ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// The rule with its range.
    pub rule: String,
    /// Their number.
    pub count: u64,
}

/// One live allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveAllocation {
    /// The worker that has it.
    pub worker: usize,
    /// Its slot in the worker's table.
    #[serde(skip)]
    pub slot: u32,
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address that the client talks to.
    pub server: SocketAddr,
    /// `udp`, `tcp` or `tls`.
    pub transport: &'static str,
    /// The relayed address, as advertised to peers.
    pub relayed: SocketAddr,
    /// The IPv6 one of a dual allocation.
    pub relayed_second: Option<SocketAddr>,
    /// The realm of its user.
    pub realm: String,
    /// The user's name.
    pub user: String,
    /// Seconds since it was made.
    pub age_s: u64,
    /// Seconds until it ends unless it is refreshed.
    pub expires_s: u64,
    /// Live permissions.
    pub permissions: u32,
    /// Live channels.
    pub channels: u32,
    /// Payload relayed to peers, bytes.
    pub to_peers_bytes: u64,
    /// Payload relayed to the client, bytes.
    pub to_client_bytes: u64,
}

/// Allocations and what hangs on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Allocations {
    /// Live.
    pub live: u64,
    /// Live at most.
    pub capacity: u64,
    /// Made since the start.
    pub created: u64,
    /// Ended since the start: `created - ended = live`.
    pub ended: u64,
    /// Payload relayed from clients to peers, bytes.
    pub to_peers_bytes: u64,
    /// Payload relayed from peers to clients, bytes.
    pub to_clients_bytes: u64,
    /// Payloads relayed from clients to peers.
    pub to_peers_packets: u64,
    /// Payloads relayed from peers to clients.
    pub to_clients_packets: u64,
    /// Live ones by the transport of their client.
    pub live_by_transport: LiveByTransport,
}

/// Live allocations by the transport of their client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveByTransport {
    /// Over UDP.
    pub udp: u64,
    /// Over TCP.
    pub tcp: u64,
    /// Over TLS.
    pub tls: u64,
}

/// Binding requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bindings {
    /// Those that were taken up; requests over a limit, and what is no valid request, are drops.
    pub requests: u64,
    /// Those of them with a success response.
    pub answered: u64,
}

/// Credential of the TURN server for a browser: the value of `RTCPeerConnection`'s `iceServers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IceServers {
    /// The servers.
    #[serde(rename = "iceServers")]
    pub ice_servers: Vec<IceServer>,
}

/// One server of [`IceServers`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IceServer {
    /// Its URLs, `turn:127.0.0.1:3478`.
    pub urls: Vec<String>,
    /// The user.
    pub username: String,
    /// The password.
    pub credential: String,
}

/// Access to the live allocations of all workers: the one interface from the control plane to a driver.
pub trait AllocationAdmin: Send + Sync {
    /// Returns up to `rows_max` live allocations from `from` on.
    fn page(&self, from: AllocationCursor, rows_max: usize) -> ReplyFuture<'_, AllocationPage>;

    /// Returns the live allocation with the relayed address `relayed`.
    fn find(&self, relayed: SocketAddr) -> ReplyFuture<'_, Option<LiveAllocation>>;

    /// Ends the live allocation with the relayed address `relayed`. Returns false if there is none.
    fn end(&self, relayed: SocketAddr) -> ReplyFuture<'_, bool>;

    /// Returns what ended allocations have relayed, with the rows of at most `rows_max` users.
    fn ended_users(&self, rows_max: usize) -> EndedUsers;

    /// Ends the live allocations of a user on all workers, and returns their number. `user` is a name, or the id in
    /// time-limited names, in one realm or in all.
    fn end_user(&self, user: String, realm: Option<String>) -> ReplyFuture<'_, u64>;
}

/// What an operator orders a running server besides ends of allocations.
pub trait Operator: Send + Sync {
    /// Keeps a source away, an address or a prefix, `ADDRESS/BITS`: its allocations end, its requests are dropped and its
    /// connections refused. Returns the range and the number of allocations that ended. Bans end with the process.
    ///
    /// # Errors
    /// [`BanError`]; with [`BanError::NoReply`] the ban is in force, on the other workers and on this one later.
    fn ban<'a>(&'a self, source: &'a str, time: Duration) -> OrderFuture<'a, Result<(String, u64), BanError>>;

    /// Ends the ban of exactly this range. Returns false if there is none.
    ///
    /// # Errors
    /// [`BanError::Source`], [`BanError::NoReply`].
    fn end_ban<'a>(&'a self, source: &'a str) -> OrderFuture<'a, Result<bool, BanError>>;

    /// Lists the bans.
    fn bans(&self) -> Vec<Ban>;

    /// Creates no new allocations from now on. Clients are sent to the one of `alternates` of their address family, if
    /// there is one.
    fn drain(&self, alternates: Vec<SocketAddr>) -> OrderFuture<'_, Result<(), NoReply>>;

    /// Creates allocations again.
    fn end_drain(&self);
}

/// The end of an order to the workers.
pub type OrderFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source that is kept away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ban {
    /// `ADDRESS/BITS`.
    pub source: String,
    /// Until it ends.
    pub seconds_left: u64,
}

/// Why a source was not banned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanError {
    /// It is neither an address nor a prefix, or holds too many addresses; in words.
    Source(String),
    /// There are so many bans already.
    Full(usize),
    /// A worker did not reply in time.
    NoReply,
}

impl fmt::Display for BanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(what) => f.write_str(what),
            Self::Full(bans) => write!(f, "there are {bans} bans already; end one of them"),
            Self::NoReply => NoReply.fmt(f),
        }
    }
}

impl std::error::Error for BanError {}

/// The reply of the workers to one call of [`AllocationAdmin`].
pub type ReplyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, NoReply>> + Send + 'a>>;

/// A worker did not reply in time: it restarts, or is overloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReply;

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a worker did not reply in time")
    }
}

impl std::error::Error for NoReply {}

/// One page of the list of live allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationPage {
    /// The allocations.
    pub rows: Vec<LiveAllocation>,
    /// The start of the next page, if there is one.
    pub next: Option<AllocationCursor>,
}

/// The start of a page of the list. Its text form is `WORKER.SLOT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationCursor {
    /// Index of the worker.
    pub worker: usize,
    /// Index in the worker's table.
    pub slot: u32,
}

impl AllocationCursor {
    /// Parses the output of `Display`; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (worker, slot) = text.split_once('.')?;
        Some(Self { worker: worker.parse().ok()?, slot: slot.parse().ok()? })
    }
}

impl fmt::Display for AllocationCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.worker, self.slot)
    }
}
