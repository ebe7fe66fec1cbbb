//! The keys that Coinbase Advanced documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "channel", "client_id", "timestamp", "sequence_num", "events", "type", "message", "product_id", "updates", "side",
    "event_time", "price_level", "new_quantity", "trades", "trade_id", "price", "size", "time", "tickers",
    "volume_24_h", "low_24_h", "high_24_h", "low_52_w", "high_52_w", "price_percent_chg_24_h", "best_bid",
    "best_bid_quantity", "best_ask", "best_ask_quantity", "candles", "start", "high", "low", "open", "close", "volume",
    "current_time", "heartbeat_counter", "subscriptions", "level2", "market_trades", "ticker", "heartbeats",
];
