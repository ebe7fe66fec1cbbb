//! The checked configuration of a server.

mod addresses;
mod credentials;
mod peers;
mod realms;
mod streams;

pub use peers::PeerPolicies;
pub use realms::{Realm, check_name};
pub use streams::CertificateFiles;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use addresses::{default_listen, relays};
use anyhow::ensure;
use ipnet::IpNet;
use tt_net::stream::TlsRules;
use tt_turn::config::{
    ChannelNumbers, ExpiryCheck, FingerprintUse, GrantReports, Hairpin, IcmpIndications, LapsedPermissions,
    PasswordAlgorithms as EngineAlgorithms, RemovedUsers,
};
use tt_turn::shared::Quotas;

use crate::credentials::{AuthSecret, ExternalPeers, ExternalUsers, MASK, NonceKeys, Users};
use crate::section::{
    AllocationCaps, Balancers, DscpSet, KernelMode, KeySources, MemoryBound, MemorySize, PeerRange, PortRange,
    QuotasSection, RealmSection, RecordOutput, RelaySockets, StreamLimits, TurnSection,
};

/// The lowest bound of resident memory: a server without clients has more.
const MEMORY_MIN: MemorySize = MemorySize { bytes: 1 << 20 };
/// The port of STUN and TURN over UDP and TCP. RFC 8656 section 3.
const PORT: u16 = 3478;
/// The dynamic ports, RFC 6335, from which relayed addresses are to be taken. RFC 8656 section 7.2.
const RELAY_PORTS: PortRange = PortRange { low: 49_152, high: 65_535 };
/// The first port that is no system port, RFC 6335. RFC 8656 section 7.2: relayed addresses never have one below.
const LOW_PORTS_END: u16 = 1_024;
const REALM: &str = "truetick";
/// The engine's bound, RFC 8489 section 14.9.
const REALM_CHARACTERS_MAX: usize = 127;
/// RFC 8489 section 14.14: fewer than 128 characters.
const SOFTWARE_CHARACTERS_MAX: usize = 127;
/// The default lifetime and the longest, RFC 8656 sections 3.2 and 7.2.
const LIFETIME_S: u32 = 600;
const LIFETIME_MAX_S: u32 = 3_600;
/// Clients refresh a minute before an allocation ends. RFC 8656 section 8.
const LIFETIMES_S: RangeInclusive<u32> = 60..=86_400;
/// The longest lifetime of a nonce, RFC 8656 section 5.
const NONCE_LIFETIME_S: u32 = 3_600;
const NONCE_LIFETIMES_S: RangeInclusive<u32> = 1..=NONCE_LIFETIME_S;
/// The most worker threads.
pub const WORKERS_MAX: usize = 256;
const HANDSHAKE_THREADS_MAX: u32 = 64;
/// One second: with longer gaps between datagrams, a wake-up does not matter.
const BUSY_POLL_US_MAX: u32 = 1_000_000;
const ALLOCATIONS: u32 = 8_192;
/// The most live allocations: the tables for all of them are created at the start.
pub const ALLOCATIONS_MAX: u32 = 1 << 20;
const SAMPLED_ONE_IN: u32 = 64;
/// Less than the default stop time-outs of service managers, 30 s and 90 s.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
const RESTART_DELAY: Duration = Duration::from_millis(250);

/// An address of relay sockets, and the address that clients and peers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayIp {
    /// Address of this machine.
    pub bound: IpAddr,
    /// The same address, or the public address that a NAT maps to it.
    pub external: IpAddr,
}

/// The checked configuration of a server, with explicit values for everything.
#[derive(Clone, Debug)]
pub struct TurnConfig {
    /// Addresses and UDP ports of the listeners.
    pub listen: Vec<SocketAddr>,
    /// Whether the same ports accept TCP.
    pub tcp_on_udp_ports: bool,
    /// Further addresses and TCP ports.
    pub listen_tcp: Vec<SocketAddr>,
    /// Addresses and TCP ports that accept TLS only.
    pub listen_tls: Vec<SocketAddr>,
    /// Balancers whose connections begin with a PROXY header.
    pub proxy_protocol_from: Vec<Balancers>,
    /// The certificates for TLS, the first one for clients that name no other; without one, TLS is off.
    pub certificates: Vec<CertificateFiles>,
    /// What TLS offers to clients.
    pub tls: TlsRules,
    /// Limits of connections over TCP and TLS.
    pub streams: StreamLimits,
    /// Addresses of relay sockets.
    pub relay_ips: Vec<RelayIp>,
    /// UDP ports of relay sockets.
    pub relay_ports: PortRange,
    /// Realm of the credentials.
    pub realm: String,
    /// Realms after this one, which is for requests that select no other.
    pub realms: Vec<Realm>,
    /// Static users.
    pub users: Users,
    /// Secrets of time-limited credentials; each of them is valid.
    pub auth_secrets: Vec<AuthSecret>,
    /// Whether further users and secrets come from outside the configuration.
    pub external_users: ExternalUsers,
    /// Keys of nonces; without them, a random key.
    pub nonce_keys: Option<NonceKeys>,
    /// When the expiry of a time-limited credential is checked.
    pub expiry_check: ExpiryCheck,
    /// Channels whose permission has expired.
    pub lapsed_permissions: LapsedPermissions,
    /// Allocations of users and secrets that a reload removes.
    pub removed_users: RemovedUsers,
    /// Password algorithms for clients.
    pub password_algorithms: EngineAlgorithms,
    /// Peers to allow although they are denied by default.
    pub allow_peers: Vec<PeerRange>,
    /// Peers to deny.
    pub deny_peers: Vec<PeerRange>,
    /// Addresses and ports of this host that peers may have.
    pub allow_own_hosts: Vec<PeerRange>,
    /// Peer rules from outside the configuration for users of the default realm.
    pub external_peers: Arc<ExternalPeers>,
    /// NAT64 prefixes in addition to the well-known one.
    pub nat64_prefixes: Vec<IpNet>,
    /// Worker threads.
    pub workers: usize,
    /// Channel numbers that a client may bind.
    pub channel_numbers: ChannelNumbers,
    /// SOFTWARE attribute of responses; `None` for none.
    pub software: Option<String>,
    /// When responses carry FINGERPRINT.
    pub fingerprint: FingerprintUse,
    /// Default and shortest lifetime of an allocation, seconds.
    pub lifetime_s: u32,
    /// Longest lifetime of an allocation, seconds.
    pub lifetime_max_s: u32,
    /// Lifetime of a nonce, seconds.
    pub nonce_lifetime_s: u32,
    /// Whether a relayed address of this server may be a peer.
    pub hairpin: Hairpin,
    /// Clients that get ICMP errors as Data indications.
    pub icmp_indications: IcmpIndications,
    /// DSCP values that relayed datagrams may have; others become 0.
    pub dscp_allow: DscpSet,
    /// How the packets of bound channels travel.
    pub data_path: KernelMode,
    /// Whether relays share sockets.
    pub relay_sockets: RelaySockets,
    /// Time that a worker polls for the next datagram before it blocks, microseconds.
    pub busy_poll_us: u32,
    /// Maximum number of live allocations, over all workers.
    pub allocations_max: u32,
    /// Quotas of each user and each source address.
    pub quotas: Quotas,
    /// Limits of each allocation.
    pub caps: AllocationCaps,
    /// Resident memory above which no allocations are made; see [`TurnConfig::memory_bound`].
    pub memory_max: Option<MemoryBound>,
    /// Output of allocation records.
    pub cdr: Option<RecordOutput>,
    /// Whether a database of statistics gets messages.
    pub grant_reports: GrantReports,
    /// Time that a drain may take; zero stops at once.
    pub drain_timeout: Duration,
    /// Delay between a panic of a worker and its restart. It doubles up to 8 s while panics repeat.
    pub restart_delay: Duration,
    /// One in this many datagrams is timed.
    pub sample_one_in: u32,
}

impl TurnConfig {
    /// Returns the defaults for a server on `listen` that relays on the same address and has no users.
    #[must_use]
    pub fn on(listen: SocketAddr) -> Self {
        Self {
            listen: vec![listen],
            tcp_on_udp_ports: true,
            listen_tcp: Vec::new(),
            listen_tls: Vec::new(),
            proxy_protocol_from: Vec::new(),
            certificates: Vec::new(),
            tls: TlsRules::default(),
            streams: StreamLimits::default(),
            relay_ips: vec![RelayIp { bound: listen.ip(), external: listen.ip() }],
            relay_ports: RELAY_PORTS,
            realm: REALM.into(),
            realms: Vec::new(),
            users: Users::default(),
            auth_secrets: Vec::new(),
            external_users: ExternalUsers::None,
            nonce_keys: None,
            expiry_check: ExpiryCheck::AtAllocate,
            lapsed_permissions: LapsedPermissions::ChannelRelays,
            removed_users: RemovedUsers::KeepAllocations,
            password_algorithms: EngineAlgorithms::Md5AndSha256,
            allow_peers: Vec::new(),
            deny_peers: Vec::new(),
            allow_own_hosts: Vec::new(),
            external_peers: Arc::default(),
            nat64_prefixes: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, NonZero::get),
            channel_numbers: ChannelNumbers::Rfc8656,
            software: None,
            fingerprint: FingerprintUse::Echo,
            lifetime_s: LIFETIME_S,
            lifetime_max_s: LIFETIME_MAX_S,
            nonce_lifetime_s: NONCE_LIFETIME_S,
            hairpin: Hairpin::Allowed,
            icmp_indications: IcmpIndications::Auto,
            dscp_allow: DscpSet::default(),
            data_path: KernelMode::default(),
            relay_sockets: RelaySockets::default(),
            busy_poll_us: 0,
            allocations_max: ALLOCATIONS,
            quotas: Quotas::default(),
            caps: AllocationCaps::default(),
            memory_max: None,
            cdr: None,
            grant_reports: GrantReports::Omitted,
            drain_timeout: DRAIN_TIMEOUT,
            restart_delay: RESTART_DELAY,
            sample_one_in: SAMPLED_ONE_IN,
        }
    }

    /// Returns whether the server accepts TCP or TLS.
    #[must_use]
    pub fn takes_streams(&self) -> bool {
        self.tcp_on_udp_ports || !(self.listen_tcp.is_empty() && self.listen_tls.is_empty())
    }

    /// Checks `section` and fills in the defaults. Reads the files with users, secrets and nonce keys.
    ///
    /// # Errors
    /// A contradiction, a value out of range, or a file that cannot be used; the error names the flag or key.
    pub fn new(section: &TurnSection) -> anyhow::Result<Self> {
        let listen = if section.listen.is_empty() { default_listen() } else { section.listen.clone() };
        let mut config = Self::on(listen[0]);
        config.relay_ips = relays(section, &listen)?;
        config.listen = listen;
        config.set_streams(section)?;
        config.relay_ports = section.relay_ports.unwrap_or(RELAY_PORTS);
        ensure!(
            config.relay_ports.low >= LOW_PORTS_END || section.relay_low_ports,
            "{}: ports below {LOW_PORTS_END} are those of system services; --relay-low-ports accepts them",
            section.key_sources.name("relay_ports", 0)
        );
        if let Some(realm) = &section.realm {
            config.realm.clone_from(realm);
        }
        config.read_credentials(section)?;
        config.read_realms(section)?;
        config.set_password_algorithms(section)?;
        if section.strict_expiry {
            config.expiry_check = ExpiryCheck::EveryRequest;
        }
        if section.kick_removed_users {
            config.removed_users = RemovedUsers::EndAllocations;
        }
        config.read_peers(section);
        config.workers = section.workers.unwrap_or(config.workers);
        config.allocations_max = section.allocations_max.unwrap_or(ALLOCATIONS);
        (config.quotas, config.caps) = (section.quotas.quotas(), section.quotas.caps());
        if section.rfc5766_channel_numbers {
            config.channel_numbers = ChannelNumbers::Rfc5766;
        }
        config.software.clone_from(&section.software);
        if section.fingerprint_always {
            config.fingerprint = FingerprintUse::Always;
        }
        config.lifetime_s = section.lifetime_s.unwrap_or(LIFETIME_S);
        config.lifetime_max_s = section.lifetime_max_s.unwrap_or(LIFETIME_MAX_S.max(config.lifetime_s));
        config.nonce_lifetime_s = section.nonce_lifetime_s.unwrap_or(NONCE_LIFETIME_S);
        config.hairpin = if section.hairpin == Some(false) { Hairpin::Denied } else { Hairpin::Allowed };
        config.icmp_indications = section.icmp_indications.map_or(config.icmp_indications, Into::into);
        config.dscp_allow = section.dscp_allow.unwrap_or_default();
        config.data_path = section.data_path.unwrap_or_default();
        config.relay_sockets = section.relay_sockets.unwrap_or_default();
        config.busy_poll_us = section.busy_poll_us.unwrap_or(0);
        (config.memory_max, config.cdr) = (section.memory_max, section.cdr.clone());
        if let Some(seconds) = section.drain_timeout_s {
            config.drain_timeout = Duration::from_secs(seconds.into());
        }
        config.check(&section.key_sources)?;
        Ok(config)
    }

    /// Returns the resident memory above which no allocations are made: the configured one, or 90 % of what the control
    /// group of this process may have.
    #[must_use]
    pub fn memory_bound(&self) -> Option<MemorySize> {
        self.memory_bound_in(tt_os::cgroup::memory_max())
    }

    /// The same in a control group with this maximum.
    fn memory_bound_in(&self, group_max: Option<u64>) -> Option<MemorySize> {
        match self.memory_max {
            Some(MemoryBound::Off) => None,
            Some(MemoryBound::At(size)) => Some(size),
            None => group_max.map(|bytes| MemorySize { bytes: bytes / 10 * 9 }),
        }
    }

    fn check(&self, keys: &KeySources) -> anyhow::Result<()> {
        for (index, prefix) in self.nat64_prefixes.iter().enumerate() {
            // RFC 6052 section 2.2.
            let is_prefix = prefix.network().is_ipv6() && [32, 40, 48, 56, 64, 96].contains(&prefix.prefix_len());
            let name = keys.name("nat64_prefix", index);
            ensure!(is_prefix, "{name}: {prefix} is not an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits");
        }
        let named = |key| keys.name(key, 0);
        ensure!(self.busy_poll_us <= BUSY_POLL_US_MAX, "{} must be at most {BUSY_POLL_US_MAX}", named("busy_poll_us"));
        ensure!((1..=WORKERS_MAX).contains(&self.workers), "{} must be from 1 to {WORKERS_MAX}", named("workers"));
        ensure!(
            (1..=ALLOCATIONS_MAX).contains(&self.allocations_max),
            "{} must be from 1 to {ALLOCATIONS_MAX}",
            named("allocations_max")
        );
        ensure!(
            self.memory_max.is_none_or(|bound| !matches!(bound, MemoryBound::At(size) if size < MEMORY_MIN)),
            "{} must be at least {MEMORY_MIN}",
            named("memory_max")
        );
        let prefix_bits = self.quotas.ipv6_prefix_bits;
        ensure!((1..=128).contains(&prefix_bits), "{} must be from 1 to 128", named("quotas.ipv6_prefix_bits"));
        let streams = &self.streams;
        let handshakes_max = named("streams.handshakes_max");
        ensure!(streams.handshakes_max >= 1, "{handshakes_max} must be at least 1");
        let handshake_threads = named("streams.handshake_threads");
        ensure!(
            (1..=HANDSHAKE_THREADS_MAX).contains(&streams.handshake_threads),
            "{handshake_threads} must be from 1 to {HANDSHAKE_THREADS_MAX}"
        );
        let share = self.quotas.user_share_percent;
        ensure!((1..=100).contains(&share), "{} must be from 1 to 100", named("user_share_percent"));
        self.check_lifetimes(keys)?;
        let is_software = |text: &String| (1..=SOFTWARE_CHARACTERS_MAX).contains(&text.chars().count());
        ensure!(
            self.software.as_ref().is_none_or(is_software),
            "{} must have from 1 to {SOFTWARE_CHARACTERS_MAX} characters",
            named("software")
        );
        if let Err(error) = check_name(&self.realm) {
            anyhow::bail!("{} {error}", named("realm"));
        }
        self.check_realms(keys)
    }

    fn check_lifetimes(&self, keys: &KeySources) -> anyhow::Result<()> {
        let checked = [
            ("lifetime_s", self.lifetime_s, LIFETIMES_S),
            ("lifetime_max_s", self.lifetime_max_s, LIFETIMES_S),
            ("nonce_lifetime_s", self.nonce_lifetime_s, NONCE_LIFETIMES_S),
        ];
        for (key, seconds, allowed) in checked {
            let (name, low, high) = (keys.name(key, 0), allowed.start(), allowed.end());
            ensure!(allowed.contains(&seconds), "{name} {seconds} is not from {low} to {high}");
        }
        let (lifetime, most) = (self.lifetime_s, self.lifetime_max_s);
        let (name, name_max) = (keys.name("lifetime_s", 0), keys.name("lifetime_max_s", 0));
        ensure!(lifetime <= most, "{name_max} {most} is below {name} {lifetime}");
        Ok(())
    }

    /// Returns `section` with every default filled in and passwords masked.
    #[must_use]
    pub fn effective(&self, section: &TurnSection) -> TurnSection {
        let masked = |user: &String| format!("{}:{MASK}", user.split_once(':').map_or("", |(name, _)| name));
        TurnSection {
            listen: self.listen.clone(),
            listen_tcp: self.listen_tcp.clone(),
            listen_tls: self.listen_tls.clone(),
            proxy_protocol_from: self.proxy_protocol_from.clone(),
            no_tcp: !self.tcp_on_udp_ports && self.listen_tcp.is_empty(),
            cert: self.certificates.iter().map(|files| files.cert.clone()).collect(),
            key: self.certificates.iter().map(|files| files.key.clone()).collect(),
            tls_version_min: Some(self.tls.version_min.into()),
            tls_ciphers: section.tls_ciphers.clone(),
            relay_ip: self.relay_ips.iter().map(|relay| relay.bound).collect(),
            external_ip: self.relay_ips.iter().map(|relay| relay.external).collect(),
            relay_ports: Some(self.relay_ports),
            realm: Some(self.realm.clone()),
            realms: section
                .realms
                .iter()
                .map(|realm| RealmSection { user: realm.user.iter().map(masked).collect(), ..realm.clone() })
                .collect(),
            user: section.user.iter().map(masked).collect(),
            user_file: section.user_file.clone(),
            auth_secret_file: section.auth_secret_file.clone(),
            database: section.database.clone(),
            database_password_file: section.database_password_file.clone(),
            stats_database: section.stats_database.clone(),
            stats_database_password_file: section.stats_database_password_file.clone(),
            database_logins: section.database.as_ref().map(|_| section.database_logins.unwrap_or_default()),
            nonce_key_file: section.nonce_key_file.clone(),
            strict_expiry: self.expiry_check == ExpiryCheck::EveryRequest,
            strict_permissions: self.lapsed_permissions == LapsedPermissions::ChannelStops,
            kick_removed_users: self.removed_users == RemovedUsers::EndAllocations,
            nat64_prefix: self.nat64_prefixes.clone(),
            allow_peer: self.allow_peers.clone(),
            deny_peer: self.deny_peers.clone(),
            allow_own_host: self.allow_own_hosts.clone(),
            workers: Some(self.workers),
            allocations_max: Some(self.allocations_max),
            rfc5766_channel_numbers: self.channel_numbers == ChannelNumbers::Rfc5766,
            password_algorithms: Some(self.password_algorithms.into()),
            quotas: QuotasSection::of(&self.quotas, self.caps),
            streams: self.streams.into(),
            software: self.software.clone(),
            fingerprint_always: self.fingerprint == FingerprintUse::Always,
            lifetime_s: Some(self.lifetime_s),
            lifetime_max_s: Some(self.lifetime_max_s),
            nonce_lifetime_s: Some(self.nonce_lifetime_s),
            hairpin: Some(self.hairpin == Hairpin::Allowed),
            icmp_indications: Some(self.icmp_indications.into()),
            dscp_allow: Some(self.dscp_allow),
            data_path: Some(self.data_path),
            relay_sockets: Some(self.relay_sockets),
            relay_low_ports: section.relay_low_ports,
            busy_poll_us: Some(self.busy_poll_us),
            memory_max: self.memory_max,
            cdr: self.cdr.clone(),
            drain_timeout_s: u32::try_from(self.drain_timeout.as_secs()).ok(),
            key_sources: KeySources::default(),
        }
    }

    /// Returns [`TurnConfig::effective`] of `section`, in which users with a masked password are ignored, and its
    /// configuration.
    ///
    /// # Errors
    /// As [`TurnConfig::new`].
    pub fn printed(section: &TurnSection) -> anyhow::Result<(TurnSection, Self)> {
        let mut usable = section.clone();
        let is_usable = |user: &String| user.split_once(':').is_none_or(|(_, password)| password != MASK);
        usable.user.retain(is_usable);
        usable.realms.iter_mut().for_each(|realm| realm.user.retain(is_usable));
        let config = Self::new(&usable)?;
        Ok((config.effective(section), config))
    }
}

#[cfg(test)]
mod tests;
