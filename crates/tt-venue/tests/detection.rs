//! The venue of a recording, from addresses and frames.

use tt_venue::{Origin, Venue};

#[test]
fn finds_the_venue_of_a_frame() {
    for (frame, venue) in [
        (
            r#"{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":1,"u":2,"b":[]}}"#,
            Some(Venue::BinanceSpot),
        ),
        (r#"{"e":"depthUpdate","E":1,"T":1,"s":"BTCUSDT","U":1,"u":2,"pu":0,"b":[]}"#, Some(Venue::BinanceUsdm)),
        (r#"{"e":"depthUpdate","s":"BTCUSD_PERP","ps":"BTCUSD","U":1,"u":2,"pu":0}"#, Some(Venue::BinanceCoinm)),
        (r#"{"stream":"x@bookTicker","data":{"u":5,"s":"BTCUSDT","b":"1","B":"2"}}"#, Some(Venue::BinanceSpot)),
        (r#"{"stream":"x@bookTicker","data":{"e":"bookTicker","u":5,"s":"BTCUSDT"}}"#, Some(Venue::BinanceUsdm)),
        (r#"{"stream":"x@markPrice","data":{"e":"markPriceUpdate","s":"BTCUSDT"}}"#, Some(Venue::BinanceUsdm)),
        (r#"{"stream":"x@kline_1m","data":{"e":"kline","s":"BTCUSDT"}}"#, None),
        (r#"{"channel":"book","type":"snapshot","data":[{"symbol":"BTC/USD"}]}"#, Some(Venue::Kraken)),
        (r#"{"channel":"book","type":"update","data":[{"symbol":"PF_XBTUSD"}]}"#, Some(Venue::KrakenDerivatives)),
        (r#"{"channel":"l2Book","data":{"coin":"BTC"}}"#, Some(Venue::Hyperliquid)),
        (r#"{ "channel" : "trades", "data" : [ { "coin" : "BTC" } ] }"#, Some(Venue::Hyperliquid)),
        (r#"{"topic":"orderbook.500.XRPUSDT","type":"snapshot"}"#, Some(Venue::BybitLinear)),
        (r#"{"topic":"orderbook.50.BTCUSD","type":"snapshot"}"#, Some(Venue::BybitInverse)),
        (r#"{"topic":"orderbook.50.BTCUSDH25","type":"snapshot"}"#, Some(Venue::BybitInverse)),
        (r#"{"topic":"orderbook.50.BTC-26MAR27","type":"snapshot"}"#, Some(Venue::BybitLinear)),
        (r#"{"topic":"orderbook.25.BTC-26MAR27-50000-C-USDT","type":"snapshot"}"#, Some(Venue::BybitOption)),
        (r#"{"id":"x","topic":"tickers.BTC-6JAN23-17500-C","ts":1672917511074}"#, Some(Venue::BybitOption)),
        (r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update"}"#, Some(Venue::Okx)),
        (r#"{"jsonrpc":"2.0","method":"subscription"}"#, Some(Venue::Deribit)),
        (r#"{"type":"l2update","product_id":"BTC-USD","changes":[]}"#, Some(Venue::CoinbaseExchange)),
        (r#"{"type":"snapshot","product_id":"BTC-USD","bids":[]}"#, Some(Venue::CoinbaseExchange)),
        (r#"{"channel":"l2_data","client_id":"","timestamp":"","sequence_num":0}"#, Some(Venue::CoinbaseAdvanced)),
        (
            r#"{"channel":"l2_data","sequence_num":0,"events":[{"type":"snapshot","product_id":"BTC-USD"}]}"#,
            Some(Venue::CoinbaseAdvanced),
        ),
        (r#"{"result":null,"id":1}"#, None),
        ("", None),
    ] {
        assert_eq!(Venue::of_frame(frame.as_bytes()), venue, "{frame}");
    }
}

/// The start of a frame is enough, and what follows is not read.
#[test]
fn reads_the_start_of_a_frame_alone() {
    let frame = |padding: usize| format!("{}{{\"jsonrpc\":\"2.0\"}}", " ".repeat(padding));
    assert_eq!(Venue::of_frame(frame(380).as_bytes()), Some(Venue::Deribit));
    assert_eq!(Venue::of_frame(frame(400).as_bytes()), None);
}

#[test]
fn finds_the_venue_of_an_address() {
    for (address, venue) in [
        ("wss://stream.binance.com:9443/stream", Venue::BinanceSpot),
        ("https://api.binance.com/api/v3/depth?symbol=A", Venue::BinanceSpot),
        ("wss://data-stream.binance.vision/ws", Venue::BinanceSpot),
        ("wss://fstream.binance.com/stream", Venue::BinanceUsdm),
        ("https://fapi.binance.com/fapi/v1/depth?symbol=A", Venue::BinanceUsdm),
        ("wss://dstream.binance.com/stream", Venue::BinanceCoinm),
        ("https://dapi.binance.com/dapi/v1/depth?symbol=A", Venue::BinanceCoinm),
        ("wss://stream.bybit.com/v5/public/spot", Venue::BybitSpot),
        ("wss://stream.bybit.com/v5/public/linear", Venue::BybitLinear),
        ("wss://stream.bybit.com/v5/public/inverse", Venue::BybitInverse),
        ("wss://stream.bybit.com/v5/public/option", Venue::BybitOption),
        ("wss://ws.okx.com:8443/ws/v5/public", Venue::Okx),
        ("wss://real.okex.com:8443/ws/v3", Venue::Okx),
        ("wss://ws.kraken.com/v2", Venue::Kraken),
        ("wss://ws-auth.kraken.com/v2", Venue::Kraken),
        ("wss://uws.kraken.com/v2/public", Venue::KrakenDerivatives),
        ("wss://ws-feed.exchange.coinbase.com", Venue::CoinbaseExchange),
        ("wss://ws-feed.pro.coinbase.com", Venue::CoinbaseExchange),
        ("wss://advanced-trade-ws.coinbase.com", Venue::CoinbaseAdvanced),
        ("wss://api.hyperliquid.xyz/ws", Venue::Hyperliquid),
        ("wss://www.deribit.com/ws/api/v2", Venue::Deribit),
    ] {
        assert_eq!(Venue::of_address(address), Some(Origin::Venue(venue)), "{address}");
    }
    assert_eq!(Venue::of_address("wss://ws.kraken.com"), Some(Origin::Unsupported("Kraken WebSocket version 1")));
    for address in ["wss://example.org", "wss://notderibit.com/ws", "wss://deribit.com.example.org", ""] {
        assert_eq!(Venue::of_address(address), None, "{address}");
    }
}

/// A venue's own address leads to itself, so that its recordings are recognised.
#[test]
fn finds_every_venue_by_its_own_address() {
    for venue in Venue::ALL {
        assert_eq!(Venue::of_address(venue.rules().streams), Some(Origin::Venue(venue)), "{venue:?}");
    }
}
