//! Deribit: JSON-RPC 2.0 over WebSocket.

mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
pub(super) mod rules;
