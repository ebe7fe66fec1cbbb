//! Signals and requests to a running server: reload, drain, stop.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tt_os::shutdown::{Events, Signal};
use turn_server::Running;
use turn_users::Follower;

use super::{Args, Origin, reloaded};
use crate::config::Config;
use crate::logs;
use crate::reload::{self, Event};

/// Exit status if allocations were left at the end of a drain.
const STATUS_NOT_DRAINED: u8 = 3;
/// Interval at which a drain checks the number of allocations.
const CHECK_EVERY: Duration = Duration::from_millis(50);

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
        let mut events = Events::new(events, |event| matches!(event, Event::Signal(Signal::Hangup)));
        let mut draining: Option<Instant> = None;
        loop {
            match (events.next(draining.map(|_| CHECK_EVERY)), draining) {
                (Ok(Event::Request(reply)), _) => reply.send(&self.reload()),
                (Ok(Event::Signal(Signal::Hangup)), _) => drop(self.reload()),
                (Ok(Event::Signal(Signal::Terminate)), None) if !self.drain_timeout.is_zero() => {
                    draining = Some(self.drain());
                }
                (Ok(Event::Signal(Signal::Terminate | Signal::Interrupt)) | Err(RecvTimeoutError::Disconnected), _) => {
                    if draining.is_some() {
                        return self.drained("second signal");
                    }
                    tracing::info!("stopping");
                    return ExitCode::SUCCESS;
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

    /// Reads the configuration again and applies all of it or nothing.
    fn reload(&mut self) -> anyhow::Result<()> {
        let result = self.try_reload();
        reload::log("", &result);
        result
    }

    fn try_reload(&mut self) -> anyhow::Result<()> {
        let loaded = self.origin.reload()?;
        let turn = loaded.turn(&self.args.over(&loaded.config.turn))?;
        let reloader = self.running.reloader();
        reloaded::check(self.started, &loaded.config, |_| false)?;
        let (drain_timeout, realms) = (turn.drain_timeout, turn.realm_names());
        reloader.reload(turn, || Ok(()))?;
        logs::follow(&loaded.config.log);
        self.drain_timeout = drain_timeout;
        if let Some(database) = self.database {
            database.read_realms(realms);
        }
        Ok(())
    }
}
