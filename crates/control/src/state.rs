//! The state that the control plane serves.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::{Semaphore, watch};
use tt_status::Reading;
use tt_status::machine::MachineStatus;
use tt_status::market::MarketStatus;
use tt_status::market_feeds::{FeedAdmin, Simulator};
use tt_status::market_streams::MarketStreams;
use tt_status::reload::Reload;
use tt_status::risk::{GateAdmin, RiskStatus};
use tt_status::turn::{AllocationAdmin, DatabaseStatus, IceServers, Operator, TurnStatus};

use crate::history::History;
use crate::section::MetricsNames;
use crate::snapshot::Latest;
use crate::token::ApiToken;

/// The state that the control plane serves. A part without a reading is reported as absent.
#[derive(Default)]
pub struct State {
    /// The machine and this process.
    pub machine: Option<Reading<MachineStatus>>,
    /// The TURN server.
    pub turn: Option<Reading<TurnStatus>>,
    /// The database of the TURN server's users.
    pub database: Option<Reading<DatabaseStatus>>,
    /// The market engine.
    pub market: Option<Reading<MarketStatus>>,
    /// Whole books and streams of every update.
    pub market_streams: Option<Arc<dyn MarketStreams>>,
    /// Whether the market data come from the simulator: page, API and metrics label them.
    pub simulated: bool,
    /// The simulator, if visitors of the page may inject faults.
    pub simulator: Option<Arc<dyn Simulator>>,
    /// The gate and the strategy in front of it.
    pub risk: Option<Reading<RiskStatus>>,
    /// The trial credential that the page offers. Absent if real users are configured.
    pub ice_servers: Option<IceServers>,
    /// Control of the TURN server. Absent without a TURN server.
    pub admin: Option<Admin>,
    /// Control of the gate. Absent without a gate.
    pub gate: Option<Arc<dyn GateAdmin>>,
    /// What reads the configuration again.
    pub reload: Option<Arc<dyn Reload>>,
    /// The API token; without one, requests that need it are rejected.
    pub token: Option<ApiToken>,
    /// The feeds of the market engine, if they can be changed.
    pub feeds: Option<Arc<dyn FeedAdmin>>,
    /// Host names by which the page and the API may be requested, besides addresses and `localhost`.
    pub allowed_hosts: Vec<String>,
    /// Names of the TURN server's metrics.
    pub metrics_names: MetricsNames,
    /// `report.json` of a bench on this machine, for the page's figures.
    pub report: Option<Arc<str>>,
    /// `why.json` of this machine, for the page's answer.
    pub why: Option<Arc<str>>,
}

/// Control of the TURN server.
pub struct Admin {
    /// Single allocations.
    pub allocations: Arc<dyn AllocationAdmin>,
    /// Bans and drains.
    pub operator: Arc<dyn Operator>,
}

/// The state shared by all routes.
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) latest: Latest,
    pub(crate) history: History,
    pub(crate) streams: Arc<Semaphore>,
    /// Readers of streams of every update.
    pub(crate) readers: Arc<AtomicU64>,
    pub(crate) stopping: watch::Receiver<bool>,
}

/// The argument of a route's function.
pub(crate) type App = axum::extract::State<Arc<Shared>>;
