//! From a configuration to running workers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use anyhow::Context as _;
use nix::ifaddrs::getifaddrs;
use tt_meter::Sampler;
use tt_model::Nanos;
use tt_net::stream::StreamListener;
use tt_net::{Poller, UdpSocket, raise_descriptor_limit};
use tt_turn::{Capacity, Config as EngineConfig, Secrets, Server, Shared, WorkerId};

use super::ledger::Published;
use super::listeners::{Listeners, listens, stream_addr};
use super::relays::{RelayPlan, Relays};
use super::settings::TurnConfig;
use super::streams::{Certificates, Sources, StreamLimits, StreamPlan, Streams, Takes};
use super::worker::{Arrivals, Neighbour, Parts, Ways, Worker};
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
    let blueprint = Blueprint::new(config, &listen)?;

    let (mut corners, mut neighbours) = (Vec::new(), Vec::new());
    for _ in 0..config.workers {
        let poller = Poller::new(READY_MAX).context("turn: cannot watch sockets")?;
        let (mail, arrivals) = sync_channel(config.workers);
        neighbours.push(Neighbour { mail, waker: poller.waker() });
        let listeners = groups.iter_mut().filter_map(Vec::pop).collect();
        let take = |(takes, group): &mut (Takes, Vec<StreamListener>)| Some((group.pop()?, *takes));
        let stream_listeners = stream_groups.iter_mut().filter_map(take).collect();
        corners.push(Corner { poller, listeners, stream_listeners, arrivals: Arrivals::new(arrivals) });
    }
    let mut workers = Vec::with_capacity(config.workers);
    for (id, corner) in (0u16..).zip(corners) {
        workers.push(blueprint.worker(WorkerId(id), corner, neighbours.clone())?);
    }
    let readings = Readings {
        workers: workers.iter().map(|parts| Arc::clone(&parts.published)).collect(),
        listens: listens(&listen, &streams),
        realm: config.realm.clone(),
        allocations_max: config.allocations_max,
        sample_one_in: config.sample_one_in,
    };
    let mut threads = Vec::with_capacity(config.workers);
    for (number, parts) in workers.into_iter().enumerate() {
        // Made inside of its thread: the buffers of system calls do not change threads.
        let thread = thread::Builder::new().name(format!("turn-{number}")).spawn(move || Worker::new(parts).run());
        threads.push(thread.context("turn: cannot start a thread")?);
    }
    let wakers = neighbours.into_iter().map(|neighbour| neighbour.waker).collect();
    let certificates = blueprint.stream_plan.certificates;
    Ok(Running { listen, streams, certificates, stop: blueprint.stop, wakers, threads, readings })
}

/// What a worker has of its own before it has an engine.
struct Corner {
    poller: Poller,
    listeners: Vec<UdpSocket>,
    stream_listeners: Vec<(StreamListener, Takes)>,
    arrivals: Arrivals,
}

/// What all workers are made from.
struct Blueprint<'a> {
    config: &'a TurnConfig,
    engine: EngineConfig,
    plan: RelayPlan,
    stream_plan: StreamPlan,
    shared: Arc<Shared>,
    nonce_key: [u8; 32],
    stop: Arc<AtomicBool>,
    epoch: Instant,
}

impl<'a> Blueprint<'a> {
    fn new(config: &'a TurnConfig, listen: &[SocketAddr]) -> anyhow::Result<Self> {
        let mut engine = EngineConfig::new(&config.realm);
        engine.channel_numbers = config.channel_numbers;
        engine.password_algorithms = config.password_algorithms;
        engine.hairpin = config.hairpin;
        engine.peer_policy = config.peer_policy(&every_address(listen)?);
        let seed = getrandom::u64().context("turn: the system gives no random bytes")?;
        Ok(Self {
            config,
            engine,
            plan: relay_plan(config)?,
            stream_plan: stream_plan(config)?,
            shared: Arc::new(Shared::new(config.quotas, config.allocations_max, seed)),
            nonce_key: random()?,
            stop: Arc::new(AtomicBool::new(false)),
            epoch: Instant::now(),
        })
    }

    fn worker(&self, id: WorkerId, corner: Corner, neighbours: Vec<Neighbour>) -> anyhow::Result<Parts> {
        let Corner { poller, listeners, stream_listeners, arrivals } = corner;
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
            sampler: Sampler::new(clock::calibration().clock, self.config.sample_one_in),
            ways: Ways::new(neighbours),
            arrivals,
            published: Arc::new(Published::default()),
            stop: Arc::clone(&self.stop),
            linger: Nanos(u64::from(self.config.linger_us) * 1_000),
            epoch: self.epoch,
        })
    }

    fn engine(&self, id: WorkerId) -> anyhow::Result<Server> {
        let config = self.config;
        let mut secrets = Secrets::new(random()?, self.nonce_key);
        for user in &config.users {
            secrets.add_user(user.name.as_bytes(), &config.realm, user.password.as_bytes());
        }
        for secret in &config.auth_secrets {
            secrets.add_auth_secret(secret.0.as_bytes());
        }
        // The kernel spreads clients unevenly: every worker has room for as many as it has sockets.
        let capacity = Capacity::for_allocations(self.plan.sockets_max);
        Ok(Server::new(self.engine.clone(), capacity, Arc::clone(&self.shared), id, secrets))
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
fn every_address(listen: &[SocketAddr]) -> anyhow::Result<Vec<SocketAddr>> {
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

fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("turn: the system gives no random bytes")?;
    Ok(bytes)
}
