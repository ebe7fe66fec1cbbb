//! Bybit's regional addresses (bybit-exchange.github.io/docs/v5/guide, "Integration Guidance").

use crate::rules::Region;

/// The venue's sites with hosts of their own; all but the one of the EEA share the streams.
macro_rules! regions {
    ($category:literal) => {
        &[
            Region {
                name: "eu",
                streams: concat!("wss://stream.bybit.eu/v5/public/", $category),
                rest: "https://api.bybit.eu",
            },
            at!("nl", "https://api.bybit.nl", $category),
            at!("tr", "https://api.bybit-tr.com", $category),
            at!("kz", "https://api.bybit.kz", $category),
            at!("ge", "https://api.bybitgeorgia.ge", $category),
            at!("ae", "https://api.bybit.ae", $category),
            at!("id", "https://api.bybit.id", $category),
            Region {
                name: "testnet",
                streams: concat!("wss://stream-testnet.bybit.com/v5/public/", $category),
                rest: "https://api-testnet.bybit.com",
            },
        ]
    };
}

macro_rules! at {
    ($name:literal, $rest:literal, $category:literal) => {
        Region { name: $name, streams: concat!("wss://stream.bybit.com/v5/public/", $category), rest: $rest }
    };
}

pub(super) const LINEAR: &[Region] = regions!("linear");
pub(super) const INVERSE: &[Region] = regions!("inverse");
pub(super) const SPOT: &[Region] = regions!("spot");
pub(super) const OPTION: &[Region] = regions!("option");
