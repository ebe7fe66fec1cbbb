//! Detection of recordings of Coinbase Advanced.

use crate::detection::Detection;

pub(super) const DETECTION: Detection = Detection {
    addresses: &["advanced-trade-ws.coinbase.com"],
    unsupported: &[],
    sends: |start| start.has("\"sequence_num\"") || start.has("\"channel\":\"l2_data\""),
};
