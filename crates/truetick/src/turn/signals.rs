//! Signals and requests to a running server: reload, drain, stop.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use tt_os::shutdown::Signal;
use turn_server::Running;
use turn_users::Follower;

use super::{Args, Origin};
use crate::config::Config;
use crate::reload::{self, Event};

/// Exit status if allocations were left at the end of a drain.
const STATUS_NOT_DRAINED: u8 = 3;
/// Interval at which a drain checks the number of allocations.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// Keys of `[turn]` that a reload applies; the others need a restart.
const RELOADED: &[&str] = &[
    "user",
    "user_file",
    "auth_secret_file",
    "nonce_key_file",
    "allow_peer",
    "deny_peer",
    "allow_own_host",
    "nat64_prefix",
    "drain_timeout_s",
    "lifetime_s",
    "lifetime_max_s",
    "nonce_lifetime_s",
    "strict_expiry",
    "strict_permissions",
    "kick_removed_users",
    "password_algorithms",
    "rfc5766_channel_numbers",
    "hairpin",
    "icmp_indications",
    "software",
    "fingerprint_always",
    "quotas.permissions_per_allocation",
    "quotas.channels_per_allocation",
];

/// Handles signals and requests to a running server, and knows where its configuration comes from.
pub(super) struct SignalLoop<'a> {
    pub(super) running: &'a Running,
    pub(super) args: &'a Args,
    pub(super) origin: &'a Origin,
    /// The configuration that the server started with.
    pub(super) started: &'a Config,
    pub(super) drain_timeout: Duration,
    pub(super) database: Option<&'a Follower>,
}

impl SignalLoop<'_> {
    /// Handles `events` until the server must stop, and returns the exit status.
    pub(super) fn run(mut self, events: &Receiver<Event>) -> ExitCode {
        let mut draining: Option<Instant> = None;
        loop {
            let event = match draining {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => events.recv_timeout(CHECK_EVERY),
            };
            let signal = match event {
                Ok(Event::Request(reply)) => {
                    reply.send(&self.reload());
                    continue;
                }
                Ok(Event::Signal(signal)) => Ok(signal),
                Err(error) => Err(error),
            };
            match (signal, draining) {
                (Ok(Signal::Hangup), _) => drop(self.reload()),
                (Ok(Signal::Terminate), None) if !self.drain_timeout.is_zero() => draining = Some(self.drain()),
                (Ok(Signal::Terminate | Signal::Interrupt) | Err(RecvTimeoutError::Disconnected), None) => {
                    tracing::info!("stopping");
                    return ExitCode::SUCCESS;
                }
                (Ok(Signal::Terminate | Signal::Interrupt) | Err(RecvTimeoutError::Disconnected), Some(_)) => {
                    return self.drained("second signal");
                }
                (Err(RecvTimeoutError::Timeout), Some(deadline)) => {
                    if self.running.allocations() == 0 || Instant::now() >= deadline {
                        return self.drained("deadline");
                    }
                }
                (Err(RecvTimeoutError::Timeout), None) => {}
            }
        }
    }

    fn drain(&self) -> Instant {
        self.running.drain();
        let (allocations, timeout_s) = (self.running.allocations(), self.drain_timeout.as_secs());
        tracing::info!(allocations, timeout_s, "draining: new allocations are rejected");
        Instant::now() + self.drain_timeout
    }

    /// Returns the exit status at the end of a drain; `cause` is logged if allocations are left.
    fn drained(&self, cause: &str) -> ExitCode {
        let allocations = self.running.allocations();
        if allocations == 0 {
            tracing::info!("drained");
            return ExitCode::SUCCESS;
        }
        tracing::warn!(allocations, cause, "stopping with live allocations");
        ExitCode::from(STATUS_NOT_DRAINED)
    }

    /// Reads the configuration again and applies all of it or nothing. Returns the keys that need a restart.
    fn reload(&mut self) -> anyhow::Result<Vec<String>> {
        let result = self.try_reload();
        reload::log("", &result);
        result
    }

    /// Returns the keys that have another value than at the start and need a restart.
    fn try_reload(&mut self) -> anyhow::Result<Vec<String>> {
        let loaded = self.origin.reload()?;
        let turn = loaded.turn(&self.args.over(&loaded.config.turn))?;
        ensure!(
            turn.realm == self.running.realm(),
            "the realm has changed, which needs a restart: the keys of users depend on it"
        );
        let (realms, started) = (&loaded.config.turn.realms, &self.started.turn.realms);
        let has_same_realms = realms.len() == started.len()
            && realms.iter().zip(started).all(|(is, was)| is.differs_in_credentials_only(was));
        let is_reloaded = |key: &str| {
            let key = key.strip_prefix("turn.");
            key.is_some_and(|key| RELOADED.contains(&key) || has_same_realms && key == "realms")
        };
        let ignored = reload::restart_keys(self.started, &loaded.config, is_reloaded)?;
        let drain_timeout = turn.drain_timeout;
        self.running.reload_certificates()?;
        self.running.reload(turn).context("turn")?;
        self.drain_timeout = drain_timeout;
        if let Some(database) = self.database {
            database.read_now();
        }
        Ok(ignored)
    }
}
