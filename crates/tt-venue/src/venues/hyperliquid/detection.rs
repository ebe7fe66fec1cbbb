//! Detection of recordings of Hyperliquid.

use crate::detection::Detection;

pub(super) const DETECTION: Detection = Detection {
    addresses: &["hyperliquid.xyz"],
    unsupported: &[],
    sends: |start| start.has("\"channel\":\"l2Book\"") || start.has("\"channel\":\"trades\",\"data\":[{\"coin\""),
};
