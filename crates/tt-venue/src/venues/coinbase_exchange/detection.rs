//! Detection of recordings of Coinbase Exchange.

use crate::detection::Detection;

pub(super) const DETECTION: Detection = Detection {
    addresses: &["ws-feed.exchange.coinbase.com", "ws-direct.exchange.coinbase.com", "ws-feed.pro.coinbase.com"],
    unsupported: &[],
    sends: |start| {
        let is_snapshot = start.has("\"type\":\"snapshot\"") && start.has("\"product_id\"");
        // Coinbase Advanced sends snapshots with products too.
        let is_advanced = start.has("\"sequence_num\"") || start.has("\"channel\":");
        start.has("\"type\":\"l2update\"") || (is_snapshot && !is_advanced)
    },
};
