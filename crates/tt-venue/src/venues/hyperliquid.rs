//! Hyperliquid. Each book message is a whole book without a number.

mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
pub(super) mod rules;
