//! The keys that Binance documents for its public frames and answers.

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "stream", "data", "result", "id", "error", "code", "msg",
    "e", "E", "s", "u", "b", "B", "a", "A", "t", "p", "q", "T", "m", "M", "f", "l", "U", "pu", "ps", "st", "X",
    "P", "w", "x", "c", "Q", "o", "h", "v", "O", "C", "F", "L", "n", "k", "i", "V", "r", "S", "ap", "z",
];
