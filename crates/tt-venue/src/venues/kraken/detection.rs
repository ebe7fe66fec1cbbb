//! Detection of recordings of Kraken.

use crate::detection::Detection;

pub(super) const DETECTION: Detection = Detection {
    addresses: &["ws.kraken.com/v2", "ws-l3.kraken.com/v2", "ws-auth.kraken.com/v2"],
    unsupported: &[("ws.kraken.com", "Kraken WebSocket version 1")],
    sends: |start| {
        let is_book = start.has("\"channel\":\"book\"") || start.has("\"channel\":\"level3\"");
        is_book && start.has("\"type\":")
    },
};
