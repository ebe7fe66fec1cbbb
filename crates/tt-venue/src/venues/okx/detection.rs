//! Detection of recordings of OKX.

use crate::detection::Detection;

pub(super) const DETECTION: Detection = Detection {
    addresses: &["okx.com", "okex.com"],
    unsupported: &[],
    sends: |start| start.has("\"arg\":{\"channel\""),
};
