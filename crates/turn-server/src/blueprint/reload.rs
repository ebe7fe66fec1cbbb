//! Changes while the server runs: new users, secrets and peer rules, and a new engine after a panic.

use std::net::IpAddr;
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tt_os::heap;
use tt_turn::config::{CHANNELS_GUARANTEED, Capacity, PERMISSIONS_GUARANTEED};
use tt_turn::credential::Secrets;
use tt_turn::policy::PeerPolicy;
use tt_turn::shared::Shared;
use tt_turn::{Server, WorkerId};

use crate::commands::{WorkerCommand, WorkerHandle};
use crate::config::TurnConfig;
use crate::worker::Parts;

use super::{Blueprint, host, random};

/// How long a reload waits for the workers to replace the users.
const RETIRED_WITHIN: Duration = Duration::from_secs(2);

/// What a reload replaces. Of users and shared secrets only the derived keys are kept (RFC 8656 section 6).
#[derive(Debug)]
pub(crate) struct InForce {
    /// Without users and secrets.
    pub(crate) config: TurnConfig,
    secrets: Secrets,
}

impl InForce {
    /// Derives the keys. `nonce_key` is used if the configuration has none.
    ///
    /// # Errors
    /// The system returns no random bytes.
    pub(crate) fn new(config: TurnConfig, nonce_key: [u8; 32], shared: &Shared) -> anyhow::Result<Self> {
        let keys = config.nonce_keys.as_ref();
        let mut secrets = Secrets::new(random()?, keys.map_or(nonce_key, |keys| *keys.current));
        if let Some(previous) = keys.and_then(|keys| keys.previous.as_deref()) {
            secrets.accept_nonce_key(*previous);
        }
        secrets.reserve(config.users.len());
        for user in &config.users {
            secrets.add_user(user.name.as_bytes(), &config.realm, user.password.as_bytes());
        }
        for secret in &config.auth_secrets {
            secrets.add_auth_secret(secret.0.as_bytes());
        }
        secrets.index(shared);
        let config = TurnConfig { users: Vec::new(), auth_secrets: Vec::new(), nonce_keys: None, ..config };
        Ok(Self { config, secrets })
    }

    /// Returns the keys for one worker.
    fn secrets(&self) -> anyhow::Result<Secrets> {
        Ok(self.secrets.with_seed(random()?))
    }
}

impl Blueprint {
    /// Returns the peer rules of `config` for a host with these ranges of addresses.
    pub(super) fn policy(&self, config: &TurnConfig, host: &[(IpAddr, IpAddr)]) -> PeerPolicy {
        config.peer_policy(&self.listen, host)
    }

    /// Creates an engine with the current users, secrets and peer rules.
    pub(crate) fn engine(&self, id: WorkerId) -> anyhow::Result<Server> {
        let in_force = self.in_force.load();
        let mut engine = self.engine.clone();
        engine.peer_policy = self.policy(&in_force.config, &host::read()?);
        // The kernel spreads clients unevenly, so every worker has room for all allocations, for what each is
        // guaranteed, and for everything in the pools.
        let (caps, allocations) =
            (in_force.config.caps, self.relay_pool.plan().sockets_max.min(self.pools.allocations));
        let capacity = Capacity {
            allocations,
            permissions: allocations.saturating_mul(PERMISSIONS_GUARANTEED).saturating_add(self.pools.permissions),
            permissions_per_allocation: caps.permissions,
            channels: allocations.saturating_mul(CHANNELS_GUARANTEED).saturating_add(self.pools.channels),
            channels_per_allocation: caps.channels,
            relays: self.relay_pool.plan().sockets_max,
        };
        Ok(Server::new(engine, capacity, Arc::clone(&self.shared), id, in_force.secrets()?))
    }

    /// Applies the users, secrets and peer rules of `config` to every worker or to none.
    ///
    /// # Errors
    /// A system call failed; the old ones stay in force.
    pub(crate) fn reload(&self, config: TurnConfig, handles: &[WorkerHandle]) -> anyhow::Result<()> {
        let in_force = InForce::new(config, self.nonce_key, &self.shared)?;
        let mut known = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        *known = host::read()?;
        let (retire, retired) = channel();
        let command = |_: &WorkerHandle| -> anyhow::Result<WorkerCommand> {
            let (secrets, policy) = (in_force.secrets()?, self.policy(&in_force.config, &known));
            Ok(WorkerCommand::reload(secrets, policy, retire.clone()))
        };
        let commands = handles.iter().map(command).collect::<anyhow::Result<Vec<_>>>()?;
        // A worker that restarts from here on uses the new ones.
        let before = self.in_force.swap(Arc::new(in_force));
        for (handle, command) in handles.iter().zip(commands) {
            handle.send(command);
        }
        drop(known);
        // This thread frees the old users, after every worker has replaced them; one that is down is not waited for.
        let deadline = Instant::now() + RETIRED_WITHIN;
        let next = |_| retired.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
        let all: Vec<_> = handles.iter().map_while(next).collect();
        drop((before, all));
        heap::trim();
        Ok(())
    }

    /// Replaces the engine and the relay sockets of `parts` after a panic.
    ///
    /// # Errors
    /// A system call failed.
    pub(crate) fn renew(&self, parts: &mut Parts) -> anyhow::Result<()> {
        let mut server = self.engine(parts.server.worker())?;
        let mut relays = self.relays(&mut server)?;
        relays.counts.late = parts.relays.counts.late;
        relays.counts.no_free_port = parts.relays.counts.no_free_port;
        relays.counts.faults = parts.relays.counts.faults;
        (parts.server, parts.relays) = (server, relays);
        parts.streams.close_all();
        Ok(())
    }
}
