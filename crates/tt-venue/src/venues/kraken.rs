//! Kraken, WebSocket version 2.

mod checksum;
mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
pub(super) mod rules;
