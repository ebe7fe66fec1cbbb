//! What the server is to do: flags over the configuration file over defaults, checked.

mod streams;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use ipnet::IpNet;
use tt_turn::config::{ChannelNumbers, Hairpin, PasswordAlgorithms as EngineAlgorithms};
use tt_turn::policy::{Cidr, PeerPolicy};
use tt_turn::shared::Quotas;

use super::credentials::{AuthSecret, MASK, NonceKeys, User, auth_secrets_in, nonce_keys_in, opaque_string, users_in};
use super::streams::{CertificateFiles, StreamLimits};
use crate::config::{AllocationCaps, PasswordAlgorithms, PortRange, QuotasSection, Source, TurnSection};

/// The port of STUN and TURN over UDP and TCP. RFC 8656 section 3.
const PORT: u16 = 3478;
/// The dynamic ports, RFC 6335, from which relayed addresses are to be taken. RFC 8656 section 7.2.
const RELAY_PORTS: PortRange = PortRange { low: 49_152, high: 65_535 };
const REALM: &str = "truetick";
/// The engine's bound, RFC 8489 section 14.9.
const REALM_CHARACTERS_MAX: usize = 127;
const WORKERS_MAX: usize = 256;
/// A second: whoever waits longer does not mind a wake-up.
const LINGER_US_MAX: u32 = 1_000_000;
const ALLOCATIONS: u32 = 8_192;
/// Tables are made for all of them at the start.
const ALLOCATIONS_MAX: u32 = 1 << 20;
const SAMPLED_ONE_IN: u32 = 64;
/// Within what service managers wait for by themselves: 30 s and 90 s.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Flags of `truetick turn`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Address and port that clients reach, over UDP and TCP; may repeat. Port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Address and TCP port of clients over TCP; may repeat. Default: the ports of --listen
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "no_tcp")]
    pub listen_tcp: Vec<SocketAddr>,
    /// Address and TCP port of clients over TLS alone; may repeat. With a certificate every TCP port takes TLS, too
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen_tls: Vec<SocketAddr>,
    /// Take no TCP beside UDP on the ports of --listen
    #[arg(long)]
    pub no_tcp: bool,
    /// File with the certificate for TLS and its chain, PEM
    #[arg(long, value_name = "F", requires = "key")]
    pub cert: Option<PathBuf>,
    /// File with the certificate's private key, PEM
    #[arg(long, value_name = "F", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Address that relayed addresses are taken on; may repeat. Default: the listened ones, or those of the routes
    #[arg(long, value_name = "IP")]
    pub relay_ip: Vec<IpAddr>,
    /// Address that clients and peers are told in place of --relay-ip (behind a NAT); may repeat, in the same order
    #[arg(long, value_name = "IP")]
    pub external_ip: Vec<IpAddr>,
    /// UDP ports that relayed addresses are taken from [default: 49152-65535]
    #[arg(long, value_name = "LOW-HIGH")]
    pub relay_ports: Option<PortRange>,
    /// Realm of the credentials [default: truetick]
    #[arg(long, value_name = "R")]
    pub realm: Option<String>,
    /// A user, for trying out: other users of this machine can read it; may repeat
    #[arg(long, value_name = "NAME:PASSWORD")]
    pub user: Vec<String>,
    /// File with one NAME:PASSWORD a line, readable by its owner only; may repeat
    #[arg(long, value_name = "F")]
    pub user_file: Vec<PathBuf>,
    /// File with one secret of time-limited credentials a line, readable by its owner only; may repeat
    #[arg(long, value_name = "F")]
    pub auth_secret_file: Vec<PathBuf>,
    /// File with nonce keys, 64 hexadecimal digits a line, readable by its owner only: nonces are made with the first,
    /// those of the second are accepted too. For a fleet, and over a restart [default: a random key]
    #[arg(long, value_name = "F")]
    pub nonce_key_file: Option<PathBuf>,
    /// What a client may hash its password with [default: md5-and-sha256]
    #[arg(long, value_name = "A", value_enum)]
    pub password_algorithms: Option<PasswordAlgorithms>,
    /// Peers that may be reached although they are denied by default; may repeat
    #[arg(long, value_name = "CIDR")]
    pub allow_peer: Vec<IpNet>,
    /// Peers that may not be reached; may repeat
    #[arg(long, value_name = "CIDR")]
    pub deny_peer: Vec<IpNet>,
    /// NAT64 prefix of this network, beside the well-known one: IPv4 peers in it are judged as such; may repeat
    #[arg(long, value_name = "CIDR")]
    pub nat64_prefix: Vec<IpNet>,
    /// Threads that serve clients [default: one a core]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Live allocations at most, over all workers [default: 8192]
    #[arg(long, value_name = "N")]
    pub allocations_max: Option<u32>,
    /// Take channel numbers up to 0x7FFF, as RFC 5766 had them, and some clients still bind
    #[arg(long)]
    pub rfc5766_channel_numbers: bool,
    /// Relayed addresses of this server may not be peers of each other
    #[arg(long)]
    pub no_hairpin: bool,
    /// Microseconds that a worker stays awake for the next datagram before it sleeps [default: 0]
    ///
    /// A wake-up costs a worker more than a datagram does, and the datagram waits for it. Lingering trades that for a core
    /// that is busy although idle: worth it where datagrams come more often than once in N microseconds and nobody else
    /// needs the core.
    #[arg(long, value_name = "N")]
    pub linger_us: Option<u32>,
    /// Address and TCP port of the page, the metrics and the JSON interfaces; none unless given
    #[arg(long, value_name = "ADDR:PORT")]
    pub http: Option<SocketAddr>,
    /// File with the token that /api/v1/turn/allocations asks for, readable by its owner only
    #[arg(long, value_name = "F")]
    pub api_token_file: Option<PathBuf>,
    /// Seconds that live allocations have after SIGTERM, while no new ones are made; 0 ends at once [default: 20]
    #[arg(long, value_name = "SECONDS")]
    pub drain_timeout_s: Option<u32>,
    /// What to do with the configuration instead of serving.
    #[command(flatten)]
    pub only: Only,
}

/// What can be done with a configuration instead of serving.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Only {
    /// Check flags, configuration and the files that they name, and end: status 0 where it could start
    #[arg(long, conflicts_with = "print_config")]
    pub check_config: bool,
    /// Print the configuration in force as TOML, passwords masked, and end
    #[arg(long)]
    pub print_config: bool,
}

/// An address that relay sockets are bound to, and the one that peers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayIp {
    /// Of this machine.
    pub bound: IpAddr,
    /// The same, or the one that a NAT maps to it.
    pub external: IpAddr,
}

/// Everything that the server needs to start.
#[derive(Clone, Debug)]
pub struct TurnConfig {
    /// Addresses and UDP ports that clients send to.
    pub listen: Vec<SocketAddr>,
    /// Whether TCP is taken on the same ports.
    pub tcp_beside_udp: bool,
    /// Addresses and TCP ports that clients connect to.
    pub listen_tcp: Vec<SocketAddr>,
    /// Addresses and TCP ports that take TLS alone.
    pub listen_tls: Vec<SocketAddr>,
    /// The certificate of TLS; without one there is no TLS.
    pub certificate: Option<CertificateFiles>,
    /// Bounds of connections over TCP and TLS.
    pub streams: StreamLimits,
    /// Addresses that relayed addresses are taken on.
    pub relay_ips: Vec<RelayIp>,
    /// UDP ports that relayed addresses are taken from.
    pub relay_ports: PortRange,
    /// Realm of the credentials.
    pub realm: String,
    /// Static users.
    pub users: Vec<User>,
    /// Secrets of time-limited credentials, all of them valid.
    pub auth_secrets: Vec<AuthSecret>,
    /// What nonces are made with; a random key where there is none.
    pub nonce_keys: Option<NonceKeys>,
    /// What a client may hash its password with.
    pub password_algorithms: EngineAlgorithms,
    /// Peers that may be reached although they are denied by default.
    pub allow_peers: Vec<IpNet>,
    /// Peers that may not be reached.
    pub deny_peers: Vec<IpNet>,
    /// NAT64 prefixes beside the well-known one.
    pub nat64_prefixes: Vec<IpNet>,
    /// Threads that serve clients.
    pub workers: usize,
    /// Which channel numbers a client may bind.
    pub channel_numbers: ChannelNumbers,
    /// Whether relayed addresses of this server may be peers of each other.
    pub hairpin: Hairpin,
    /// Microseconds that a worker stays awake for the next datagram before it sleeps.
    pub linger_us: u32,
    /// Live allocations at most, over all workers.
    pub allocations_max: u32,
    /// Bounds for each user and each source.
    pub quotas: Quotas,
    /// Bounds for each allocation.
    pub caps: AllocationCaps,
    /// How long live allocations have after SIGTERM; zero ends at once.
    pub drain_timeout: Duration,
    /// One pass in so many is timed.
    pub sample_one_in: u32,
}

impl TurnConfig {
    /// A server on `listen` that relays on the same address, knows no user yet and takes the defaults for the rest.
    #[must_use]
    pub fn on(listen: SocketAddr) -> Self {
        Self {
            listen: vec![listen],
            tcp_beside_udp: true,
            listen_tcp: Vec::new(),
            listen_tls: Vec::new(),
            certificate: None,
            streams: StreamLimits::default(),
            relay_ips: vec![RelayIp { bound: listen.ip(), external: listen.ip() }],
            relay_ports: RELAY_PORTS,
            realm: REALM.into(),
            users: Vec::new(),
            auth_secrets: Vec::new(),
            nonce_keys: None,
            password_algorithms: EngineAlgorithms::Md5AndSha256,
            allow_peers: Vec::new(),
            deny_peers: Vec::new(),
            nat64_prefixes: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, NonZero::get),
            channel_numbers: ChannelNumbers::Rfc8656,
            hairpin: Hairpin::Allowed,
            linger_us: 0,
            allocations_max: ALLOCATIONS,
            quotas: Quotas::default(),
            caps: AllocationCaps::default(),
            drain_timeout: DRAIN_TIMEOUT,
            sample_one_in: SAMPLED_ONE_IN,
        }
    }

    /// Whether anything is taken over TCP or TLS.
    #[must_use]
    pub fn takes_streams(&self) -> bool {
        self.tcp_beside_udp || !(self.listen_tcp.is_empty() && self.listen_tls.is_empty())
    }

    /// `args` over `section` over the defaults.
    ///
    /// # Errors
    /// What makes no sense, or a file that cannot be used; one clear sentence.
    pub fn new(args: &Args, section: &TurnSection) -> anyhow::Result<Self> {
        let listen = either(&args.listen, &section.listen);
        let listen = if listen.is_empty() { default_listen() } else { listen.to_vec() };
        let mut config = Self::on(listen[0]);
        config.relay_ips = relays(args, section, &listen)?;
        config.listen = listen;
        config.set_streams(args, section)?;
        config.relay_ports = args.relay_ports.or(section.relay_ports).unwrap_or(RELAY_PORTS);
        if let Some(realm) = args.realm.as_ref().or(section.realm.as_ref()) {
            config.realm.clone_from(realm);
        }
        let named = |key, flags: usize, index| named(section, key, flags > 0, index);
        for (index, user) in either(&args.user, &section.user).iter().enumerate() {
            config.users.push(User::parse(user).with_context(|| named("user", args.user.len(), index))?);
        }
        for (index, path) in either(&args.user_file, &section.user_file).iter().enumerate() {
            let users = users_in(path).with_context(|| named("user_file", args.user_file.len(), index))?;
            config.users.extend(users);
        }
        for (index, path) in either(&args.auth_secret_file, &section.auth_secret_file).iter().enumerate() {
            let secrets = auth_secrets_in(path);
            let named = || named("auth_secret_file", args.auth_secret_file.len(), index);
            config.auth_secrets.extend(secrets.with_context(named)?);
        }
        if let Some(path) = args.nonce_key_file.as_ref().or(section.nonce_key_file.as_ref()) {
            let named = || named("nonce_key_file", usize::from(args.nonce_key_file.is_some()), 0);
            config.nonce_keys = Some(nonce_keys_in(path).with_context(named)?);
        }
        if let Some(algorithms) = args.password_algorithms.or(section.password_algorithms) {
            config.password_algorithms = algorithms.into();
        }
        config.allow_peers = either(&args.allow_peer, &section.allow_peer).to_vec();
        config.deny_peers = either(&args.deny_peer, &section.deny_peer).to_vec();
        config.nat64_prefixes = either(&args.nat64_prefix, &section.nat64_prefix).to_vec();
        for (index, prefix) in config.nat64_prefixes.iter().enumerate() {
            // RFC 6052 section 2.2.
            let is_prefix = prefix.network().is_ipv6() && [32, 40, 48, 56, 64, 96].contains(&prefix.prefix_len());
            let named = || named("nat64_prefix", args.nat64_prefix.len(), index);
            ensure!(is_prefix, "{}: {prefix} is no IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits", named());
        }
        config.workers = args.workers.or(section.workers).unwrap_or(config.workers);
        config.allocations_max = args.allocations_max.or(section.allocations_max).unwrap_or(ALLOCATIONS);
        (config.quotas, config.caps) = (section.quotas.quotas(), section.quotas.caps());
        if args.rfc5766_channel_numbers || section.rfc5766_channel_numbers {
            config.channel_numbers = ChannelNumbers::Rfc5766;
        }
        if args.no_hairpin || section.hairpin == Some(false) {
            config.hairpin = Hairpin::Denied;
        }
        config.linger_us = args.linger_us.or(section.linger_us).unwrap_or(0);
        if let Some(seconds) = args.drain_timeout_s.or(section.drain_timeout_s) {
            config.drain_timeout = Duration::from_secs(seconds.into());
        }
        config.check(args, section)?;
        Ok(config)
    }

    fn check(&self, args: &Args, section: &TurnSection) -> anyhow::Result<()> {
        let linger = || named(section, "linger_us", args.linger_us.is_some(), 0);
        ensure!(self.linger_us <= LINGER_US_MAX, "{} is at most {LINGER_US_MAX}", linger());
        let workers = || named(section, "workers", args.workers.is_some(), 0);
        ensure!((1..=WORKERS_MAX).contains(&self.workers), "{} is from 1 to {WORKERS_MAX}", workers());
        let allocations = || named(section, "allocations_max", args.allocations_max.is_some(), 0);
        ensure!(
            (1..=ALLOCATIONS_MAX).contains(&self.allocations_max),
            "{} is from 1 to {ALLOCATIONS_MAX}",
            allocations()
        );
        let realm = || named(section, "realm", args.realm.is_some(), 0);
        let realm_length = self.realm.chars().count();
        ensure!(
            (1..=REALM_CHARACTERS_MAX).contains(&realm_length),
            "{} has from 1 to {REALM_CHARACTERS_MAX} characters",
            realm()
        );
        let is_prepared = opaque_string(&self.realm).is_some_and(|prepared| *prepared == self.realm);
        ensure!(is_prepared && !self.realm.contains(['"', '\\']), "{} is plain text", realm());
        Ok(())
    }

    /// The section that says what `args` and `section` come to, with every default filled in and passwords masked.
    #[must_use]
    pub fn effective(&self, args: &Args, section: &TurnSection) -> TurnSection {
        let masked = |user: &String| format!("{}:{MASK}", user.split_once(':').map_or("", |(name, _)| name));
        TurnSection {
            listen: self.listen.clone(),
            listen_tcp: self.listen_tcp.clone(),
            listen_tls: self.listen_tls.clone(),
            no_tcp: !self.tcp_beside_udp && self.listen_tcp.is_empty(),
            cert: self.certificate.as_ref().map(|files| files.cert.clone()),
            key: self.certificate.as_ref().map(|files| files.key.clone()),
            relay_ip: self.relay_ips.iter().map(|relay| relay.bound).collect(),
            external_ip: self.relay_ips.iter().map(|relay| relay.external).collect(),
            relay_ports: Some(self.relay_ports),
            realm: Some(self.realm.clone()),
            user: either(&args.user, &section.user).iter().map(masked).collect(),
            user_file: either(&args.user_file, &section.user_file).to_vec(),
            auth_secret_file: either(&args.auth_secret_file, &section.auth_secret_file).to_vec(),
            nonce_key_file: args.nonce_key_file.clone().or_else(|| section.nonce_key_file.clone()),
            nat64_prefix: self.nat64_prefixes.clone(),
            allow_peer: self.allow_peers.clone(),
            deny_peer: self.deny_peers.clone(),
            workers: Some(self.workers),
            allocations_max: Some(self.allocations_max),
            rfc5766_channel_numbers: self.channel_numbers == ChannelNumbers::Rfc5766,
            password_algorithms: Some(self.password_algorithms.into()),
            quotas: QuotasSection::of(&self.quotas, self.caps),
            streams: self.streams.into(),
            hairpin: Some(self.hairpin == Hairpin::Allowed),
            linger_us: Some(self.linger_us),
            drain_timeout_s: u32::try_from(self.drain_timeout.as_secs()).ok(),
            source: Source::default(),
        }
    }

    /// The same of a file that was printed so: a masked user counts for nothing there.
    ///
    /// # Errors
    /// Like [`TurnConfig::new`].
    pub fn printed(args: &Args, section: &TurnSection) -> anyhow::Result<TurnSection> {
        let mut usable = section.clone();
        usable.user.retain(|user| user.split_once(':').is_none_or(|(_, password)| password != MASK));
        Ok(Self::new(args, &usable)?.effective(args, section))
    }

    /// Which peers the relay may reach; never the server's own `listeners`, whatever is opened.
    ///
    /// # Panics
    /// Never: an [`IpNet`]'s prefix is within its family's length.
    #[must_use]
    pub fn peer_policy(&self, listeners: &[SocketAddr]) -> PeerPolicy {
        let cidr = |net: &IpNet| Cidr::new(net.network(), net.prefix_len()).expect("IpNet has checked the length");
        let mut policy = PeerPolicy::new();
        self.allow_peers.iter().for_each(|net| policy.allow(cidr(net)));
        self.deny_peers.iter().for_each(|net| policy.deny(cidr(net)));
        self.nat64_prefixes.iter().for_each(|net| policy.embed_nat64(cidr(net)));
        listeners.iter().for_each(|listener| policy.deny_listener(*listener));
        policy
    }
}

/// The flags where there are any, else the file's.
fn either<'a, T>(flags: &'a [T], file: &'a [T]) -> &'a [T] {
    if flags.is_empty() { file } else { flags }
}

/// Every address of this machine, of the families that it has.
fn default_listen() -> Vec<SocketAddr> {
    let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let has = |ip: &IpAddr| tt_net::UdpSocket::bind(SocketAddr::new(*ip, 0)).is_ok();
    let listen: Vec<_> = all.into_iter().filter(has).map(|ip| SocketAddr::new(ip, PORT)).collect();
    if listen.is_empty() { vec![SocketAddr::new(all[0], PORT)] } else { listen }
}

/// The listened addresses; for the unspecified one, the address that the machine's route to the world leaves from.
fn relay_ips_of(listen: &[SocketAddr]) -> anyhow::Result<Vec<IpAddr>> {
    // Addresses of documentation are routed like any other's; nothing is sent there.
    let somewhere = |ip: IpAddr| match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    };
    let mut ips = Vec::new();
    for addr in listen {
        let ip = match addr.ip() {
            ip if ip.is_unspecified() => tt_net::source_towards(somewhere(ip)).ok(),
            ip => Some(ip),
        };
        ips.extend(ip.filter(|ip| !ips.contains(ip)));
    }
    ensure!(!ips.is_empty(), "no route tells which address to relay on: give --relay-ip");
    Ok(ips)
}

fn relays(args: &Args, section: &TurnSection, listen: &[SocketAddr]) -> anyhow::Result<Vec<RelayIp>> {
    let (asked, external) =
        (either(&args.relay_ip, &section.relay_ip), either(&args.external_ip, &section.external_ip));
    let relay_ip = |index| named(section, "relay_ip", !args.relay_ip.is_empty(), index);
    let external_ip = |index| named(section, "external_ip", !args.external_ip.is_empty(), index);
    let bound = if asked.is_empty() { relay_ips_of(listen)? } else { asked.to_vec() };
    let is_none = |ip: &IpAddr| ip.is_unspecified() || ip.is_multicast();
    if let Some(index) = bound.iter().position(is_none) {
        anyhow::bail!("{} {} is no address of this machine", relay_ip(index), bound[index]);
    }
    if let Some(index) = external.iter().position(is_none) {
        anyhow::bail!("{} {} is no address that a peer can send to", external_ip(index), external[index]);
    }
    ensure!(external.len() <= bound.len(), "{} is given more often than --relay-ip", external_ip(bound.len()));
    let pairs = bound.iter().enumerate().map(|(index, &bound)| {
        let external = external.get(index).copied().unwrap_or(bound);
        ensure!(
            bound.is_ipv4() == external.is_ipv4(),
            "{} {external} and relay address {bound} are of two kinds",
            external_ip(index)
        );
        Ok(RelayIp { bound, external })
    });
    pairs.collect()
}

/// How an error names a setting: the flag that gave it, or file, line and key.
fn named(section: &TurnSection, key: &str, is_flag: bool, index: usize) -> String {
    let place = if is_flag { None } else { section.source.place("turn", key, index) };
    place.map_or_else(|| format!("--{}", key.replace('_', "-")), |place| format!("{place}: turn.{key}"))
}

#[cfg(test)]
mod tests;
