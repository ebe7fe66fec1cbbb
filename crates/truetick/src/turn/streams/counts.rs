//! What is counted of connections.

use tt_net::FaultCounts;
use tt_net::stream::StreamEnd;

/// Why a connection was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::turn) enum Refusal {
    /// Its source has as many as it may that have said nothing.
    SourceHalfOpen = 0,
    /// Its source has as many as it may.
    SourceConnections = 1,
    /// There are as many as there may be.
    Connections = 2,
}

impl Refusal {
    pub(in crate::turn) const ALL: [Self; 3] = [Self::SourceHalfOpen, Self::SourceConnections, Self::Connections];

    /// The name in metrics.
    pub(in crate::turn) const fn name(self) -> &'static str {
        match self {
            Self::SourceHalfOpen => "source_half_open",
            Self::SourceConnections => "source_connections",
            Self::Connections => "connections",
        }
    }
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::turn) enum End {
    /// The client has closed it.
    Client = 0,
    /// It was broken off.
    Reset = 1,
    /// It brought neither STUN nor ChannelData.
    NotStun = 2,
    /// It brought a message longer than is taken.
    TooLong = 3,
    /// It began with TLS, and there is no certificate.
    NoCertificate = 4,
    /// TLS could not be agreed on, or was broken.
    Tls = 5,
    /// The system refused a call.
    Failed = 6,
    /// The TLS handshake took too long.
    HandshakeDeadline = 7,
    /// The first message did not come in time.
    FirstMessageDeadline = 8,
    /// Nothing came for long, and it had no allocation.
    Idle = 9,
    /// It had no allocation, and made room where there were as many as there may be.
    Displaced = 10,
    /// Its worker has panicked.
    Panic = 11,
}

impl End {
    pub(in crate::turn) const ALL: [Self; 12] = [
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
    ];

    pub(super) const fn of(end: StreamEnd) -> Self {
        match end {
            StreamEnd::Client => Self::Client,
            StreamEnd::Reset => Self::Reset,
            StreamEnd::NotStun => Self::NotStun,
            StreamEnd::TooLong => Self::TooLong,
            StreamEnd::NoCertificate => Self::NoCertificate,
            StreamEnd::Tls => Self::Tls,
            StreamEnd::Failed(_) => Self::Failed,
        }
    }

    /// The name in metrics.
    pub(in crate::turn) const fn name(self) -> &'static str {
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
        }
    }
}

/// What one worker has counted of its connections. `accepted` is `open` and the sum of `ended`.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::turn) struct StreamCounts {
    /// Connections taken.
    pub(in crate::turn) accepted: u64,
    /// Connections not taken, by [`Refusal`].
    pub(in crate::turn) refused: [u64; Refusal::ALL.len()],
    /// Connections ended, by [`End`].
    pub(in crate::turn) ended: [u64; End::ALL.len()],
    /// Connections now.
    pub(in crate::turn) open: u64,
    /// Those of them over TLS, in the handshake or behind it.
    pub(in crate::turn) open_tls: u64,
    /// Those of them that have brought no whole message.
    pub(in crate::turn) half_open: u64,
    /// TLS handshakes completed.
    pub(in crate::turn) handshakes: u64,
    /// Whole messages that came in.
    pub(in crate::turn) messages_in: u64,
    /// Bytes that still waited in queues when their connection ended.
    pub(in crate::turn) unsent_bytes: u64,
    /// Failures to take or watch a connection.
    pub(in crate::turn) faults: FaultCounts,
}

impl StreamCounts {
    /// Adds another worker's.
    pub(in crate::turn) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused.iter_mut().zip(other.refused).for_each(|(mine, theirs)| *mine += theirs);
        self.ended.iter_mut().zip(other.ended).for_each(|(mine, theirs)| *mine += theirs);
        self.open += other.open;
        self.open_tls += other.open_tls;
        self.half_open += other.half_open;
        self.handshakes += other.handshakes;
        self.messages_in += other.messages_in;
        self.unsent_bytes += other.unsent_bytes;
        self.faults.merge(&other.faults);
    }
}
