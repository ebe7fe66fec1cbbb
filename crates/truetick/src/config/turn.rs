//! `[turn]`

mod quotas;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Source;
use crate::turn::StreamLimits;

pub use quotas::{AllocationCaps, QuotasSection};

/// The TURN server; each key is the flag of `truetick turn` of that name, with `_` for `-`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnSection {
    /// Addresses and ports that clients reach, over UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// Addresses and TCP ports of clients over TCP, in place of those of `listen`.
    pub listen_tcp: Vec<SocketAddr>,
    /// Addresses and TCP ports of clients over TLS alone.
    pub listen_tls: Vec<SocketAddr>,
    /// No TCP beside UDP on the ports of `listen`.
    pub no_tcp: bool,
    /// File with the certificate for TLS and its chain, PEM.
    pub cert: Option<PathBuf>,
    /// File with the certificate's private key, PEM.
    pub key: Option<PathBuf>,
    /// Addresses that relay sockets are bound to.
    pub relay_ip: Vec<IpAddr>,
    /// Addresses that clients are told in place of `relay_ip`, in the same order.
    pub external_ip: Vec<IpAddr>,
    /// UDP ports that relay sockets are bound to.
    pub relay_ports: Option<PortRange>,
    /// Realm of the long-term credentials. RFC 8489 section 9.2.
    pub realm: Option<String>,
    /// Users as `NAME:PASSWORD`, for trying out.
    pub user: Vec<String>,
    /// Files with one `NAME:PASSWORD` a line.
    pub user_file: Vec<PathBuf>,
    /// Files with one secret of time-limited credentials a line.
    pub auth_secret_file: Vec<PathBuf>,
    /// File with one or two nonce keys, 64 hexadecimal digits a line.
    pub nonce_key_file: Option<PathBuf>,
    /// What passwords may be hashed with.
    pub password_algorithms: Option<PasswordAlgorithms>,
    /// Peers that may be reached although they are denied by default.
    pub allow_peer: Vec<IpNet>,
    /// Peers that may not be reached.
    pub deny_peer: Vec<IpNet>,
    /// NAT64 prefixes of the network, RFC 6052: the IPv4 addresses in them are judged too.
    pub nat64_prefix: Vec<IpNet>,
    /// Threads that serve clients.
    pub workers: Option<usize>,
    /// Live allocations at most, over all workers.
    pub allocations_max: Option<u32>,
    /// Channel numbers up to 0x7FFF, as RFC 5766 had them.
    pub rfc5766_channel_numbers: bool,
    /// Whether relayed addresses of this server may be peers of each other; they may unless told otherwise.
    pub hairpin: Option<bool>,
    /// Microseconds that a worker stays awake for the next datagram before it sleeps.
    pub linger_us: Option<u32>,
    /// Seconds that a drain after SIGTERM may take; 0 ends at once.
    pub drain_timeout_s: Option<u32>,
    /// `[turn.quotas]`
    pub quotas: QuotasSection,
    /// `[turn.streams]`
    pub streams: StreamsSection,
    /// Where all of it was read from.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// What a client may hash its password with, RFC 8489 section 18.5.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PasswordAlgorithms {
    /// Either; SHA-256 is offered, and older clients know MD5 only.
    Md5AndSha256,
    /// MD5; nothing is offered.
    Md5,
    /// SHA-256; clients that know MD5 only are refused.
    Sha256,
}

impl From<PasswordAlgorithms> for tt_turn::config::PasswordAlgorithms {
    fn from(algorithms: PasswordAlgorithms) -> Self {
        match algorithms {
            PasswordAlgorithms::Md5AndSha256 => Self::Md5AndSha256,
            PasswordAlgorithms::Md5 => Self::Md5,
            PasswordAlgorithms::Sha256 => Self::Sha256,
        }
    }
}

impl From<tt_turn::config::PasswordAlgorithms> for PasswordAlgorithms {
    fn from(algorithms: tt_turn::config::PasswordAlgorithms) -> Self {
        match algorithms {
            tt_turn::config::PasswordAlgorithms::Md5AndSha256 => Self::Md5AndSha256,
            tt_turn::config::PasswordAlgorithms::Md5 => Self::Md5,
            tt_turn::config::PasswordAlgorithms::Sha256 => Self::Sha256,
        }
    }
}

/// Bounds of connections over TCP and TLS; what is left out keeps its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamsSection {
    /// Connections of one source that have not brought a whole message.
    pub half_open_per_source: Option<u32>,
    /// Connections of one source.
    pub connections_per_source: Option<u32>,
    /// Connections of all sources.
    pub connections_max: Option<u32>,
    /// Seconds that a TLS handshake may take.
    pub handshake_s: Option<u64>,
    /// Seconds within which the first whole message must have come.
    pub first_message_s: Option<u64>,
    /// Seconds without a whole message that a connection without an allocation may last.
    pub idle_s: Option<u64>,
    /// Bytes that may wait to be sent on one connection.
    pub queue_bytes: Option<usize>,
}

impl From<StreamLimits> for StreamsSection {
    fn from(limits: StreamLimits) -> Self {
        Self {
            half_open_per_source: Some(limits.half_open_per_source),
            connections_per_source: Some(limits.connections_per_source),
            connections_max: Some(limits.connections_max),
            handshake_s: Some(limits.handshake_s),
            first_message_s: Some(limits.first_message_s),
            idle_s: Some(limits.idle_s),
            queue_bytes: Some(limits.queue_bytes),
        }
    }
}

impl StreamsSection {
    /// The bounds, with the defaults for what is left out.
    #[must_use]
    pub fn limits(&self) -> StreamLimits {
        let default = StreamLimits::default();
        StreamLimits {
            half_open_per_source: self.half_open_per_source.unwrap_or(default.half_open_per_source),
            connections_per_source: self.connections_per_source.unwrap_or(default.connections_per_source),
            connections_max: self.connections_max.unwrap_or(default.connections_max),
            handshake_s: self.handshake_s.unwrap_or(default.handshake_s),
            first_message_s: self.first_message_s.unwrap_or(default.first_message_s),
            idle_s: self.idle_s.unwrap_or(default.idle_s),
            queue_bytes: self.queue_bytes.unwrap_or(default.queue_bytes),
            ..default
        }
    }
}

/// UDP ports from `low` to `high`, both included; written `LOW-HIGH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    /// The first port.
    pub low: u16,
    /// The last port, not below `low`.
    pub high: u16,
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bounds = text.split_once('-').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        match bounds {
            Some((low, high)) if 0 < low && low <= high => Ok(Self { low, high }),
            Some(_) | None => Err(format!("`{text}` is not a port range LOW-HIGH")),
        }
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> Self {
        format!("{}-{}", range.low, range.high)
    }
}

impl TryFrom<String> for PortRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
