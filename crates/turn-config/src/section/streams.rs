//! `[turn.streams]`

use serde::{Deserialize, Serialize};

/// Limits of connections over TCP and TLS. An absent key has its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamsSection {
    /// Connections of one source without a whole message yet.
    pub half_open_per_source: Option<u32>,
    /// Connections of one source.
    pub connections_per_source: Option<u32>,
    /// Connections of all sources.
    pub connections_max: Option<u32>,
    /// TLS handshakes in progress.
    pub handshakes_max: Option<u32>,
    /// Threads for TLS handshakes.
    pub handshake_threads: Option<u32>,
    /// Time for the PROXY header of a balancer, seconds.
    pub proxy_header_s: Option<u64>,
    /// Time for a TLS handshake, seconds.
    pub handshake_s: Option<u64>,
    /// Time for the first whole message, seconds.
    pub first_message_s: Option<u64>,
    /// Time without a whole message after which a connection without an allocation is closed, seconds.
    pub idle_s: Option<u64>,
    /// Length of the send queue of one connection, bytes.
    pub queue_bytes: Option<usize>,
    /// Longest message from a client without an allocation, bytes.
    pub first_message_bytes: Option<usize>,
}

impl From<StreamLimits> for StreamsSection {
    fn from(limits: StreamLimits) -> Self {
        Self {
            half_open_per_source: Some(limits.half_open_per_source),
            connections_per_source: Some(limits.connections_per_source),
            connections_max: Some(limits.connections_max),
            handshakes_max: Some(limits.handshakes_max),
            handshake_threads: Some(limits.handshake_threads),
            proxy_header_s: Some(limits.proxy_header_s),
            handshake_s: Some(limits.handshake_s),
            first_message_s: Some(limits.first_message_s),
            idle_s: Some(limits.idle_s),
            queue_bytes: Some(limits.queue_bytes),
            first_message_bytes: Some(limits.first_message_bytes),
        }
    }
}

impl StreamsSection {
    /// Returns the limits, with defaults for absent keys.
    #[must_use]
    pub fn limits(&self) -> StreamLimits {
        let default = StreamLimits::default();
        StreamLimits {
            half_open_per_source: self.half_open_per_source.unwrap_or(default.half_open_per_source),
            connections_per_source: self.connections_per_source.unwrap_or(default.connections_per_source),
            connections_max: self.connections_max.unwrap_or(default.connections_max),
            handshakes_max: self.handshakes_max.unwrap_or(default.handshakes_max),
            handshake_threads: self.handshake_threads.unwrap_or(default.handshake_threads),
            proxy_header_s: self.proxy_header_s.unwrap_or(default.proxy_header_s),
            handshake_s: self.handshake_s.unwrap_or(default.handshake_s),
            first_message_s: self.first_message_s.unwrap_or(default.first_message_s),
            idle_s: self.idle_s.unwrap_or(default.idle_s),
            queue_bytes: self.queue_bytes.unwrap_or(default.queue_bytes),
            first_message_bytes: self.first_message_bytes.unwrap_or(default.first_message_bytes),
        }
    }
}

/// Limits of connections over TCP and TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections of one source without a whole message yet. The length of an IPv6 source's prefix is a quota.
    pub half_open_per_source: u32,
    /// Connections of one source.
    pub connections_per_source: u32,
    /// Connections of all sources, over all workers.
    pub connections_max: u32,
    /// TLS handshakes in progress, of all sources. More wait; a source with fewer takes the place of one with more.
    pub handshakes_max: u32,
    /// Threads for TLS handshakes, besides the workers and with a lower priority.
    pub handshake_threads: u32,
    /// Time for the PROXY header of a balancer, seconds.
    pub proxy_header_s: u64,
    /// Time for a TLS handshake, seconds.
    pub handshake_s: u64,
    /// Time for the first whole message, seconds.
    pub first_message_s: u64,
    /// Time without a whole message after which a connection without an allocation is closed, seconds.
    pub idle_s: u64,
    /// Length of the send queue of one connection, bytes. If it is full, messages are dropped.
    pub queue_bytes: usize,
    /// Longest message from a client without an allocation, bytes.
    pub first_message_bytes: usize,
}

impl StreamLimits {
    /// Returns the same limits without those of one source.
    #[must_use]
    pub const fn of_all(self) -> Self {
        Self { half_open_per_source: u32::MAX, connections_per_source: u32::MAX, ..self }
    }
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            half_open_per_source: 4_096,
            connections_per_source: 4_096,
            connections_max: 16_384,
            handshakes_max: 1_024,
            handshake_threads: 1,
            proxy_header_s: 5,
            handshake_s: 5,
            first_message_s: 10,
            idle_s: 60,
            queue_bytes: 64 << 10,
            first_message_bytes: 8 << 10,
        }
    }
}
