//! What an operator does with the built binary: check and print a configuration, reload, drain, look and end.

mod activation;
mod admin;
mod bans;
mod configuration;
mod drain;
mod ended;
mod half_sent;
pub(crate) mod kernel_path;
mod logs;
mod memory;
pub(crate) mod namespaces;
mod nonces;
pub(crate) mod operated;
mod own_host;
mod realms;
mod records;
mod reload;
mod reload_connections;
mod reload_listeners;
mod reload_relays;
mod reload_settings;
mod reload_workers;
mod shared_sockets;
mod turnserver;
mod unit;
