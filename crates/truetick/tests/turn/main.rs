//! `truetick turn` as a process, with clients of ours and of others.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

mod cases;
mod certificates;
mod checks;
mod clients;
mod conform;
mod coturn;
mod credentials;
mod floods;
mod handshake_loops;
mod idle;
mod kept_keys;
mod operators;
mod packets;
mod pools;
mod relay;
mod reload_calls;
mod server;
mod spray;
mod strangers;
mod stream_client;
mod streams;
mod user_files;
#[allow(dead_code, reason = "each test target uses a part of it")]
#[path = "../../../tt-turn/tests/engine/wire.rs"]
mod wire;
