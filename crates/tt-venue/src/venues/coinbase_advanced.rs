//! Coinbase Advanced Trade. Every message of a connection has a number.

mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
pub(super) mod rules;
