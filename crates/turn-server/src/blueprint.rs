//! Everything that workers are built from, at the start, after a reload and after a panic.

pub(crate) mod check;
mod external;
pub(crate) mod host;
mod realms;
mod reload;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tt_meter::Sampler;
use tt_model::Nanos;
use tt_net::{Poller, raise_descriptor_limit};
use tt_os::clock;
use tt_turn::config::{Config as EngineConfig, PeerLists};
use tt_turn::shared::{Limits, Pools, Shared};
use tt_turn::{Server, WorkerId};
use turn_config::{ALLOCATIONS_MAX, MemorySize, RelaySockets, StreamLimits, TurnConfig};

use crate::bans::BanList;
use crate::commands::{LoopSettings, WorkerCommand};
use crate::counters::WorkerStatus;
use crate::hand_off::{InboundRings, WorkerEndpoint, WorkerLinks};
use crate::kernel_path::KernelPath;
use crate::listeners::{ListenerChange, Listening};
use crate::memory::MemoryBound;
use crate::messages::WorkerMessages;
use crate::realm_names::RealmNames;
use crate::relay_pool::{RelayPlan, RelayPool, SharedPorts, WorkerSockets};
use crate::relays::Relays;
use crate::streams::{Certificates, HandshakePool, Sources, StreamPlan, Streams, read_certificates};
use crate::udp_listeners::UdpListeners;
use crate::worker::{Outputs, Parts};
use external::Origins;
use reload::InForce;
pub(crate) use reload::change_listeners;

/// Descriptors that are not relay sockets: files, listeners, HTTP connections.
const DESCRIPTORS_KEPT: u64 = 128;

/// The sockets and queues of one worker, before it has an engine.
pub(crate) struct WorkerIo {
    pub(crate) poller: Poller,
    pub(crate) listeners: ListenerChange,
    pub(crate) inbound: InboundRings,
    pub(crate) commands: Receiver<WorkerCommand>,
}

/// Everything that workers are built from.
pub(crate) struct Blueprint {
    /// What a reload replaces.
    in_force: ArcSwap<InForce>,
    /// Users, secrets and peers by their origin. Locked while they are replaced.
    origins: Mutex<Origins>,
    /// Everything that is listened on.
    listening: ArcSwap<Listening>,
    /// The quotas in force.
    limits: ArcSwap<Limits>,
    /// The names of all realms by their number, also of those that the configuration has no more.
    realm_names: RealmNames,
    /// The addresses of this host that the workers know. Locked while new peer rules are made and sent, so that the last
    /// ones that are sent are the newest.
    host: Mutex<host::Ranges>,
    pub(crate) relay_pool: Arc<RelayPool>,
    /// What the tables have room for.
    room: Pools,
    /// Descriptors that this process may have.
    descriptors: u64,
    /// Bytes of resident memory above which no allocations are made; `u64::MAX` without a bound.
    pub(crate) memory_bound: Arc<MemoryBound>,
    /// The highest `allocations_max` of a reload.
    allocations_most: u32,
    pub(crate) stream_plan: StreamPlan,
    pub(crate) shared: Arc<Shared>,
    nonce_key: [u8; 32],
    pub(crate) stop: Arc<AtomicBool>,
    /// Sources that an operator keeps away.
    pub(crate) bans: BanList,
    /// The servers that a drain names.
    alternates: Mutex<Vec<SocketAddr>>,
    /// Delay between a panic of a worker and its restart.
    pub(crate) restart_delay: Duration,
    epoch: Instant,
    kernel_path: OnceLock<Arc<KernelPath>>,
}

/// Makes room for the descriptors of a server with `config`, which [`start`](crate::start) does, too. A process that has
/// no other thread yet need not wait for it.
///
/// # Errors
/// The kernel's error.
pub fn reserve_descriptors(config: &TurnConfig) -> anyhow::Result<()> {
    let descriptors = raise_descriptor_limit().context("turn: cannot read the limit of descriptors")?;
    reserve(config, descriptors, config.relay_sockets != RelaySockets::Each).map(drop)
}

/// Makes room for the descriptors that are kept and those of relays, and returns the most sockets of relays. Relays that
/// share a socket have no descriptors.
fn reserve(config: &TurnConfig, descriptors: u64, is_shared: bool) -> anyhow::Result<u32> {
    let kept = DESCRIPTORS_KEPT + u64::from(connections_max(config, descriptors));
    let sockets_most = sockets_most(config, if is_shared { u64::MAX } else { descriptors.saturating_sub(kept) });
    let reserved = if is_shared { kept } else { kept + u64::from(sockets_most) };
    tt_net::reserve_descriptors(reserved).context("turn: cannot reserve descriptors")?;
    Ok(sockets_most)
}

impl Blueprint {
    /// Prepares workers that listen on these addresses.
    pub(crate) fn new(config: &TurnConfig, listening: Listening, handshakes: HandshakePool) -> anyhow::Result<Self> {
        let nonce_key = random()?;
        let descriptors = raise_descriptor_limit().context("turn: cannot read the limit of descriptors")?;
        let allocations_most = allocations_most(config);
        let shared_ports = SharedPorts::start(config);
        let sockets_most = reserve(config, descriptors, shared_ports.is_some())?;
        let plan = RelayPlan::new(&config.relay_ips, config.relay_ports, sockets_max(config, sockets_most));
        // The tables have room for the addresses, ports and allocations of any reload.
        let room = pools(allocations_most, sockets_most);
        let seed = getrandom::u64().context("turn: no random bytes from the system")?;
        let quotas = (config.quotas, &config.realm_quotas()[..]);
        let shared = Arc::new(Shared::with_realms(quotas, allocations_most, room, seed));
        let pools = pools(config.allocations_max, plan.sockets_max);
        let limits = shared.limits().succeeded_by(config.quotas, quotas.1, pools);
        Ok(Self {
            origins: Mutex::new(Origins::new(config)),
            in_force: ArcSwap::from_pointee(InForce::new(config.clone(), nonce_key, &shared)?),
            limits: ArcSwap::new(limits),
            realm_names: RealmNames::new(config),
            host: Mutex::new(host::read()?),
            shared,
            relay_pool: Arc::new(RelayPool::new(plan, sockets_most, shared_ports)),
            room,
            allocations_most,
            descriptors,
            memory_bound: Arc::new(MemoryBound::new(bytes_of(config.memory_bound()))),
            stream_plan: stream_plan(config, descriptors, handshakes)?,
            nonce_key,
            stop: Arc::new(AtomicBool::new(false)),
            bans: BanList::default(),
            alternates: Mutex::default(),
            restart_delay: config.restart_delay,
            kernel_path: OnceLock::new(),
            listening: ArcSwap::from_pointee(listening),
            epoch: Instant::now(),
        })
    }

    pub(crate) fn worker(
        &self,
        id: WorkerId,
        worker_io: WorkerIo,
        endpoints: Vec<WorkerEndpoint>,
        Outputs { event_log, records, messages }: Outputs,
    ) -> anyhow::Result<Parts> {
        let WorkerIo { poller, listeners: ListenerChange { udp, streams: accepting, .. }, inbound, commands } =
            worker_io;
        let mut listeners = UdpListeners::default();
        for (id, socket) in udp {
            listeners.add(id, socket, &poller).context("turn: cannot poll a listener")?;
        }
        let settings = self.loop_settings(&self.in_force.load().config);
        let mut streams = Streams::new(self.stream_plan.clone(), id, poller.waker());
        streams.replace_limits(settings.streams);
        for listener in accepting {
            streams.add_listener(listener, &poller).context("turn: cannot poll a listener")?;
        }
        let mut server = self.engine(id)?;
        self.bind_relays()?;
        let shared = self.relay_pool.shared().and_then(|ports| ports.sockets(id.0));
        if let Some(sockets) = &shared {
            sockets.watch(&poller).context("turn: cannot poll the sockets of relays")?;
        }
        let relays = self.relays(&mut server, shared)?;
        Ok(Parts {
            server,
            listeners,
            relays,
            streams,
            poller,
            sampler: Sampler::new(clock::clock(), self.in_force.load().config.sample_one_in),
            links: WorkerLinks::new(endpoints),
            inbound,
            commands,
            event_log,
            records,
            messages: messages.map(WorkerMessages::new),
            status: Arc::new(WorkerStatus::default()),
            stop: Arc::clone(&self.stop),
            is_retiring: false,
            settings,
            epoch: self.epoch,
            paths: None,
        })
    }
}

impl Blueprint {
    /// Returns the names of all realms, which follow a reload.
    pub(crate) fn realm_names(&self) -> RealmNames {
        self.realm_names.clone()
    }

    /// Starts the kernel path if `config` says so.
    pub(crate) fn start_kernel_path(&self, config: &TurnConfig) {
        if let Some(path) = KernelPath::start(config, &self.listening.load().udp_addrs(), self.epoch) {
            // There is one start.
            let _ = self.kernel_path.set(path);
        }
    }

    pub(crate) fn kernel_path(&self) -> Option<&Arc<KernelPath>> {
        self.kernel_path.get()
    }

    /// Returns everything that is listened on.
    pub(crate) fn listening(&self) -> Arc<Listening> {
        self.listening.load_full()
    }

    /// Returns the settings of `config` for the loops of the workers.
    fn loop_settings(&self, config: &TurnConfig) -> LoopSettings {
        LoopSettings {
            busy_poll: Nanos(u64::from(config.busy_poll_us) * 1_000),
            dscp_allow: config.dscp_allow,
            streams: StreamLimits { connections_max: connections_max(config, self.descriptors), ..config.streams },
        }
    }

    /// Returns the default realm.
    pub(crate) fn realm(&self) -> String {
        self.in_force.load().config.realm.clone()
    }

    /// Returns the maximum number of live allocations.
    pub(crate) fn allocations_max(&self) -> u32 {
        self.in_force.load().config.allocations_max
    }

    /// Returns the time of the workers' clock.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Keeps the servers that take clients during a drain, for workers that restart.
    pub(crate) fn keep_alternates(&self, alternates: Vec<SocketAddr>) {
        *self.alternates.lock().unwrap_or_else(PoisonError::into_inner) = alternates;
    }

    /// Lets a new engine follow what an operator has ordered since the start.
    pub(crate) fn repeat_orders(&self, server: &mut Server) {
        server.replace_bans(self.now(), self.bans.in_force());
        server.set_alternates(&self.alternates.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Binds the first relay sockets of every address.
    ///
    /// # Errors
    /// An address on which no socket can be bound.
    fn bind_relays(&self) -> anyhow::Result<()> {
        let filled = self.relay_pool.fill();
        filled.map_err(|(addr, error)| anyhow::anyhow!("turn: cannot bind a relay socket on {}: {error}", addr.ip()))
    }

    /// Creates the relays of the worker with this engine.
    ///
    /// # Errors
    /// Too many addresses.
    fn relays(&self, server: &mut Server, shared: Option<WorkerSockets>) -> anyhow::Result<Relays> {
        let relays = Relays::new(Arc::clone(&self.relay_pool), server.worker().0, shared);
        relays.announce(server).context("turn")?;
        Ok(relays)
    }
}

impl fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blueprint").field("listening", &self.listening).finish_non_exhaustive()
    }
}

/// Returns the engine's configuration, without peer rules.
fn engine_config(config: &TurnConfig) -> EngineConfig {
    EngineConfig {
        channel_numbers: config.channel_numbers,
        password_algorithms: config.password_algorithms,
        software: config.software.clone(),
        fingerprint: config.fingerprint,
        lifetime_default_s: config.lifetime_s,
        lifetime_max_s: config.lifetime_max_s,
        nonce_lifetime_s: config.nonce_lifetime_s,
        hairpin: config.hairpin,
        expiry_check: config.expiry_check,
        lapsed_permissions: config.lapsed_permissions,
        icmp_indications: config.icmp_indications,
        removed_users: config.removed_users,
        grant_reports: config.grant_reports,
        // Only records name the peers.
        peer_lists: if config.cdr.is_some() { PeerLists::Kept } else { PeerLists::Omitted },
        ..EngineConfig::new(&config.realm)
    }
}

/// The tables have room for so many times the allocations of the start: memory that they do not touch.
const ALLOCATIONS_GROWTH: u32 = 4;

/// Returns the allocations that a reload may allow.
fn allocations_most(config: &TurnConfig) -> u32 {
    config.allocations_max.saturating_mul(ALLOCATIONS_GROWTH).min(ALLOCATIONS_MAX.max(config.allocations_max))
}

/// Relay sockets per allocation and address: one in use and one that rests.
const SOCKETS_PER_ALLOCATION: u64 = 2;
/// Relay addresses that a reload may add without a limit of sockets below that of the allocations.
const ADDRESSES_MIN: u64 = 2;

/// Returns the sockets that descriptors and allocations allow, also after a reload with other addresses and ports. The
/// kernel's table of descriptors has room for all of them and for the connections from the start on.
fn sockets_most(config: &TurnConfig, descriptors: u64) -> u32 {
    let ips = (config.relay_ips.len() as u64).max(ADDRESSES_MIN);
    let by_allocations = u64::from(config.allocations_max) * SOCKETS_PER_ALLOCATION * ips;
    descriptors.min(by_allocations).max(ips) as u32
}

/// Returns the sockets that addresses, ports and allocations of `config` allow, at most `most`.
fn sockets_max(config: &TurnConfig, most: u32) -> u32 {
    let ips = config.relay_ips.len() as u64;
    let ports = u64::from(config.relay_ports.high - config.relay_ports.low) + 1;
    let by_allocations = u64::from(config.allocations_max) * SOCKETS_PER_ALLOCATION * ips;
    (ports * ips).min(by_allocations).min(u64::from(most)).max(ips) as u32
}

/// Permissions and channels per allocation, on average, beyond the guaranteed ones.
const POOLED_PER_ALLOCATION: u32 = 4;
/// Maximum number of reserved ports.
const RESERVATIONS_MAX: u32 = 1_024;

/// Returns the pools that the users of all workers share.
fn pools(allocations_max: u32, sockets: u32) -> Pools {
    let allocations = allocations_max.min(sockets);
    Pools {
        allocations,
        ports: sockets,
        reservations: (sockets / 2).clamp(1, RESERVATIONS_MAX),
        permissions: allocations.saturating_mul(POOLED_PER_ALLOCATION),
        channels: allocations.saturating_mul(POOLED_PER_ALLOCATION),
    }
}

/// Returns what the connections of all workers share. The number of descriptors bounds the connections.
fn stream_plan(config: &TurnConfig, descriptors: u64, handshakes: HandshakePool) -> anyhow::Result<StreamPlan> {
    let connections_max = connections_max(config, descriptors);
    let certificates = Certificates::default();
    certificates.replace(read_certificates(&config.certificates, &config.tls).context("turn")?);
    Ok(StreamPlan {
        limits: StreamLimits { connections_max, ..config.streams },
        certificates: Arc::new(certificates),
        balancers: Arc::new(ArcSwap::from_pointee(config.proxy_protocol_from.clone())),
        sources: Arc::new(Sources::new(config.quotas.ipv6_prefix_bits)),
        handshakes,
    })
}

/// Returns the maximum number of connections: the configured one, or a quarter of the descriptors if that is less.
fn connections_max(config: &TurnConfig, descriptors: u64) -> u32 {
    let by_descriptors = u32::try_from(descriptors / 4).unwrap_or(u32::MAX);
    if config.takes_streams() { config.streams.connections_max.min(by_descriptors) } else { 0 }
}

/// Returns the bytes of a bound of memory; `u64::MAX` without one.
fn bytes_of(bound: Option<MemorySize>) -> u64 {
    bound.map_or(u64::MAX, |size| size.bytes)
}

fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("turn: no random bytes from the system")?;
    Ok(bytes)
}
