//! What the control plane shows, as JSON: one plain structure an engine, made from what the engine has published.
//!
//! Times end in their unit. Prices and quantities are decimal text, exact, as the venue writes them.

mod market;

use std::net::SocketAddr;

use serde::Serialize;

pub use market::{Account, Book, Candle, Feed, IngestRow, Level, Market, Trade};

/// A count under a name. Names come from closed lists in the code, so that they may label metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The name.
    pub name: &'static str,
    /// How many.
    pub count: u64,
}

/// What came in and what became of each of them: `in = out + drops`, exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// What is counted, a plural noun.
    pub unit: &'static str,
    /// How many came in.
    #[serde(rename = "in")]
    pub input: u64,
    /// How many were answered, forwarded, applied or decided.
    pub out: u64,
    /// How many were dropped.
    pub dropped: u64,
    /// Whether `in = out + dropped`.
    pub closes: bool,
    /// `out` by what became of them.
    pub outcomes: Vec<Count>,
    /// `dropped` by reason.
    pub drops: Vec<Count>,
}

impl Ledger {
    /// Sums up `outcomes` and `drops` against `input`.
    #[must_use]
    pub fn new(unit: &'static str, input: u64, outcomes: Vec<Count>, drops: Vec<Count>) -> Self {
        let out = outcomes.iter().map(|count| count.count).sum();
        let dropped = drops.iter().map(|count| count.count).sum();
        Self { unit, input, out, dropped, closes: input == out + dropped, outcomes, drops }
    }
}

/// The distribution of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Samples.
    pub n: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// 95 of 100 are not longer; absent before one is.
    pub p95_ns: Option<u64>,
    /// 99 of 100 are not longer; absent before one is.
    pub p99_ns: Option<u64>,
    /// 999 of 1,000 are not longer; absent before one is.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

/// One stage of the pass. A stage is shorter than a clock's resolution allows quantiles for: it has a mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StageMean {
    /// The stage's name.
    pub stage: &'static str,
    /// Samples.
    pub n: u64,
    /// The mean, nanoseconds.
    pub mean_ns: f64,
}

/// The latency ledger of an engine, from live traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stages {
    /// One pass of so many is sampled.
    pub one_in: u32,
    /// The five stages in order.
    pub stages: Vec<StageMean>,
    /// The whole pass; absent until one was sampled.
    pub pass: Option<Quantiles>,
    /// The same, bucket by bucket; in `/api/v1/machine/passes` only.
    #[serde(skip)]
    pub buckets: Vec<tt_report::Bucket>,
}

/// The TURN server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Where it listens, with the transport.
    pub listens: Vec<String>,
    /// The realm of its credentials.
    pub realm: String,
    /// Worker threads.
    pub workers: usize,
    /// Datagrams.
    pub ledger: Ledger,
    /// The pass of a datagram.
    pub stages: Stages,
    /// Allocations and what hangs on them.
    pub allocations: Allocations,
    /// Connections over TCP and TLS.
    pub streams: Streams,
    /// Whether it makes no new allocations, since it is about to end.
    pub draining: bool,
    /// Workers that are down after a panic.
    pub workers_down: usize,
    /// Panics of workers since the start.
    pub panics: u64,
    /// Datagrams that the kernel dropped for want of buffer; no part of the ledger.
    pub kernel_lost: u64,
    /// System calls that failed.
    pub faults: Vec<Fault>,
    /// Error replies by code.
    pub errors: Vec<CodeCount>,
    /// Requests refused with 403, 486 or 508, by why.
    pub refusals: Vec<Count>,
    /// Peers denied, by the rule of the peer policy.
    pub denied: Vec<RuleCount>,
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
    /// Not taken, by the bound that was reached.
    pub refused: Vec<Count>,
    /// Ended since the start, by reason.
    pub ended: Vec<Count>,
    /// Whole messages that came in; the ledger counts them with the datagrams.
    pub messages_in: u64,
    /// Bytes that still waited to be sent when their connection ended.
    pub unsent_bytes: u64,
}

/// System calls that failed, of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What they were for.
    pub call: &'static str,
    /// Why they failed.
    pub fault: &'static str,
    /// How many.
    pub count: u64,
}

/// Error replies with one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CodeCount {
    /// The code.
    pub code: u16,
    /// How many.
    pub count: u64,
}

/// Peers denied by one rule. The rules are the configuration's and the built-in ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// The rule with its range.
    pub rule: String,
    /// How many.
    pub count: u64,
}

/// One live allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveAllocation {
    /// The worker that has it.
    pub worker: usize,
    /// Its place there.
    #[serde(skip)]
    pub place: u32,
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address that the client talks to.
    pub server: SocketAddr,
    /// `udp`, `tcp` or `tls`.
    pub transport: &'static str,
    /// The relayed address, as peers are told.
    pub relayed: SocketAddr,
    /// The IPv6 one of a dual allocation.
    pub relayed_second: Option<SocketAddr>,
    /// The user's name, its first 63 bytes.
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
}

/// The gate and the strategy in front of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Risk {
    /// Intents.
    pub ledger: Ledger,
    /// The pass of an intent through the gate.
    pub stages: Stages,
    /// From the strategy's push to the verdict.
    pub journey: Option<Quantiles>,
    /// The ring between strategy and gate.
    pub ring: Ring,
    /// Refusals by reason; one intent may have several.
    pub reasons: Vec<Count>,
    /// The latest verdicts, newest first.
    pub verdicts: Vec<VerdictRow>,
    /// The limits, an instrument a row.
    pub limits: Vec<LimitsRow>,
}

/// The ring between the strategy and the gate: `pushed = popped + queued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ring {
    /// Slots.
    pub capacity: u64,
    /// Pushed since the start.
    pub pushed: u64,
    /// Popped since the start.
    pub popped: u64,
    /// Pushes that found the ring full; the strategy did not send those.
    pub full: u64,
}

/// One verdict with the intent that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictRow {
    /// The gate's sequence number.
    pub seq: u64,
    /// When it was made, milliseconds of the Unix epoch.
    pub at_unix_ms: u64,
    /// The normalised symbol.
    pub symbol: String,
    /// The venue.
    pub venue: &'static str,
    /// `buy` or `sell`.
    pub side: &'static str,
    /// The limit price.
    pub px: String,
    /// The quantity.
    pub qty: String,
    /// Whether the gate let it pass.
    pub accept: bool,
    /// Every reason found.
    pub reasons: Vec<&'static str>,
    /// From the strategy's push to the verdict, nanoseconds.
    pub journey_ns: u64,
}

/// The limits of one account and instrument beside what is used of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitsRow {
    /// The normalised symbol.
    pub symbol: String,
    /// The venue.
    pub venue: &'static str,
    /// The position, signed.
    pub position: String,
    /// The largest long and short position.
    pub position_max: String,
    /// Open orders.
    pub open_orders: u32,
    /// Open orders at most.
    pub open_orders_max: u32,
    /// The largest quantity of an order.
    pub qty_max: String,
    /// The largest notional of an order.
    pub notional_max: String,
    /// The widest distance from the reference price, basis points.
    pub collar_bps: u32,
    /// Intents a second that the account may send.
    pub rate_per_s: u32,
}

/// What a browser needs to use the TURN server: the value of `RTCPeerConnection`'s `iceServers`.
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

/// The machine and this process on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// truetick's version.
    pub version: &'static str,
    /// `release`, or `debug`: then every time is many times too long.
    pub build: &'static str,
    /// The instruction set.
    pub arch: &'static str,
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The frequency governor, absent where the machine has none.
    pub governor: Option<String>,
    /// Since the control plane started, milliseconds.
    pub uptime_ms: u64,
    /// Memory in use, bytes.
    pub rss_bytes: u64,
    /// Processor time used by all threads, milliseconds.
    pub cpu_ms: u64,
    /// Threads.
    pub threads: u64,
}
