//! The demonstration of `serve`: a strategy that sends order intents, some with typical mistakes, through the gate.

mod orders;
mod policy;
mod strategy;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use risk_gate::{Admin, Board, BoardRow, DeadMan, DurableGate, GateConfig, LimitsFile, QuoteSource};
use tt_risk::KillSwitch;
use tt_status::risk::GateAdmin;

pub(crate) use policy::{Listed, limits};

/// Slots of each ring of the gate.
const RING_SLOTS: usize = 1024;

/// Configuration of the demonstration.
pub(crate) struct DemoConfig {
    /// The limits of the gate.
    pub(crate) limits: LimitsFile,
    /// The instruments that the strategy trades.
    pub(crate) instruments: Vec<DemoInstrument>,
    /// The source of prices for the strategy and the gate.
    pub(crate) quotes: Arc<dyn QuoteSource>,
    /// Mean number of intents per second.
    pub(crate) intents_per_s: u32,
    /// Longest time to the next report of an order.
    pub(crate) open_max: Duration,
    /// Silence after which the strategy is put into reduce mode; `None`: never.
    pub(crate) silent_after: Option<Duration>,
    /// Seed of the strategy's choices.
    pub(crate) seed: u64,
}

/// An instrument that the strategy trades.
#[derive(Clone, Debug)]
pub(crate) struct DemoInstrument {
    /// Its number in the limits.
    pub(crate) instrument: tt_model::InstrumentId,
    /// The normalised symbol.
    pub(crate) symbol: String,
    /// The venue's name.
    pub(crate) venue: &'static str,
    /// The unit of quantities in the limits.
    pub(crate) lot_size: tt_model::Decimal,
}

/// The running strategy and its gate.
pub(crate) struct Running {
    gate: risk_gate::Running,
    stop: Arc<AtomicBool>,
    strategy: JoinHandle<()>,
}

/// Starts the gate, then the strategy, each pinned to its own CPU if there are two.
///
/// # Errors
/// The gate rejects a limit, or a thread cannot be started.
pub(crate) fn start(config: DemoConfig) -> Result<Running> {
    let cpus = tt_os::cpu::available().unwrap_or_default();
    let gate_config = GateConfig {
        gate: DurableGate::of(&config.limits)?,
        rows: config.instruments.iter().filter_map(|of| board_row(&config.limits, of)).collect(),
        quotes: Some(Arc::clone(&config.quotes)),
        ring_slots: RING_SLOTS,
        // Intents are few: time each evaluation.
        sample_one_in: 1,
        cpu: cpus.last().copied(),
        spins: false,
        senders: vec!["simulated venue".to_owned()],
        dead_man: config.silent_after.map(|silent_for| DeadMan {
            cancels: true,
            silent_for,
            scopes: vec![KillSwitch::Strategy(policy::STRATEGY)],
            ..DeadMan::default()
        }),
    };
    let (gate, ports) = risk_gate::start(gate_config)?;
    let stop = Arc::new(AtomicBool::new(false));
    let strategy = strategy::Strategy::new(config, ports);
    let (cpu, stopping) = (cpus.iter().rev().nth(1).copied(), Arc::clone(&stop));
    let thread = thread::Builder::new().name("strategy".into()).spawn(move || {
        if let Some(cpu) = cpu
            && let Err(error) = tt_os::cpu::pin(cpu)
        {
            tracing::warn!(cpu, %error, "serve: cannot pin the strategy's thread");
        }
        strategy.run(&stopping);
    });
    Ok(Running { gate, stop, strategy: thread.context("serve: cannot start the strategy's thread")? })
}

fn board_row(limits: &LimitsFile, of: &DemoInstrument) -> Option<BoardRow> {
    let row = BoardRow::of(limits, policy::ACCOUNT, of.instrument)?;
    Some(BoardRow { symbol: of.symbol.clone(), venue: of.venue, ..row })
}

impl Running {
    /// Returns what the gate publishes, for any thread.
    pub(crate) fn board(&self) -> Arc<Board> {
        self.gate.board()
    }

    /// Returns the control of modes and limits, for the control plane.
    pub(crate) fn admin(&self) -> Arc<dyn GateAdmin> {
        Arc::new(Admin::new(self.gate.control(), self.gate.board()))
    }

    /// Ends the strategy, then the gate after the intents in its ring.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.strategy.thread().unpark();
        if self.strategy.join().is_err() {
            tracing::error!("serve: the strategy's thread panicked");
        }
        self.gate.join();
    }
}
