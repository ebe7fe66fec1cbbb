//! `[turn]`

mod balancer;
mod database;
mod dscp;
mod kernel_mode;
mod key_sources;
mod memory_size;
mod paths;
mod peer_range;
mod quotas;
mod realm;
mod record_output;
mod relay_sockets;
mod reloaded;
mod streams;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use balancer::Balancers;
pub use database::DatabaseLogins;
pub use dscp::DscpSet;
pub use kernel_mode::KernelMode;
pub use key_sources::KeySources;
pub use memory_size::{MemoryBound, MemorySize};
pub use peer_range::PeerRange;
pub use quotas::{AllocationCaps, QuotasSection};
pub use realm::RealmSection;
pub use record_output::RecordOutput;
pub use relay_sockets::RelaySockets;
pub use reloaded::is_reloaded;
pub use streams::{StreamLimits, StreamsSection};
pub use tls::{TlsCipher, TlsVersion};

/// Configuration of the TURN server. A key has the name of the flag of `truetick turn`, with `_` for `-`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnSection {
    /// Addresses and ports for clients over UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// Addresses and ports for clients over TCP, instead of those of `listen`.
    pub listen_tcp: Vec<SocketAddr>,
    /// Addresses and TCP ports for clients over TLS only.
    pub listen_tls: Vec<SocketAddr>,
    /// Do not accept TCP on the ports of `listen`.
    pub no_tcp: bool,
    /// Balancers whose connections begin with a header of the PROXY protocol, version 1 or 2.
    pub proxy_protocol_from: Vec<Balancers>,
    /// Files with certificate chains for TLS, PEM. Clients choose by name, and the first one is for all others.
    #[serde(with = "paths", skip_serializing_if = "Vec::is_empty")]
    pub cert: Vec<PathBuf>,
    /// Files with the certificates' private keys, PEM, in the same order.
    #[serde(with = "paths", skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<PathBuf>,
    /// The lowest version of TLS.
    pub tls_version_min: Option<TlsVersion>,
    /// Cipher suites of TLS 1.2.
    pub tls_ciphers: Vec<TlsCipher>,
    /// Addresses of relay sockets.
    pub relay_ip: Vec<IpAddr>,
    /// Public addresses that clients see instead of `relay_ip`, in the same order.
    pub external_ip: Vec<IpAddr>,
    /// UDP ports of relay sockets.
    pub relay_ports: Option<PortRange>,
    /// Realm of the long-term credentials. RFC 8489 section 9.2.
    pub realm: Option<String>,
    /// Users as `NAME:PASSWORD` or `NAME:0xKEY`, for tests.
    pub user: Vec<String>,
    /// Files with one `NAME:PASSWORD` or `NAME:0xKEY` per line.
    pub user_file: Vec<PathBuf>,
    /// Files with one secret of time-limited credentials per line.
    pub auth_secret_file: Vec<PathBuf>,
    /// Database with coturn's schema, as `sqlite:PATH`, `postgres:CONNECTION` or `redis:CONNECTION`, with further users, secrets and peers of the realm.
    pub database: Option<String>,
    /// File with the password of the database.
    pub database_password_file: Option<PathBuf>,
    /// Whether clients log in with users or with secrets of the database.
    pub database_logins: Option<DatabaseLogins>,
    /// Redis that gets messages about allocations, as `redis:CONNECTION`.
    pub stats_database: Option<String>,
    /// File with the password of that Redis.
    pub stats_database_password_file: Option<PathBuf>,
    /// File with one or two nonce keys, 64 hexadecimal digits per line.
    pub nonce_key_file: Option<PathBuf>,
    /// Check the expiry of time-limited credentials in every request, not only when an allocation is made.
    pub strict_expiry: bool,
    /// Relay on a channel only while its peer has a permission (RFC 8656 section 9), not as long as it is bound.
    pub strict_permissions: bool,
    /// End the allocations of users and secrets that a reload removes.
    pub kick_removed_users: bool,
    /// Password algorithms for clients.
    pub password_algorithms: Option<PasswordAlgorithms>,
    /// Peers to allow although they are denied by default.
    pub allow_peer: Vec<PeerRange>,
    /// Peers to deny.
    pub deny_peer: Vec<PeerRange>,
    /// Addresses and ports of this host to allow as peers; all others are denied.
    pub allow_own_host: Vec<PeerRange>,
    /// NAT64 prefixes of the network (RFC 6052): the peer policy applies to the IPv4 addresses in them.
    pub nat64_prefix: Vec<IpNet>,
    /// Worker threads.
    pub workers: Option<usize>,
    /// Maximum number of live allocations, over all workers.
    pub allocations_max: Option<u32>,
    /// Accept channel numbers up to 0x7FFF, as in RFC 5766.
    pub rfc5766_channel_numbers: bool,
    /// SOFTWARE attribute of responses (RFC 8489 section 14.14).
    pub software: Option<String>,
    /// Send FINGERPRINT in every response, not only if the request has one (RFC 8489 section 14.7).
    pub fingerprint_always: bool,
    /// Default and shortest lifetime of an allocation, seconds.
    pub lifetime_s: Option<u32>,
    /// Longest lifetime of an allocation, seconds.
    pub lifetime_max_s: Option<u32>,
    /// Lifetime of a nonce, seconds.
    pub nonce_lifetime_s: Option<u32>,
    /// Whether a relayed address of this server may be a peer [default: true].
    pub hairpin: Option<bool>,
    /// Clients that get ICMP errors as Data indications.
    pub icmp_indications: Option<IcmpIndications>,
    /// DSCP values that relayed datagrams may have.
    pub dscp_allow: Option<DscpSet>,
    /// How the packets of bound channels travel.
    pub data_path: Option<KernelMode>,
    /// Whether each relay has a socket, or all relays of a worker share one.
    pub relay_sockets: Option<RelaySockets>,
    /// Accept relay ports below 1024.
    pub relay_low_ports: bool,
    /// Time that a worker polls for the next datagram before it blocks, microseconds.
    ///
    /// `linger_us` is a deprecated alias.
    #[serde(alias = "linger_us")]
    pub busy_poll_us: Option<u32>,
    /// Time that a drain after SIGTERM may take, seconds; 0 stops at once.
    pub drain_timeout_s: Option<u32>,
    /// Resident memory above which no allocations are made, or `off`.
    pub memory_max: Option<MemoryBound>,
    /// Output of allocation records: a file, `stdout` or `journald`.
    pub cdr: Option<RecordOutput>,
    /// `[turn.quotas]`
    pub quotas: QuotasSection,
    /// `[turn.streams]`
    pub streams: StreamsSection,
    /// `[[turn.realms]]`: realms in addition to `realm`, which is for requests that select no other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub realms: Vec<RealmSection>,
    /// Where each key was set, for error texts.
    #[serde(skip)]
    pub key_sources: KeySources,
}

/// Password algorithms for clients. RFC 8489 section 18.5.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PasswordAlgorithms {
    /// Both: the server offers SHA-256, and older clients use MD5.
    Md5AndSha256,
    /// MD5 only; the server offers no algorithms.
    Md5,
    /// SHA-256 only; clients that know only MD5 are rejected.
    Sha256,
}

impl PasswordAlgorithms {
    /// The values as they are written in the configuration file and in flags.
    pub const NAMES: [&str; 3] = ["md5-and-sha256", "md5", "sha256"];
}

impl FromStr for PasswordAlgorithms {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "md5-and-sha256" => Ok(Self::Md5AndSha256),
            "md5" => Ok(Self::Md5),
            "sha256" => Ok(Self::Sha256),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
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

/// Clients that get ICMP errors as Data indications. RFC 8656 section 11.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IcmpIndications {
    /// Clients that have shown that they know RFC 8489 or RFC 8656.
    Auto,
    /// All clients.
    Always,
    /// None.
    Never,
}

impl IcmpIndications {
    /// The values as they are written in the configuration file and in flags.
    pub const NAMES: [&str; 3] = ["auto", "always", "never"];
}

impl FromStr for IcmpIndications {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}

impl From<IcmpIndications> for tt_turn::config::IcmpIndications {
    fn from(indications: IcmpIndications) -> Self {
        match indications {
            IcmpIndications::Auto => Self::Auto,
            IcmpIndications::Always => Self::Always,
            IcmpIndications::Never => Self::Never,
        }
    }
}

impl From<tt_turn::config::IcmpIndications> for IcmpIndications {
    fn from(indications: tt_turn::config::IcmpIndications) -> Self {
        match indications {
            tt_turn::config::IcmpIndications::Auto => Self::Auto,
            tt_turn::config::IcmpIndications::Always => Self::Always,
            tt_turn::config::IcmpIndications::Never => Self::Never,
        }
    }
}

/// UDP ports from `low` to `high`, inclusive, written as `LOW-HIGH`.
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

#[cfg(test)]
mod tests;
