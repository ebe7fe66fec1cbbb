//! The keys that Hyperliquid documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "channel", "data", "method", "subscription", "type", "coin", "fast", "interval", "nSigFigs", "mantissa", "time",
    "levels", "px", "sz", "n", "bbo", "side", "hash", "tid", "users", "ctx", "funding", "openInterest", "oraclePx",
    "markPx", "midPx", "premium", "impactPxs", "prevDayPx", "dayNtlVlm", "dayBaseVlm", "circulatingSupply",
    "totalSupply", "t", "T", "s", "i", "o", "c", "h", "l", "v",
];
