//! Binds the sockets of a configuration and starts the workers.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use tt_os::addresses::AddressWatch;
use tt_status::allocation_messages::MessageOutput;
use turn_config::TurnConfig;

use crate::blueprint::{Blueprint, host, reserve_descriptors};
use crate::event_log;
use crate::listeners::{self, Bound, Listening};
use crate::memory;
use crate::messages;
use crate::passed::PassedSockets;
use crate::privileges;
use crate::records::{self, Records};
use crate::running::{Running, StatusReader};
use crate::streams::{HandshakePool, HandshakeThread};
use crate::worker::Outputs;
use crate::worker_set::WorkerSet;

/// Binds everything that `config` names and starts the workers.
///
/// # Errors
/// An address cannot be bound, a certificate cannot be used, or a system call failed; the error names it.
pub fn start(config: &TurnConfig) -> anyhow::Result<Running> {
    start_with(config, PassedSockets::default(), None)
}

/// The same with sockets that are bound already, for addresses of `config`; the others are bound.
///
/// One passed UDP socket serves one worker: pass as many as there are workers, with `SO_REUSEPORT`. Workers share a
/// passed TCP socket.
///
/// `output` gets messages about allocations if [`TurnConfig::grant_reports`] says so.
///
/// # Errors
/// As [`start`]; a passed socket whose address or purpose `config` does not name.
pub fn start_with(
    config: &TurnConfig,
    passed: PassedSockets,
    output: Option<Box<dyn MessageOutput>>,
) -> anyhow::Result<Running> {
    // Before the first thread.
    reserve_descriptors(config)?;
    tt_os::clock::calibrate_ahead();
    let Bound { listening, sockets } = listeners::bind(config, &Listening::default(), passed, config.workers)?;
    let (listen, streams, listens) = (listening.udp_addrs(), listening.stream_addrs(), listening.names());
    // Before the addresses are read, so that no change is missed.
    let address_watch = AddressWatch::new().context("turn: cannot follow the addresses of this machine")?;
    let (pool, handshake_threads) = HandshakePool::new(&config.streams).context("turn: cannot poll sockets")?;
    let blueprint = Arc::new(Blueprint::new(config, listening, pool.clone())?);
    blueprint.start_kernel_path(config);
    let kernel_path = blueprint.kernel_path();
    let (event_log, log) = event_log::start(blueprint.realm_names())?;
    let Records { sender: record_sender, counts: record_counts, ended, thread: record_thread } =
        records::start(config.cdr.as_ref(), blueprint.realm_names())?;
    let messages = messages::start(output, blueprint.realm_names())?;

    let log_loss = event_log.loss();
    let outputs = Outputs { event_log, records: record_sender, messages: messages.queue };
    let worker_set = Arc::new(WorkerSet::new(Arc::clone(&blueprint), outputs));
    let prepared = worker_set.prepare(0..config.workers, listeners::share_out(sockets, config.workers))?;
    let (memory, memory_thread) = memory::watch(&blueprint.memory_bound, &blueprint.shared, &blueprint.stop)?;
    let status = StatusReader {
        worker_set: Arc::clone(&worker_set),
        sample_one_in: config.sample_one_in,
        log_loss,
        records: record_counts,
        ended,
        messages: messages.counts,
        memory,
    };
    let mut threads = Vec::new();
    // What this thread starts from here on reads packets.
    if let Some(path) = kernel_path {
        threads.push(path.run(&blueprint.stop)?);
        path.drop_privileges();
    } else if blueprint.relay_pool.shared().is_some() {
        privileges::drop_all();
    }
    worker_set.start(prepared)?;
    worker_set.set_serving(config.workers);
    threads.extend(start_handshakes(handshake_threads, &blueprint)?);
    threads.push(log);
    threads.push(record_thread);
    threads.extend(messages.thread);
    threads.push(memory_thread);
    let (follower, follower_waker) = host::follow(&blueprint, address_watch, worker_set.workers.clone())?;
    threads.push(follower);
    let wakers = pool.wakers().chain([follower_waker]).collect();
    let stop = Arc::clone(&blueprint.stop);
    Ok(Running { listen, streams, listens, stop, wakers, threads, worker_set, status })
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
