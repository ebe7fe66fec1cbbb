//! The kernel path: an XDP program relays the packets of bound channels where it can.
//!
//! The engine opens, extends and closes paths ([`tt_turn::Server::poll_path`]), each worker writes its own into the
//! kernel's tables ([`WorkerPaths`]), and one thread follows routes and neighbours and keeps the program alive: without
//! its heartbeat the program hands every packet up. On any failure the sockets relay, and one line says why.

pub mod doctor;
pub mod dump;
mod hops;
mod interfaces;
mod plan;
mod proofs;
mod worker;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use nix::poll::{PollFd, PollFlags, poll};
use tt_model::Nanos;
use tt_os::clock::monotonic;
use tt_path::drivers::Device;
use tt_path::{Capacity, HopEvent, Mode, NextHops, PathError, Paths, PortKind, Proof, Reason, Tally};
use tt_status::accounting::Count;
use tt_status::turn::PathInterface;
use turn_config::{DscpSet, KernelMode, TurnConfig};

use crate::privileges;
use proofs::{ProofChange, ProofWatch};
pub(crate) use worker::WorkerPaths;

/// Interval of the heartbeat, without which the program relays nothing after two seconds.
const BEAT_EVERY_MS: u16 = 100;
/// Interval at which the thread looks whether the program is still attached.
const LOOK_EVERY: Nanos = Nanos::from_millis(1_000);
/// The epoch of all paths: the program ends with the process, so that no path outlives it.
const EPOCH: u32 = 1;
/// The loaded program, for all workers and the thread that follows the network.
pub(crate) struct KernelPath {
    paths: Paths,
    attached: Vec<(Device, Mode)>,
    /// Workers that the tables have room for.
    workers: u32,
    listener_ports: ArcSwap<Vec<u16>>,
    hops: Mutex<NextHops>,
    /// Rises when a path may have another way than before.
    generation: AtomicU64,
    /// CLOCK_MONOTONIC at the origin of the engines' clock.
    origin: Nanos,
    /// Paths in the kernel's tables.
    open: AtomicI64,
    write_failed: AtomicU64,
}

impl KernelPath {
    /// Loads the program and attaches it to the interfaces with addresses of the server. `None` if the sockets relay; a
    /// line of the log says why.
    pub(crate) fn start(config: &TurnConfig, listen: &[SocketAddr], epoch: Instant) -> Option<Arc<Self>> {
        if config.data_path == KernelMode::Off {
            return None;
        }
        match Self::load(config, listen, epoch) {
            Ok(path) => {
                for (Device { interface, driver, .. }, mode) in &path.attached {
                    let driver = driver.as_deref().unwrap_or("none");
                    tracing::info!(interface = interface.name, driver, ?mode, "the kernel path is attached");
                }
                Some(Arc::new(path))
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "data_path: the sockets relay");
                None
            }
        }
    }

    fn load(config: &TurnConfig, listen: &[SocketAddr], epoch: Instant) -> anyhow::Result<Self> {
        let relays = config.relay_ips.iter().map(|relay| relay.bound);
        let ips: Vec<IpAddr> = listen.iter().map(SocketAddr::ip).chain(relays).collect();
        let names = interfaces::carrying(&ips).context("cannot read the interfaces")?;
        anyhow::ensure!(!names.is_empty(), "no interface but the loopback has an address of this server");
        let workers = u32::try_from(config.workers).unwrap_or(u32::MAX);
        let mut paths = Paths::load(Capacity { paths: workers.saturating_mul(2 * worker::PATHS_MAX), meters: 0 })?;
        let mut attached = Vec::new();
        for name in names {
            let device = Device::read(&name)?;
            match attach(&mut paths, config.data_path, &device) {
                Ok(mode) => attached.push((device, mode)),
                Err(reason) => tracing::info!(interface = name, reason = format!("{reason:#}"), "not attached"),
            }
        }
        anyhow::ensure!(!attached.is_empty(), "the program is attached to no interface");
        let indices: Vec<u32> = attached.iter().map(|(device, _)| device.interface.index).collect();
        let mut hops = NextHops::open(paths.writer()?)?;
        indices.into_iter().for_each(|index| hops.attach(index));
        let origin = monotonic().saturating_sub(Nanos(epoch.elapsed().as_nanos() as u64));
        let path = Self {
            paths,
            attached,
            workers,
            listener_ports: ArcSwap::default(),
            hops: Mutex::new(hops),
            generation: AtomicU64::new(1),
            origin,
            open: AtomicI64::new(0),
            write_failed: AtomicU64::new(0),
        };
        let board = path.paths.board();
        path.listen_on(listen);
        board.set_dscp(config.dscp_allow.bits());
        board.set_epoch(EPOCH);
        board.beat(monotonic());
        board.switch(true);
        Ok(path)
    }

    /// Returns the paths of a worker. One that a reload has added has none: its sockets relay.
    ///
    /// # Errors
    /// The descriptors of the tables cannot be copied.
    pub(crate) fn worker(self: &Arc<Self>, number: u16) -> anyhow::Result<Option<WorkerPaths>> {
        if u32::from(number) >= self.workers {
            return Ok(None);
        }
        let writer = self.paths.writer().context("turn: cannot write the kernel's paths")?;
        Ok(Some(WorkerPaths::new(Arc::clone(self), writer, number)))
    }

    /// Starts the thread that keeps the program alive until the stop flag is set.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn run(self: &Arc<Self>, stop: &Arc<AtomicBool>) -> anyhow::Result<JoinHandle<()>> {
        let (path, stop) = (Arc::clone(self), Arc::clone(stop));
        let notifications = path.hops().as_fd().try_clone_to_owned().context("turn: cannot follow routes")?;
        let run = move || {
            let mut proofs = vec![ProofWatch::new(); path.attached.len()];
            let (mut events, mut has_failed) = (Vec::new(), false);
            let mut attached = vec![true; path.attached.len()];
            let mut look_at = Nanos(0);
            while !stop.load(Ordering::Relaxed) {
                let mut polled = [PollFd::new(notifications.as_fd(), PollFlags::POLLIN)];
                // Pairs that wait to be asked again do not wait for the next beat. An interrupted wait is a short one.
                let has_work = path.hops().deadline() == Nanos(0);
                let _ = poll(&mut polled, if has_work { 0 } else { BEAT_EVERY_MS });
                let now = monotonic();
                path.paths.board().beat(now);
                let processed = path.hops().process(now.saturating_sub(path.origin), &mut events);
                if let Err(error) = processed
                    && !std::mem::replace(&mut has_failed, true)
                {
                    tracing::warn!(%error, "data_path: next hops are not followed as they should be");
                }
                if events.drain(..).any(|event| changes_ways(&event)) {
                    path.generation.fetch_add(1, Ordering::Release);
                }
                path.watch_proofs(&mut proofs, now);
                if now >= look_at {
                    look_at = now.saturating_add(LOOK_EVERY);
                    path.watch_attachments(&mut attached);
                }
            }
            path.paths.board().switch(false);
        };
        let named = std::thread::Builder::new().name("turn-paths".to_owned());
        named.spawn(run).context("turn: cannot start a thread")
    }

    /// Drops the privileges that the program needed from this thread and from those that it starts. The thread of
    /// [`KernelPath::run`] keeps CAP_NET_ADMIN, to have neighbours confirmed.
    pub(crate) fn drop_privileges(&self) {
        let dropped = match self.paths.writer() {
            // No hop has been resolved yet.
            Ok(mut writer) => privileges::drop_unless_needed(|| writer.set_hop(0, None).is_ok()),
            Err(_) => privileges::drop_unless_needed(|| false),
        };
        match dropped {
            Ok(false) => tracing::debug!("CAP_BPF and CAP_NET_ADMIN are dropped"),
            Ok(true) => tracing::info!("CAP_BPF stays: this kernel asks for it at every write of the kernel path"),
            Err(error) => tracing::warn!(%error, "CAP_BPF and CAP_NET_ADMIN stay"),
        }
    }

    /// Logs an interface from which the program was detached, or which has gone.
    fn watch_attachments(&self, attached: &mut [bool]) {
        for (was_attached, (Device { interface, .. }, _)) in attached.iter_mut().zip(&self.attached) {
            if *was_attached && !self.paths.is_attached(interface.index) {
                *was_attached = false;
                let name = &interface.name;
                tracing::warn!(
                    interface = name,
                    "the sockets relay: the kernel path was detached; a restart attaches it"
                );
            }
        }
    }

    /// Logs an interface whose proof is complete or has failed, and begins failed proofs again.
    fn watch_proofs(&self, watches: &mut [ProofWatch], now: Nanos) {
        for (watch, (Device { interface, .. }, _)) in watches.iter_mut().zip(&self.attached) {
            let state = self.paths.board().proof(interface.index);
            let (name, checked, bad) = (&interface.name, state.checked, state.bad);
            match watch.follow(state.proof, now) {
                Some(ProofChange::Proven) => {
                    tracing::info!(interface = name, checked, "the kernel relays: checksums are complete");
                }
                Some(ProofChange::Failed) => tracing::warn!(
                    interface = name,
                    bad,
                    "the sockets relay: packets arrive without complete checksums; on the sender's side: ethtool -K IFACE tx off"
                ),
                Some(ProofChange::Again) => self.paths.board().prove_again(interface.index),
                None => {}
            }
        }
    }

    /// Marks the ports of listeners. Those of before stay theirs. An address of an interface that the program is not
    /// attached to is served by sockets.
    pub(crate) fn listen_on(&self, listen: &[SocketAddr]) {
        let before = self.listener_ports.load();
        let mut ports = BTreeSet::new();
        ports.extend(before.iter().copied().chain(listen.iter().map(SocketAddr::port)));
        self.listener_ports.store(Arc::new(ports.into_iter().collect()));
        for port in self.listener_ports.load().iter() {
            self.paths.board().set_port(*port, PortKind::Listener);
        }
    }

    /// Sets the DSCP values that relayed packets may have.
    pub(crate) fn set_dscp(&self, allowed: DscpSet) {
        self.paths.board().set_dscp(allowed.bits());
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the engines' time as CLOCK_MONOTONIC.
    const fn monotonic(&self, time: Nanos) -> Nanos {
        self.origin.saturating_add(time)
    }

    fn tally(&self, index: u32) -> Tally {
        self.paths.board().tally(index).unwrap_or_default()
    }

    /// Marks a port of relays. A port that listeners have on another address stays theirs, and the sockets relay for it.
    fn mark_relay(&self, port: u16) {
        if !self.listener_ports.load().contains(&port) {
            self.paths.board().set_port(port, PortKind::Relay);
        }
    }

    fn count_open(&self, change: i64) {
        self.open.fetch_add(change, Ordering::Relaxed);
    }

    /// Returns the status; `to_peers` and `to_clients` are the payloads that the workers have counted.
    pub(crate) fn status(&self, [to_peers, to_clients]: [u64; 2]) -> tt_status::turn::KernelPath {
        let interfaces = self.attached.iter().map(|(Device { interface, driver, .. }, mode)| {
            let proof = self.paths.board().proof(interface.index);
            PathInterface {
                name: interface.name.clone(),
                driver: driver.clone(),
                mode: mode_name(*mode),
                proof: match proof.proof {
                    _ if !self.paths.is_attached(interface.index) => "detached",
                    Proof::Off => "off",
                    Proof::Proving => "proving",
                    Proof::Proven => "proven",
                    Proof::Unproven => "unproven",
                },
                checked: proof.checked,
                bad: proof.bad,
            }
        });
        let passed = self.paths.reasons().map_or_else(
            |_| Vec::new(),
            |counts| {
                let passed = Reason::ALL.into_iter().filter(|reason| *reason != Reason::Relayed);
                passed.map(|reason| Count { name: reason.label(), count: counts.of(reason) }).collect()
            },
        );
        tt_status::turn::KernelPath {
            to_peers,
            to_clients,
            passed,
            open: u64::try_from(self.open.load(Ordering::Relaxed)).unwrap_or(0),
            write_failed: self.write_failed.load(Ordering::Relaxed),
            interfaces: interfaces.collect(),
        }
    }

    /// Counts a failed write, and logs the first one.
    fn write_failed(&self, error: &PathError) {
        if self.write_failed.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!(%error, "cannot write the kernel's paths; the sockets relay");
        }
    }

    fn hops(&self) -> MutexGuard<'_, NextHops> {
        self.hops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for a worker, which does not wait while the kernel is asked about many pairs.
    fn try_hops(&self) -> Option<MutexGuard<'_, NextHops>> {
        match self.hops.try_lock() {
            Ok(hops) => Some(hops),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl std::fmt::Debug for KernelPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelPath").field("attached", &self.attached).finish_non_exhaustive()
    }
}

/// Name of a mode in reports.
const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Native => "native",
        Mode::Generic => "generic",
    }
}

/// Attaches the program as `data_path` says.
///
/// # Errors
/// Why not.
fn attach(paths: &mut Paths, data_path: KernelMode, device: &Device) -> anyhow::Result<Mode> {
    let mode = plan::mode(data_path, device.native_use()).map_err(anyhow::Error::msg)?;
    paths.attach(&device.interface, mode)?;
    Ok(mode)
}

/// Returns whether a path may have another way than before, or its first one.
fn changes_ways(event: &HopEvent) -> bool {
    match event {
        HopEvent::RouteChanged { .. } => true,
        // An invalid hop sends packets up, and its paths stay.
        HopEvent::HopChanged(hop) => hop.state.is_ok(),
    }
}
