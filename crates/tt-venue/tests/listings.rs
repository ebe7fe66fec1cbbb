//! Lists of instruments, with entries as the venues' documentation shows them.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use tt_model::Decimal;
use tt_venue::Venue;
use tt_venue::listing::{ContractUnit, Listing};

fn only(venue: Venue, body: &str) -> Listing {
    let mut listed = (venue.rules().instruments.parse)(body.as_bytes()).unwrap();
    assert_eq!(listed.len(), 1, "{body}");
    listed.remove(0)
}

#[test]
fn reads_the_unit_of_a_contract() {
    let whole = |size| Decimal::new(size, 0);
    for (venue, body, name, unit) in [
        (
            Venue::Okx,
            r#"{"data":[{"instId":"BTC-USDT-SWAP","baseCcy":"","quoteCcy":"","settleCcy":"USDT","uly":"BTC-USDT","ctVal":"0.01","ctMult":"1","ctType":"linear","tickSz":"0.1","lotSz":"0.01"}]}"#,
            "BTC/USDT:USDT",
            ContractUnit::Linear(Decimal::new(1, 2)),
        ),
        (
            Venue::Okx,
            r#"{"data":[{"instId":"BTC-USD-SWAP","baseCcy":"","quoteCcy":"","settleCcy":"BTC","uly":"BTC-USD","ctVal":"100","ctMult":"1","ctType":"inverse","tickSz":"0.1","lotSz":"1"}]}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(100)),
        ),
        (
            Venue::Okx,
            r#"{"data":[{"instId":"BTC-USDT","baseCcy":"BTC","quoteCcy":"USDT","settleCcy":"","uly":"","ctVal":"","ctMult":"","ctType":"","tickSz":"0.1","lotSz":"0.00000001"}]}"#,
            "BTC/USDT",
            ContractUnit::Base,
        ),
        (
            Venue::BinanceCoinm,
            r#"{"symbols":[{"symbol":"BTCUSD_PERP","baseAsset":"BTC","quoteAsset":"USD","marginAsset":"BTC","contractSize":100,"filters":[{"filterType":"PRICE_FILTER","tickSize":"0.1"},{"filterType":"LOT_SIZE","stepSize":"1"}]}]}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(100)),
        ),
        (
            Venue::BybitInverse,
            r#"{"result":{"list":[{"symbol":"BTCUSD","contractType":"InversePerpetual","baseCoin":"BTC","quoteCoin":"USD","settleCoin":"BTC","priceFilter":{"tickSize":"0.50"},"lotSizeFilter":{"qtyStep":"1"}}]}}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(1)),
        ),
        (
            Venue::Deribit,
            r#"{"result":[{"instrument_name":"BTC-PERPETUAL","kind":"future","instrument_type":"reversed","base_currency":"BTC","quote_currency":"USD","settlement_currency":"BTC","tick_size":0.5,"min_trade_amount":10,"contract_size":10}]}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(1)),
        ),
        (
            Venue::Deribit,
            r#"{"result":[{"instrument_name":"ETH_USDC-PERPETUAL","kind":"future","instrument_type":"linear","base_currency":"ETH","quote_currency":"USDC","settlement_currency":"USDC","tick_size":0.01,"min_trade_amount":0.01,"contract_size":0.01}]}"#,
            "ETH/USDC:USDC",
            ContractUnit::Base,
        ),
    ] {
        let listed = only(venue, body);
        assert_eq!((listed.name.as_str(), listed.unit), (name, unit), "{body}");
    }
}

#[test]
fn leaves_out_a_contract_without_its_size() {
    let body = r#"{"data":[{"instId":"BTC-USDT-SWAP","settleCcy":"USDT","uly":"BTC-USDT","ctVal":"","ctType":"linear","tickSz":"0.1","lotSz":"1"}]}"#;
    assert!((Venue::Okx.rules().instruments.parse)(body.as_bytes()).unwrap().is_empty());
}
