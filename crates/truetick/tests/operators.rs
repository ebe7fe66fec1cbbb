//! What an operator does with the built binary: check and print a configuration, reload, drain, look and end.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

#[path = "operators/admin.rs"]
mod admin;
#[allow(dead_code, reason = "each test target uses its part of it")]
#[path = "turn/client.rs"]
mod client;
#[path = "operators/configuration.rs"]
mod configuration;
#[path = "operators/drain.rs"]
mod drain;
#[path = "operators/logs.rs"]
mod logs;
#[path = "operators/namespaces.rs"]
mod namespaces;
#[path = "operators/nonces.rs"]
mod nonces;
#[path = "operators/operated.rs"]
mod operated;
#[path = "operators/reload.rs"]
mod reload;
#[path = "operators/unit.rs"]
mod unit;
