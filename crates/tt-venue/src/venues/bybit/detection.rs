//! Detection of recordings of Bybit. Contracts on USD are inverse; spot has the symbols of linear contracts.

use crate::detection::{Detection, FrameStart};

pub(super) const SPOT: Detection =
    Detection { addresses: &["bybit.com/v5/public/spot"], unsupported: &[], sends: |_| false };

pub(super) const LINEAR: Detection = Detection {
    addresses: &["bybit.com/v5/public/linear"],
    unsupported: &[],
    sends: |start| is_inverse(start) == Some(false),
};

pub(super) const INVERSE: Detection = Detection {
    addresses: &["bybit.com/v5/public/inverse"],
    unsupported: &[],
    sends: |start| is_inverse(start) == Some(true),
};

/// Returns whether the topic is of an inverse contract, such as `BTCUSD` or `BTCUSDH25`; `None` without a topic.
fn is_inverse(start: &FrameStart) -> Option<bool> {
    let topic = start.quoted_after("\"topic\":\"")?;
    let symbol = topic.rsplit(|byte| *byte == b'.').next()?;
    let digits = symbol.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let is_dated = digits > 0 && symbol.len() - digits > 4 && symbol[..symbol.len() - digits - 1].ends_with(b"USD");
    Some(symbol.ends_with(b"USD") || is_dated)
}
