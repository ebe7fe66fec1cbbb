//! The latest status of all parts together, for the live streams.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use tokio::sync::{Notify, watch};
use tt_status::machine::MachineStatus;
use tt_status::market::MarketStatus;
use tt_status::risk::{JournalRow, ModeRow, RiskStatus};
use tt_status::turn::TurnStatus;

use crate::incident::BookIncident;

/// The status of all parts at one instant.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) at_unix_ms: u64,
    /// Whether the page can offer a trial credential.
    pub(crate) trial: bool,
    /// Whether the market data come from the simulator.
    pub(crate) simulated: bool,
    /// Faults of the simulator that visitors of the page may inject; empty without a simulator.
    pub(crate) faults: Vec<&'static str>,
    pub(crate) machine: Option<MachineStatus>,
    pub(crate) turn: Option<TurnStatus>,
    pub(crate) market: Option<MarketStatus>,
    pub(crate) risk: Option<RiskStatus>,
    pub(crate) gate: Option<GateSnapshot>,
    /// The newest incidents of books, newest first.
    pub(crate) incidents: Vec<BookIncident>,
    /// Whether an API token is configured.
    pub(crate) has_token: bool,
}

/// The part of the gate that operators change.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GateSnapshot {
    /// Every scope that is not active.
    pub(crate) modes: Vec<ModeRow>,
    /// Version of the limits in force; `null` before the gate runs.
    pub(crate) limits_version: Option<u32>,
    /// How far its journal is written; `null` without a journal.
    pub(crate) journal: Option<JournalRow>,
    /// Whether an API token is configured: without one, control is rejected.
    pub(crate) has_token: bool,
}

/// The latest snapshot, absent until the first.
pub(crate) struct Latest {
    pub(crate) snapshot: watch::Sender<Option<Arc<Snapshot>>>,
    /// A listener is there: snapshots are taken more often.
    pub(crate) listener_came: Notify,
    /// Parts whose reading panicked: TURN, market, risk.
    pub(crate) failed: [AtomicBool; 3],
}

impl Latest {
    pub(crate) fn new() -> Self {
        Self { snapshot: watch::Sender::new(None), listener_came: Notify::new(), failed: Default::default() }
    }
}
