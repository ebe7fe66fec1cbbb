//! Bybit's regional addresses (bybit-exchange.github.io/docs, "Integration Guidance" and "Connect"; checked 2026-11).

use crate::rules::Region;

/// The venue's sites with hosts of their own. Those of the Netherlands, the Emirates and Argentina share the streams; an
/// account of an Argentine site adds the header `x-site-id` to signed requests, of which there is none here.
macro_rules! regions {
    ($category:literal, $eu:literal) => {
        &[
            region!("eu", $eu, "api.bybit.eu", $category),
            region!("nl", "stream.bybit.com", "api.bybit.nl", $category),
            region!("tr", "stream.bybit.tr", "api.bybit.tr", $category),
            region!("kz", "stream.bybit.kz", "api.bybit.kz", $category),
            region!("ge", "stream.bybitgeorgia.ge", "api.bybitgeorgia.ge", $category),
            region!("ae", "stream.bybit.com", "api.bybit.ae", $category),
            region!("id", "stream.bybit.id", "api.bybit.id", $category),
            // The stream's host by client libraries, not by the documentation.
            region!("jp", "stream.manepa.jp", "api.manepa.jp", $category),
            // By sieblyio/bybit-api #570 (2026-09-04), after bybit-exchange/docs #861.
            region!("hk", "stream.spark-fintech.com", "api.spark-fintech.com", $category),
            region!("ar", "stream.bybit.com", "api.bybit.com", $category),
            region!("testnet", "stream-testnet.bybit.com", "api-testnet.bybit.com", $category),
        ]
    };
}

macro_rules! region {
    ($name:literal, $streams:literal, $rest:literal, $category:literal) => {
        Region {
            name: $name,
            streams: concat!("wss://", $streams, "/v5/public/", $category),
            rest: concat!("https://", $rest),
        }
    };
}

// Streams of the EU are documented for spot alone ("System Status"). For contracts, a client with live checks takes the
// usual ones (sieblyio/bybit-api 4.7.6, 2026-09-04; read in 2026-12).
pub(super) const LINEAR: &[Region] = regions!("linear", "stream.bybit.com");
pub(super) const INVERSE: &[Region] = regions!("inverse", "stream.bybit.com");
pub(super) const SPOT: &[Region] = regions!("spot", "stream.bybit.eu");
pub(super) const OPTION: &[Region] = regions!("option", "stream.bybit.com");
