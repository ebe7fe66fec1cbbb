//! What an operator does with the built binary: check and print a configuration, reload, drain, look and end.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

#[path = "operators/configuration.rs"]
mod configuration;
