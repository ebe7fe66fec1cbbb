//! Flags of `truetick turn`, and how they override the section of the configuration file.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use control::MetricsNames;
use ipnet::IpNet;
use turn_server::{
    Balancers, DatabaseLogins, DscpSet, IcmpIndications, KernelMode, MemoryBound, PasswordAlgorithms, PeerRange,
    PortRange, RecordOutput, RelaySockets, TlsCipher, TlsVersion, TurnSection,
};

/// Flags of `truetick turn`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Start from a turnserver.conf of coturn instead of --config; flags override it. `truetick import` shows what
    /// differs. A program name of turnserver takes coturn's own options
    #[arg(long, value_name = "FILE")]
    pub coturn: Option<PathBuf>,
    /// Address and port for clients over UDP and TCP; may repeat. Port 0 selects a free port [default: port 3478 on all addresses]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Address and port for clients over TCP; may repeat [default: the ports of --listen]
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "no_tcp")]
    pub listen_tcp: Vec<SocketAddr>,
    /// Address and port for clients over TLS only; may repeat. With a certificate every TCP port also accepts TLS
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen_tls: Vec<SocketAddr>,
    /// Do not accept TCP on the ports of --listen
    #[arg(long)]
    pub no_tcp: bool,
    /// Balancers, as an address or CIDR, whose connections begin with a PROXY protocol header; may repeat
    #[arg(long, value_name = "ADDRS")]
    pub proxy_protocol_from: Vec<Balancers>,
    /// File with the certificate chain for TLS, PEM; may repeat: clients choose by name (SNI), others get the first
    #[arg(long, value_name = "F", requires = "key")]
    pub cert: Vec<PathBuf>,
    /// File with the private key of the certificate, PEM; may repeat, in the same order
    #[arg(long, value_name = "F", requires = "cert")]
    pub key: Vec<PathBuf>,
    /// Lowest version of TLS [default: 1.2]
    #[arg(long, value_name = "V", value_parser = named::<TlsVersion>(TlsVersion::NAMES))]
    pub tls_version_min: Option<TlsVersion>,
    /// Cipher suite of TLS 1.2, by OpenSSL's name; may repeat [default: those with forward secrecy and AEAD]
    #[arg(long, value_name = "NAME")]
    pub tls_ciphers: Vec<TlsCipher>,
    /// Address of relay sockets; may repeat [default: the addresses of --listen, or that of the default route]
    #[arg(long, value_name = "IP")]
    pub relay_ip: Vec<IpAddr>,
    /// Public address to advertise instead of --relay-ip (NAT); may repeat, in the same order
    #[arg(long, value_name = "IP")]
    pub external_ip: Vec<IpAddr>,
    /// Ask this STUN server for the public address at the start, instead of --external-ip
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "external_ip")]
    pub stun_server: Option<String>,
    /// UDP ports of relay sockets [default: 49152-65535]
    #[arg(long, value_name = "LOW-HIGH")]
    pub relay_ports: Option<PortRange>,
    /// Accept ports below 1024 in --relay-ports
    #[arg(long)]
    pub relay_low_ports: bool,
    /// Realm of the credentials [default: truetick]
    #[arg(long, value_name = "R")]
    pub realm: Option<String>,
    /// A user, for tests only: other users of this machine can read it; may repeat
    #[arg(long, value_name = "NAME:PASSWORD")]
    pub user: Vec<String>,
    /// File with one NAME:PASSWORD or NAME:0xKEY per line, readable by its owner only; may repeat
    #[arg(long, value_name = "F")]
    pub user_file: Vec<PathBuf>,
    /// File with one secret of time-limited credentials per line, readable by its owner only; may repeat
    #[arg(long, value_name = "F")]
    pub auth_secret_file: Vec<PathBuf>,
    /// Database with coturn's schema, with further users, secrets and peers of the realm: sqlite:PATH,
    /// postgres:CONNECTION in the words of libpq, or redis:CONNECTION in those of coturn
    #[arg(long, value_name = "KIND:NAME")]
    pub database: Option<String>,
    /// File with the password of --database, readable by its owner only
    #[arg(long, value_name = "F")]
    pub database_password_file: Option<PathBuf>,
    /// Log in with users, secrets or both of --database [default: both]
    #[arg(long, value_name = "W", value_parser = named::<DatabaseLogins>(DatabaseLogins::NAMES))]
    pub database_logins: Option<DatabaseLogins>,
    /// Redis that gets messages about allocations as from coturn's redis-statsdb: redis:CONNECTION in coturn's words
    #[arg(long, value_name = "redis:NAME")]
    pub stats_database: Option<String>,
    /// File with the password of --stats-database, readable by its owner only
    #[arg(long, value_name = "F")]
    pub stats_database_password_file: Option<PathBuf>,
    /// File with one or two nonce keys, 64 hexadecimal digits per line, readable by its owner only: new nonces use the
    /// first key, and nonces of the second are accepted. For several servers and for restarts [default: a random key]
    #[arg(long, value_name = "F")]
    pub nonce_key_file: Option<PathBuf>,
    /// Check the expiry of time-limited credentials in every request [default: when an allocation is made]
    #[arg(long)]
    pub strict_expiry: bool,
    /// Relay on a channel only while its peer has a permission (RFC 8656 section 9) [default: while it is bound]
    #[arg(long)]
    pub strict_permissions: bool,
    /// End the allocations of users and secrets that a reload removes [default: they continue]
    #[arg(long)]
    pub kick_removed_users: bool,
    /// Password algorithms for clients [default: md5-and-sha256]
    #[arg(long, value_name = "A", value_parser = named::<PasswordAlgorithms>(PasswordAlgorithms::NAMES))]
    pub password_algorithms: Option<PasswordAlgorithms>,
    /// Peers to allow although they are denied by default: an address, CIDR or range A-B, with :PORT or :LOW-HIGH for
    /// single ports; may repeat
    #[arg(long, value_name = "ADDRS[:PORTS]")]
    pub allow_peer: Vec<PeerRange>,
    /// Peers to deny, written as in --allow-peer; may repeat
    #[arg(long, value_name = "ADDRS[:PORTS]")]
    pub deny_peer: Vec<PeerRange>,
    /// Addresses of this host to allow as peers, written as in --allow-peer; all others are denied, whatever --allow-peer
    /// names; may repeat
    #[arg(long, value_name = "ADDRS[:PORTS]")]
    pub allow_own_host: Vec<PeerRange>,
    /// NAT64 prefix of this network, in addition to 64:ff9b::/96: the peer rules apply to the IPv4 addresses in it; may repeat
    #[arg(long, value_name = "CIDR")]
    pub nat64_prefix: Vec<IpNet>,
    /// Worker threads [default: number of CPUs]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Maximum number of live allocations, over all workers [default: 8192]
    #[arg(long, value_name = "N")]
    pub allocations_max: Option<u32>,
    /// Part of ports, allocations, reservations, permissions and channels that one user may hold while no other user holds
    /// any, percent; 100 is no limit [default: 75]
    #[arg(long, value_name = "N")]
    pub user_share_percent: Option<u8>,
    /// Allocations per second of one user, four times as many at once; 0 is no limit [default: 50]
    #[arg(long, value_name = "N")]
    pub user_allocations_per_second: Option<u32>,
    /// Accept channel numbers up to 0x7FFF, as in RFC 5766, for older clients
    #[arg(long)]
    pub rfc5766_channel_numbers: bool,
    /// SOFTWARE attribute of responses (RFC 8489 section 14.14) [default: none]
    #[arg(long, value_name = "TEXT")]
    pub software: Option<String>,
    /// Send FINGERPRINT in every response [default: if the request has one]
    #[arg(long)]
    pub fingerprint_always: bool,
    /// Default and shortest lifetime of an allocation, seconds [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub lifetime_s: Option<u32>,
    /// Longest lifetime of an allocation that a client can ask for, seconds [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    pub lifetime_max_s: Option<u32>,
    /// Lifetime of a nonce, seconds [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    pub nonce_lifetime_s: Option<u32>,
    /// Deny relayed addresses of this server as peers
    #[arg(long)]
    pub no_hairpin: bool,
    /// Clients that get ICMP errors about their peers: those that have shown that they know RFC 8489 or RFC 8656 (auto),
    /// always or never [default: auto]
    #[arg(long, value_name = "W", value_parser = named::<IcmpIndications>(IcmpIndications::NAMES))]
    pub icmp_indications: Option<IcmpIndications>,
    /// DSCP values (0 to 63) that relayed datagrams keep, as 0,10,46, all or none; others become 0 [default: those of
    /// RFC 8837, which WebRTC uses]
    #[arg(long, value_name = "LIST")]
    pub dscp_allow: Option<DscpSet>,
    /// How the packets of bound channels travel: by sockets (off), or by an XDP program in the kernel where it can be
    /// attached, which needs CAP_BPF and CAP_NET_ADMIN [default: off]
    ///
    /// Auto attaches it in drivers with native XDP and no known fault, native in every driver that accepts it, also of
    /// veth devices, and generic behind any driver. It relays past nftables, conntrack and tcpdump.
    #[arg(long, value_name = "W", value_parser = named::<KernelMode>(KernelMode::NAMES))]
    pub data_path: Option<KernelMode>,
    /// A socket per relay, or shared by all of a worker, with CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW [default: each]
    #[arg(long, value_name = "W", value_parser = named::<RelaySockets>(RelaySockets::NAMES))]
    pub relay_sockets: Option<RelaySockets>,
    /// Busy-poll for the next datagram this long before blocking, microseconds [default: 0]
    ///
    /// Blocking costs a worker a wake-up, which delays the next datagram. Busy polling lowers latency and CPU time per
    /// datagram under load, at the cost of a busy core when idle. --linger-us is a deprecated alias.
    #[arg(long, value_name = "N", alias = "linger-us")]
    pub busy_poll_us: Option<u32>,
    /// Reject new allocations with 508 while the resident memory is above this, as 512M or 2G; live ones continue. Off:
    /// no limit [default: 90 % of memory.max of the control group, if it has one]
    #[arg(long, value_name = "BYTES|off")]
    pub memory_max: Option<MemoryBound>,
    /// Write a JSON line at the beginning and the end of every allocation: to a file, stdout or journald. With stdout the
    /// other output goes to standard error [default: none]
    #[arg(long, value_name = "FILE|stdout|journald")]
    pub cdr: Option<RecordOutput>,
    /// Address and port of the page, the metrics and the JSON interfaces [default: none]
    #[arg(long, value_name = "ADDR:PORT")]
    pub http: Option<SocketAddr>,
    /// Names of the TURN server's metrics; coturn adds those of coturn, for its dashboards [default: truetick]
    #[arg(long, value_name = "truetick|coturn")]
    pub metrics_names: Option<MetricsNames>,
    /// File with the API token, which /api/v1/turn/allocations requires, readable by its owner only
    #[arg(long, value_name = "F")]
    pub api_token_file: Option<PathBuf>,
    /// Time for live allocations after SIGTERM, during which no new ones are created; 0 stops at once [default: 20]
    #[arg(long, value_name = "SECONDS")]
    pub drain_timeout_s: Option<u32>,
    /// Checks of the configuration instead of serving.
    #[command(flatten)]
    pub only: Only,
}

/// Checks of the configuration instead of serving.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Only {
    /// Check flags, configuration and the files that they name, and exit: status 0 if they are valid
    #[arg(long, conflicts_with = "print_config")]
    pub check_config: bool,
    /// Print the effective configuration as TOML with passwords masked, and exit
    #[arg(long)]
    pub print_config: bool,
}

/// Takes one of `names`.
fn named<T>(names: impl Into<PossibleValuesParser>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    names.into().try_map(|name| name.parse())
}

impl Args {
    /// Overrides the keys of `section` whose flags are given.
    pub(crate) fn apply_to(&self, section: &mut TurnSection) {
        let mut overlay = Overlay { section };
        overlay.list("listen", &self.listen, |section| &mut section.listen);
        // --listen-tcp also overrides `no_tcp` of the file, which would contradict it.
        if !self.listen_tcp.is_empty() {
            overlay.section.no_tcp = false;
        }
        overlay.list("listen_tcp", &self.listen_tcp, |section| &mut section.listen_tcp);
        overlay.list("listen_tls", &self.listen_tls, |section| &mut section.listen_tls);
        overlay.switch("no_tcp", self.no_tcp, |section| section.no_tcp = true);
        overlay.list("proxy_protocol_from", &self.proxy_protocol_from, |section| &mut section.proxy_protocol_from);
        overlay.list("cert", &self.cert, |section| &mut section.cert);
        overlay.list("key", &self.key, |section| &mut section.key);
        overlay.value("tls_version_min", &self.tls_version_min, |section| &mut section.tls_version_min);
        overlay.list("tls_ciphers", &self.tls_ciphers, |section| &mut section.tls_ciphers);
        overlay.list("relay_ip", &self.relay_ip, |section| &mut section.relay_ip);
        overlay.list("external_ip", &self.external_ip, |section| &mut section.external_ip);
        overlay.value("relay_ports", &self.relay_ports, |section| &mut section.relay_ports);
        overlay.value("realm", &self.realm, |section| &mut section.realm);
        overlay.list("user", &self.user, |section| &mut section.user);
        overlay.list("user_file", &self.user_file, |section| &mut section.user_file);
        overlay.list("auth_secret_file", &self.auth_secret_file, |section| &mut section.auth_secret_file);
        overlay.value("database", &self.database, |section| &mut section.database);
        overlay.value("database_password_file", &self.database_password_file, |section| {
            &mut section.database_password_file
        });
        overlay.value("stats_database", &self.stats_database, |section| &mut section.stats_database);
        let file = &self.stats_database_password_file;
        overlay.value("stats_database_password_file", file, |section| &mut section.stats_database_password_file);
        overlay.value("database_logins", &self.database_logins, |section| &mut section.database_logins);
        overlay.value("nonce_key_file", &self.nonce_key_file, |section| &mut section.nonce_key_file);
        overlay.switch("strict_expiry", self.strict_expiry, |section| section.strict_expiry = true);
        overlay.switch("strict_permissions", self.strict_permissions, |section| section.strict_permissions = true);
        overlay.switch("kick_removed_users", self.kick_removed_users, |section| section.kick_removed_users = true);
        overlay.value("password_algorithms", &self.password_algorithms, |section| &mut section.password_algorithms);
        overlay.list("allow_peer", &self.allow_peer, |section| &mut section.allow_peer);
        overlay.list("deny_peer", &self.deny_peer, |section| &mut section.deny_peer);
        overlay.list("allow_own_host", &self.allow_own_host, |section| &mut section.allow_own_host);
        overlay.list("nat64_prefix", &self.nat64_prefix, |section| &mut section.nat64_prefix);
        overlay.value("workers", &self.workers, |section| &mut section.workers);
        overlay.value("allocations_max", &self.allocations_max, |section| &mut section.allocations_max);
        overlay.value("user_share_percent", &self.user_share_percent, |section| &mut section.quotas.user_share_percent);
        let rate = &self.user_allocations_per_second;
        overlay.value("user_allocations_per_second", rate, |section| &mut section.quotas.user_allocations_per_second);
        overlay.switch("rfc5766_channel_numbers", self.rfc5766_channel_numbers, |section| {
            section.rfc5766_channel_numbers = true;
        });
        overlay.value("software", &self.software, |section| &mut section.software);
        overlay.switch("fingerprint_always", self.fingerprint_always, |section| section.fingerprint_always = true);
        overlay.value("lifetime_s", &self.lifetime_s, |section| &mut section.lifetime_s);
        overlay.value("lifetime_max_s", &self.lifetime_max_s, |section| &mut section.lifetime_max_s);
        overlay.value("nonce_lifetime_s", &self.nonce_lifetime_s, |section| &mut section.nonce_lifetime_s);
        overlay.switch("hairpin", self.no_hairpin, |section| section.hairpin = Some(false));
        overlay.value("icmp_indications", &self.icmp_indications, |section| &mut section.icmp_indications);
        overlay.value("dscp_allow", &self.dscp_allow, |section| &mut section.dscp_allow);
        overlay.switch("relay_low_ports", self.relay_low_ports, |section| section.relay_low_ports = true);
        overlay.value("data_path", &self.data_path, |section| &mut section.data_path);
        overlay.value("relay_sockets", &self.relay_sockets, |section| &mut section.relay_sockets);
        overlay.value("busy_poll_us", &self.busy_poll_us, |section| &mut section.busy_poll_us);
        overlay.value("memory_max", &self.memory_max, |section| &mut section.memory_max);
        overlay.value("cdr", &self.cdr, |section| &mut section.cdr);
        overlay.value("drain_timeout_s", &self.drain_timeout_s, |section| &mut section.drain_timeout_s);
    }

    /// Returns `section` with the flags applied.
    pub(crate) fn over(&self, section: &TurnSection) -> TurnSection {
        let mut section = section.clone();
        self.apply_to(&mut section);
        section
    }
}

/// A section that flags override.
struct Overlay<'a> {
    section: &'a mut TurnSection,
}

impl Overlay<'_> {
    fn list<T: Clone>(&mut self, key: &str, given: &[T], field: impl Fn(&mut TurnSection) -> &mut Vec<T>) {
        if !given.is_empty() {
            *field(self.section) = given.to_vec();
            self.section.key_sources.set_flag(key);
        }
    }

    fn value<T: Clone>(&mut self, key: &str, given: &Option<T>, field: impl Fn(&mut TurnSection) -> &mut Option<T>) {
        if let Some(value) = given {
            *field(self.section) = Some(value.clone());
            self.section.key_sources.set_flag(key);
        }
    }

    fn switch(&mut self, key: &str, given: bool, set: impl Fn(&mut TurnSection)) {
        if given {
            set(self.section);
            self.section.key_sources.set_flag(key);
        }
    }
}
