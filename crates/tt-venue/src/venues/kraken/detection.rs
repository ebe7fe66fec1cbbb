//! Detection of recordings of Kraken.

use crate::detection::Detection;

pub(super) const DETECTION: Detection = Detection {
    addresses: &["ws.kraken.com/v2", "ws-auth.kraken.com/v2"],
    unsupported: &[("ws.kraken.com", "Kraken WebSocket version 1")],
    sends: |start| start.has("\"channel\":\"book\"") && start.has("\"type\":"),
};
