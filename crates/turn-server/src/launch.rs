//! Binds the sockets of a configuration and starts the workers.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use tt_net::Poller;
use tt_os::addresses::AddressWatch;
use tt_turn::WorkerId;

use crate::blueprint::{Blueprint, WorkerIo, host};
use crate::commands::{COMMANDS_MAX, WorkerHandle};
use crate::config::TurnConfig;
use crate::event_log;
use crate::listeners::{self, Bound, Listening};
use crate::memory;
use crate::passed::PassedSockets;
use crate::records::{self, Records};
use crate::running::{Running, StatusReader};
use crate::streams::{HandshakePool, HandshakeThread};
use crate::supervisor::supervise;
use crate::worker::{InboundRings, WorkerEndpoint};

/// Maximum number of ready sockets per poll.
const READY_MAX: usize = 1_024;

/// Binds everything that `config` names and starts the workers.
///
/// # Errors
/// An address cannot be bound, a certificate cannot be used, or a system call failed; the error names it.
pub fn start(config: &TurnConfig) -> anyhow::Result<Running> {
    start_with(config, PassedSockets::default())
}

/// The same with sockets that are bound already, for addresses of `config`; the others are bound.
///
/// One passed UDP socket serves one worker: pass as many as there are workers, with `SO_REUSEPORT`. Workers share a
/// passed TCP socket.
///
/// # Errors
/// As [`start`]; a passed socket whose address or purpose `config` does not name.
pub fn start_with(config: &TurnConfig, passed: PassedSockets) -> anyhow::Result<Running> {
    let Bound { listening, sockets } = listeners::bind(config, &Listening::default(), passed, config.workers)?;
    let (listen, streams, listens) = (listening.udp_addrs(), listening.stream_addrs(), listening.names());
    // Before the addresses are read, so that no change is missed.
    let address_watch = AddressWatch::new().context("turn: cannot follow the addresses of this machine")?;
    let (pool, handshake_threads) = HandshakePool::new(&config.streams).context("turn: cannot poll sockets")?;
    let blueprint = Arc::new(Blueprint::new(config, listening, pool.clone())?);
    blueprint.start_kernel_path(config);
    let kernel_path = blueprint.kernel_path();
    let (event_log, log) = event_log::start(blueprint.realm_names())?;
    let Records { sender: record_sender, counts: record_counts, thread: record_thread } =
        records::start(config.cdr.as_ref(), blueprint.realm_names())?;

    let (mut worker_ios, mut endpoints) = (Vec::new(), Vec::new());
    let mut handles = Vec::with_capacity(config.workers);
    for listeners in listeners::share_out(sockets, config.workers) {
        let poller = Poller::new(READY_MAX).context("turn: cannot poll sockets")?;
        let (new_rings, inbound) = sync_channel(config.workers);
        endpoints.push(WorkerEndpoint { new_rings, waker: poller.waker() });
        let (to, commands) = sync_channel(COMMANDS_MAX);
        handles.push(WorkerHandle { commands: to, waker: poller.waker() });
        worker_ios.push(WorkerIo { poller, listeners, inbound: InboundRings::new(inbound), commands });
    }
    let mut workers = Vec::with_capacity(config.workers);
    for (id, worker_io) in (0u16..).zip(worker_ios) {
        let mut parts =
            blueprint.worker(WorkerId(id), worker_io, endpoints.clone(), (event_log.clone(), record_sender.clone()))?;
        parts.paths = kernel_path.map(|path| path.worker(id)).transpose()?;
        workers.push(parts);
    }
    let watch = |max| memory::watch(max, &blueprint.shared, &blueprint.stop);
    let (memory, memory_thread) = config.memory_bound().map(watch).transpose()?.unzip();
    let status = StatusReader {
        workers: workers.iter().map(|parts| Arc::clone(&parts.status)).collect(),
        realm: config.realm.clone(),
        sample_one_in: config.sample_one_in,
        blueprint: Arc::clone(&blueprint),
        log_loss: event_log.loss(),
        records: record_counts,
        memory,
    };
    let mut threads = Vec::with_capacity(config.workers);
    // What this thread starts from here on reads packets.
    if let Some(path) = kernel_path {
        threads.push(path.run(&blueprint.stop)?);
        path.drop_privileges();
    }
    for (number, parts) in workers.into_iter().enumerate() {
        // The worker is created on its thread: the buffers of system calls are not `Send`.
        let blueprint = Arc::clone(&blueprint);
        let named = thread::Builder::new().name(format!("turn-{number}"));
        let thread = named.spawn(move || supervise(parts, &blueprint));
        threads.push(thread.context("turn: cannot start a thread")?);
    }
    threads.extend(start_handshakes(handshake_threads, &blueprint)?);
    threads.push(log);
    threads.extend(record_thread);
    threads.extend(memory_thread);
    let handles: Arc<[WorkerHandle]> = handles.into();
    let (follower, follower_waker) = host::follow(&blueprint, address_watch, Arc::clone(&handles))?;
    threads.push(follower);
    let wakers = endpoints.into_iter().map(|endpoint| endpoint.waker).chain(pool.wakers()).chain([follower_waker]);
    let wakers = wakers.collect();
    let stop = Arc::clone(&blueprint.stop);
    Ok(Running { listen, streams, listens, stop, wakers, threads, workers: handles, blueprint, status })
}

/// Starts the threads of TLS handshakes. A reload may bring the first certificate.
fn start_handshakes(threads: Vec<HandshakeThread>, blueprint: &Blueprint) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let certificates = &blueprint.stream_plan.certificates;
    let start = |(number, handshakes): (usize, HandshakeThread)| {
        let (certificates, stop) = (Arc::clone(certificates), Arc::clone(&blueprint.stop));
        let thread = thread::Builder::new().name(format!("turn-tls-{number}"));
        thread.spawn(move || handshakes.run(&certificates, &stop)).context("turn: cannot start a thread")
    };
    threads.into_iter().enumerate().map(start).collect()
}
