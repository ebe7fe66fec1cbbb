//! Bybit, API version 5: spot, linear and inverse contracts, options.

mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
mod region;
pub(super) mod rules;
