//! What changes while the server runs: other users, secrets and peer rules, and a worker made anew.

use std::net::SocketAddr;
use std::sync::Arc;

use tt_turn::policy::PeerPolicy;
use tt_turn::{Capacity, Secrets, Server, WorkerId};

use super::launch::{Blueprint, every_address, random};
use super::orders::{Order, Post};
use super::relays::Relays;
use super::settings::TurnConfig;
use super::worker::Parts;

/// What a reload replaces. Of users and shared secrets the keys are kept, and nothing else (RFC 8656 section 6).
#[derive(Debug)]
pub(super) struct InForce {
    /// Without users and secrets.
    pub(super) config: TurnConfig,
    secrets: Secrets,
}

impl InForce {
    /// `nonce_key` is for a configuration that names none.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(super) fn new(config: TurnConfig, nonce_key: [u8; 32]) -> anyhow::Result<Self> {
        let keys = config.nonce_keys.as_ref();
        let mut secrets = Secrets::new(random()?, keys.map_or(nonce_key, |keys| *keys.current));
        if let Some(previous) = keys.and_then(|keys| keys.previous.as_deref()) {
            secrets.accept_nonces_of(*previous);
        }
        for user in &config.users {
            secrets.add_user(user.name.as_bytes(), &config.realm, user.password.as_bytes());
        }
        for secret in &config.auth_secrets {
            secrets.add_auth_secret(secret.0.as_bytes());
        }
        let config = TurnConfig { users: Vec::new(), auth_secrets: Vec::new(), nonce_keys: None, ..config };
        Ok(Self { config, secrets })
    }

    /// For one worker.
    fn secrets(&self) -> anyhow::Result<Secrets> {
        Ok(self.secrets.seeded(random()?))
    }
}

impl Blueprint {
    /// The peer rules of `config`, with the addresses that this machine has at present.
    fn policy(&self, config: &TurnConfig) -> anyhow::Result<PeerPolicy> {
        Ok(config.peer_policy(&every_address(&self.listen)?))
    }

    /// An engine with what is in force.
    pub(super) fn engine(&self, id: WorkerId) -> anyhow::Result<Server> {
        let in_force = self.in_force.load();
        let mut engine = self.engine.clone();
        engine.peer_policy = self.policy(&in_force.config)?;
        // The kernel spreads clients unevenly: every worker has room for as many as it has sockets.
        let caps = in_force.config.caps;
        let capacity = Capacity {
            permissions_per_allocation: caps.permissions,
            channels_per_allocation: caps.channels,
            ..Capacity::for_allocations(self.plan.sockets_max)
        };
        Ok(Server::new(engine, capacity, Arc::clone(&self.shared), id, in_force.secrets()?))
    }

    /// Puts the users, secrets and peer rules of `config` in force, in every worker or in none.
    ///
    /// # Errors
    /// What the system lacks; what was in force stays.
    pub(super) fn reload(&self, config: TurnConfig, posts: &[Post]) -> anyhow::Result<()> {
        let in_force = InForce::new(config, self.nonce_key)?;
        let order = |_: &Post| -> anyhow::Result<Order> {
            let (secrets, policy) = (in_force.secrets()?, self.policy(&in_force.config)?);
            Ok(Order::Reload { secrets: Box::new(secrets), policy: Box::new(policy) })
        };
        let orders = posts.iter().map(order).collect::<anyhow::Result<Vec<_>>>()?;
        // A worker that is made anew from here on has them from the start.
        self.in_force.store(Arc::new(in_force));
        for (post, order) in posts.iter().zip(orders) {
            post.send(order);
        }
        Ok(())
    }

    /// Gives `parts` another engine and other relay sockets in the place of those that a fault has left behind.
    ///
    /// # Errors
    /// What the system lacks.
    pub(super) fn renew(&self, parts: &mut Parts) -> anyhow::Result<()> {
        let mut server = self.engine(parts.server.worker())?;
        let mut relays = Relays::new(self.plan.clone());
        relays.counts.late = parts.relays.counts.late;
        relays.counts.faults = parts.relays.counts.faults;
        // The old sockets free their ports before others are bound.
        parts.relays = Relays::new(self.plan.clone());
        let filled = relays.fill(&mut server, &parts.poller);
        filled.map_err(|(addr, error): (SocketAddr, _)| anyhow::anyhow!("{}: {error}", addr.ip()))?;
        (parts.server, parts.relays) = (server, relays);
        parts.streams.start_over();
        Ok(())
    }
}
