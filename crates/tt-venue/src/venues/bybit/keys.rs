//! The keys that Bybit documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "success", "ret_msg", "conn_id", "req_id", "op", "args",
    "topic", "type", "ts", "cts", "cs", "data", "s", "b", "a", "u", "seq", "T", "S", "v", "p", "L", "i", "BT", "RPI",
    "symbol", "tickDirection", "price24hPcnt", "lastPrice", "prevPrice24h", "highPrice24h", "lowPrice24h", "prevPrice1h",
    "markPrice", "indexPrice", "openInterest", "openInterestValue", "turnover24h", "volume24h", "nextFundingTime",
    "fundingRate", "bid1Price", "bid1Size", "ask1Price", "ask1Size", "fundingIntervalHour", "fundingCap", "usdIndexPrice",
    "deliveryTime", "basisRate", "deliveryFeeRate", "predictedDeliveryPrice", "preOpenPrice", "preQty",
    "curPreListingPhase", "basis", "basisRateYear",
    "failTopics", "successTopics", "id", "bidPrice", "bidSize", "bidIv", "askPrice", "askSize", "askIv", "markPriceIv",
    "underlyingPrice", "totalVolume", "totalTurnover", "delta", "gamma", "vega", "theta", "change24h", "mP", "iP", "mIv",
    "iv",
    "start", "end", "interval", "open", "close", "high", "low", "volume", "turnover", "confirm", "timestamp",
];
