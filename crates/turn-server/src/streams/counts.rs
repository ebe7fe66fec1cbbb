//! Counters of connections.

use tt_net::FaultCounts;
use tt_net::stream::{ProxyFault, StreamEnd};

/// Why a connection was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RejectReason {
    /// The source has the maximum number of half-open connections.
    SourceHalfOpen = 0,
    /// The source has the maximum number of connections.
    SourceConnections = 1,
    /// The server has the maximum number of connections.
    Connections = 2,
    /// An operator keeps the source away.
    Banned = 3,
}

impl RejectReason {
    pub(crate) const ALL: [Self; 4] = [Self::SourceHalfOpen, Self::SourceConnections, Self::Connections, Self::Banned];

    /// Returns the name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SourceHalfOpen => "source_half_open",
            Self::SourceConnections => "source_connections",
            Self::Connections => "connections",
            Self::Banned => "banned",
        }
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum End {
    /// The client closed it.
    Client = 0,
    /// It was reset.
    Reset = 1,
    /// It sent neither STUN nor ChannelData.
    NotStun = 2,
    /// It sent a message that is too long.
    TooLong = 3,
    /// It started TLS, and there is no certificate.
    NoCertificate = 4,
    /// The TLS handshake or a TLS record failed.
    Tls = 5,
    /// A system call failed.
    Failed = 6,
    /// The TLS handshake took too long.
    HandshakeDeadline = 7,
    /// The first message took too long.
    FirstMessageDeadline = 8,
    /// It was idle without an allocation.
    Idle = 9,
    /// It had no allocation and was closed to make room for a new connection.
    Displaced = 10,
    /// Its worker or its handshake panicked.
    Panic = 11,
    /// Its source had most of the TLS handshakes in progress, and another source needed one.
    HandshakeDisplaced = 12,
    /// A balancer sent something else than a PROXY header.
    ProxyHeaderMissing = 13,
    /// A balancer sent a PROXY header that breaks the specification.
    ProxyHeaderInvalid = 14,
    /// A balancer sent a PROXY header that is too long.
    ProxyHeaderTooLong = 15,
    /// A PROXY header came from an address that is not listed, or was the second one.
    ProxyHeaderUnlisted = 16,
    /// The PROXY header took too long.
    ProxyHeaderDeadline = 17,
    /// The source that a PROXY header names has reached a limit.
    ProxiedSourceLimit = 18,
}

impl End {
    pub(crate) const ALL: [Self; 19] = [
        Self::Client,
        Self::Reset,
        Self::NotStun,
        Self::TooLong,
        Self::NoCertificate,
        Self::Tls,
        Self::Failed,
        Self::HandshakeDeadline,
        Self::FirstMessageDeadline,
        Self::Idle,
        Self::Displaced,
        Self::Panic,
        Self::HandshakeDisplaced,
        Self::ProxyHeaderMissing,
        Self::ProxyHeaderInvalid,
        Self::ProxyHeaderTooLong,
        Self::ProxyHeaderUnlisted,
        Self::ProxyHeaderDeadline,
        Self::ProxiedSourceLimit,
    ];

    pub(super) const fn of(end: StreamEnd) -> Self {
        match end {
            StreamEnd::Client => Self::Client,
            StreamEnd::Reset => Self::Reset,
            StreamEnd::NotStun => Self::NotStun,
            StreamEnd::TooLong => Self::TooLong,
            StreamEnd::NoCertificate => Self::NoCertificate,
            StreamEnd::Tls => Self::Tls,
            StreamEnd::ProxyHeader(ProxyFault::Missing) => Self::ProxyHeaderMissing,
            StreamEnd::ProxyHeader(ProxyFault::Invalid) => Self::ProxyHeaderInvalid,
            StreamEnd::ProxyHeader(ProxyFault::TooLong) => Self::ProxyHeaderTooLong,
            StreamEnd::ProxyHeader(ProxyFault::Unlisted) => Self::ProxyHeaderUnlisted,
            StreamEnd::Failed(_) => Self::Failed,
        }
    }

    /// Returns the name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Reset => "reset",
            Self::NotStun => "not_stun",
            Self::TooLong => "too_long",
            Self::NoCertificate => "no_certificate",
            Self::Tls => "tls",
            Self::Failed => "failed",
            Self::HandshakeDeadline => "handshake_deadline",
            Self::FirstMessageDeadline => "first_message_deadline",
            Self::Idle => "idle",
            Self::Displaced => "displaced",
            Self::Panic => "panic",
            Self::HandshakeDisplaced => "handshake_displaced",
            Self::ProxyHeaderMissing => "proxy_header_missing",
            Self::ProxyHeaderInvalid => "proxy_header_invalid",
            Self::ProxyHeaderTooLong => "proxy_header_too_long",
            Self::ProxyHeaderUnlisted => "proxy_header_unlisted",
            Self::ProxyHeaderDeadline => "proxy_header_deadline",
            Self::ProxiedSourceLimit => "proxied_source_limit",
        }
    }
}

/// Counters of the connections of one worker: `accepted` equals `open` plus the sum of `ended`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamCounts {
    /// Accepted connections.
    pub(crate) accepted: u64,
    /// Rejected connections, by [`RejectReason`].
    pub(crate) rejected: [u64; RejectReason::ALL.len()],
    /// Ended connections, by [`End`].
    pub(crate) ended: [u64; End::ALL.len()],
    /// Open connections.
    pub(crate) open: u64,
    /// Those of them that use TLS.
    pub(crate) open_tls: u64,
    /// Those of them without a whole message yet.
    pub(crate) half_open: u64,
    /// Completed TLS handshakes.
    pub(crate) handshakes: u64,
    /// Those of them with the ticket of an earlier session.
    pub(crate) handshakes_resumed: u64,
    /// TLS handshakes that have begun or wait to begin.
    pub(crate) handshakes_in_progress: u64,
    /// Received whole messages.
    pub(crate) messages_in: u64,
    /// Bytes in send queues when their connection ended.
    pub(crate) unsent_bytes: u64,
    /// Failures to accept or poll a connection.
    pub(crate) faults: FaultCounts,
}

impl StreamCounts {
    /// Adds the counters of another worker.
    pub(crate) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.rejected.iter_mut().zip(other.rejected).for_each(|(mine, theirs)| *mine += theirs);
        self.ended.iter_mut().zip(other.ended).for_each(|(mine, theirs)| *mine += theirs);
        self.open += other.open;
        self.open_tls += other.open_tls;
        self.half_open += other.half_open;
        self.handshakes += other.handshakes;
        self.handshakes_resumed += other.handshakes_resumed;
        self.handshakes_in_progress += other.handshakes_in_progress;
        self.messages_in += other.messages_in;
        self.unsent_bytes += other.unsent_bytes;
        self.faults.merge(&other.faults);
    }
}
