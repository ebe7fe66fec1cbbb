//! The keys that Deribit documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "jsonrpc", "id", "result", "error", "code", "message", "usIn", "usOut", "usDiff", "testnet", "method", "params",
    "channel", "data", "type", "version", "timestamp", "instrument_name", "change_id", "prev_change_id", "bids", "asks",
    "state", "stats", "volume_usd", "volume_notional", "volume", "price_change", "low", "high", "index_price",
    "last_price", "mark_price", "settlement_price", "min_price", "max_price", "open_interest", "best_bid_price",
    "best_bid_amount", "best_ask_price", "best_ask_amount", "current_funding", "funding_8h", "interest_value",
    "estimated_delivery_price", "delivery_price", "interest_rate", "underlying_index", "underlying_price", "greeks",
    "bid_iv", "ask_iv", "mark_iv", "trade_seq", "trade_id", "price", "amount", "direction", "tick_direction", "contracts",
    "liquidation", "iv", "block_trade_id", "block_trade_leg_count", "combo_id", "combo_trade_id", "block_rfq_id",
    "maintenance", "locked", "price_index", "tick", "open", "close", "cost", "delta", "gamma", "rho", "theta", "vega",
];
