//! Whose feed a recording is of, from addresses and frames.

/// Hosts, and the name of the venue behind each.
const HOSTS: &[(&str, &str)] = &[
    ("fstream.binance.com", "binance_usdm"),
    ("fapi.binance.com", "binance_usdm"),
    ("dstream.binance.com", "binance_coinm"),
    ("dapi.binance.com", "binance_coinm"),
    ("stream.binance.com", "binance_spot"),
    ("api.binance.com", "binance_spot"),
    ("data-stream.binance.vision", "binance_spot"),
    ("ws.kraken.com/v2", "kraken"),
    ("ws-auth.kraken.com/v2", "kraken"),
    ("ws.kraken.com", "kraken_v1"),
    ("bybit.com/v5/public/spot", "bybit_spot"),
    ("bybit.com/v5/public/linear", "bybit_linear"),
    ("bybit.com/v5/public/inverse", "bybit_inverse"),
    ("okx.com", "okx"),
    ("okex.com", "okx"),
    ("advanced-trade-ws.coinbase.com", "coinbase_advanced"),
    ("ws-feed.exchange.coinbase.com", "coinbase_exchange"),
    ("ws-feed.pro.coinbase.com", "coinbase_exchange"),
    ("deribit.com", "deribit"),
    ("hyperliquid.xyz", "hyperliquid"),
];

/// Bytes of a frame in which its venue shows.
const SHOWS_WITHIN: usize = 400;

/// The name of the venue at an address.
pub(super) fn of_address(address: &str) -> Option<&'static str> {
    HOSTS.iter().find(|known| address.contains(known.0)).map(|known| known.1)
}

/// The name of the venue that sends such a frame; `None` where several might.
pub(super) fn of_frame(frame: &[u8]) -> Option<&'static str> {
    let start = String::from_utf8_lossy(&frame[..frame.len().min(SHOWS_WITHIN)]);
    let start: String = start.chars().filter(|c| !c.is_whitespace()).collect();
    let has = |text: &str| start.contains(text);
    if has("\"jsonrpc\"") {
        Some("deribit")
    } else if has("\"arg\":{\"channel\"") {
        Some("okx")
    } else if has("\"topic\":\"") {
        Some(bybit(&start))
    } else if has("\"channel\":\"l2Book\"") || has("\"channel\":\"trades\",\"data\":[{\"coin\"") {
        Some("hyperliquid")
    } else if has("\"sequence_num\"") || has("\"channel\":\"l2_data\"") {
        Some("coinbase_advanced")
    } else if has("\"type\":\"l2update\"") || (has("\"type\":\"snapshot\"") && has("\"product_id\"")) {
        Some("coinbase_exchange")
    } else if has("\"channel\":\"book\"") && has("\"type\":") {
        Some("kraken")
    } else {
        binance(&start)
    }
}

/// Which of Bybit's markets: contracts on USD are inverse. Spot has the symbols of linear contracts; `--venue` tells it.
fn bybit(start: &str) -> &'static str {
    let topic = start.split_once("\"topic\":\"").map_or("", |(_, rest)| rest.split('"').next().unwrap_or_default());
    let symbol = topic.rsplit('.').next().unwrap_or_default();
    let dated = symbol.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_inverse =
        symbol.ends_with("USD") || (dated != symbol && dated.len() > 4 && dated[..dated.len() - 1].ends_with("USD"));
    if is_inverse { "bybit_inverse" } else { "bybit_linear" }
}

/// Which of Binance's markets: their frames differ in few keys.
fn binance(start: &str) -> Option<&'static str> {
    let has = |text: &str| start.contains(text);
    let symbol = start.split_once("\"s\":\"").map(|(_, rest)| rest.split('"').next().unwrap_or_default())?;
    let is_book = has("\"e\":\"depthUpdate\"");
    let is_quote = has("@bookTicker\"") || has("\"e\":\"bookTicker\"");
    if symbol.contains("USD_") && (is_book || is_quote || has("\"e\":\"")) {
        Some("binance_coinm")
    } else if (is_book && has("\"pu\":"))
        || (is_quote && has("\"e\":\"bookTicker\""))
        || has("\"e\":\"markPriceUpdate\"")
    {
        Some("binance_usdm")
    } else if is_book || (is_quote && has("\"u\":")) {
        Some("binance_spot")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_tell_their_venue() {
        for (frame, venue) in [
            (
                r#"{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":1,"u":2,"b":[]}}"#,
                Some("binance_spot"),
            ),
            (r#"{"e":"depthUpdate","E":1,"T":1,"s":"BTCUSDT","U":1,"u":2,"pu":0,"b":[]}"#, Some("binance_usdm")),
            (r#"{"e":"depthUpdate","s":"BTCUSD_PERP","ps":"BTCUSD","U":1,"u":2,"pu":0}"#, Some("binance_coinm")),
            (r#"{"stream":"x@bookTicker","data":{"u":5,"s":"BTCUSDT","b":"1","B":"2"}}"#, Some("binance_spot")),
            (r#"{"stream":"x@bookTicker","data":{"e":"bookTicker","u":5,"s":"BTCUSDT"}}"#, Some("binance_usdm")),
            (r#"{"stream":"x@kline_1m","data":{"e":"kline","s":"BTCUSDT"}}"#, None),
            (r#"{"channel":"book","type":"snapshot","data":[{"symbol":"BTC/USD"}]}"#, Some("kraken")),
            (r#"{"channel":"l2Book","data":{"coin":"BTC"}}"#, Some("hyperliquid")),
            (r#"{"topic":"orderbook.500.XRPUSDT","type":"snapshot"}"#, Some("bybit_linear")),
            (r#"{"topic":"orderbook.50.BTCUSD","type":"snapshot"}"#, Some("bybit_inverse")),
            (r#"{"topic":"orderbook.50.BTCUSDH25","type":"snapshot"}"#, Some("bybit_inverse")),
            (r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update"}"#, Some("okx")),
            (r#"{"jsonrpc":"2.0","method":"subscription"}"#, Some("deribit")),
            (r#"{"type":"l2update","product_id":"BTC-USD","changes":[]}"#, Some("coinbase_exchange")),
            (r#"{"channel":"l2_data","client_id":"","timestamp":"","sequence_num":0}"#, Some("coinbase_advanced")),
            (r#"{"result":null,"id":1}"#, None),
        ] {
            assert_eq!(of_frame(frame.as_bytes()), venue, "{frame}");
        }
        assert_eq!(of_address("wss://ws.kraken.com"), Some("kraken_v1"));
        assert_eq!(of_address("https://fapi.binance.com/fapi/v1/depth?symbol=A"), Some("binance_usdm"));
        assert_eq!(of_address("wss://example.org"), None);
    }
}
