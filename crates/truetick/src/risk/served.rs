//! Control of the gate of `truetick risk` over HTTP: modes and limits change between two events.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use control::State;
use risk_gate::{Acknowledged, LimitsFile, Scopes, limits_text};
use tt_status::risk::{AdminError, CancelledOrders, GateAdmin, JournalRow, LimitsText, ModeChange, ModeRow};

use super::Run;
use crate::config::Config;
use crate::control_state;

/// The run, whose events and requests take turns.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Run>>);

impl Shared {
    pub(super) fn new(run: Run) -> Self {
        Self(Arc::new(Mutex::new(run)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the control of the gate at `listen`.
    ///
    /// # Errors
    /// The token's file cannot be read, or the address cannot be used.
    pub(super) fn serve(&self, listen: SocketAddr, config: &Config) -> Result<control::Running> {
        let state = State {
            machine: Some(control_state::machine()),
            gate: Some(Arc::new(self.clone())),
            token: control_state::api_token(None, &config.http)?,
            allowed_hosts: config.http.allowed_hosts.clone(),
            ..State::default()
        };
        let running = control::start(listen, state)?;
        tracing::info!(url = format!("http://{}", running.listen()), "risk: control of the gate over HTTP");
        Ok(running)
    }
}

impl GateAdmin for Shared {
    fn modes(&self) -> Vec<ModeRow> {
        let run = self.lock();
        Scopes::new(Some(&run.limits), &[]).modes(&run.gate.switches())
    }

    fn set_mode(&self, scope: &str, mode: &str) -> Result<ModeChange, AdminError> {
        let run = self.lock();
        let scopes = Scopes::new(Some(&run.limits), &[]);
        let (switch, mode) = (scopes.switch(scope)?, Scopes::mode(mode)?);
        let before = run.gate.switches().mode(switch);
        run.set_mode(switch, mode).map_err(|error| AdminError::Failed(format!("{error:#}")))?;
        // The gate is between two events, and has no sender.
        let acknowledged = Acknowledged { before, silent: Vec::new(), senders: 0, waited: Duration::ZERO };
        Ok(scopes.change((switch, mode), acknowledged))
    }

    fn limits_version(&self) -> Option<u32> {
        Some(self.lock().gate.switches().limits_version())
    }

    fn journal(&self) -> Option<JournalRow> {
        self.lock().gate.journal_position().row()
    }

    fn limits(&self) -> Option<LimitsText> {
        let run = self.lock();
        Some(limits_text(&run.limits, run.gate.switches().limits_version()))
    }

    fn load(&self, text: &str) -> Result<LimitsText, AdminError> {
        let refused = |error: anyhow::Error| AdminError::Refused(format!("{error:#}"));
        let limits = LimitsFile::parse(text).map_err(refused)?;
        let mut run = self.lock();
        let now_ns = run.now_ns;
        let version = run.gate.load(now_ns, limits.clone()).map_err(refused)?;
        run.gate.commit(now_ns, &mut []);
        run.limits = limits;
        Ok(limits_text(&run.limits, version))
    }

    fn cancel(&self, _: &str) -> Result<CancelledOrders, AdminError> {
        Err(AdminError::Refused("`truetick risk` has no sender that takes cancels".to_owned()))
    }
}
