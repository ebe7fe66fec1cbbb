//! The keys that OKX documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "event", "arg", "channel", "instId", "instType", "instFamily", "connId", "code", "msg", "id", "action", "data",
    "asks", "bids", "ts", "checksum", "seqId", "prevSeqId", "tradeId", "px", "sz", "side", "count", "source",
    "last", "lastSz", "askPx", "askSz", "bidPx", "bidSz", "open24h", "high24h", "low24h", "volCcy24h", "vol24h",
    "sodUtc0", "sodUtc8", "fundingRate", "nextFundingRate", "fundingTime", "nextFundingTime", "prevFundingTime", "method",
    "formulaType", "maxFundingRate", "minFundingRate", "premium", "settFundingRate", "settState", "interestRate",
    "impactValue", "markPx", "idxPx", "oi", "oiCcy", "oiUsd", "details", "bkLoss", "bkPx", "ccy", "posSide", "uly",
];
