//! The keys that Kraken documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "method", "req_id", "result", "success", "error", "warnings", "time_in", "time_out", "channel", "type", "data",
    "snapshot", "symbol", "depth", "system", "api_version", "connection_id", "version", "event_trigger",
    "bids", "asks", "price", "qty", "checksum", "timestamp",
    "bid", "bid_qty", "ask", "ask_qty", "last", "volume", "vwap", "low", "high", "change", "change_pct", "volume_usd",
    "side", "ord_type", "trade_id", "interval", "interval_begin", "open", "close", "trades",
    "event", "order_id", "limit_price", "order_qty",
];
