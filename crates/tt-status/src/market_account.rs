//! Accounts at venues: own orders, executions, balances and positions.

use serde::Serialize;

/// An account as its venue has reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccountState {
    /// The venue.
    pub venue: &'static str,
    /// Whether the venue is the built-in simulator.
    pub simulated: bool,
    /// Open orders, by their identifiers.
    pub orders: Vec<Order>,
    /// The newest executions, oldest first.
    pub fills: Vec<OrderFill>,
    /// Balances, by the asset.
    pub balances: Vec<AssetBalance>,
    /// What is held.
    pub positions: Vec<HeldPosition>,
}

/// An own order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// The venue's identifier.
    pub order_id: String,
    /// The normalised symbol; absent where the venue never named it.
    pub symbol: Option<String>,
    /// `buy` or `sell`.
    pub side: Option<&'static str>,
    /// `pending`, `new`, `partially_filled`, `filled`, `cancelled`, `rejected`, `expired`, or `unlisted`: gone from the
    /// venue's list of open orders.
    pub status: &'static str,
    /// The limit price; 0 for a market order.
    pub limit_px: String,
    /// The whole quantity, in the venue's unit.
    pub qty: String,
    /// The executed quantity.
    pub filled_qty: String,
    /// The venue's time of the last update, nanoseconds of the Unix epoch.
    pub ts_event: u64,
}

/// An execution of an own order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderFill {
    /// Counts the account's executions from 1 on since the start.
    pub number: u64,
    /// The venue's identifier of the execution.
    pub trade_id: String,
    /// The venue's identifier of the order.
    pub order_id: String,
    /// The normalised symbol; absent where the venue never named it.
    pub symbol: Option<String>,
    /// `buy` or `sell`.
    pub side: Option<&'static str>,
    /// The price.
    pub px: String,
    /// The quantity, in the venue's unit.
    pub qty: String,
    /// What was paid for it, negative for a rebate.
    pub fee: Option<String>,
    /// What the fee was paid in.
    pub fee_asset: Option<String>,
    /// Whether the order made the liquidity.
    pub is_maker: Option<bool>,
    /// The venue's time, nanoseconds of the Unix epoch.
    pub ts_event: u64,
}

/// What an account holds of one asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssetBalance {
    /// The asset.
    pub asset: String,
    /// The whole balance; may be negative on margin.
    pub total: Option<String>,
    /// What is free to use.
    pub free: Option<String>,
    /// What orders and withdrawals hold.
    pub locked: Option<String>,
    /// The venue's time, nanoseconds of the Unix epoch.
    pub ts_event: u64,
}

/// A position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldPosition {
    /// The normalised symbol.
    pub symbol: String,
    /// `net`, or `long` or `short` of a hedged account.
    pub leg: &'static str,
    /// What is held, negative when short, in the instrument's unit of quantity.
    pub qty: String,
    /// The average entry price.
    pub entry_px: String,
    /// Unrealised profit at the last mark price, in quote currency, of an inverse contract in base currency; absent before
    /// the first mark price.
    pub unrealised_pnl: Option<String>,
    /// When that mark price was received, nanoseconds of the Unix epoch.
    pub mark_ts_recv: Option<u64>,
}
