//! Binance: spot, USD-margined and coin-margined futures.

mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
pub(super) mod rules;
