//! Status of the risk gate.

use serde::Serialize;

use crate::accounting::{Accounting, Count, Quantiles, Stages};

/// The gate and the ring of intents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RiskStatus {
    /// Intents.
    pub ledger: Accounting,
    /// The pass of an intent through the gate.
    pub stages: Stages,
    /// Time from the intent's timestamp to the verdict.
    pub journey: Option<Quantiles>,
    /// The ring of intents.
    pub ring: Ring,
    /// Reasons in rejected intents; an intent can have several.
    pub reasons: Vec<Count>,
    /// The latest verdicts, newest first.
    pub verdicts: Vec<VerdictRow>,
    /// Limits and exposures by account and instrument.
    pub limits: Vec<LimitsRow>,
}

/// The ring of intents: `pushed = popped + queued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ring {
    /// Slots.
    pub capacity: u64,
    /// Pushed since the start.
    pub pushed: u64,
    /// Popped since the start.
    pub popped: u64,
    /// Pushes into a full ring; the gate did not evaluate those intents.
    pub full: u64,
}

/// A verdict with its intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictRow {
    /// The gate's sequence number.
    pub seq: u64,
    /// When the verdict was made, milliseconds of the Unix epoch.
    pub at_unix_ms: u64,
    /// The account.
    pub account: u16,
    /// The normalised symbol.
    pub symbol: String,
    /// The venue.
    pub venue: &'static str,
    /// `buy` or `sell`.
    pub side: &'static str,
    /// The limit price.
    pub px: String,
    /// The quantity.
    pub qty: String,
    /// Whether the intent was accepted.
    pub accept: bool,
    /// Every reason that was found.
    pub reasons: Vec<&'static str>,
    /// Time from the intent's timestamp to the verdict, nanoseconds.
    pub journey_ns: u64,
}

/// Exposure and limits of an account in an instrument.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitsRow {
    /// The account.
    pub account: u16,
    /// The normalised symbol.
    pub symbol: String,
    /// The venue.
    pub venue: &'static str,
    /// Position, negative if short.
    pub position: String,
    /// Maximum long position.
    pub position_long_max: String,
    /// Maximum short position, as a positive number.
    pub position_short_max: String,
    /// Open orders.
    pub open_orders: u32,
    /// Maximum number of open orders.
    pub open_orders_max: u32,
    /// Maximum open quantity per side.
    pub open_qty_max: String,
    /// Maximum quantity of an order.
    pub qty_max: String,
    /// Maximum notional of an order.
    pub notional_max: String,
    /// Maximum distance from the reference price, basis points.
    pub collar_bps: u32,
    /// Intents per second that the account may send.
    pub rate_per_s: u32,
}
