//! The keys that Coinbase Exchange documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "type", "channels", "name", "product_ids", "account_ids", "message", "reason", "product_id", "bids", "asks",
    "changes", "time", "trade_id", "maker_order_id", "taker_order_id", "side", "size", "price", "sequence",
    "open_24h", "volume_24h", "low_24h", "high_24h", "volume_30d", "best_bid", "best_bid_size", "best_ask",
    "best_ask_size", "last_size", "last_trade_id", "order_id", "order_type", "client_oid", "funds", "remaining_size",
    "new_size", "old_size", "new_price", "old_price", "new_funds", "old_funds",
];
