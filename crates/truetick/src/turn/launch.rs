//! From a configuration to running workers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Instant;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use nix::ifaddrs::getifaddrs;
use tt_meter::Sampler;
use tt_model::Nanos;
use tt_net::stream::StreamListener;
use tt_net::{Poller, UdpSocket, raise_descriptor_limit};
use tt_turn::{Config as EngineConfig, Shared, WorkerId};

use super::ledger::Published;
use super::listeners::{Listeners, listens, stream_addr};
use super::orders::{ORDERS_MAX, Order, Post};
use super::records::{self, Records};
use super::relays::{RelayPlan, Relays};
use super::reload::InForce;
use super::settings::TurnConfig;
use super::streams::{Certificates, Sources, StreamLimits, StreamPlan, Streams, Takes};
use super::supervisor::supervise;
use super::worker::{Arrivals, Neighbour, Parts, Ways};
use super::{Readings, Running};
use crate::clock;

/// Descriptors that are not relay sockets: files, listeners, HTTP connections.
const DESCRIPTORS_KEPT: u64 = 128;
/// Bytes that a listener's queue may hold, where the system allows it.
const LISTENER_BUFFER: usize = 4 << 20;
/// Sockets that a poller tells of at a time.
const READY_MAX: usize = 1_024;

/// Binds everything that `config` names and starts the workers.
///
/// # Errors
/// An address that cannot be bound, or what the system lacks for threads, randomness or readiness; one clear sentence.
pub fn start(config: &TurnConfig) -> anyhow::Result<Running> {
    let Listeners { udp: mut groups, streams: mut stream_groups } = Listeners::bind(config)?;
    let listen: Vec<_> = groups.iter().map(|group| group[0].local_addr()).collect();
    let has_tls = config.certificate.is_some();
    let streams: Vec<_> = stream_groups.iter().map(|(takes, group)| stream_addr(*takes, &group[0], has_tls)).collect();
    let blueprint = Arc::new(Blueprint::new(config, &listen)?);
    let (records, log) = records::start()?;

    let (mut corners, mut neighbours) = (Vec::new(), Vec::new());
    let mut posts = Vec::with_capacity(config.workers);
    for _ in 0..config.workers {
        let poller = Poller::new(READY_MAX).context("turn: cannot watch sockets")?;
        let (mail, arrivals) = sync_channel(config.workers);
        neighbours.push(Neighbour { mail, waker: poller.waker() });
        let (to, orders) = sync_channel(ORDERS_MAX);
        posts.push(Post { orders: to, waker: poller.waker() });
        let listeners = groups.iter_mut().filter_map(Vec::pop).collect();
        let take = |(takes, group): &mut (Takes, Vec<StreamListener>)| Some((group.pop()?, *takes));
        let stream_listeners = stream_groups.iter_mut().filter_map(take).collect();
        corners.push(Corner { poller, listeners, stream_listeners, arrivals: Arrivals::new(arrivals), orders });
    }
    let mut workers = Vec::with_capacity(config.workers);
    for (id, corner) in (0u16..).zip(corners) {
        workers.push(blueprint.worker(WorkerId(id), corner, neighbours.clone(), records.clone())?);
    }
    let readings = Readings {
        workers: workers.iter().map(|parts| Arc::clone(&parts.published)).collect(),
        listens: listens(&listen, &streams),
        realm: config.realm.clone(),
        allocations_max: config.allocations_max,
        sample_one_in: config.sample_one_in,
        shared: Arc::clone(&blueprint.shared),
    };
    let mut threads = Vec::with_capacity(config.workers);
    for (number, parts) in workers.into_iter().enumerate() {
        // Made inside of its thread: the buffers of system calls do not change threads.
        let blueprint = Arc::clone(&blueprint);
        let named = thread::Builder::new().name(format!("turn-{number}"));
        let thread = named.spawn(move || supervise(parts, &blueprint));
        threads.push(thread.context("turn: cannot start a thread")?);
    }
    threads.push(log);
    let wakers = neighbours.into_iter().map(|neighbour| neighbour.waker).collect();
    let certificates = blueprint.stream_plan.certificates.clone();
    let stop = Arc::clone(&blueprint.stop);
    Ok(Running { listen, streams, certificates, stop, wakers, threads, posts: posts.into(), blueprint, readings })
}

/// What a worker has of its own before it has an engine.
struct Corner {
    poller: Poller,
    listeners: Vec<UdpSocket>,
    stream_listeners: Vec<(StreamListener, Takes)>,
    arrivals: Arrivals,
    orders: Receiver<Order>,
}

/// What all workers are made from.
pub(super) struct Blueprint {
    /// Replaced by a reload.
    pub(super) in_force: ArcSwap<InForce>,
    /// Where datagrams and connections are taken.
    pub(super) listen: Vec<SocketAddr>,
    pub(super) engine: EngineConfig,
    pub(super) plan: RelayPlan,
    stream_plan: StreamPlan,
    pub(super) shared: Arc<Shared>,
    pub(super) nonce_key: [u8; 32],
    stop: Arc<AtomicBool>,
    epoch: Instant,
}

impl Blueprint {
    fn new(config: &TurnConfig, listen: &[SocketAddr]) -> anyhow::Result<Self> {
        let mut engine = EngineConfig::new(&config.realm);
        engine.channel_numbers = config.channel_numbers;
        engine.password_algorithms = config.password_algorithms;
        engine.hairpin = config.hairpin;
        let nonce_key = random()?;
        let seed = getrandom::u64().context("turn: the system gives no random bytes")?;
        Ok(Self {
            in_force: ArcSwap::from_pointee(InForce::new(config.clone(), nonce_key)?),
            listen: listen.to_vec(),
            engine,
            plan: relay_plan(config)?,
            stream_plan: stream_plan(config)?,
            shared: Arc::new(Shared::new(config.quotas, config.allocations_max, seed)),
            nonce_key,
            stop: Arc::new(AtomicBool::new(false)),
            epoch: Instant::now(),
        })
    }

    fn worker(
        &self,
        id: WorkerId,
        corner: Corner,
        neighbours: Vec<Neighbour>,
        records: Records,
    ) -> anyhow::Result<Parts> {
        let Corner { poller, listeners, stream_listeners, arrivals, orders } = corner;
        for (key, listener) in (0u64..).zip(&listeners) {
            // A smaller queue loses sooner under a burst, and says so; it is no reason not to serve.
            let _ = listener.set_buffers(LISTENER_BUFFER, true);
            listener.take_trains().context("turn: cannot take trains of datagrams")?;
            poller.add(listener, key).context("turn: cannot watch a listener")?;
        }
        let streams = Streams::new(self.stream_plan.clone(), stream_listeners);
        streams.watch(&poller).context("turn: cannot watch a listener")?;
        let mut server = self.engine(id)?;
        let mut relays = Relays::new(self.plan.clone());
        relays
            .fill(&mut server, &poller)
            .map_err(|(addr, error)| anyhow::anyhow!("turn: cannot bind a relay socket on {}: {error}", addr.ip()))?;
        Ok(Parts {
            server,
            listeners,
            relays,
            streams,
            poller,
            sampler: Sampler::new(clock::calibration().clock, self.in_force.load().config.sample_one_in),
            ways: Ways::new(neighbours),
            arrivals,
            orders,
            records,
            published: Arc::new(Published::default()),
            stop: Arc::clone(&self.stop),
            linger: Nanos(u64::from(self.in_force.load().config.linger_us) * 1_000),
            epoch: self.epoch,
        })
    }
}

impl fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blueprint").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// How many relay sockets a worker may have: its share of the ports, of the descriptors, of what clients may allocate.
fn relay_plan(config: &TurnConfig) -> anyhow::Result<RelayPlan> {
    let descriptors = raise_descriptor_limit().context("turn: cannot read the limit of descriptors")?;
    let (workers, ips) = (config.workers as u64, config.relay_ips.len() as u64);
    let ports = u64::from(config.relay_ports.high - config.relay_ports.low) + 1;
    let by_ports = (ports * ips / workers).max(ips);
    let kept = DESCRIPTORS_KEPT + u64::from(connections_max(config, descriptors));
    let by_descriptors = (descriptors.saturating_sub(kept) / workers).max(ips);
    let sockets_max = by_ports.min(by_descriptors).min(u64::from(config.allocations_max) * ips);
    Ok(RelayPlan { ips: config.relay_ips.clone(), ports: config.relay_ports, sockets_max: sockets_max as u32 })
}

/// What all workers' connections share, with no more connections than there are descriptors for.
fn stream_plan(config: &TurnConfig) -> anyhow::Result<StreamPlan> {
    let descriptors = raise_descriptor_limit().context("turn: cannot read the limit of descriptors")?;
    let connections_max = connections_max(config, descriptors);
    let certificates = config.certificate.as_ref().map(Certificates::read).transpose().context("turn")?;
    Ok(StreamPlan {
        limits: StreamLimits { connections_max, ..config.streams },
        certificates: certificates.map(Arc::new),
        sources: Arc::new(Sources::default()),
    })
}

/// Connections at most: what is configured, and a quarter of the descriptors, since relays need them, too.
fn connections_max(config: &TurnConfig, descriptors: u64) -> u32 {
    let by_descriptors = u32::try_from(descriptors / 4).unwrap_or(u32::MAX);
    if config.takes_streams() { config.streams.connections_max.min(by_descriptors) } else { 0 }
}

/// `listen` with every address of this machine in place of the unspecified one.
pub(super) fn every_address(listen: &[SocketAddr]) -> anyhow::Result<Vec<SocketAddr>> {
    let mut ips: Vec<IpAddr> = Vec::new();
    for interface in getifaddrs().context("turn: cannot read the addresses of this machine")? {
        let Some(address) = interface.address else { continue };
        ips.extend(address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip())));
        ips.extend(address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())));
    }
    let mut all = listen.to_vec();
    for addr in listen.iter().filter(|addr| addr.ip().is_unspecified()) {
        let of_family = ips.iter().filter(|ip| ip.is_ipv4() == addr.is_ipv4());
        all.extend(of_family.map(|ip| SocketAddr::new(*ip, addr.port())));
    }
    Ok(all)
}

pub(super) fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("turn: the system gives no random bytes")?;
    Ok(bytes)
}
