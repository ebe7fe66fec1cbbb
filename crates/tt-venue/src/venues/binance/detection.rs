//! Detection of recordings of Binance: its markets' frames differ in few keys.

use crate::detection::{Detection, FrameStart};

pub(super) const SPOT: Detection = Detection {
    addresses: &["stream.binance.com", "api.binance.com", "data-stream.binance.vision"],
    unsupported: &[],
    sends: |start| match market(start) {
        Some(Market::Spot) => true,
        Some(Market::Usdm | Market::Coinm) | None => false,
    },
};

pub(super) const USDM: Detection = Detection {
    addresses: &["fstream.binance.com", "fapi.binance.com"],
    unsupported: &[],
    sends: |start| match market(start) {
        Some(Market::Usdm) => true,
        Some(Market::Spot | Market::Coinm) | None => false,
    },
};

pub(super) const COINM: Detection = Detection {
    addresses: &["dstream.binance.com", "dapi.binance.com"],
    unsupported: &[],
    sends: |start| match market(start) {
        Some(Market::Coinm) => true,
        Some(Market::Spot | Market::Usdm) | None => false,
    },
};

enum Market {
    Spot,
    Usdm,
    Coinm,
}

fn market(start: &FrameStart) -> Option<Market> {
    let symbol = start.quoted_after("\"s\":\"")?;
    let is_book = start.has("\"e\":\"depthUpdate\"");
    let is_typed_quote = start.has("\"e\":\"bookTicker\"");
    let is_quote = is_typed_quote || start.has("@bookTicker\"");
    let has_type = start.has("\"e\":\"");
    if symbol.windows(4).any(|four| four == b"USD_") && (has_type || is_quote) {
        Some(Market::Coinm)
    } else if (is_book && start.has("\"pu\":")) || is_typed_quote || start.has("\"e\":\"markPriceUpdate\"") {
        Some(Market::Usdm)
    } else if is_book || (is_quote && start.has("\"u\":")) {
        Some(Market::Spot)
    } else {
        None
    }
}
