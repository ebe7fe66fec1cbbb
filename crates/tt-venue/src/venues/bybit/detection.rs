//! Detection of recordings of Bybit. Contracts on USD are inverse; spot has the symbols of linear contracts; options have three
//! dashes or more.

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

pub(super) const OPTION: Detection = Detection {
    addresses: &["bybit.com/v5/public/option"],
    unsupported: &[],
    sends: |start| symbol(start).is_some_and(is_option),
};

/// Returns whether the topic is of an inverse contract, such as `BTCUSD` or `BTCUSDH25`; `None` without a topic,
/// and for options.
fn is_inverse(start: &FrameStart) -> Option<bool> {
    let symbol = symbol(start).filter(|symbol| !is_option(symbol))?;
    let digits = symbol.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let is_dated = digits > 0 && symbol.len() - digits > 4 && symbol[..symbol.len() - digits - 1].ends_with(b"USD");
    Some(symbol.ends_with(b"USD") || is_dated)
}

/// Returns the symbol of the topic: `orderbook.25.BTC-26MAR27-50000-C-USDT`.
fn symbol(start: &FrameStart) -> Option<&[u8]> {
    start.quoted_after("\"topic\":\"")?.rsplit(|byte| *byte == b'.').next()
}

fn is_option(symbol: &[u8]) -> bool {
    symbol.iter().filter(|byte| **byte == b'-').count() >= 3
}
