//! A running server under its operator: reload, drain, end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::{Args, Running, TurnConfig};
use crate::config::Config;
use crate::shutdown::Signal;

/// Status of a process whose drain was cut short: allocations were left.
const STATUS_NOT_DRAINED: u8 = 3;
/// How often a drain looks whether allocations are left.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Keys of `[turn]` that a reload puts in force; the others want a restart.
const RELOADED: &[&str] = &[
    "user",
    "user_file",
    "auth_secret_file",
    "nonce_key_file",
    "allow_peer",
    "deny_peer",
    "nat64_prefix",
    "drain_timeout_s",
];

/// A server, and where its configuration comes from.
pub(super) struct Operated<'a> {
    pub(super) running: &'a Running,
    pub(super) args: &'a Args,
    pub(super) file: Option<PathBuf>,
    pub(super) config: Config,
    pub(super) drain_timeout: Duration,
}

impl Operated<'_> {
    /// Follows `signals` until the server is to end, and returns the status of the process.
    pub(super) fn follow(mut self, signals: &Receiver<Signal>) -> ExitCode {
        let mut draining: Option<Instant> = None;
        loop {
            let signal = match draining {
                None => signals.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => signals.recv_timeout(LOOK_EVERY),
            };
            match (signal, draining) {
                (Ok(Signal::Hangup), _) => self.reload(),
                (Ok(Signal::Terminate), None) if !self.drain_timeout.is_zero() => draining = Some(self.drain()),
                (Ok(Signal::Terminate | Signal::Interrupt) | Err(RecvTimeoutError::Disconnected), None) => {
                    tracing::info!("ending");
                    return ExitCode::SUCCESS;
                }
                (Ok(Signal::Terminate | Signal::Interrupt) | Err(RecvTimeoutError::Disconnected), Some(_)) => {
                    return self.drained("asked again");
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
        tracing::info!(allocations, timeout_s, "draining: no new allocations");
        Instant::now() + self.drain_timeout
    }

    /// The status at the end of a drain; `cause` is what ends it where allocations are left.
    fn drained(&self, cause: &str) -> ExitCode {
        let allocations = self.running.allocations();
        if allocations == 0 {
            tracing::info!("drained");
            return ExitCode::SUCCESS;
        }
        tracing::warn!(allocations, cause, "ending with live allocations");
        ExitCode::from(STATUS_NOT_DRAINED)
    }

    /// Reads everything again and puts it in force, all of it or nothing.
    fn reload(&mut self) {
        match self.try_reload() {
            Ok(ignored) if ignored.is_empty() => tracing::info!("configuration reloaded"),
            Ok(ignored) => tracing::warn!(restart_for = ignored.join(" "), "configuration reloaded, in part"),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "configuration not reloaded; the old one stays in force");
            }
        }
    }

    /// Returns the keys that have changed and want a restart.
    fn try_reload(&mut self) -> anyhow::Result<Vec<String>> {
        let config = match &self.file {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        let turn = TurnConfig::new(self.args, &config.turn)?;
        ensure!(turn.realm == self.running.realm(), "the realm has changed, which wants a restart: keys hang on it");
        let ignored = self.ignored(&config)?;
        let drain_timeout = turn.drain_timeout;
        self.running.reload_certificates()?;
        self.running.reload(turn).context("turn")?;
        (self.config, self.drain_timeout) = (config, drain_timeout);
        Ok(ignored)
    }

    fn ignored(&self, config: &Config) -> anyhow::Result<Vec<String>> {
        let table = |config: &Config| -> anyhow::Result<toml::Table> { Ok(config.to_toml()?.parse()?) };
        let (old, new) = (table(&self.config)?, table(config)?);
        let mut keys = Vec::new();
        for (section, was) in &old {
            let Some((was, is)) = was.as_table().zip(new.get(section).and_then(toml::Value::as_table)) else {
                continue;
            };
            let all = was.keys().chain(is.keys().filter(|key| !was.contains_key(*key)));
            let wants_restart = |key: &&String| !(section == "turn" && RELOADED.contains(&key.as_str()));
            keys.extend(
                all.filter(|key| was.get(*key) != is.get(*key))
                    .filter(wants_restart)
                    .map(|key| format!("{section}.{key}")),
            );
        }
        Ok(keys)
    }
}
