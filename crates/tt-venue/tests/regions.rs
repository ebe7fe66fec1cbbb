//! Addresses of regions, as the venues' documentation lists them.

use tt_venue::Venue;

/// bybit-exchange.github.io/docs: "Integration Guidance" for REST, "Connect" for streams; those of Hong Kong by
/// sieblyio/bybit-api #570. Users of the Netherlands and the Emirates have no stream of their own; those of the EU have one
/// for spot.
#[test]
fn bybit_has_other_hosts_for_some_countries() {
    let expected = [
        ("eu", "stream.bybit.com", "api.bybit.eu"),
        ("nl", "stream.bybit.com", "api.bybit.nl"),
        ("tr", "stream.bybit.tr", "api.bybit.tr"),
        ("kz", "stream.bybit.kz", "api.bybit.kz"),
        ("ge", "stream.bybitgeorgia.ge", "api.bybitgeorgia.ge"),
        ("ae", "stream.bybit.com", "api.bybit.ae"),
        ("id", "stream.bybit.id", "api.bybit.id"),
        ("jp", "stream.manepa.jp", "api.manepa.jp"),
        ("hk", "stream.spark-fintech.com", "api.spark-fintech.com"),
        ("ar", "stream.bybit.com", "api.bybit.com"),
        ("testnet", "stream-testnet.bybit.com", "api-testnet.bybit.com"),
    ];
    for (venue, category) in [
        (Venue::BybitLinear, "linear"),
        (Venue::BybitInverse, "inverse"),
        (Venue::BybitSpot, "spot"),
        (Venue::BybitOption, "option"),
    ] {
        let regions = venue.rules().regions;
        let names: Vec<&str> = regions.iter().map(|region| region.name).collect();
        assert_eq!(names, expected.map(|(name, ..)| name), "{venue:?}");
        for (region, (name, streams, rest)) in regions.iter().zip(expected) {
            let streams = if (name, category) == ("eu", "spot") { "stream.bybit.eu" } else { streams };
            assert_eq!(region.streams, format!("wss://{streams}/v5/public/{category}"), "{name}");
            assert_eq!(region.rest, format!("https://{rest}"), "{name}");
        }
    }
}
