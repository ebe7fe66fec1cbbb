//! Status of the risk gate.

use std::{error, fmt};

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
    /// Limits and exposures of the firm and of strategies, by instrument.
    pub levels: Vec<LevelRow>,
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
    /// The venue's number of the last update in the book that the gate judged by; `null` if there was no book.
    pub book_update_id: Option<u64>,
    /// Age of that book at the verdict, microseconds.
    pub book_age_us: Option<u64>,
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

/// Exposure and limits of the firm, or of a strategy, in an instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelRow {
    /// `firm` or `strategy`.
    pub level: &'static str,
    /// The strategy's account; `null` for the firm.
    pub account: Option<u16>,
    /// The strategy; `null` for the firm.
    pub strategy: Option<u16>,
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
}

/// Control of a running gate: the interface from the control plane to it. Calls block for milliseconds.
pub trait GateAdmin: Send + Sync {
    /// Returns every scope that is not active.
    fn modes(&self) -> Vec<ModeRow>;

    /// Puts `scope` into `mode`: `active`, `reduce` or `kill`. A scope is `global`, `account:NAME`, `strategy:NAME` or
    /// `instrument:SYMBOL`; a number is a name too.
    ///
    /// # Errors
    /// [`AdminError`].
    fn set_mode(&self, scope: &str, mode: &str) -> Result<ModeChange, AdminError>;

    /// Returns the version of the limits in force, which verdicts name; `None` before the gate runs.
    fn limits_version(&self) -> Option<u32>;

    /// Returns how far the gate's journal is written; `None` if it keeps none.
    fn journal(&self) -> Option<JournalRow>;

    /// Returns the limits file in force; `None` if no file has made the gate.
    fn limits(&self) -> Option<LimitsText>;

    /// Replaces all limits by those of a file with `text`.
    ///
    /// # Errors
    /// [`AdminError::Refused`]; the limits in force stay.
    fn load(&self, text: &str) -> Result<LimitsText, AdminError>;

    /// Cancels every open order of `scope`, whoever has sent it; a scope as in [`set_mode`](Self::set_mode).
    ///
    /// # Errors
    /// [`AdminError`]; refused if no sender takes cancels.
    fn cancel(&self, scope: &str) -> Result<CancelledOrders, AdminError>;
}

/// What a cancel of all orders of a scope has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CancelledOrders {
    /// The scope.
    pub scope: String,
    /// Cancels that were passed to the sender now.
    pub requested: u64,
    /// Orders that are open until the venue ends them.
    pub open: Vec<OpenOrderRow>,
}

/// An open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OpenOrderRow {
    /// The account.
    pub account: u16,
    /// The client id.
    pub client_id: u64,
}

/// A scope with its mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModeRow {
    /// `global`, `account:0`, `strategy:0` or `instrument:SYMBOL`.
    pub scope: String,
    /// `reduce` or `kill`.
    pub mode: &'static str,
}

/// How far a gate's journal is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JournalRow {
    /// Number of the newest record; the first of a journal is 1.
    pub record: u64,
    /// True if it cannot be written any more: orders are rejected.
    pub is_lost: bool,
}

/// A change of a mode that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModeChange {
    /// The scope.
    pub scope: String,
    /// The mode.
    pub mode: &'static str,
    /// The mode before.
    pub before: &'static str,
    /// Whether the gate and every sender have seen the change.
    pub acknowledged: bool,
    /// Those that have not; senders among them are closed.
    pub silent: Vec<String>,
    /// Number of senders, silent ones among them.
    pub senders: usize,
    /// Time until all had seen it, or until the wait ended.
    pub waited_us: u64,
}

/// A limits file in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitsText {
    /// The version that verdicts name.
    pub version: u32,
    /// SHA-256 of the text.
    pub sha256: String,
    /// The file.
    pub text: String,
}

/// A request that the gate did not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminError {
    /// No such scope or mode.
    Unknown(String),
    /// The limits are refused.
    Refused(String),
    /// The gate has stopped, or a file cannot be written.
    Failed(String),
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unknown(error) | Self::Refused(error) | Self::Failed(error)) = self;
        f.write_str(error)
    }
}

impl error::Error for AdminError {}
