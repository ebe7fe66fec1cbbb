//! Changes while the server runs: new users, secrets, peer rules and limits, and a new engine after a panic.

use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tt_os::heap;
use tt_turn::config::{CHANNELS_GUARANTEED, Capacity, PERMISSIONS_GUARANTEED, RealmId};
use tt_turn::credential::{Secrets, USER_PARTS, UserPart};
use tt_turn::relay::OWN_IPS_MAX;
use tt_turn::shared::{Pools, Shared};
use tt_turn::{Server, WorkerId};
use turn_config::{PeerPolicies, TurnConfig, Users, WORKERS_MAX};

use crate::commands::{EngineReload, Retired, WorkerCommand, WorkerHandle};
use crate::listener_id::{ListenerId, ListenerUse};
use crate::listeners::{self, Bound, ListenerChange, Listening, Sockets};
use crate::passed::PassedSockets;
use crate::relay_pool::RelayPlan;
use crate::streams::read_certificates;
use crate::worker::Parts;

use super::external::Origins;
use super::realms::RealmUsers;
use super::{ALLOCATIONS_GROWTH, Blueprint, bytes_of, engine_config, host, pools, random, sockets_max};

/// How long a reload waits for the workers to replace the users.
const RETIRED_WITHIN: Duration = Duration::from_secs(2);

/// What a reload replaces. Of users and shared secrets only the derived keys are kept (RFC 8656 section 6).
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    /// Without users and secrets.
    pub(crate) config: Arc<TurnConfig>,
    pub(super) secrets: Secrets,
}

/// Everything for a replacement of users, secrets and peer rules that cannot fail any more.
pub(super) struct Prepared<'a> {
    /// Without the users.
    next: InForce,
    /// One for each worker.
    seeds: Vec<[u8; 32]>,
    known: MutexGuard<'a, host::Ranges>,
    /// What is listened on before.
    listening: Arc<Listening>,
}

impl InForce {
    /// Derives the keys of all but the users. `nonce_key` is used if the configuration has none.
    ///
    /// # Errors
    /// The system returns no random bytes.
    fn without_users(config: TurnConfig, nonce_key: [u8; 32]) -> anyhow::Result<Self> {
        let keys = config.nonce_keys.as_ref();
        let mut secrets = Secrets::new(random()?, keys.map_or(nonce_key, |keys| *keys.current));
        if let Some(previous) = keys.and_then(|keys| keys.previous.as_deref()) {
            secrets.accept_nonce_key(*previous);
        }
        for secret in &config.auth_secrets {
            secrets.add_auth_secret(secret.0.as_bytes());
        }
        for (index, realm) in config.realms.iter().enumerate() {
            for secret in &realm.auth_secrets {
                secrets.add_auth_secret_of(RealmId::further(index), secret.0.as_bytes());
            }
        }
        let mut config = TurnConfig { users: Users::default(), auth_secrets: Vec::new(), nonce_keys: None, ..config };
        for realm in &mut config.realms {
            (realm.users, realm.auth_secrets) = (Users::default(), Vec::new());
        }
        Ok(Self { config: Arc::new(config), secrets })
    }

    /// Derives the keys.
    ///
    /// # Errors
    /// The system returns no random bytes.
    pub(crate) fn new(mut config: TurnConfig, nonce_key: [u8; 32], shared: &Shared) -> anyhow::Result<Self> {
        let users = std::mem::take(&mut config.users);
        let further = RealmUsers::take(&mut config);
        let (mut in_force, decoy_seed) = (Self::without_users(config, nonce_key)?, random()?);
        for number in 0..USER_PARTS {
            let part = UserPart::new(number, users.iter(), &in_force.config.realm, (shared, &decoy_seed));
            in_force.secrets.replace_users(&part);
        }
        for part in further.parts(None, (shared, &decoy_seed)) {
            in_force.secrets.replace_users(&part);
        }
        Ok(in_force)
    }

    /// Returns the keys for one worker.
    fn secrets(&self) -> anyhow::Result<Secrets> {
        Ok(self.secrets.with_seed(random()?))
    }
}

impl Blueprint {
    /// Returns the peer rules of `config` for a host with these ranges of addresses.
    pub(super) fn policies(&self, config: &TurnConfig, host: &[(IpAddr, IpAddr)]) -> PeerPolicies {
        config.peer_policies(&self.listening.load().udp_addrs(), host)
    }

    /// Creates an engine with the current users, secrets and peer rules.
    pub(crate) fn engine(&self, id: WorkerId) -> anyhow::Result<Server> {
        let in_force = self.in_force.load();
        let mut engine = engine_config(&in_force.config);
        engine.realms = Self::engine_realms(&in_force.config, &self.listening.load());
        (engine.peer_policy, engine.realm_policies) = self.policies(&in_force.config, &host::read()?);
        // The kernel spreads clients unevenly, so every worker has room for all allocations, for what each is
        // guaranteed, and for everything in the pools.
        let (caps, Pools { allocations, permissions, channels, .. }) = (in_force.config.caps, self.room);
        let capacity = Capacity {
            allocations,
            permissions: allocations.saturating_mul(PERMISSIONS_GUARANTEED).saturating_add(permissions),
            permissions_per_allocation: caps.permissions,
            channels: allocations.saturating_mul(CHANNELS_GUARANTEED).saturating_add(channels),
            channels_per_allocation: caps.channels,
            relays: self.relay_pool.sockets_most(),
        };
        let mut server = Server::new(engine, capacity, Arc::clone(&self.shared), id, in_force.secrets()?);
        server.replace_limits(self.limits.load_full());
        self.repeat_orders(&mut server);
        Ok(server)
    }

    /// Applies what [`Running::reload`](crate::Running::reload) names of `config` to every worker or to none.
    ///
    /// The users are replaced in parts, so that the old and the new ones are not in memory together.
    ///
    /// `before` runs when nothing of it can fail any more, and returns the workers: if it fails, nothing is applied.
    ///
    /// # Errors
    /// A certificate cannot be used, a system call failed, or `before` did; the old ones stay in force.
    pub(crate) fn reload(
        &self,
        mut config: TurnConfig,
        before: impl FnOnce() -> anyhow::Result<Arc<Vec<WorkerHandle>>>,
    ) -> anyhow::Result<()> {
        ensure!(
            config.allocations_max <= self.allocations_most,
            "a restart is needed for turn.allocations_max above {}, {ALLOCATIONS_GROWTH} times that of the start",
            self.allocations_most
        );
        let workers = config.workers;
        let identity = read_certificates(&config.certificates, &config.tls).context("turn")?;
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        config.external_users = origins.external_users;
        self.order_realms(&mut config)?;
        let own = Origins::new(&config);
        origins.add_external(&mut config);
        let users = std::mem::take(&mut config.users);
        let further = RealmUsers::take(&mut config);
        let (next, decoy_seed) = (InForce::without_users(config, self.nonce_key)?, random()?);
        let prepared = self.prepare(next, WORKERS_MAX)?;
        let plan = self.next_plan(&prepared.next.config)?;
        let Bound { mut listening, sockets } =
            listeners::bind(&prepared.next.config, &self.listening.load(), PassedSockets::default(), workers)?;
        let handles = &before()?[..];
        self.relay_pool.replace_plan(plan);
        self.stream_plan.certificates.replace(identity);
        let removed = listening.replace(&self.listening.load());
        self.listening.store(Arc::new(listening));
        origins.take_own(own);
        let (origins, shared) = (&*origins, &self.shared);
        let realm = prepared.next.config.realm.clone();
        let part = |number| {
            let all = users.iter().chain(origins.external_users());
            UserPart::new(number, all, &realm, (shared, &decoy_seed))
        };
        let parts = (0..USER_PARTS).map(part).chain(further.parts(Some(origins), (shared, &decoy_seed)));
        self.replace(prepared, parts, handles);
        // With rules and realms that know them.
        self.replace_listeners((sockets, workers), &removed, handles);
        Ok(())
    }

    /// Gives the workers the sockets of new listeners, and lets them close those that are gone.
    fn replace_listeners(
        &self,
        (sockets, workers): (Vec<(ListenerId, Sockets)>, usize),
        removed: &[(ListenerId, Arc<AtomicUsize>)],
        handles: &[WorkerHandle],
    ) {
        if sockets.is_empty() && removed.is_empty() {
            return;
        }
        if let Some(path) = self.kernel_path() {
            path.listen_on(&self.listening.load().udp_addrs());
        }
        let shares = |_| removed.iter().map(|(id, workers)| (*id, ListenerUse::new(workers))).collect();
        // All are counted before the first is given back.
        let removed: Vec<Vec<_>> = handles.iter().map(shares).collect();
        let mut added = listeners::share_out(sockets, workers).into_iter();
        let changes = removed.into_iter().map(|removed| ListenerChange { removed, ..added.next().unwrap_or_default() });
        change_listeners(handles.iter().zip(changes));
    }

    /// Returns the addresses and ports of relay sockets of `config`, on each of which one can be bound.
    fn next_plan(&self, config: &TurnConfig) -> anyhow::Result<RelayPlan> {
        let sockets_max = sockets_max(config, self.relay_pool.sockets_most());
        let plan = self.relay_pool.plan().succeeded_by(&config.relay_ips, config.relay_ports, sockets_max);
        ensure!(
            plan.fits_engines(),
            "a restart is needed for turn.relay_ip turn.external_ip: more than {OWN_IPS_MAX} addresses since the start"
        );
        let tried = self.relay_pool.try_plan(&plan);
        tried.map_err(|(ip, error)| anyhow::anyhow!("turn: cannot bind a relay socket on {ip}: {error}"))?;
        Ok(plan)
    }

    /// Does everything that can fail before users, secrets and peer rules are replaced.
    pub(super) fn prepare(&self, next: InForce, workers: usize) -> anyhow::Result<Prepared<'_>> {
        let seeds = (0..workers).map(|_| random()).collect::<anyhow::Result<Vec<_>>>()?;
        let mut known = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        *known = host::read()?;
        Ok(Prepared { next, seeds, known, listening: self.listening.load_full() })
    }

    /// Replaces the users of `parts`, and everything else by that of `prepared`.
    pub(super) fn replace(
        &self,
        prepared: Prepared<'_>,
        parts: impl Iterator<Item = UserPart>,
        handles: &[WorkerHandle],
    ) {
        let Prepared { mut next, seeds, known, listening } = prepared;
        self.replace_surroundings(&next.config, &listening, handles);
        self.replace_users(parts, handles);
        next.secrets.share_users(&self.in_force.load().secrets);
        let deadline = Instant::now() + RETIRED_WITHIN;
        let before = self.in_force.swap(Arc::new(next.clone()));
        let policies = self.policies(&next.config, &known);
        send_and_free(handles, deadline, |worker, retired| {
            WorkerCommand::reload(
                EngineReload {
                    config: engine_config(&next.config),
                    caps: next.config.caps,
                    secrets: next.secrets.with_seed(seeds[worker]),
                    policies: policies.clone(),
                },
                retired,
            )
        });
        drop((known, before));
        self.replace_settings(&next.config, handles);
        heap::trim();
    }

    /// Replaces the bound of memory, how the loops of the workers wait and send, and what all connections share.
    fn replace_settings(&self, next: &TurnConfig, handles: &[WorkerHandle]) {
        self.memory_bound.set(bytes_of(next.memory_bound()));
        let settings = self.loop_settings(next);
        self.stream_plan.balancers.store(Arc::new(next.proxy_protocol_from.clone()));
        self.stream_plan.sources.set_ipv6_prefix_bits(next.quotas.ipv6_prefix_bits);
        self.stream_plan.handshakes.set_limits(&next.streams);
        if let Some(path) = self.kernel_path() {
            path.set_dscp(next.dscp_allow);
        }
        send_to_all(handles.iter().map(|handle| (handle, settings)), WorkerCommand::Settings);
    }

    /// Replaces quotas, realms and the addresses of relays: users of a new realm have somewhere to be then.
    fn replace_surroundings(&self, next: &TurnConfig, before: &Listening, handles: &[WorkerHandle]) {
        self.realm_names.replace(next);
        let InForce { config, secrets } = InForce::clone(&self.in_force.load());
        let quotas_differ = config.quotas != next.quotas || config.realm_quotas() != next.realm_quotas();
        let relays_differ = (&config.relay_ips, config.relay_ports) != (&next.relay_ips, next.relay_ports);
        let realms = Self::engine_realms(next, &self.listening.load());
        let realms_differ = realms != Self::engine_realms(&config, before);
        let pools_differ = config.allocations_max != next.allocations_max;
        if !quotas_differ && !realms_differ && !relays_differ && !pools_differ {
            return;
        }
        let plan = RelayPlan::clone(&self.relay_pool.plan());
        let pools = pools(next.allocations_max, plan.sockets_max);
        let limits = self.limits.load().succeeded_by(next.quotas, &next.realm_quotas(), pools);
        // A worker that restarts from here on uses the new ones.
        self.limits.store(Arc::clone(&limits));
        // Without users, as it was, until their parts come.
        let mut config = TurnConfig { quotas: next.quotas, ..TurnConfig::clone(&config) };
        config.realms.clone_from(&next.realms);
        self.in_force.store(Arc::new(InForce { config: Arc::new(config), secrets: secrets.clone() }));
        send_and_free(handles, Instant::now() + RETIRED_WITHIN, |_, retired| {
            let next = (Arc::clone(&limits), realms.clone(), plan.clone());
            WorkerCommand::replace_surroundings(next, secrets.clone(), retired)
        });
    }

    /// Replaces the users of `parts`, one part after the other.
    pub(super) fn replace_users(&self, parts: impl Iterator<Item = UserPart>, handles: &[WorkerHandle]) {
        heap::return_large_blocks();
        let deadline = Instant::now() + RETIRED_WITHIN;
        for part in parts {
            // A worker that restarts from here on uses the new part.
            let mut in_force = InForce::clone(&self.in_force.load());
            in_force.secrets.replace_users(&part);
            self.in_force.store(Arc::new(in_force));
            send_and_free(handles, deadline, |_, retired| WorkerCommand::replace_users(part.clone(), retired));
        }
    }

    /// Replaces the engine and the relay sockets of `parts` after a panic.
    ///
    /// # Errors
    /// A system call failed.
    pub(crate) fn renew(&self, parts: &mut Parts) -> anyhow::Result<()> {
        let mut server = self.engine(parts.server.worker())?;
        let mut relays = self.relays(&mut server, parts.relays.take_shared())?;
        relays.counts.late = parts.relays.counts.late;
        relays.counts.no_free_port = parts.relays.counts.no_free_port;
        relays.counts.faults = parts.relays.counts.faults;
        (parts.server, parts.relays) = (server, relays);
        parts.streams.close_all();
        Ok(())
    }
}

/// Changes the listeners of workers, and returns when each has: until then one may drop what arrives at an address that
/// is new for it.
pub(crate) fn change_listeners<'a>(changes: impl Iterator<Item = (&'a WorkerHandle, ListenerChange)>) {
    send_to_all(changes, WorkerCommand::Listeners);
}

/// Sends a command to every worker, and returns when each has executed it.
fn send_to_all<'a, T>(
    each: impl Iterator<Item = (&'a WorkerHandle, T)>,
    command: impl Fn(T, Sender<()>) -> WorkerCommand,
) {
    let (done, all_done) = channel();
    for (handle, content) in each {
        handle.send(command(content, done.clone()));
    }
    drop(done);
    // It ends when all senders are gone. A worker that is down executes it when it starts again.
    let _ = all_done.recv_timeout(RETIRED_WITHIN);
}

/// Sends a command to every worker and frees what the workers have replaced: they have no time for it. A worker that is
/// down is waited for until the deadline.
fn send_and_free(
    handles: &[WorkerHandle],
    deadline: Instant,
    command: impl Fn(usize, Sender<Retired>) -> WorkerCommand,
) {
    let (retire, retired) = channel();
    for (number, handle) in handles.iter().enumerate() {
        handle.send(command(number, retire.clone()));
    }
    drop(retire);
    let next = |_| retired.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    let all: Vec<_> = handles.iter().map_while(next).collect();
    drop(all);
}
