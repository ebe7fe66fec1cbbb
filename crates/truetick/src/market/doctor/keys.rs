//! The keys that each venue documents for what is followed of it: one that is not here is news.

use serde_json::Value;
use tt_market::Venue;

/// Every key of the venue's public frames and answers, one after the other.
const fn known(venue: Venue) -> &'static [&'static str] {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm => BINANCE,
        Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse => BYBIT,
        Venue::Okx => OKX,
        Venue::Kraken => KRAKEN,
        Venue::CoinbaseExchange => COINBASE_EXCHANGE,
        Venue::CoinbaseAdvanced => COINBASE_ADVANCED,
        Venue::Hyperliquid => HYPERLIQUID,
        Venue::Deribit => DERIBIT,
    }
}

#[rustfmt::skip]
const BINANCE: &[&str] = &[
    "stream", "data", "result", "id", "error", "code", "msg",
    "e", "E", "s", "u", "b", "B", "a", "A", "t", "p", "q", "T", "m", "M", "f", "l", "U", "pu", "ps", "st", "X",
    "P", "w", "x", "c", "Q", "o", "h", "v", "O", "C", "F", "L", "n", "k", "i", "V", "r", "S", "ap", "z",
];

#[rustfmt::skip]
const BYBIT: &[&str] = &[
    "success", "ret_msg", "conn_id", "req_id", "op", "args",
    "topic", "type", "ts", "cts", "cs", "data", "s", "b", "a", "u", "seq", "T", "S", "v", "p", "L", "i", "BT", "RPI",
    "symbol", "tickDirection", "price24hPcnt", "lastPrice", "prevPrice24h", "highPrice24h", "lowPrice24h", "prevPrice1h",
    "markPrice", "indexPrice", "openInterest", "openInterestValue", "turnover24h", "volume24h", "nextFundingTime",
    "fundingRate", "bid1Price", "bid1Size", "ask1Price", "ask1Size", "fundingIntervalHour", "fundingCap", "usdIndexPrice",
    "deliveryTime", "basisRate", "deliveryFeeRate", "predictedDeliveryPrice", "preOpenPrice", "preQty",
    "curPreListingPhase", "basis", "basisRateYear",
    "start", "end", "interval", "open", "close", "high", "low", "volume", "turnover", "confirm", "timestamp",
];

#[rustfmt::skip]
const OKX: &[&str] = &[
    "event", "arg", "channel", "instId", "instType", "instFamily", "connId", "code", "msg", "id", "action", "data",
    "asks", "bids", "ts", "checksum", "seqId", "prevSeqId", "tradeId", "px", "sz", "side", "count", "source",
    "last", "lastSz", "askPx", "askSz", "bidPx", "bidSz", "open24h", "high24h", "low24h", "volCcy24h", "vol24h",
    "sodUtc0", "sodUtc8", "fundingRate", "nextFundingRate", "fundingTime", "nextFundingTime", "prevFundingTime", "method",
    "formulaType", "maxFundingRate", "minFundingRate", "premium", "settFundingRate", "settState", "interestRate",
    "impactValue", "markPx", "idxPx", "oi", "oiCcy", "oiUsd", "details", "bkLoss", "bkPx", "ccy", "posSide", "uly",
];

#[rustfmt::skip]
const KRAKEN: &[&str] = &[
    "method", "req_id", "result", "success", "error", "warnings", "time_in", "time_out", "channel", "type", "data",
    "snapshot", "symbol", "depth", "system", "api_version", "connection_id", "version", "event_trigger",
    "bids", "asks", "price", "qty", "checksum", "timestamp",
    "bid", "bid_qty", "ask", "ask_qty", "last", "volume", "vwap", "low", "high", "change", "change_pct", "volume_usd",
    "side", "ord_type", "trade_id", "interval", "interval_begin", "open", "close", "trades",
    "event", "order_id", "limit_price", "order_qty",
];

#[rustfmt::skip]
const COINBASE_EXCHANGE: &[&str] = &[
    "type", "channels", "name", "product_ids", "account_ids", "message", "reason", "product_id", "bids", "asks",
    "changes", "time", "trade_id", "maker_order_id", "taker_order_id", "side", "size", "price", "sequence",
    "open_24h", "volume_24h", "low_24h", "high_24h", "volume_30d", "best_bid", "best_bid_size", "best_ask",
    "best_ask_size", "last_size", "last_trade_id", "order_id", "order_type", "client_oid", "funds", "remaining_size",
    "new_size", "old_size", "new_price", "old_price", "new_funds", "old_funds",
];

#[rustfmt::skip]
const COINBASE_ADVANCED: &[&str] = &[
    "channel", "client_id", "timestamp", "sequence_num", "events", "type", "message", "product_id", "updates", "side",
    "event_time", "price_level", "new_quantity", "trades", "trade_id", "price", "size", "time", "tickers",
    "volume_24_h", "low_24_h", "high_24_h", "low_52_w", "high_52_w", "price_percent_chg_24_h", "best_bid",
    "best_bid_quantity", "best_ask", "best_ask_quantity", "candles", "start", "high", "low", "open", "close", "volume",
    "current_time", "heartbeat_counter", "subscriptions", "level2", "market_trades", "ticker", "heartbeats",
];

#[rustfmt::skip]
const HYPERLIQUID: &[&str] = &[
    "channel", "data", "method", "subscription", "type", "coin", "interval", "nSigFigs", "mantissa", "time", "levels",
    "px", "sz", "n", "bbo", "side", "hash", "tid", "users", "ctx", "funding", "openInterest", "oraclePx", "markPx",
    "midPx", "premium", "impactPxs", "prevDayPx", "dayNtlVlm", "dayBaseVlm", "circulatingSupply", "totalSupply",
    "t", "T", "s", "i", "o", "c", "h", "l", "v",
];

#[rustfmt::skip]
const DERIBIT: &[&str] = &[
    "jsonrpc", "id", "result", "error", "code", "message", "usIn", "usOut", "usDiff", "testnet", "method", "params",
    "channel", "data", "type", "version", "timestamp", "instrument_name", "change_id", "prev_change_id", "bids", "asks",
    "state", "stats", "volume_usd", "volume_notional", "volume", "price_change", "low", "high", "index_price",
    "last_price", "mark_price", "settlement_price", "min_price", "max_price", "open_interest", "best_bid_price",
    "best_bid_amount", "best_ask_price", "best_ask_amount", "current_funding", "funding_8h", "interest_value",
    "estimated_delivery_price", "delivery_price", "interest_rate", "underlying_index", "underlying_price", "greeks",
    "bid_iv", "ask_iv", "mark_iv", "trade_seq", "trade_id", "price", "amount", "direction", "tick_direction", "contracts",
    "liquidation", "iv", "block_trade_id", "block_trade_leg_count", "combo_id", "combo_trade_id", "block_rfq_id",
    "tick", "open", "close", "cost", "delta", "gamma", "rho", "theta", "vega",
];

/// The first key of `frame` that the venue does not document.
pub(super) fn unknown(venue: Venue, frame: &Value) -> Option<&str> {
    match frame {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let is_known = known(venue).contains(&key.as_str());
            if is_known { unknown(venue, value) } else { Some(key.as_str()) }
        }),
        Value::Array(elements) => elements.iter().find_map(|element| unknown(venue, element)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_found_however_deep_it_lies() {
        let frame = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let level = r#"{"channel":"book","type":"update","data":[{"symbol":"BTC/USD","bids":[{"price":1.5,"qty":2,"orders":3}]}]}"#;
        assert_eq!(unknown(Venue::Kraken, &frame(level)), Some("orders"));
        assert_eq!(unknown(Venue::Kraken, &frame(&level.replace(",\"orders\":3", ""))), None);
    }

    /// Frames of the venues themselves hold none.
    #[test]
    fn captured_frames_have_no_unknown_key() {
        let Some(folder) = std::env::var_os("TRUETICK_DATA").map(std::path::PathBuf::from) else {
            assert!(std::env::var_os("TRUETICK_REQUIRE_DATA").is_none(), "TRUETICK_DATA names no folder");
            return;
        };
        for (venue, file) in [
            (Venue::CoinbaseExchange, "coinbase/exchange_2021.ws"),
            (Venue::Deribit, "deribit/deribit.ws"),
            (Venue::Okx, "okx/okx_2022.ws"),
            (Venue::Kraken, "kraken/v2_btcusd_depth25.cbcap"),
        ] {
            let text = String::from_utf8_lossy(&std::fs::read(folder.join(file)).unwrap()).into_owned();
            let mut frames = 0;
            // What the client sent stands behind an arrow.
            for line in text.lines().filter(|line| !line.contains("<-")) {
                let Some(frame) = line.find('{').and_then(|at| serde_json::from_str(&line[at..]).ok()) else {
                    continue;
                };
                assert_eq!(unknown(venue, &frame), None, "{line}");
                frames += 1;
            }
            assert!(frames > 100, "{file}: {frames}");
        }
    }
}
