//! Detection of recordings of Kraken. Only symbols of derivatives have an underscore: `PF_XBTUSD`.

use crate::detection::{Detection, FrameStart};

pub(super) const SPOT: Detection = Detection {
    addresses: &["ws.kraken.com/v2", "ws-l3.kraken.com/v2", "ws-auth.kraken.com/v2"],
    unsupported: &[("ws.kraken.com", "Kraken WebSocket version 1"), ("futures.kraken.com", "Kraken Futures version 1")],
    sends: |start| is_book(start) && !is_derivative(start),
};

pub(super) const DERIVATIVES: Detection = Detection {
    addresses: &["uws.kraken.com/v2"],
    unsupported: &[],
    sends: |start| is_book(start) && is_derivative(start),
};

fn is_book(start: &FrameStart) -> bool {
    let is_book = start.has("\"channel\":\"book\"") || start.has("\"channel\":\"level3\"");
    is_book && start.has("\"type\":")
}

fn is_derivative(start: &FrameStart) -> bool {
    start.quoted_after("\"symbol\":\"").is_some_and(|symbol| symbol.contains(&b'_'))
}
